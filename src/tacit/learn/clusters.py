"""Tasks of one kind, within and across projects, by what was asked and by what was done.

Each task is a handful of weighted marks: the telling words of the request, programs, files, tools
and errors; what is rare among the tasks weighs more. A task joins the group whose middle it is
nearest to. No model and nothing to download; the same tasks give the same groups in whatever order
they come, and the time grows little faster than their number.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from tacit.base.display import counted
from tacit.learn.segments import Segment
from tacit.traces.typed_words import content_words, telling_words

_NEAR = 0.3
"""The cosine from which a task belongs to a group."""
_MOST_MARKS = 40
_MIDDLE = 60
"""Marks that are kept of a group's middle."""
_WIDE = 100
"""Groups in which a mark may be; what more have is not looked up, only weighed."""
_LIKELY = 5
"""Groups that are looked at closely for a task."""
_SMALL = 8
"""Tasks up to which the middle of a group moves with each."""
_LONGEST_WORD = 30
_FORM = 30
"""Words of a request, on average, from which those that many share are of a form that was filled
in, and tell nothing of the task."""
_WEIGHTS = {"w": 1.0, "p": 1.5, "f": 0.8, "x": 0.5, "e": 1.0}
"""Words, programs, files, kinds of files, errors."""

Vector = dict[str, float]


class Cluster(msgspec.Struct, frozen=True):
    """Tasks of one kind."""

    label: str
    """What kind it is, in words."""
    words: tuple[str, ...]
    """The words and programs that tell it from the others, the most telling first."""
    members: tuple[Segment, ...]

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.session for member in self.members))

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.project for m in self.members if m.project))

    def shown(self) -> str:
        """`label (12 tasks, 9 sessions, 2 projects)`."""
        sizes = [counted(len(self.members), "task"), counted(len(self.sessions), "session")]
        if len(self.projects) > 1:
            sizes.append(counted(len(self.projects), "project"))
        return f"{self.label} ({', '.join(sizes)})"


def cluster_tasks(tasks: Iterable[Segment]) -> list[Cluster]:
    """All tasks in groups of one kind, the largest first."""
    ordered = sorted(tasks, key=lambda task: (task.session, task.first))
    marks = [_marks(task) for task in ordered]
    rarity = _rarity(marks)
    vectors = [_vector(own, rarity) for own in marks]
    groups = _Groups()
    # First all groups are opened, by the tasks that say most; then each task goes to the nearest.
    for vector in sorted(vectors, key=len, reverse=True):
        groups.add(vector, groups.nearest(vector))
    members: dict[int, list[Segment]] = {}
    for at, vector in enumerate(vectors):
        near = groups.nearest(vector)
        members.setdefault(-1 - at if near is None else near, []).append(ordered[at])
    found = [_cluster(own, rarity) for own in members.values()]
    return sorted(found, key=lambda c: (-len(c.members), c.label, c.members[0].id))


def common_words(tasks: Sequence[Segment]) -> tuple[str, ...]:
    """The words and programs that many of some tasks have in common, the most telling first."""
    return _cluster(tasks, _rarity([_marks(task) for task in tasks])).words


def nearest_tasks(words: str, tasks: Sequence[Segment], least: float = 0.15) -> list[Segment]:
    """The tasks that `words` speak of, the nearest first."""
    marks = [_marks(task) for task in tasks]
    rarity = _rarity(marks)
    wanted = _vector({f"w:{stem}": 1.0 for stem in content_words(words)}, rarity)
    near = []
    for task, own in zip(tasks, marks, strict=True):
        asked = _vector({mark: n for mark, n in own.items() if mark[0] in "wp"}, rarity)
        score = _dot(wanted, {f"w:{mark[2:]}": weight for mark, weight in asked.items()})
        if score >= least:
            near.append((-score, task.id, task))
    return [task for *_, task in sorted(near, key=lambda one: one[:2])]


def _marks(task: Segment) -> dict[str, float]:
    """What a task is known by, with how much each counts before rarity."""
    found: Counter[str] = Counter(f"w:{stem}" for stem in content_words(task.asked))
    for name in task.purposes:
        found[f"p:{name}"] += 1
        if (program := name.split()[0]) != name:
            found[f"p:{program}"] += 1
    for path in task.files:
        found[f"f:{os.path.basename(path)}"] += 1
        found[f"x:{os.path.splitext(path)[1]}"] += 1
    for error in task.errors:
        found.update(f"e:{word}" for word in error.split()[:4])
    return {mark: 1 + math.log(count) for mark, count in found.items()}


