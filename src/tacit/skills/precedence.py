"""Which skill a name means when several folders hold one: the first that may be loaded."""

import os
from itertools import pairwise

from tacit.skills.index import FOLDER, REAL, Row, Snapshot
from tacit.skills.scopes import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ACTIVE, SHADOWED, UNTRUSTED = "active", "shadowed", "untrusted"
AGAIN = "again"
"""Of a row only, never of a skill: another way to a folder that an earlier root led to."""

Ranked = tuple[Root, Row, str, str]
"""Where it lies, its row, its state, its real path."""


def rank(snapshots: list[tuple[Root, Snapshot]]) -> tuple[list[Ranked], dict[str, list[str]]]:
    """Every real skill once, in order of precedence; and, by real path, other ways to it.

    A skill in a folder that is not trusted is listed, and never takes a name from one that is;
    nor does a link in such a folder make the skill that it leads to untrusted.
    """
    ranked: list[Ranked] = []
    also: dict[str, list[str]] = {}
    for (root, snapshot), marks in zip(snapshots, states(snapshots), strict=True):
        prefix = os.path.realpath(root.path) + "/"
        for row, state in zip(snapshot.rows, marks, strict=True):
            real = row[REAL] or prefix + row[FOLDER]
            if state == AGAIN:
                also.setdefault(real, []).append(f"{root.path}/{row[FOLDER]}")
            else:
                ranked.append((root, row, state, real))
        for folder, real in snapshot.twice.items():
            also.setdefault(real, []).append(f"{root.path}/{folder}")
    return ranked, also


def states(snapshots: list[tuple[Root, Snapshot]]) -> list[list[str]]:
    """For each root, the state of each of its rows. Looks at columns only, so it costs little."""
    found = []
    taken: set[str] = set()
    for (root, snapshot), repeated in zip(snapshots, _met_again(snapshots), strict=True):
        names = snapshot.columns.names
        marks = [ACTIVE if root.trusted else UNTRUSTED] * len(names)
        for number in repeated:
            marks[number] = AGAIN
        if root.trusted:
            claims: Iterable[tuple[int, str]] = enumerate(names)
            if repeated:
                claims = [claim for claim in claims if marks[claim[0]] != AGAIN]
            for number, name in claims:
                if name in taken:
                    marks[number] = SHADOWED
                else:
                    taken.add(name)
        found.append(marks)
    return found


def _met_again(snapshots: list[tuple[Root, Snapshot]]) -> list[list[int]]:
    """For each root, the numbers of the rows whose real folder an earlier root led to as well.

    Below one root a walk takes each real folder once. So there is nothing to look for unless a
    link was followed, or one root lies inside another.
    """
    prefixes = [os.path.realpath(root.path) + "/" for root, _ in snapshots]
    ordered = sorted(prefixes)
    nested = any(b.startswith(a) for a, b in pairwise(ordered))
    if not nested and not any(snapshot.columns.links for _, snapshot in snapshots):
        return [[] for _ in snapshots]
    reals = [
        _reals(prefix, snapshot) for prefix, (_, snapshot) in zip(prefixes, snapshots, strict=True)
    ]
    # A link in a folder that is not trusted does not make what it leads to untrusted.
    own = {
        real
        for (root, _), paths in zip(snapshots, reals, strict=True)
        if root.trusted
        for real in paths
    }
    found = []
    seen: set[str] = set()
    for (root, _), paths in zip(snapshots, reals, strict=True):
        repeated = []
        for number, real in enumerate(paths):
            if real in seen or (not root.trusted and real in own):
                repeated.append(number)
            else:
                seen.add(real)
        found.append(repeated)
    return found


def _reals(prefix: str, snapshot: Snapshot) -> list[str]:
    """The real folder of each row."""
    links = snapshot.columns.links
    files = enumerate(snapshot.columns.files)
    return [links.get(number) or prefix + file.rpartition("/")[0] for number, file in files]
