"""Changes that were made together, and are taken back together.

A group is an id that each of its changes carries; the changes themselves pass the gate one by one
and stand in the history one by one. Taking a group back takes back each of them, the last first,
passing over those that were taken back already: after a kill, the same again finishes it.
"""

from tacit.base.errors import NotFound
from tacit.changes.actor import Actor
from tacit.changes.change import Verdict
from tacit.changes.gate import Gate
from tacit.changes.site import Site
from tacit.changes.undo import already_undone


def find_group(gate: Gate, start: str) -> str:
    """The one group whose id begins with, or ends in, `start`; empty where there is none.

    Raises `NotFound` where it could be several.
    """
    if len(start) < 4:
        return ""
    known = {name for site in gate.sites.values() for name in site.history.groups()}
    near = sorted(name for name in known if name.startswith(start) or name.endswith(start))
    if len(near) > 1 and start not in near:
        raise NotFound(f"there is no one group '{start}'", f"it could be {' or '.join(near[-3:])}")
    return start if start in near else (near[0] if near else "")


def members(gate: Gate, group: str) -> list[tuple[Site, str]]:
    """The changes of a group with the place of each, oldest first."""
    found = [
        (change, site) for site in gate.sites.values() for change in site.history.of_group(group)
    ]
    return [(site, change) for change, site in sorted(found, key=lambda pair: pair[0])]


def undo_group(
    gate: Gate, group: str, *, actor: Actor | None = None, reason: str = ""
) -> list[Verdict]:
    """Take back what is left of a group; where all of it was taken back, bring it back.

    A verdict each, in the order in which they were made. One that is refused stops none of the
    others: what stands in its way is said, and the rest is taken back all the same.
    """
    listed = members(gate, group)
    if not listed:
        raise NotFound(f"there is no group of changes '{group}'", "see: tacit log")
    standing = [(site, change) for site, change in listed if not _is_undone(site, change)]
    order = standing[::-1] if standing else listed
    why = reason or f"undo {group}"
    return [
        gate.undo(change, actor=actor, root=site.place.root, reason=why) for site, change in order
    ]


def _is_undone(site: Site, change: str) -> bool:
    return bool(already_undone(site.history, site.history.of_change(change)))
