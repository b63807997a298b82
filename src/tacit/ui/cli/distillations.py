"""`tacit distil`: many sessions become skills whose every line knows its support.

Owns the choice of sessions, the estimate and the question before anything is spent, the progress,
and the report. Where the engine is installed the run is a job of the worker's, which goes on when
this command is gone; else it runs here. Also writes what `tacit why SKILL` says of a skill.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import click

from tacit.base import paths
from tacit.base.display import amount, counted, dollars, one_line, plain
from tacit.base.errors import Busy, NotFound, TacitError, Usage
from tacit.base.settings import load_settings
from tacit.changes.change import Change
from tacit.changes.inbox import Inbox
from tacit.learn.distil import distillation
from tacit.learn.distil.consensus import BY_PERSON
from tacit.learn.distil.distil_plan import (
    DistilOptions,
    DistilProgress,
    Reading,
    Tell,
    estimate,
    likely_seconds,
    open_sessions,
    read_tasks,
)
from tacit.learn.distil.distillation import DISTIL_KIND, DistilResult, Stopped
from tacit.learn.distil.distilled_skill import skill_text_of
from tacit.learn.distil.evidence import LineReason, counts_in_words, skill_reasons, text_reasons
from tacit.learn.distil.support import open_lessons
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.learn.review.review_batch import Estimate
from tacit.skills.library import library_here
from tacit.traces.store import Store
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command
from tacit.ui.cli.reviews import INTERRUPTED, reviewer_model
from tacit.ui.cli.sessions import take_in_with_bar
from tacit.ui.cli.user_shell import complete_host, complete_skill
from tacit.work.intake import sources
from tacit.work.jobs_db import has_engine

_LOOK = 0.3
_SHOWN_KINDS = 5
_MANY_REQUESTS = 200
"""Of a model without a known price, requests above which it is asked first."""


@command(
    "distil",
    "learn",
    "Make one skill of many sessions; each line has its support.",
    "tacit distil                       the sessions of this project",
    'tacit distil "database migrations" the sessions about a task, of all projects',
    "tacit distil --into db-migration   into a skill that is there",
    "tacit distil --from ./trajectories sessions that were never imported",
    "tacit distil --since 30d --max-cost 2",
    "tacit distil --dry-run             what it would read and cost; nothing is spent",
    "tacit distil --no-model            by counting only, which costs nothing",
    "tacit distil --settle 3f9c0a-51b2de=1   of two sides, the first is right",
)
@click.argument("words", default="", metavar="[TASK]")
@click.option("--into", default="", shell_complete=complete_skill, help="The skill to add to.")
@click.option("--sessions", multiple=True, metavar="ID", help="These sessions; again for more.")
@click.option("--since", default="", help="Only sessions since: 30d, a date.")
@click.option("--host", default="", shell_complete=complete_host, help="Only this agent's.")
@click.option("--from", "folder", default="", metavar="FOLDER", help="Sessions in a folder.")
@click.option("--everywhere", is_flag=True, help="The sessions of all projects.")
@click.option("--model", default="", help="Another model for this run, as provider:model.")
@click.option("--no-model", is_flag=True, help="By counting only.")
@click.option(
    "--least",
    type=click.IntRange(1),
    default=2,
    help="Sessions that a line needs.",
    show_default=True,
)
@click.option(
    "--max-cost", type=click.FloatRange(0), default=0.0, help="Dollars at most; 0 is no limit."
)
@click.option(
    "--settle", default="", metavar="ID=1|2|0", help="Answer a contradiction; 0: neither."
)
@click.option("--dry-run", is_flag=True, help="Say what it would read and cost, and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, whatever it may cost.")
def distil_command(
    folder: str,
    everywhere: bool,
    no_model: bool,
    settle: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Make skills of what many sessions show, with the support of every line.

    Sessions are cut into tasks, and each task is read on its own: by a model that is asked once, or
    by counting. What several sessions agree on, or you said yourself, becomes a line; the rest is
    kept for later. Code counts the support and finds contradictions. The result waits in the inbox.

    Before anything is spent it says how much there is to read and what that is likely to cost.
    Ctrl-C stops it, and the same command goes on where it was; a later run reads only what is new.
    """
    if settle:
        return _settle(settle, as_json=as_json)
    if chosen["model"] and no_model:
        raise Usage("--model and --no-model exclude each other", "leave one of them out")
    if chosen["sessions"] and (folder or chosen["host"] or chosen["since"]):
        raise Usage("--sessions names the sessions itself", "leave out --from, --host and --since")
    settings = load_settings(flags={"learn.model": chosen["model"]} if chosen["model"] else {})
    chosen["model"], why = ("", "") if no_model else reviewer_model(settings.settings)
    options = _options(chosen, folder, everywhere=everywhere)
    reading = _read(options, folder or options.host, hidden=as_json)
    guess = estimate(reading, options)
    if dry_run and as_json:
        counts = {"tasks": len(reading.tasks), "new": reading.new, "kinds": len(reading.clusters)}
        seconds = likely_seconds(guess.requests)
        return output.write_json({"estimate": guess, "seconds": seconds, **counts})
    if not as_json:
        _write_estimate(guess, reading, why)
    if dry_run:
        return 0
    _confirm(guess, settings.settings.learn.confirm_above, options.max_cost, yes=yes)
    run = distillation.begin(options)
    work = _run_by_worker if options.model and has_engine() else _run_here
    try:
        with _bar(hidden=as_json) as tell:
            result = work(run, tell)
    except (KeyboardInterrupt, Stopped):
        distillation.stop(run)
        text = "Stopped; what was read is kept, and the same command goes on."
        click.echo(output.wrapped(text), err=as_json)
        return INTERRUPTED
    if options.store:  # what was never to be imported does not stay
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(options.store + ending)
    return output.write_json(result) if as_json else _write_result(result)


