"""The arithmetic of trials: an interval for a mean difference that may be looked at at any time.

Outcomes come in pairs, one run with and one without, and a pair gives a difference between -1 and
1. For each mean that is thinkable, one bets against it, pair after pair, at several stakes at once;
whoever's guess is right gains nothing on average, so a fortune of 1/alpha is seen with a chance of
at most alpha, however often one looks (Ville's inequality). The interval holds the means against
which no such fortune was made. Stakes are fixed beforehand, which makes the result one of counts:
the order of the pairs does not matter, and where a round holds every task once, tasks may differ in
their effect (a product of means is at most the power of their mean), so long as one looks between
rounds.

Several candidates of one skill share one chance of error: the n-th has 1/n(n+1) of it, which adds
up to the whole. What is compared, and what follows, is left to others.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

Finding = Literal["helps", "no difference", "harms", "unclear"]

ERROR = 0.05
"""The chance that any of the candidates of a skill without effect is found to help."""
MARGIN = 0.2
"""The difference that trials are made to find: 20 points. Within it, nothing counts as harm."""
_STAKES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 0.95)
_STEPS = 30
"""Halvings in the search for an end of the interval."""
_SLACK = 1.5
"""How many more pairs than on average make it likely that a difference is found."""


class Interval(msgspec.Struct, frozen=True):
    """The mean of paired differences, and between which values it lies."""

    mean: float
    low: float
    high: float
    count: int
    """Pairs."""

    def finding(self) -> Finding:
        """What this says of the mean."""
        if self.low > 0:
            return "helps"
        if self.high < 0:
            return "harms"
        inside = self.low > -MARGIN and self.high < MARGIN
        return "no difference" if inside else "unclear"

    @property
    def harmless(self) -> bool:
        """Whether harm of the size that trials look for is ruled out."""
        return self.low > -MARGIN


def points(interval: Interval) -> str:
    """A difference of shares in points of a hundred: `+20 points (+3 to +37)`."""
    mean, low, high = (round(100 * end) + 0 for end in (interval.mean, interval.low, interval.high))
    return f"{mean:+d} points ({low:+d} to {high:+d})"


def error_of(attempt: int) -> float:
    """The chance of error, to one side, that the n-th candidate of a skill may take."""
    return ERROR / (attempt * (attempt + 1))


def interval_of(differences: Iterable[float], error: float = ERROR / 2) -> Interval:
    """The interval for the mean of `differences`, each from -1 to 1; `error` is to each side.

    The default is an interval of 95 %.
    """
    counts = Counter(differences)
    number = counts.total()
    mean = sum(value * times for value, times in counts.items()) / number if number else 0.0
    mirrored = Counter({-value: times for value, times in counts.items()})
    return Interval(mean, _low(counts, error), -_low(mirrored, error), number)


def relative(one: float, other: float) -> float:
    """How two amounts differ, from -1 to 1, so that doubling and halving are as far from 0."""
    return (one - other) / (one + other) if one + other > 0 else 0.0


def as_change(value: float) -> float:
    """What `relative` says as a change: 1.0 for twice as much, -0.5 for half."""
    return 2 * value / (1 - value) if value < 1 else math.inf


def pairs_needed(better: float, worse: float, error: float = ERROR / 2) -> int:
    """About how many pairs show a difference, where these shares of pairs are better and worse."""
    gain = max(better * math.log1p(c) + worse * math.log1p(-c) for c in _STAKES)
    if gain <= 0:
        return 0
    return math.ceil(_SLACK * (1 - math.log(error)) / gain)


def pairs_planned(attempt: int) -> int:
    """Pairs within which a difference of `MARGIN` is found in four of five candidates or more.

    Whatever the shares: they are 40 and 60 of 100 here, where chance has its widest room.
    `bench/trial_rates.py` simulates it.
    """
    unlike = (1 + MARGIN**2) / 2
    return pairs_needed((unlike + MARGIN) / 2, (unlike - MARGIN) / 2, error_of(attempt))


def pairs_to_tell(differences: Iterable[float], error: float = ERROR / 2) -> int:
    """About how many pairs tell: for the difference seen, or for one of `MARGIN`, if smaller."""
    seen = list(differences)
    # One of each in four is added, so that few pairs promise nothing.
    better, worse = (
        (0.5 + sum(sign * value for value in seen if sign * value > 0)) / (2 + len(seen))
        for sign in (1, -1)
    )
    unlike = better + worse
    effect = max(abs(better - worse), MARGIN)
    unlike = max(unlike, effect)
    return pairs_needed((unlike + effect) / 2, (unlike - effect) / 2, error)


def _low(counts: Counter[float], error: float) -> float:
    """The smallest mean against which no fortune was made by betting on more."""
    low, high = -1.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _fortune(counts, middle) >= -math.log(error):
            low = middle
        else:
            high = middle
    return low


def _fortune(counts: Counter[float], mean: float) -> float:
    """The logarithm of what betting on more than `mean` has come to. It falls as `mean` rises."""
    kept = [
        sum(
            times * math.log(1 - stake + stake * (1 + value) / (1 + mean))
            for value, times in counts.items()
        )
        for stake in _STAKES
    ]
    most = max(kept)
    return most + math.log(sum(math.exp(one - most) for one in kept) / len(kept))
