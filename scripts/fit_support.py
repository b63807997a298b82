"""Fits the weights of `support.py` to planted and honest texts, and prints them.

    python scripts/fit_support.py [--left-out] [--reviews FILE]

Of a planted text the most doubtful phrase counts, of an honest one each phrase; a text that waits
for another reason counts for nothing. FILE has the phrases of honest reviews of real sessions, as
numbers alone, a line each (`planted-orders/reviews-supported.jsonl`). `--left-out` says for each
set how much of it would wait by what is fitted to all others.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

import tacit.changes.provenance.witness as witnessing
from planted_rates import FRESH, ORDERS, fresh_set, learned_files
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.phrases import phrases
from tacit.changes.provenance.support import DOUBTFUL, Support, weighed
from tacit.changes.provenance.witness import Witness
from tacit.testing.sample_sessions import made
from tacit.traces.trace import Trace

SETS = FRESH[3:-1]
"""Those whose sessions are about what their texts are about, but for the last: weights that were
fitted to it too stop as much, and no more honest changes land."""
REVIEWS = ORDERS / "reviews-supported.jsonl"
RIDGE, ROUNDS, STEPS = 3.03, 4, 12


class Example(msgspec.Struct, frozen=True):
    """What the session says of each phrase of one text."""

    of: str
    form: str
    waits: bool
    """Whether it waits for another reason."""
    phrases: list[Support]

    @property
    def planted(self) -> bool:
        return self.form not in ("honest", "real")


def example(of: str, form: str, trace: Trace, files: dict[str, bytes]) -> Example:
    witness = Witness(sources(trace))
    waits = witness(files, learned=True).verdict != "pass"
    told = ((phrase, witness.weighed(phrase)) for phrase in phrases(files))
    return Example(of, form, waits, [witness.support(one, words) for one, words in told if words])


def examples(which: str) -> list[Example]:
    fresh = fresh_set(which)
    found = [
        example(which, one.form, fresh.attacked(number, step)[1], learned_files(one))
        for number, one in enumerate(fresh.planted)
        for step in range(2)
    ]
    honest = (good for good in fresh.honest if good.root != "printed")
    return found + [
        example(which, "honest", made(*fresh.turns(good)), learned_files(good)) for good in honest
    ]


def _without_doubt() -> None:
    witnessing.DOUBTFUL = 2.0  # else what is doubtful would wait already


Weighed = tuple[float, list[float]]
"""The bias, and a weight for each sign."""


def doubt(fitted: Weighed, signs: Sequence[float]) -> float:
    return weighed(map(float, signs), *fitted)


def fit(found: list[Example]) -> Weighed:
    """A logistic regression; of what was planted, by the most doubtful phrase so far."""
    fitted: Weighed = (0.0, [0.0] * len(Support._fields))
    for number in range(ROUNDS):
        rows: list[tuple[Support, float, float]] = []
        for one in found:
            if one.waits or not one.phrases:
                continue
            chosen = one.phrases
            if one.planted and number:
                chosen = [max(chosen, key=lambda signs: doubt(fitted, signs))]
            share = 0.5 / len(chosen) if one.planted else 1.0
            rows += [(signs, float(one.planted), share) for signs in chosen]
        fitted = regress(rows)
    return fitted


def regress(rows: Sequence[tuple[Sequence[float], float, float]]) -> Weighed:
    """A logistic regression of signs, each with its label and its weight: Newton's steps on the
    signs brought to one scale, with a ridge."""
    columns = list(zip(*(signs for signs, _, _ in rows), strict=True))
    means = [math.fsum(column) / len(rows) for column in columns]
    scales = [
        math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(rows)) or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    scaled = [
        ([1.0, *((x - m) / s for x, m, s in zip(signs, means, scales, strict=True))], label, share)
        for signs, label, share in rows
    ]
    size = len(means) + 1
    beta = [0.0] * size
    for _ in range(STEPS):
        slope = [0.0, *(-RIDGE * b for b in beta[1:])]
        curve = [[RIDGE if r == c > 0 else 0.0 for c in range(size)] for r in range(size)]
        for signs, label, share in scaled:
            p = doubt((0.0, beta), signs)
            for r in range(size):
                slope[r] += share * (label - p) * signs[r]
                bend = share * p * (1 - p) * signs[r]
                for c in range(size):
                    curve[r][c] += bend * signs[c]
        beta = [b + d for b, d in zip(beta, _solved(curve, slope), strict=True)]
    weights = [b / s for b, s in zip(beta[1:], scales, strict=True)]
    return beta[0] - sum(map(float.__mul__, weights, means)), weights


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(len(rows)):
        best = max(range(at, len(rows)), key=lambda r: abs(rows[r][at]))
        rows[at], rows[best] = rows[best], rows[at]
        rows[at] = [x / rows[at][at] for x in rows[at]]
        for other in range(len(rows)):
            if other != at:
                times = rows[other][at]
                rows[other] = [x - times * y for x, y in zip(rows[other], rows[at], strict=True)]
    return [row[-1] for row in rows]


def rates(fitted: Weighed, found: list[Example]) -> str:
    said = []
    for form in dict.fromkeys(one.form for one in found):
        own = [one for one in found if one.form == form]
        waits = sum(
            one.waits or any(doubt(fitted, signs) >= DOUBTFUL for signs in one.phrases)
            for one in own
        )
        said.append(f"{form} {100 * waits / len(own):.0f} ({len(own)})")
    return ", ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--reviews", type=Path, default=REVIEWS)
    given = parser.parse_args()
    found = []
    with ProcessPoolExecutor(initializer=_without_doubt) as pool:
        for which, read in zip(SETS, pool.map(examples, SETS), strict=True):
            print(which, file=sys.stderr)
            found += read
    found += [
        msgspec.json.decode(line, type=Example) for line in given.reviews.read_bytes().splitlines()
    ]
    if given.left_out:
        for name in dict.fromkeys(one.of for one in found):
            others = fit([one for one in found if one.of != name])
            print(f"{name}: {rates(others, [one for one in found if one.of == name])}")
    bias, weights = fit(found)
    print(f"BIAS = {bias:.2f}")
    for name, value in zip(Support._fields, weights, strict=True):
        print(f"    {name}={value:.2f},")


if __name__ == "__main__":
    main()
