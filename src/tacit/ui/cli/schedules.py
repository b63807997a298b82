"""`tacit schedule`: schedules as a person makes, reads, changes, removes and runs them.

Owns the words for times and states of schedules. What a schedule is, and when it fires, is
`work/`'s.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import click
import msgspec

from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest, Ask
from tacit.base import settings
from tacit.base.display import one_line, plain
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.changes.change import SKILL_FILE, Verdict
from tacit.skills.library import SCHEDULE_FILE
from tacit.ui.chat.event_text import call_preview
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import group
from tacit.ui.cli.tasks import print_events
from tacit.ui.cli.user_shell import complete_run, complete_schedule, complete_skill
from tacit.work import reactions, schedule_requests, schedule_runs, schedule_store
from tacit.work.delivery import check_destinations
from tacit.work.due_times import describe, exact_time, local_zone, next_times, zone
from tacit.work.schedule_requests import ScheduleRequest
from tacit.work.schedule_runner import ByHand
from tacit.work.schedule_runs import ScheduleRun
from tacit.work.schedule_store import Binding, Requester, Schedule, encode_binding
from tacit.work.work_checks import unattended
from tacit.work.written_times import Understood, understand


@group(
    "schedule",
    "work",
    "Run skills and tasks by the clock.",
    'tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"',
    'tacit schedule add "每天 9 點" --skill standup --zone Asia/Taipei',
    "tacit schedule list",
    "tacit schedule run NAME",
    note="Times: +30m, 18:00, tomorrow 9am, 2026-12-24 18:00, every 2 hours, 每 30 分鐘, 0 9 * * "
    "1-5. Schedules fire while a worker runs: tacit daemon install keeps one running.",
)
@click.pass_context
def schedule_command(ctx: click.Context, as_json: bool) -> int:
    """Run skills and tasks by the clock; without a command, list the schedules.

    A schedule fires once for each due time, also after a kill or a restart. What it was due for
    while nothing ran is made up for by its rule (--catch-up), and you are told.
    """
    return 0 if ctx.invoked_subcommand else write_schedules(as_json)


RUN_COLOURS = {"failed": "red", "running": "cyan", "missed": "yellow", "skipped": "yellow"}


def shown_moment(at: datetime | None, place: ZoneInfo) -> str:
    """A moment for a table: the day and the time in the schedule's own zone."""
    return f"{at.astimezone(place):%a %d %b %H:%M}" if at is not None else "-"


def schedule_state(schedule: Schedule, last: ScheduleRun | None, coming: datetime | None) -> str:
    """What a schedule is doing, in a word or two."""
    if last is not None and last.live:
        return "running" if last.state in ("running", "ran") else "waiting"
    if schedule.binding.paused:
        return "paused"
    if coming is not None:
        return "active"
    if last is None or last.state in ("missed", "skipped"):
        return "never ran"  # one moment, and nothing was there to run it
    return "failed" if last.state == "failed" else "over"


def coloured_state(state: str, width: int = 0) -> str:
    return click.style(f"{state:<{width}}", fg=RUN_COLOURS.get(state))


@schedule_command.verb(
    "list", "tacit schedule list", "tacit schedule list --json | jq -r '.schedules[].name'"
)
def list_schedules(as_json: bool) -> int:
    """List the schedules, with their next and last runs."""
    return write_schedules(as_json)


def write_schedules(as_json: bool) -> int:
    """Write the list; the exit code."""
    found, broken = schedule_store.listing()
    last = _last_runs([schedule.name for schedule in found])
    now = datetime.now(UTC)
    coming = {s.name: _next_time(s, now) for s in found}
    if as_json:
        rows = [_schedule_as_json(s, last.get(s.name), coming[s.name]) for s in found]
        return output.write_json({"schedules": rows, "broken": broken, "note": unattended()})
    if found:
        click.echo(
            output.table(
                _SCHEDULE_HEAD,
                [_schedule_cells(s, last, coming) for s in found],
                ("result", "last"),
            )
        )
    elif not broken:
        click.echo('There are no schedules. Make one: tacit schedule add "every weekday 9:00" "…"')
    for one in broken:
        click.echo(
            f"{coloured_state('failed')}  {plain(one.why)}\n        {plain(one.hint)}", err=True
        )
    _write_unattended("\n")
    return 0


