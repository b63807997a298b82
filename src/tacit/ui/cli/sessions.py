"""`tacit import`, `sessions`, `session` and `forget`: what agents did, as it is stored.

Reading transcripts is `traces/`'s, and what was learned from a session is told by `job_reports`.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import to_builtins

from tacit.base import settings
from tacit.base.clock import ago, parse_since
from tacit.base.display import columns, counted, fit, one_line, plain, shorten_start
from tacit.base.errors import NotFound, Refused, Usage
from tacit.base.paths import with_tilde
from tacit.learn.ledger import Decision, Ledger
from tacit.traces import host_registry, observations, tool_calls
from tacit.traces.deafness import find_deafness
from tacit.traces.outcomes import Outcome, call_outcome
from tacit.traces.session_search import Hit, Sought
from tacit.traces.store import Store, Stored
from tacit.traces.trace import (
    REASONS,
    Activation,
    Compaction,
    Step,
    Subagent,
    Text,
    Told,
    ToolCall,
    Trace,
    text_of_step,
)
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.ui.cli.user_shell import complete_host, complete_session

if TYPE_CHECKING:
    from tacit.traces.host import Source
    from tacit.work.intake import Taken


_SESSION_DROPS = ("skills", "cost", "turns", "project", "learned", "failed", "when")


@command(
    "sessions",
    "sessions",
    "List the sessions that are in the store.",
    "tacit sessions",
    "tacit sessions --host codex --since 7d",
    "tacit sessions --project . --json",
    'tacit sessions --search "connection refused"      in all that was said, done and printed',
    'tacit sessions --failed "npm test" --since 30d    the steps at which it failed',
    "tacit sessions --file src/app.py --skill release",
    note="Take in what is new first: tacit import. Read one: tacit session ID.",
)
@click.option(
    "--host", default="", shell_complete=complete_host, help="Only this agent's, e.g. claude-code."
)
@click.option("--project", default="", help="Only those in this folder and below it.")
@click.option("--since", help="Only those since: 7d, 12h, a date.")
@click.option("--search", "words", default="", help="Steps with all these words, best first.")
@click.option("--failed", default="", help="Steps at which such a command failed, latest first.")
@click.option("--file", default="", help="Steps that name this file, by its path or the end of it.")
@click.option("--skill", default="", help="Only those in which this skill was used.")
@click.option("-n", "--limit", type=click.IntRange(1), default=30, help="How many.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many at the start.")
def sessions_command(
    limit: int, skip: int, as_json: bool, project: str, since: str | None, **given: str
) -> int:
    """List the sessions that are in the store, the latest first; or find steps in them.

    `learned` says what came of each, or why it was not looked at; more: tacit why ID. With
    --search, --failed or --file the steps are listed that fit all that is given; see one whole:
    tacit session ID --step 3.2.
    """
    store = click.get_current_context().with_resource(Store.open())
    folder = os.path.abspath(os.path.expanduser(project)) if project else ""
    moment = parse_since(since) if since else None
    sought = Sought(project=folder, since=moment, **given)
    if sought.words or sought.failed or sought.file:
        return _write_found(store, sought, limit, as_json)
    host, skill = sought.host, sought.skill
    found = store.sessions(
        host=host, project=folder, since=moment, skill=skill, limit=limit, skip=skip
    )
    ledger = Ledger(store.connection)
    deaf = [one for one in find_deafness(store.connection) if host in ("", one.host)]
    if as_json:
        listed = session_rows(found, ledger)
        return output.write_json({"sessions": listed, "not_understood": deaf})
    for one in deaf:
        output.write_hint(f"! {plain(one.explain())}; see: tacit doctor")
    if not found:
        some = host or project or since or skill
        click.echo(
            "No session fits. All of them: tacit sessions"
            if some
            else "No sessions yet. Take in those of your agents: tacit import"
        )
        return 0
    outcomes, decisions = ledger.outcomes(), ledger.latest_decisions()
    now = datetime.now(UTC)
    head = (
        "when", "id", "agent", "project", "turns", "calls", "failed", "cost", "learned", "skills"
    )  # fmt: skip
    rows = [
        (
            ago(s.head.ended or s.head.started, now),
            one_line(store.short_id(s.head.session)),
            one_line(s.head.host),
            shorten_start(one_line(with_tilde(s.head.project)), 28),
            str(s.prompts),
            str(s.calls),
            str(s.failures or ""),
            _session_cost(s.head.usage.cost),
            _learned_word(outcomes.get(s.id, ""), decisions.get(s.id)),
            one_line(", ".join(s.skills)),
        )
        for s in found
    ]
    click.echo(output.table(head, rows, _SESSION_DROPS))
    return 0


def _write_found(store: Store, sought: Sought, limit: int, as_json: bool) -> int:
    hits = store.search(sought, limit=limit)
    if as_json:
        output.write_json({"steps": [{"place": hit.place, **to_builtins(hit)} for hit in hits]})
    elif not hits:
        click.echo("No step fits. Take in more: tacit import", err=True)
    else:
        write_hits(hits)
    return 0 if hits else 1


def write_hits(hits: Iterable[Hit]) -> None:
    """Steps that were found, with the words marked."""
    for hit in hits:
        about = click.style(f"{plain(with_tilde(hit.project))}, {ago(hit.at)}", dim=True)
        click.echo(f"{click.style(plain(hit.id), bold=True)} step {hit.place}  {about}")
        text, at = "", 0
        for start, end in hit.snippet.marks:
            text += plain(hit.snippet.text[at:start])
            text += click.style(plain(hit.snippet.text[start:end]), fg="yellow")
            at = end
        click.echo(f"    {' '.join((text + plain(hit.snippet.text[at:])).split())}")


_HEAD_KEYS = ("host", "session", "project", "model", "title", "started", "ended")
_COUNT_KEYS = ("turns", "prompts", "calls", "failures", "skills")


def session_rows(found: Iterable[Stored], ledger: Ledger) -> list[dict[str, Any]]:
    """Sessions for `--json`.

    `learned` is empty where a session was not reviewed, `decided` null where nobody had to decide
    whether it is to be.
    """
    outcomes, decisions = ledger.outcomes(), ledger.latest_decisions()
    return [
        {
            "id": s.id,
            **{key: getattr(s.head, key) for key in _HEAD_KEYS},
            **{key: getattr(s, key) for key in _COUNT_KEYS},
            "input_tokens": s.head.usage.input,
            "output_tokens": s.head.usage.output,
            "cost": s.head.usage.cost,
            "redacted": s.redacted,
            "outcome": s.outcome,
            "learned": outcomes.get(s.id, ""),
            "decided": decisions.get(s.id),
        }
        for s in found
    ]


def _learned_word(outcome: str, decided: Decision | None) -> str:
    """What was learned from a session; else why it was not reviewed, or that it will be."""
    if outcome or decided is None:
        return outcome
    return decided.word if decided.due else f"no: {decided.word}"


def _session_cost(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.2f}"


@command(
    "session",
    "sessions",
    "Show one session as a timeline.",
    "tacit session b4a27079             the first characters of its id will do",
    "tacit session claude-code:b4a27079-b3f0-4aac-a79c-04d4f81b280f --full",
    "tacit session b4a27079 --step 3.2  the second step of turn 3, whole; 3.0 is its prompt",
    "tacit session b4a27079 --digest    what a reviewer is shown of it",
    "tacit session b4a27079 --json",
)
@click.argument("name", shell_complete=complete_session)
@click.option("--full", is_flag=True, help="Whole texts and results.")
@click.option("--step", default="", help="One step whole: 3.2, or all of turn 3.")
@click.option("--digest", "as_digest", is_flag=True, help="In short, as a reviewer is shown it.")
def session_command(name: str, full: bool, step: str, as_digest: bool, as_json: bool) -> int:
    """Show one session as a timeline, with failures and corrections marked."""
    store = click.get_current_context().with_resource(Store.open())
    stored = store.find(name)
    if step:
        return _write_step(store, stored, step, as_json)
    trace = store.whole(stored.id)
    if as_digest:
        return _write_digest(store, stored, trace, as_json)
    if as_json:
        return output.write_json(
            {
                "session": session_rows([stored], Ledger(store.connection))[0],
                "turns": trace.turns,
                "tasks": store.task_outcomes(stored.id),
                "corrections": observations.corrections(trace),
                "mended": observations.recoveries(trace),
                "commands": observations.commands(trace),
                "files": observations.files(trace),
                "skipped": trace.skipped,
            }
        )
    _write_head(stored)
    _write_timeline(trace, full)
    _write_foot(trace)
    return 0


def _write_digest(store: Store, stored: Stored, trace: Trace, as_json: bool) -> int:
    from tacit.learn.digest import digest
    from tacit.learn.review.review_job import related_findings

    made = digest(trace, findings=related_findings(store, stored))
    if as_json:
        return output.write_json(made)
    click.echo(plain(made.text))
    return 0


def _write_step(store: Store, stored: Stored, named: str, as_json: bool) -> int:
    """One step of a session, or one turn, with nothing left out."""
    number, _, at = named.partition(".")
    turn = next((t for t in store.turns(stored.id) if str(t.number) == number), None)
    known = turn is not None and (not at or (at.isdigit() and int(at) <= len(turn.steps)))
    if turn is None or not known:
        last = f"{stored.turns - 1}" if turn is None else f"{number}.{len(turn.steps)}"
        raise NotFound(f"there is no step '{named}' in {stored.id}", f"the last one is {last}")
    chosen = [int(at)] if at else range(len(turn.steps) + 1)
    steps = [(n, turn.prompt if n == 0 else turn.steps[n - 1]) for n in chosen]
    if as_json:
        rows = [{"place": f"{number}.{n}", "step": step} for n, step in steps]
        return output.write_json({"session": stored.id, "steps": rows})
    for n, step in steps:
        if step:
            output.write_hint(f"{number}.{n}  {_step_kind(step)}")
            click.echo(plain(_whole_step(step)))
    return 0


def _step_kind(step: str | Step) -> str:
    match step:
        case str():
            return "prompt"
        case ToolCall():
            return " ".join(filter(None, (plain(step.name), call_outcome(step).state)))
        case Told(by=by):
            return by
    return {Text: "said", Activation: "skill", Compaction: "summary", Subagent: "helper"}[
        type(step)
    ]


def _whole_step(step: str | Step) -> str:
    match step:
        case str():
            return step
        case Activation(name=name):
            return name
        case ToolCall():
            given = tool_calls.command_of(step) or "\n".join(
                f"{key}: {value}" for key, value in step.arguments.items()
            )
            parts = (given, step.result or step.error, step.reply and f"> {step.reply}")
            return "\n\n".join(filter(None, parts))
    return text_of_step(step)


def _write_head(stored: Stored) -> None:
    head = stored.head
    click.echo(click.style(plain(head.title) or stored.id, bold=True))
    rows = {
        "id": stored.id,
        "agent": f"{head.host} {head.version}".strip(),
        "model": head.model,
        "project": with_tilde(head.project) + (f" ({head.branch})" if head.branch else ""),
        "when": f"{head.started.astimezone():%Y-%m-%d %H:%M}" if head.started else "",
        "calls": f"{stored.calls}, {stored.failures} failed",
        "ended": " ".join(filter(None, (stored.outcome.state, _evidence(stored.outcome)))),
        "tokens": f"{head.usage.input:,} in, {head.usage.output:,} out",
        "skills": ", ".join(stored.skills),
    }
    output.write_rows(rows.items(), 8)


def _evidence(outcome: Outcome) -> str:
    return f"({one_line(outcome.evidence)})" if outcome.evidence else ""


def _write_timeline(trace: Trace, full: bool) -> None:
    corrected = {c.turn for c in observations.corrections(trace) if c.by == "prompt"}
    for turn in trace.turns:
        click.echo()
        if turn.prompt:
            mark = (
                click.style(" correction ", bg="yellow", fg="black") + " "
                if turn.number in corrected
                else ""
            )
            number = "" if turn.helper else f"{turn.number} "
            click.echo(
                click.style(number, dim=True)
                + f"{click.style('>', fg='cyan', bold=True)} {mark}{_cut_text(turn.prompt, full)}"
            )
        for step in turn.steps:
            match step:
                case Text(text=text):
                    click.echo(f"  {_cut_text(text, full)}")
                case ToolCall():
                    _write_call(step, full)
                case Activation(name=name):
                    click.echo(click.style(f"  ◆ skill {plain(name)}", fg="magenta"))
                case Compaction():
                    output.write_hint("  ~ the history was summarised")
                case Told(by=by, text=text):
                    output.write_hint(f"  ← {by}: {_cut_text(text, full)}")
                case Subagent(name=name, task=task):
                    output.write_hint(f"  → {plain(name)}: {_cut_text(task, full)}")


def _write_call(call: ToolCall, full: bool) -> None:
    about = one_line(
        tool_calls.command_of(call)
        or ", ".join(observations.paths_of(call))
        or _shown_arguments(call)
    )
    seconds = f" {call.duration:.1f} s" if call.duration else ""
    outcome = call_outcome(call)
    mark = click.style("✗", fg="red") if outcome.failed else click.style("✓", fg="green")
    if outcome.state not in ("worked", "failed", "timed out"):
        mark = click.style("…", dim=True)
    width = columns() - len(call.name) - len(seconds) - 6
    click.echo(f"  {mark} {click.style(plain(call.name), bold=True)} {fit(about, width)}{seconds}")
    if call.reply:
        click.echo(f"      {click.style('>', fg='cyan', bold=True)} {_cut_text(call.reply, full)}")
    elif outcome.failed or call.failed:
        why = call.error or outcome.evidence or call.result
        click.echo(click.style(f"      {_cut_text(why, full)}", fg="red"))
    elif full and call.result:
        output.write_hint(f"      {plain(call.result)}")


def _shown_arguments(call: ToolCall) -> str:
    return ", ".join(f"{key}={value}" for key, value in call.arguments.items())


def _write_foot(trace: Trace) -> None:
    for found in observations.recoveries(trace):
        click.echo(
            f"\n{click.style('mended', fg='green')}  {one_line(found.before)}\n"
            f"    →   {one_line(found.after)}"
        )
    if trace.skipped:
        parts = [
            f"{count:,} {REASONS.get(reason, reason)}" for reason, count in trace.skipped.items()
        ]
        output.write_hint(f"\npassed over: {'; '.join(parts)}")


def _cut_text(text: str, full: bool) -> str:
    return plain(text) if full else fit(one_line(text), columns() - 4)


def take_in_with_bar(store: Store, chosen: "list[Source]", *, hidden: bool) -> "list[Taken]":
    """Take sessions in, with a bar on a terminal."""
    from tacit.work.intake import take_in

    hidden = hidden or not sys.stderr.isatty()
    with click.progressbar(
        length=len(chosen), label="reading sessions", file=sys.stderr, hidden=hidden
    ) as bar:
        return take_in(store, chosen, lambda source: bar.update(1))


@command(
    "import",
    "sessions",
    "Take sessions in: of all agents, of one, from a file.",
    "tacit import                       every agent that is found here",
    "tacit import codex --since 30d",
    "tacit import ./trajectories.jsonl  a file or folder of a known form",
    "zcat runs.gz | tacit import -      what another program writes",
    note="Forms, known by what stands in the file: the transcripts of Claude Code, Codex, Gemini "
    "CLI, Qwen Code, Copilot CLI, opencode, pi and Hermes; ATIF (Harbor); messages of OpenAI and "
    "Anthropic; ShareGPT; tau-bench; SWE-agent and mini-swe-agent; OpenHands; OpenTelemetry (OTLP "
    "in JSON) and OpenInference (Phoenix); exports of Langfuse and LangSmith; Cursor by its docs.",
)
@click.argument("what", required=False, default="")
@click.option("--since", help="Only those changed since: 7d, 12h, a date.")
def import_command(what: str, since: str | None, as_json: bool) -> int:
    """Take sessions in: of all agents, of one, or from a file.

    Secrets are taken out before anything is stored. Reading again costs little: only what is new is
    read. The agents' own files are never changed.
    """
    from tacit.work import intake

    context, unknown = click.get_current_context(), list[str]()
    place, named = what, "standard input" if what == "-" else what
    if intake.is_pipe(what):
        opened = nullcontext(sys.stdin.buffer) if what == "-" else open(what, "rb")  # noqa: SIM115
        place = context.with_resource(intake.piped_file(context.with_resource(opened)))
    try:
        chosen = intake.sources(place, parse_since(since) if since else None, unknown.append)
    except NotFound as error:
        hint = error.hint if place == what else error.hint.replace(place, "FILE")
        raise NotFound(error.message.replace(place, named), hint) from None
    chosen_settings = settings.load_settings().settings.traces
    store = context.with_resource(intake.open_store(chosen_settings))
    taken = take_in_with_bar(store, chosen, hidden=as_json)
    dropped = intake.keep_to_limits(store, chosen_settings).sessions
    if not intake.redact_again(store, chosen_settings, most=100):
        click.echo("looking for secrets again in what was stored before", err=True)
        intake.redact_again(store, chosen_settings)
    deaf = find_deafness(store.connection)
    if as_json:
        return output.write_json(
            {
                "hosts": taken,
                "not_understood": deaf,
                "not_recognised": unknown,
                "dropped": dropped,
            }
        )
    for one in deaf:
        output.write_hint(f"! {plain(one.explain())}; see: tacit doctor")
    if dropped:
        said = f"dropped {counted(dropped, 'session')} older, or more, than is kept"
        output.write_hint(f"{said} (traces.keep_days, traces.keep_megabytes)")
    if not taken:
        where = f" of {what}" if what else ""
        click.echo(f"No sessions{where} were found.")
        for line in host_registry.problems():
            click.echo(f"tacit: {line}", err=True)
        return 0
    _write_taken(taken)
    if unknown:
        named = ", ".join(map(os.path.basename, unknown[:3])) + (", …" if unknown[3:] else "")
        output.write_hint(f"left alone {counted(len(unknown), 'file')} of no known form: {named}")
    return 0


def _write_taken(taken: "list[Taken]") -> None:
    head = ("agent", "found", "new", "grown", "unchanged", "empty", "secrets taken out")
    rows = [
        (
            t.title,
            f"{t.found:,}",
            *(f"{t.counts.get(s, 0):,}" for s in ("new", "grown", "unchanged", "empty")),
            ", ".join(f"{count} {rule}" for rule, count in t.redacted.items()),
        )
        for t in taken
    ]
    click.echo(output.table(head, rows, ("empty", "grown", "unchanged", "found")))
    for t in taken:
        if left := t.counts.get("forgotten"):
            click.echo(f"{t.title}: {counted(left, 'session')} left out, as you forgot them")
    for t in taken:
        if lost := [f"{n:,} {REASONS.get(reason, reason)}" for reason, n in t.skipped.items()]:
            output.write_hint(f"{t.title}: passed over {'; '.join(lost)}")
    if any(t.counts.get("new") or t.counts.get("grown") for t in taken):
        click.echo("\nSee them: tacit sessions")


@command(
    "forget",
    "sessions",
    "Forget sessions for good.",
    "tacit forget b4a27079              one session",
    "tacit forget ~/work/secret-project all sessions in a folder and below it",
    "tacit forget --before 90d --yes",
)
@click.argument("what", required=False)
@click.option("--before", help="All that ended before: 90d, a date.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(what: str | None, before: str | None, yes: bool, as_json: bool) -> int:
    """Forget a session, a project's sessions, or old ones, for good.

    Their text is gone from the database's files afterwards, and they are not taken in again. The
    agents' own transcripts are not touched.
    """
    from tacit.traces.store import forget_sessions

    if bool(what) == bool(before):
        raise Usage("say what to forget", "a session, a folder, or --before 90d")
    moment = parse_since(before) if before else None
    store = click.get_current_context().with_resource(Store.open())
    folder = _folder_meant(what) if what else ""
    about = folder or what or f"sessions before {before}"
    needs = Refused(f"forgetting {about} needs a yes", "add --yes")
    output.confirm(f"Forget {about} for good?", yes, needs)
    known = _session_ids(store)
    done = forget_sessions(
        store, session=what if what and not folder else "", project=folder, before=moment
    )
    if folder and not done.sessions:
        raise NotFound(f"there is no session in {folder}", "see them: tacit sessions")
    gone = known - _session_ids(store)
    quoted = _proposals_quoting(gone)
    if gone:
        from tacit.learn.distil.support import Lessons
        from tacit.learn.ledger import Ledger

        Lessons(store.connection).forget_sessions(gone)
        Ledger(store.connection).forget_sessions(gone)
    if as_json:
        return output.write_json({**msgspec.structs.asdict(done), "quoted_in": quoted})
    freed = f", {done.freed:,} bytes freed" if done.freed > 0 else ""
    click.echo(f"Forgot {counted(done.sessions, 'session')}{freed}")
    if done.in_log:
        click.echo("Another process is reading: the last bytes go when it ends.")
    if quoted:
        click.echo(f"{counted(len(quoted), 'draft')} in the inbox may quote what was said:")
    for proposal in quoted:
        click.echo(f"  tacit reject {proposal[-8:]} --forget")
    return 0


def _folder_meant(what: str) -> str:
    """The folder that is meant, or nothing where it is a session's name."""
    if os.sep in what or what in (".", "..", "~") or os.path.isdir(what):
        return os.path.abspath(os.path.expanduser(what))
    return ""


def _session_ids(store: Store) -> set[str]:
    return {
        str(row[0])
        for row in store.connection.execute("SELECT host || ':' || session FROM sessions")
    }


def _proposals_quoting(gone: set[str]) -> list[str]:
    """The proposals that stand on sessions that are gone."""
    from tacit.changes.inbox import Inbox

    return [p.id for p in Inbox().all(100_000) if gone.intersection(p.change.evidence)]