def _options(chosen: dict[str, Any], folder: str, *, everywhere: bool) -> DistilOptions:
    """Raises `NotFound` where there is no skill that is to get the lines."""
    here, into = paths.project_root(os.getcwd()), chosen["into"]
    entry = library_here().find(into) if into else None
    if into and entry is None:
        raise NotFound(f"there is no skill '{into}'", "see them: tacit list; or leave out --into")
    named = chosen["words"] or chosen["sessions"] or folder or everywhere
    store = ""
    if folder:  # sessions that are not to be imported have a database for each folder
        name = hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:12]
        store = os.path.join(paths.folders().data, f"distil-{name}.db")
    return DistilOptions(
        **chosen,
        within=here if entry and entry.scope == "project" else "",
        project="" if named else here,
        store=store,
    )


def _read(options: DistilOptions, place: str, *, hidden: bool) -> Reading:
    """Take in what is new, and cut it into tasks. Raises `NotFound` where there is nothing."""
    with open_lessons() as lessons, open_sessions(options) as store:
        take_in_with_bar(store, sources(place), hidden=hidden)
        with _bar(hidden=hidden) as tell:
            reading = read_tasks(store, lessons, options, tell)
    if not reading.tasks:
        what = f"no session of {options.project}" if options.project else "no session that fits"
        raise NotFound(
            f"there is {what}",
            'see them: tacit sessions; others: tacit distil "TASK", --everywhere, --from FOLDER, or'
            " without --host and --since",
        )
    return reading


def _write_estimate(guess: Estimate, reading: Reading, why: str) -> None:
    tasks, sessions = counted(len(reading.tasks), "task"), counted(guess.sessions, "session")
    kinds = counted(len(reading.clusters), "kind")
    click.echo(f"{sessions}, {tasks} of {kinds}; {reading.new} to be read.")
    for cluster in reading.clusters[:_SHOWN_KINDS]:
        if len(cluster.members) > 1:
            output.write_hint(f"  {plain(cluster.shown())}")
    if not guess.requests:
        click.echo("By counting, which costs nothing." if not guess.model else "It costs nothing.")
        if why:
            output.write_hint(output.wrapped(why))
        return
    price = "no price is known for it" if guess.cost is None else f"about {dollars(guess.cost)}"
    seconds = likely_seconds(guess.requests)
    time = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    click.echo(
        f"About {counted(guess.requests, 'request')} to {guess.model}: {price}"
        f" ({amount(guess.tokens)} tokens), about {time}."
    )


def _confirm(guess: Estimate, limit: float, max_cost: float, *, yes: bool) -> None:
    if max_cost and guess.requests and guess.cost is None:
        raise Usage(
            "no price is known for this model, so --max-cost cannot be kept",
            "leave it out and choose fewer sessions (--since, --sessions), or another --model",
        )
    much = guess.requests > _MANY_REQUESTS if guess.cost is None else guess.cost > limit
    fine = yes or not much or 0 < max_cost <= limit
    shown = f"about {counted(guess.requests, 'request')} would be made"
    hint = "go on all the same: --yes; or limit it: --max-cost, --since"
    output.confirm("Go on?", fine, Usage(shown, hint), err=True)


