"""What the gate asks about the other skills: is a name taken, and what is like this text.

The library answers both from its index, so a change costs the same in a library of any size.
"""

import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.skills.library import Library
from tacit.skills.reading import read_skill
from tacit.skills.skill import Origin, Skill

if TYPE_CHECKING:
    from tacit.skills.search import Search

STALE_SECONDS = 30.0
MOST_CHANGED = 100


class Neighbour(msgspec.Struct, frozen=True):
    """A skill that a name means: the skills folder it lies in, and its path below that."""

    name: str
    root: str
    folder: str
    origin: Origin


class Neighbours(Protocol):
    """Knows the skills that there are. May be a moment behind the disk; never raises."""

    def find(self, name: str, root: str = "") -> Neighbour | None:
        """The skill that `name` means, in `root` alone where one is given."""
        ...

    def alike(self, skill: Skill) -> list[Skill]:
        """A few skills that are about the same as `skill`, best first."""
        ...

    def noticed(self, root: str, folder: str) -> None:
        """The skill in `folder` below `root` was just changed."""
        ...


class Nobody:
    """No other skills: for a single folder, and for tests."""

    def find(self, name: str, root: str = "") -> Neighbour | None:
        return None

    def alike(self, skill: Skill) -> list[Skill]:
        return []

    def noticed(self, root: str, folder: str) -> None:
        return None


class LibraryNeighbours:
    """The skills of a library, read when first asked for and again when that is a while ago.

    Reading a large library again after each change would make the next one wait for a look at
    every folder; what was changed here is remembered instead.
    """

    def __init__(self, cwd: str | None = None, *, clock: Clock | None = None) -> None:
        self._cwd = cwd
        self._clock = clock or SystemClock()
        self._library: Library | None = None
        self._search: Search | None = None
        self._read_at = 0.0
        self._changed: dict[str, tuple[str, str]] = {}

    def find(self, name: str, root: str = "") -> Neighbour | None:
        library = self._get()
        real = os.path.realpath(root) if root else ""
        for where, folder in self._changed.values():
            if folder.rsplit("/", 1)[-1] == name and real in ("", os.path.realpath(where)):
                found = self._read(where, folder)
                if found is not None:
                    origin: Origin = "learned" if found.learned else "user"
                    return Neighbour(found.name, where, folder, origin)
        entry = library.find(name) if "/" not in name else None
        if real and (entry is None or os.path.realpath(entry.root) != real):
            entry = next(
                (
                    other
                    for other in library.entries
                    if name in (other.name, *other.aliases) and os.path.realpath(other.root) == real
                ),
                None,
            )
        if entry is None or not os.path.isdir(entry.folder):
            return None
        folder = os.path.relpath(entry.folder, entry.root)
        return Neighbour(entry.name, entry.root, folder, entry.origin)

    def alike(self, skill: Skill) -> list[Skill]:
        text = f"{skill.name} {skill.description}\n{skill.body[:4000]}"
        library = self._get()
        if self._search is None:
            from tacit.skills.search import Search

            self._search = Search(library)
        hits = self._search.find(text, 8)
        listed = {hit.entry.folder: (hit.entry.root, hit.entry.folder) for hit in hits}
        for root, folder in self._changed.values():
            listed.setdefault(os.path.join(root, folder), (root, folder))
        found = [self._read(*where) for where in listed.values()]
        return [other for other in found if other is not None]

    def noticed(self, root: str, folder: str) -> None:
        path = os.path.join(root, folder)
        self._changed.pop(path, None)
        self._changed[path] = (root, folder)
        if len(self._changed) > MOST_CHANGED:
            self._library = None

    def _read(self, root: str, folder: str) -> Skill | None:
        try:
            return read_skill(os.path.join(root, folder))
        except TacitError:  # gone since the index was made
            return None

    def _get(self) -> Library:
        now = self._clock.monotonic()
        if self._library is None or now - self._read_at > STALE_SECONDS:
            self._library, self._search, self._read_at = Library(self._cwd), None, now
            self._changed.clear()
        return self._library
