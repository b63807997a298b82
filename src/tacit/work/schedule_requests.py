"""Requests for schedules, by a command or by the agent's tools: checked, then made or changed.

Nothing is assumed: without a time that can be read, a task, and folders, tools and destinations
that exist, a request is refused with what is missing, so that the model asks instead of
guessing. The tools are given to a session by its face, and never to a run of a schedule.
Commands and webhooks for output are the user's to set, by `tacit schedule`.
"""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import msgspec

from tacit.agent.tool import Context, Failed, Result, Tool
from tacit.base import paths
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.base.setting_sections import ScheduleSettings, Settings
from tacit.base.settings import load_settings
from tacit.skills.library import Library
from tacit.work import schedule_runs, schedule_store
from tacit.work.delivery import check_destinations
from tacit.work.due_times import describe, exact_time, local_zone, next_times, zone
from tacit.work.schedule_session import known_tools
from tacit.work.schedule_store import (
    Binding,
    CatchUp,
    Draft,
    Overlap,
    Requester,
    Schedule,
    encode_binding,
    login,
)
from tacit.work.written_times import Understood, stands_in, understand

_LEAST = 3
"""Letters below which a task says nothing; a Chinese sign says more than a letter."""


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; None and empty take what is set."""

    when: str
    task: str = ""
    output: str = ""
    skills: tuple[str, ...] = ()
    short: str = ""
    description: str = ""
    project: str = ""
    zone: str = ""
    model: str = ""
    allow: tuple[str, ...] = ()
    network: bool = False
    catch_up: str = ""
    overlap: str = ""
    seconds: float = 0.0
    deliver: tuple[str, ...] = ()
    by_agent: bool = False
    """Asked for by a model, which may not set every destination."""


def zone_for(wanted: str, settings: ScheduleSettings) -> str:
    """The zone that is meant: named, or set, or the machine's. Raises `Usage`."""
    return zone(wanted).key if wanted else local_zone(settings.zone)


def draft_schedule(
    wish: ScheduleRequest, settings: Settings, now: datetime
) -> tuple[Draft, Understood]:
    """What would be made. Raises `Usage` or `NotFound` with what is missing or wrong."""
    chosen = settings.schedule
    found = understand(wish.when, now, zone_for(wish.zone, chosen))
    if not wish.skills and not says_something(wish.task):
        raise Usage("there is no task", "say what is to be done, or name a skill")
    project = work_folder(wish.project)
    binding = Binding(
        when=found.text,
        timing=found.timing,
        zone=found.zone,
        made=now,
        since=now,
        project=project,
        skills=skills_for(wish.skills, project, settings),
        model=wish.model,
        allow=allow_list(wish.allow),
        network=wish.network,
        catch_up=wish.catch_up or chosen.catch_up,  # type: ignore[arg-type]
        overlap=wish.overlap or chosen.overlap,  # type: ignore[arg-type]
        seconds=wish.seconds or chosen.seconds,
        owner=login(),
    )
    only_in = binding if wish.by_agent else None
    deliver = check_destinations(wish.deliver, chosen.webhook_hosts, only_in=only_in)
    made = Draft(
        binding=msgspec.structs.replace(binding, deliver=deliver),
        task=wish.task,
        output=wish.output,
        short=wish.short,
        description=" ".join(wish.description.split()),
    )
    return made, found


def retimed(schedule: Schedule, when: str, zone_name: str, now: datetime) -> dict[str, Any]:
    """The fields that another time changes. Raises `Usage`."""
    text = when or schedule.binding.when
    found = understand(text, now, zone(zone_name).key if zone_name else schedule.binding.zone)
    return {"when": found.text, "timing": found.timing, "zone": found.zone, "since": now}


def says_something(text: str) -> bool:
    """Whether a text can be a task: `standup` and `喝水` are, `x` is not."""
    return sum(2 if ord(c) > 0x2E7F else 1 for c in text if c.isalnum()) >= _LEAST


def work_folder(wanted: str) -> str:
    """The folder that runs work in. Raises `NotFound`."""
    path = os.path.realpath(os.path.expanduser(wanted or os.getcwd()))
    if not os.path.isdir(path):
        raise NotFound(f"there is no folder {paths.with_tilde(path)}", "make it, or name another")
    return path


def skills_for(names: tuple[str, ...], project: str, settings: Settings) -> tuple[str, ...]:
    """The skills by their own names. Raises `NotFound` with what is near."""
    if not names:
        return ()
    library = Library(project, settings)
    return tuple(dict.fromkeys(library.get(name).name for name in names))


def allow_list(entries: tuple[str, ...]) -> tuple[str, ...]:
    """The allow list, if every entry names a tool. Raises `Usage`."""
    known = known_tools()
    for entry in entries:
        name = entry.partition(":")[0]
        if not any(fnmatchcase(tool, name) for tool in known):
            raise Usage(f"there is no tool '{name}' for a run", f"one of: {', '.join(known)}")
    return tuple(dict.fromkeys(entries))


