"""`tacit schedule add`: a new schedule, said back exactly before it counts."""

import sys
from datetime import UTC, datetime
from typing import Any

import click

from tacit.base import settings
from tacit.base.errors import Usage
from tacit.base.paths import shorten
from tacit.base.terminal import plain
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_skill
from tacit.ui.cli.schedule_help import ADD
from tacit.work.schedules import asking, shelf
from tacit.work.schedules.asking import Wish
from tacit.work.schedules.times import Understood


@click.command(epilog=ADD)
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
@output.json_option
def add(when: str, task: tuple[str, ...], yes: bool, as_json: bool, **given: Any) -> int:
    """Make a schedule: WHEN, and the text of a TASK or --skill.

    What WHEN means is shown as exact local time first. Runs read the folder and run commands in the
    sandbox without a network, unless --allow or --network say otherwise; nobody is there to be
    asked. Output goes to the inbox, and with --notify to desktop, file:PATH, command:COMMAND or
    webhook:URL.
    """
    as_json = output.json_wanted(as_json)
    chosen = {name: value for name, value in given.items() if value}
    wish = Wish(when=when, task=" ".join(task), **chosen)
    draft, found = asking.draft(wish, settings.load().settings, datetime.now(UTC))
    if not as_json:
        echo(found)
        click.echo(f"in {shorten(draft.binding.project)}")
        if not yes and sys.stdin.isatty() and not click.confirm("Make it?", default=True):
            raise Usage("nothing was made", "say another time")
    schedule, verdict = shelf.make(draft)
    if as_json:
        output.write_json({"schedule": schedule, "next": found.next, "change": verdict.change})
        return 0
    click.echo(f"Made {click.style(plain(schedule.name), bold=True)}")
    click.echo(click.style(f"undo: tacit undo {verdict.change[-8:]}", dim=True))
    _warn()
    return 0


def echo(found: Understood) -> None:
    """Say a time back."""
    click.echo(plain(found.says))
    for shown in found.shown():
        click.echo(f"  next: {shown}")


def _warn() -> None:
    """Say when nothing is there to fire it."""
    from tacit.work.schedules.health import unattended

    if why := unattended():
        click.echo(click.style(f"note: {why}", fg="yellow"))
