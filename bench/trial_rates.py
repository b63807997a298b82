"""How often rules for accepting a skill err: ours, and those of others, simulated.

A candidate succeeds with one chance with the skill and with another without. Each rule looks as it
would; ours after each round, as often as it likes, over several candidates of one skill. Printed is
the table of docs/trials.md.

    .venv/bin/python -m bench.trial_rates [--trials 2000]
"""

import argparse
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from tacit.learn.trial.interval import error_of, is_better

PAIRS = 200
"""The pairs within which a difference of 20 points is to be found."""
CANDIDATES = 5
_T95 = {10: 1.833, 20: 1.729, 40: 1.685}
"""Student's t, to one side at 5 %, by the number of tasks."""

Rule = Callable[[random.Random, float, float, int], tuple[bool, int]]
"""Whether a candidate is promoted, and after how many pairs: given both chances and its number."""


def _drawn(rng: random.Random, without: float, with_skill: float) -> int:
    return (rng.random() < with_skill) - (rng.random() < without)


def tacit(rng: random.Random, without: float, with_skill: float, attempt: int) -> tuple[bool, int]:
    """Ours: looked at after each pair, until it is clear or `PAIRS` are run."""
    error, seen = error_of(attempt), Counter[float]()
    for pair in range(1, PAIRS + 1):
        difference = _drawn(rng, without, with_skill)
        seen[difference] += 1
        if difference > 0 and is_better(seen, error):
            return True, pair
    return False, PAIRS


def strictly_better(tasks: int) -> Rule:
    """SkillOpt-Sleep: more of the held-out tasks succeed, one run each."""

    def rule(rng: random.Random, without: float, with_skill: float, _: int) -> tuple[bool, int]:
        found = sum(_drawn(rng, without, with_skill) for _ in range(tasks))
        return found > 0, tasks

    return rule


def not_worse(scores: int) -> Rule:
    """xskill: the mean of a judge's noisy scores is not below that of the main version."""

    def rule(rng: random.Random, without: float, with_skill: float, _: int) -> tuple[bool, int]:
        ours = sum(rng.gauss(with_skill, 0.25) for _ in range(scores))
        return ours >= sum(rng.gauss(without, 0.25) for _ in range(scores)), scores

    return rule


def t_test(tasks: int) -> Rule:
    """cap-evolve: the paired difference is more than t times its standard error, looked at once."""

    def rule(rng: random.Random, without: float, with_skill: float, _: int) -> tuple[bool, int]:
        seen = [_drawn(rng, without, with_skill) for _ in range(tasks)]
        spread = statistics.stdev(seen) / math.sqrt(tasks)
        return statistics.fmean(seen) > _T95[tasks] * spread, tasks

    return rule


def peeking(most: int, every: int) -> Rule:
    """The same test, looked at again after every few tasks, as people do."""

    def rule(rng: random.Random, without: float, with_skill: float, _: int) -> tuple[bool, int]:
        seen: list[int] = []
        while len(seen) < most:
            seen += [_drawn(rng, without, with_skill) for _ in range(every)]
            spread = statistics.stdev(seen) / math.sqrt(len(seen))
            if statistics.fmean(seen) > 1.7 * spread:
                return True, len(seen)
        return False, most

    return rule


RULES: dict[str, Rule] = {
    "**Tacit**, looked at after each pair": tacit,
    "strictly better on 10 held-out tasks (SkillOpt-Sleep)": strictly_better(10),
    "strictly better on 40 held-out tasks": strictly_better(40),
    "judge's mean score not lower, 5 a side (xskill)": not_worse(5),
    "judge's mean score not lower, 20 a side": not_worse(20),
    "paired t-test on 20 tasks, looked at once (cap-evolve)": t_test(20),
    "the same, looked at after every 5 tasks up to 100": peeking(100, 5),
}


def rates(rule: Rule, rng: random.Random, trials: int, chances: Sequence[float]) -> list[float]:
    """The shares promoted without an effect, in one of several candidates, and with +20 points;
    and the mean number of pairs for the last."""
    none = sum(rule(rng, 0.5, 0.5, 1)[0] for _ in range(trials)) / trials
    several = sum(
        any(rule(rng, 0.5, 0.5, n)[0] for n in range(1, CANDIDATES + 1)) for _ in range(trials)
    )
    found = [rule(rng, chance, chance + 0.2, 1) for chance in chances for _ in range(trials)]
    mean = statistics.fmean(pairs for _, pairs in found)
    return [none, several / trials, sum(yes for yes, _ in found) / len(found), mean]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    rng = random.Random(20)
    print(f"| rule | no effect | no effect, {CANDIDATES} candidates | +20 points found | pairs |")
    print("|---|---|---|---|---|")
    for name, rule in RULES.items():
        none, several, found, mean = rates(rule, rng, trials, (0.1, 0.3, 0.5, 0.7))
        print(f"| {name} | {none:.1%} | {several:.1%} | {found:.0%} | {mean:.0f} |", flush=True)
    for chance in (0.1, 0.3, 0.4, 0.5, 0.7):
        found = [tacit(rng, chance, chance + 0.2, 1) for _ in range(trials)]
        share = sum(yes for yes, _ in found) / trials
        mean = statistics.fmean(pairs for _, pairs in found)
        line = f"within {PAIRS} pairs: {share:.0%}, {mean:.0f} pairs on average"
        print(f"Tacit, {chance:.0%} to {chance + 0.2:.0%}: {line}")


if __name__ == "__main__":
    main()
