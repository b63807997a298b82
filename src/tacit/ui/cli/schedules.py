"""`tacit schedule`: the group, and its commands that make, change, remove and run a schedule."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from tacit.agent import agent_events
from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest
from tacit.base import settings
from tacit.base.display import plain
from tacit.base.errors import Usage
from tacit.base.paths import with_tilde
from tacit.changes.change import SKILL_FILE, Verdict
from tacit.skills.library import SCHEDULE_FILE
from tacit.ui.cli import output, schedule_views, user_gate
from tacit.ui.cli.schedule_views import ADD_EPILOG, complete_schedule
from tacit.ui.cli.tasks import EXIT_CODES, EventPrinter
from tacit.ui.cli.user_shell import complete_skill
from tacit.work import reactions, schedule_requests, schedule_store
from tacit.work.delivery import check_destinations
from tacit.work.schedule_requests import ScheduleRequest
from tacit.work.schedule_runner import ByHand
from tacit.work.schedule_store import Binding, Requester, Schedule, encode_binding
from tacit.work.written_times import Understood, understand


@click.command(epilog=ADD_EPILOG)
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
        output.write_json({"schedule": schedule, "next": found.next, "change": verdict.change})
        return 0
    click.echo(f"Made {click.style(plain(schedule.name), bold=True)}")
    click.echo(click.style(f"undo: tacit undo {verdict.change[-8:]}", dim=True))
    _warn_unattended()
    return 0


def write_understood(found: Understood) -> None:
    """Say a time back."""
    click.echo(plain(found.says))
    for shown in found.shown():
        click.echo(f"  next: {shown}")


def _warn_unattended() -> None:
    """Say when nothing is there to fire it."""
    from tacit.work.work_checks import unattended

    if why := unattended():
        click.echo(click.style(f"note: {why}", fg="yellow"))


@click.command(epilog=schedule_views.PAUSE_EPILOG)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def pause(name: str, as_json: bool) -> int:
    """Keep a schedule from firing until it is resumed."""
    as_json = output.json_wanted(as_json)
    schedule = schedule_store.find(name)
    if schedule.binding.paused:
        raise Usage(
            f"'{schedule.name}' is paused already", f"tacit schedule resume {schedule.name}"
        )
    verdict = schedule_store.rebind(schedule, Requester(reason="paused"), paused=True)
    return _write_changed(f"Paused {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_views.PAUSE_EPILOG)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def resume(name: str, as_json: bool) -> int:
    """Let a paused schedule fire again. What it was due for meanwhile is not made up for."""
    as_json = output.json_wanted(as_json)
    schedule = schedule_store.find(name)
    if not schedule.binding.paused:
        raise Usage(f"'{schedule.name}' is not paused", f"tacit schedule show {schedule.name}")
    now = datetime.now(UTC)
    verdict = schedule_store.rebind(schedule, Requester(reason="resumed"), paused=False, since=now)
    return _write_changed(f"Resumed {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_views.EDIT_EPILOG)
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
    schedule = schedule_store.find(name)
    now = datetime.now(UTC)
    changed = _changed_fields(schedule, given, now)
    files: dict[str, bytes] = {}
    if changed:
        bound: Binding = msgspec.structs.replace(schedule.binding, **changed)
        files[SCHEDULE_FILE] = encode_binding(bound)
    if given["source"]:
        files[SKILL_FILE] = user_gate.read_text_source(given["source"])
    elif not changed:
        files[SKILL_FILE] = _edited_text(schedule)
    if "timing" in changed and not as_json:
        write_understood(understand(changed["when"], now, changed["zone"]))
    verdict = schedule_store.rewrite(schedule, files, Requester(reason="edited by hand"))
    return _write_changed(f"Changed {schedule.name}", schedule.name, verdict, as_json)


@click.command(epilog=schedule_views.RM_EPILOG)
@click.argument("name", shell_complete=complete_schedule)
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.json_option
def rm(name: str, yes: bool, as_json: bool) -> int:
    """Remove a schedule. It lies in the trash for 30 days, and undo brings it back."""
    as_json = output.json_wanted(as_json)
    found = [one for one in schedule_store.names() if one == name]
    full = found[0] if found else schedule_store.find(name).name  # one that cannot be read, too
    if not yes and not as_json and sys.stdin.isatty():
        click.confirm(f"Remove {plain(full)}?", abort=True)
    verdict = schedule_store.remove(full, Requester(reason="removed"))
    return _write_changed(f"Removed {full}", full, verdict, as_json)


def _changed_fields(schedule: Schedule, given: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The fields of the binding that the options change. Raises `Usage`, `NotFound`."""
    chosen = (
        settings.load_settings(schedule.binding.project).settings
        if _folder_exists(schedule)
        else None
    )
    chosen = chosen or settings.load_settings().settings
    changed: dict[str, Any] = {}
    if given["when"] or given["zone"]:
        changed |= schedule_requests.retimed(schedule, given["when"], given["zone"], now)
    if given["folder"]:
        changed["project"] = schedule_requests.work_folder(given["folder"])
    if given["skill"]:
        where = changed.get("project", schedule.binding.project)
        changed["skills"] = schedule_requests.skills_for(given["skill"], where, chosen)
    if given["allow"]:
        listed = () if given["allow"] == ("default",) else given["allow"]
        changed["allow"] = schedule_requests.allow_list(listed)
    if given["deliver"]:
        listed = () if given["deliver"] == ("none",) else given["deliver"]
        changed["deliver"] = check_destinations(listed, chosen.schedule.webhook_hosts)
    for field in ("model", "network", "catch_up", "overlap", "seconds"):
        if given[field] is not None:
            changed[field] = given[field]
    return changed