T = TypeVar("T")


class AddSchedule(msgspec.Struct, frozen=True):
    when: str = ""
    task: str = ""
    output: str = ""
    name: str = ""
    description: str = ""
    skills: list[str] = []
    zone: str = ""
    catch_up: CatchUp = "latest"
    overlap: Overlap = "skip"
    deliver: list[str] = []


class ListSchedules(msgspec.Struct, frozen=True):
    name: str = ""


class PatchSchedule(msgspec.Struct, frozen=True):
    name: str
    when: str = ""
    zone: str = ""
    task: str = ""
    output: str = ""
    paused: bool | None = None
    skills: list[str] | None = None


class RemoveSchedule(msgspec.Struct, frozen=True):
    name: str
    reason: str = ""


def _drafted(call: AddSchedule, context: Context) -> tuple[Draft, Understood]:
    """What a call would make. Raises `Failed`, `Usage` and `NotFound` with why it is refused."""
    if missing := _missing(call):
        raise Failed(
            f"No schedule was made. Missing: {'; '.join(missing)}. Ask the user with ask_user;"
            " do not assume it."
        )
    wish = ScheduleRequest(
        when=call.when,
        task=call.task,
        output=call.output,
        skills=tuple(call.skills),
        short=call.name,
        description=call.description,
        project=context.project,
        zone=call.zone,
        catch_up=call.catch_up,
        overlap=call.overlap,
        deliver=tuple(call.deliver),
        by_agent=True,
    )
    settings = load_settings(context.library.cwd).settings
    draft, found = draft_schedule(wish, settings, datetime.now(UTC))
    _check_said(found, context)
    return draft, found


def _check_said(found: Understood, context: Context) -> None:
    """A time must stand in the user's words. Raises `Failed`."""
    if not stands_in(found, "\n".join(context.user_words)):
        raise Failed(
            f"'{found.text}' stands nowhere in what the user said: {found.says}. Ask the user"
            " with ask_user when it is to run; never invent a time."
        )


async def refuse_adding(call: AddSchedule, context: Context) -> None:
    await _in_thread(lambda: _drafted(call, context))


async def add_schedule(call: AddSchedule, context: Context) -> Result:
    def make() -> str:
        draft, found = _drafted(call, context)
        by = Requester(
            "agent", context.session, "asked for in a conversation", context.approved_by_person
        )
        schedule, verdict = schedule_store.make(draft, by)
        rows = [
            f"made the schedule {schedule.name}: {found.says}",
            *(f"  next: {shown}" for shown in found.shown()),
            *([f"  note: {found.warning}"] if found.warning else []),
            f"run it now: {schedule.command}",
            f"see it: tacit schedule show {schedule.name}",
            f"take it back: tacit undo {verdict.change[-8:]}",
        ]
        return "\n".join(rows)

    return Result(await _in_thread(make))


async def list_schedules(call: ListSchedules, context: Context) -> Result:
    def read() -> str:
        found = [_own(schedule_store.find(call.name))] if call.name else _mine()
        last = schedule_runs.last_runs([schedule.name for schedule in found])
        return "\n".join(_listed(s, last.get(s.name), whole=bool(call.name)) for s in found)

    return Result(context.shorten(await _in_thread(read)) or "(there are no schedules)")


def _patched(call: PatchSchedule, context: Context) -> tuple[Schedule, dict[str, bytes]]:
    """The schedule and its files as a call would have them. Raises what refuses it."""
    schedule = _own(schedule_store.find(call.name))
    now = datetime.now(UTC)
    changed: dict[str, object] = {}
    if call.when or call.zone:
        changed |= retimed(schedule, call.when, call.zone, now)
    if call.when:
        _check_said(understand(call.when, now, str(changed["zone"])), context)
    if call.paused is not None:
        changed |= {"paused": call.paused} | ({} if call.paused else {"since": now})
    if call.skills is not None:
        settings = load_settings(schedule.binding.project).settings
        names = tuple(call.skills)
        changed["skills"] = skills_for(names, schedule.binding.project, settings)
    files: dict[str, bytes] = {}
    if call.task or call.output:
        files["SKILL.md"] = reworded(schedule, call.task, call.output)
    if not changed and not files:
        raise Usage("nothing was to be changed", "give when, zone, task, output or paused")
    if changed:
        bound = msgspec.structs.replace(schedule.binding, **changed)
        files["schedule.json"] = encode_binding(bound)
    return schedule, files


async def refuse_patching(call: PatchSchedule, context: Context) -> None:
    await _in_thread(lambda: _patched(call, context))


