"""What many tasks agree on: equal lessons joined, contradictions found and settled, a threshold.

All of it is done by code over the tables of `support`. A model is shown lessons that may belong
together, a few at a time and each pair once, level by level; it says which are the same and which
contradict each other, and code takes that only where the lessons do not pull in two directions.
Support is never added up by a model.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from tacit.base.prompts import prompt
from tacit.learn.distil.analyst import ASKED
from tacit.learn.distil.inquiry import Inquiry
from tacit.learn.distil.lessons import (
    Claim,
    Lesson,
    claim_of,
    contradiction,
    likeness,
    may_join,
    same,
)
from tacit.learn.distil.support import Conflict, KnownLesson, Lessons
from tacit.learn.rates import FEWEST
from tacit.traces.command_purposes import purpose

BATCH = 20
"""Lessons that a merger is shown at a time."""
LEVELS = 5
"""Rounds of merging at most."""
_NEAR = 0.3
"""How near two lessons must be for a merger to see them together."""
_COMMON = 200
"""Lessons that share a word from which it tells nothing."""


class LessonIndex:
    """Lessons by what they claim; those that were joined into another lead there."""

    def __init__(
        self, known: Iterable[KnownLesson] = (), joined: Mapping[str, str] | None = None
    ) -> None:
        self.claims: dict[str, Claim] = {}
        self._joined = joined or {}
        self._by_mark: dict[str, list[str]] = {}
        for one in known:
            self.add(one.id, one)

    def add(self, name: str, lesson: Lesson) -> None:
        if name in self.claims:
            return
        claim = claim_of(lesson)
        self.claims[name] = claim
        for mark in _marks(claim):
            self._by_mark.setdefault(mark, []).append(name)

    def find(self, lesson: Lesson) -> str:
        """The lesson that says the same; empty where none does."""
        claim = claim_of(lesson)
        for name in self.near(claim):
            if same(claim, self.claims[name]):
                return self._joined.get(name, name)
        return ""

    def near(self, claim: Claim) -> list[str]:
        """Lessons that share something with a claim, those that share most first."""
        shared: Counter[str] = Counter()
        for mark in _marks(claim):
            names = self._by_mark.get(mark, ())
            if len(names) <= _COMMON or mark.startswith("f:"):
                shared.update(names[:_COMMON])
        return [name for name, _ in shared.most_common(_COMMON)]

    def pairs(self, names: Collection[str]) -> Iterator[tuple[str, str]]:
        """Each two of `names` that share something, once."""
        wanted = set(names)
        for name in sorted(wanted):
            for other in self.near(self.claims[name]):
                if name < other and other in wanted:
                    yield name, other


def _marks(claim: Claim) -> set[str]:
    found = {f"f:{form}" for form in claim.forms} | {f"w:{word}" for word in claim.words}
    found |= {f"p:{name}" for form in claim.forms if (name := purpose(form))}
    found |= {f"o:{part}" for part in claim.order or ()}
    return found | ({f"a:{claim.about}"} if claim.about else set())


def open_index(lessons: Lessons) -> LessonIndex:
    """The index over all that is known, also under the words that were joined to others."""
    return LessonIndex(lessons.all(joined=True), lessons.aliases())


def find_conflicts(lessons: Lessons, index: LessonIndex, known: Sequence[KnownLesson]) -> None:
    """Record which of `known` cannot both be followed, by what they claim."""
    for one, other in index.pairs({lesson.id for lesson in known}):
        if why := contradiction(index.claims[one], index.claims[other]):
            lessons.conflict(one, other, why)


# How contradictions are settled.

_OUTNUMBERS = 3
_WORKS, _FAILS = 0.75, 0.25
BY_PERSON = "by you"
BY_PROJECT = "each in its project"


def settle_conflicts(lessons: Lessons, known: Mapping[str, KnownLesson]) -> list[Conflict]:
    """Settle what support, outcome or a condition settles; what is left for a person."""
    left = []
    for found in lessons.conflicts():
        one, other = known.get(found.one), known.get(found.other)
        if one is None or other is None or found.settled == BY_PERSON:
            continue
        how, winner = _settled(lessons, one, other)
        lessons.settle(found, how, winner)
        if not how and one.support.sessions and other.support.sessions:
            left.append(found)
    return left


def _settled(lessons: Lessons, one: KnownLesson, other: KnownLesson) -> tuple[str, str]:
    if one.when != other.when:
        return "each under its condition", ""
    for a, b in ((one, other), (other, one)):
        if a.kind == "avoid" and a.support.said and not b.support.said:
            return "by the user's own words", a.id  # an agent's habit does not outweigh them
    for a, b in ((one, other), (other, one)):
        if a.support.sessions >= max(FEWEST, _OUTNUMBERS * b.support.sessions):
            return f"by support: {a.support.sessions} sessions to {b.support.sessions}", a.id
    for a, b in ((one, other), (other, one)):
        if _share(a) >= _WORKS and 0 <= _share(b) <= _FAILS:
            return "by outcome: one side worked, the other failed", a.id
    here, there = _projects(lessons, one.id), _projects(lessons, other.id)
    if here and there and "" not in here | there and here.isdisjoint(there):
        return BY_PROJECT, ""
    return "", ""


def _share(lesson: KnownLesson) -> float:
    """The part of its sessions that worked, of those whose end is known; -1 where few are."""
    ended = lesson.support.worked + lesson.support.failed
    return lesson.support.worked / ended if ended >= FEWEST else -1.0


def _projects(lessons: Lessons, lesson: str) -> set[str]:
    return {row.project for row in lessons.rows(lesson, "for")}


def conditions(lessons: Lessons) -> dict[str, str]:
    """Under which condition a lesson is written, where a contradiction was settled so."""
    found: dict[str, str] = {}
    for conflict in lessons.conflicts():
        if conflict.settled == BY_PROJECT:
            for name in (conflict.one, conflict.other):
                folders = sorted(os.path.basename(p) for p in _projects(lessons, name))
                found[name] = f"in {', '.join(folders)}"
    return found


# What is written.


class Agreed(msgspec.Struct, frozen=True):
    """What many tasks agree on, and what is left over."""

    written: tuple[KnownLesson, ...]
    few: tuple[KnownLesson, ...]
    """Below the threshold: kept for later."""
    overruled: tuple[KnownLesson, ...]
    rejected: tuple[KnownLesson, ...]
    negative: tuple[KnownLesson, ...]
    """They stand in a skill, were followed, and failed."""
    open: tuple[Conflict, ...]
    """Contradictions that a person has to settle."""


def agree(lessons: Lessons, sessions: Collection[str], *, least: int = FEWEST) -> Agreed:
    """What the sessions agree on, by `least` of them or the user's own word for it."""
    known = [one for one in lessons.all(sessions) if _counts(one)]
    by_id = {one.id: one for one in known}
    left = settle_conflicts(lessons, by_id)
    losers, unsettled = _losers(lessons), {n for c in left for n in (c.one, c.other)}
    best: dict[str, KnownLesson] = {}
    for one in known:  # the best supported first
        best.setdefault(_rivals(one), one)
    names = ("written", "few", "overruled", "rejected", "negative")
    found: dict[str, list[KnownLesson]] = {name: [] for name in names}
    for one in known:
        if one.state in ("rejected", "removed"):
            found["rejected"].append(one)
        elif one.support.is_negative:
            if one.state == "written":
                found["negative"].append(one)
        elif one.id in losers:
            found["overruled"].append(one)
        elif one.id in unsettled or not _enough(one, len(sessions), least, best):
            found["few"].append(one)
        else:
            found["written"].append(one)
    enough = [c for c in left if all(_enough(by_id[n], 0, least, best) for n in (c.one, c.other))]
    groups = {name: tuple(group) for name, group in found.items()}
    return Agreed(**groups, open=tuple(enough))