def _folder_exists(schedule: Schedule) -> bool:
    return os.path.isdir(schedule.binding.project)


def _edited_text(schedule: Schedule) -> bytes:
    with open(os.path.join(schedule.folder, SKILL_FILE), encoding="utf-8") as file:
        text = user_gate.edit_text(file.read())
    if text is None:
        raise Usage("nothing was changed", "see what can be: tacit schedule edit --help")
    return text.encode()


def _write_changed(done: str, name: str, verdict: Verdict, as_json: bool) -> int:
    if as_json:
        output.write_json({"name": name, "change": verdict.change, "outcome": verdict.outcome})
        return 0
    click.echo(plain(done))
    click.echo(click.style(f"undo: tacit undo {verdict.change[-8:]}", dim=True))
    return 0


@click.command(epilog=schedule_views.RUN_EPILOG)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def run(name: str, as_json: bool) -> int:
    """Run a schedule now, by hand, and print its output.

    It is a session of its own, as when it fires. On a terminal you are asked before a call that
    needs it. With --json, every event is a line of JSON as it happens.
    """
    as_json = output.json_wanted(as_json)
    schedule = schedule_store.find(name)
    asks = _ask_on_terminal if sys.stdin.isatty() and not as_json else None
    reactions.listen_to_chat()
    hand = ByHand(schedule, approve=asks)
    try:
        return asyncio.run(_print_run(hand, as_json))
    finally:
        hand.close()
        reactions.end_chats()


async def _print_run(hand: ByHand, as_json: bool) -> int:
    shown = EventPrinter()
    reason: agent_events.Reason = "error"
    async for event in hand.stream():
        if as_json:
            click.echo(agent_events.encode_event(event))
        else:
            shown.show(event)
        if isinstance(event, agent_events.End):
            reason = event.reason
    shown.break_line()
    for refused in hand.refused:
        click.echo(f"tacit: not allowed: {plain(refused)}", err=True)
    code = EXIT_CODES.get(reason, 1)
    if code == 1:
        click.echo(f"tacit: stopped: the limit on {reason} was reached", err=True)
    return code


async def _ask_on_terminal(request: ApprovalRequest) -> ApprovalAnswer:
    said = f"Allow {request.tool} {plain(request.subject)[:200]}?"
    yes = await asyncio.to_thread(click.confirm, said, default=False, err=True)
    return "once" if yes else "no"


_SCHEDULE_EPILOG = """\b
Examples:
  tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"
  tacit schedule add "每天 9 點" --skill standup --zone Asia/Taipei
  tacit schedule list
  tacit schedule run NAME

Times: +30m, 18:00, tomorrow 9am, 2026-12-24 18:00, every 2 hours, 每 30 分鐘, 0 9 * * 1-5.
Schedules fire while a worker runs: tacit daemon install keeps one running.
"""


@click.group(epilog=_SCHEDULE_EPILOG, invoke_without_command=True)
@output.json_option
@click.pass_context
def schedule_command(ctx: click.Context, as_json: bool) -> int:
    """Run skills and tasks by the clock; without a command, list the schedules.

    A schedule fires once for each due time, also after a kill or a restart. What it was due for
    while nothing ran is made up for by its rule (--catch-up), and you are told.
    """
    return 0 if ctx.invoked_subcommand else schedule_views.write_schedules(as_json)


for each in (
    add,
    schedule_views.list_schedules,
    schedule_views.show,
    pause,
    resume,
    run,
    edit,
    rm,
    schedule_views.history,
    schedule_views.logs,
):
    schedule_command.add_command(each)
