"""Changes that form a group with one undo: a curation, a consolidation, a hand-over.

What is in a group is said by the history of each place; each change is undone by the gate.
"""

from tacit.base.errors import Busy, Damaged, NotFound, Unwritable
from tacit.changes.change import Actor, Refusal, Verdict
from tacit.changes.gate import Gate
from tacit.changes.journal import OpenPlace
from tacit.changes.undo import already_undone


def find_group(gate: Gate, start: str) -> str:
    """The one group whose id begins with, or ends in, `start`; empty where there is none.

    Raises `NotFound` where it could be several.
    """
    if len(start) < 4:
        return ""
    known = {name for opened in gate.open_places.values() for name in opened.history.groups()}
    near = sorted(name for name in known if name.startswith(start) or name.endswith(start))
    if len(near) > 1 and start not in near:
        raise NotFound(f"there is no one group '{start}'", f"it could be {' or '.join(near[-3:])}")
    return start if start in near else (near[0] if near else "")


def group_members(gate: Gate, group: str) -> list[tuple[OpenPlace, str]]:
    """The changes of a group with the place of each, oldest first."""
    found = [
        (change, opened)
        for opened in gate.open_places.values()
        for change in opened.history.of_group(group)
    ]
    return [(opened, change) for change, opened in sorted(found, key=lambda pair: pair[0])]


def undo_group(
    gate: Gate, group: str, *, actor: Actor | None = None, reason: str = ""
) -> list[Verdict]:
    """Take back what is left of a group; where all of it was taken back, bring it back.

    A verdict each, in the order in which they were made. One that is refused stops none of the
    others: what stands in its way is said, and the rest is taken back all the same.
    """
    listed = group_members(gate, group)
    if not listed:
        raise NotFound(f"there is no group of changes '{group}'", "see: tacit log")
    left = [(opened, change) for opened, change in listed if not _is_undone(opened, change)]
    order = left[::-1] if left else listed
    why = reason or f"undo {group}"
    return [_undo_one(gate, opened, change, actor, why) for opened, change in order]


def _undo_one(gate: Gate, opened: OpenPlace, change: str, actor: Actor | None, why: str) -> Verdict:
    try:
        return gate.undo(change, actor=actor, root=opened.place.root, reason=why)
    except (Busy, Damaged, Unwritable) as error:  # what the others came to has to be reported too
        refusal = Refusal("apply", error.code, error.message, error.hint)
        return Verdict(outcome="refused", change=change, skill="", refusal=refusal)


def _is_undone(opened: OpenPlace, change: str) -> bool:
    return bool(already_undone(opened.history, opened.history.of_change(change)))