def _rarity(marks: Sequence[dict[str, float]]) -> dict[str, float]:
    seen = Counter(mark for own in marks for mark in own)
    return {mark: math.log(1 + len(marks) / count) for mark, count in seen.items()}


def _vector(marks: dict[str, float], rarity: dict[str, float]) -> Vector:
    weighted = {
        mark: count * rarity[mark] * _WEIGHTS[mark[0]]
        for mark, count in marks.items()
        if mark in rarity
    }
    return _unit(_heaviest(weighted, _MOST_MARKS))


def _heaviest(marks: Vector, most: int) -> Vector:
    if len(marks) <= most:
        return marks
    kept = sorted(marks, key=lambda mark: (-marks[mark], mark))[:most]
    return {mark: marks[mark] for mark in kept}


def _unit(marks: Vector) -> Vector:
    length = math.sqrt(sum(value * value for value in marks.values()))
    return {mark: value / length for mark, value in marks.items()} if length else {}


def _dot(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return sum(value * other.get(mark, 0.0) for mark, value in one.items())


class _Groups:
    """Groups of tasks by their middles, found by the marks that they share with a task."""

    def __init__(self) -> None:
        self._sums: list[Vector] = []
        self._sizes: list[int] = []
        self._units: list[Vector] = []
        self._by_mark: dict[str, dict[int, float]] = {}

    def nearest(self, vector: Vector) -> int | None:
        """The group whose middle is nearest to a task; None where none is near."""
        scores: dict[int, float] = {}
        for mark, value in vector.items():
            groups = self._by_mark.get(mark, {})
            if len(groups) <= _WIDE:
                for at, weight in groups.items():
                    scores[at] = scores.get(at, 0.0) + value * weight
        likely = sorted(scores, key=lambda at: (-scores[at], at))[:_LIKELY]
        best = max(((_dot(vector, self._units[at]), -at) for at in likely), default=(0.0, 0))
        return -best[1] if best[0] >= _NEAR else None

    def add(self, vector: Vector, at: int | None) -> None:
        """Move the middle of a group, or of a new one, toward one more task; of a large one only
        now and then."""
        if at is None:
            at = len(self._sums)
            for each in (self._sums, self._units):
                each.append({})
            self._sizes.append(0)
        whole = self._sums[at]
        for mark, value in vector.items():
            whole[mark] = whole.get(mark, 0.0) + value
        self._sizes[at] += 1
        if self._sizes[at] > _SMALL and self._sizes[at] % _SMALL:
            return
        for mark in self._units[at]:
            self._by_mark[mark].pop(at, None)
        self._units[at] = _unit(_heaviest(whole, _MIDDLE))
        for mark, weight in self._units[at].items():
            self._by_mark.setdefault(mark, {})[at] = weight


def _cluster(members: Sequence[Segment], rarity: dict[str, float]) -> Cluster:
    """A group with words for it: what most of its tasks were asked for, and run with."""
    asked: Counter[str] = Counter()
    spelled: dict[str, Counter[str]] = {}
    ran: Counter[str] = Counter()
    for member in members:
        words = telling_words(member.asked)
        for stem, word in dict(zip(content_words(member.asked), words, strict=True)).items():
            asked[stem] += 1
            spelled.setdefault(stem, Counter())[word] += 1
        ran.update(member.purposes)

    def telling(counts: Counter[str], kind: str) -> list[str]:
        common = [name for name, count in counts.items() if 3 * count >= len(members)]
        worth = {n: counts[n] * rarity.get(f"{kind}:{n}", 0.0) for n in common}
        return sorted(common, key=lambda name: (-worth[name], name))

    stems = telling(asked, "w") if asked.total() < _FORM * len(members) else []
    plain = (spelled[stem].most_common(1)[0][0] for stem in stems)
    words = list(islice((word for word in plain if len(word) <= _LONGEST_WORD), 5))
    programs = telling(ran, "p")[:3]
    label = " · ".join(filter(None, (" ".join(words), ", ".join(programs)))) or "other tasks"
    return Cluster(label, (*words, *programs), tuple(members))
