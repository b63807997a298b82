"""Which skills schedules use, read from what the schedules say of themselves.

The schedules are `work/`'s; they lie in the data folder as skills with a `schedule.json` beside the
SKILL.md. Here only the names in it are read, so that the layers below know what must not be put
away.
"""

import os
from typing import TYPE_CHECKING

import msgspec

from tacit.base import paths
from tacit.base.errors import Damaged
from tacit.skills.naming import normal

if TYPE_CHECKING:
    from tacit.skills.library import Entry

BINDING = "schedule.json"


class _Names(msgspec.Struct, frozen=True):
    skills: tuple[str, ...] = ()


def folder() -> str:
    """Where scheduled skills lie."""
    return os.path.join(paths.folders().data, "scheduled")


def skills_in_use(*, strict: bool = False) -> dict[str, tuple[str, ...]]:
    """The skills that schedules run, by name, each with the names of those schedules.

    With `strict`, a schedule that cannot be read raises `Damaged`: it may need any of them.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        names = sorted(os.listdir(folder()))
    except OSError:
        return {}
    for name in names:
        for skill in () if name.startswith(".") else _used_by(name, strict):
            found[normal(skill)] = (*found.get(normal(skill), ()), name)
    return found


def entry(name: str) -> "Entry | None":
    """The scheduled skill called `name`, as a library would list it; no library does by itself."""
    from hashlib import blake2b

    from tacit.base.terminal import one_line
    from tacit.skills.library import Entry
    from tacit.skills.reading import parse_skill

    here = os.path.join(folder(), name)
    if not name or name.startswith(".") or os.path.basename(name) != name:
        return None
    try:
        with open(os.path.join(here, "SKILL.md"), "rb") as file:
            data = file.read(1_000_000)
    except OSError:
        return None
    return Entry(
        name=name,
        description=one_line(parse_skill(data, name).description),
        folder=here,
        scope="user",
        origin="scheduled",
        host="tacit",
        state="active",
        root=folder(),
        real=os.path.realpath(here),
        model_invocable=False,
        digest=blake2b(data, digest_size=8).hexdigest(),
    )


def used_by_schedules(skill: str) -> tuple[str, ...]:
    """The schedules that run the skill called `skill`."""
    return skills_in_use().get(normal(skill), ())


def _used_by(name: str, strict: bool) -> tuple[str, ...]:
    path = os.path.join(folder(), name, BINDING)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(1_000_000), type=_Names).skills
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        if strict and os.path.isdir(os.path.dirname(path)):
            raise Damaged(f"the schedule '{name}' cannot be read: {error}") from error
        return ()
