"""What `tacit connect` and `tacit disconnect` share: choosing agents, showing diffs, asking."""

import sys
from typing import Any

import click

from tacit.base import paths
from tacit.base.errors import Usage
from tacit.base.terminal import plain
from tacit.traces.connect.connecting import Plan


def show(plan: Plan) -> None:
    """The change as a diff, with added and removed lines in colour."""
    assert plan.change is not None
    path = paths.shorten(plan.change.path)
    click.secho(f"{plan.connector.agent.title}: {path}", bold=True)
    for line in plan.change.diff(path).split("\n"):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo("  " + click.style(plain(line), fg=colour))
    click.echo()


def may_write(question: str, yes: bool, as_json: bool) -> bool:
    """Ask, unless that was answered on the command line; nobody there to ask is an error."""
    if yes:
        return True
    if as_json or not sys.stdin.isatty():
        raise Usage(
            "there is nobody to ask here", "add --yes to write it, or --dry-run to only look"
        )
    return click.confirm(question, default=False)


def report_errors(plans: list[Plan]) -> int:
    """Say what could not be done; the exit code of the first error, or 0."""
    failed = [plan.error for plan in plans if plan.error is not None]
    for error in failed:
        click.echo(f"{click.style('tacit:', fg='red')} {plain(error.message)}", err=True)
        click.echo(f"       {plain(error.hint)}", err=True)
    return failed[0].exit_code if failed else 0


def row(plan: Plan, done: str, **more: Any) -> dict[str, Any]:
    """One agent, for JSON."""
    agent, error = plan.connector.agent, plan.error
    return {
        "host": agent.host,
        "title": agent.title,
        "file": plan.connector.file(),
        "state": "failed" if error else done,
        "diff": plan.change.diff() if plan.change else "",
        "error": error and {"code": error.code, "message": error.message, "hint": error.hint},
        **more,
    }
