"""What a distillation reads and is likely to cost: its options, its tasks, what is new of them.

Sessions that did not change are not read again: their tasks are in the tables of `support`. A task
that failed is read together with one like it that succeeded. The estimate counts the characters
that will be sent; nothing is spent here.
"""

from collections.abc import Callable, Sequence

import msgspec

from tacit.agent import budget
from tacit.base.clock import parse_since
from tacit.base.errors import TacitError
from tacit.learn.clusters import Cluster, cluster_tasks, nearest_tasks
from tacit.learn.distil.analyst import SHOWN
from tacit.learn.distil.support import Lessons
from tacit.learn.rates import FEWEST
from tacit.learn.review.review_batch import Estimate, ReviewAverages, estimate_cost
from tacit.learn.segments import Segment, segments
from tacit.traces.store import Store
from tacit.traces.typed_words import content_words

ANALYSE, MERGE = "analyse", "merge"
COUNTING = "counting"


class DistilOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for. The same options name the same run while it is not over."""

    words: str = ""
    """The task that it is about; empty for all."""
    into: str = ""
    """The skill that gets the lines; empty for those that fit."""
    within: str = ""
    """The project that `into` is a skill of, if it is one's."""
    sessions: tuple[str, ...] = ()
    project: str = ""
    host: str = ""
    since: str = ""
    """As it was typed, e.g. `30d`, so that the same words name the same run later."""
    store: str = ""
    """The database with the sessions, where they are not in the user's own store."""
    model: str = ""
    """Empty: by counting."""
    least: int = FEWEST
    max_cost: float = 0.0


class DistilProgress(msgspec.Struct, frozen=True):
    """How far a run is."""

    state: str = ""
    sessions: int = 0
    tasks: int = 0
    analysed: int = 0
    merges: int = 0
    merged: int = 0
    spent: float = 0.0


Tell = Callable[[DistilProgress], None]


def open_sessions(options: DistilOptions) -> Store:
    """The store that the sessions of a run are in."""
    return Store.open(options.store or None)


class Reading(msgspec.Struct, frozen=True):
    """The tasks that a run is about, by kind, and what of them is still to be read."""

    sessions: frozenset[str]
    tasks: tuple[Segment, ...]
    clusters: tuple[Cluster, ...]
    unread: tuple[tuple[Segment, ...], ...]
    """Each a task, or a pair of which the first failed and the other succeeded."""

    @property
    def new(self) -> int:
        """Tasks that were not read before."""
        return sum(map(len, self.unread))


def read_tasks(
    store: Store, lessons: Lessons, options: DistilOptions, tell: Tell | None = None
) -> Reading:
    """Cut what is new into tasks, and find out which were not read before."""
    if options.sessions:
        chosen = [store.find(name) for name in options.sessions]
    else:
        since = parse_since(options.since) if options.since else None
        host, project = options.host, options.project
        found = store.sessions(host=host, project=project, since=since, limit=1_000_000)
        chosen = [stored for stored in found if stored.calls or stored.turns]
    known = lessons.cut_sessions()
    for number, stored in enumerate(chosen, 1):
        stamp = f"{stored.turns} {stored.calls}"
        if known.get(stored.id) != stamp:
            lessons.keep_tasks(stored.id, stamp, segments(store.whole(stored.id)))
        if tell:
            tell(DistilProgress("cut", sessions=number))
    tasks = list(lessons.tasks({stored.id for stored in chosen}))
    if options.words:
        tasks = nearest_tasks(options.words, tasks)
    clusters = cluster_tasks(tasks)
    # A model reads what was counted; what a model read is not counted over.
    methods, counted = lessons.methods(), COUNTING if options.model else ""
    fresh = [task for task in tasks if task.calls and methods.get(task.id, "") in ("", counted)]
    units = _pairs(fresh, clusters) if options.model else [(task,) for task in fresh]
    sessions = frozenset(task.session for task in tasks)
    return Reading(sessions, tuple(tasks), tuple(clusters), tuple(units))


_ONE_TASK = 0.5
"""The part of the words of two requests that makes them the same task."""


def _pairs(fresh: Sequence[Segment], clusters: Sequence[Cluster]) -> list[tuple[Segment, ...]]:
    """Tasks to be read; one that failed together with one like it that succeeded."""
    new = {task.id: task for task in fresh}
    words = {task.id: set(content_words(task.asked)) for task in fresh}
    pairs: list[tuple[Segment, ...]] = []
    for cluster in clusters:
        members = [task for task in cluster.members if task.id in new]
        worked = [task for task in members if task.outcome.state == "worked"]
        for failed in (task for task in members if task.outcome.state == "failed"):
            mine = words[failed.id]
            for other in worked:
                theirs = words[other.id]
                alike = mine and len(mine & theirs) >= _ONE_TASK * len(mine | theirs)
                if alike and other.project == failed.project:
                    pairs.append((new.pop(failed.id), new.pop(other.id)))
                    worked.remove(other)
                    break
    return [*pairs, *((task,) for task in new.values())]


_INSTRUCTIONS, _MERGE = 3_500, 1_500
"""Characters of an analyst's instructions, and of the lessons that a merger is shown."""
_ANSWER = ReviewAverages(requests=1.0, output=350.0, results=0.0)
_MERGES = 0.15
"""Requests of mergers for each of an analyst, about."""
_USUAL_SECONDS, _AT_ONCE = 5.0, 20
"""Of a request, and how many one machine makes at a time."""


def estimate(reading: Reading, options: DistilOptions) -> Estimate:
    """What a run is likely to take; by counting, nothing but time."""
    sessions = len(reading.sessions)
    if not options.model:
        return Estimate(sessions, 0, 0, 0, "", 0.0, 0)
    sizes = [sum(min(SHOWN, max(3_000, t.size // 8)) for t in unit) for unit in reading.unread]
    sizes += [_MERGE] * round(len(sizes) * _MERGES)
    guess = estimate_cost(sizes, options.model, instructions=_INSTRUCTIONS, habits=_ANSWER)
    return msgspec.structs.replace(guess, sessions=sessions)


def likely_seconds(requests: int) -> float:
    """How long so many requests take, by those of the last weeks."""
    try:
        entries = budget.spendings(budget.days_ago(30), kind=ANALYSE)
    except TacitError:  # what cannot be read is not known
        entries = []
    spent = budget.sum_spent(entry.spent for entry in entries)
    each = spent.seconds / spent.requests if spent.requests else _USUAL_SECONDS
    return requests * each / _AT_ONCE
