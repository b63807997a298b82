"""`tacit learn`: sessions reviewed now, with a model or by counting.

Owns the choice of sessions, the estimate and the question before, the progress, and the report
of results and cost. The review itself is `learn/`'s.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tacit.agent import budget
from tacit.agent.budget import Spent
from tacit.base.clock import parse_since
from tacit.base.display import amount, counted, dollars, fit, one_line, plain
from tacit.base.errors import Refused, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.base.settings import load_settings
from tacit.learn import announcements
from tacit.learn.drafts import COUNTING, ProposedDraft, draft_sessions
from tacit.learn.ledger import Ledger
from tacit.learn.review.review_triggers import (
    ChosenSessions,
    ReviewCandidate,
    choose_sessions,
    is_background_work,
    named_sessions,
)
from tacit.traces.store import Store, Stored
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.ui.cli.sessions import take_in_with_bar
from tacit.ui.cli.user_shell import complete_host, complete_session
from tacit.work import host_links
from tacit.work.intake import sources

if TYPE_CHECKING:
    from tacit.learn.review.review_batch import Estimate, ReviewResult


INTERRUPTED = 130
HANDED_OVER = 11
"""Reviews wait for an agent."""
_MANY_TOKENS = 1_000_000
"""Of a model without a known price, tokens above which it is asked first."""
_OUTCOME_COLOURS = {"created": "green", "edited": "green", "applied": "green", "proposed": "cyan"}
_OUTCOME_COLOURS |= {"failed": "red", "refused": "yellow", "would change": "cyan"}


def hand_over_reviews(
    store: Store, found: list[Stored], settings: Settings, options: "LearnOptions"
) -> int:
    """Have reviews wait for an agent; the exit code, which says whether any do."""
    from tacit.learn.review.handoff import hand_over

    chosen = _choose(store, found, settings, options)
    waiting = hand_over(store, chosen.candidates)
    if options.as_json:
        sessions = [candidate.stored.id for candidate in chosen.candidates]
        output.write_json(
            {"sessions": sessions, "waiting": waiting, "passed": chosen.passed, "left": chosen.left}
        )
    elif not waiting:
        _write_nothing(chosen, [], options)
    else:
        wait = "waits" if waiting == 1 else "wait"
        click.echo(
            f"{counted(waiting, 'review')} {wait} for an agent. It takes the next one with:"
            " tacit handoff next"
        )
        _write_skipped(chosen.passed)
    return HANDED_OVER if waiting else 0


def _choose(
    store: Store, found: list[Stored], settings: Settings, options: "LearnOptions"
) -> ChosenSessions:
    if options.names_sessions:
        return named_sessions(store, found[: options.most], settings)
    return choose_sessions(store, found, settings, again=options.again, most=options.most)


def review_with_model(
    store: Store, found: list[Stored], settings: Settings, model: str, options: "LearnOptions"
) -> int:
    """Review sessions with a model; the exit code."""
    from tacit.learn.review import review_batch

    chosen = _choose(store, found, settings, options)
    drafts = _count_the_rest(store, found, chosen, options)
    if not chosen.candidates:
        _write_nothing(chosen, drafts, options)
        return 0
    if refusal := budget.refusal_today(settings.learn):
        limits = settings.learn
        more = budget.allow_more(refusal, limits.daily_money, limits.daily_tokens)
        hint = f"it goes on tomorrow; or allow more: {more}"
        raise Refused(refusal, hint)
    guess = review_batch.estimate_reviews(store, chosen.candidates, settings, model)
    _confirm_cost(guess, settings.learn, options)

    def review(candidate: ReviewCandidate) -> "ReviewResult":
        if options.dry_run:
            return review_batch.rehearse_now(candidate, store, settings)
        return review_batch.review_now(candidate, model=options.model)

    results, stopped = _review_each(chosen, review, settings.learn, hidden=options.as_json)
    if options.as_json:
        report = _json_report(chosen, results, guess, model, stopped)
        output.write_json({**report, "drafts": drafts})
    else:
        _write_results(chosen, results, stopped)
        _write_each_draft(drafts, options.dry_run)
    return INTERRUPTED if stopped == "interrupted" else 0


def _count_the_rest(
    store: Store, found: list[Stored], chosen: ChosenSessions, options: "LearnOptions"
) -> list[ProposedDraft]:
    """Count over the sessions that the model does not look at, as without one: it costs nothing."""
    if options.names_sessions:
        return []
    ledger = Ledger(store.connection)
    looked_at = {candidate.stored.id for candidate in chosen.candidates}
    rest = [s for s in found if s.id not in looked_at and not is_background_work(s.head)]
    new = [s for s in rest if options.again or ledger.is_new(s, COUNTING)]
    return draft_sessions(store, ledger, new, dry_run=options.dry_run)


def _confirm_cost(guess: "Estimate", learn: LearnSettings, options: "LearnOptions") -> None:
    """Say what it is likely to cost, and, where that is much, ask. Raises `Abort` at a no."""
    text = f"{counted(guess.sessions, 'session')} to look at: {guess.shown()}."
    if options.dry_run:
        text = f"A dry run asks the model too, and is paid for. {text} For nothing: --no-model"
    much = guess.tokens > _MANY_TOKENS if guess.cost is None else guess.cost > learn.confirm_above
    if options.dry_run or not options.as_json:
        click.echo(output.wrapped(text), err=options.as_json or not sys.stdout.isatty())
    hint = "go on all the same: --yes; or fewer sessions: -n 5"
    output.confirm("Go on?", not much or options.yes, Usage(text.removesuffix("."), hint), err=True)


def _review_each(
    chosen: ChosenSessions,
    review: "Callable[[ReviewCandidate], ReviewResult]",
    learn: LearnSettings,
    *,
    hidden: bool,
) -> "tuple[list[ReviewResult], str]":
    """Review each in turn; the results, and why it was stopped before the end."""
    results: list[ReviewResult] = []
    whole = len(chosen.candidates)
    with output.progress_bar(hidden=hidden) as tell:
        for candidate in chosen.candidates:
            spent = budget.sum_spent(result.spent for result in results).money
            cost = f" · {dollars(spent)} so far" if spent else ""
            done = len(results)
            tell(done, whole, f"{done}/{whole} {_session_label(candidate.stored)}{cost}")
            try:
                results.append(review(candidate))
            except KeyboardInterrupt:
                return results, "interrupted"
            if len(results) < len(chosen.candidates) and (why := budget.refusal_today(learn)):
                return results, why
    return results, ""


def _json_report(
    chosen: ChosenSessions,
    results: "list[ReviewResult]",
    guess: "Estimate",
    model: str,
    stopped: str,
) -> dict[str, object]:
    return {
        "sessions": len(results),
        "model": model,
        "estimate": guess,
        "looked": results,
        "spent": budget.sum_spent(result.spent for result in results),
        "passed": chosen.passed,
        "left": chosen.left + len(chosen.candidates) - len(results),
        "stopped": stopped,
    }


def _write_results(chosen: ChosenSessions, results: "list[ReviewResult]", stopped: str) -> None:
    by_id = {candidate.stored.id: candidate.stored for candidate in chosen.candidates}
    for result in results:
        _write_result(result, by_id[result.session])
    whole = budget.sum_spent(result.spent for result in results)
    click.echo(f"\n{counted(len(results), 'session')} looked at. It cost {_shown_cost(whole)}.")
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
    _write_skipped(chosen.passed)


def _write_result(result: "ReviewResult", stored: Stored) -> None:
    mark = click.style(f"{result.outcome:<9}", fg=_OUTCOME_COLOURS.get(result.outcome), bold=True)
    cost = f"  {_shown_cost(result.spent)}" if result.spent.requests else ""
    click.echo(f"\n{mark} {_session_label(stored)}{cost}")
    click.echo(output.wrapped(f"    {one_line(result.reason)}"))
    for change in result.changes:
        short = change[-8:]
        if result.outcome == "proposed":
            click.echo(f"    waits for you: tacit inbox {short} · tacit accept {short}")
        else:
            click.echo(f"    see: tacit diff {short} · undo: tacit undo {short}")
    for would in result.would:
        waits = f" (would wait: {one_line(would.waits)})" if would.waits else ""
        if would.lines:
            waits = f" ({counted(would.lines, 'line')} would wait)"
        click.echo(f"    {click.style(plain(would.skill), bold=True)}{waits}")
        output.write_diff(would.diff)


def _write_nothing(
    chosen: ChosenSessions, drafts: list[ProposedDraft], options: "LearnOptions"
) -> None:
    if options.as_json:
        empty = {"sessions": 0, "drafts": drafts, "looked": [], "passed": chosen.passed, "left": 0}
        output.write_json(empty)
        return
    if not drafts:
        _write_nothing_new()
    _write_each_draft(drafts, options.dry_run)
    _write_skipped(chosen.passed)


def _write_nothing_new() -> None:
    """Say that there is nothing, and which agents were looked for, and where."""
    from tacit.traces import host_registry

    click.echo("Nothing new to learn from. See: tacit sessions")
    known = [host for host in host_registry.each() if host.home.path]
    with Store.open() as store:
        stored = store.counts()
    here = {host.title: stored.get(host.name, 0) for host in known if host.homes()}
    missing = [f"{h.title} ({with_tilde(h.home.resolve())})" for h in known if h.title not in here]
    if here:
        found = ", ".join(f"{title} ({counted(n, 'session')})" for title, n in here.items())
        output.write_hint(output.wrapped(f"looked at: {found}"))
    if missing:
        output.write_hint(output.wrapped(f"not here: {', '.join(missing)}"))


def _write_skipped(passed: Mapping[str, int]) -> None:
    if passed:
        parts = ", ".join(f"{count:,} {word}" for word, count in sorted(passed.items()))
        output.write_hint(f"passed over: {parts} (by name they are looked at)")


def write_drafts(done: list[ProposedDraft], reviewed: int, dry_run: bool, why: str) -> None:
    """Print what was learned by counting, without a model."""
    if not reviewed:
        _write_nothing_new()
        return
    click.echo(f"{counted(reviewed, 'session')} looked at, without a model.")
    if not done:
        click.echo("Nothing was wished for, failed or repeated that is worth keeping.")
    _write_each_draft(done, dry_run)
    if why:
        output.write_hint(f"\n{output.wrapped(why)}")


def _write_each_draft(done: list[ProposedDraft], dry_run: bool) -> None:
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


def _session_label(stored: Stored) -> str:
    title = fit(one_line(stored.head.title), 40)
    return f"{one_line(stored.head.host)} {one_line(stored.head.session[-8:])}  {title}".rstrip()


def _shown_cost(spent: Spent) -> str:
    requests = counted(spent.requests, "request")
    return f"{spent.shown()} ({requests}, {amount(spent.tokens)} tokens)"


class LearnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    what: str
    host: str
    since: str
    most: int
    again: bool
    model: str
    no_model: bool
    handoff: bool
    dry_run: bool
    yes: bool
    as_json: bool

    @property
    def is_path(self) -> bool:
        return bool(self.what) and (os.sep in self.what or os.path.exists(self.what))

    @property
    def names_sessions(self) -> bool:
        """Whether sessions are named, by id or by file, rather than a folder to look through."""
        return bool(self.what) and (not self.is_path or os.path.isfile(self.what))


@command(
    "learn",
    "learn",
    "Learn from what agents did: drafts go to the inbox.",
    "tacit learn                        new sessions of all agents, the newest 20",
    "tacit learn b4a27079               one session",
    "tacit learn ~/transcripts/         sessions in a file or a folder",
    "tacit learn --host codex --since 30d",
    "tacit learn --dry-run              show what would be done; nothing is changed",
    "tacit learn --no-model             by counting only, which costs nothing",
    "tacit learn --handoff              for the agent that you are talking to; exit code 11",
)
@click.argument("what", default="", metavar="[SESSION|PATH]", shell_complete=complete_session)
@click.option("--host", default="", shell_complete=complete_host, help="Only this agent's.")
@click.option("--since", default="", help="Only sessions since: 30d, a date.")
@click.option("-n", "--most", type=click.IntRange(1), default=20, help="Sessions at most.")
@click.option("--again", is_flag=True, help="Also sessions that were looked at before.")
@click.option("--model", default="", help="Another model for this run, as provider:model.")
@click.option("--no-model", is_flag=True, help="By counting only: drafts for the inbox.")
@click.option("--handoff", is_flag=True, help="Have them wait for an agent: tacit handoff next.")
@click.option(
    "--dry-run", is_flag=True, help="Change nothing; show what would be done. A model is paid for."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, whatever it may cost.")
def learn_command(**options_given: Any) -> int:
    """Learn from what agents did.

    With a model, a reviewer of its own reads each session in short form; what it makes passes the
    gate and, by `learn.approval`, lands or waits for you. Before, it is said what that is likely to
    cost; after, what it cost. Ctrl-C keeps what is done.

    Without a model, by counting: what you wish for, in your words; how work is checked and what
    fails, with rates; steps that recur. That makes drafts, which wait in the inbox. With a model,
    sessions that it does not look at are counted over as well.

    With --handoff no model is asked: the reviews wait for an agent that you are talking to, which
    takes them by `tacit handoff next`, and the exit code is 11 where any wait.
    """
    options = LearnOptions(**options_given)
    _check_options(options)
    flags = {"learn.model": options.model} if options.model else {}
    settings = load_settings(flags=flags).settings
    host_links.listen()
    # Where nobody may be watching, what lands is told later as well.
    watched = sys.stdout.isatty()
    with Store.open() as store, nullcontext() if watched else announcements.listening():
        found = _sessions_to_review(store, options)
        if options.handoff:
            return hand_over_reviews(store, found, settings, options)
        model, why = ("", "") if options.no_model else reviewer_model(settings)
        if model:
            return review_with_model(store, found, settings, model, options)
        return _by_counting(store, found, options, why)


def _check_options(options: LearnOptions) -> None:
    values = {
        "--model": bool(options.model),
        "--no-model": options.no_model,
        "--handoff": options.handoff,
    }
    given = [name for name, is_given in values.items() if is_given]
    if options.handoff and options.dry_run:
        given.append("--dry-run")
    if len(given) > 1:
        raise Usage(f"{' and '.join(given)} exclude each other", "leave one of them out")


def reviewer_model(settings: Settings) -> tuple[str, str]:
    """The model for reviews, or why there is none."""
    from importlib.util import find_spec

    from tacit.agent.models import for_learning
    from tacit.ui.cli.model_setup import program_hint

    if find_spec("pydantic_ai") is None:
        return "", "no model can be asked: pip install 'tacit[agent]'"
    try:
        return for_learning(settings).name, ""
    except TacitError as error:
        hint = program_hint(settings)
        return "", f"{error.message}; {hint}" if hint else error.explain()


def _sessions_to_review(store: Store, options: LearnOptions) -> list[Stored]:
    """What was asked for, newest first; sessions that are new are taken in before."""
    if options.is_path:
        return _sessions_in_path(store, options)
    if options.what:
        return [store.find(options.what)]
    _take_in_new(store, options.host, options.as_json)
    moment = parse_since(options.since) if options.since else None
    found = store.sessions(host=options.host, since=moment, limit=10_000)
    return [stored for stored in found if not is_background_work(stored.head)]


def _sessions_in_path(store: Store, options: LearnOptions) -> list[Stored]:
    found = _take_in_new(store, options.what, options.as_json)
    moment = parse_since(options.since) if options.since else None
    every = store.sessions(host=options.host, since=moment, limit=100_000)
    return [stored for stored in every if stored.head.source in found]


def _take_in_new(store: Store, what: str, quiet: bool) -> set[str]:
    found = sources(what)
    take_in_with_bar(store, found, hidden=quiet)
    return {source.path for source in found}


def _by_counting(store: Store, found: list[Stored], options: LearnOptions, why: str) -> int:
    ledger = Ledger(store.connection)
    named = bool(options.what)
    chosen = [s for s in found if named or options.again or ledger.is_new(s, COUNTING)]
    done = draft_sessions(store, ledger, chosen, dry_run=options.dry_run)
    if options.as_json:
        return output.write_json({"sessions": len(chosen), "drafts": done, "model": ""})
    write_drafts(done, len(chosen), options.dry_run, why)
    return 0
