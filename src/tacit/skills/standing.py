"""The standing of a skill: untried, helps, no difference or harms, by what trials have shown.

One small file in the data folder, a line a version of a skill, since `tacit list` and the prompt of
every conversation ask for it: so nothing is imported here that they do not have anyway. A version
is known by its SKILL.md; one that was edited since is untried. Who decides on a standing is
`learn/trial/`; the record behind it is there, and this file can be made again from it.
"""

import os

from tacit.base import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tacit.skills.index import Snapshot
    from tacit.skills.scopes import Root

UNTRIED = "untried"
RANKS = {"helps": 0, UNTRIED: 1, "no difference": 2, "harms": 3}
"""What is offered first, all else being equal."""
_FILE = "standings"
_MOST = 1000
"""Versions that are kept, the latest."""

Standings = dict[tuple[str, str], tuple[str, str]]
"""By name and digest: the standing, and the figures in words."""


def read_standings() -> Standings:
    """Every standing on record; none where there is no file."""
    try:
        with open(os.path.join(paths.folders().data, _FILE), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
    except (OSError, UnicodeDecodeError):
        return {}
    return {(line[0], line[1]): (line[2], line[3]) for line in lines if len(line) == 4}


def standing_of(name: str, digest: str) -> tuple[str, str]:
    """The standing of a version of a skill, and the figures behind it."""
    return read_standings().get((name, digest), (UNTRIED, ""))


def write_standing(name: str, digest: str, standing: str, figures: str) -> None:
    """Keep the standing of a version; the last word counts. Raises `Unwritable` and `Busy`."""
    from tacit.base.atomic_files import locked, write_atomic

    path = os.path.join(paths.folders().data, _FILE)
    clean = [" ".join(part.split()) for part in (name, digest, standing, figures)]
    with locked(f"{path}.lock", what="the standings of skills"):
        known = read_standings()
        known.pop((clean[0], clean[1]), None)
        known[clean[0], clean[1]] = (clean[2], clean[3])
        rows = [(*key, *value) for key, value in known.items()][-_MOST:]
        write_atomic(path, "".join("\t".join(row) + "\n" for row in rows).encode())


def standings_in(snapshots: "list[tuple[Root, Snapshot]]") -> dict[str, str]:
    """The standings of skills as they are now, by name; without the untried."""
    found: dict[str, str] = {}
    if tried := read_standings():
        for _, snapshot in snapshots:
            digests = snapshot.columns.others()[-1]
            for key in zip(snapshot.columns.names, digests, strict=True):
                if key in tried:
                    found.setdefault(key[0], tried[key][0])
    return found
