"""How often rules for accepting a skill err: ours, and those of others, simulated.

A candidate succeeds with one chance with the skill and with another without, on ten tasks of
different difficulty. Ours is simulated by the class that decides (`learn/trial/trial.py`): its
rounds, records and attempts, with an agent whose outcomes are drawn. The others look as they would.
Printed are the tables of docs/trials.md, also of daily use by lot (`learn.holdback`).

    .venv/bin/python -m bench.trial_rates [--trials 600] [--table rules]
"""

import argparse
import math
import os
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from unittest import mock

from tacit.agent.sandbox import NoSandbox
from tacit.base.setting_sections import AgentSettings
from tacit.learn.clusters import Cluster
from tacit.learn.segments import Segment, SegmentOutcome
from tacit.learn.trial.arms import Arms, Side
from tacit.learn.trial.daily_use import compare
from tacit.learn.trial.interval import error_of, pairs_planned
from tacit.learn.trial.trial import Trial, TrialLimits, TrialPlan
from tacit.learn.trial.trial_records import TrialAbout, TrialRecords
from tacit.learn.trial.trial_report import verdict_of
from tacit.learn.trial.trial_run import Ran
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.learn.trial.verifier import Verifier

_HELD = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
TASKS = 10
SESSIONS = 600
"""Sessions of daily use that are simulated at most."""
CANDIDATES = 5
_T95 = {10: 1.833, 20: 1.729, 40: 1.685}
"""Student's t, to one side at 5 %, by the number of tasks."""

Chances = Sequence[tuple[float, float]]
"""For each task, the chance of success without the skill and with it."""
Rule = Callable[[random.Random, Chances, TrialRecords], tuple[bool, int]]
"""Whether a candidate is promoted, and after how many pairs; records know the candidates before."""


def chances(without: float, effect: float, *, uneven: bool = False) -> Chances:
    """Tasks of different difficulty; the effect is the same for all, or all of it in every other.

    The means are `without` and `without + effect`.
    """
    reach = min(without, 1 - without - effect * (1 + uneven), 0.3)
    found = []
    for number in range(TASKS):
        easy = without + reach * (2 * number / (TASKS - 1) - 1)
        own = effect * (number % 2) * 2 if uneven else effect
        found.append((easy, easy + own))
    return found


def mixed(effect: float) -> Chances:
    """As much better in one half of the tasks as it is worse in the other: no effect in all."""
    low, high = 0.5 - effect / 2, 0.5 + effect / 2
    return [(low, high) if number % 2 else (high, low) for number in range(TASKS)]


class Drawn:
    """An agent whose success is drawn, with the skill and without."""

    title = "drawn"

    def __init__(self, rng: random.Random, known: Chances) -> None:
        self._rng = rng
        self._known = known

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        has = bool(os.listdir(skills))
        right = self._rng.random() < self._known[int(task.id)][has]
        return Ran(answer="right" if right else "wrong", skills=("skill",) if has else (), cost=0.0)


class Bare(Arms, frozen=True):
    """The skill is an empty folder: nobody reads it."""

    def lay_out(self, side: Side, folder: str) -> None:
        os.mkdir(folder)
        if side == "with":
            os.mkdir(os.path.join(folder, self.skill))


@contextmanager
def same_folder(task: Task) -> Iterator[tuple[str, str]]:
    """In place of a clean folder for each run: nothing is written there."""
    yield _HELD.name, _HELD.name


