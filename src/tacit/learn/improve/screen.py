"""What a background agent's commands must not see, beside what none may: the rest of the home.

The chat's commands may read the disk, as their user can watch them. Nobody watches these, so they
see the project, the system and the places where languages keep their programs, and of people's
homes and other disks nothing else.
"""

import os
import pwd
import sys

from tacit.base import paths
from tacit.base.paths import is_inside

MOST = 2_000
_TOPS = (
    "/home", "/root", "/Users", "/Volumes", "/mnt", "/media", "/srv", "/var/mail", "/var/spool",
    "/var/backups", "/var/tmp",  # noqa: S108 - nothing is put there
)  # fmt: skip
# Below a home: where programs are kept, and nothing of the user's own.
_PROGRAMS = (
    ".pyenv", ".rbenv", ".nodenv", ".nvm", ".volta", ".fnm", ".asdf", ".rustup", ".cargo/bin",
    ".bun/bin", ".deno/bin", ".sdkman", ".local/bin", ".local/lib", ".local/pipx", ".nix-profile",
    ".local/share/uv", ".local/share/pnpm", ".local/share/mise", "miniconda3", "anaconda3",
    "miniforge3", "go/bin", ".npm-global", ".linuxbrew",
)  # fmt: skip


def elsewhere(project: str) -> tuple[str, ...] | None:
    """The paths to hide so that of homes and other disks only `project` and programs are seen.

    None where there are too many of them.
    """
    homes = {os.path.realpath(paths.user_home()), os.path.realpath(_account_home())}
    shown = {os.path.realpath(project)} if project else set()
    shown |= {os.path.realpath(os.path.join(home, p)) for home in homes for p in _PROGRAMS}
    shown |= {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    on_path = (os.path.realpath(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p)
    # A home on the path is a mistake, not a place for programs.
    shown |= {path for path in on_path if not any(is_inside(home, path) for home in homes)}
    walk = _Walk(shown)
    tops = dict.fromkeys(os.path.realpath(top) for top in (*_TOPS, *homes))
    for top in tops:
        walk.look(top)
    return tuple(walk.found) if len(walk.found) <= MOST else None


class _Walk:
    """Goes down towards what is shown, and collects what lies beside the way."""

    def __init__(self, shown: set[str]) -> None:
        self._shown = shown
        self.found: dict[str, None] = {}

    def look(self, path: str) -> None:
        if len(self.found) > MOST or not os.path.isdir(path):
            return
        if any(is_inside(path, shown) for shown in self._shown):
            return
        if not any(is_inside(shown, path) for shown in self._shown):
            self.found[path] = None
            return
        try:
            entries = list(os.scandir(path))
        except OSError:
            return
        for entry in entries:
            if entry.is_symlink():  # where it leads is looked at there, or is the system's
                continue
            if entry.is_dir(follow_symlinks=False):
                self.look(entry.path)
            elif not any(is_inside(entry.path, shown) for shown in self._shown):
                self.found[entry.path] = None


def _account_home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except (KeyError, OSError):
        return paths.user_home()
