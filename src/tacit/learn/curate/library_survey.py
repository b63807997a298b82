"""How the library stands: every skill with its use, version and owner, and clusters of look-alikes.

Reads only. A survey costs a stat a skill and one question to each history; what a skill says plays
no part. Look-alikes are found by the search index, which says which few skills each is compared
with: two are alike by the share of distinctive words in their names and descriptions that they
have in common.
"""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from tacit.base import trust
from tacit.base.errors import TacitError
from tacit.base.setting_sections import Settings
from tacit.changes import git_exclude
from tacit.changes.git_store import skill_ref
from tacit.changes.history import History
from tacit.changes.place import Place
from tacit.changes.skill_state import live_name
from tacit.changes.stage import ARCHIVE
from tacit.learn.curate.curation_records import RecordedSkill, SkillActivity, SkillKey
from tacit.learn.curate.curation_scope import CurationScope
from tacit.skills import index
from tacit.skills.library import Entry, Library
from tacit.skills.scopes import Root
from tacit.skills.skill import LEARNED_SOURCE, normal_name
from tacit.traces.skill_uses import Use, uses_of

_DAY = 86_400.0
_WHOSE = {"scheduled": "scheduled", "": "yours"}


class SurveyedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill as the survey found it."""

    place: Place
    key: SkillKey
    name: str
    learned: bool
    archived: bool
    kept: str
    digest: str
    head: str
    """The last version in its history, or empty."""
    used: tuple[Use, ...]
    written: datetime
    """When its SKILL.md was last written, by the disk."""

    @property
    def uses(self) -> int:
        return len(self.used)

    @property
    def last_use(self) -> datetime | None:
        return max((use.at for use in self.used), default=None)

    @property
    def skill(self) -> str:
        """The folder that it has when it is not archived."""
        return self.key[1]


def survey(scope: CurationScope, connection: sqlite3.Connection) -> list[SurveyedSkill]:
    """Every skill of every place, archived ones too."""
    uses = uses_of(connection)
    return [found for place, real in scope.pairs for found in _in(scope, place, real, uses)]


def _in(
    scope: CurationScope, place: Place, real: Place, uses: list[Use]
) -> Iterator[SurveyedSkill]:
    history = History(place, scope.data)
    heads = dict(history.refs.list("refs/skills"))
    pinned = set(history.pinned()) if heads else set()
    by_name = _by_name(uses, real.project)
    place_id = real.id
    all_count = real.scope != "project" or trust.is_trusted(real.project)
    own = {} if all_count else trust.own_below(real.real)

    def found(row: index.Row, skill: str, *, archived: bool) -> SurveyedSkill:
        folder = os.path.join(real.real, ARCHIVE if archived else "", row[index.FOLDER])
        return SurveyedSkill(
            place=place,
            key=(place_id, skill),
            name=row[index.NAME],
            learned=row[index.SOURCE] == LEARNED_SOURCE,
            archived=archived,
            kept=_kept(scope, real, row, skill, pinned)
            or ("" if all_count or trust.is_own(folder, own) else "untrusted"),
            digest=row[index.DIGEST],
            head=heads.get(skill_ref(skill), ""),
            used=tuple(_uses_of_skill(by_name, row[index.NAME], skill)),
            written=_written(place, row, archived=archived),
        )

    live = index.load(place.root, scope.cache).rows if os.path.isdir(place.root) else []
    yield from (found(row, row[index.FOLDER], archived=False) for row in live)
    there = {row[index.FOLDER] for row in live}
    archive = os.path.join(place.root, ARCHIVE)
    for row in index.load(archive, scope.cache).rows if os.path.isdir(archive) else []:
        # Of several that had one name, the last to be archived stands for it.
        skill = live_name(row[index.FOLDER])
        if skill not in there and "/" not in row[index.FOLDER]:
            there.add(skill)
            yield found(row, skill, archived=True)


def activity_of(
    found: SurveyedSkill, before: RecordedSkill | None, now: datetime, history: History
) -> SkillActivity:
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
    return SkillActivity(
        archived=found.archived,
        kept=found.kept,
        moved=moved,
        days=(now - last).total_seconds() / _DAY,
    )


def _by_others(found: SurveyedSkill, before: RecordedSkill, history: History) -> bool:
    """Whether anybody but the curator changed a skill since the last look."""
    for version in history.log(found.skill):
        if version.id == before.head:
            return False
        if version.record.actor != "curator":
            return True
    return False


def _kept(scope: CurationScope, real: Place, row: index.Row, skill: str, pinned: set[str]) -> str:
    """Why curation leaves a skill alone; empty when it does not."""
    source = row[index.SOURCE]
    if source != LEARNED_SOURCE:
        return _WHOSE.get(source, "yours")
    if skill in pinned:
        return "pinned"
    names = (row[index.NAME], skill.rpartition("/")[2])
    if scope.scheduled.intersection(map(normal_name, names)):
        return "scheduled"
    if row[index.REAL]:
        return "linked"
    if real.scope == "project" and git_exclude.is_shared(real, skill):
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


def _uses_of_skill(by_name: dict[str, list[Use]], name: str, skill: str) -> list[Use]:
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
    """Names these skills in these versions: considered once, they need not be again."""


def place_library(places: Sequence[Place], cache: str) -> Library:
    """The skills of some places and no others."""
    roots = [Root(place.root, place.scope, "agents", project=place.project) for place in places]
    return Library(places[0].root if places else os.sep, Settings(), roots=roots, cache=cache)


def clusters(scope: CurationScope, found: Iterable[SurveyedSkill]) -> list[Cluster]:
    """The clusters of every place, those whose skills are most alike first."""
    free = [skill for skill in found if skill.learned and not skill.kept and not skill.archived]
    listed: list[Cluster] = []
    for place, real in scope.pairs:
        own = {skill.skill: skill for skill in free if skill.place == place}
        if len(own) >= 2:
            listed += _clusters_in(place, real, own, scope.cache)
    return sorted(listed, key=lambda cluster: (-cluster.likeness, cluster.skills))


def _clusters_in(
    place: Place, real: Place, own: dict[str, SurveyedSkill], cache: str
) -> list[Cluster]:
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


def _likeness(
    place: Place, own: dict[str, SurveyedSkill], cache: str
) -> dict[tuple[str, str], float]:
    """How alike each two are, where they are."""
    from tacit.skills.skill_search import Search

    library = place_library([place], cache)
    search = Search(library)
    entries = {entry.relative_folder: entry for entry in library.entries}
    telling = {skill: _words(entries[skill]) for skill in own if skill in entries}
    found: dict[tuple[str, str], float] = {}
    for skill, mine in telling.items():
        entry = entries[skill]
        for _, other in search.scores(f"{entry.name} {entry.description}", _LOOK_AT):
            theirs = telling.get(name := other.relative_folder)
            if theirs and name != skill and mine:
                share = 2 * len(mine & theirs) / (len(mine) + len(theirs))
                if share >= ALIKE:
                    found[min(skill, name), max(skill, name)] = share
    return found


def _words(entry: Entry) -> frozenset[str]:
    from tacit.skills import search_index

    text = search_index.with_camel_parts(f"{entry.name}\n{entry.description}")
    return frozenset(search_index.content_stems(search_index.split_cjk(text, singles=True)))


def _groups(likeness: dict[tuple[str, str], float]) -> list[set[str]]:
    """Joined one pair after the other, the most alike first, while a group is not too large."""
    of: dict[str, set[str]] = {}
    for (a, b), _ in sorted(likeness.items(), key=lambda pair: (-pair[1], pair[0])):
        one, other = of.get(a, {a}), of.get(b, {b})
        if one is not other and len(one | other) <= LARGEST:
            joined = one | other
            of.update(dict.fromkeys(joined, joined))
    return list({id(group): group for group in of.values()}.values())
