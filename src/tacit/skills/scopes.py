"""Which folders hold skills here, and which of them win: project over user over bundled.

Plain classes and strings only: this is on the way of every command.
"""

import os

from tacit.base import paths, trust
from tacit.traces.hosts.places import PLACES, SHARED

SCOPES = ("project", "user", "extra", "bundled")
BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")


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


def roots(cwd: str, *, hosts: bool = True, extra: tuple[str, ...] = ()) -> list[Root]:
    """The folders that exist, those that win first.

    From the working directory up to the project's root, nearest first; then the user's; then the
    folders named in the settings; then what Tacit ships. In each, `.agents/skills` comes before
    the folders of the other agents.
    """
    home = paths.user_home()
    places = PLACES if hosts else (SHARED,)
    found: list[Root] = []
    project = paths.project_root(cwd)
    if not paths.is_home(project):
        trusted = trust.is_trusted(project)
        for here in paths.upwards(cwd, project):
            for place in places:
                for folder in place.project:
                    path = os.path.join(here, folder)
                    found.append(
                        Root(path, "project", place.host, project=project, trusted=trusted)
                    )
    for place in places:
        found.extend(Root(path, "user", place.host) for path in place.user_folders(home))
    more = (os.path.abspath(os.path.expanduser(path)) for path in extra)
    found.extend(Root(path, "extra", "settings") for path in more)
    found.append(Root(BUNDLED, "bundled", "tacit"))
    return [root for root in found if os.path.isdir(root.path)]
