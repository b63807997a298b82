"""`tacit connect`: agents tell Tacit when a session ends, and see the skills it learned."""

import os
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tacit.base import paths
from tacit.base.amounts import counted
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.ui.cli import connecting, output

if TYPE_CHECKING:
    from tacit.traces.connect.connecting import Plan
    from tacit.traces.connect.connector import Connector
    from tacit.traces.connect.status import Status

_EPILOG = """\b
Examples:
  tacit connect                      every agent that is found here
  tacit connect claude-code codex    only these
  tacit connect --dry-run            show what would be written
  tacit connect --status             how each agent stands
  tacit connect --fix                mend what broke, such as a moved program

With --status or --fix, exit code 6 while an agent cannot be heard.
"""


@click.command(epilog=_EPILOG)
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option("--status", is_flag=True, help="Say how each agent stands; write nothing.")
@click.option("--fix", is_flag=True, help="Connect again what is connected but broken.")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@output.json_option
def command(
    hosts: tuple[str, ...], status: bool, fix: bool, yes: bool, dry_run: bool, as_json: bool
) -> int:
    """Have your agents tell Tacit when a session ends.

    Adds a hook to the settings of each agent, after showing you the change. What you wrote there,
    comments too, stays as it is, and a backup is put beside it. Skills that were learned are
    linked to where the agent looks for them. `tacit disconnect` takes all of it back.
    """
    if status or fix:
        if yes or dry_run:
            raise Usage("--status and --fix stand alone", "leave --yes and --dry-run out")
        return _status(hosts, fix, as_json)
    plans = _plans(hosts)
    changed = [plan for plan in plans if plan.change is not None]
    if not as_json:
        for plan in plans:
            if plan.change is not None:
                connecting.show(plan)
            elif plan.error is None:
                click.echo(f"{plan.connector.agent.title} is connected already.")
    if changed and not dry_run:
        if not connecting.may_write("Write this?", yes, as_json):
            click.echo("Nothing was written.")
            return 1
        plans = [_carry_out(plan) for plan in plans]
    rows = [_row(plan, dry_run) for plan in plans]
    if as_json:
        output.write_json({"agents": rows})
        return next((plan.error.exit_code for plan in plans if plan.error), 0)
    if not dry_run:
        _say_done(plans, rows)
    return connecting.report_errors(plans)


def _plans(hosts: tuple[str, ...]) -> "list[Plan]":
    from tacit.traces.connect.connecting import plan_connecting
    from tacit.traces.connect.connector import find_hook

    return plan_connecting(_chosen(hosts), find_hook())


def _chosen(hosts: tuple[str, ...]) -> "list[Connector]":
    """The named agents, or those that are on this machine."""
    from tacit.traces.connect.registry import CONNECTORS, find

    if hosts:
        return list({find(name).agent.host: find(name) for name in hosts}.values())
    found = [one for one in CONNECTORS.values() if one.agent.is_installed()]
    if not found:
        raise NotFound(
            "no agent was found: neither a program on your PATH nor a folder in your home",
            f"name one of {', '.join(CONNECTORS)}",
        )
    return found


def _carry_out(plan: "Plan") -> "Plan":
    from tacit.traces.connect.connecting import connect

    if plan.change is None:
        return plan
    try:
        connect(plan)
    except TacitError as error:
        return msgspec.structs.replace(plan, error=error)
    return plan


def _row(plan: "Plan", dry_run: bool) -> dict[str, Any]:
    """What was done for an agent; links are made here, also for one that was connected before."""
    from tacit.traces.connect.change import BACKUP

    linked: dict[str, Any] = {"made": [], "removed": [], "in_the_way": []}
    if plan.error is None and not dry_run:
        from tacit.work.linking import link

        linked = msgspec.to_builtins(link(plan.host))
    backup = plan.connector.file() + BACKUP
    done = "already" if plan.change is None else "planned" if dry_run else "connected"
    return connecting.row(
        plan,
        done,
        installed=plan.connector.agent.is_installed(),
        backup=backup if os.path.exists(backup) else "",
        links=linked,
        todo=plan.connector.todo,
    )


def _say_done(plans: "list[Plan]", rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["state"] == "connected":
            saved = f"; as it was: {paths.shorten(row['backup'])}" if row["backup"] else ""
            click.echo(f"Connected {row['title']}{saved}")
            if not row["installed"]:
                click.echo("  It was not found on this machine; it counts once it is installed.")
        links = row["links"]
        if links["made"]:
            click.echo(f"  {counted(len(links['made']), 'learned skill')} linked for it")
        if links["removed"]:
            click.echo(f"  {counted(len(links['removed']), 'dead link')} removed")
        for path in links["in_the_way"]:
            click.echo(f"  not linked, since you have your own: {paths.shorten(path)}")
    fresh = [row for row in rows if row["state"] == "connected"]
    for row in fresh:
        if row["todo"]:
            click.echo(f"{click.style('To do for ' + row['title'], bold=True)}: {row['todo']}")
    if fresh:
        click.echo("Undo with: tacit disconnect")


def _status(hosts: tuple[str, ...], fix: bool, as_json: bool) -> int:
    from tacit.traces.connect.registry import find
    from tacit.traces.connect.status import statuses

    wanted = {find(name).agent.host for name in hosts}
    mended = _fix(wanted) if fix else []
    found = [status for status in statuses() if not wanted or status.host in wanted]
    if as_json:
        rows = [{**msgspec.to_builtins(s), "mended": s.host in mended} for s in found]
        output.write_json({"agents": rows})
    else:
        _show_status(found, mended)
    return 6 if any(status.trouble for status in found) else 0


def _fix(wanted: set[str]) -> list[str]:
    """Connect again what is connected and cannot be heard; link again what is connected."""
    from tacit.traces.connect.status import statuses
    from tacit.work.linking import link

    connected = [s for s in statuses() if s.connected and (not wanted or s.host in wanted)]
    broken = tuple(status.host for status in connected if status.trouble)
    plans = [_carry_out(plan) for plan in _plans(broken)] if broken else []
    for status in connected:
        link(status.host)
    connecting.report_errors(plans)
    return [plan.host for plan in plans if plan.error is None and plan.change is not None]


def _show_status(found: "list[Status]", mended: list[str]) -> None:
    rows = []
    for status in found:
        version = status.version or "yes"
        connected = "broken" if status.trouble else "yes" if status.connected else "no"
        rows.append(
            [
                status.title,
                version if status.installed else "no",
                connected,
                _ago(status.heard),
                "?" if status.sessions is None else str(status.sessions),
                paths.shorten(status.file) if status.connected or status.trouble else "",
            ]
        )
    head = ["AGENT", "INSTALLED", "CONNECTED", "LAST HEARD", "SESSIONS", "FILE"]
    click.echo(output.table(head, rows))
    for status in found:
        if status.host in mended:
            click.echo(f"\n{click.style('mended', fg='green')}  {status.title}")
            if status.todo:
                click.echo(f"  {status.todo}")
        if status.trouble:
            click.echo(f"\n{click.style('broken', fg='red')}  {status.title}: {status.trouble}")
            if status.connected:
                click.echo("  Mend it with: tacit connect --fix")
    if not any(status.connected for status in found):
        click.echo("\nConnect what is installed with: tacit connect")


def _ago(when: float | None) -> str:
    """How long ago, in one unit."""
    if when is None:
        return "never"
    seconds = max(time.time() - when, 0.0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
