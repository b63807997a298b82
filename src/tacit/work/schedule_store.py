"""The schedules: what each binds, the folder that holds it, and changing it through the gate.

A schedule is a folder `<short>-<hash8>` with a SKILL.md (what to do) and a `schedule.json`
(time, zone, folder, skills, limits, where output goes). Making, changing and removing one are
changes like any other: checked, recorded, and undone by `tacit undo`. A removed one lies in the
trash for a time. One that cannot be read says why, and takes no other schedule with it.
"""

import getpass
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from tacit.base.display import shorten
from tacit.base.errors import Damaged, NotFound, Refused, TacitError, Usage, did_you_mean
from tacit.base.setting_sections import ScheduleSettings
from tacit.changes.change import (
    SKILL_FILE,
    Actor,
    Archive,
    Create,
    Delete,
    Operation,
    Rewrite,
    Verdict,
    acting_as,
    bytes_of,
)
from tacit.changes.change import make_change as make_it
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import scheduled_place
from tacit.changes.stage import ARCHIVE
from tacit.skills.library import SCHEDULE_FILE, scheduled_folder
from tacit.skills.skill import suggest_name
from tacit.skills.skill_file import parse_skill
from tacit.work.due_times import Once, Timing, zone

CatchUp = Literal["latest", "all", "none"]
Overlap = Literal["skip", "queue"]
DEFAULT_ALLOW = (
    "read_file", "list_files", "glob_files", "search_files", "run_skill", "search_skills",
    "search_sessions", "recall", "run_command",
)  # fmt: skip
"""Reading, and commands in the sandbox."""
NEVER = ("add_schedule", "list_schedules", "patch_schedule", "remove_schedule", "ask_user")
"""Tools that no scheduled run is given, whatever its list says."""


class Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything about a schedule that is not the task itself."""

    when: str
    """As it was asked for."""
    timing: Timing
    zone: str
    made: datetime
    since: datetime
    """Due times after this count: when it was made, or its time last changed, or resumed."""
    project: str
    """The folder that its runs work in."""
    skills: tuple[str, ...] = ()
    """Skills that a run activates before the task."""
    model: str = ""
    allow: tuple[str, ...] = ()
    """Tools, or patterns as in agent.allow; empty takes `DEFAULT_ALLOW`."""
    network: bool = False
    """Whether its commands may use the network."""
    catch_up: CatchUp = "latest"
    overlap: Overlap = "skip"
    seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 600.0
    """How long a run may take."""
    deliver: tuple[str, ...] = ()
    """Where output goes beside the inbox: `file:PATH`, `command:…`, `webhook:URL`, `desktop`."""
    paused: bool = False
    owner: str = ""
    """The login of whoever made it."""
    format: Literal[1] = 1

    @property
    def place(self) -> ZoneInfo:
        return zone(self.zone)

    @property
    def once(self) -> bool:
        return isinstance(self.timing, Once)

    @property
    def allowed(self) -> tuple[str, ...]:
        return self.allow or DEFAULT_ALLOW


def encode_binding(binding: Binding) -> bytes:
    """The file, with one value a line so that its history can be read."""
    return msgspec.json.format(msgspec.json.encode(binding), indent=2) + b"\n"


def decode_binding(data: bytes, name: str) -> Binding:
    """What the file says. Raises `Damaged` with what is wrong."""
    try:
        found = msgspec.json.decode(data, type=Binding)
        zone(found.zone)
    except (msgspec.DecodeError, UnicodeDecodeError, Usage) as error:
        raise Damaged(
            f"{SCHEDULE_FILE} of the schedule '{name}' cannot be read: {error}",
            f"go back to a version that could: tacit rollback {name}",
        ) from None
    return found


def login() -> str:
    """Who is at work here; empty where the system does not say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


