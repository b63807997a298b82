"""How much of a phrase stands together in a body of texts, and where.

Words are compared by their stems within a window somewhat longer than the phrase, so another
order, a filler or another ending makes no difference. Cost grows with the places where the
phrase's own words stand.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from tacit.learn.provenance.sources import Said
from tacit.learn.provenance.wording import plain, readings, stems, weight


class Match(msgspec.Struct, frozen=True):
    """The best place: the part of the phrase that stands there by weight, and its step."""

    share: float = 0.0
    step: str = ""
    found: frozenset[str] = frozenset()
    pairs: float = 0.0
    """The part of the phrase's neighbouring words that are neighbours there as well."""


class Body:
    """Texts that phrases are looked for in. `disguised`: also as they may have been meant."""

    def __init__(self, texts: Iterable[Said], *, disguised: bool = False) -> None:
        self.texts: list[tuple[str, str]] = []
        for said in texts:
            ways = readings(said.text) if disguised else [plain(said.text)]
            self.texts += [(said.step, way) for way in ways if way.strip()]
        self._places: list[dict[str, list[int]]] = []
        for _, way in self.texts:
            places: dict[str, list[int]] = {}
            for at, stem in enumerate(stems(way)):
                places.setdefault(stem, []).append(at)
            self._places.append(places)

    def best(self, phrase: Sequence[str]) -> Match:
        """Where most of `phrase` stands together."""
        return max(self._each(phrase), key=lambda match: match.share, default=Match())

    def best_two(self, phrase: Sequence[str]) -> Match:
        """As `best`, but a phrase may be put together from two steps."""
        found = sorted(self._each(phrase), key=lambda match: -match.share)[:6]
        best = found[0] if found else Match()
        whole = weight(phrase)
        for one in found[:3]:
            for other in found:
                if one.step == other.step or min(one.share, other.share) < 0.3:
                    continue
                share = weight(one.found | other.found) / whole
                if share > best.share + 0.2:
                    best = Match(share, one.step, one.found | other.found, one.pairs + other.pairs)
        return best

    def holds(self, text: str) -> str:
        """The step in which folded `text` stands as it is; empty where it stands in none."""
        return next((step for step, way in self.texts if text in way), "")

    def _each(self, phrase: Sequence[str]) -> list[Match]:
        whole = weight(phrase)
        if not whole:
            return []
        window = len(phrase) + len(phrase) // 2 + 4
        found = []
        for (step, _), places in zip(self.texts, self._places, strict=True):
            hits = sorted((at, stem) for stem in phrase if stem in places for at in places[stem])
            if hits:
                inside = _most_together(hits, window)
                pairs = _neighbours(phrase, inside, places)
                found.append(Match(weight(inside) / whole, step, inside, pairs))
        return found


def _most_together(hits: list[tuple[int, str]], window: int) -> frozenset[str]:
    """The set of different words within `window` that weighs most."""
    counts: dict[str, int] = {}
    best: frozenset[str] = frozenset()
    most, now = 0.0, 0.0
    first = 0
    for at, stem in hits:
        if stem not in counts:
            now += weight((stem,))
        counts[stem] = counts.get(stem, 0) + 1
        while at - hits[first][0] > window:
            gone = hits[first][1]
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
                now -= weight((gone,))
            first += 1
        if now > most:
            best, most = frozenset(counts), now
    return best


def _neighbours(
    phrase: Sequence[str], inside: frozenset[str], places: dict[str, list[int]]
) -> float:
    """The part of the phrase's neighbouring words that stand beside each other in the text."""
    pairs = list(pairwise(phrase))
    if not pairs:
        return 1.0
    together = 0
    for one, other in pairs:
        if one in inside and other in inside:
            ats = set(places[other])
            together += any(at + step in ats for at in places[one][:2000] for step in (1, 2, -1))
    return together / len(pairs)