async def patch_schedule(call: PatchSchedule, context: Context) -> Result:
    def change() -> str:
        schedule, files = _patched(call, context)
        by = Requester(
            "agent", context.session, "asked for in a conversation", context.approved_by_person
        )
        schedule_store.rewrite(schedule, files, by)
        return _listed(schedule_store.read(schedule.name), None, whole=True)

    return Result(f"changed:\n{await _in_thread(change)}")


async def refuse_removing(call: RemoveSchedule, context: Context) -> None:
    await _in_thread(lambda: _own(schedule_store.find(call.name)))


async def remove_schedule(call: RemoveSchedule, context: Context) -> Result:
    def remove() -> str:
        schedule = _own(schedule_store.find(call.name))
        by = Requester("agent", context.session, call.reason, context.approved_by_person)
        verdict = schedule_store.remove(schedule.name, by)
        back = f"tacit undo {verdict.change[-8:]}"
        return f"removed {schedule.name}; it lies in the trash. The user can bring it back: {back}"

    return Result(await _in_thread(remove))


def reworded(schedule: Schedule, task: str, output: str) -> bytes:
    """The SKILL.md with another task, or another form of output; the rest stays as it is."""
    with open(os.path.join(schedule.folder, "SKILL.md"), encoding="utf-8") as file:
        text = file.read()
    head = text[: text.index(schedule.body)] if schedule.body in text else text
    before, _, after = schedule.body.partition("## Output")
    old_task = before.partition("## Task")[2].strip() if "## Task" in before else before.strip()
    new = schedule_store.body_of(task or old_task, output or after.strip(), schedule.binding.skills)
    return (head.rstrip("\n") + "\n\n" + new).encode()


def preview(arguments: dict[str, object]) -> str:
    """What a call of `add_schedule` or `patch_schedule` would bind, exactly; empty if nothing."""
    when, zone = arguments.get("when"), arguments.get("zone")
    if not isinstance(when, str) or not when.strip():
        return ""
    try:
        settings = load_settings().settings.schedule
        name = zone_for(zone if isinstance(zone, str) else "", settings)
        found = understand(when, datetime.now(UTC), name)
    except TacitError as error:
        return error.explain()
    rows = [found.says, *(f"next: {shown}" for shown in found.shown())]
    return "\n".join(rows + ([f"note: {found.warning}"] if found.warning else []))


def _missing(call: AddSchedule) -> list[str]:
    """What a schedule cannot be without, in words for the model."""
    found = []
    if not call.when.strip():
        found.append("`when`, the time or the recurrence, in the user's own words")
    if not call.skills and not says_something(call.task):
        found.append("`task`, what is to be done each time, in full sentences")
    if not says_something(call.output):
        found.append("`output`, what the run is to give, and in which form")
    return found


def _mine() -> list[Schedule]:
    me = login()
    return [s for s in schedule_store.listing()[0] if s.binding.owner in ("", me)]


def _own(schedule: Schedule) -> Schedule:
    if schedule.binding.owner not in ("", login()):
        raise Usage(f"the schedule '{schedule.name}' is somebody else's", "leave it as it is")
    return schedule


def _listed(
    schedule: Schedule, last: schedule_runs.ScheduleRun | None, *, whole: bool = False
) -> str:
    binding = schedule.binding
    state = "paused" if binding.paused else "active"
    coming = next_times(binding.timing, binding.place, datetime.now(UTC), 3 if whole else 1)
    rows = [f"- {schedule.name} ({state}): {describe(binding.timing, binding.place)}"]
    if not binding.paused:
        rows += [f"  next: {exact_time(at, binding.place)}" for at in coming]
    if last is not None:
        rows.append(f"  last: {last.state}, {exact_time(last.due, binding.place)}")
    if whole:
        rows += [f"  skills: {', '.join(binding.skills)}"] if binding.skills else []
        rows.append(schedule.body.strip())
    return "\n".join(rows)


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except TacitError as error:
        raise Failed(error.explain()) from None


TOOLS: tuple[Tool, ...] = (
    Tool(
        "add_schedule",
        "Make a schedule: `when` in the user's words (every weekday 9:00, +30m, 每天 9 點, cron),"
        " `task` and `output` as full instructions, a short `name`. The times come back exactly;"
        " tell them to the user. Never invent a time.",
        AddSchedule,
        add_schedule,
        "write",
        refuse_adding,
    ),
    Tool(
        "list_schedules",
        "The user's schedules with their next and last runs; one of them in full.",
        ListSchedules,
        list_schedules,
    ),
    Tool(
        "patch_schedule",
        "Change a schedule: its time, its zone, its task, what it gives, or pause it.",
        PatchSchedule,
        patch_schedule,
        "write",
        refuse_patching,
    ),
    Tool(
        "remove_schedule",
        "Remove a schedule; it lies in the trash for a time.",
        RemoveSchedule,
        remove_schedule,
        "write",
        refuse_removing,
    ),
)
