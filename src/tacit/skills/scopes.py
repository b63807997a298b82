"""Scopes: which folders hold skills here, and which skill a name means where several have one.

Project over user over bundled; the first that may be loaded wins, and one in a folder that is not
trusted never takes a name from one that is, unless it is the user's own. The checkouts of one
repository share their skills. Every command comes through here, so plain classes and strings only.
"""

import os
from itertools import pairwise

from tacit.base import paths, trust
from tacit.skills.index import FOLDER, REAL, Row, Snapshot
from tacit.traces.host_folders import SHARED_FOLDERS, host_folders

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


SCOPES = ("project", "user", "extra", "bundled")
BUNDLED_SKILLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")


class Root:
    """One folder of skills: its scope, whose it is, and whether its skills may be loaded."""

    __slots__ = ("borrowed", "host", "path", "project", "scope", "trusted")

    def __init__(
        self,
        path: str,
        scope: str,
        host: str,
        *,
        project: str = "",
        trusted: bool = True,
        borrowed: bool = False,
    ):
        self.path = path
        self.scope = scope
        self.host = host
        self.project = project
        self.trusted = trusted
        self.borrowed = borrowed
        """Whether it lies in another checkout of the repository: of what is there only the user's
        own counts. All else is the repository's, which has its own version of it here."""

    def __repr__(self) -> str:
        return f"Root({self.path!r}, {self.scope!r}, {self.host!r}, trusted={self.trusted})"


def skill_roots(cwd: str, *, hosts: bool = True, extra: tuple[str, ...] = ()) -> list[Root]:
    """The folders that exist, those that win first.

    From the working directory up to the project's root, nearest first; then the other checkouts of
    its repository; then the user's; then the folders named in the settings; then what Tacit ships.
    In each, `.agents/skills` comes before the folders of the other agents.
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
        for here in paths.checkouts(project)[1:]:
            path = os.path.join(here, paths.SHARED_SKILLS)
            host = SHARED_FOLDERS.host
            found.append(Root(path, "project", host, project=here, trusted=False, borrowed=True))
    for place in places:
        found.extend(Root(path, "user", place.host) for path in place.user_folders(home))
    found.extend(Root(path, "extra", "settings") for path in extra_folders(extra))
    found.append(Root(BUNDLED_SKILLS, "bundled", "tacit"))
    return [root for root in found if os.path.isdir(root.path)]


def extra_folders(named: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that the setting `skills.paths` names, there or not."""
    return tuple(os.path.abspath(os.path.expanduser(path)) for path in named)


ACTIVE, SHADOWED, UNTRUSTED = "active", "shadowed", "untrusted"
REPEATED = "again"
"""Of a row only, never of a skill: another way to a folder that an earlier root led to, or another
checkout's version of what the repository has here."""

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
    every = skill_states(snapshots)
    for (root, snapshot), states in zip(snapshots, every, strict=True):
        prefix = os.path.realpath(root.path) + "/"
        for row, state in zip(snapshot.rows, states, strict=True):
            if state != REPEATED:
                ranked.append((root, row, state, row[REAL] or prefix + row[FOLDER]))
    return ranked, other_ways(snapshots, every)


def other_ways(
    snapshots: list[tuple[Root, Snapshot]], every: list[list[str]]
) -> dict[str, list[str]]:
    """By the real path of a skill, other paths to it. Looks at columns only, like `skill_states`,
    of whose result for the same `snapshots` it makes use."""
    also: dict[str, list[str]] = {}
    for (root, snapshot), states in zip(snapshots, every, strict=True):
        again = [n for n, state in enumerate(states) if state == REPEATED]
        if again:
            reals = _reals(os.path.realpath(root.path) + "/", snapshot)
        for number in again:
            folder = snapshot.columns.files[number].rpartition("/")[0]
            also.setdefault(reals[number], []).append(f"{root.path}/{folder}")
        for folder, real in snapshot.repeated.items():
            also.setdefault(real, []).append(f"{root.path}/{folder}")
    return also


def skill_states(snapshots: list[tuple[Root, Snapshot]]) -> list[list[str]]:
    """For each root, the state of each of its rows. Looks at columns only, so it costs little."""
    found = []
    taken: set[str] = set()
    loadable = [_loadable_rows(root, snapshot) for root, snapshot in snapshots]
    for (root, snapshot), mine, repeated in zip(
        snapshots, loadable, _repeated_rows(snapshots, loadable), strict=True
    ):
        names = snapshot.columns.names
        otherwise = REPEATED if root.borrowed else UNTRUSTED
        states = [ACTIVE] * len(names)
        if len(mine) < len(names):
            states = [ACTIVE if number in mine else otherwise for number in range(len(names))]
        for number in repeated:
            states[number] = REPEATED
        claims: Iterable[tuple[int, str]] = enumerate(names)
        if repeated or len(mine) < len(names):
            claims = [claim for claim in claims if states[claim[0]] == ACTIVE]
        for number, name in claims:
            if name in taken:
                states[number] = SHADOWED
            else:
                taken.add(name)
        found.append(states)
    return found


def _loadable_rows(root: Root, snapshot: Snapshot) -> "Collection[int]":
    """The numbers of the rows that may be loaded: all that stay inside, or the user's own."""
    if root.trusted:
        every = range(len(snapshot.columns.names))
        out = _leading_out(root, snapshot)
        return set(every) - out if out else every
    top = os.path.realpath(root.path)
    known = trust.own_below(top) if paths.is_inside(top, os.path.realpath(root.project)) else {}
    if not known:
        return ()
    # What a link leads to is not below this folder, and is judged where it lies.
    places = enumerate(_reals(top + "/", snapshot))
    return {number for number, real in places if trust.is_own(real, known)}


def _repeated_rows(
    snapshots: list[tuple[Root, Snapshot]], loadable: "list[Collection[int]]"
) -> list[list[int]]:
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
    own = {
        real
        for mine, places in zip(loadable, reals, strict=True)
        for number, real in enumerate(places)
        if number in mine
    }
    found = []
    seen: set[str] = set()
    for mine, places in zip(loadable, reals, strict=True):
        repeated = []
        for number, real in enumerate(places):
            if real in seen or (number not in mine and real in own):
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