def _write_unattended(before: str = "") -> None:
    """Say so where nothing runs that would start a schedule when it is due."""
    if why := unattended():
        click.echo(click.style(f"{before}note: {why}", fg="yellow"))


_SCHEDULE_HEAD = ("name", "state", "next", "last", "result", "when")


def _schedule_cells(
    schedule: Schedule, last: dict[str, ScheduleRun], coming: dict[str, datetime | None]
) -> tuple[str, ...]:
    ran, next_, place = last.get(schedule.name), coming[schedule.name], schedule.binding.place
    return (
        one_line(schedule.name),
        schedule_state(schedule, ran, next_),
        shown_moment(next_, place) if not schedule.binding.paused else "-",
        shown_moment(ran.due, place) if ran is not None else "-",
        _run_result(ran),
        one_line(f"{schedule.binding.when} {schedule.binding.zone}"),
    )


def _run_result(row: ScheduleRun | None) -> str:
    if row is None:
        return "-"
    return "silent" if row.state == "done" and row.silent else row.state


@schedule_command.verb("show", epilog="\b\nExamples:\n  tacit schedule show weather\n")
@click.argument("name", shell_complete=complete_schedule)
def show(name: str, as_json: bool) -> int:
    """Show a schedule: when, with what, what it does, and its next times."""
    schedule = schedule_store.find(name)
    last = _last_runs([schedule.name]).get(schedule.name)
    binding, now = schedule.binding, datetime.now(UTC)
    if as_json:
        return output.write_json(
            _schedule_as_json(schedule, last, _next_time(schedule, now)) | {"body": schedule.body}
        )
    click.echo(click.style(plain(schedule.name), bold=True))
    click.echo(plain(schedule.description))
    place = binding.place
    times = next_times(binding.timing, place, now) if not binding.paused else []
    rows = {
        "state": schedule_state(schedule, last, _next_time(schedule, now)),
        "when": describe(binding.timing, place),
        "next": "\n           ".join(exact_time(at, place) for at in times),
        "last": f"{_run_result(last)}, {exact_time(last.due, place)}" if last is not None else "",
        "why": last.reason if last is not None else "",
        "skills": ", ".join(binding.skills),
        "in": with_tilde(binding.project),
        "model": binding.model,
        "tools": ", ".join(binding.allowed) + (", with network" if binding.network else ""),
        "missed": binding.catch_up,
        "overlap": binding.overlap,
        "limit": f"{binding.seconds:g} s",
        "output": ", ".join(("inbox", *binding.deliver)),
        "folder": with_tilde(schedule.folder),
        "by hand": schedule.command,
    }
    output.write_rows(rows.items(), 10)
    click.echo(f"\n{plain(schedule.body).strip()}")
    return 0


@schedule_command.verb(
    "history", "tacit schedule history weather", "tacit schedule history weather --limit 5 --json"
)
@click.argument("name", required=False, default="", shell_complete=complete_schedule)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="Most runs.")
def history(name: str, limit: int, as_json: bool) -> int:
    """List the runs of a schedule, or of all: what was due, and what became of it."""
    wanted = _whole_name(name) if name else ""
    found = schedule_runs.run_history(wanted, limit)
    if as_json:
        return output.write_json({"runs": found})
    if not found:
        click.echo("Nothing has been due yet.")
        return 0
    zones = {s.name: s.binding.place for s in schedule_store.listing()[0]}
    here = zone(local_zone())
    rows = [
        (
            row.id,
            shown_moment(row.due, zones.get(row.schedule, here)),
            row.why,
            _run_result(row),
            _run_seconds(row),
            one_line(row.reason or row.output),
        )
        for row in found
    ]
    head = ("run", "due", "why", "result", "took", "what")
    click.echo(output.table(head, rows, ("why", "took", "due")))
    return 0


@schedule_command.verb(
    "logs",
    "tacit schedule logs weather@20261115T090000Z",
    "tacit schedule logs weather                         its latest run",
)
@click.argument("run", shell_complete=complete_run)
def logs(run: str, as_json: bool) -> int:
    """Show what a run said, where that went, and what was refused to it."""
    row = schedule_runs.find_run(run)
    if row.state in ("done", "failed") and not row.read:
        with schedule_runs.write_runs() as connection:
            schedule_runs.update_run(connection, row.id, datetime.now(UTC), read=True)
    if as_json:
        return output.write_json(row)
    here = zone(local_zone())
    rows = {
        "run": row.id,
        "due": exact_time(row.due, here),
        "began": exact_time(row.began, here) if row.began else "",
        "took": _run_seconds(row),
        "result": _run_result(row) + (f", try {row.attempt}" if row.attempt > 1 else ""),
        "why": row.reason,
        "session": row.session and f"tacit session {row.session}",
        "output": ", ".join(f"{place}: {state}" for place, state in row.delivered.items()),
        "refused": "; ".join(row.refused),
    }
    output.write_rows(rows.items(), 10)
    if row.output:
        click.echo(f"\n{plain(row.output)}")
    return 0


