"""The answer of a trial: does the skill help, by how much, and what it costs, with intervals.

Made of the record alone, so it can be had at any time. Success is a difference of shares; tokens,
time and calls are changes of one side against the other, pair by pair. What the skill did where it
was read is told apart from its not being read. Also writes the `benchmark.json` of skill-creator.
"""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tacit.base.display import counted
from tacit.learn.trial.arms import SIDES, Side
from tacit.learn.trial.interval import (
    ERROR,
    Finding,
    Interval,
    error_of,
    interval_of,
    pairs_to_tell,
    points,
    relative,
)
from tacit.learn.trial.trial_records import RecordedRun, TrialRecord
from tacit.learn.trial.trial_run import RunResult
from tacit.learn.trial.trial_tasks import Task
from tacit.learn.trial.verifier import Graded


class Pair(msgspec.Struct, frozen=True):
    """A task once on both sides, both of which count."""

    round: int
    task: str
    runs: dict[str, RunResult]

    @property
    def difference(self) -> float:
        ours, theirs = (self.runs[side].score or 0.0 for side in SIDES)
        return ours - theirs


class TaskRow(msgspec.Struct, frozen=True):
    """One task: how often each side succeeded, and how often the skill was read."""

    task: str
    pairs: int
    with_skill: float
    without: float
    read: int
    own: bool = True
    """Whether it is a task of the skill's own, and not of one beside it."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial says."""

    trial: str
    skill: str
    against: str
    among: bool
    agent: str
    attempt: int
    finding: Finding
    level: float
    """The confidence of the verdict: higher for later candidates of the skill."""
    success: Interval
    """The difference of the shares of success, at 95 %."""
    verdict: Interval
    """The same at the level of the verdict, over whole rounds."""
    with_skill: float
    without: float
    tokens: Interval
    seconds: Interval
    calls: Interval
    read: int
    """Pairs in which the skill was read."""
    pairs: int
    when_read: Interval
    """The difference in success where it was read."""
    others: Interval | None = None
    """The difference in success on the tasks of the skills beside it."""
    void: dict[str, int] = {}
    """Runs that do not count, by side."""
    needed: int = 0
    """About how many pairs would tell; 0 where they have."""
    agreement: float | None = None
    """How often a judge said the same in both orders."""
    cost: float | None = 0.0
    """Dollars for all runs, the judge's too."""
    judge_cost: float | None = 0.0
    tasks: tuple[TaskRow, ...] = ()
    doubts: tuple[str, ...] = ()
    """Checks that no run of either side has passed, in words: they may never pass."""
    sessions: dict[str, tuple[str, ...]] = {}
    """The runs, by side; each can be opened: `tacit session ID`."""

    def compared(self) -> str:
        """What was compared, in words."""
        return compared(self.skill, self.against, self.among)

    def says(self) -> str:
        """The verdict in one sentence."""
        if not self.pairs:
            return "nothing can be said: no pair of runs has come to its end"
        if self.finding == "unclear":
            more = counted(max(self.needed - self.pairs, 1), "more pair")
            return f"not enough runs to tell: {points(self.success)}; about {more} would be"
        return f"{self.finding}: {points(self.success)}"


def compared(skill: str, against: str, among: bool) -> str:
    """The two sides, in words."""
    sides = f"{skill} against {against}" if against else f"with {skill} and without it"
    return f"{sides}, beside the rest of the library" if among else sides


def pairs_of(runs: Iterable[RecordedRun]) -> list[Pair]:
    """The pairs of which both sides count, in order; of several tries the last."""
    latest = {(run.round, run.task, run.side): run.result for run in runs}
    rounds = sorted({(number, task) for number, task, _ in latest})
    pairs = []
    for number, task in rounds:
        sides = {side: latest.get((number, task, side)) for side in SIDES}
        if all(result is not None and result.score is not None for result in sides.values()):
            pairs.append(Pair(number, task, {s: r for s, r in sides.items() if r is not None}))
    return pairs


def decisive(record: TrialRecord, runs: Collection[RecordedRun]) -> list[float]:
    """The differences that the verdict rests on: the skill's own tasks, in the rounds that are
    over: only then may one look."""
    settled = Counter(n for n, _, _ in {(r.round, r.task, r.side) for r in runs if r.settled})
    return [
        pair.difference
        for pair in pairs_of(runs)
        if settled[pair.round] >= 2 * len(record.about.tasks)
        and pair.task not in record.about.foreign
    ]


def verdict_of(record: TrialRecord, runs: Collection[RecordedRun]) -> Interval:
    """The interval by which a trial is decided, at the level of its attempt."""
    return interval_of(decisive(record, runs), error_of(record.attempt))


