"""A consolidation as a plan: which skills are joined in which, and the changes that make it so.

Holds everything that is needed to make the changes again after a kill, or later when the user
agrees: each has an id that follows from the plan's. `joining.py` puts them through the gate.
"""

from datetime import datetime

import msgspec

from tacit.changes.change import Change, Create, MergeInto, Rewrite
from tacit.learn.curate.curating import change_id


class Umbrella(msgspec.Struct, frozen=True, kw_only=True):
    """One skill that takes in others."""

    skill: str
    """Its folder; of a new one, its name."""
    is_new: bool
    absorbs: tuple[str, ...]
    """The folders of the skills that it takes in."""
    why: str
    files: dict[str, bytes] = {}
    """What it will hold; of one that was there, empty when nothing in it changes."""
    executable: tuple[str, ...] = ()
    base: str = ""
    """The version that was read."""
    touched: tuple[str, ...] = ()
    """The files that are new in it or changed."""


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """Several umbrellas in one place, made and taken back together."""

    id: str
    """The group of all its changes."""
    at: datetime
    place: str
    """The id of the place."""
    umbrellas: tuple[Umbrella, ...]
    model: str = ""
    key: str = ""
    """The cluster that it came from."""
    agreed: bool = False
    """The user said yes to it."""

    @property
    def absorbed(self) -> dict[str, str]:
        """Each skill that is taken in, and what takes it in."""
        return {name: umbrella.skill for umbrella in self.umbrellas for name in umbrella.absorbs}


def changes_of(plan: Consolidation, root: str) -> list[Change]:
    """The changes that make the umbrellas and put away what they take in, in their order."""
    found: list[Change] = []
    for umbrella in plan.umbrellas:
        if umbrella.is_new:
            operation = Create(umbrella.files, umbrella.executable, umbrella.absorbs)
            found.append(_change(plan, root, len(found), umbrella.skill, operation, umbrella.why))
        elif umbrella.files:
            rewrite = Rewrite(umbrella.files, umbrella.executable)
            change = _change(plan, root, len(found), umbrella.skill, rewrite, umbrella.why)
            found.append(msgspec.structs.replace(change, base=umbrella.base))
        for name in umbrella.absorbs:
            merge = MergeInto(umbrella.skill)
            why = f"part of '{umbrella.skill}' now: {umbrella.why}"
            found.append(_change(plan, root, len(found), name, merge, why))
    return found


def renaming(
    plan: Consolidation, root: str, number: int, skill: str, files: dict[str, bytes], base: str
) -> Change:
    """The change that lets another skill speak of the umbrellas by their names."""
    named = ", ".join(f"'{new}'" for new in dict.fromkeys(plan.absorbed.values()))
    change = _change(plan, root, 500 + number, skill, Rewrite(files), f"it names {named} now")
    return msgspec.structs.replace(change, base=base)


def _change(
    plan: Consolidation,
    root: str,
    number: int,
    skill: str,
    operation: Create | Rewrite | MergeInto,
    why: str,
) -> Change:
    return Change(
        id=change_id(plan.id, number, skill),
        skill=skill,
        operations=(operation,),
        actor="curator",
        reason=why,
        root=root,
        group=plan.id,
    )
