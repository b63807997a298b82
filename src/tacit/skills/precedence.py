"""Which skill a name means when several folders hold one: the first that may be loaded."""

import os

from tacit.skills.index import FOLDER, NAME, REAL, Row, Snapshot
from tacit.skills.scopes import Root

ACTIVE, SHADOWED, UNTRUSTED = "active", "shadowed", "untrusted"

Ranked = tuple[Root, Row, str, str]
"""Where it lies, its row, its state, its real path."""


def rank(snapshots: list[tuple[Root, Snapshot]]) -> tuple[list[Ranked], dict[str, list[str]]]:
    """Every real skill once, in order of precedence; and, by real path, other ways to it.

    A skill in a folder that is not trusted is listed, and never takes a name from one that is;
    nor does a link in such a folder make the skill that it leads to untrusted.
    """
    ranked: list[Ranked] = []
    seen: set[str] = set()
    also: dict[str, list[str]] = {}
    taken: set[str] = set()
    own = _trusted_folders(snapshots)
    for root, snapshot in snapshots:
        prefix = os.path.realpath(root.path) + "/"
        trusted = root.trusted
        for row in snapshot.rows:
            real = row[REAL] or prefix + row[FOLDER]
            if real in seen or (not trusted and real in own):
                also.setdefault(real, []).append(f"{root.path}/{row[FOLDER]}")
                continue
            seen.add(real)
            name = row[NAME]
            if not trusted:
                state = UNTRUSTED
            elif name in taken:
                state = SHADOWED
            else:
                state = ACTIVE
                taken.add(name)
            ranked.append((root, row, state, real))
        for folder, real in snapshot.twice.items():
            also.setdefault(real, []).append(f"{root.path}/{folder}")
    return ranked, also


def _trusted_folders(snapshots: list[tuple[Root, Snapshot]]) -> set[str]:
    """The real paths of the skills that may be loaded; needed only beside some that may not."""
    if all(root.trusted for root, _ in snapshots):
        return set()
    found: set[str] = set()
    for root, snapshot in snapshots:
        if root.trusted:
            prefix = os.path.realpath(root.path) + "/"
            found.update(row[REAL] or prefix + row[FOLDER] for row in snapshot.rows)
    return found
