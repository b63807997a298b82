"""What daily use says of a skill: tasks with it against like tasks without it.

Sessions are cut into tasks and these into kinds (`learn/distil/`). A task in which a skill was used
is paired with the task of its kind, without the skill, that is nearest in time; the difference has
the interval of trials. Nobody drew lots there: the agent chose when to read the skill, so it is an
observation, and called that. Where `learn.holdback` had sessions draw, those that were offered the
skill are paired with those that were not, whoever read it, and that is a trial.
"""

from collections.abc import Iterable, Sequence

import msgspec

from tacit.base.setting_sections import Settings
from tacit.changes.gate import Gate
from tacit.learn.distil.clusters import Cluster, cluster_tasks
from tacit.learn.distil.segments import Segment, segments
from tacit.learn.review.review_triggers import is_background_work
from tacit.learn.trial.candidate import find_candidate
from tacit.learn.trial.interval import ERROR, Finding, Interval, error_of, interval_of
from tacit.learn.trial.trial_effects import TrialEffect, settle_standing
from tacit.learn.trial.trial_records import TrialRecords
from tacit.skills.holdback import Holdback, holdbacks
from tacit.skills.library import Library
from tacit.traces.store import Store

MOST_SESSIONS = 400
"""The latest sessions that are looked at."""
_SCORES = {"worked": 1.0, "failed": 0.0}


class Comparison(msgspec.Struct, frozen=True):
    """Two groups of like tasks."""

    with_skill: float
    """The share of tasks that worked, among those that were paired."""
    without: float
    success: Interval
    unclear: int
    """Tasks of these kinds of which nobody knows how they ended."""
    kinds: tuple[str, ...] = ()
    """The kinds of tasks, in words."""


class DailyUse(msgspec.Struct, frozen=True):
    """What daily use says of one skill."""

    skill: str
    used: int
    """Tasks in which it was used."""
    observed: Comparison
    """Used against not used: an observation, not a trial."""
    by_lot: Comparison | None = None
    """Offered against left out by lot: a trial; None where no lots were drawn."""
    attempt: int = 1

    @property
    def finding(self) -> Finding:
        """What the lots say; an observation finds nothing."""
        return self.by_lot.success.finding() if self.by_lot is not None else "unclear"


def recent_tasks(store: Store, most: int = MOST_SESSIONS) -> list[Segment]:
    """The tasks of the latest sessions; those of trials and of the background are none."""
    found: list[Segment] = []
    for stored in store.sessions(limit=most):
        if not is_background_work(stored.head):
            found += segments(store.trace(stored.id))
    return found


def daily_use(store: Store, skill: str, tasks: Sequence[Segment] | None = None) -> DailyUse:
    """What the stored sessions say of `skill`."""
    tasks = recent_tasks(store) if tasks is None else tasks
    every = cluster_tasks(map(_as_asked, tasks))
    kinds = [kind for kind in every if any(skill in task.skills for task in kind.members)]
    used = [task for task in tasks if skill in task.skills]
    observed = _compared(kinds, {task.id for task in used}, None)
    drawn = [one for one in holdbacks(store.connection) if skill in one.offered | one.held]
    if not drawn:
        return DailyUse(skill, len(used), observed)
    digest = (drawn[-1].offered | drawn[-1].held)[skill]
    attempt = _attempt(store, skill, digest, drawn)
    own = [one for one in drawn if (one.offered | one.held)[skill] == digest]
    offered = {one.session for one in own if skill in one.offered}
    held = {one.session for one in own if skill in one.held}
    ours = {task.id for task in tasks if task.session in offered}
    theirs = {task.id for task in tasks if task.session in held}
    by_lot = _compared(kinds, ours, theirs, error_of(attempt))
    return DailyUse(skill, len(used), observed, by_lot, attempt)


def _as_asked(task: Segment) -> Segment:
    """A task by what was asked alone: what was done and failed, the skill may have changed."""
    return msgspec.structs.replace(task, purposes=(), files=(), errors=())


def _attempt(store: Store, skill: str, digest: str, drawn: Iterable[Holdback]) -> int:
    """Which candidate of the skill this version is: trials before it count too."""
    versions = list(dict.fromkeys((one.offered | one.held)[skill] for one in drawn))
    return 1 + len(TrialRecords(store.connection).trials(skill)) + versions.index(digest)


def _compared(
    kinds: Iterable[Cluster], ours: set[str], theirs: set[str] | None, error: float = ERROR / 2
) -> Comparison:
    """Pair the tasks of `ours` with like ones of `theirs`, or with all others."""
    pairs: list[tuple[float, float]] = []
    unclear, labels = 0, []
    for kind in kinds:
        one = [task for task in kind.members if task.id in ours]
        other = [
            task
            for task in kind.members
            if task.id not in ours and (theirs is None or task.id in theirs)
        ]
        known = [[t for t in group if t.outcome.state in _SCORES] for group in (one, other)]
        unclear += len(one) + len(other) - sum(map(len, known))
        made = list(_nearest(*known))
        pairs += made
        labels += [kind.label] if made else []
    sums = [sum(side) / len(pairs) if pairs else 0.0 for side in zip(*pairs, strict=True)]
    ours_share, theirs_share = sums or (0.0, 0.0)
    shown = interval_of((mine - his for mine, his in pairs), error)
    return Comparison(ours_share, theirs_share, shown, unclear, tuple(labels))


def _nearest(ours: list[Segment], theirs: list[Segment]) -> Iterable[tuple[float, float]]:
    """Each of `ours` with the one of `theirs` that is nearest in time, none twice."""
    left = list(theirs)
    for task in sorted(ours, key=_moment):
        if left:
            at = _moment(task)
            match = min(left, key=lambda other: abs(_moment(other) - at))
            left.remove(match)
            yield _SCORES[task.outcome.state], _SCORES[match.outcome.state]


def _moment(task: Segment) -> float:
    return task.at.timestamp() if task.at is not None else 0.0


def settle_daily_use(gate: Gate, library: Library, settings: Settings) -> list[TrialEffect]:
    """Give the skills a standing that lots were drawn for, where those have made it clear."""
    done = []
    with Store.open() as store:
        names = {name for one in holdbacks(store.connection) for name in one.offered | one.held}
        tasks = recent_tasks(store) if names else []
        found = [daily_use(store, name, tasks) for name in sorted(names)]
    for use in found:
        if use.by_lot is None or use.finding == "unclear" or library.find(use.skill) is None:
            continue
        shown = use.by_lot.success
        how = f"in {shown.count} pairs of tasks of daily use, left out by lot"
        candidate = find_candidate(gate, library, use.skill)
        done.append(settle_standing(gate, candidate, use.finding, shown, how, settings))
    return [effect for effect in done if effect.did != "nothing"]