def _counts(one: KnownLesson) -> bool:
    return bool(one.support.sessions or one.support.against)


def _losers(lessons: Lessons) -> set[str]:
    return {
        name
        for conflict in lessons.conflicts()
        for name in (conflict.one, conflict.other)
        if conflict.settled and conflict.winner not in ("", name)
    }


_ASKED_LEAST, _ASKED_RARE = 3, 20


def _enough(one: KnownLesson, total: int, least: int, best: Mapping[str, KnownLesson]) -> bool:
    sessions, most = one.support.sessions, best.get(_rivals(one), one)
    if one.about.startswith(ASKED) and "not before" in one.text:
        # An act of every day, unless it recurs in many sessions.
        return sessions >= max(_ASKED_LEAST, least, total // _ASKED_RARE)
    if one.text.startswith(_BEFORE) and most is not one and 2 * sessions <= most.support.sessions:
        return False  # it stood before it, and mostly something else did
    if one.text.startswith(_CHECK) and _SELDOM * sessions < most.support.sessions:
        return False  # tried now and then, beside the checks that the project has
    if _INSTEAD in one.text and most.id != one.id:
        return False  # for the same failure more sessions show another way
    return sessions >= least or one.support.said > 0


_BEFORE, _CHECK, _INSTEAD = "Before `", "Check the work with ", " fails as it is called; run "
_SELDOM = 5


def _rivals(one: KnownLesson) -> str:
    """What a lesson shares with others of which the best supported are written; empty for none."""
    if one.text.startswith(_BEFORE):
        return f"before {one.about}"
    return _CHECK if one.text.startswith(_CHECK) else one.text.partition(_INSTEAD)[0]


# What a model is asked.


class Against(msgspec.Struct, frozen=True):
    """Lessons that a merger says contradict each other."""

    lessons: tuple[int, ...] = ()
    why: str = ""


class MergerAnswer(msgspec.Struct, frozen=True):
    """What a merger answers, by the numbers that it was shown."""

    same: tuple[tuple[int, ...], ...] = ()
    against: tuple[Against, ...] = ()
    rejected: tuple[int, ...] = ()


def merge_batches(
    index: LessonIndex, known: Sequence[KnownLesson], seen: Collection[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """Lessons that may belong together, in batches; each near pair that was not seen is in one."""
    names = {one.id for one in known}
    near = [
        (likeness(index.claims[one], index.claims[other]), one, other)
        for one, other in index.pairs(names)
        if (one, other) not in seen and may_join(index.claims[one], index.claims[other])
    ]
    batches: list[dict[str, None]] = []
    for score, one, other in sorted(near, key=lambda pair: (-pair[0], pair[1:])):
        if score < _NEAR:
            break
        for batch in batches:
            if len(batch.keys() | {one, other}) <= BATCH and (one in batch or other in batch):
                batch |= {one: None, other: None}
                break
        else:
            if batches and len(batches[-1]) + 2 <= BATCH:
                batches[-1] |= {one: None, other: None}
            else:
                batches.append({one: None, other: None})
    return [tuple(sorted(batch)) for batch in batches]


_REJECTED_TOLD = 20


def merge_inquiry(
    batch: Sequence[KnownLesson], rejected: Sequence[KnownLesson], model: str = ""
) -> Inquiry:
    """What a merger is asked about some lessons."""
    lines = [
        f"{number}. [{one.kind}] {one.text}"
        + (f" (when: {one.when})" if one.when else "")
        + f" — {one.support.sessions} sessions"
        for number, one in enumerate(batch, 1)
    ]
    if rejected:
        lines += ["", "Rejected before:", *(f"- {one.text}" for one in rejected[:_REJECTED_TOLD])]
    return Inquiry(prompt("learn", "merger"), "\n".join(lines), model)


def carry_out_merge(
    lessons: Lessons, index: LessonIndex, batch: Sequence[str], answer: MergerAnswer
) -> int:
    """Join and set against each other what the answer says, as far as code allows; joins made."""
    by_id = {one.id: one for one in lessons.all()}

    def named(numbers: Iterable[int]) -> list[KnownLesson]:
        found = (batch[n - 1] for n in numbers if 0 < n <= len(batch))
        return [by_id[name] for name in dict.fromkeys(found) if name in by_id]

    joined = 0
    for group in answer.same:
        members = sorted(named(group), key=lambda one: (-one.support.sessions, one.id))
        for other in members[1:]:
            if may_join(index.claims[members[0].id], index.claims[other.id]):
                lessons.join(other.id, members[0].id)
                joined += 1
    by_id = {one.id: one for one in lessons.all()}
    for found in answer.against:
        sides = named(found.lessons)
        for at, one in enumerate(sides):
            for other in sides[at + 1 :]:
                lessons.conflict(one.id, other.id, found.why[:120] or "they exclude each other")
    before = [index.claims[one.id] for one in by_id.values() if one.state == "rejected"]
    again = [
        one.id
        for one in named(answer.rejected)
        if one.state == "open" and any(likeness(index.claims[one.id], b) >= _NEAR for b in before)
    ]
    lessons.mark(again, "rejected")
    return joined
