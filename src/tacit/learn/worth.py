"""How much a sentence that the user typed is worth keeping: what they would say again.

No word tells a rule for all work from an order of the moment; people say both in plain words, in
any language. So signs are weighed that have little to do with words: above all whether much the
same was said in other sessions, and how much else was said beside it. `WEIGHTS` is a logistic
regression over what readers would have kept of sentences of real sessions, as printed by
`scripts/fit_worth.py`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tacit.changes.provenance.support import weighed
from tacit.learn.counted_session import CountedSession
from tacit.traces.requests import Said
from tacit.traces.typed_words import WIDE


class Worth(NamedTuple):
    """The signs of one sentence."""

    beside: float
    """How many sentences were typed in one go with it, as a part of ten."""
    again: float
    """The logarithm of the number of other sessions with much the same."""
    twice: float
    """How near the second nearest of them is."""
    often: float
    """The part of the other sessions with nearly the same."""
    length: float
    """The logarithm of its length."""
    together: float
    """Whether it says how user and agent work together, or what is to be remembered."""
    wished: float
    """Whether it is a wish by its words."""
    against: float
    """Whether it is against something that was done."""
    changed: float
    """Whether code was changed in answer."""
    first: float
    """Whether it stands in the first prompt."""
    asks: float
    """Whether it asks for something, rather than for an answer."""
    numbers: float
    """Whether it has numbers."""

    @property
    def chance(self) -> float:
        """From 0, of the moment, to 1."""
        return weighed(self, BIAS, WEIGHTS)


BIAS = -5.09
WEIGHTS = Worth(
    beside=-2.11,
    again=0.76,
    twice=0.40,
    often=1.85,
    length=0.50,
    together=2.87,
    wished=0.78,
    against=1.19,
    changed=-0.46,
    first=-0.16,
    asks=0.71,
    numbers=-0.34,
)

KEPT, ALONE = 0.18, 0.25
"""The chance from which on a sentence is kept that was said in several sessions, or against
something in one."""
MUCH, NEARLY = 0.35, 0.5
"""From which on two sentences say much the same, or nearly."""
MOST = 2_000
"""Sentences of a project that are compared: the latest."""
_EVERYWHERE = 100
"""A word of more sentences says too little to look for others by."""
Near = dict[int, float]
"""How near other sentences are, by their number; those with no rare word in common are left out."""


class Voices:
    """What was typed in the sessions of a project, and how near its sentences are to each other."""

    def __init__(self, traces: Sequence[CountedSession]) -> None:
        self.traces = traces
        self.said = list(_typed_once(traces))[-MOST:]
        self._words = [frozenset(said.words) for _, said in self.said]
        seen = Counter(word for words in self._words for word in words)
        self._weights = {w: math.log((1 + len(self.said)) / (1 + n)) + 1 for w, n in seen.items()}
        self._places: dict[str, list[int]] = {}
        for at, words in enumerate(self._words):
            for word in words:
                if seen[word] <= _EVERYWHERE:
                    self._places.setdefault(word, []).append(at)
        self._sizes = [
            math.sqrt(sum(self._weights[word] ** 2 for word in words)) for words in self._words
        ]
        self._sessions = len({trace.id for trace, _ in self.said})
        self.near: list[Near] = [{} for _ in self.said]
        for at, words in enumerate(self._words):
            for n in {n for word in words for n in self._places.get(word, ()) if n > at}:
                self.near[at][n] = self.near[n][at] = self._alike(at, n)
        self.signs = [self._worth(at) for at in range(len(self.said))]
        self.chances = [signs.chance for signs in self.signs]
        self._by_session: defaultdict[str, list[tuple[Said, float]]] = defaultdict(list)
        for (trace, said), chance in zip(self.said, self.chances, strict=True):
            self._by_session[trace.id].append((said, chance))

    def _alike(self, one: int, other: int) -> float:
        shared = sum(self._weights[word] ** 2 for word in self._words[one] & self._words[other])
        return shared / (self._sizes[one] * self._sizes[other])

    def _worth(self, at: int) -> Worth:
        """The signs of the sentence with this number."""
        trace, said = self.said[at]
        others: dict[str, float] = {}
        for n, alike in self.near[at].items():
            session = self.said[n][0].id
            if session != trace.id:
                others[session] = max(alike, others.get(session, 0.0))
        nearest = sorted(others.values(), reverse=True)
        told = said.text.casefold()
        wished = any(told in wish.text.casefold() for wish in trace.wishes)
        return Worth(
            min(said.beside, 10) / 10,
            math.log1p(sum(alike >= MUCH for alike in nearest)),
            nearest[1] if len(nearest) > 1 else 0.0,
            sum(alike >= NEARLY for alike in nearest) / max(_FEW, self._sessions - 1),
            math.log1p(len(said.text) * (_WIDER if WIDE.search(said.text) else 1)),
            float(said.together),
            float(wished),
            float(said.against),
            float(said.changed),
            float(said.turn == 0),
            float(said.asks),
            float(any(map(str.isdigit, said.text))),
        )

    def kept(self, session: str) -> Iterator[Said]:
        """The sentences of a session that are worth keeping whoever else says them."""
        for said, chance in self._by_session[session]:
            lasts = said.together or (said.against and chance >= ALONE)
            if lasts and said.asks and chance >= KEPT:
                yield said


def _typed_once(traces: Iterable[CountedSession]) -> Iterator[tuple[CountedSession, Said]]:
    """What was typed, each long sentence once: it was sent or pasted once more."""
    known: set[str] = set()
    for trace in traces:
        for said in trace.said:
            text = said.text.casefold()
            if text in known or len(set(said.words)) < _LEAST:
                continue
            if said.turn == 0 or len(text) > _LONG:
                known.add(text)
            yield trace, said


_LEAST, _LONG = 2, 80
_FEW = 5
"""Other sessions, of which a part says something."""
_WIDER = 2.2
"""How much more a character says where one is a word or a syllable."""
