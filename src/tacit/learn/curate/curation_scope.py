"""What a curation works on: some skills folders, their data, a clock; or a copy of all that.

A dry run is the same code on a copy: the skills folders, their histories and the database are
copied into a folder of their own, and what happens there is thrown away with it. Skills that a
schedule refers to are known here, because curation leaves them alone.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec

from tacit.base import paths, trust
from tacit.base.atomic_files import TemporaryFolder
from tacit.base.clock import Clock, SystemClock
from tacit.base.database import DATABASE_FILE, opened
from tacit.base.errors import TacitError
from tacit.changes.history import History
from tacit.changes.place import Place, own_places, project_place, user_place
from tacit.changes.stage import ARCHIVE
from tacit.skills import index
from tacit.skills.library import skills_in_use
from tacit.skills.skill import LEARNED_SOURCE


def scheduled_names() -> frozenset[str]:
    """The names of all skills that a schedule refers to. Raises what the schedules raise."""
    return frozenset(skills_in_use(strict=True))


class CurationScope(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a curation reads and changes."""

    places: tuple[Place, ...]
    data: str
    cache: str
    clock: Clock = SystemClock()
    scheduled: frozenset[str] = frozenset()
    """Names of skills that something on a clock refers to, as `skills.naming.normal` has them."""
    copy_of: tuple[Place, ...] = ()
    """Of a copy: what its places were copied from, in their order."""

    @property
    def database(self) -> str:
        return os.path.join(self.data, DATABASE_FILE)

    @property
    def pairs(self) -> list[tuple[Place, Place]]:
        """Each place, and the place that it stands for: itself, unless this is a copy."""
        return list(zip(self.places, self.copy_of or self.places, strict=True))


def default_scope(clock: Clock | None = None) -> CurationScope:
    """The user's own skills, and those of every project in which a session was seen.

    Raises `Damaged` where a schedule cannot be read: nobody knows then which skills it needs.
    """
    folders = paths.folders()
    return CurationScope(
        places=tuple(known_places(os.path.join(folders.data, DATABASE_FILE))),
        data=folders.data,
        cache=folders.cache,
        clock=clock or SystemClock(),
        scheduled=scheduled_names(),
    )


def known_places(database: str) -> list[Place]:
    """The user's skills folder, and those of projects that sessions were seen in and that are
    trusted or hold something of the user's own."""
    found = {user_place().real: user_place()}
    own = {place.real for place in own_places()}
    if os.path.exists(database):
        try:
            projects = _projects(database)
        except (TacitError, sqlite3.Error):
            projects = []
        for project in projects:
            place = project_place(project)
            counts = place.real in own or trust.is_trusted(place.project)
            if place.scope == "project" and counts:
                found.setdefault(place.real, place)
    return [place for place in found.values() if os.path.isdir(place.root)]


def _projects(database: str) -> list[str]:
    with opened(path=database) as connection:
        rows = connection.execute("SELECT DISTINCT project FROM sessions").fetchall()
    return sorted(row["project"] for row in rows if os.path.isdir(row["project"] or "\0"))


@contextmanager
def copied_scope(scope: CurationScope) -> Iterator[CurationScope]:
    """A copy of `scope` for a `with` block: the same skills, histories and records elsewhere."""
    import shutil

    with TemporaryFolder("dry-run") as folder:
        data = os.path.join(folder, "data")
        os.makedirs(data)
        places = []
        for number, place in enumerate(scope.places):
            copy = Place(os.path.join(folder, "skills", str(number)))
            _copy_skills(place, copy, scope.cache)
            history = History(place, scope.data).folder
            if os.path.isdir(history):
                shutil.copytree(history, History(copy, data).folder, symlinks=True)
            places.append(copy)
        _copy_database(scope.database, os.path.join(data, DATABASE_FILE))
        yield msgspec.structs.replace(
            scope,
            places=tuple(places),
            data=data,
            cache=os.path.join(folder, "cache"),
            copy_of=scope.places,
        )


def _copy_skills(place: Place, copy: Place, cache: str) -> None:
    """What curation could touch is copied whole; of what it leaves alone, only what says so.

    A user's own skill may hold gigabytes, and a copy of a link is a link.
    """
    import shutil

    os.makedirs(copy.root)
    if not os.path.isdir(place.root):
        return
    for row in index.load(place.root, cache).rows:
        source = os.path.join(place.root, row[index.FOLDER])
        target = os.path.join(copy.root, row[index.FOLDER])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if row[index.REAL]:
            os.symlink(row[index.REAL], target)
        elif row[index.SOURCE] == LEARNED_SOURCE:
            shutil.copytree(source, target, symlinks=True)
        else:
            os.mkdir(target)
            shutil.copy2(os.path.join(source, row[index.FILE]), target)
    archive = os.path.join(place.root, ARCHIVE)
    if os.path.isdir(archive):
        shutil.copytree(archive, os.path.join(copy.root, ARCHIVE), symlinks=True)


def _copy_database(source: str, target: str) -> None:
    if not os.path.exists(source):
        return
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
