"""`tacit distil`: many sessions become skills whose every line knows its support.

Owns the choice of sessions, the estimate and the question before anything is spent, the progress,
and the report. Where the engine is installed the run is a job of the worker's, which goes on when
this command is gone; else it runs here. Also writes what `tacit why SKILL` says of a skill.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click
import msgspec

from tacit.base import paths
from tacit.base.clock import parse_since
from tacit.base.display import amount, counted, dollars, one_line, plain
from tacit.base.errors import Busy, NotFound, TacitError, Usage
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import Change
from tacit.changes.inbox import Inbox
from tacit.learn.distil import distillation
from tacit.learn.distil.consensus import BY_PERSON
from tacit.learn.distil.distil_plan import (
    DistilEstimate,
    DistilOptions,
    DistilProgress,
    Reading,
    estimate,
    open_sessions,
    read_tasks,
)
from tacit.learn.distil.distillation import DISTIL_KIND, DistilResult, Stopped
from tacit.learn.distil.distilled_skill import skill_text_of
from tacit.learn.distil.evidence import (
    LineReason,
    counts_in_words,
    skill_reasons,
    text_reasons,
)
from tacit.learn.distil.support import Lessons, open_lessons
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.skills.library import library_here
from tacit.traces.store import Store
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command
from tacit.ui.cli.reviews import INTERRUPTED, reviewer_model
from tacit.ui.cli.sessions import take_in_with_bar
from tacit.ui.cli.user_shell import complete_host, complete_skill
from tacit.work.intake import sources

_LOOK = 0.3
_SHOWN_KINDS = 5
_MANY_REQUESTS = 200
"""Of a model without a known price, requests above which it is asked first."""


class DistilCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    words: str
    into: str
    sessions: tuple[str, ...]
    since: str
    host: str
    folder: str
    everywhere: bool
    model: str
    no_model: bool
    least: int
    max_cost: float
    settle: str
    dry_run: bool
    yes: bool
    as_json: bool


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
def distil_command(**given: Any) -> int:
    """Make skills of what many sessions show, with the support of every line.

    Sessions are cut into tasks, and each task is read on its own: by a model that is asked once, or
    by counting. What several sessions agree on, or you said yourself, becomes a line; the rest is
    kept for later. Code counts the support and finds contradictions. The result waits in the inbox.

    Before anything is spent it says how much there is to read and what that is likely to cost.
    Ctrl-C stops it, and the same command goes on where it was; a later run reads only what is new.
    """
    asked = DistilCommand(**given)
    if asked.settle:
        return _settle(asked)
    _check(asked)
    settings = load_settings(flags={"learn.model": asked.model} if asked.model else {}).settings
    model, why = ("", "") if asked.no_model else reviewer_model(settings)
    options = _options(asked, model)
    with open_lessons() as lessons, open_sessions(options) as store:
        reading = _read(store, lessons, options, asked)
    guess = estimate(reading, options)
    _show_estimate(guess, reading, options, asked, why)
    if asked.dry_run:
        return 0
    _confirm(guess, settings, asked)
    run = distillation.begin(options)
    result = _run_by_worker(run, asked) if _has_engine(options) else _run_here(run, asked)
    if result is None:
        _say(asked, "Stopped; what was read is kept, and the same command goes on.")
        return INTERRUPTED
    if options.store:  # what was never to be imported does not stay
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(options.store + ending)
    _write_result(result, asked)
    return 0


def _check(asked: DistilCommand) -> None:
    if asked.model and asked.no_model:
        raise Usage("--model and --no-model exclude each other", "leave one of them out")
    if asked.sessions and (asked.folder or asked.host or asked.since):
        raise Usage("--sessions names the sessions itself", "leave out --from, --host and --since")


def _project_of(skill: str) -> str:
    """The project that a skill lies in; empty for one of the user's. Raises `NotFound`."""
    if not skill:
        return ""
    entry = library_here().find(skill)
    if entry is None:
        raise NotFound(f"there is no skill '{skill}'", "see them: tacit list; or leave out --into")
    return paths.project_root(os.getcwd()) if entry.scope == "project" else ""


def _options(asked: DistilCommand, model: str) -> DistilOptions:
    named = asked.words or asked.sessions or asked.folder or asked.everywhere
    since = parse_since(asked.since).isoformat() if asked.since else ""
    project = "" if named else paths.project_root(os.getcwd())
    return DistilOptions(
        words=asked.words,
        into=asked.into,
        within=_project_of(asked.into),
        sessions=asked.sessions,
        project=project,
        host=asked.host,
        since=since,
        store=_own_store(asked.folder) if asked.folder else "",
        model=model,
        least=asked.least,
        max_cost=asked.max_cost,
    )


def _own_store(folder: str) -> str:
    """The database for sessions that are not to be imported: one for each folder."""
    name = hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:12]
    return os.path.join(paths.folders().data, f"distil-{name}.db")


