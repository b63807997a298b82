"""Scopes: which folders hold skills here, and which skill a name means where several have one.

Project over user over bundled; the first that may be loaded wins, and one in a folder that is not
trusted never takes a name from one that is. Every command comes through here, so plain classes and
strings only.
"""

import os
from itertools import pairwise

from tacit.base import paths, trust
from tacit.skills.index import FOLDER, REAL, Row, Snapshot
from tacit.traces.host_folders import SHARED_FOLDERS, host_folders

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable


SCOPES = ("project", "user", "extra", "bundled")
BUNDLED_SKILLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")


class Root:
    """One folder of skills: its scope, whose it is, and whether its skills may be loaded."""

    __slots__ = ("host", "path", "project", "scope", "trusted")

    def __init__(
        self, path: str, scope: str, host: str, *, project: str = "", trusted: bool = True
    ):
        self.path = path
        self.scope = scope
        self.host = host
        self.project = project
        self.trusted = trusted

    def __repr__(self) -> str:
        return f"Root({self.path!r}, {self.scope!r}, {self.host!r}, trusted={self.trusted})"


def skill_roots(cwd: str, *, hosts: bool = True, extra: tuple[str, ...] = ()) -> list[Root]:
    """The folders that exist, those that win first.

    From the working directory up to the project's root, nearest first; then the user's; then the
    folders named in the settings; then what Tacit ships. In each, `.agents/skills` comes before
    the folders of the other agents.
    """
    home = paths.user_home()
    places = host_folders() if hosts else (SHARED_FOLDERS,)
    found: list[Root] = []
    project = paths.project_root(cwd)
    if not paths.is_home(project):
        trusted = trust.is_trusted(project)
        top = os.path.realpath(project)
        for here in paths.upwards(cwd, project):
            for place in places:
                for folder in place.project:
                    path = os.path.join(here, folder)
                    # A link may lead to anything of the user's; that did not come with the trust.
                    inside = trusted and paths.is_inside(os.path.realpath(path), top)
                    found.append(Root(path, "project", place.host, project=project, trusted=inside))
    for place in places:
        found.extend(Root(path, "user", place.host) for path in place.user_folders(home))
    more = (os.path.abspath(os.path.expanduser(path)) for path in extra)
    found.extend(Root(path, "extra", "settings") for path in more)
    found.append(Root(BUNDLED_SKILLS, "bundled", "tacit"))
    return [root for root in found if os.path.isdir(root.path)]


ACTIVE, SHADOWED, UNTRUSTED = "active", "shadowed", "untrusted"
REPEATED = "again"
"""Of a row only, never of a skill: another way to a folder that an earlier root led to."""

Ranked = tuple[Root, Row, str, str]
"""Where it lies, its row, its state, its real path."""


def rank_skills(
    snapshots: list[tuple[Root, Snapshot]],
) -> tuple[list[Ranked], dict[str, list[str]]]:
    """Every real skill once, in order of precedence; and, by real path, other ways to it.

    A skill in a folder that is not trusted is listed, and never takes a name from one that is;
    nor does a link in such a folder make the skill that it leads to untrusted.
    """
    ranked: list[Ranked] = []
    also: dict[str, list[str]] = {}
    for (root, snapshot), states in zip(snapshots, skill_states(snapshots), strict=True):
        prefix = os.path.realpath(root.path) + "/"
        for row, state in zip(snapshot.rows, states, strict=True):
            real = row[REAL] or prefix + row[FOLDER]
            if state == REPEATED:
                also.setdefault(real, []).append(f"{root.path}/{row[FOLDER]}")
            else:
                ranked.append((root, row, state, real))
        for folder, real in snapshot.repeated.items():
            also.setdefault(real, []).append(f"{root.path}/{folder}")
    return ranked, also


def skill_states(snapshots: list[tuple[Root, Snapshot]]) -> list[list[str]]:
    """For each root, the state of each of its rows. Looks at columns only, so it costs little."""
    found = []
    taken: set[str] = set()
    for (root, snapshot), repeated in zip(snapshots, _repeated_rows(snapshots), strict=True):
        names = snapshot.columns.names
        states = [ACTIVE if root.trusted else UNTRUSTED] * len(names)
        for number in _leading_out(root, snapshot):
            states[number] = UNTRUSTED
        for number in repeated:
            states[number] = REPEATED
        if root.trusted:
            claims: Iterable[tuple[int, str]] = enumerate(names)
            if repeated or UNTRUSTED in states:
                claims = [claim for claim in claims if states[claim[0]] == ACTIVE]
            for number, name in claims:
                if name in taken:
                    states[number] = SHADOWED
                else:
                    taken.add(name)
        found.append(states)
    return found


def _repeated_rows(snapshots: list[tuple[Root, Snapshot]]) -> list[list[int]]:
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
    # A link in a folder that is not trusted, or that leads out of its project, does not make what
    # it leads to untrusted.
    outside = [_leading_out(root, snapshot) for root, snapshot in snapshots]
    own = {
        real
        for (root, _), places, out in zip(snapshots, reals, outside, strict=True)
        if root.trusted
        for number, real in enumerate(places)
        if number not in out
    }
    found = []
    seen: set[str] = set()
    for (root, _), places, out in zip(snapshots, reals, outside, strict=True):
        repeated = []
        for number, real in enumerate(places):
            if real in seen or ((not root.trusted or number in out) and real in own):
                repeated.append(number)
            else:
                seen.add(real)
        found.append(repeated)
    return found


def _leading_out(root: Root, snapshot: Snapshot) -> set[int]:
    """The rows of a project's folder whose skill, or whose SKILL.md, is a link out of the project.

    It could lead to any file of the user's, whose text would go to the model.
    """
    links = snapshot.columns.links
    if root.scope != "project" or not links:
        return set()
    top = os.path.realpath(root.project)
    return {number for number, real in links.items() if not paths.is_inside(real, top)}


def _reals(prefix: str, snapshot: Snapshot) -> list[str]:
    """The real folder of each row."""
    links = snapshot.columns.links
    files = enumerate(snapshot.columns.files)
    return [links.get(number) or prefix + file.rpartition("/")[0] for number, file in files]
