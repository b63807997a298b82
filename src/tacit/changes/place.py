"""A place: one folder of skills that changes can be made in, with its scope and its project."""

import hashlib
import os
from typing import Literal

import msgspec

from tacit.base import paths
from tacit.skills.scheduled import folder as scheduled_folder
from tacit.skills.skill import Origin, Skill

Scope = Literal["project", "user", "extra", "bundled", "scheduled"]

SHARED = os.path.join(".agents", "skills")
"""Where skills lie in a project and in a home, for every agent."""


class Place(msgspec.Struct, frozen=True):
    """A skills folder. It need not exist yet, unless a skill in it is to be changed."""

    root: str
    scope: Scope = "user"
    project: str = ""
    """The project that it belongs to; its real path must lie in there."""

    @property
    def real(self) -> str:
        return os.path.realpath(self.root)

    @property
    def id(self) -> str:
        """The same for every path that leads to the folder; names its history and its lock."""
        base = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.real)[-40:]
        digest = hashlib.sha256(os.fsencode(self.real)).hexdigest()[:16]
        return f"{base.strip('-').lower()}-{digest}"

    def origin(self, skill: Skill) -> Origin:
        """Whose `skill` is, when it lies here."""
        if self.scope in ("bundled", "scheduled"):
            return self.scope
        if skill.learned:
            return "learned"
        if skill.source == "scheduled":
            return "scheduled"
        return "installed" if self.scope == "extra" else "user"


def places_here(cwd: str | None = None) -> list[Place]:
    """Where skills can be changed from `cwd`: the project's and the user's own folder, whether
    they exist or not, then every other folder that the library reads, then what is scheduled."""
    from tacit.base.settings import load
    from tacit.skills.scopes import roots

    here = os.path.abspath(cwd or os.getcwd())
    chosen = load(here).settings.skills
    others = [
        Place(root.path, root.scope, root.project)  # type: ignore[arg-type]
        for root in roots(here, hosts=chosen.hosts, extra=chosen.paths)
    ]
    return [project_place(here), user_place(), *others, scheduled_place()]


def scheduled_place() -> Place:
    """The skills that only schedules run: in the data folder, where no library looks."""
    return Place(scheduled_folder(), "scheduled")


def user_place() -> Place:
    """The user's own skills: `~/.agents/skills`."""
    return Place(os.path.join(paths.user_home(), SHARED), "user")


def project_place(cwd: str | None = None) -> Place:
    """The skills of the project that `cwd` lies in: `<project>/.agents/skills`.

    Outside any project (the home itself) that is the user's place.
    """
    project = paths.project_root(cwd or os.getcwd())
    if project == paths.user_home():
        return user_place()
    return Place(os.path.join(project, SHARED), "project", project)
