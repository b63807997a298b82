"""Clusters of look-alikes among learned skills, by the index: no skill is opened for it.

The search index says which few skills each one is to be compared with; what the index keeps of
their names and descriptions says how alike they are: the share of telling words that two have in
common. What is alike with one of a cluster is of the cluster, up to as many as a model can look at
together.
"""

import hashlib
import os
from collections.abc import Iterable

import msgspec

from tacit.base.sections import Settings
from tacit.changes.place import Place
from tacit.learn.curate.looking import Found
from tacit.learn.curate.world import World
from tacit.skills import index, words
from tacit.skills.library import Entry, Library
from tacit.skills.scopes import Root
from tacit.skills.search import Search

ALIKE = 0.6
"""The share of telling words, of both together, that two must have in common."""
LARGEST = 12
"""Skills in one cluster."""
_LOOK_AT = 12


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Skills of one place that are much alike."""

    place: str
    """The id of the place that they lie in."""
    root: str
    skills: tuple[str, ...]
    """Their folders, by name."""
    likeness: float
    """Of the two that are most alike."""
    key: str
    """Names these skills in these versions: looked at once, they need not be again."""


class PlaceLibrary(Library):
    """The skills of some places and no others."""

    def __init__(self, places: Iterable[Place], cache: str) -> None:
        self.places = tuple(places)
        self.cwd = self.places[0].root if self.places else os.sep
        self.settings = Settings()
        self.cache = cache
        self.refresh()

    def refresh(self) -> None:
        self.roots = [
            Root(place.root, place.scope, "agents", project=place.project)
            for place in self.places
            if os.path.isdir(place.root)
        ]
        self.snapshots = [(root, index.load(root.path, self.cache)) for root in self.roots]
        for made in ("entries", "_meanings"):
            self.__dict__.pop(made, None)


def clusters(world: World, found: Iterable[Found]) -> list[Cluster]:
    """The clusters of every place, those whose skills are most alike first."""
    free = [skill for skill in found if skill.learned and not skill.kept and not skill.archived]
    listed: list[Cluster] = []
    for place, real in world.pairs:
        own = {skill.skill: skill for skill in free if skill.place == place}
        if len(own) >= 2:
            listed += _of(place, real, own, world.cache)
    return sorted(listed, key=lambda cluster: (-cluster.likeness, cluster.skills))


def _of(place: Place, real: Place, own: dict[str, Found], cache: str) -> list[Cluster]:
    likeness = _likeness(place, own, cache)
    found = []
    for group in _groups(likeness):
        most = max(share for (a, b), share in likeness.items() if a in group and b in group)
        skills = tuple(sorted(group))
        text = "\n".join(f"{skill} {own[skill].digest}" for skill in (real.id, *skills)[1:])
        key = hashlib.sha256(f"{real.id}\n{text}".encode("utf-8", "surrogateescape"))
        found.append(
            Cluster(
                place=real.id,
                root=place.root,
                skills=skills,
                likeness=round(most, 3),
                key=key.hexdigest()[:24],
            )
        )
    return found


def _likeness(place: Place, own: dict[str, Found], cache: str) -> dict[tuple[str, str], float]:
    """How alike each two are, where they are."""
    library = PlaceLibrary([place], cache)
    search = Search(library)
    entries = {_folder(entry): entry for entry in library.entries}
    telling = {skill: _words(entries[skill]) for skill in own if skill in entries}
    found: dict[tuple[str, str], float] = {}
    for skill, mine in telling.items():
        entry = entries[skill]
        for _, other in search.scores(f"{entry.name} {entry.description}", _LOOK_AT):
            theirs = telling.get(name := _folder(other))
            if theirs and name != skill and mine:
                share = 2 * len(mine & theirs) / (len(mine) + len(theirs))
                if share >= ALIKE:
                    found[min(skill, name), max(skill, name)] = share
    return found


def _words(entry: Entry) -> frozenset[str]:
    text = words.with_parts(f"{entry.name}\n{entry.description}")
    return frozenset(words.telling_stems(words.fold(text, singles=True)))


def _groups(likeness: dict[tuple[str, str], float]) -> list[set[str]]:
    """Joined one pair after the other, the most alike first, while a group is not too large."""
    of: dict[str, set[str]] = {}
    for (a, b), _ in sorted(likeness.items(), key=lambda pair: (-pair[1], pair[0])):
        one, other = of.get(a, {a}), of.get(b, {b})
        if one is not other and len(one | other) <= LARGEST:
            joined = one | other
            of.update(dict.fromkeys(joined, joined))
    return list({id(group): group for group in of.values()}.values())


def _folder(entry: Entry) -> str:
    return os.path.relpath(entry.folder, entry.root)
