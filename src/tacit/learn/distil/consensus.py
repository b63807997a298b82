"""What many tasks agree on: equal lessons joined, contradictions found and settled, a threshold.

All of it is done by code over the tables of `support`. A model is shown lessons that may belong
together, a few at a time and each pair once, level by level; it says which are the same and which
contradict each other, and code takes that only where the lessons do not pull in two directions.
Support is never added up by a model.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations

import msgspec

from tacit.base.prompts import prompt
from tacit.learn.distil.lessons import (
    ASKED,
    BEFORE,
    CHECK,
    INSTEAD,
    RULE,
    Claim,
    Lesson,
    claim_of,
    contradiction,
    likeness,
    may_join,
    same,
    shape,
)
from tacit.learn.distil.support import Conflict, KnownLesson, Lessons
from tacit.learn.inquiry import Inquiry
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
    """All lessons by what they claim; those that were joined into another lead there."""

    def __init__(self, lessons: Lessons) -> None:
        self.claims: dict[str, Claim] = {}
        self._joined = lessons.aliases()
        self._by_mark: dict[str, list[str]] = {}
        for one in lessons.all(joined=True):
            self.add(one.id, one)

    def add(self, name: str, lesson: Lesson) -> None:
        if name not in self.claims:
            self.claims[name] = claim = claim_of(lesson)
            for mark in _marks(claim):
                self._by_mark.setdefault(mark, []).append(name)

    def find(self, lesson: Lesson) -> str:
        """The lesson that says the same; empty where none does."""
        claim = claim_of(lesson)
        found = (name for name in self.near(claim) if same(claim, self.claims[name]))
        name = next(found, "")
        return self._joined.get(name, name)

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
        for name in sorted(names):
            for other in self.near(self.claims[name]):
                if name < other and other in names:
                    yield name, other


def _marks(claim: Claim) -> set[str]:
    found = {f"f:{form}" for form in claim.forms} | {f"w:{word}" for word in claim.words}
    found |= {f"p:{name}" for form in claim.forms if (name := purpose(form))}
    found |= {f"o:{part}" for part in claim.order or ()}
    return found | ({f"a:{claim.about}"} if claim.about else set())


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


def _settle_conflicts(lessons: Lessons, known: Mapping[str, KnownLesson]) -> list[Conflict]:
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
    both = list(permutations((one, other)))
    for a, b in both:
        if a.kind == "avoid" and a.support.said and not b.support.said:
            return "by the user's own words", a.id  # an agent's habit does not outweigh them
    for a, b in both:
        if a.support.sessions >= max(FEWEST, _OUTNUMBERS * b.support.sessions):
            return f"by support: {a.support.sessions} sessions to {b.support.sessions}", a.id
    for a, b in both:
        if _share(a) >= _WORKS and 0 <= _share(b) <= _FAILS:
            return "by outcome: one side worked, the other failed", a.id
    here, there = _projects(lessons, one.id), _projects(lessons, other.id)
    apart = here and there and "" not in here | there and here.isdisjoint(there)
    return (BY_PROJECT if apart else "", "")


def _share(lesson: KnownLesson) -> float:
    """The part of its sessions that worked, of those whose end is known; -1 where few are."""
    ended = lesson.support.worked + lesson.support.failed
    return lesson.support.worked / ended if ended >= FEWEST else -1.0


def _projects(lessons: Lessons, lesson: str) -> set[str]:
    return {row.project for row in lessons.rows(lesson, "for")}


def conditions(lessons: Lessons) -> dict[str, str]:
    """Under which condition a lesson is written, where a contradiction was settled so."""
    apart = [found for found in lessons.conflicts() if found.settled == BY_PROJECT]
    names = {name for found in apart for name in (found.one, found.other)}
    folders = {n: sorted(map(os.path.basename, _projects(lessons, n))) for n in names}
    return {name: f"in {', '.join(own)}" for name, own in folders.items()}


# What is written.


class Agreed(msgspec.Struct, frozen=True):
    """What many tasks agree on, and what is left over."""

    written: list[KnownLesson] = []
    few: list[KnownLesson] = []
    """Below the threshold: kept for later."""
    overruled: list[KnownLesson] = []
    rejected: list[KnownLesson] = []
    negative: list[KnownLesson] = []
    """They stand in a skill, were followed, and failed."""
    open: list[Conflict] = []
    """Contradictions that a person has to settle."""


def agree(lessons: Lessons, sessions: Collection[str], *, least: int = FEWEST) -> Agreed:
    """What the sessions agree on, by `least` of them or the user's own word for it."""
    every = lessons.all(sessions)
    known = {one.id: one for one in every if one.support.sessions or one.support.against}
    left = _settle_conflicts(lessons, known)
    unsettled = {name for found in left for name in (found.one, found.other)}
    losers = {
        name
        for found in lessons.conflicts()
        for name in (found.one, found.other)
        if found.settled and found.winner not in ("", name)
    }
    best: dict[str, KnownLesson] = {}
    for one in known.values():  # the best supported first
        best.setdefault(_rivals(one), one)
        if shape(one) == CHECK and one.support.sessions >= least:
            best.setdefault(f"{RULE}{one.about}", one)
    agreed = Agreed()
    for found in left:
        if all(_enough(known[name], 0, least, best) for name in (found.one, found.other)):
            agreed.open.append(found)
    shown = {name for found in agreed.open for name in (found.one, found.other)}
    for one in known.values():
        if one.state in ("rejected", "removed"):
            agreed.rejected.append(one)
        elif one.support.is_negative:
            agreed.negative.extend([one] if one.state == "written" else ())
        elif one.id in losers:
            agreed.overruled.append(one)
        elif one.id in unsettled or not _enough(one, len(sessions), least, best):
            agreed.few.extend([one] if one.id not in shown else ())
        else:
            agreed.written.append(one)
    return agreed


