"""`tacit schedule list`, `show`, `history` and `logs`: what there is, and what came of it."""

from datetime import UTC, datetime

import click

from tacit.base.errors import NotFound, TacitError
from tacit.base.paths import shorten
from tacit.base.terminal import one_line, plain
from tacit.ui.cli import output, schedule_help
from tacit.ui.cli.scheduling import (
    coloured,
    complete_run,
    complete_schedule,
    near,
    state_of,
)
from tacit.work.schedules import runs, shelf
from tacit.work.schedules.health import unattended
from tacit.work.schedules.recurrence import describe, next_times
from tacit.work.schedules.runs import Row
from tacit.work.schedules.shelf import Schedule
from tacit.work.schedules.zones import exact, local_zone, zone


@click.command("list", epilog=schedule_help.LIST)
@output.json_option
def list_(as_json: bool) -> int:
    """List the schedules, with their next and last runs."""
    return listed(output.json_wanted(as_json))


def listed(as_json: bool) -> int:
    """Write the list; the exit code."""
    found, broken = shelf.listing()
    last = _last([schedule.name for schedule in found])
    now = datetime.now(UTC)
    coming = {s.name: _coming(s, now) for s in found}
    if as_json:
        rows = [_as_json(s, last.get(s.name), coming[s.name]) for s in found]
        output.write_json({"schedules": rows, "broken": broken, "note": unattended()})
        return 0
    if found:
        click.echo(
            output.table(_HEAD, [_cells(s, last, coming) for s in found], ("result", "last"))
        )
    elif not broken:
        click.echo('There are no schedules. Make one: tacit schedule add "every weekday 9:00" "…"')
    for one in broken:
        click.echo(f"{coloured('failed')}  {plain(one.why)}\n        {plain(one.hint)}", err=True)
    if why := unattended():
        click.echo(click.style(f"\nnote: {why}", fg="yellow"))
    return 0


_HEAD = ("name", "state", "next", "last", "result", "when")


def _cells(
    schedule: Schedule, last: dict[str, Row], coming: dict[str, datetime | None]
) -> tuple[str, ...]:
    ran, next_, place = last.get(schedule.name), coming[schedule.name], schedule.binding.place
    return (
        one_line(schedule.name),
        state_of(schedule, ran, next_),
        near(next_, place) if not schedule.binding.paused else "-",
        near(ran.due, place) if ran is not None else "-",
        _result(ran),
        one_line(f"{schedule.binding.when} {schedule.binding.zone}"),
    )


def _result(row: Row | None) -> str:
    if row is None:
        return "-"
    return "silent" if row.state == "done" and row.silent else row.state


@click.command(epilog=schedule_help.SHOW)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def show(name: str, as_json: bool) -> int:
    """Show a schedule: when, with what, what it does, and its next times."""
    as_json = output.json_wanted(as_json)
    schedule = shelf.find(name)
    last = _last([schedule.name]).get(schedule.name)
    binding, now = schedule.binding, datetime.now(UTC)
    if as_json:
        output.write_json(
            _as_json(schedule, last, _coming(schedule, now)) | {"body": schedule.body}
        )
        return 0
    click.echo(click.style(plain(schedule.name), bold=True))
    click.echo(plain(schedule.description))
    place = binding.place
    times = next_times(binding.timing, place, now) if not binding.paused else []
    facts = {
        "state": state_of(schedule, last, _coming(schedule, now)),
        "when": describe(binding.timing, place),
        "next": "\n           ".join(exact(at, place) for at in times),
        "last": f"{_result(last)}, {exact(last.due, place)}" if last is not None else "",
        "why": last.reason if last is not None else "",
        "skills": ", ".join(binding.skills),
        "in": shorten(binding.project),
        "model": binding.model,
        "tools": ", ".join(binding.allowed) + (", with network" if binding.network else ""),
        "missed": binding.catch_up,
        "overlap": binding.overlap,
        "limit": f"{binding.seconds:g} s",
        "output": ", ".join(("inbox", *binding.deliver)),
        "folder": shorten(schedule.folder),
        "by hand": schedule.command,
    }
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<10}', dim=True)} {plain(value)}")
    click.echo(f"\n{plain(schedule.body).strip()}")
    return 0


@click.command(epilog=schedule_help.HISTORY)
@click.argument("name", required=False, default="", shell_complete=complete_schedule)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="Most runs.")
@output.json_option
def history(name: str, limit: int, as_json: bool) -> int:
    """List the runs of a schedule, or of all: what was due, and what became of it."""
    as_json = output.json_wanted(as_json)
    wanted = _name_of(name) if name else ""
    found = runs.history(wanted, limit)
    if as_json:
        output.write_json({"runs": found})
        return 0
    if not found:
        click.echo("Nothing has been due yet.")
        return 0
    zones = {s.name: s.binding.place for s in shelf.listing()[0]}
    here = zone(local_zone())
    rows = [
        (
            row.id,
            near(row.due, zones.get(row.schedule, here)),
            row.why,
            _result(row),
            _seconds(row),
            one_line(row.reason or row.output),
        )
        for row in found
    ]
    click.echo(output.table(("run", "due", "why", "result", "took", "what"), rows, ("why", "took")))
    return 0


@click.command(epilog=schedule_help.LOGS)
@click.argument("run", shell_complete=complete_run)
@output.json_option
def logs(run: str, as_json: bool) -> int:
    """Show what a run said, where that went, and what was refused to it."""
    as_json = output.json_wanted(as_json)
    row = runs.find(run)
    if row.state in ("done", "failed") and not row.read:
        with runs.writing() as connection:
            runs.update(connection, row.id, datetime.now(UTC), read=True)
    if as_json:
        output.write_json(row)
        return 0
    here = zone(local_zone())
    facts = {
        "run": row.id,
        "due": exact(row.due, here),
        "began": exact(row.began, here) if row.began else "",
        "took": _seconds(row),
        "result": _result(row) + (f", try {row.attempt}" if row.attempt > 1 else ""),
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


def _seconds(row: Row) -> str:
    if row.began is None or row.ended is None:
        return ""
    return f"{max((row.ended - row.began).total_seconds(), 0):.0f} s"


def _name_of(name: str) -> str:
    """The schedule's whole name; of one that is gone, as its runs have it."""
    try:
        return shelf.find(name).name
    except NotFound:
        known = {row.schedule for row in runs.history(most=1000)}
        near_ = [n for n in known if name in (n, n.rpartition("-")[0])]
        if not near_:
            raise
        return near_[0]


def _coming(schedule: Schedule, now: datetime) -> datetime | None:
    times = next_times(schedule.binding.timing, schedule.binding.place, now, 1)
    return times[0] if times else None


def _last(names: list[str]) -> dict[str, Row]:
    """The latest runs; a database that cannot be read hides no schedule."""
    try:
        return runs.last_of(names)
    except TacitError as error:
        click.echo(f"tacit: {plain(error.message)}\n       {plain(error.hint)}", err=True)
        return {}


def _as_json(schedule: Schedule, last: Row | None, coming: datetime | None) -> dict[str, object]:
    return {
        "name": schedule.name,
        "description": schedule.description,
        "state": state_of(schedule, last, coming),
        "next": None if schedule.binding.paused else coming,
        "last": last,
        "binding": schedule.binding,
        "folder": schedule.folder,
    }