def _read(store: Store, lessons: Lessons, options: DistilOptions, asked: DistilCommand) -> Reading:
    """Take in what is new, and cut it into tasks. Raises `NotFound` where there is nothing."""
    found = sources(asked.folder or asked.host)
    take_in_with_bar(store, found, hidden=asked.as_json)
    with _bar(asked, "cutting into tasks") as tell:
        reading = read_tasks(store, lessons, options, tell)
    if not reading.tasks:
        what = f"no session of {options.project}" if options.project else "no session that fits"
        raise NotFound(
            f"there is {what}",
            'see them: tacit sessions; others: tacit distil "TASK", --everywhere, --from FOLDER, or'
            " without --host and --since",
        )
    return reading


def _show_estimate(
    guess: DistilEstimate, reading: Reading, options: DistilOptions, asked: DistilCommand, why: str
) -> None:
    if asked.as_json:
        if asked.dry_run:
            output.write_json({"estimate": guess, "model": options.model})
        return
    tasks, sessions = counted(guess.tasks, "task"), counted(guess.sessions, "session")
    click.echo(f"{sessions}, {tasks} of {counted(guess.kinds, 'kind')}; {guess.new} to be read.")
    for cluster in reading.clusters[:_SHOWN_KINDS]:
        if len(cluster.members) > 1:
            output.write_hint(f"  {plain(cluster.shown())}")
    if not options.model:
        click.echo("By counting, which costs nothing.")
        if why:
            output.write_hint(output.wrapped(why))
        return
    price = "no price is known for it" if guess.cost is None else f"about {dollars(guess.cost)}"
    tokens = amount(guess.input_tokens + guess.output_tokens)
    click.echo(
        f"About {counted(guess.requests, 'request')} to {options.model}: {price} ({tokens} tokens),"
        f" {_duration(guess.seconds)}."
    )


def _duration(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"


def _confirm(guess: DistilEstimate, settings: Settings, asked: DistilCommand) -> None:
    if asked.max_cost and guess.requests and guess.cost is None:
        raise Usage(
            "no price is known for this model, so --max-cost cannot be kept",
            "leave it out and choose fewer sessions (--since, --sessions), or another --model",
        )
    limit = settings.learn.confirm_above
    much = guess.requests > _MANY_REQUESTS if guess.cost is None else guess.cost > limit
    held = asked.max_cost and asked.max_cost <= limit
    hint = "go on all the same: --yes; or limit it: --max-cost, --since"
    shown = f"about {counted(guess.requests, 'request')} would be made"
    output.confirm("Go on?", not much or asked.yes or bool(held), Usage(shown, hint), err=True)


# The run.


def _has_engine(options: DistilOptions) -> bool:
    from tacit.work import jobs_db

    return bool(options.model) and jobs_db.has_engine()


def _run_here(run: str, asked: DistilCommand) -> DistilResult | None:
    threads = distillation.Threads()
    try:
        with _bar(asked, "reading tasks") as tell:
            return distillation.go_on(run, threads, tell=tell)
    except (KeyboardInterrupt, Stopped):
        distillation.stop(run)
        return None
    finally:
        threads.close()


def _run_by_worker(run: str, asked: DistilCommand) -> DistilResult | None:
    """Have the worker do it, and show how far it is. Ctrl-C has it make way."""
    from tacit.work import jobs
    from tacit.work.presence import wake

    with open_ledger() as ledger:
        # Each call is a job of its own, so that a run that was stopped goes on.
        key = f"{run} {time.time_ns()}"
        ledger.add_jobs([DecidedJob(DISTIL_KIND, key, {"run": run})])
    wake()
    try:
        with _bar(asked, "reading tasks") as tell:
            while (result := distillation.result_of(run)) is None:
                tell(distillation.progress(run))
                time.sleep(_LOOK)
                wake()
                _raise_failed(jobs.show, key)
            return result
    except KeyboardInterrupt:
        distillation.stop(run)
        return None


def _raise_failed(show: Callable[[str], Any], key: str) -> None:
    """Raise what the job says where it failed; a queue that cannot be read now is none."""
    with suppress(NotFound, Busy):
        entry = show(key)
        if entry.state in ("failed", "stuck", "cancelled"):
            raise TacitError(
                f"the distillation {entry.state}: {entry.reason}", f"tacit jobs show {entry.id}"
            )


def _phase(now: DistilProgress) -> tuple[int, int, str]:
    """How much is done of what, 0 where that is not known, and in words what was done so far."""
    read, tasks = f"{counted(now.sessions, 'session')} read", counted(now.tasks, "task")
    if now.state == "cut":
        return 0, 0, f"cutting sessions into tasks · {now.sessions}"
    if not now.tasks:
        return 0, 0, "the worker begins"
    if now.state == "write":
        return 0, 0, f"writing · {tasks} analysed · {read}"
    if now.state == "merge":
        merges = f"{now.merged} of {counted(now.merges, 'merge')}"
        return now.merged, now.merges, f"{merges} · {tasks} analysed · {read}"
    return now.analysed, now.tasks, f"{now.analysed} of {tasks} analysed · {read}"


@contextmanager
def _bar(asked: DistilCommand, label: str) -> Iterator[Callable[[DistilProgress], None]]:
    """How far it is, on the terminal."""
    if asked.as_json or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=None)

        def tell(now: DistilProgress) -> None:
            done, whole, text = _phase(now)
            cost = f" · {dollars(now.spent)} so far" if now.spent else ""
            shown.update(task, description=text + cost, completed=done, total=whole or None)

        yield tell


