"""The desk: the staged copies of skills, as the tools of a background agent may touch them.

Everything is reached by handles, one component at a time and never through a link (`contain.py`),
so what a tool is told to read or write lies on the desk or is refused. Used inside the child; what
comes of it is read by the parent, which trusts none of it (`staging.py`).
"""

import os
import secrets
import stat

from tacit.agent.tools.tool import Failed
from tacit.changes.change import SKILL_FILE
from tacit.changes.contain import Escape, Folder, read_contents
from tacit.changes.files import Contents
from tacit.changes.pathnames import check_name, check_path

SKILLS = "skills"
"""The folder of the staging folder that holds the copies."""
MOST_BYTES = 1024 * 1024
MOST_FILES = 500

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Desk:
    """The staged skills, each a folder by its name. Every method raises `Failed` with the cause."""

    def __init__(self, staging: str) -> None:
        self.path = os.path.join(staging, SKILLS)

    def names(self) -> list[str]:
        """The skills that lie here."""
        with self._open() as desk:
            return [name for name in desk.names() if _is_folder(desk, name)]

    def has(self, skill: str) -> bool:
        return skill in self.names()

    def contents(self, skill: str) -> Contents:
        """All files of a skill."""
        try:
            with self._open() as desk, desk.open(skill) as folder:
                return read_contents(folder)
        except FileNotFoundError:
            raise self._missing(skill) from None
        except Escape as escape:
            raise Failed(str(escape)) from None

    def read(self, skill: str, path: str = SKILL_FILE) -> bytes:
        """The bytes of one file."""
        *parents, name = _parts(path)
        try:
            with self._open() as desk, desk.descend([skill, *parents]) as folder:
                return folder.read(name)[0]
        except FileNotFoundError:
            raise self._missing(skill, path) from None
        except Escape as escape:
            raise Failed(str(escape)) from None

    def write(self, skill: str, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Put `data` there, new or in place of the old. A skill that is not here is begun.

        `executable` None keeps what was; a new file is none, as the gate takes no new programs.
        """
        if refusal := check_name(skill):
            raise Failed(f"{refusal.reason}; {refusal.hint}")
        *parents, name = _parts(path)
        if len(data) > MOST_BYTES:
            raise Failed(f"'{path}' would have {len(data):,} bytes; at most {MOST_BYTES:,}")
        try:
            with self._open() as desk, desk.open(skill, make=True) as folder:
                if len(read_contents(folder).files) >= MOST_FILES:
                    raise Failed(f"'{skill}' has {MOST_FILES} files already, and takes no more")
                with folder.descend(parents, make=True) as below:
                    _put(below, name, data, executable)
        except Escape as escape:
            raise Failed(str(escape)) from None
        except OSError as error:
            raise Failed(f"'{path}' cannot be written: {error.strerror}") from None

    def remove(self, skill: str, path: str) -> None:
        """Take a support file away; never SKILL.md."""
        if path.casefold() == SKILL_FILE.casefold():
            raise Failed("SKILL.md cannot be removed: a skill needs it")
        *parents, name = _parts(path)
        try:
            with self._open() as desk, desk.descend([skill, *parents]) as folder:
                os.unlink(name, dir_fd=folder.fd)
        except FileNotFoundError:
            raise self._missing(skill, path) from None
        except Escape as escape:
            raise Failed(str(escape)) from None
        except OSError as error:
            raise Failed(f"'{path}' cannot be removed: {error.strerror}") from None

    def _open(self) -> Folder:
        return Folder(os.open(self.path, _FOLDER), self.path)

    def _missing(self, skill: str, path: str = "") -> Failed:
        if path and self.has(skill):
            there = ", ".join(sorted(self.contents(skill).files)[:20])
            return Failed(f"there is no file '{path}' in '{skill}'; there are: {there}")
        there = ", ".join(self.names()) or "none"
        return Failed(f"'{skill}' is not here to be changed; here are: {there}")


def put_new(folder: Folder, name: str, data: bytes, *, executable: bool) -> None:
    """Write a file that is not there yet."""
    descriptor = os.open(name, _NEW, 0o700 if executable else 0o600, dir_fd=folder.fd)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _put(folder: Folder, name: str, data: bytes, executable: bool | None) -> None:
    before = folder.status(name)
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise Failed(f"'{name}' is not a plain file, and stays as it is")
    if executable is None:
        executable = before is not None and bool(before.st_mode & 0o100)
    # Under another name first: what is there may have a second name elsewhere.
    temporary = f".{secrets.token_hex(6)}.tmp"
    put_new(folder, temporary, data, executable=executable)
    os.replace(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)


def _parts(path: str) -> list[str]:
    if refusal := check_path(path):
        raise Failed(f"{refusal.reason}; {refusal.hint}")
    return path.split("/")


def _is_folder(desk: Folder, name: str) -> bool:
    found = desk.status(name)
    return found is not None and stat.S_ISDIR(found.st_mode)
