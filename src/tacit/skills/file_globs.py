"""The patterns for files that skills write under `paths` (`src/**/*.py`, `*.{ts,tsx}`).

They come from other people, so matching takes time by the length of pattern and path, whatever
they say.
"""

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

# A longer pattern fits nothing.
_LONGEST = 500
# With more ways to choose than this, braces are taken as they stand.
_MOST_CHOICES = 256


def matches_glob(path: str, pattern: str) -> bool:
    """Whether the relative `path` fits. A pattern without `/` fits a name at any depth.

    `*` and `?` stay within one folder; `**` as a whole part spans any number of them.
    """
    parts = path.replace("\\", "/").removeprefix("./").split("/")
    return any(_fits(parts, wanted) for wanted in _compiled(pattern.removeprefix("./")))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
    """Every choice of `pattern` as its parts; None stands for `**`."""
    if pattern.endswith("/"):
        pattern += "**"
    choices = _choices(pattern) if len(pattern) <= _LONGEST else []
    if len(choices) > _MOST_CHOICES:
        choices = [pattern]
    found = []
    for choice in dict.fromkeys(choices):
        texts = choice.split("/") if "/" in choice else ["**", choice]
        parts = [None if text == "**" else _part(text) for text in texts]
        # Two in a row say no more than one.
        found.append(tuple(p for n, p in enumerate(parts) if p or not n or parts[n - 1]))
    return tuple(found)


def _part(text: str) -> re.Pattern[str]:
    try:
        return re.compile(fnmatch.translate(text))
    except re.error:  # an odd pattern fits only itself
        return re.compile(re.escape(text) + r"\Z")


def _choices(pattern: str) -> list[str]:
    """`a{b,c{d,e}}` as `ab`, `acd`, `ace`. Braces without a comma or a partner are plain text."""
    for start in (at for at, c in enumerate(pattern) if c == "{"):
        depth, cuts = 0, [start]
        for at in range(start, len(pattern)):
            c = pattern[at]
            depth += (c == "{") - (c == "}")
            if (c == "," and depth == 1) or not depth:
                cuts.append(at)
            if not depth:
                break
        if depth or len(cuts) < 3:
            continue
        inner = [pattern[a + 1 : b] for a, b in pairwise(cuts)]
        found: list[str] = []
        for tail in _choices(pattern[cuts[-1] + 1 :]):
            for middle in inner:
                found.extend(pattern[:start] + head + tail for head in _choices(middle))
                if len(found) > _MOST_CHOICES:
                    return found
        return found
    return [pattern]


def _fits(parts: Sequence[str], wanted: Sequence[re.Pattern[str] | None]) -> bool:
    """Part by part, remembering where in the path each part of the pattern may begin."""
    places = {0}
    for number, part in enumerate(wanted, 1):
        if part is None and number == len(wanted):
            return min(places) < len(parts)  # something in the folder, not the folder
        if part is None:
            places = set(range(min(places), len(parts) + 1))
        else:
            places = {at + 1 for at in places if at < len(parts) and part.match(parts[at])}
        if not places:
            return False
    return len(parts) in places
