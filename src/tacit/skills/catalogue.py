"""The catalogue: the block in a prompt that tells a model which skills there are.

Within a budget of characters, whole descriptions or none, the most useful first. It is a pure
function of what it is given, so it stays the same to the byte while the library does, and a
conversation's prompt prefix with it.

Also the patterns for files that skills write under `paths` (`src/**/*.py`, `*.{ts,tsx}`). They come
from other people, so matching takes time by the length of pattern and path, whatever they say.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from tacit.base.display import counted
from tacit.skills.library import Entry
from tacit.skills.standing import RANKS, UNTRIED

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


HEADING = "## Skills"
INTRODUCTION = (
    "A skill is a set of instructions for a kind of task. When one fits, load it before you begin."
)
SEARCH = "search_skills"
# With less than this left, looking for something that still fits would only favour short texts.
_SMALLEST = 200


class CatalogueOrder(msgspec.Struct, frozen=True):
    """What comes before the order by name: pinned skills, the project's, tried and recent ones."""

    pinned: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    """Names, the last used first."""
    standings: dict[str, str] = {}
    """By name, of those that were tried: what helps comes before the rest of its scope, and what
    makes no difference or harms behind it."""
    search: str = SEARCH
    """How the reader finds the rest: the name of a tool, or a command."""


class CatalogueRow(msgspec.Struct, frozen=True, gc=False):
    """What a catalogue looks at; an `Entry` has all of it too."""

    name: str
    description: str
    scope: str
    model_invocable: bool = True
    paths: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True):
    """The block, the names in it, and how many more there are."""

    text: str
    shown: tuple[str, ...]
    more: int


def make_catalogue(
    entries: Iterable[Entry | CatalogueRow],
    budget: int,
    order: CatalogueOrder | None = None,
    touched: tuple[str, ...] = (),
) -> Catalogue:
    """The block for `entries` in at most `budget` characters.

    Skills with `disable-model-invocation` are left out. Those with `paths` are in only when a
    file of `touched` (relative to the project) fits. What does not fit the budget is counted, and
    the last line says how to find it.
    """
    order = order or CatalogueOrder()
    offered = [e for e in entries if e.model_invocable and _applies(e, touched)]
    offered.sort(key=_rank(order))
    used = len(f"{HEADING}\n\n{INTRODUCTION}\n\n") + len(_more(len(offered), order.search))
    lines, shown = [], []
    for entry in offered:
        line = f"- {entry.name}: {entry.description}\n"
        if used + _SMALLEST > budget:
            break
        if used + len(line) <= budget:
            used += len(line)
            lines.append(line)
            shown.append(entry.name)
    more = len(offered) - len(shown)
    if not offered:
        return Catalogue("", (), 0)
    last = _more(more, order.search) if more else ""
    text = f"{HEADING}\n\n{INTRODUCTION}\n\n{''.join(lines)}{last}" if lines else last
    return Catalogue(text if len(text) <= budget else "", tuple(shown), more)


def _more(count: int, search: str) -> str:
    return f"{counted(count, 'more skill')} can be found with {search}.\n"


def _rank(order: CatalogueOrder) -> "_Key":
    return _Key(
        {name: number for number, name in enumerate(order.pinned)},
        {name: number for number, name in enumerate(order.recent)},
        order.standings,
    )


class _Key:
    """The sort key of an entry: pinned, project, standing, recently used, then by name."""

    def __init__(
        self, pinned: dict[str, int], recent: dict[str, int], standings: dict[str, str]
    ) -> None:
        self._pinned = pinned
        self._recent = recent
        self._standings = standings

    def __call__(self, entry: Entry | CatalogueRow) -> tuple[int, int, int, int, bool, str]:
        name = entry.name
        never = len(self._recent)
        return (
            self._pinned.get(name, len(self._pinned)),
            0 if entry.scope == "project" else 1,
            RANKS.get(self._standings.get(name, UNTRIED), 1),
            self._recent.get(name, never),
            not entry.description,  # nothing to choose it by
            name,
        )


def _applies(entry: Entry | CatalogueRow, touched: tuple[str, ...]) -> bool:
    return not entry.paths or any(matches_glob(path, p) for p in entry.paths for path in touched)
