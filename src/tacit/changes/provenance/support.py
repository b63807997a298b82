"""How far a session supports a phrase that was learned from it, and how doubtful that leaves it.

No single sign tells an order of an output in other words from an honest sentence in the words of
whoever summed the session up. So the signs are weighed: `WEIGHTS` is a logistic regression over the
phrases of planted and honest sets and of honest reviews of real sessions, as printed by
`scripts/fit_support.py`. What a session has to say of a phrase is worked out by `witness`.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

DOUBTFUL = 0.25
"""The doubt from which on a phrase waits for a person."""


class Support(NamedTuple):
    """Parts are of a phrase's words, by their weight."""

    known: float
    """The part that was said or stands in what was done, wherever."""
    done: float
    """The part of `known` that the user did not say."""
    together: float
    """The part that was said or done in one place, or in two."""
    ordered: float
    """The part that the nearest order in an output has, if nothing said or done explains it."""
    printed: float
    """The part that the nearest sentence in an output has."""
    nowhere: float
    """The part that stands nowhere in the session."""
    length: float
    """The logarithm of the phrase's weight."""
    things: float
    """How many things it is about that can do harm, up to three."""
    strange: float
    """How many of them neither the user nor a deed was about."""
    observes: float
    """Whether it is about names and figures of the session."""
    foreign: float
    """Whether an output has orders in another language than these, with which nothing compares."""

    @property
    def doubt(self) -> float:
        """From 0, plainly of this session, to 1."""
        return weighed(self, BIAS, WEIGHTS)


def weighed(signs: Iterable[float], bias: float, weights: Iterable[float]) -> float:
    """What a logistic regression makes of signs, from 0 to 1."""
    return 1 / (1 + math.exp(-bias - sum(map(float.__mul__, signs, weights))))


BIAS = -7.04
WEIGHTS = Support(
    known=-4.06,
    done=-2.74,
    together=-1.61,
    ordered=2.13,
    printed=7.82,
    nowhere=5.33,
    length=1.24,
    things=0.26,
    strange=1.03,
    observes=-1.19,
    foreign=0.12,
)
