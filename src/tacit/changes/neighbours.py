"""What the gate asks about the other skills: is a name taken, and what is like this text.

The library answers both from its index, so a change costs the same in a library of any size.
"""

import os
from typing import Protocol

import msgspec

from tacit.base.errors import TacitError
from tacit.changes.place import Place
from tacit.skills.library import Library
from tacit.skills.reading import read_skill
from tacit.skills.skill import Origin, Skill


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


class Nobody:
    """No other skills: for a single folder, and for tests."""

    def find(self, name: str, root: str = "") -> Neighbour | None:
        return None

    def alike(self, skill: Skill) -> list[Skill]:
        return []


class LibraryNeighbours:
    """The skills of a library, read when first asked for, and again after `forget`."""

    def __init__(self, cwd: str | None = None, library: Library | None = None) -> None:
        self._cwd = cwd
        self._library = library

    def forget(self) -> None:
        """Look at the disk again the next time."""
        if self._library is not None:
            self._cwd, self._library = self._library.cwd, None

    def find(self, name: str, root: str = "") -> Neighbour | None:
        library = self._get()
        entry = library.find(name) if "/" not in name else None
        if root and (entry is None or os.path.realpath(entry.root) != os.path.realpath(root)):
            real = os.path.realpath(root)
            entry = next(
                (
                    other
                    for other in library.entries
                    if name in (other.name, *other.aliases) and os.path.realpath(other.root) == real
                ),
                None,
            )
        if entry is None:
            return None
        folder = os.path.relpath(entry.folder, entry.root)
        return Neighbour(entry.name, entry.root, folder, entry.origin)

    def alike(self, skill: Skill) -> list[Skill]:
        text = f"{skill.name} {skill.description}\n{skill.body[:4000]}"
        found = []
        for hit in self._get().search(text, 8):
            try:
                found.append(read_skill(os.path.join(hit.entry.folder, hit.entry.file)))
            except TacitError:  # gone since the index was made
                continue
        return found

    def _get(self) -> Library:
        if self._library is None:
            self._library = Library(self._cwd)
        return self._library


def places(library: Library) -> list[Place]:
    """Every skills folder of a library as a place, those that win first."""
    return [
        Place(root.path, root.scope, root.project)  # type: ignore[arg-type]
        for root in library.roots
    ]