_LONGEST_SHORT = 40
_DESCRIPTION = 300


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule, as it stands on the disk."""

    name: str
    binding: Binding
    description: str
    body: str
    folder: str

    @property
    def command(self) -> str:
        """What a person types in a chat to run it by hand."""
        return f"/sched-{self.name}"


class Broken(msgspec.Struct, frozen=True):
    """A folder that should be a schedule and cannot be read."""

    name: str
    why: str
    hint: str = ""


def names() -> list[str]:
    """The folders of the schedules, readable or not."""
    try:
        found = sorted(os.listdir(scheduled_folder()))
    except OSError:
        return []
    return [
        n
        for n in found
        if not n.startswith(".") and os.path.isdir(os.path.join(scheduled_folder(), n))
    ]


def listing() -> tuple[list[Schedule], list[Broken]]:
    """Every schedule, and those that cannot be read with the reason."""
    good: list[Schedule] = []
    bad: list[Broken] = []
    for name in names():
        try:
            good.append(read(name))
        except TacitError as error:
            bad.append(Broken(name, error.message, error.hint))
    return good, bad


def read(name: str) -> Schedule:
    """The schedule in the folder `name`. Raises `NotFound` or `Damaged`."""
    path = os.path.join(scheduled_folder(), name)
    try:
        with open(os.path.join(path, SKILL_FILE), "rb") as file:
            skill = parse_skill(file.read(1_000_000), name)
        with open(os.path.join(path, SCHEDULE_FILE), "rb") as file:
            binding = decode_binding(file.read(1_000_000), name)
    except FileNotFoundError as error:
        if not os.path.isdir(path):
            raise NotFound(
                f"there is no schedule '{name}'", "see them: tacit schedule list"
            ) from None
        missing = os.path.basename(str(error.filename))
        hint = f"bring it back: tacit rollback {name}"
        raise Damaged(f"the schedule '{name}' has lost its {missing}", hint) from None
    except OSError as error:
        raise Damaged(f"the schedule '{name}' cannot be read: {error.strerror}") from error
    return Schedule(
        name=name, binding=binding, description=skill.description, body=skill.body, folder=path
    )


def find(name: str) -> Schedule:
    """The schedule that `name` means: its name, the name without its hash, or a clear beginning."""
    known = names()
    near: list[str] = []
    for wanted in (name.removeprefix("/"), name.removeprefix("/").removeprefix("sched-")):
        near = near or [n for n in known if n == wanted]
        near = near or [n for n in known if n.rpartition("-")[0] == wanted]
        near = near or [n for n in known if wanted and n.startswith(wanted)]
    if len(near) == 1:
        return read(near[0])
    if near:
        raise Usage(f"'{name}' could be several schedules", f"one of: {', '.join(near)}")
    names_ = [*known, *(n.rpartition("-")[0] for n in known)]
    hint = did_you_mean(wanted, names_, "see them: tacit schedule list", 2)
    raise NotFound(f"there is no schedule '{name}'", hint)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a new schedule is to be."""

    binding: Binding
    task: str = ""
    output: str = ""
    short: str = ""
    """The first part of its name; made of the task where it is empty."""
    description: str = ""


class Requester(msgspec.Struct, frozen=True):
    """On whose behalf a schedule is changed, and why."""

    actor: Actor = "user"
    session: str = ""
    reason: str = ""
    agreed: bool = True
    """Whether a person said yes to this very change; without it, an agent's edit waits for one."""


USER = Requester()


def make(draft: Draft, by: Requester = USER) -> tuple[Schedule, Verdict]:
    """Store a new schedule. Raises `Refused` where the gate does not let it in."""
    short = _short(draft)
    seed = f"{short}\0{draft.binding.made.isoformat()}\0{secrets.token_hex(8)}"
    name = f"{short}-{sha256(seed.encode()).hexdigest()[:8]}"
    files = {SKILL_FILE: _skill_file(name, draft), SCHEDULE_FILE: encode_binding(draft.binding)}
    verdict = _propose(name, Create(files), by)
    return read(name), verdict


def rebind(schedule: Schedule, by: Requester = USER, **changed: Any) -> Verdict:
    """Change what a schedule binds. Raises `Refused`."""
    binding = msgspec.structs.replace(schedule.binding, **changed)
    return rewrite(schedule, {SCHEDULE_FILE: encode_binding(binding)}, by)


