"""Which skill a name means when several folders hold one: the first that may be loaded."""

import os

from tacit.skills.index import FOLDER, NAME, REAL, Row, Snapshot
from tacit.skills.scopes import Root

ACTIVE, SHADOWED, UNTRUSTED = "active", "shadowed", "untrusted"

Ranked = tuple[Root, Row, str, str]
"""Where it lies, its row, its state, its real path."""


def rank(snapshots: list[tuple[Root, Snapshot]]) -> tuple[list[Ranked], dict[str, list[str]]]:
    """Every real skill once, in order of precedence; and, by real path, other ways to it.

    A skill in a folder that is not trusted is listed, and never takes a name from one that is.
    """
    ranked: list[Ranked] = []
    seen: set[str] = set()
    also: dict[str, list[str]] = {}
    taken: set[str] = set()
    for root, snapshot in snapshots:
        prefix = os.path.realpath(root.path) + "/"
        trusted = root.trusted
        for row in snapshot.rows:
            real = row[REAL] or prefix + row[FOLDER]
            if real in seen:
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
