"""`tacit schedule pause`, `resume`, `edit` and `rm`: changes, on record and taken back by undo."""

import os
import sys
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from tacit.base import settings
from tacit.base.errors import Usage
from tacit.base.terminal import plain
from tacit.changes.change import SKILL_FILE, Verdict
from tacit.skills.scheduled import BINDING
from tacit.ui.cli import gating, output, schedule_help
from tacit.ui.cli.names import complete_skill
from tacit.ui.cli.schedule_add import echo
from tacit.ui.cli.scheduling import complete_schedule
from tacit.work.schedules import asking, shelf
from tacit.work.schedules.binding import Binding, encode
from tacit.work.schedules.shelf import By, Schedule
from tacit.work.schedules.times import understand


@click.command(epilog=schedule_help.PAUSE)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def pause(name: str, as_json: bool) -> int:
    """Keep a schedule from firing until it is resumed."""
    as_json = output.json_wanted(as_json)
    schedule = shelf.find(name)
    if schedule.binding.paused:
        raise Usage(
            f"'{schedule.name}' is paused already", f"tacit schedule resume {schedule.name}"
        )
    verdict = shelf.rebind(schedule, By(reason="paused"), paused=True)
    return _tell(f"Paused {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_help.PAUSE)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def resume(name: str, as_json: bool) -> int:
    """Let a paused schedule fire again. What it was due for meanwhile is not made up for."""
    as_json = output.json_wanted(as_json)
    schedule = shelf.find(name)
    if not schedule.binding.paused:
        raise Usage(f"'{schedule.name}' is not paused", f"tacit schedule show {schedule.name}")
    now = datetime.now(UTC)
    verdict = shelf.rebind(schedule, By(reason="resumed"), paused=False, since=now)
    return _tell(f"Resumed {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_help.EDIT)
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
@output.json_option
def edit(name: str, as_json: bool, **given: Any) -> int:
    """Change a schedule: its time, what it may use, where output goes; or its text.

    Without an option its SKILL.md is opened in your editor.
    """
    as_json = output.json_wanted(as_json)
    schedule = shelf.find(name)
    now = datetime.now(UTC)
    changed = _changed(schedule, given, now)
    files: dict[str, bytes] = {}
    if changed:
        bound: Binding = msgspec.structs.replace(schedule.binding, **changed)
        files[BINDING] = encode(bound)
    if given["source"]:
        files[SKILL_FILE] = gating.read_source(given["source"])
    elif not changed:
        files[SKILL_FILE] = _edited(schedule)
    if "timing" in changed and not as_json:
        echo(understand(changed["when"], now, changed["zone"]))
    verdict = shelf.rewrite(schedule, files, By(reason="edited by hand"))
    return _tell(f"Changed {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_help.RM)
@click.argument("name", shell_complete=complete_schedule)
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.json_option
def rm(name: str, yes: bool, as_json: bool) -> int:
    """Remove a schedule. It lies in the trash for 30 days, and undo brings it back."""
    as_json = output.json_wanted(as_json)
    found = [one for one in shelf.names() if one == name]
    full = found[0] if found else shelf.find(name).name  # one that cannot be read, too
    if not yes and not as_json and sys.stdin.isatty():
        click.confirm(f"Remove {plain(full)}?", abort=True)
    verdict = shelf.remove(full, By(reason="removed"))
    return _tell(f"Removed {full}", full, verdict, as_json)


def _changed(schedule: Schedule, given: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The fields of the binding that the options change. Raises `Usage`, `NotFound`."""
    chosen = settings.load(schedule.binding.project).settings if _is_there(schedule) else None
    chosen = chosen or settings.load().settings
    changed: dict[str, Any] = {}
    if given["when"] or given["zone"]:
        changed |= asking.retimed(schedule, given["when"], given["zone"], now)
    if given["folder"]:
        changed["project"] = asking.folder(given["folder"])
    if given["skill"]:
        where = changed.get("project", schedule.binding.project)
        changed["skills"] = asking.skills_for(given["skill"], where, chosen)
    if given["allow"]:
        listed = () if given["allow"] == ("default",) else given["allow"]
        changed["allow"] = asking.allow_list(listed)
    if given["deliver"]:
        listed = () if given["deliver"] == ("none",) else given["deliver"]
        changed["deliver"] = asking.sinks(listed, chosen.schedule)
    for field in ("model", "network", "catch_up", "overlap", "seconds"):
        if given[field] is not None:
            changed[field] = given[field]
    return changed


def _is_there(schedule: Schedule) -> bool:
    return os.path.isdir(schedule.binding.project)


def _edited(schedule: Schedule) -> bytes:
    with open(os.path.join(schedule.folder, SKILL_FILE), encoding="utf-8") as file:
        text = gating.edit_text(file.read())
    if text is None:
        raise Usage("nothing was changed", "see what can be: tacit schedule edit --help")
    return text.encode()


def _tell(done: str, name: str, verdict: Verdict, as_json: bool) -> int:
    if as_json:
        output.write_json({"name": name, "change": verdict.change, "outcome": verdict.outcome})
        return 0
    click.echo(plain(done))
    click.echo(click.style(f"undo: tacit undo {verdict.change[-8:]}", dim=True))
    return 0
