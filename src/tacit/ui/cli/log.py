"""`tacit log`: what happened to skills."""

from datetime import datetime

import click

from tacit.base.terminal import one_line
from tacit.changes.history import Version
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit log                          the last changes to any skill
  tacit log db-migration             everything that happened to one
  tacit log -n 100 --json

Take one back: tacit undo CHANGE. See what it did: tacit diff CHANGE.
"""

_DROP = ("by", "when", "why", "what")


@click.command(epilog=_EPILOG)
@click.argument("name", required=False, shell_complete=complete_skill)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, help="How many.")
@output.json_option
def command(name: str | None, limit: int, as_json: bool) -> int:
    """Show the history of skills, the newest change first.

    A name alone stands for the skill that it means now, or for one that is gone.
    """
    gate, library = gating.open_gate()
    if name:
        target = gating.find(gate, library, name)
        found = [
            v for v, _ in zip(target.site.history.log(target.skill), range(limit), strict=False)
        ]
    else:
        found = [v for site in gate.sites.values() for v in site.history.latest(limit)]
        found.sort(key=lambda version: (version.at, version.record.change), reverse=True)
        found = found[:limit]
    if as_json:
        output.write_json({"versions": [_as_json(version) for version in found]})
        return 0
    if not found:
        click.echo("Nothing has been changed through tacit yet.")
        return 0
    rows = [_row(version) for version in found]
    click.echo(output.table(("when", "change", "skill", "what", "by", "why"), rows, _DROP))
    return 0


def _row(version: Version) -> tuple[str, ...]:
    record = version.record
    what = f"undo of {record.undoes[-8:]}" if record.undoes else record.kind
    return (
        _when(version.at),
        record.change[-8:],
        one_line(record.skill),
        what,
        record.actor,
        one_line(record.reason),
    )


def _when(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def _as_json(version: Version) -> dict[str, object]:
    record = version.record
    return {
        "version": version.id,
        "at": version.at,
        "change": record.change,
        "skill": record.skill,
        "kind": record.kind,
        "actor": record.actor,
        "reason": record.reason,
        "session": record.session,
        "evidence": record.evidence,
        "overrides": record.overrides,
        "approved_by": record.approved_by,
        "undoes": record.undoes,
        "partner": record.partner,
        "state": record.state,
    }