def _run_seconds(row: ScheduleRun) -> str:
    if row.began is None or row.ended is None:
        return ""
    return f"{max((row.ended - row.began).total_seconds(), 0):.0f} s"


def _whole_name(name: str) -> str:
    """The schedule's whole name; of one that is gone, as its runs have it."""
    try:
        return schedule_store.find(name).name
    except NotFound:
        known = {row.schedule for row in schedule_runs.run_history(most=1000)}
        near_ = [n for n in known if name in (n, n.rpartition("-")[0])]
        if not near_:
            raise
        return near_[0]


def _next_time(schedule: Schedule, now: datetime) -> datetime | None:
    times = next_times(schedule.binding.timing, schedule.binding.place, now, 1)
    return times[0] if times else None


def _last_runs(names: list[str]) -> dict[str, ScheduleRun]:
    """The latest runs; a database that cannot be read hides no schedule."""
    try:
        return schedule_runs.last_runs(names)
    except TacitError as error:
        click.echo(f"tacit: {plain(error.message)}\n       {plain(error.hint)}", err=True)
        return {}


def _schedule_as_json(
    schedule: Schedule, last: ScheduleRun | None, coming: datetime | None
) -> dict[str, object]:
    return {
        "name": schedule.name,
        "description": schedule.description,
        "state": schedule_state(schedule, last, coming),
        "next": None if schedule.binding.paused else coming,
        "last": last,
        "binding": schedule.binding,
        "folder": schedule.folder,
    }


