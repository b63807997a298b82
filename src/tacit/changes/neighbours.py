"""What the gate asks about the other skills: is a name taken, and does a new skill repeat one.

The library answers from its index, so a change costs the same in a library of any size. Texts are
compared by runs of three words of description and body: they count as alike when they say the same
in the same words, not when they are on the same subject. Two skills with nearly the same
description are alike as well, unless the new one names something that the other does not: one
pattern written out for two products is two skills.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import msgspec

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.changes.change import Refusal
from tacit.skills.skill import Origin, Skill
from tacit.skills.skill_file import read_skill

if TYPE_CHECKING:
    from tacit.skills.library import Library
    from tacit.skills.skill_search import Search


REPEATS = 0.6
"""The part of the new text that must stand in the old one."""
SAME_DESCRIPTION = 0.8
"""The part of all words of two descriptions that they must share."""

_WORD = re.compile(r"[^\W_]+")
_RUN = 3
_COMMON = frozenset(
    _WORD.findall(
        "a an and any are as at be by can do for from how if in into is it its of on or that the "
        "then this to use used using user users want wants when which with you your skill skills"
    )
)


class Likeness(msgspec.Struct, frozen=True):
    """A skill that the new one repeats, and how much of it, from 0 to 1."""

    skill: Skill
    share: float
    measure: str


def nearest_duplicate(new: Skill, candidates: Iterable[Skill]) -> Likeness | None:
    """The candidate that `new` repeats most, where that is too much."""
    found: list[Likeness] = []
    runs, words = shingles(_text(new)), content_words(new.description)
    for other in candidates:
        share = contained(runs, shingles(_text(other)))
        if share >= REPEATS:
            found.append(Likeness(other, share, "text"))
            continue
        theirs = content_words(other.description)
        both = len(words & theirs) / max(1, len(words | theirs))
        own = (content_words(new.name) & words) - theirs
        if both >= SAME_DESCRIPTION and min(len(words), len(theirs)) >= 4 and not own:
            found.append(Likeness(other, both, "description"))
    return max(found, key=lambda likeness: likeness.share, default=None)


def duplicate_refusal(new: Skill, likeness: Likeness) -> Refusal:
    name = likeness.skill.name
    what = "of its text" if likeness.measure == "text" else "of the description's words"
    return Refusal(
        "near-duplicate",
        "near-duplicate",
        f"'{new.name}' mostly repeats '{name}': {likeness.share:.0%} {what} stand there",
        f"edit '{name}' instead, or say in it what is different here",
        alternatives=(name,),
        overridable=True,
    )


def shingles(text: str) -> frozenset[int]:
    """Every run of three words in `text`, as numbers."""
    words = [word.casefold() for word in _WORD.findall(text)]
    runs = (" ".join(words[i : i + _RUN]) for i in range(max(1, len(words) - _RUN + 1)))
    return frozenset(
        int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest()) for run in runs if run
    )


def contained(new: frozenset[int], old: frozenset[int]) -> float:
    """Which part of `new` is in `old`."""
    return len(new & old) / len(new) if new else 0.0


def sketch(text: str, size: int = 64) -> tuple[int, ...]:
    """The smallest numbers of `text`'s runs: enough to compare two texts, small enough to keep."""
    return tuple(sorted(shingles(text))[:size])


def resemblance(one: Iterable[int], other: Iterable[int], size: int = 64) -> float:
    """How alike the texts behind two sketches are, from 0 to 1."""
    a, b = set(one), set(other)
    smallest = sorted(a | b)[:size]
    return sum(1 for n in smallest if n in a and n in b) / len(smallest) if smallest else 0.0


def _text(skill: Skill) -> str:
    return f"{skill.description}\n{skill.body}"


def content_words(text: str) -> frozenset[str]:
    """The words of `text` that say something, in small letters."""
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _COMMON


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

    def changed(self, root: str, folder: str) -> None:
        """The skill in `folder` below `root` was just changed."""
        ...


class NoNeighbours:
    """No other skills: for a single folder, and for tests."""

    def find(self, name: str, root: str = "") -> Neighbour | None:
        return None

    def alike(self, skill: Skill) -> list[Skill]:
        return []

    def changed(self, root: str, folder: str) -> None:
        return None


class LibraryNeighbours:
    """The skills of a library, read when first asked for and again when that is a while ago.

    Reading a large library again after each change would make the next one wait for a look at
    every folder; what was changed here is remembered instead.
    """

    def __init__(
        self,
        cwd: str | None = None,
        *,
        clock: Clock | None = None,
        library: "Library | None" = None,
    ) -> None:
        """`library`: one that was just read."""
        self._cwd = cwd
        self._clock = clock or SystemClock()
        self._library = library
        self._search: Search | None = None
        self._read_at = self._clock.monotonic() if library is not None else 0.0
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
                (other for other in library.known_as(name) if os.path.realpath(other.root) == real),
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
            from tacit.skills.skill_search import Search

            self._search = Search(library)
        # What came with a clone counts for nobody: it is no reason to leave a new skill out.
        hits = [hit for hit in self._search.find(text, 8) if hit.entry.state != "untrusted"]
        listed = {hit.entry.folder: (hit.entry.root, hit.entry.folder) for hit in hits}
        for root, folder in self._changed.values():
            listed.setdefault(os.path.join(root, folder), (root, folder))
        found = [self._read(*where) for where in listed.values()]
        return [other for other in found if other is not None]

    def changed(self, root: str, folder: str) -> None:
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

    def _get(self) -> "Library":
        from tacit.skills.library import Library

        now = self._clock.monotonic()
        if self._library is None or now - self._read_at > STALE_SECONDS:
            self._library, self._search, self._read_at = Library(self._cwd), None, now
            self._changed.clear()
        return self._library
