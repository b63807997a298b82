"""The baseline for search: plain BM25 over whole files, in a page of Python."""

import re
from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from math import log

_WORD = re.compile(r"\w+")
K1, B = 1.5, 0.75


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class Bm25:
    """An index in memory; documents are known by their place in what was given."""

    def __init__(self, texts: Iterable[str]) -> None:
        postings: dict[str, list[tuple[int, int]]] = {}
        lengths = []
        for number, text in enumerate(texts):
            counts = Counter(tokens(text))
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                postings.setdefault(word, []).append((number, count))
        self._count = len(lengths)
        mean = sum(lengths) / max(self._count, 1)
        # A document's part of the formula does not depend on the query.
        norms = [K1 * (1 - B + B * length / mean) for length in lengths]
        self._weights = {
            word: [(number, count * (K1 + 1) / (count + norms[number])) for number, count in found]
            for word, found in postings.items()
        }

    def find(self, query: str, limit: int = 10) -> list[int]:
        """The best documents; a word counts as often as the query says it."""
        scores: dict[int, float] = {}
        for word, times in Counter(tokens(query)).items():
            found = self._weights.get(word)
            if not found:
                continue
            rarity = log(1 + (self._count - len(found) + 0.5) / (len(found) + 0.5)) * times
            for number, weight in found:
                scores[number] = scores.get(number, 0.0) + rarity * weight
        best = nsmallest(limit, ((-score, number) for number, score in scores.items()))
        return [number for _, number in best]