def answer_of(record: TrialRecord, runs: Sequence[RecordedRun]) -> Answer:
    """What the runs of a trial say so far."""
    about, foreign = record.about, frozenset(record.about.foreign)
    error = error_of(record.attempt)
    every = pairs_of(runs)
    pairs = [pair for pair in every if pair.task not in foreign]
    verdict = verdict_of(record, runs)
    finding = verdict.finding()
    read = [pair for pair in pairs if pair.runs["with"].read]
    beside = [pair.difference for pair in every if pair.task in foreign]
    return Answer(
        trial=record.id,
        skill=about.skill,
        against=about.against,
        among=about.among,
        agent=about.agent,
        attempt=record.attempt,
        finding=finding,
        level=1 - 2 * error,
        success=interval_of(pair.difference for pair in pairs),
        verdict=verdict,
        with_skill=_share(pairs, "with"),
        without=_share(pairs, "without"),
        tokens=_change(pairs, "tokens"),
        seconds=_change(pairs, "seconds"),
        calls=_change(pairs, "calls"),
        read=len(read),
        pairs=len(pairs),
        when_read=interval_of(pair.difference for pair in read),
        others=interval_of(beside) if beside else None,
        void={s: sum(r.side == s and r.result.state == "void" for r in runs) for s in SIDES},
        needed=pairs_to_tell(decisive(record, runs), error) if finding == "unclear" else 0,
        agreement=_agreement(every),
        cost=in_all(run.result.cost for run in runs),
        judge_cost=in_all(run.result.judge_cost for run in runs),
        tasks=tuple(_task_rows(every, foreign)),
        doubts=tuple(_never_passed(runs)),
        sessions={s: tuple(r.result.ran.session for r in runs if r.side == s) for s in SIDES},
    )


def _share(pairs: Sequence[Pair], side: Side) -> float:
    scores = [pair.runs[side].score or 0.0 for pair in pairs]
    return sum(scores) / len(scores) if scores else 0.0


def _change(pairs: Sequence[Pair], field: str) -> Interval:
    """How much more or less of it one side took, pair by pair; see `interval.as_change`."""
    amounts = [[getattr(p.runs[side].ran, field) for side in SIDES] for p in pairs]
    return interval_of([relative(ours, theirs) for ours, theirs in amounts], ERROR / 2)


def _agreement(pairs: Sequence[Pair]) -> float | None:
    judged = [r.judged for pair in pairs for r in pair.runs.values() if r.judged is not None]
    return sum(one == other for one, other in judged) / len(judged) if judged else None


def in_all(costs: Iterable[float | None]) -> float | None:
    """Dollars in all; None where any has no price."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    return sum(known) if len(known) == len(every) else None


def _task_rows(pairs: Sequence[Pair], foreign: frozenset[str]) -> Iterable[TaskRow]:
    for task in dict.fromkeys(sorted(pair.task for pair in pairs)):
        own = [pair for pair in pairs if pair.task == task]
        read = sum(pair.runs["with"].read for pair in own)
        ours, theirs = (_share(own, side) for side in SIDES)
        yield TaskRow(task, len(own), ours, theirs, read, task not in foreign)


_FEW = 6
"""Runs of a task after which a check that none has passed is doubted."""


def _never_passed(runs: Iterable[RecordedRun]) -> Iterator[str]:
    seen: dict[tuple[str, str], list[Graded]] = {}
    for run in runs:
        for check in run.result.graded:
            seen.setdefault((run.task, check.text), []).append(check)
    for (task, text), checks in seen.items():
        if len(checks) >= _FEW and not any(check.passed for check in checks):
            none = f"no run of either side passed in {len(checks)} runs"
            yield f"{task}: {none}: {text} ({checks[-1].evidence})"


_NAMES = {"with": "with_skill", "without": "without_skill"}


def benchmark(
    record: TrialRecord, runs: Sequence[RecordedRun], tasks: Iterable[Task]
) -> dict[str, Any]:
    """The trial as skill-creator's benchmark.json; the interval, which that lacks, is a note."""
    about = record.about
    prompts = {task.id: task.prompt for task in tasks}
    counted = [run for run in runs if run.result.state == "done"]
    rows = [
        {
            "eval_id": _eval_id(run.task),
            "eval_name": prompts.get(run.task, run.task)[:80],
            "configuration": _NAMES[run.side],
            "run_number": run.round + 1,
            "result": _metrics(run.result),
            "expectations": run.result.graded,
        }
        for run in counted
    ]
    sums = {
        name: {
            key: _spread([_metrics(run.result)[key] for run in counted if run.side == side])
            for key in ("pass_rate", "time_seconds", "tokens")
        }
        for side, name in _NAMES.items()
    }
    delta = {
        key: f"{sums['with_skill'][key]['mean'] - sums['without_skill'][key]['mean']:+.2f}"
        for key in sums["with_skill"]
    }
    answer = answer_of(record, runs)
    return {
        "metadata": {
            "skill_name": about.skill,
            "executor_model": about.agent,
            "timestamp": record.at,
            "evals_run": [_eval_id(task) for task in sorted({run.task for run in counted})],
            "runs_per_configuration": len({run.round for run in counted}),
        },
        "runs": rows,
        "run_summary": {**sums, "delta": delta},
        "notes": [answer.says()],
    }


def _eval_id(task: str) -> int | str:
    name = task.rpartition("/")[2]
    return int(name) if name.isdecimal() else name


def _metrics(result: RunResult) -> dict[str, Any]:
    passed = sum(check.passed for check in result.graded)
    total, ran = len(result.graded), result.ran
    share = passed / total if total else result.score or 0.0
    return {
        "pass_rate": share, "passed": passed, "failed": total - passed, "total": total,
        "time_seconds": round(ran.seconds, 1), "tokens": ran.tokens, "tool_calls": ran.calls,
        "errors": 0,
    }  # fmt: skip


def _spread(found: Sequence[float]) -> dict[str, float]:
    if not found:
        return dict.fromkeys(("mean", "stddev", "min", "max"), 0.0)
    return {
        "mean": statistics.fmean(found),
        "stddev": statistics.pstdev(found),
        "min": min(found),
        "max": max(found),
    }