# The run.


def _run_here(run: str, tell: Tell) -> DistilResult:
    with closing(distillation.Threads()) as threads:
        return distillation.go_on(run, threads, tell=tell)


def _run_by_worker(run: str, tell: Tell) -> DistilResult:
    """Have the worker do it, and show how far it is."""
    from tacit.work import jobs
    from tacit.work.presence import wake

    # Each call is a job of its own, so that a run that was stopped goes on.
    key = f"{run} {time.time_ns()}"
    with open_ledger() as ledger:
        ledger.add_jobs([DecidedJob(DISTIL_KIND, key, {"run": run})])
    while (result := distillation.result_of(run)) is None:
        wake()
        tell(distillation.progress(run))
        time.sleep(_LOOK)
        with suppress(NotFound, Busy):  # a queue that cannot be read now says nothing
            entry = jobs.show(key)
            if entry.state in ("failed", "stuck", "cancelled"):
                why = f"the distillation {entry.state}: {entry.reason}"
                raise TacitError(why, f"tacit jobs show {entry.id}")
    return result


def _phase(now: DistilProgress) -> tuple[int, int, str]:
    """How much is done of what, 0 where that is not known, and in words what was done so far."""
    if now.state == "cut":
        return 0, 0, f"cutting sessions into tasks · {now.sessions}"
    if not now.tasks:
        return 0, 0, "the worker begins"
    tasks, read = counted(now.tasks, "task"), f"{counted(now.sessions, 'session')} read"
    cost = f" · {dollars(now.spent)} so far" if now.spent else ""
    if now.state == "read":
        text = f"{now.analysed} of {tasks} analysed · {read}{cost}"
        return now.analysed, now.tasks, text
    merges = (
        f"{now.merged} of {counted(now.merges, 'merge')}" if now.state == "merge" else "writing"
    )
    return now.merged, now.merges, f"{merges} · {tasks} analysed · {read}{cost}"


@contextmanager
def _bar(*, hidden: bool) -> Iterator[Tell]:
    """How far it is, on the terminal."""
    with output.progress_bar(hidden=hidden) as tell:
        yield lambda now: tell(*_phase(now))


# The report.


def _write_result(result: DistilResult) -> int:
    for written in result.skills:
        name, lines = click.style(written.skill, bold=True), counted(written.lines, "line")
        gone = f", {written.removed} taken out" if written.removed else ""
        click.echo(f"\n{name}  {lines}, {written.added} new{gone}")
        if (verdict := written.verdict) and verdict.outcome == "proposed":
            short = verdict.change[-8:]
            click.echo(f"    waits for you: tacit inbox {short} · tacit accept {short}")
        elif verdict and verdict.refused:
            click.echo(f"    {one_line(verdict.explain())}")
        click.echo(f"    what supports each line: tacit why {written.skill}")
    if not result.skills:
        click.echo("Nothing new that sessions agree on.")
    rest = (
        (result.few, "seen too seldom, kept for later"),
        (result.overruled, "overruled by others"),
        (result.rejected, "turned down before"),
        (result.dropped, "dropped: their session does not show them"),
    )
    if told := "; ".join(f"{count:,} {words}" for count, words in rest if count):
        output.write_hint(output.wrapped(f"\nOther lessons: {told}."))
    for found in result.conflicts:
        click.echo(f"\nContradiction {found.name}, for you to settle: {one_line(found.why)}")
        sides = ((found.one, found.one_sessions), (found.other, found.other_sessions))
        for number, (text, sessions) in enumerate(sides, 1):
            click.echo(f"  {number}. {one_line(text)} ({counted(sessions, 'session')})")
        click.echo(f"  tacit distil --settle {found.name}=1   (or =2, or =0 for neither)")
    if result.requests:
        click.echo(f"\n{counted(result.requests, 'request')}, {dollars(result.spent)}.")
    if result.stopped:
        click.echo(output.wrapped(f"Stopped early: {one_line(result.stopped)}."))
    return 0


