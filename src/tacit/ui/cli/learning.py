"""What `tacit learn` shows: the estimate and the question, the progress, the results, the cost."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tacit.agent import spending
from tacit.agent.spending import Spent
from tacit.base.amounts import amount, counted, dollars
from tacit.base.errors import Refused, Usage
from tacit.base.sections import LearnSettings, Settings
from tacit.base.terminal import fit, one_line, plain
from tacit.learn.batch import Candidate, Chosen, choose, named
from tacit.learn.distil import Proposed
from tacit.traces.store import Store, Stored
from tacit.ui.cli import gating, output

if TYPE_CHECKING:
    from tacit.learn.by_hand import Result
    from tacit.learn.estimate import Estimate
    from tacit.ui.cli.learn import Options

STOPPED = 130
_MANY_TOKENS = 1_000_000
"""Of a model without a known price, tokens above which it is asked first."""
_COLOURS = {"created": "green", "edited": "green", "applied": "green", "proposed": "cyan"}
_COLOURS |= {"failed": "red", "refused": "yellow", "would change": "cyan"}


def with_model(
    store: Store, found: list[Stored], settings: Settings, model: str, options: "Options"
) -> int:
    """Look at sessions with a model; the exit code."""
    from tacit.learn import by_hand

    chosen = (
        named(store, found[: options.most], settings)
        if options.names_sessions
        else choose(store, found, settings, again=options.again, most=options.most)
    )
    if not chosen.candidates:
        _write_nothing(chosen, options)
        return 0
    if refusal := spending.allowed(settings.learn):
        limits = settings.learn
        more = spending.allow_more(refusal, limits.daily_money, limits.daily_tokens)
        hint = f"it goes on tomorrow; or allow more: {more}"
        raise Refused(refusal, hint)
    guess = by_hand.estimated(store, chosen.candidates, settings, model)
    _ask(guess, settings.learn, options)

    def look(candidate: Candidate) -> "Result":
        if options.dry_run:
            return by_hand.rehearsed(candidate, store, settings)
        return by_hand.look(candidate, model=options.model)

    results, stopped = _run(chosen, look, settings.learn, hidden=options.as_json)
    if options.as_json:
        output.write_json(_report(chosen, results, guess, model, stopped))
    else:
        _write(chosen, results, stopped)
    return STOPPED if stopped == "interrupted" else 0


def _ask(guess: "Estimate", learn: LearnSettings, options: "Options") -> None:
    """Say what it is likely to cost, and, where that is much, ask. Raises `Abort` at a no."""
    text = f"{counted(guess.sessions, 'session')} to look at: {guess.shown()}."
    much = guess.tokens > _MANY_TOKENS if guess.cost is None else guess.cost > learn.confirm_above
    if not options.as_json:
        click.echo(output.wrapped(text), err=not sys.stdout.isatty())
    if not much or options.yes:
        return
    if not sys.stdin.isatty():
        raise Usage(text.removesuffix("."), "go on all the same: --yes; or fewer sessions: -n 5")
    click.confirm("Go on?", abort=True, err=True)


def _run(
    chosen: Chosen,
    look: "Callable[[Candidate], Result]",
    learn: LearnSettings,
    *,
    hidden: bool,
) -> "tuple[list[Result], str]":
    """Look at each in turn; the results, and why it was stopped before the end."""
    results: list[Result] = []
    with _progress(len(chosen.candidates), hidden=hidden) as tell:
        for candidate in chosen.candidates:
            tell(results, _called(candidate.stored))
            try:
                results.append(look(candidate))
            except KeyboardInterrupt:
                return results, "interrupted"
            if len(results) < len(chosen.candidates) and (why := spending.allowed(learn)):
                return results, why
    return results, ""


@contextmanager
def _progress(whole: int, *, hidden: bool) -> "Iterator[Callable[[list[Result], str], None]]":
    """A bar on the terminal: how far, on what, and what it cost so far."""
    if hidden or not sys.stderr.isatty():
        yield lambda results, name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("", total=whole)

        def tell(results: "list[Result]", name: str) -> None:
            spent = spending.total(result.spent for result in results)
            cost = f" · {dollars(spent.money)} so far" if spent.money else ""
            progress.update(task, completed=len(results), description=f"{name}{cost}")

        yield tell


def _report(
    chosen: Chosen, results: "list[Result]", guess: "Estimate", model: str, stopped: str
) -> dict[str, object]:
    return {
        "sessions": len(results),
        "drafts": [],
        "model": model,
        "estimate": guess,
        "looked": results,
        "spent": spending.total(result.spent for result in results),
        "passed": chosen.passed,
        "left": chosen.left + len(chosen.candidates) - len(results),
        "stopped": stopped,
    }


def _write(chosen: Chosen, results: "list[Result]", stopped: str) -> None:
    by_id = {candidate.stored.id: candidate.stored for candidate in chosen.candidates}
    for result in results:
        _write_result(result, by_id[result.session])
    whole = spending.total(result.spent for result in results)
    click.echo(f"\n{counted(len(results), 'session')} looked at. It cost {_cost(whole)}.")
    left = chosen.left + len(chosen.candidates) - len(results)
    if stopped:
        why = (
            "Stopped; what was done is kept."
            if stopped == "interrupted"
            else f"Stopped: {stopped}."
        )
        click.echo(output.wrapped(why))
    if left:
        click.echo(f"{counted(left, 'session')} more: tacit learn")
    _write_passed(chosen.passed)


def _write_result(result: "Result", stored: Stored) -> None:
    mark = click.style(f"{result.outcome:<9}", fg=_COLOURS.get(result.outcome), bold=True)
    cost = f"  {_cost(result.spent)}" if result.spent.requests else ""
    click.echo(f"\n{mark} {_called(stored)}{cost}")
    click.echo(output.wrapped(f"    {one_line(result.reason)}"))
    for change in result.changes:
        short = change[-8:]
        if result.outcome == "proposed":
            click.echo(f"    waits for you: tacit inbox {short} · tacit accept {short}")
        else:
            click.echo(f"    see: tacit diff {short} · undo: tacit undo {short}")
    for would in result.would:
        waits = f" (would wait: {one_line(would.waits)})" if would.waits else ""
        click.echo(f"    {click.style(plain(would.skill), bold=True)}{waits}")
        gating.write_diff(would.diff)


def _write_nothing(chosen: Chosen, options: "Options") -> None:
    if options.as_json:
        empty = {"sessions": 0, "drafts": [], "looked": [], "passed": chosen.passed, "left": 0}
        output.write_json(empty)
        return
    click.echo("Nothing new to learn from. See: tacit sessions")
    _write_passed(chosen.passed)


def _write_passed(passed: Mapping[str, int]) -> None:
    if passed:
        parts = ", ".join(f"{count:,} {word}" for word, count in sorted(passed.items()))
        click.echo(click.style(f"passed over: {parts} (by name they are looked at)", dim=True))


def write_drafts(done: list[Proposed], looked_at: int, dry_run: bool, why: str) -> None:
    """What counting came to."""
    if not looked_at:
        click.echo("Nothing new to learn from. See: tacit sessions")
        return
    click.echo(f"{counted(looked_at, 'session')} looked at, without a model.")
    if not done:
        click.echo("Nothing was mended, put right or repeated that a skill could keep.")
    for proposed in done:
        if dry_run:
            click.echo(f"\n{plain(proposed.draft.text)}")
            continue
        verdict = proposed.verdict
        assert verdict is not None
        name = click.style(proposed.draft.name, bold=True)
        click.echo(f"\n{name}  {one_line(proposed.draft.reason)}")
        if verdict.outcome == "proposed":
            click.echo(f"    a draft; it waits for you: tacit inbox {verdict.change[-8:]}")
        else:
            click.echo(f"    {one_line(verdict.explain())}")
    if why:
        click.echo(click.style(f"\n{output.wrapped(why)}", dim=True))


def _called(stored: Stored) -> str:
    title = fit(one_line(stored.head.title), 40)
    return f"{one_line(stored.head.host)} {one_line(stored.head.session)[:12]}  {title}".rstrip()


def _cost(spent: Spent) -> str:
    requests = counted(spent.requests, "request")
    return f"{spent.shown()} ({requests}, {amount(spent.tokens)} tokens)"
