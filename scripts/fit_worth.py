"""Fits the weights of `learn/worth.py` and `learn/refrains.py`, and prints them.

    python scripts/fit_worth.py [--left-out]

Both are from real sessions of 66 people, as numbers alone, a line each: the person, the things
worth keeping that it says, by a reader who knew no rule, and its signs. `typed-sentences.jsonl`
has sentences, `typed-refrains.jsonl` groups of them with a word in common (`tests/fixtures`). What
is said in many of them weighs less in each. `--left-out` says how good the best of each person are
by what is fitted to all others.
"""

import argparse
import json
import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from fit_support import Weighed, doubt, regress
from tacit.learn.refrains import Returns
from tacit.learn.worth import Worth

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
_BEST = (100, 200, 300)


class Sentence(NamedTuple):
    person: int
    things: list[int]
    signs: list[float]


def fit(found: list[Sentence]) -> Weighed:
    often = Counter(thing for one in found for thing in one.things)
    rows = []
    for one in found:
        share = 1 / math.sqrt(min(often[thing] for thing in one.things)) if one.things else 1.0
        rows.append((one.signs, float(bool(one.things)), share))
    return regress(rows)


def left_out(found: list[Sentence]) -> None:
    """How many of the best sentences say something worth keeping, and how many things."""
    ranked: list[tuple[float, Sentence]] = []
    for person in sorted({one.person for one in found}):
        others = fit([one for one in found if one.person != person])
        ranked += [(doubt(others, one.signs), one) for one in found if one.person == person]
    ranked.sort(key=lambda one: -one[0])
    every = {thing for one in found for thing in one.things}
    for number in _BEST:
        best = [one for _, one in ranked[:number]]
        good = sum(bool(one.things) for one in best)
        things = {thing for one in best for thing in one.things}
        print(f"of the best {number}: {good} worth keeping, {len(things)} of {len(every)} things")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--left-out", action="store_true")
    given = parser.parse_args()
    for name, fields in (("sentences", Worth._fields), ("refrains", Returns._fields)):
        lines = (FIXTURES / f"typed-{name}.jsonl").read_text("utf-8").splitlines()
        found = [Sentence(*json.loads(line)) for line in lines]
        print(f"{name}: {len(found)}")
        if given.left_out:
            left_out(found)
        bias, weights = fit(found)
        print(f"BIAS = {bias:.2f}")
        for field, value in zip(fields, weights, strict=True):
            print(f"    {field}={value:.2f},")


if __name__ == "__main__":
    main()
