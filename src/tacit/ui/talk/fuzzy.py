"""Fuzzy search over short names: the letters typed, in order, anywhere in the name."""

import re
from collections.abc import Iterable

_WORD_START = re.compile(r"(?:^|[-_./\s:])$")


def rank(query: str, names: Iterable[str], most: int = 50) -> list[str]:
    """The names that hold the letters of `query` in order, the nearest first."""
    if not query:
        return [name for name, _ in zip(names, range(most), strict=False)]
    pattern = re.compile(".*?".join(re.escape(c) for c in query), re.I | re.S)
    found = [(score(query, name), name) for name in names if pattern.search(name)]
    found.sort(key=lambda pair: (-pair[0], len(pair[1]), pair[1]))
    return [name for _, name in found[:most]]


def score(query: str, name: str) -> float:
    """How well `query` fits `name`; 0 when a letter is missing."""
    wanted, whole = query.casefold(), name.casefold()
    if not wanted:
        return 1.0
    if whole == wanted:
        return 1000.0
    base = whole.rstrip("/").rpartition("/")[2]
    for text, worth in ((whole, 500.0), (base, 400.0)):
        if text.startswith(wanted):
            return worth
    at = whole.find(wanted)
    if at >= 0:
        return 300.0 if _WORD_START.search(whole[:at]) else 200.0
    return _scattered(wanted, whole)


def _scattered(wanted: str, whole: str) -> float:
    """Letters that follow each other count most, then letters at the start of words."""
    total, at = 0.0, 0
    for number, letter in enumerate(wanted):
        rest = wanted[number + 1 :]
        places = [
            i
            for i in range(at, len(whole))
            if whole[i] == letter and _follows(rest, whole[i + 1 :])
        ]
        if not places:
            return 0.0
        starts = [i for i in places if i == 0 or whole[i - 1] in "-_./ :"]
        next_one = at > 0 and places[0] == at
        place = at if next_one else (starts or places)[0]
        total += 3.0 if next_one else 2.0 if place in starts else 1.0
        at = place + 1
    return 100.0 * total / (3.0 * len(wanted))


def _follows(wanted: str, whole: str) -> bool:
    letters = iter(whole)
    return all(letter in letters for letter in wanted)
