"""Changes to a text as replaced pieces, so that each can be taken back to the byte."""

from collections.abc import Iterable

import msgspec


class Splice(msgspec.Struct, frozen=True):
    """At `offset` of the text as it was, `removed` gives way to `inserted`."""

    offset: int
    removed: str
    inserted: str


def apply(text: str, splices: Iterable[Splice]) -> str:
    """`text` with every splice made. Offsets are those of `text`; equal ones keep their order."""
    parts, at = [], 0
    for splice in sorted(splices, key=lambda splice: splice.offset):
        assert text.startswith(splice.removed, splice.offset)
        parts += [text[at : splice.offset], splice.inserted]
        at = splice.offset + len(splice.removed)
    return "".join([*parts, text[at:]])


def inverse(splices: Iterable[Splice]) -> tuple[Splice, ...]:
    """The splices that turn the result back into the text as it was."""
    found, shift = [], 0
    for splice in sorted(splices, key=lambda splice: splice.offset):
        found.append(Splice(splice.offset + shift, splice.inserted, splice.removed))
        shift += len(splice.inserted) - len(splice.removed)
    return tuple(found)