_ASKED_LEAST, _ASKED_RARE = 3, 20
_SELDOM = 5


def _enough(one: KnownLesson, total: int, least: int, best: Mapping[str, KnownLesson]) -> bool:
    sessions, most = one.support.sessions, best.get(_rivals(one), one)
    if one.about.startswith(ASKED) and "not before" in one.text:
        # An act of every day, unless it recurs in many sessions.
        return sessions >= max(_ASKED_LEAST, least, total // _ASKED_RARE)
    form, others = shape(one), most.support.sessions
    if form == BEFORE and most.id != one.id and 2 * sessions <= others:
        return False  # it stood before it, and mostly something else did
    if form == CHECK and _SELDOM * sessions < others:
        return False  # tried now and then, beside the checks that the project has
    if form == INSTEAD and most.id != one.id:
        return False  # for the same failure more sessions show another way
    if form == RULE and f"{RULE}{one.about}" not in best:
        return False  # nobody checks the work with this linter here
    return sessions >= least or one.support.said > 0


def _rivals(one: KnownLesson) -> str:
    """What a lesson shares with others of which the best supported are written."""
    rest = {BEFORE: one.about, INSTEAD: one.text.partition(INSTEAD)[0], CHECK: ""}
    return (form := shape(one)) + rest.get(form, one.id)


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
    index: LessonIndex, names: Collection[str], seen: Collection[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """Lessons that may belong together, in batches; each near pair that was not seen is in one."""
    near = []
    for pair in index.pairs(names):
        one, other = (index.claims[name] for name in pair)
        if pair not in seen and may_join(one, other) and likeness(one, other) >= _NEAR:
            near.append((-likeness(one, other), *pair))
    batches: list[set[str]] = []
    for _, *two in sorted(near):
        fits = (b for b in batches if not b.isdisjoint(two) and len(b | {*two}) <= BATCH)
        last = next((b for b in batches[-1:] if len(b) + 2 <= BATCH), None)
        if (batch := next(fits, last)) is None:
            batches.append(batch := set())
        batch |= {*two}
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
) -> None:
    """Join and set against each other what the answer says, as far as code allows."""
    known = {one.id: one for one in lessons.all()}

    def named(numbers: Iterable[int]) -> list[str]:
        found = (batch[n - 1] for n in numbers if 0 < n <= len(batch))
        return [name for name in dict.fromkeys(found) if name in known]

    for group in answer.same:
        first, *others = sorted(named(group), key=lambda n: (-known[n].support.sessions, n)) or [""]
        for other in others:
            if may_join(index.claims[first], index.claims[other]):
                lessons.join(other, first)
                del known[other]
    for found in answer.against:
        for one, other in combinations(named(found.lessons), 2):
            lessons.conflict(one, other, found.why[:120] or "they exclude each other")
    before = [index.claims[one.id] for one in known.values() if one.state == "rejected"]
    for name in named(answer.rejected):
        again = any(likeness(index.claims[name], claim) >= _NEAR for claim in before)
        if again and known[name].state == "open":
            lessons.mark((name,), "rejected")
