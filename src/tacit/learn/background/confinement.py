"""What keeps a background agent in: the limits of its process, and what commands cannot see.

The child gives up all rights but those that its task needs before it speaks with a model (`lock`).
What holds on this machine is found by doing that in a process of its own (`probe_confinement`),
because a kernel may know the calls and still refuse them: `python -m
tacit.learn.background.confinement FOLDER`. Commands that the parent runs for a repair see the
project, the system and the places where languages keep their programs; `hidden_paths` names the
rest of people's homes and other disks.
"""

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import msgspec

from tacit.agent import process_rights
from tacit.base import paths
from tacit.base.errors import Refused
from tacit.base.paths import is_inside
from tacit.learn.background.task import Confinement

MOST_HIDDEN = 2_000
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


def hidden_paths(project: str) -> tuple[str, ...] | None:
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
    return tuple(walk.found) if len(walk.found) <= MOST_HIDDEN else None


class _Walk:
    """Goes down towards what is shown, and collects what lies beside the way."""

    def __init__(self, shown: set[str]) -> None:
        self._shown = shown
        self.found: dict[str, None] = {}

    def look(self, path: str) -> None:
        if len(self.found) > MOST_HIDDEN or not os.path.isdir(path):
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


_SECONDS = 20
_PARTS = (
    ("writes", "write only into its own folder"),
    ("reads", "read only the project and the library"),
    ("network", "connect only to the model's port"),
    ("group", "leave no process behind"),
)


def lock(folder: str, read: Iterable[str], ports: tuple[int, ...]) -> Confinement:
    """Keep this process to `folder` for writing. Raises `Refused` when that goes wrong."""
    group = process_rights.stay_in_group()
    held = process_rights.restrict(
        process_rights.Rights(write=(folder, os.devnull), read=tuple(read), ports=ports)
    )
    why_not = held.why_not
    if not group:
        why_not = "; ".join(filter(None, (why_not, "a process can leave its group")))
    return Confinement(held.writes, held.reads, held.network, group, why_not)


def probe_confinement() -> Confinement:
    """What holds on this machine, found by confining a process and looking."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", __name__, folder]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
            return msgspec.json.decode(done.stdout, type=Confinement)
        except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
            return Confinement(why_not="it could not be tried")


def describe_confinement(confinement: Confinement) -> str:
    """In a line for a person: what an agent in the background can do, and what nothing hinders."""
    held = [words for name, words in _PARTS if getattr(confinement, name)]
    if not held:
        return f"nothing but its tools keeps it in: {confinement.why_not}"
    can = f"{', '.join(held[:-1])} and {held[-1]}" if len(held) > 1 else held[0]
    return f"it can {can}" + (f"; {confinement.why_not}" if confinement.why_not else "")


def main(folder: str) -> None:
    try:
        confinement = lock(folder, (), ())
    except Refused as refused:
        confinement = Confinement(why_not=refused.message)
    os.write(1, msgspec.json.encode(confinement))


if __name__ == "__main__":
    main(sys.argv[1])
