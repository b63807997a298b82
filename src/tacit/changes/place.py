"""A place: one folder of skills, or of facts, that changes can be made in, with its scope."""

import hashlib
import os
from typing import Literal

import msgspec

from tacit.base import paths, trust
from tacit.skills.fact import MEMORY_FOLDER, memory_roots
from tacit.skills.library import scheduled_folder
from tacit.skills.skill import Origin, Skill

PlaceScope = Literal["project", "user", "extra", "bundled", "scheduled"]
PlaceKind = Literal["skills", "facts"]

SHARED = paths.SHARED_SKILLS
"""Where skills lie in a project and in a home, for every agent."""
_FOLDERS: dict[PlaceKind, str] = {"skills": SHARED, "facts": MEMORY_FOLDER}


class Place(msgspec.Struct, frozen=True):
    """A folder of skills or of facts. It need not exist yet, unless what is in it is changed."""

    root: str
    scope: PlaceScope = "user"
    project: str = ""
    """The project that it belongs to; its real path must lie in there."""
    kind: PlaceKind = "skills"
    """What lies in it, and with that the rules that hold there; see `policy`."""

    @property
    def real(self) -> str:
        return os.path.realpath(self.root)

    @property
    def id(self) -> str:
        """The same for every path that leads to the folder; names its history and its lock."""
        real = self.real
        base = "".join(c if c.isascii() and c.isalnum() else "-" for c in real[-40:])
        digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
        return f"{base.strip('-').lower()}-{digest}"

    def origin(self, skill: Skill) -> Origin:
        """Whose `skill` is, when it lies here."""
        if self.scope in ("bundled", "scheduled"):
            return self.scope
        if skill.learned:
            return "learned"
        if skill.source == "scheduled" and self.kind == "skills":
            return "scheduled"
        return "installed" if self.scope == "extra" else "user"


def places_here(cwd: str | None = None) -> list[Place]:
    """Where skills can be changed from `cwd`: the project's and the user's own folder, whether
    they exist or not, then every other folder that the library reads, then what is scheduled."""
    from tacit.base.settings import load_settings
    from tacit.skills.scopes import skill_roots

    here = os.path.abspath(cwd or os.getcwd())
    chosen = load_settings(here).settings.skills
    others = [
        Place(root.path, root.scope, root.project)  # type: ignore[arg-type]
        for root in skill_roots(here, hosts=chosen.hosts, extra=chosen.paths)
    ]
    return [project_place(here), user_place(), *others, scheduled_place()]


def scheduled_place() -> Place:
    """The skills that only schedules run: in the data folder, where no library looks."""
    return Place(scheduled_folder(), "scheduled")


def all_places(cwd: str | None = None) -> list[Place]:
    """Where anything can be changed from `cwd`: skills, then facts."""
    return [*places_here(cwd), *fact_places(cwd)]


def fact_places(cwd: str | None = None) -> list[Place]:
    """Where facts are kept: the project's folder, first that of its main checkout, which outlives
    the others; then the user's."""
    main = project_place(paths.main_checkout(paths.project_root(cwd or os.getcwd())), "facts")
    roots = (Place(root.path, root.scope, root.project, "facts") for root in memory_roots(cwd))
    return list({place.root: place for place in (main, *roots)}.values())


def place_of(root: str) -> Place | None:
    """The place of a project with this folder, where the project is still there."""
    for kind, folder in _FOLDERS.items():
        project = root.removesuffix(os.sep + folder)
        if project != root and os.path.isdir(project):
            return Place(root, "project", project, kind)
    return None


def own_places() -> list[Place]:
    """The places of projects in which something is the user's own, trusted or not."""
    roots = {
        path[: path.rindex(f"/{folder}/")] + f"/{folder}"
        for _, _, path in trust.own_lines()
        for folder in _FOLDERS.values()
        if f"/{folder}/" in path
    }
    return [place for root in sorted(roots) if (place := place_of(root))]


def user_place(kind: PlaceKind = "skills") -> Place:
    """The user's own skills, `~/.agents/skills`, or facts, `~/.agents/memory`."""
    return Place(os.path.join(paths.user_home(), _FOLDERS[kind]), "user", kind=kind)


def project_place(cwd: str | None = None, kind: PlaceKind = "skills") -> Place:
    """The skills or the facts of the project that `cwd` lies in, in the same folders there.

    Outside any project (the home itself) that is the user's place.
    """
    project = paths.project_root(cwd or os.getcwd())
    if project == paths.user_home():
        return user_place(kind)
    return Place(os.path.join(project, _FOLDERS[kind]), "project", project, kind)