# The report.


def _say(asked: DistilCommand, text: str) -> None:
    click.echo(output.wrapped(text), err=asked.as_json)


def _write_result(result: DistilResult, asked: DistilCommand) -> None:
    if asked.as_json:
        output.write_json(result)
        return
    for written in result.skills:
        verdict = written.verdict
        assert verdict is not None
        name = click.style(written.skill, bold=True)
        lines = counted(written.lines, "line")
        gone = f", {written.removed} taken out" if written.removed else ""
        click.echo(f"\n{name}  {lines}, {written.added} new{gone}")
        if verdict.outcome == "proposed":
            short = verdict.change[-8:]
            click.echo(f"    waits for you: tacit inbox {short} · tacit accept {short}")
        elif verdict.refused:
            click.echo(f"    {one_line(verdict.explain())}")
        click.echo(f"    what supports each line: tacit why {written.skill}")
    if not result.skills:
        click.echo("Nothing new that sessions agree on.")
    _write_rest(result)


def _write_rest(result: DistilResult) -> None:
    rest = (
        (result.few, "seen too seldom, kept for later"),
        (result.overruled, "overruled by others"),
        (result.rejected, "turned down before"),
        (result.dropped, "dropped: their session does not show them"),
    )
    told = [f"{count:,} {words}" for count, words in rest if count]
    if told:
        output.write_hint(output.wrapped(f"\nOther lessons: {'; '.join(told)}."))
    for conflict in result.conflicts:
        click.echo(f"\nContradiction {conflict.name}, for you to settle: {one_line(conflict.why)}")
        click.echo(f"  1. {one_line(conflict.one)} ({counted(conflict.one_sessions, 'session')})")
        click.echo(
            f"  2. {one_line(conflict.other)} ({counted(conflict.other_sessions, 'session')})"
        )
        click.echo(f"  tacit distil --settle {conflict.name}=1   (or =2, or =0 for neither)")
    if result.requests:
        click.echo(f"\n{counted(result.requests, 'request')}, {dollars(result.spent)}.")
    if result.stopped:
        click.echo(output.wrapped(f"Stopped early: {one_line(result.stopped)}."))


def _settle(asked: DistilCommand) -> int:
    """Record a person's answer to a contradiction; the next run writes by it."""
    name, _, side = asked.settle.partition("=")
    first, _, second = name.partition("-")
    if side not in ("0", "1", "2") or not first or not second:
        raise Usage(f"'{asked.settle}' is no answer", "e.g. --settle 3f9c0a-51b2de=1")
    with open_lessons() as lessons:
        for found in lessons.conflicts():
            if found.one.startswith(first) and found.other.startswith(second):
                winner = {"1": found.one, "2": found.other, "0": "-"}[side]
                lessons.settle(found, BY_PERSON, winner)
                if asked.as_json:
                    return output.write_json({"settled": name, "side": int(side)})
                click.echo("Settled; the next tacit distil writes by it.")
                return 0
    raise NotFound(f"there is no contradiction '{name}'", "see them: tacit distil")


# `tacit why SKILL[:LINE]`.


def skill_and_line(what: str) -> tuple[str, int] | None:
    """The skill and the line that are meant, 0 for all; None where it names no skill."""
    name, _, line = what.rpartition(":")
    if not line.isdigit() or not name:
        name, line = what, "0"
    known = library_here().find(name) is not None or _proposed(name)
    return (name, int(line)) if known else None


def _proposed(name: str) -> str:
    """The SKILL.md that a distillation proposes for a name; empty where none waits."""
    for proposal in Inbox().waiting():
        change = proposal.change
        if change.actor == "distiller" and os.path.basename(change.skill) == name:
            return skill_text_of(change)
    return ""


def write_skill_reasons(name: str, line: int, *, as_json: bool) -> int:
    """Say what supports each line of a skill, or of one that a distillation proposes."""
    with open_lessons() as lessons, Store.open() as store:

        def find_trace(session: str) -> Any:
            try:
                return store.whole(session)
            except TacitError:
                return None

        if library_here().find(name) is None:
            found = text_reasons(_proposed(name), name, lessons, find_trace, line)
        else:
            gate, library = user_gate.open_gate()
            target = user_gate.find_live_target(gate, library, name)
            root = target.opened.place.root
            found = skill_reasons(gate, target.skill, root, lessons, find_trace, line)
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
        click.echo(output.wrapped(f"      - {session}{step}{end}{side}{words}"))
    if len(reason.places) > len(shown):
        more = len(reason.places) - len(shown)
        output.write_hint(f"      and {more} more: tacit why {name}:{reason.number}")
    for other in reason.against:
        how = f"; settled {other.settled}" if other.settled else "; not settled"
        said = f"disagrees ({counted(other.sessions, 'session')}): {one_line(other.text)}{how}"
        click.echo(output.wrapped(f"      {said}"))