@schedule_command.verb(
    "add",
    'tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"',
    'tacit schedule add "every 2 hours" --skill check-mail --skill triage --notify desktop',
    'tacit schedule add +30m "Remind me to call the bank" --notify desktop',
    'tacit schedule add "0 9 * * 1-5" "Run the tests, report failures" --in ~/app '
    "--zone Europe/Paris",
    'tacit schedule add "明天下午3点" "写一份本周的总结" --notify file:notes/{date}.md',
)
@click.argument("when")
@click.argument("task", nargs=-1)
@click.option(
    "--skill", "skills", multiple=True, shell_complete=complete_skill, help="Run this skill."
)
@click.option("--name", "short", default="", help="The first part of its name.")
@click.option("--output", default="", help="What a run is to give, and in which form.")
@click.option("--in", "project", type=click.Path(file_okay=False), help="The folder to work in.")
@click.option("--zone", default="", help="A time zone, e.g. Europe/Paris.")
@click.option("--model", default="", help="provider:model, instead of the setting.")
@click.option("--allow", multiple=True, help="A tool that runs may use; instead of the usual ones.")
@click.option("--network", is_flag=True, help="Let its commands use the network.")
@click.option("--catch-up", type=click.Choice(["latest", "all", "none"]), help="What was missed.")
@click.option("--overlap", type=click.Choice(["skip", "queue"]), help="While a run still goes.")
@click.option("--seconds", type=click.FloatRange(1, 86400), help="How long a run may take.")
@click.option("--notify", "--deliver", "deliver", multiple=True, help="Where output goes, too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def add(when: str, task: tuple[str, ...], yes: bool, as_json: bool, **options: Any) -> int:
    """Make a schedule: WHEN, and the text of a TASK or --skill.

    What WHEN means is shown as exact local time first. Runs read the folder and run commands in the
    sandbox without a network, unless --allow or --network say otherwise; nobody is there to be
    asked. Output goes to the inbox, and with --notify to desktop, file:PATH, command:COMMAND or
    webhook:URL.
    """
    chosen = {name: value for name, value in options.items() if value}
    wish = ScheduleRequest(when=when, task=" ".join(task), **chosen)
    draft, found = schedule_requests.draft_schedule(
        wish, settings.load_settings().settings, datetime.now(UTC)
    )
    if not as_json:
        write_understood(found)
        click.echo(f"in {with_tilde(draft.binding.project)}")
        if not yes and sys.stdin.isatty() and not click.confirm("Make it?", default=True):
            raise Usage("nothing was made", "say another time")
    schedule, verdict = schedule_store.make(draft)
    if as_json:
        return output.write_json(
            {"schedule": schedule, "next": found.next, "change": verdict.change}
        )
    click.echo(f"Made {click.style(plain(schedule.name), bold=True)}")
    output.write_hint(f"undo: tacit undo {verdict.change[-8:]}")
    _write_unattended()
    return 0


def write_understood(found: Understood) -> None:
    """Say a time back."""
    click.echo(plain(found.says))
    for shown in found.shown():
        click.echo(f"  next: {shown}")
    if found.warning:
        click.echo(click.style(f"  note: {found.warning}", fg="yellow"))


@schedule_command.verb("pause", "tacit schedule pause weather", "tacit schedule resume weather")
@click.argument("name", shell_complete=complete_schedule)
def pause(name: str, as_json: bool) -> int:
    """Keep a schedule from firing until it is resumed."""
    schedule = schedule_store.find(name)
    if schedule.binding.paused:
        raise Usage(
            f"'{schedule.name}' is paused already", f"tacit schedule resume {schedule.name}"
        )
    verdict = schedule_store.rebind(schedule, Requester(reason="paused"), paused=True)
    return _write_changed(f"Paused {schedule.name}", schedule.name, verdict, as_json)


@schedule_command.verb("resume", "tacit schedule pause weather", "tacit schedule resume weather")
@click.argument("name", shell_complete=complete_schedule)
def resume(name: str, as_json: bool) -> int:
    """Let a paused schedule fire again. What it was due for meanwhile is not made up for."""
    schedule = schedule_store.find(name)
    if not schedule.binding.paused:
        raise Usage(f"'{schedule.name}' is not paused", f"tacit schedule show {schedule.name}")
    now = datetime.now(UTC)
    verdict = schedule_store.rebind(schedule, Requester(reason="resumed"), paused=False, since=now)
    return _write_changed(f"Resumed {schedule.name}", schedule.name, verdict, as_json)


@schedule_command.verb(
    "edit",
    "tacit schedule edit weather                         its text, in your editor",
    'tacit schedule edit weather --when "every day 8:00"',
    "tacit schedule edit weather --zone Asia/Tokyo --catch-up none",
    'tacit schedule edit weather --allow read_file --allow "run_command:git *"',
    'tacit schedule edit weather --deliver "command:mail -s weather me@example.com"',
)
@click.argument("name", shell_complete=complete_schedule)
@click.option("--when", default="", help="Another time.")
@click.option("--zone", default="", help="Another time zone.")
@click.option("--from", "source", help="Its SKILL.md from a file, or - for standard input.")
@click.option("--skill", multiple=True, shell_complete=complete_skill, help="Other skills.")
@click.option("--in", "folder", type=click.Path(file_okay=False), help="Another folder.")
@click.option("--model", help="provider:model; empty for the setting.")
@click.option("--allow", multiple=True, help="Another list of tools; 'default' for the usual.")
@click.option("--network/--no-network", default=None, help="The network for its commands.")
@click.option("--catch-up", type=click.Choice(["latest", "all", "none"]), help="What was missed.")
@click.option("--overlap", type=click.Choice(["skip", "queue"]), help="While a run still goes.")
@click.option("--seconds", type=click.FloatRange(1, 86400), help="How long a run may take.")
@click.option("--notify", "--deliver", "deliver", multiple=True, help="Other places; 'none'.")
def edit(name: str, as_json: bool, **options: Any) -> int:
    """Change a schedule: its time, what it may use, where output goes; or its text.

    Without an option its SKILL.md is opened in your editor.
    """
    schedule = schedule_store.find(name)
    now = datetime.now(UTC)
    changed = _changed_fields(schedule, options, now)
    files: dict[str, bytes] = {}
    if changed:
        bound: Binding = msgspec.structs.replace(schedule.binding, **changed)
        files[SCHEDULE_FILE] = encode_binding(bound)
    if options["source"]:
        files[SKILL_FILE] = user_gate.read_text_source(options["source"])
    elif not changed:
        files[SKILL_FILE] = _edited_text(schedule)
    if "timing" in changed and not as_json:
        write_understood(understand(changed["when"], now, changed["zone"]))
    verdict = schedule_store.rewrite(schedule, files, Requester(reason="edited by hand"))
    return _write_changed(f"Changed {schedule.name}", schedule.name, verdict, as_json)


@schedule_command.verb("rm", "tacit schedule rm weather", "tacit schedule rm weather --yes")
@click.argument("name", shell_complete=complete_schedule)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(name: str, yes: bool, as_json: bool) -> int:
    """Remove a schedule. It lies in the trash for 30 days, and undo brings it back."""
    found = [one for one in schedule_store.names() if one == name]
    full = found[0] if found else schedule_store.find(name).name  # one that cannot be read, too
    if not yes and not as_json and sys.stdin.isatty():
        click.confirm(f"Remove {plain(full)}?", abort=True)
    verdict = schedule_store.remove(full, Requester(reason="removed"))
    return _write_changed(f"Removed {full}", full, verdict, as_json)


def _changed_fields(schedule: Schedule, options: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The fields of the binding that the options change. Raises `Usage`, `NotFound`."""
    project = schedule.binding.project
    chosen = settings.load_settings(project if os.path.isdir(project) else None).settings
    changed: dict[str, Any] = {}
    if options["when"] or options["zone"]:
        changed |= schedule_requests.retimed(schedule, options["when"], options["zone"], now)
    if options["folder"]:
        changed["project"] = schedule_requests.work_folder(options["folder"])
    if options["skill"]:
        where = changed.get("project", schedule.binding.project)
        changed["skills"] = schedule_requests.skills_for(options["skill"], where, chosen)
    if options["allow"]:
        listed = () if options["allow"] == ("default",) else options["allow"]
        changed["allow"] = schedule_requests.allow_list(listed)
    if options["deliver"]:
        listed = () if options["deliver"] == ("none",) else options["deliver"]
        changed["deliver"] = check_destinations(listed, chosen.schedule.webhook_hosts)
    for field in ("model", "network", "catch_up", "overlap", "seconds"):
        if options[field] is not None:
            changed[field] = options[field]
    return changed


def _edited_text(schedule: Schedule) -> bytes:
    with open(os.path.join(schedule.folder, SKILL_FILE), encoding="utf-8") as file:
        text = user_gate.edit_text(file.read())
    if text is None:
        raise Usage("nothing was changed", "see what can be: tacit schedule edit --help")
    return text.encode()


def _write_changed(done: str, name: str, verdict: Verdict, as_json: bool) -> int:
    if as_json:
        return output.write_json(
            {"name": name, "change": verdict.change, "outcome": verdict.outcome}
        )
    click.echo(plain(done))
    output.write_hint(f"undo: tacit undo {verdict.change[-8:]}")
    return 0


@schedule_command.verb(
    "run",
    "tacit schedule run weather",
    "tacit schedule run weather --json | jq -r 'select(.type==\"end\").text'",
    note="Exit codes: 0 done, 1 a limit was reached, 11 the model or the provider failed, 130 "
    "stopped.",
)
@click.argument("name", shell_complete=complete_schedule)
def run(name: str, as_json: bool) -> int:
    """Run a schedule now, by hand, and print its output.

    It is a session of its own, as when it fires. On a terminal you are asked before a call that
    needs it. With --json, every event is a line of JSON as it happens.
    """
    schedule = schedule_store.find(name)
    asks = _asking_about(schedule) if sys.stdin.isatty() and not as_json else None
    reactions.listen_to_chat()
    by_hand = ByHand(schedule, approve=asks)
    try:
        return asyncio.run(_print_run(by_hand, as_json))
    finally:
        by_hand.close()
        reactions.end_chats()


async def _print_run(by_hand: ByHand, as_json: bool) -> int:
    code = await print_events(by_hand.stream(), as_json)
    for refused in by_hand.refused:
        click.echo(f"tacit: not allowed: {plain(refused)}", err=True)
    return code


def _asking_about(schedule: Schedule) -> Ask:
    """Asks on the terminal whether a call of a run may be made, and shows all of it."""

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        text, _ = call_preview(request, schedule.binding.project)
        click.echo("\n".join(f"  {line}" for line in text.splitlines()), err=True)
        question = f"Allow {request.tool} to do this?"
        yes = await asyncio.to_thread(click.confirm, question, default=False, err=True)
        return "once" if yes else "no"

    return ask