def rewrite(schedule: Schedule, changed: dict[str, bytes], by: Requester = USER) -> Verdict:
    """Give some of a schedule's files another content, on the version that stands there now."""
    now = open_gate().state_of(schedule.name, scheduled_place().root)
    files = bytes_of(now.contents.files) | changed
    return _propose(schedule.name, Rewrite(files), by, now.head.id if now.head else "")


def remove(name: str, by: Requester = USER) -> Verdict:
    """Put a schedule into the trash. Raises `Refused`."""
    return _propose(name, Archive(), by)


def trash() -> list[str]:
    """The folders in the trash."""
    try:
        return sorted(n for n in os.listdir(_trash_folder()) if not n.startswith("."))
    except OSError:
        return []


def empty_trash(now: datetime, days: int = ScheduleSettings().trash_days) -> list[str]:
    """Delete what has lain in the trash for so long; its history stays. The names."""
    gone = []
    gate = open_gate()
    history = gate.open_place(scheduled_place().root).history
    for key in trash():
        head = history.head(key.split("~", 1)[0])
        archived_at = head.at if head is not None else _moved(key)
        if now - archived_at < timedelta(days=days):
            continue
        try:
            _propose(key, Delete(), Requester(reason=f"in the trash for {days} days"))
        except Refused:
            continue
        gone.append(key)
    return gone


def open_gate(by: Requester = USER) -> Gate:
    """The gate over the scheduled skills alone: the library has nothing to say of them."""
    places, around = [scheduled_place()], NoNeighbours()
    if by.agreed or by.actor != "agent":
        return Gate(places, neighbours=around, approver=lambda effect, asks: "yes")
    from tacit.agent.skill_tools import agent_gate

    return agent_gate(places, by.session, agreed=False, neighbours=around)


def _propose(skill: str, operation: Operation, by: Requester, base: str = "") -> Verdict:
    root = scheduled_place().root
    with acting_as(by.actor):
        change = make_it(
            skill, operation, reason=by.reason, session=by.session, base=base, root=root
        )
        verdict = open_gate(by).propose(change)
    if verdict.applied:
        return verdict
    refusal = verdict.refusal
    assert refusal is not None
    if verdict.outcome == "proposed":
        waits = f"see it: tacit inbox {verdict.change[-8:]}"
        raise Refused(f"it waits for the user in the inbox: {refusal.reason}", waits)
    raise Refused(f"[{refusal.rule}] {refusal.reason}", refusal.hint)


def _skill_file(name: str, draft: Draft) -> bytes:
    import yaml

    head = {
        "name": name,
        "description": draft.description or _described(draft),
        "metadata": {"source": "scheduled"},
    }
    dumped = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{dumped}---\n\n{body_of(draft.task, draft.output, draft.binding.skills)}".encode()


def body_of(task: str, output: str, skills: Sequence[str] = ()) -> str:
    """The text of a scheduled skill: what to do, and what to give."""
    named = ", ".join(skills)
    what = task.strip() or f"Carry out what the active skills ask for: {named}."
    give = output.strip() or "The result in plain sentences, and nothing around it."
    return f"## Task\n\n{what}\n\n## Output\n\n{give}\n"


def _described(draft: Draft) -> str:
    text = " ".join(draft.task.split()) or f"Runs {', '.join(draft.binding.skills)}."
    return f"By schedule: {shorten(text, _DESCRIPTION)}"


def _short(draft: Draft) -> str:
    words = draft.short or " ".join(draft.binding.skills) or " ".join(draft.task.split()[:4])
    return suggest_name(words or "task")[:_LONGEST_SHORT].strip("-") or "task"


def _trash_folder() -> str:
    return os.path.join(scheduled_folder(), ARCHIVE)


def _moved(key: str) -> datetime:
    path = os.path.join(_trash_folder(), key)
    return datetime.fromtimestamp(os.lstat(path).st_ctime, UTC)
