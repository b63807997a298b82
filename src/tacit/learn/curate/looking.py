"""How the library stands: every skill of some places with its use, its version and its owner.

Reads only. A look costs a stat a skill and one question to each history, not a reading of every
skill: what a skill says plays no part here.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from tacit.agent.uses import Use
from tacit.base.errors import TacitError
from tacit.changes import private
from tacit.changes.history import History
from tacit.changes.place import Place
from tacit.changes.refs import skill_ref
from tacit.changes.stage import ARCHIVE
from tacit.changes.standing import live_name
from tacit.learn.curate.book import Key, Noted
from tacit.learn.curate.states import Seen
from tacit.learn.curate.world import World
from tacit.learn.recording import uses_of
from tacit.skills import index
from tacit.skills.naming import normal
from tacit.skills.skill import LEARNED_SOURCE

_DAY = 86_400.0
_WHOSE = {"scheduled": "scheduled", "": "yours"}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One skill as a look found it."""

    place: Place
    key: Key
    name: str
    learned: bool
    archived: bool
    kept: str
    digest: str
    head: str
    """The last version in its history, or empty."""
    uses: int
    last_use: datetime | None
    written: datetime
    """When its SKILL.md was last written, by the disk."""

    @property
    def skill(self) -> str:
        """The folder that it has when it is not archived."""
        return self.key[1]


def look(world: World, connection: sqlite3.Connection) -> list[Found]:
    """Every skill of every place, archived ones too."""
    uses = uses_of(connection)
    return [found for place, real in world.pairs for found in _in(world, place, real, uses)]


def _in(world: World, place: Place, real: Place, uses: list[Use]) -> Iterator[Found]:
    history = History(place, world.data)
    heads = dict(history.refs.list("refs/skills"))
    pinned = set(history.pinned()) if heads else set()
    by_name = _by_name(uses, real.project)
    place_id = real.id

    def found(row: index.Row, skill: str, *, archived: bool) -> Found:
        own = _of(by_name, row[index.NAME], skill)
        return Found(
            place=place,
            key=(place_id, skill),
            name=row[index.NAME],
            learned=row[index.SOURCE] == LEARNED_SOURCE,
            archived=archived,
            kept=_kept(world, real, row, skill, pinned),
            digest=row[index.DIGEST],
            head=heads.get(skill_ref(skill), ""),
            uses=len(own),
            last_use=max((use.at for use in own), default=None),
            written=_written(place, row, archived=archived),
        )

    live = index.load(place.root, world.cache).rows if os.path.isdir(place.root) else []
    yield from (found(row, row[index.FOLDER], archived=False) for row in live)
    there = {row[index.FOLDER] for row in live}
    archive = os.path.join(place.root, ARCHIVE)
    for row in index.load(archive, world.cache).rows if os.path.isdir(archive) else []:
        # Of several that had one name, the last to be archived stands for it.
        skill = live_name(row[index.FOLDER])
        if skill not in there and "/" not in row[index.FOLDER]:
            there.add(skill)
            yield found(row, skill, archived=True)


def seen(found: Found, before: Noted | None, now: datetime, history: History) -> Seen:
    """What the rules need to know of a skill."""
    edited, moved = found.written, False
    try:
        edited = history.version(found.head).at if found.head else edited
        if before is not None:
            by_hand = found.digest != before.digest and found.head == before.head
            by_others = found.head != before.head and _by_others(found, before, history)
            moved = found.uses > before.uses or by_hand or by_others
    except TacitError:  # a damaged history is no reason to put anything away
        moved = True
    last = max(filter(None, (found.last_use, edited)))
    return Seen(
        archived=found.archived,
        kept=found.kept,
        moved=moved,
        days=(now - last).total_seconds() / _DAY,
    )


def _by_others(found: Found, before: Noted, history: History) -> bool:
    """Whether anybody but the curator changed a skill since the last look."""
    for version in history.log(found.skill):
        if version.id == before.head:
            return False
        if version.record.actor != "curator":
            return True
    return False


def _kept(world: World, real: Place, row: index.Row, skill: str, pinned: set[str]) -> str:
    """Why curation leaves a skill alone; empty when it does not."""
    source = row[index.SOURCE]
    if source != LEARNED_SOURCE:
        return _WHOSE.get(source, "yours")
    if skill in pinned:
        return "pinned"
    names = (row[index.NAME], skill.rpartition("/")[2])
    if world.scheduled.intersection(map(normal, names)):
        return "scheduled"
    if row[index.REAL]:
        return "linked"
    if real.scope == "project" and private.is_shared(real, skill):
        return "shared"
    return ""


def _by_name(uses: Iterable[Use], project: str) -> dict[str, list[Use]]:
    """The uses by skill; for the skills of a project, those that were made in it."""
    found: dict[str, list[Use]] = defaultdict(list)
    below = project.rstrip("/") + "/"
    for use in uses:
        if not project or f"{use.project}/".startswith(below):
            found[use.skill].append(use)
    return found


def _of(by_name: dict[str, list[Use]], name: str, skill: str) -> list[Use]:
    """The uses of a skill: by its own name, or by its folder's."""
    names = dict.fromkeys((name, skill.rpartition("/")[2]))
    return [use for wanted in names for use in by_name.get(wanted, ())]


def _written(place: Place, row: index.Row, *, archived: bool) -> datetime:
    above = os.path.join(place.root, ARCHIVE) if archived else place.root
    path = os.path.join(above, row[index.FOLDER], row[index.FILE])
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return datetime.now(UTC)
