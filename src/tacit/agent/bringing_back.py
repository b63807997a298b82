"""A skill that was put away comes back when it is called by its name.

What curation archived comes back for anybody who calls it; what the user archived by hand, for the
user alone. A skill that was taken in by another is not brought back: its name means that one now.
Restoring is a change like any other: it passes the gate, as the user where they said `/name`, as
the curator, taking back its own work, where a model called.
"""

import os
from typing import Literal

import msgspec

from tacit.base.errors import TacitError
from tacit.changes.actor import acting_as
from tacit.changes.change import Restore, make_change
from tacit.changes.gate import Gate
from tacit.changes.history import Record
from tacit.changes.neighbours import Nobody
from tacit.changes.place import Place, places_here
from tacit.changes.standing import live_name
from tacit.skills import archive
from tacit.skills.library import Entry, Library

_MOST_HOPS = 8
"""A skill may have been taken in by one that was taken in itself."""


class Back(msgspec.Struct, frozen=True):
    """What a name that meant nothing means now."""

    name: str
    """The skill to load; empty when it stays away."""
    note: str
    """What happened, for the user or the model."""


def bring_back(
    library: Library, name: str, by: Literal["user", "model"], session: str = ""
) -> Back | None:
    """Bring back what is archived under `name`, or say what took its place; None: nothing is.

    Afterwards the library must be looked at anew.
    """
    for _ in range(_MOST_HOPS):
        entry = next(iter(archive.find(library, name)), None)
        if entry is None or (place := _place(library, entry)) is None:
            return None
        key = os.path.basename(entry.folder)
        gate = Gate([place], neighbours=Nobody())
        head = gate.site().history.head(live_name(key))
        record = head.record if head is not None else None
        if record is None or not record.partner or record.kind != "archive":
            return _restore(gate, key, entry, record, by, session)
        if (taker := library.find(record.partner)) is not None:
            return Back(taker.name, f"'{entry.name}' is part of '{taker.name}' now")
        name = record.partner
    return None


def _restore(
    gate: Gate, key: str, entry: Entry, record: Record | None, by: str, session: str
) -> Back:
    if by != "user" and (record is None or record.actor != "curator"):
        return Back(
            "",
            f"The user archived the skill '{entry.name}'. They can bring it back:"
            f" tacit restore {live_name(key)}",
        )
    actor: Literal["user", "curator"] = "user" if by == "user" else "curator"
    reason = f"called by its name, by the {by}"
    with acting_as(actor):
        skill = key if "~" in key else live_name(key)
        change = make_change(skill, Restore(), reason=reason, session=session)
        try:
            verdict = gate.propose(change)
        except TacitError as error:
            return Back("", f"The skill '{entry.name}' is archived: {error.message}")
    if not verdict.applied:
        return Back("", f"The skill '{entry.name}' stays archived: {verdict.explain()}")
    return Back(entry.name, f"'{entry.name}' was archived and is back")


def _place(library: Library, entry: Entry) -> Place | None:
    """The place in whose archive a skill lies."""
    real = os.path.realpath(os.path.dirname(entry.root))
    return next((place for place in places_here(library.cwd) if place.real == real), None)
