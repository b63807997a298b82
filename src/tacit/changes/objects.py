"""Git's object store, written in this process: blobs, trees and commits as loose files.

The format is git's own, so the git program reads, checks and packs it. Writing it here costs a
tenth of a millisecond an object instead of a process each, leaves no child running when this
process is killed, and lets every write be forced to the disk in a known order. Objects that git
has packed are read through `git cat-file`.
"""

import hashlib
import os
import secrets
import subprocess
import zlib
from collections.abc import Mapping
from typing import Any

from tacit.base.errors import Damaged, Unwritable
from tacit.changes.files import File, Files, Kind

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_MODES: dict[Kind, bytes] = {"file": b"100644", "program": b"100755", "link": b"120000"}
_KINDS: dict[bytes, Kind] = {mode: kind for kind, mode in _MODES.items()}
_FOLDER_MODE = b"40000"

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
_GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "core.autocrlf=false")


def git_environment() -> dict[str, str]:
    """What git sees of the environment: no settings of the user's, no repository of theirs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


class Objects:
    """The objects in one bare git directory, which is made when something is first written."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._made = False

    def make(self) -> None:
        """Lay out the git directory; twice is the same as once."""
        if self._made:
            return
        if not self.is_made():
            for part in ("objects", "refs", "tmp"):
                os.makedirs(self._path(part), mode=0o700, exist_ok=True)
            self.write_file("config", _CONFIG.encode())
            self.write_file("HEAD", b"ref: refs/heads/none\n")  # last: from here on it is whole
        self._made = True

    def is_made(self) -> bool:
        """Whether the git directory is there, whole: a kill may have left a part of one."""
        return os.path.exists(self._path("HEAD"))

    def write_file(self, name: str, data: bytes) -> None:
        """Replace a file of the git directory in one step, by way of its `tmp`.

        Its bytes are forced to the disk, its name is not: the journal, which is written after it
        and forced whole, cannot be on the disk without it, as filesystems log names in order.
        """
        path = self._path(name)
        temporary = self._path("tmp", secrets.token_hex(8))
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            try:
                os.rename(temporary, path)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                os.rename(temporary, path)
        except OSError as error:
            raise Unwritable(
                f"cannot write the history in {self.folder}: {error.strerror}",
                "check the free space and the permissions there",
            ) from error

    def sweep(self) -> None:
        """Remove what a kill left of a half-written file."""
        try:
            names = os.listdir(self._path("tmp"))
        except FileNotFoundError:
            return
        for name in names:
            os.unlink(self._path("tmp", name))

    def write(self, kind: str, data: bytes) -> str:
        """Store an object and return its id."""
        whole = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        name = f"objects/{oid[:2]}/{oid[2:]}"
        if not os.path.exists(self._path(name)):
            self.write_file(name, zlib.compress(whole, 1))
        return oid

    def read(self, kind: str, oid: str) -> bytes:
        """The content of an object. Raises `Damaged` where it is missing or broken."""
        try:
            with open(self._path("objects", oid[:2], oid[2:]), "rb") as file:
                whole = zlib.decompress(file.read())
        except FileNotFoundError:
            return self._read_packed(kind, oid)
        except (OSError, zlib.error) as error:
            raise self._damaged(oid) from error
        head, _, data = whole.partition(b"\0")
        if head != f"{kind} {len(data)}".encode():
            raise self._damaged(oid)
        return data

    def write_tree(self, files: Files) -> str:
        """Store the files and the folders they make; the id of the topmost."""
        return _build_tree(files, self.write)

    def read_tree(self, oid: str, prefix: str = "") -> dict[str, File]:
        """The files that the tree `oid` stands for."""
        files: dict[str, File] = {}
        data = self.read("tree", oid)
        while data:
            mode, _, data = data.partition(b" ")
            name, _, data = data.partition(b"\0")
            child, data = data[:20].hex(), data[20:]
            path = prefix + os.fsdecode(name)
            if mode == _FOLDER_MODE:
                files.update(self.read_tree(child, path + "/"))
            else:
                files[path] = File(self.read("blob", child), _KINDS[mode])
        return files

    def git(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
        """Run a git command on this directory."""
        return subprocess.run(
            [*_GIT, f"--git-dir={self.folder}", *arguments],
            capture_output=True,
            check=check,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
        )

    def _read_packed(self, kind: str, oid: str) -> bytes:
        if os.path.isdir(self._path("objects", "pack")):
            found = self.git("cat-file", kind, oid, check=False)
            if found.returncode == 0:
                return found.stdout
        raise self._damaged(oid)

    def _damaged(self, oid: str) -> Damaged:
        return Damaged(
            f"the history in {self.folder} lacks {oid[:12]}, or it is broken", "run: tacit doctor"
        )

    def _path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)


def tree_id(files: Files) -> str:
    """The id that `files` would have as a tree, without storing anything."""

    def name(kind: str, data: bytes) -> str:
        whole = f"{kind} {len(data)}\0".encode() + data
        return hashlib.sha1(whole, usedforsecurity=False).hexdigest()

    return _build_tree(files, name)


def _build_tree(files: Files, write: Any) -> str:
    nested: dict[str, Any] = {}
    for path, file in files.items():
        *folders, name = path.split("/")
        here = nested
        for folder in folders:
            here = here.setdefault(folder, {})
        here[name] = file
    return _write_folder(nested, write)


def _write_folder(entries: Mapping[str, Any], write: Any) -> str:
    rows = []
    for name, entry in entries.items():
        raw = os.fsencode(name)
        if isinstance(entry, File):
            rows.append((raw, _MODES[entry.kind], raw, write("blob", entry.data)))
        else:  # git sorts folders as if their names ended in a slash
            rows.append((raw + b"/", _FOLDER_MODE, raw, _write_folder(entry, write)))
    data = b"".join(
        mode + b" " + raw + b"\0" + bytes.fromhex(oid) for _, mode, raw, oid in sorted(rows)
    )
    return str(write("tree", data))
