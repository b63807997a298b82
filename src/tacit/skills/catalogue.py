"""The catalogue: the block in a prompt that tells a model which skills there are.

Within a budget of characters, whole descriptions or none, the most useful first: pinned skills, the
project's, those used last, then those that speak of what the project is made of
(`project_terms.py`), then those for what is asked for everywhere. It is a pure function of what it
is given, so it stays the same to the byte while that does, and a conversation's prompt prefix with
it. `tacit catalogue` waits for this module, so it imports little.
"""

from itertools import accumulate

from tacit.base.display import counted
from tacit.skills import index
from tacit.skills.scopes import ACTIVE
from tacit.skills.standing import RANKS, UNTRIED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tacit.skills.index import Snapshot
    from tacit.skills.scopes import Root

HEADING = "## Skills"
INTRODUCTION = (
    "A skill is a set of instructions for a kind of task. When one fits, load it before you begin."
)
SEARCH = "search_skills"
BUDGET = 8000
"""The default of the setting `catalogue.budget`, for who must not wait for the settings."""
# With less than this left, looking for something that still fits would only favour short texts.
_SMALLEST = 200


class CatalogueOrder:
    """What comes before the order by name: pinned skills, the project's, recent ones, fitting ones.

    `recent`: names, the last used first. `terms`: words for what the project is made of. `search`:
    how the reader finds the rest, the name of a tool or a command. `standings`: by name, what
    trials found: what helps comes before the rest of its scope, what does not behind it.
    """

    __slots__ = ("pinned", "recent", "search", "standings", "terms")

    def __init__(
        self,
        pinned: tuple[str, ...] = (),
        recent: tuple[str, ...] = (),
        search: str = SEARCH,
        terms: tuple[str, ...] = (),
        standings: "dict[str, str] | None" = None,
    ) -> None:
        self.pinned, self.recent, self.search, self.terms = pinned, recent, search, terms
        self.standings = standings or {}


class CatalogueRow:
    """What a catalogue looks at; an `Entry` has all of it too."""

    __slots__ = ("description", "model_invocable", "name", "paths", "scope")

    def __init__(
        self,
        name: str,
        description: str,
        scope: str,
        model_invocable: bool = True,
        paths: tuple[str, ...] = (),
    ) -> None:
        self.name, self.description, self.scope = name, description, scope
        self.model_invocable, self.paths = model_invocable, paths


class Catalogue:
    """The block, the names in it, and how many more there are."""

    __slots__ = ("more", "shown", "text")

    def __init__(self, text: str, shown: tuple[str, ...], more: int) -> None:
        self.text, self.shown, self.more = text, shown, more

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> "dict[str, Any]":
        """For JSON."""
        return {"text": self.text, "shown": self.shown, "more": self.more}


def offered_rows(
    snapshots: "list[tuple[Root, Snapshot]]", states: list[list[str]]
) -> list[CatalogueRow]:
    """What the catalogue needs of the active skills, without making an entry of each."""
    offers = []
    for (root, snapshot), marks in zip(snapshots, states, strict=True):
        known, scope = snapshot.columns, root.scope
        hidden = {n for n, flags in known.flags.items() if flags & index.NO_MODEL}
        offers += [
            CatalogueRow(
                name, description, scope, number not in hidden, known.paths.get(number, ())
            )
            for number, (name, description, state) in enumerate(
                zip(known.names, known.descriptions, marks, strict=True)
            )
            if state == ACTIVE
        ]
    return offers


def make_catalogue(
    entries: "Iterable[Any]",
    budget: int,
    order: CatalogueOrder | None = None,
    touched: tuple[str, ...] = (),
) -> Catalogue:
    """The block for `entries`, rows or entries of the library, in at most `budget` characters.

    Skills with `disable-model-invocation` are left out. Those with `paths` are in only when a
    file of `touched` (relative to the project) fits. What does not fit the budget is counted, and
    the last line says how to find it.
    """
    order = order or CatalogueOrder()
    offered = [e for e in entries if e.model_invocable and _applies(e, touched)]
    if not offered:
        return Catalogue("", (), 0)
    used = len(f"{HEADING}\n\n{INTRODUCTION}\n\n") + len(_more(len(offered), order.search))
    offered = _ranked(offered, order, budget - used)
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
    last = _more(more, order.search) if more else ""
    text = f"{HEADING}\n\n{INTRODUCTION}\n\n{''.join(lines)}{last}" if lines else last
    return Catalogue(text if len(text) <= budget else "", tuple(shown), more)


