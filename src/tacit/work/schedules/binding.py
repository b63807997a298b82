"""What a schedule binds: a time, a zone, a folder, skills, limits, and where the output goes.

It is the file `schedule.json` beside a scheduled skill's SKILL.md, so it goes through the same gate
and has the same history. One that cannot be read says why, and takes no other schedule with it.
"""

import getpass
import re
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import msgspec

from tacit.base.errors import Damaged, Usage
from tacit.skills.scheduled import BINDING
from tacit.work.schedules.recurrence import Once, Timing
from tacit.work.schedules.zones import zone

CatchUp = Literal["latest", "all", "none"]
Overlap = Literal["skip", "queue"]
DEFAULT_ALLOW = (
    "read_file", "list_files", "glob_files", "search_files", "run_skill", "search_skills",
    "search_sessions", "recall", "run_command",
)  # fmt: skip
"""Reading, and commands in the sandbox."""
NEVER = ("add_schedule", "list_schedules", "patch_schedule", "remove_schedule", "ask_user")
"""Tools that no scheduled run is given, whatever its list says."""
_SINK = re.compile(r"(file|command|webhook):(.+)|(desktop)", re.S)


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


def encode(binding: Binding) -> bytes:
    """The file, with one value a line so that its history can be read."""
    return msgspec.json.format(msgspec.json.encode(binding), indent=2) + b"\n"


def decode(data: bytes, name: str) -> Binding:
    """What the file says. Raises `Damaged` with what is wrong."""
    try:
        found = msgspec.json.decode(data, type=Binding)
        zone(found.zone)
    except (msgspec.DecodeError, UnicodeDecodeError, Usage) as error:
        raise Damaged(
            f"{BINDING} of the schedule '{name}' cannot be read: {error}",
            f"go back to a version that could: tacit rollback {name}",
        ) from None
    return found


def check_sinks(sinks: tuple[str, ...]) -> tuple[str, ...]:
    """The places for output in their plain form. Raises `Usage`."""
    for sink in sinks:
        match = _SINK.fullmatch(sink.strip())
        if match is None:
            raise Usage(
                f"'{sink}' is no place for output",
                "one of: file:PATH, command:SHELL COMMAND, webhook:URL, desktop",
            )
    return tuple(dict.fromkeys(sink.strip() for sink in sinks))


def login() -> str:
    """Who is at work here; empty where the system does not say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
