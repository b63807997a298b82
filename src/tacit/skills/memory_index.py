"""The index of facts: the lines by which a model knows what was noted, within a budget.

Made anew from the facts themselves whenever it is asked for, and stored nowhere: an index in a
file would have to be merged when two branches or two processes each note a fact, and would be
wrong after every edit by hand.
"""

from collections.abc import Callable, Sequence

import msgspec

from tacit.base.terminal import one_line
from tacit.skills.memory import KINDS, Fact, Kind

MAX_LINES = 200
MAX_BYTES = 25 * 1024
_LINE = 500
"""Characters of one line; a fact that passed the gate is shorter."""
_MARK_UP = str.maketrans({"<": "‹", ">": "›"})
"""Angle brackets would let a fact end the block that it stands in."""
_HEADS: dict[Kind, str] = {
    "user": "About the user",
    "feedback": "How the user wants work done",
    "project": "About the project",
    "reference": "Where things are found",
}

About = Callable[[Fact], str]
"""What else to say of a fact in its line, e.g. by whom it was noted; may be empty."""


class Index(msgspec.Struct, frozen=True):
    """The lines, and the facts that are in them."""

    text: str
    shown: tuple[Fact, ...] = ()
    left_out: int = 0


def index(
    facts: Sequence[Fact],
    *,
    lines: int = MAX_LINES,
    kilobytes: int = MAX_BYTES // 1024,
    about: About = lambda fact: "",
) -> Index:
    """The index of the active ones among `facts`, by kind and name.

    Where not all fit, the newest stay, and a last line says how many are missing. The same facts
    give the same text.
    """
    active = [fact for fact in facts if fact.state == "active"]
    most_lines, most_bytes = min(lines, MAX_LINES), min(kilobytes * 1024, MAX_BYTES)
    rows = {id(fact): line(fact, about(fact)) for fact in active}
    text = _text(active, rows, 0)
    if _fits(text, most_lines, most_bytes):
        return Index(text, tuple(active))
    kept: list[Fact] = []
    room_lines, room_bytes = most_lines - 1, most_bytes - len(_missing(len(active)).encode())
    for fact in sorted(active, key=lambda fact: (fact.noted, fact.name), reverse=True):
        is_first = all(fact.kind != other.kind for other in kept)
        room_lines -= 1 + is_first
        room_bytes -= len(rows[id(fact)].encode()) + 1
        room_bytes -= len(_HEADS[fact.kind]) + 2 if is_first else 0
        if room_lines < 0 or room_bytes < 0:
            break
        kept.append(fact)
    missing = len(active) - len(kept)
    return Index(_text(kept, rows, missing) if kept else "", tuple(kept), missing)


def line(fact: Fact, about: str = "") -> str:
    """One fact, as the index has it."""
    said = one_line(fact.says).translate(_MARK_UP)
    said = said if len(said) <= _LINE else said[: _LINE - 1].rstrip() + "…"
    tail = f" [{one_line(about).translate(_MARK_UP)}]" if about else ""
    more = " (more: recall)" if fact.detail else ""
    return f"- {fact.name}: {said}{more}{tail}"


def _text(kept: Sequence[Fact], rows: dict[int, str], missing: int) -> str:
    parts: list[str] = []
    for kind in KINDS:
        of_kind = sorted((f for f in kept if f.kind == kind), key=lambda fact: fact.name)
        if of_kind:
            parts.append(f"{_HEADS[kind]}:")
            parts += [rows[id(fact)] for fact in of_kind]
    if missing:
        parts.append(_missing(missing))
    return "\n".join(parts)


def _missing(number: int) -> str:
    return f"({number:,} older facts are not shown; recall finds them)"


def _fits(text: str, lines: int, size: int) -> bool:
    return text.count("\n") + 1 <= lines and len(text.encode()) <= size
