"""What daily use says of a skill: tasks with it against like tasks without it.

Sessions are cut into tasks and these into kinds (`learn/distil/`), by what was asked, run and
changed: what people ask in real sessions is too short and too different to tell kinds by its words
alone. Tasks in which a skill was used are compared with those of their kind that came between,
without the skill; the differences have the interval of trials. Nobody drew lots there: the agent
chose when to read the skill, so it is an observation, and called that.

Where `learn.holdback` had sessions draw, those that were offered the skill are compared with those
that were not, whoever read it, and that is a trial. Nothing that the skill may have changed chooses
what is compared: only tasks whose request speaks of what the skill is for. It counts all sessions
of a version from the first on, so that it may be looked at every day, and a session once, since the
lot is the session's.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from statistics import fmean

import msgspec

from tacit.base.display import counted
from tacit.base.errors import NotFound
from tacit.base.setting_sections import Settings
from tacit.changes.gate import Gate
from tacit.learn.clusters import Cluster, cluster_tasks
from tacit.learn.review.review_triggers import is_background_work
from tacit.learn.segments import Segment, segments
from tacit.learn.trial.candidate import find_candidate
from tacit.learn.trial.interval import ERROR, Finding, Interval, error_of, interval_of
from tacit.learn.trial.trial_effects import TrialEffect, settle_standing
from tacit.learn.trial.trial_records import DAILY_USE, TrialAbout, TrialRecords
from tacit.skills.holdback import Holdback, holdbacks
from tacit.skills.library import Library
from tacit.traces.store import Store
from tacit.traces.typed_words import content_words

MOST_SESSIONS = 400
"""The latest sessions that are looked at."""
MOST_DRAWN = 2000
"""The first sessions that drew for a version; what comes later changes nothing."""
_SCORES = {"worked": 1.0, "failed": 0.0}
_COMMON = 2
"""Telling words that a request shares with a skill's name and description where it speaks of it."""


class Comparison(msgspec.Struct, frozen=True):
    """Two groups of like tasks."""

    with_skill: float
    """The share of tasks that worked, among those that were compared."""
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


def known_tasks(store: Store, drawn: Iterable[Holdback]) -> list[Segment]:
    """The tasks of the latest sessions and of those that drew; not those of the background."""
    latest = [one.id for one in store.sessions(limit=MOST_SESSIONS)]
    found: list[Segment] = []
    for session in dict.fromkeys([*latest, *(one.session for one in drawn)]):
        with suppress(NotFound):
            trace = store.trace(session)
            if not is_background_work(trace.head):
                found += segments(trace)
    return found


def daily_use(
    store: Store, skill: str, about: str = "", tasks: Sequence[Segment] | None = None
) -> DailyUse:
    """What the stored sessions say of `skill`, which is for what `about` says, or for anything.

    `tasks` are those of `known_tasks`, if at hand.
    """
    own = _drawn_for(holdbacks(store.connection), skill)
    tasks = known_tasks(store, own) if tasks is None else tasks
    used = [task for task in tasks if skill in task.skills]
    every = cluster_tasks(map(_without_errors, tasks)) if used else []
    kinds = [kind for kind in every if any(skill in task.skills for task in kind.members)]
    observed = compare(kinds, {task.id for task in used}, None)
    if not own:
        return DailyUse(skill, len(used), observed)
    version = TrialAbout(skill=skill, digest=_versions(own[0])[skill], agent=DAILY_USE)
    attempt = TrialRecords(store.connection).begin(version).attempt
    offered = {one.session for one in own if skill in one.offered}
    held = {one.session for one in own if skill in one.held}
    ours = {task.id for task in tasks if task.session in offered}
    theirs = {task.id for task in tasks if task.session in held}
    concerned = _speaking_of(f"{skill} {about}", tasks) if about else tasks
    one_kind = Cluster("what it is for", (), tuple(concerned))
    by_lot = compare([one_kind], ours, theirs, error_of(attempt))
    return DailyUse(skill, len(used), observed, by_lot, attempt)


def _versions(drawn: Holdback) -> dict[str, str]:
    return drawn.offered | drawn.held


def _drawn_for(drawn: Iterable[Holdback], skill: str) -> list[Holdback]:
    """The first sessions that drew for the version of `skill` that was drawn for last."""
    every = [one for one in drawn if skill in _versions(one)]
    now = _versions(every[-1])[skill] if every else ""
    return [one for one in every if _versions(one)[skill] == now][:MOST_DRAWN]


def _without_errors(task: Segment) -> Segment:
    """A task without what failed in it: that would group tasks by how they ended."""
    return msgspec.structs.replace(task, errors=())


def _speaking_of(words: str, tasks: Iterable[Segment]) -> list[Segment]:
    known = set(content_words(words))
    return [task for task in tasks if len(known.intersection(content_words(task.asked))) >= _COMMON]


def compare(
    kinds: Iterable[Cluster], ours: set[str], theirs: set[str] | None, error: float = ERROR / 2
) -> Comparison:
    """Compare the tasks of `ours` with like ones of `theirs`, or with all others."""
    shares: list[tuple[float, float]] = []
    unclear, labels = 0, []
    met: set[tuple[str, bool]] = set()
    for kind in kinds:
        concerned = [t for t in kind.members if t.id in ours or theirs is None or t.id in theirs]
        known = [task for task in concerned if task.outcome.state in _SCORES]
        unclear += len(concerned) - len(known)
        fresh = []
        for task in sorted(known, key=_moment):
            if (key := (task.session, task.id in ours)) not in met:
                met.add(key)
                fresh.append((task.id in ours, _SCORES[task.outcome.state]))
        made = list(_in_turn(fresh))
        shares += made
        labels += [kind.label] if made else []
    sums = [sum(side) / len(shares) if shares else 0.0 for side in zip(*shares, strict=True)]
    ours_share, theirs_share = sums or (0.0, 0.0)
    shown = interval_of((mine - his for mine, his in shares), error)
    return Comparison(ours_share, theirs_share, shown, unclear, tuple(labels))


def _in_turn(scores: Iterable[tuple[bool, float]]) -> Iterator[tuple[float, float]]:
    """The mean score of each side, again and again, as soon as both have one.

    Who is compared with whom depends on nothing that comes later, so that one may look at any time.
    """
    waiting: dict[bool, list[float]] = {True: [], False: []}
    for ours, score in scores:
        waiting[ours].append(score)
        if waiting[True] and waiting[False]:
            yield fmean(waiting[True]), fmean(waiting[False])
            waiting = {True: [], False: []}


def _moment(task: Segment) -> float:
    return task.at.timestamp() if task.at is not None else 0.0


def settle_daily_use(gate: Gate, library: Library, settings: Settings) -> list[TrialEffect]:
    """Give the skills a standing that lots were drawn for, where those have made it clear."""
    done = []
    with Store.open() as store:
        drawn = holdbacks(store.connection)
        names = sorted({name for one in drawn for name in _versions(one)})
        own = {one.session: one for name in names for one in _drawn_for(drawn, name)}
        tasks = known_tasks(store, own.values()) if names else []
        entries = {name: library.find(name) for name in names}
        found = [daily_use(store, n, e.description, tasks) for n, e in entries.items() if e]
    for use in found:
        if use.by_lot is None or use.finding == "unclear":
            continue
        shown = use.by_lot.success
        how = f"in {counted(shown.count, 'comparison')} of daily use, left out by lot"
        candidate = find_candidate(gate, library, use.skill)
        done.append(settle_standing(gate, candidate, use.finding, shown, how, settings))
    return [effect for effect in done if effect.did != "nothing"]
