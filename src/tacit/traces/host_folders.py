"""Where each host keeps its skills and its keys, also where a variable has moved them, and which
files of a project it obeys.

The facts stand in the hosts themselves, one file each. `tacit list` needs these few of them and
cannot wait for the rest, so they are kept in a small cache: it holds while the hosts, the installed
packages and Tacit itself are what they were, and is made again otherwise. Plain classes and strings
only.
"""

import os
import sys
from binascii import crc32

from tacit.base import paths
from tacit.base.marshal_cache import TAG, read_cache, stamp, trusted_stamp, write_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tacit.base.marshal_cache import Stamp

_HEAD = f"tacit-hosts 2 {TAG}\n".encode()


class UserPath:
    """A path below the user's home, and the variables that name another place for it.

    A variable may name a folder above, as in "XDG_DATA_HOME/opencode". The first that is set
    counts.
    """

    __slots__ = ("moves", "path")

    def __init__(self, path: str = "", *moves: str) -> None:
        self.path = path
        self.moves = moves

    def below(self, name: str) -> "UserPath":
        """What is called `name` in this folder."""
        return UserPath(os.path.join(self.path, name), *(f"{move}/{name}" for move in self.moves))

    def resolve(self, home: str = "") -> str:
        """Where it is, for the user whose home is `home`."""
        return self.moved() or os.path.join(home or paths.user_home(), self.path)

    def moved(self) -> str:
        """Where a variable has put it; empty where none has."""
        for move in self.moves:
            variable, _, below = move.partition("/")
            if base := os.environ.get(variable, "").strip():
                base = os.path.abspath(os.path.expanduser(base))
                return os.path.join(base, below) if below else base
        return ""


class HostFolders:
    """The skill folders and the files of keys of one host, and what it obeys in a project."""

    __slots__ = ("apart", "host", "linked", "obeys", "project", "secrets", "title", "user")

    def __init__(
        self,
        host: str,
        title: str,
        project: tuple[str, ...],
        user: tuple[UserPath, ...],
        *,
        secrets: tuple[UserPath, ...] = (),
        obeys: tuple[str, ...] = (),
        linked: bool = False,
        apart: bool = False,
    ) -> None:
        self.host = host
        self.title = title
        self.project = project
        self.user = user
        self.secrets = secrets
        self.obeys = obeys
        self.linked = linked
        """Whether it does not read the shared folder, so that learned skills are linked into its
        own."""
        self.apart = apart
        """Whether it passes over a project's folders, so that skills there are linked into a folder
        of ours that it is told of."""

    def user_folders(self, home: str) -> list[str]:
        """The user's skill folders as absolute paths."""
        return [folder.resolve(home) for folder in self.user]

    def secret_files(self, home: str) -> list[str]:
        """The files of keys where they lie by default, and where a variable has moved them."""
        default = [os.path.join(home, file.path) for file in self.secrets]
        return default + [moved for file in self.secrets if (moved := file.moved())]

    def row(self) -> "tuple[Any, ...]":
        """All of it in plain values, for the cache."""
        user, secrets = ([(p.path, *p.moves) for p in found] for found in (self.user, self.secrets))
        flags = self.linked, self.apart
        return self.host, self.title, self.project, user, secrets, self.obeys, *flags

    @classmethod
    def of(cls, row: "tuple[Any, ...]") -> "HostFolders":
        """What `row` was made of."""
        host, title, project, *places, obeys, linked, apart = row
        user, secrets = (tuple(UserPath(*place) for place in found) for found in places)
        return cls(
            host, title, project, user, secrets=secrets, obeys=obeys, linked=linked, apart=apart
        )


SHARED_FOLDERS = HostFolders(
    "agents",
    "any agent",
    (paths.SHARED_SKILLS,),
    (UserPath(paths.SHARED_SKILLS),),
    obeys=("AGENTS.md", "AGENTS.override.md", ".mcp.json"),
)
_read: dict[tuple[str, ...], tuple[HostFolders, ...]] = {}
"""What this process has found, by the folders in which packages are looked for."""


def host_folders() -> tuple[HostFolders, ...]:
    """The shared folders, then those of every tested host in the order of their precedence."""
    where = tuple(map(str, sys.path))
    if where not in _read:
        _read[where] = (SHARED_FOLDERS, *map(HostFolders.of, _rows(where)))
    return _read[where]


def _rows(where: tuple[str, ...]) -> "list[tuple[Any, ...]]":
    """The rows by the cache where it still holds, else by the hosts, which are then loaded."""
    name = f"hosts-{crc32(os.fsencode(os.pathsep.join(where))):08x}.{TAG}"
    path = os.path.join(paths.folders().cache, name)
    known = read_cache(path, _HEAD)
    if known is not None:
        made_for, stamps, rows = known
        if made_for == where and stamps == _stamps(file for file, _ in stamps):
            return list(rows)
    import time

    from tacit.base.errors import Unwritable
    from tacit.traces.host_registry import folders_of_hosts

    looked_at = time.time_ns()
    found, files = folders_of_hosts()
    rows = [folders.row() for folders in found]
    try:
        write_cache(path, _HEAD, (where, _stamps([__file__, *files], looked_at), rows))
    except Unwritable:  # a full disk, a home that cannot be written: the hosts load each time
        pass
    return rows


def _stamps(files: "Iterable[str]", looked_at: int = 0) -> "list[tuple[str, Stamp | None]]":
    """Each file with its stamp, None where it does not exist."""
    found: list[tuple[str, Stamp | None]] = []
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            found.append((file, None))
        else:
            found.append((file, trusted_stamp(status, looked_at) if looked_at else stamp(status)))
    return found
