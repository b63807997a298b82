"""`tacit schedule list`, `show`, `history` and `logs`: schedules and runs, as they are read.

Owns the words for times and states of schedules, and their completion. Commands that change
schedules are in `schedules`.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click
from click.shell_completion import CompletionItem

from tacit.base.display import one_line, plain
from tacit.base.errors import NotFound, TacitError
from tacit.base.paths import with_tilde
from tacit.ui.cli import output
from tacit.work import schedule_runs, schedule_store
from tacit.work.due_times import describe, exact_time, local_zone, next_times, zone
from tacit.work.schedule_runs import ScheduleRun
from tacit.work.schedule_store import Schedule
from tacit.work.work_checks import unattended

ADD_EPILOG = """\b
Examples:
  tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"
  tacit schedule add "every 2 hours" --skill check-mail --skill triage --notify desktop
  tacit schedule add +30m "Remind me to call the bank" --notify desktop
  tacit schedule add "0 9 * * 1-5" "Run the tests, report failures" --in ~/app --zone Europe/Paris
  tacit schedule add "明天下午3点" "写一份本周的总结" --notify file:notes/{date}.md
"""
LIST_EPILOG = """\b
Examples:
  tacit schedule list
  tacit schedule list --json | jq -r '.schedules[].name'
"""
SHOW_EPILOG = """\b
Examples:
  tacit schedule show weather
"""
PAUSE_EPILOG = """\b
Examples:
  tacit schedule pause weather
  tacit schedule resume weather
"""
RUN_EPILOG = """\b
Examples:
  tacit schedule run weather
  tacit schedule run weather --json | jq -r 'select(.type=="end").text'

Exit codes: 0 done, 1 a limit was reached, 11 the model or the provider failed, 130 stopped.
"""
EDIT_EPILOG = """\b
Examples:
  tacit schedule edit weather                         its text, in your editor
  tacit schedule edit weather --when "every day 8:00"
  tacit schedule edit weather --zone Asia/Tokyo --catch-up none
  tacit schedule edit weather --allow read_file --allow "run_command:git *"
  tacit schedule edit weather --deliver "command:mail -s weather me@example.com"
"""
RM_EPILOG = """\b
Examples:
  tacit schedule rm weather
  tacit schedule rm weather --yes
"""
HISTORY_EPILOG = """\b
Examples:
  tacit schedule history weather
  tacit schedule history weather --limit 5 --json
"""
LOGS_EPILOG = """\b
Examples:
  tacit schedule logs weather@20261115T090000Z
  tacit schedule logs weather                         its latest run
"""


RUN_COLOURS = {"failed": "red", "running": "cyan", "missed": "yellow", "skipped": "yellow"}


def complete_schedule(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The schedules whose name begins with what was typed. A fault must not disturb a prompt."""
    try:
        from tacit.work.schedule_store import listing

        found, _ = listing()
    except Exception:
        return []
    return [
        CompletionItem(schedule.name, help=schedule.description[:80])
        for schedule in found
        if schedule.name.startswith(incomplete)
    ][:200]


def complete_run(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The latest runs whose id begins with what was typed."""
    try:
        from tacit.work.schedule_runs import run_history

        found = run_history(most=200)
    except Exception:
        return []
    return [
        CompletionItem(row.id, help=row.state) for row in found if row.id.startswith(incomplete)
    ]


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
    return "failed" if last is not None and last.state == "failed" else "over"


def coloured_state(state: str, width: int = 0) -> str:
    return click.style(f"{state:<{width}}", fg=RUN_COLOURS.get(state))


@click.command("list", epilog=LIST_EPILOG)
@output.json_option
def list_schedules(as_json: bool) -> int:
    """List the schedules, with their next and last runs."""
    return write_schedules(output.json_wanted(as_json))


def write_schedules(as_json: bool) -> int:
    """Write the list; the exit code."""
    found, broken = schedule_store.listing()
    last = _last_runs([schedule.name for schedule in found])
    now = datetime.now(UTC)
    coming = {s.name: _next_time(s, now) for s in found}
    if as_json:
        rows = [_schedule_as_json(s, last.get(s.name), coming[s.name]) for s in found]
        output.write_json({"schedules": rows, "broken": broken, "note": unattended()})
        return 0
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
    if why := unattended():
        click.echo(click.style(f"\nnote: {why}", fg="yellow"))
    return 0


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


@click.command(epilog=SHOW_EPILOG)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def show(name: str, as_json: bool) -> int:
    """Show a schedule: when, with what, what it does, and its next times."""
    as_json = output.json_wanted(as_json)
    schedule = schedule_store.find(name)
    last = _last_runs([schedule.name]).get(schedule.name)
    binding, now = schedule.binding, datetime.now(UTC)
    if as_json:
        output.write_json(
            _schedule_as_json(schedule, last, _next_time(schedule, now)) | {"body": schedule.body}
        )
        return 0
    click.echo(click.style(plain(schedule.name), bold=True))
    click.echo(plain(schedule.description))
    place = binding.place
    times = next_times(binding.timing, place, now) if not binding.paused else []
    facts = {
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
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<10}', dim=True)} {plain(value)}")
    click.echo(f"\n{plain(schedule.body).strip()}")
    return 0


@click.command(epilog=HISTORY_EPILOG)
@click.argument("name", required=False, default="", shell_complete=complete_schedule)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="Most runs.")
@output.json_option
def history(name: str, limit: int, as_json: bool) -> int:
    """List the runs of a schedule, or of all: what was due, and what became of it."""
    as_json = output.json_wanted(as_json)
    wanted = _whole_name(name) if name else ""
    found = schedule_runs.run_history(wanted, limit)
    if as_json:
        output.write_json({"runs": found})
        return 0
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
    click.echo(output.table(("run", "due", "why", "result", "took", "what"), rows, ("why", "took")))
    return 0


@click.command(epilog=LOGS_EPILOG)
@click.argument("run", shell_complete=complete_run)
@output.json_option
def logs(run: str, as_json: bool) -> int:
    """Show what a run said, where that went, and what was refused to it."""
    as_json = output.json_wanted(as_json)
    row = schedule_runs.find_run(run)
    if row.state in ("done", "failed") and not row.read:
        with schedule_runs.write_runs() as connection:
            schedule_runs.update_run(connection, row.id, datetime.now(UTC), read=True)
    if as_json:
        output.write_json(row)
        return 0
    here = zone(local_zone())
    facts = {
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
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<10}', dim=True)} {plain(value)}")
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
