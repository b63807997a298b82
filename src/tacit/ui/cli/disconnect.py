"""`tacit disconnect`: out of the agents' settings comes what `tacit connect` put in, no more."""

from typing import TYPE_CHECKING

import click
import msgspec

from tacit.base import paths
from tacit.base.amounts import counted
from tacit.base.errors import TacitError
from tacit.ui.cli import connecting, output

if TYPE_CHECKING:
    from tacit.traces.connect.connecting import Plan

_EPILOG = """\b
Examples:
  tacit disconnect                   every agent that is connected
  tacit disconnect codex             only this one
  tacit disconnect --dry-run         show what would be changed
"""


@click.command(epilog=_EPILOG)
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@output.json_option
def command(hosts: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Take back what `tacit connect` wrote.

    A file that nobody changed since is restored to the byte. Otherwise exactly the entries that
    call tacit-hook are taken out, and everything else stays. Links to skills are removed too.
    """
    from tacit.traces.connect.change import BACKUP
    from tacit.traces.connect.connecting import plan_disconnecting
    from tacit.traces.connect.registry import CONNECTORS, find

    chosen = [find(name) for name in hosts] or list(CONNECTORS.values())
    plans = plan_disconnecting(chosen)
    if not hosts:  # a broken file matters only if it is meant
        plans = [plan for plan in plans if plan.change is not None]
    changed = [plan for plan in plans if plan.change is not None]
    if not as_json:
        for plan in changed:
            connecting.show(plan)
    if changed and not dry_run and not connecting.may_write("Write this?", yes, as_json):
        click.echo("Nothing was written.")
        return 1
    outcomes = [(plan, False) if dry_run else _carry_out(plan) for plan in plans]
    plans = [plan for plan, _ in outcomes]
    rows = []
    for plan, left in outcomes:
        links = () if dry_run or plan.error else _unlink(plan.host)
        state = "not-connected" if plan.change is None else "planned" if dry_run else "disconnected"
        rows.append(connecting.row(plan, state, backup_left=left, unlinked=links))
    if as_json:
        output.write_json({"agents": rows})
        return next((plan.error.exit_code for plan in plans if plan.error), 0)
    for row in rows:
        if row["state"] == "disconnected":
            click.echo(f"Disconnected {row['title']}")
        elif row["state"] == "not-connected":
            click.echo(f"{row['title']} is not connected.")
        if row["unlinked"]:
            click.echo(f"  {counted(len(row['unlinked']), 'link')} to skills removed")
        if row["backup_left"]:
            kept = paths.shorten(row["file"]) + BACKUP
            click.echo(f"  it was changed since it was connected; kept: {kept}")
    if not rows:
        click.echo("No agent is connected.")
    return connecting.report_errors(plans)


def _carry_out(plan: "Plan") -> "tuple[Plan, bool]":
    from tacit.traces.connect.connecting import disconnect

    if plan.change is None:
        return plan, False
    try:
        return plan, disconnect(plan)
    except TacitError as error:
        return msgspec.structs.replace(plan, error=error), False


def _unlink(host: str) -> tuple[str, ...]:
    from tacit.work.linking import unlink

    return unlink(host)
