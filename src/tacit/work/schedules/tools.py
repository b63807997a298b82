"""The agent's tools for schedules: making, listing, changing and removing them for its user.

They are given to a session by its face, and never to a run of a schedule. Making one refuses
without a time that can be read and a body that says what to do and what to output, and says which
of them is missing, so that the model asks instead of assuming. Commands and webhooks for output are
the user's to set, by `tacit schedule`.
"""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.base.errors import TacitError, Usage
from tacit.base.settings import load
from tacit.work.schedules import asking, runs, shelf
from tacit.work.schedules.asking import Wish, says_something
from tacit.work.schedules.binding import Binding, CatchUp, Overlap, encode, login
from tacit.work.schedules.delivering import file_path
from tacit.work.schedules.recurrence import describe, next_times
from tacit.work.schedules.shelf import By, Schedule
from tacit.work.schedules.zones import exact

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


async def add_schedule(call: AddSchedule, context: Context) -> Result:
    if missing := _missing(call):
        raise Failed(
            f"No schedule was made. Missing: {'; '.join(missing)}. Ask the user with ask_user;"
            " do not assume it."
        )

    def make() -> str:
        settings = load(context.library.cwd).settings
        wish = Wish(
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
        )
        draft, found = asking.draft(wish, settings, datetime.now(UTC))
        _check_places(draft.binding)
        by = By("agent", context.session, "asked for in a conversation", context.agreed)
        schedule, verdict = shelf.make(draft, by)
        rows = [
            f"made the schedule {schedule.name}: {found.says}",
            *(f"  next: {shown}" for shown in found.shown()),
            f"run it now: {schedule.command}",
            f"see it: tacit schedule show {schedule.name}",
            f"take it back: tacit undo {verdict.change[-8:]}",
        ]
        return "\n".join(rows)

    _check_sinks(call.deliver, context)
    return Result(await _told(make))


async def list_schedules(call: ListSchedules, context: Context) -> Result:
    def read() -> str:
        found = [_own(shelf.find(call.name))] if call.name else _mine()
        last = runs.last_of([schedule.name for schedule in found])
        return "\n".join(_listed(s, last.get(s.name), whole=bool(call.name)) for s in found)

    return Result(context.shorten(await _told(read)) or "(there are no schedules)")


async def patch_schedule(call: PatchSchedule, context: Context) -> Result:
    def change() -> str:
        schedule = _own(shelf.find(call.name))
        now = datetime.now(UTC)
        changed: dict[str, object] = {}
        if call.when or call.zone:
            changed |= asking.retimed(schedule, call.when, call.zone, now)
        if call.paused is not None:
            changed |= {"paused": call.paused} | ({} if call.paused else {"since": now})
        if call.skills is not None:
            settings = load(schedule.binding.project).settings
            names = tuple(call.skills)
            changed["skills"] = asking.skills_for(names, schedule.binding.project, settings)
        files: dict[str, bytes] = {}
        if call.task or call.output:
            files["SKILL.md"] = reworded(schedule, call.task, call.output)
        if not changed and not files:
            raise Usage("nothing was to be changed", "give when, zone, task, output or paused")
        if changed:
            bound = msgspec.structs.replace(schedule.binding, **changed)
            files["schedule.json"] = encode(bound)
        by = By("agent", context.session, "asked for in a conversation", context.agreed)
        shelf.rewrite(schedule, files, by)
        return _listed(shelf.read(schedule.name), None, whole=True)

    return Result(f"changed:\n{await _told(change)}")


async def remove_schedule(call: RemoveSchedule, context: Context) -> Result:
    def remove() -> str:
        schedule = _own(shelf.find(call.name))
        by = By("agent", context.session, call.reason, context.agreed)
        verdict = shelf.remove(schedule.name, by)
        back = f"tacit undo {verdict.change[-8:]}"
        return f"removed {schedule.name}; it lies in the trash. The user can bring it back: {back}"

    return Result(await _told(remove))


def reworded(schedule: Schedule, task: str, output: str) -> bytes:
    """The SKILL.md with another task, or another form of output; the rest stays as it is."""
    with open(os.path.join(schedule.folder, "SKILL.md"), encoding="utf-8") as file:
        text = file.read()
    head = text[: text.index(schedule.body)] if schedule.body in text else text
    before, _, after = schedule.body.partition("## Output")
    old_task = before.partition("## Task")[2].strip() if "## Task" in before else before.strip()
    new = shelf.body_of(task or old_task, output or after.strip(), schedule.binding.skills)
    return (head.rstrip("\n") + "\n\n" + new).encode()


def preview(arguments: dict[str, object]) -> str:
    """What a call of `add_schedule` or `patch_schedule` would bind, exactly; empty if nothing."""
    when, zone = arguments.get("when"), arguments.get("zone")
    if not isinstance(when, str) or not when.strip():
        return ""
    try:
        from tacit.work.schedules.times import understand

        settings = load().settings.schedule
        name = asking.zone_for(zone if isinstance(zone, str) else "", settings)
        found = understand(when, datetime.now(UTC), name)
    except TacitError as error:
        return f"{error.message}; {error.hint}"
    return "\n".join([found.says, *(f"next: {shown}" for shown in found.shown())])


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


def _check_sinks(places: list[str], context: Context) -> None:
    for place in places:
        if place != "desktop" and not place.startswith("file:"):
            raise Failed(
                f"'{place}' is for the user to set: tacit schedule edit NAME --deliver …."
                " Here: desktop, or file:PATH in the project"
            )


def _check_places(binding: Binding) -> None:
    """A file for output must lie in the project."""
    root = os.path.realpath(binding.project) + os.sep
    for place in binding.deliver:
        if place.startswith("file:"):
            path = file_path(place.removeprefix("file:"), "name", binding, binding.made)
            if not os.path.realpath(path).startswith(root):
                raise Usage(f"{place} is outside the project", "name a file in the project")


def _mine() -> list[Schedule]:
    me = login()
    return [s for s in shelf.listing()[0] if s.binding.owner in ("", me)]


def _own(schedule: Schedule) -> Schedule:
    if schedule.binding.owner not in ("", login()):
        raise Usage(f"the schedule '{schedule.name}' is somebody else's", "leave it as it is")
    return schedule


def _listed(schedule: Schedule, last: runs.Row | None, *, whole: bool = False) -> str:
    binding = schedule.binding
    state = "paused" if binding.paused else "active"
    coming = next_times(binding.timing, binding.place, datetime.now(UTC), 3 if whole else 1)
    rows = [f"- {schedule.name} ({state}): {describe(binding.timing, binding.place)}"]
    if not binding.paused:
        rows += [f"  next: {exact(at, binding.place)}" for at in coming]
    if last is not None:
        rows.append(f"  last: {last.state}, {exact(last.due, binding.place)}")
    if whole:
        rows += [f"  skills: {', '.join(binding.skills)}"] if binding.skills else []
        rows.append(schedule.body.strip())
    return "\n".join(rows)


async def _told(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except TacitError as error:
        raise Failed(f"{error.message}; {error.hint}" if error.hint else error.message) from None


TOOLS: tuple[Tool, ...] = (
    Tool(
        "add_schedule",
        "Make a schedule: `when` in the user's words (every weekday 9:00, +30m, 每天 9 點, cron),"
        " `task` and `output` as full instructions, a short `name`. The times come back exactly;"
        " tell them to the user. Never invent a time.",
        AddSchedule,
        add_schedule,
        "write",
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
    ),
    Tool(
        "remove_schedule",
        "Remove a schedule; it lies in the trash for a time.",
        RemoveSchedule,
        remove_schedule,
        "write",
    ),
)