def _more(count: int, search: str) -> str:
    return f"{counted(count, 'more skill')} can be found with {search}.\n"


def _ranked(offered: "list[Any]", order: CatalogueOrder, room: int) -> "list[Any]":
    """`offered`, the most useful first. What the project is decides only where not all fit."""
    pinned = {name: number for number, name in enumerate(order.pinned)}
    recent = {name: number for number, name in enumerate(order.recent)}
    sizes = accumulate(len(e.name) + len(e.description) + 5 for e in offered)
    crowded = any(size > room for size in sizes)
    fits = _fits_of(offered, order.terms) if crowded and order.terms else {}
    if crowded and sum(len(offered[n].name) + len(offered[n].description) for n in fits) < room:
        usual = _fits_of(offered, _EVERYDAY, names_only=True)
        fits = {number: fit / 1000 for number, fit in usual.items()} | fits

    def rank(number: int) -> "tuple[int, int, int, float, bool, str]":
        entry = offered[number]
        name = entry.name
        return (
            pinned.get(name, len(pinned)),
            0 if entry.scope == "project" else 1,
            recent.get(name, len(recent)),
            -fits.get(number, 0.0),
            not entry.description,  # nothing to choose it by
            name,
        )

    # Most skills have nothing but a name to go by, and come in its order already.
    first: list[int] = []
    plain: list[int] = []
    for number, entry in enumerate(offered):
        chosen = entry.name in pinned or entry.name in recent or number in fits
        (first if chosen or entry.scope == "project" else plain).append(number)
    first.sort(key=rank)
    plain.sort(key=[entry.name for entry in offered].__getitem__)
    plain.sort(key=lambda number: not offered[number].description)
    found = [offered[number] for number in (*first, *plain)]
    if tried := order.standings:
        found.sort(
            key=lambda entry: (
                pinned.get(entry.name, len(pinned)),
                entry.scope != "project",
                RANKS.get(tried.get(entry.name, UNTRIED), 1),
            )
        )
    return found


# What agents are asked for whatever the project is made of: it fills the room that is left.
_EVERYDAY = (
    "commit", "debugging", "docs", "documentation", "git", "planning", "refactoring", "review",
    "test", "testing",
)  # fmt: skip


def _fits_of(
    offered: "Sequence[Any]", terms: tuple[str, ...], *, names_only: bool = False
) -> dict[int, float]:
    """By number, how much a skill speaks of `terms`: the rarer a word, the more it says, and in a
    name it says twice as much. One long text is searched, which costs less than looking at each."""
    from math import log

    lines = "\n".join([e.name if names_only else f"{e.name}\t{e.description}" for e in offered])
    text = b"\n" + lines.encode("utf-8", "replace").lower() + b"\n"
    fits: dict[int, float] = {}
    for term in terms:
        found = _lines_with(text, term.encode())
        for number, named in found:
            worth = log(1 + len(offered) / len(found)) * (2 if named else 1)
            fits[number] = fits.get(number, 0.0) + worth
    return {number: round(fit, 3) for number, fit in fits.items()}


def _lines_with(text: bytes, term: bytes) -> list[tuple[int, bool]]:
    """The lines that hold `term` as a word, from 0, and whether before their tab. A word of one or
    two letters may mean anything in a sentence: it counts in a name alone."""
    found = []
    at, line, counted_to = text.find(term), -1, 0
    while at >= 0:
        end = at + len(term)
        whole = not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        begin = text.rfind(b"\n", 0, at)
        named = text.find(b"\t", begin, at) < 0
        if whole and (named or len(term) > 2):
            line += text.count(b"\n", counted_to, at)
            counted_to = at
            found.append((line, named))
            end = text.find(b"\n", at)
        at = text.find(term, end)
    return found


def _applies(entry: "Any", touched: tuple[str, ...]) -> bool:
    if not entry.paths:
        return True
    from tacit.skills.file_globs import matches_glob

    return any(matches_glob(path, pattern) for pattern in entry.paths for path in touched)
