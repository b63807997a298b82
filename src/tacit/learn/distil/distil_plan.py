"""What a distillation reads and is likely to cost: its options, its tasks, what is new of them.

Sessions that did not change are not read again: their tasks are in the tables of `support`. A task
that failed is read together with one like it that succeeded. The estimate counts the characters
that will be sent; nothing is spent here.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from tacit.agent import budget
from tacit.base.errors import TacitError
from tacit.learn.distil.clusters import Cluster, cluster_tasks, nearest_tasks
from tacit.learn.distil.segments import Segment, segments
from tacit.learn.distil.support import Lessons
from tacit.learn.rates import FEWEST
from tacit.learn.review.review_batch import CHARACTERS_A_TOKEN, model_price
from tacit.traces.store import Store, Stored
from tacit.traces.wishes import content_words

ANALYSE, MERGE = "analyse", "merge"
COUNTING = "counting"
_DIGEST, _INSTRUCTIONS, _ANSWER = 9_000, 3_500, 350
"""Characters of what is asked, at most, and tokens of an answer, on average."""
_MERGES = 0.15
"""Requests of mergers for each of an analyst, about."""


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
    store: str = ""
    """The database with the sessions, where they are not in the user's own store."""
    model: str = ""
    """Empty: by counting."""
    least: int = FEWEST
    max_cost: float = 0.0


class DistilEstimate(msgspec.Struct, frozen=True):
    """What a run reads and is likely to take."""

    sessions: int
    tasks: int
    new: int
    """Tasks that were not read before."""
    kinds: int
    """Groups of tasks of one kind."""
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    """In dollars; None where no price is known; 0 by counting."""
    seconds: float


class DistilProgress(msgspec.Struct, frozen=True):
    """How far a run is."""

    state: str = ""
    sessions: int = 0
    tasks: int = 0
    analysed: int = 0
    merges: int = 0
    merged: int = 0
    requests: int = 0
    spent: float = 0.0


Tell = Callable[[DistilProgress], None]


def open_sessions(options: DistilOptions) -> Store:
    """The store that the sessions of a run are in."""
    return Store.open(options.store or None)


def chosen_sessions(store: Store, options: DistilOptions) -> list[Stored]:
    """The sessions that a run is about, the latest first."""
    if options.sessions:
        return [store.find(name) for name in options.sessions]
    since = datetime.fromisoformat(options.since) if options.since else None
    found = store.sessions(host=options.host, project=options.project, since=since, limit=1_000_000)
    return [stored for stored in found if stored.calls or stored.turns]


class Reading(msgspec.Struct, frozen=True):
    """The tasks that a run is about, by kind, and what of them is still to be read."""

    sessions: frozenset[str]
    tasks: tuple[Segment, ...]
    clusters: tuple[Cluster, ...]
    unread: tuple[tuple[Segment, ...], ...]
    """Each a task, or a pair of which the first failed and the other succeeded."""


def read_tasks(
    store: Store, lessons: Lessons, options: DistilOptions, tell: Tell | None = None
) -> Reading:
    """Cut what is new into tasks, and find out which were not read before."""
    chosen = chosen_sessions(store, options)
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
    methods = lessons.methods()
    wanted = options.model or COUNTING
    fresh = [t for t in tasks if t.calls and not _is_read(methods.get(t.id, ""), wanted)]
    units = _pairs(fresh, clusters) if options.model else [(task,) for task in fresh]
    sessions = frozenset(task.session for task in tasks)
    return Reading(sessions, tuple(tasks), tuple(clusters), tuple(units))


def _is_read(method: str, wanted: str) -> bool:
    """Whether what was read by `method` need not be read by `wanted`: a model does not count, and
    what it read is not counted over."""
    return method != "" and (method != COUNTING or wanted == COUNTING)


_ONE_TASK = 0.5
"""The part of the words of two requests that makes them the same task."""


def _pairs(fresh: Sequence[Segment], clusters: Sequence[Cluster]) -> list[tuple[Segment, ...]]:
    """Tasks to be read; one that failed together with one like it that succeeded."""
    new = {task.id: task for task in fresh}
    pairs: list[tuple[Segment, ...]] = []
    for cluster in clusters:
        members = [new[m.id] for m in cluster.members if m.id in new]
        worked = [task for task in members if task.outcome.state == "worked"]
        for failed in (task for task in members if task.outcome.state == "failed"):
            words = set(content_words(failed.asked))
            for other in worked:
                theirs = set(content_words(other.asked))
                alike = len(words & theirs) >= _ONE_TASK * len(words | theirs)
                if alike and words and other.project == failed.project and other.id in new:
                    pairs.append((failed, other))
                    del new[failed.id], new[other.id]
                    worked.remove(other)
                    break
    return [*pairs, *((task,) for task in new.values())]


def estimate(reading: Reading, options: DistilOptions) -> DistilEstimate:
    """What a run is likely to take; by counting, nothing but time."""
    tasks = sum(len(unit) for unit in reading.unread)
    base = DistilEstimate(
        len(reading.sessions), len(reading.tasks), tasks, len(reading.clusters), 0, 0, 0, 0.0, 0.0
    )
    if not options.model:
        return base
    asked = [_asked_size(unit) for unit in reading.unread]
    merges = round(len(asked) * _MERGES)
    sent = sum(asked) + merges * _MERGE_SIZE
    requests = len(asked) + merges
    tokens = sent // CHARACTERS_A_TOKEN
    answers = requests * _ANSWER
    took, at_once = _habits()
    return msgspec.structs.replace(
        base,
        requests=requests,
        input_tokens=tokens,
        output_tokens=answers,
        cost=model_price(options.model, tokens, answers),
        seconds=requests * took / at_once,
    )


_MERGE_SIZE = 5_000
_USUAL_SECONDS = 5.0
AT_ONCE = 20
"""Requests that one machine makes at a time."""


def _asked_size(unit: Sequence[Segment]) -> int:
    shown = sum(min(_DIGEST, max(3_000, task.size // 8)) for task in unit)
    return shown + _INSTRUCTIONS


def _habits() -> tuple[float, int]:
    """Seconds of a request, by those of the last weeks, and how many are made at once."""
    try:
        entries = budget.spendings(budget.days_ago(30), kind=ANALYSE)
    except TacitError:  # what cannot be read is not known
        entries = []
    spent = budget.sum_spent(entry.spent for entry in entries)
    return (spent.seconds / spent.requests if spent.requests else _USUAL_SECONDS), AT_ONCE