def _settle(answer: str, *, as_json: bool) -> int:
    """Record a person's answer to a contradiction; the next run writes by it."""
    name, _, side = answer.partition("=")
    first, _, second = name.partition("-")
    if side not in ("0", "1", "2") or not first or not second:
        raise Usage(f"'{answer}' is no answer", "e.g. --settle 3f9c0a-51b2de=1")
    with open_lessons() as lessons:
        for found in lessons.conflicts():
            if found.one.startswith(first) and found.other.startswith(second):
                lessons.settle(found, BY_PERSON, ("-", found.one, found.other)[int(side)])
                if as_json:
                    return output.write_json({"settled": name, "side": int(side)})
                click.echo("Settled; the next tacit distil writes by it.")
                return 0
    raise NotFound(f"there is no contradiction '{name}'", "see them: tacit distil")


# `tacit why SKILL[:LINE]`.


def write_skill_reasons(what: str, store: Store, *, as_json: bool) -> int | None:
    """Say what supports each line of a skill, or of one that a distillation proposes; None where
    `what`, `NAME` or `NAME:LINE`, names none."""
    name, _, number = what.rpartition(":")
    name, line = (name, int(number)) if name and number.isdigit() else (what, 0)
    gate, library = user_gate.open_gate()
    with open_lessons() as lessons:
        if library.find(name) is not None:
            target = user_gate.find_live_target(gate, library, name)
            root = target.opened.place.root
            found = skill_reasons(gate, target.skill, root, lessons, store.whole, line)
        elif text := _proposed(name):
            found = text_reasons(text, name, lessons, store.whole, line)
        else:
            return None
    if as_json:
        return output.write_json({"skill": name, "lines": found})
    if not found and line:
        hint = f"see which lines have evidence: tacit why {name}"
        raise NotFound(f"no session is known to support line {line} of '{name}'", hint)
    if not found:
        click.echo(f"No session is known to support '{name}': a person wrote or installed it.")
    for reason in found:
        _write_reason(reason, store, name, shortened=not line)
    return 0


def _proposed(name: str) -> str:
    """The SKILL.md that a distillation proposes for a name; empty where none waits."""
    for proposal in Inbox().waiting():
        change = proposal.change
        if change.actor == "distiller" and os.path.basename(change.skill) == name:
            return skill_text_of(change)
    return ""


def write_counts(change: Change) -> None:
    """What supports each line that a distillation proposes, in counts; of a draft by counting,
    whose lines say so themselves, and of a fact there is nothing more to say."""
    name = os.path.basename(change.skill)
    with open_lessons() as lessons:
        found = text_reasons(skill_text_of(change), name, lessons, lambda session: None)
    if not found:
        return
    click.echo("\nWhat supports each line:")
    for one in found:
        counts = click.style(counts_in_words(one.support), dim=True)
        click.echo(f"{one.number:>4}  {one_line(one.text)}\n      {counts}")
    click.echo(f"\nThe sessions, steps and words behind each line: tacit why {name}")


_FEW = 3


def _write_reason(reason: LineReason, store: Store, name: str, *, shortened: bool) -> None:
    number = click.style(f"{reason.number:>4}", dim=True)
    click.echo(f"\n{number}  {click.style(one_line(reason.text), bold=True)}")
    by = f"by the {reason.by}, {reason.change[-8:]}: " if reason.change else ""
    click.echo(output.wrapped(f"      {by}{counts_in_words(reason.support)}"))
    shown = reason.places[:_FEW] if shortened else reason.places
    for place in shown:
        session = store.short_id(place.session.partition(":")[2]) or place.session
        end = f" ({place.outcome})" if place.outcome not in ("", "unclear") else ""
        side = {"against": " failed", "followed": " followed"}.get(place.side, "")
        words = f": {one_line(place.words)}" if place.words else ""
        step = f" step {place.step}" if place.step else ""
        step += ", where it first went wrong" if place.first else ""
        click.echo(output.wrapped(f"      - {session}{step}{end}{side}{words}"))
    if len(reason.places) > len(shown):
        more = len(reason.places) - len(shown)
        output.write_hint(f"      and {more} more: tacit why {name}:{reason.number}")
    for other in reason.against:
        how = f"settled {other.settled}" if other.settled else "not settled"
        said = f"disagrees ({counted(other.sessions, 'session')}, {how}): {one_line(other.text)}"
        click.echo(output.wrapped(f"      {said}"))
