"""`tacit history`: the life of one skill."""

import os
import sqlite3
from contextlib import suppress

import click
import msgspec

from tacit.agent.uses import Use
from tacit.base.amounts import counted
from tacit.base.errors import TacitError
from tacit.base.settings import load
from tacit.base.terminal import fit, one_line, plain
from tacit.learn import probation, recording
from tacit.learn.figures import Figures, figures, weekly
from tacit.learn.probation import Probation
from tacit.learn.timeline import Event, timeline
from tacit.traces.store import Store
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill
from tacit.ui.cli.sparks import sparkline

_EPILOG = """\b
Examples:
  tacit history db-migration
  tacit history db-migration -n 0    from the beginning
  tacit session claude-code:b4a2…    a session that it names
"""
_COLOUR = {
    "failed": "red", "repaired": "green", "kept": "green", "rolled back": "yellow",
    "archived": "yellow", "absorbed": "yellow", "made": "green", "restored": "green",
}  # fmt: skip
_WEEKS = 26


class Life(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    skill: str
    figures: Figures
    weeks: list[int]
    """Uses in each of the last 26 weeks, the oldest first."""
    events: list[Event]
    probation: Probation | None = None
    """How the last repair does, while it is watched."""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("-n", "--limit", type=click.IntRange(0), default=40, help="How many; 0 is all.")
@output.json_option
def command(name: str, limit: int, as_json: bool) -> int:
    """Show the life of a skill: made, used, failed, repaired, rolled back, archived.

    Uses are those in our chat and in every connected agent; each names its session.
    """
    gate, library = gating.open_gate(everywhere=True)
    target = gating.find(gate, library, name)
    log = list(target.site.history.log(target.skill))
    with Store.open() as store:
        recording.catch_up(store)
        uses, views = _recorded(store.connection, target)
        verdicts = probation.verdicts(store.connection, target.skill)
        events = timeline(log, uses, store, verdicts)
        watched = _watched(store.connection, target)
    found = figures(uses, views, log)
    weeks = weekly(uses, gate.clock.now(), _WEEKS)
    shown = events[-limit:] if limit else events
    if as_json:
        output.write_json(Life(target.skill, found, weeks, shown, watched))
        return 0
    _head(plain(name), found, weeks)
    if watched is not None:
        click.echo(output.wrapped(f"repair {watched.change[-8:]} on probation: {watched.numbers}"))
    click.echo()
    if len(shown) < len(events):
        click.echo(click.style(f"… {len(events) - len(shown)} earlier: -n 0", dim=True))
    for event in shown:
        _line(event)
    return 0


def _recorded(
    connection: sqlite3.Connection, target: gating.Target
) -> tuple[list[Use], list[recording.Viewed]]:
    """The uses and views of a skill: by its own name or its folder's, of a project in it."""
    names = {os.path.basename(target.skill)}
    if target.entry is not None:
        names.add(target.entry.name)
    inside = target.site.place.project.rstrip("/")
    uses = [
        use
        for use in recording.uses_of(connection, names)
        if not inside or f"{use.project}/".startswith(inside + "/")
    ]
    return uses, [view for view in recording.views_of(connection) if view.skill in names]


def _watched(connection: sqlite3.Connection, target: gating.Target) -> Probation | None:
    """The repair that is on probation; of one that cannot be looked at, the doctor speaks."""
    if target.entry is None:
        return None
    with suppress(TacitError):
        return probation.look(connection, target.root, target.skill, load().settings)
    return None


def _head(name: str, found: Figures, weeks: list[int]) -> None:
    last = f", last {found.last_use.astimezone():%Y-%m-%d}" if found.last_use else ""
    click.echo(click.style(name, bold=True))
    click.echo(
        f"used {counted(found.uses, 'time')}{last}"
        f" ({found.by_people} by you, {found.by_models} by models),"
        f" looked at {found.seen_by_people + found.seen_by_models},"
        f" changed {found.edits}"
    )
    if found.uses:
        click.echo(f"last {_WEEKS} weeks  |{sparkline(weeks)}|  most in one: {max(weeks)}")
    for version in found.versions[:5]:
        share = f"{version.failed} of {version.calls} calls failed"
        label = version.digest[:8] or "unknown"
        click.echo(f"version {label:<8}  {counted(version.uses, 'use')}, {share}")


def _line(event: Event) -> None:
    when = f"{event.at.astimezone():%Y-%m-%d %H:%M}"
    what = click.style(f"{event.what:<11}", fg=_COLOUR.get(event.what))
    parts = []
    if event.what == "failed":
        parts.append(f"{event.failed} of {event.calls} calls")
    elif event.what == "used":
        parts.append(counted(event.times, "time"))
    if event.change:
        parts.append(event.change[-8:])
    whole = event.what in ("kept", "rolled back")  # figures: half of them would mislead
    if event.detail and not whole:
        parts.append(one_line(event.detail))
    text = fit(f"by {plain(event.by)}: {' · '.join(parts)}", max(output.columns() - 30, 30))
    click.echo(f"{when}  {what} {text.rstrip(': ')}")
    if event.detail and whole:
        click.echo(f"{'':<18}{one_line(event.detail)}")
    for session in event.sessions[:3]:
        click.echo(click.style(f"{'':<18}tacit session {plain(session)}", dim=True))
    if len(event.sessions) > 3:
        click.echo(click.style(f"{'':<18}and {len(event.sessions) - 3} more", dim=True))