@contextmanager
def one_skill() -> Iterator[TrialRecords]:
    """Records of trials of one skill, as yet untried."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        yield TrialRecords(connection)
    finally:
        connection.close()


def trial_of(rng: random.Random, known: Chances, records: TrialRecords, pairs: int) -> Trial:
    """The next candidate of a skill, tried for at most so many pairs."""
    right = Check(answer="right")
    tasks = tuple(Task(id=str(n), prompt="do it", checks=(right,)) for n in range(len(known)))
    about = TrialAbout(
        skill="skill",
        digest=str(len(records.trials())),
        version=str(rng.random()),
        tasks=tuple(task.digest for task in tasks),
    )
    plan = TrialPlan(about, Bare("skill", {}), tasks)
    trial = Trial(plan, records, Drawn(rng, known), Verifier(NoSandbox(), AgentSettings()))
    with mock.patch("tacit.learn.trial.trial.clean_folder", same_folder):
        for _ in trial.run(TrialLimits(2 * pairs)):
            pass
    return trial


def stated(attempt: int) -> int:
    """The pairs that a trial states for the n-th candidate, in whole rounds."""
    return math.ceil(pairs_planned(attempt) / TASKS) * TASKS


def tacit(rng: random.Random, known: Chances, records: TrialRecords) -> tuple[bool, int]:
    """Ours: until it is clear or the stated pairs are run."""
    record = trial_of(rng, known, records, stated(len(records.trials()) + 1)).record
    verdict = verdict_of(record, records.runs(record.id))
    return verdict.finding() == "helps", verdict.count


def _drawn(rng: random.Random, known: Chances, number: int) -> int:
    """The difference of one pair, of the tasks in turn."""
    without, with_skill = known[number % len(known)]
    return (rng.random() < with_skill) - (rng.random() < without)


def strictly_better(tasks: int) -> Rule:
    """SkillOpt-Sleep: more of the held-out tasks succeed, one run each."""

    def rule(rng: random.Random, known: Chances, _: TrialRecords) -> tuple[bool, int]:
        found = sum(_drawn(rng, known, number) for number in range(tasks))
        return found > 0, tasks

    return rule


def not_worse(scores: int) -> Rule:
    """xskill: the mean of a judge's noisy scores is not below that of the main version."""

    def rule(rng: random.Random, known: Chances, _: TrialRecords) -> tuple[bool, int]:
        without, ours = (
            sum(rng.gauss(known[n % len(known)][side], 0.25) for n in range(scores))
            for side in (0, 1)
        )
        return ours >= without, scores

    return rule


def t_test(tasks: int) -> Rule:
    """cap-evolve: the paired difference is more than t times its standard error, looked at once."""

    def rule(rng: random.Random, known: Chances, _: TrialRecords) -> tuple[bool, int]:
        seen = [_drawn(rng, known, number) for number in range(tasks)]
        spread = statistics.stdev(seen) / math.sqrt(tasks)
        return statistics.fmean(seen) > _T95[tasks] * spread, tasks

    return rule


def peeking(most: int, every: int) -> Rule:
    """The same test, looked at again after every few tasks, as people do."""

    def rule(rng: random.Random, known: Chances, _: TrialRecords) -> tuple[bool, int]:
        seen: list[int] = []
        while len(seen) < most:
            seen += [_drawn(rng, known, len(seen) + n) for n in range(every)]
            spread = statistics.stdev(seen) / math.sqrt(len(seen))
            if statistics.fmean(seen) > 1.7 * spread:
                return True, len(seen)
        return False, most

    return rule


RULES: dict[str, Rule] = {
    "**Tacit**, looked at after each round": tacit,
    "strictly better on 10 held-out tasks (SkillOpt-Sleep)": strictly_better(10),
    "strictly better on 40 held-out tasks": strictly_better(40),
    "judge's mean score not lower, 5 a side (xskill)": not_worse(5),
    "judge's mean score not lower, 20 a side": not_worse(20),
    "paired t-test on 20 tasks, looked at once (cap-evolve)": t_test(20),
    "the same, looked at after every 5 tasks up to 100": peeking(100, 5),
}


def promoted(
    rule: Rule, rng: random.Random, trials: int, known: Chances, candidates: int = 1
) -> tuple[float, float]:
    """The share of skills of which a candidate is promoted, and the mean number of pairs.

    Of -3 candidates the third has this effect, and those before it were tried for one pair.
    """
    found, pairs = 0, 0
    for _ in range(trials):
        with one_skill() as records:
            for _ in range(-candidates - 1):
                trial_of(rng, known, records, 1)
            for _ in range(max(candidates, 1)):
                yes, took = rule(rng, known, records)
                pairs += took
                if yes:
                    found += 1
                    break
    return found / trials, pairs / trials


