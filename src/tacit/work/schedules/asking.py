"""From what somebody asked for to a schedule: what is missing is said, and nothing is assumed.

The command and the agent's tool both come through here, so the same holds for both: no schedule
without a time that can be read, a task, and folders, tools and places for output that exist.
"""

import os
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from tacit.base import paths
from tacit.base.errors import NotFound, Usage
from tacit.base.sections import ScheduleSettings, Settings
from tacit.skills.library import Library
from tacit.work.schedules.acting import known_tools
from tacit.work.schedules.binding import Binding, check_sinks, login
from tacit.work.schedules.delivering import check_webhook
from tacit.work.schedules.shelf import Draft, Schedule
from tacit.work.schedules.times import Understood, understand
from tacit.work.schedules.zones import local_zone, zone

_LEAST = 8
"""Letters below which a task says nothing; a Chinese sign says more than a letter."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
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


def zone_for(wanted: str, settings: ScheduleSettings) -> str:
    """The zone that is meant: named, or set, or the machine's. Raises `Usage`."""
    return zone(wanted).key if wanted else local_zone(settings.zone)


def draft(wish: Wish, settings: Settings, now: datetime) -> tuple[Draft, Understood]:
    """What would be made. Raises `Usage` or `NotFound` with what is missing or wrong."""
    chosen = settings.schedule
    found = understand(wish.when, now, zone_for(wish.zone, chosen))
    if not wish.skills and not says_something(wish.task):
        raise Usage("there is no task", "say what is to be done, or name a skill")
    project = folder(wish.project)
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
        deliver=sinks(wish.deliver, chosen),
        owner=login(),
    )
    made = Draft(
        binding=binding,
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
    """Whether a text can be a task: more than a word or two."""
    return sum(2 if ord(c) > 0x2E7F else 1 for c in text if c.isalnum()) >= _LEAST


def folder(wanted: str) -> str:
    """The folder that runs work in. Raises `NotFound`."""
    path = os.path.realpath(os.path.expanduser(wanted or os.getcwd()))
    if not os.path.isdir(path):
        raise NotFound(f"there is no folder {paths.shorten(path)}", "make it, or name another")
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


def sinks(places: tuple[str, ...], settings: ScheduleSettings) -> tuple[str, ...]:
    """The places for output, if they can be used. Raises `Usage`."""
    checked = check_sinks(places)
    for place in checked:
        kind, _, target = place.partition(":")
        if kind == "webhook":
            check_webhook(target, settings.webhook_hosts)
    return checked
