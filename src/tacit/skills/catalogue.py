"""The catalogue: the block in a prompt that tells a model which skills there are.

Within a budget of characters, whole descriptions or none, the most useful first. It is a pure
function of what it is given, so it stays the same to the byte while the library does, and a
conversation's prompt prefix with it.
"""

from collections.abc import Iterable

import msgspec

from tacit.skills.globs import matches
from tacit.skills.library import Entry

HEADING = "## Skills"
INTRODUCTION = (
    "A skill is a set of instructions for a kind of task. When one fits, load it before you begin."
)
SEARCH = "search_skills"
# With less than this left, looking for something that still fits would only favour short texts.
_SMALLEST = 200


class Order(msgspec.Struct, frozen=True):
    """What comes before the order by name: pinned skills, then the project's, then recent ones."""

    pinned: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    """Names, the last used first."""
    search: str = SEARCH
    """How the reader finds the rest: the name of a tool, or a command."""


class Offer(msgspec.Struct, frozen=True, gc=False):
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


def catalogue(
    entries: Iterable[Entry | Offer],
    budget: int,
    order: Order | None = None,
    touched: tuple[str, ...] = (),
) -> Catalogue:
    """The block for `entries` in at most `budget` characters.

    Skills with `disable-model-invocation` are left out. Those with `paths` are in only when a
    file of `touched` (relative to the project) fits. What does not fit the budget is counted, and
    the last line says how to find it.
    """
    order = order or Order()
    offered = [e for e in entries if e.model_invocable and _is_near(e, touched)]
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
    noun = "skill" if count == 1 else "skills"
    return f"{count:,} more {noun} can be found with {search}.\n"


def _rank(order: Order) -> "_Key":
    return _Key(
        {name: number for number, name in enumerate(order.pinned)},
        {name: number for number, name in enumerate(order.recent)},
    )


class _Key:
    """The sort key of an entry: pinned, project, recently used, then by name."""

    def __init__(self, pinned: dict[str, int], recent: dict[str, int]) -> None:
        self._pinned = pinned
        self._recent = recent

    def __call__(self, entry: Entry | Offer) -> tuple[int, int, int, bool, str]:
        name = entry.name
        never = len(self._recent)
        return (
            self._pinned.get(name, len(self._pinned)),
            0 if entry.scope == "project" else 1,
            self._recent.get(name, never),
            not entry.description,  # nothing to choose it by
            name,
        )


def _is_near(entry: Entry | Offer, touched: tuple[str, ...]) -> bool:
    return not entry.paths or any(matches(path, p) for p in entry.paths for path in touched)