def lots(
    rng: random.Random, without: float, with_skill: float, share: float, most: int
) -> tuple[bool, int]:
    """Whether sessions of daily use that drew lots find that a skill helps, and after how many.

    A session has one to three tasks that end alike, and each time that one more can be compared
    somebody looks (`learn/trial/daily_use.py`).
    """
    members: list[Segment] = []
    offered, held = set[str](), set[str]()
    seen = 0
    for number in range(most):
        side = rng.random() >= share
        worked = rng.random() < (with_skill if side else without)
        outcome = SegmentOutcome("worked" if worked else "failed")
        at = datetime.fromtimestamp(number, UTC)
        for task in range(rng.randint(1, 3)):
            one = Segment(
                session=str(number), number=task, start=0, stop=1, first=task, at=at,
                outcome=outcome,
            )  # fmt: skip
            members.append(one)
            (offered if side else held).add(one.id)
        if side and seen:
            continue
        found = compare([Cluster("", (), tuple(members))], offered, held, error_of(1)).success
        seen = found.count
        if found.finding() == "helps":
            return True, number + 1
    return False, most


_ROWS: tuple[tuple[str, Chances, int], ...] = (
    ("no effect, one task: looked at after each pair", [(0.5, 0.5)], 1),
    ("half of the tasks better by 40 points, half worse", mixed(0.4), CANDIDATES),
    ("+20 points from 10 %", chances(0.1, 0.2), 1),
    ("+20 points from 30 %", chances(0.3, 0.2), 1),
    ("+20 points from 40 %", chances(0.4, 0.2), 1),
    ("+20 points from 40 %, all in half of the tasks", chances(0.4, 0.2, uneven=True), 1),
    ("+20 points from 70 %", chances(0.7, 0.2), 1),
    ("+20 points from 40 %", chances(0.4, 0.2), -2),
    ("+20 points from 40 %", chances(0.4, 0.2), -3),
    ("+20 points from 40 %", chances(0.4, 0.2), -5),
    ("+20 points from 40 %, every task alike", [(0.4, 0.6)] * TASKS, 1),
    ("+20 points from 40 %, every task alike", [(0.4, 0.6)] * TASKS, -3),
)


def write_rules(rng: random.Random, trials: int) -> None:
    """Ours beside those of others."""
    print(f"| rule | no effect | no effect, {CANDIDATES} candidates | +20 points found | pairs |")
    print("|---|---|---|---|---|")
    for name, rule in RULES.items():
        alone, _ = promoted(rule, rng, trials, chances(0.5, 0.0))
        several, _ = promoted(rule, rng, trials, chances(0.5, 0.0), CANDIDATES)
        found, pairs = promoted(rule, rng, trials, chances(0.4, 0.2))
        print(f"| {name} | {alone:.1%} | {several:.1%} | {found:.0%} | {pairs:.0f} |", flush=True)


def write_effects(rng: random.Random, trials: int) -> None:
    """Ours at known effects."""
    print("\n| tasks | candidates | promoted | pairs a candidate | at most |")
    print("|---|---|---|---|---|")
    for name, known, candidates in _ROWS:
        found, pairs = promoted(tacit, rng, trials, known, candidates)
        number = f"number {-candidates}" if candidates < 0 else str(candidates)
        mean, most = pairs / max(candidates, 1), stated(abs(candidates))
        print(f"| {name} | {number} | {found:.1%} | {mean:.0f} | {most} |", flush=True)


def write_lots(rng: random.Random, trials: int) -> None:
    """Daily use by lot."""
    print("\n| left out of | without | with | found to help | sessions |")
    print("|---|---|---|---|---|")
    for share, without, with_skill in (
        (0.1, 0.5, 0.5), (0.2, 0.5, 0.5), (0.1, 0.4, 0.6), (0.2, 0.4, 0.6), (0.2, 0.3, 0.7),
    ):  # fmt: skip
        found = [lots(rng, without, with_skill, share, SESSIONS) for _ in range(trials)]
        yes = sum(one for one, _ in found) / trials
        mean = statistics.fmean(number for _, number in found)
        shares = f"{without:.0%} | {with_skill:.0%}"
        print(f"| {share:.0%} of sessions | {shares} | {yes:.1%} | {mean:.0f} |", flush=True)


_TABLES = {"rules": write_rules, "effects": write_effects, "lots": write_lots}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--table", choices=_TABLES, action="append")
    given = parser.parse_args()
    for name in given.table or _TABLES:
        _TABLES[name](random.Random(20), given.trials)


if __name__ == "__main__":
    main()
