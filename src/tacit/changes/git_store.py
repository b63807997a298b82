"""The objects and refs of a git directory of Tacit's own, written in this process.

Blobs, trees and commits are loose files in git's own format, so the git program reads, checks and
packs them. Writing them here costs a tenth of a millisecond an object instead of a process each,
leaves no child running when this process is killed, and lets every write be forced to the disk in a
known order. What git has packed is read by `git_pack`; refs are packed here, so that no process
that outlives a kill can write one.

A ref a skill, so that each has a history of its own; a ref a change, so that a change is found by
its id, and another where it belongs to a group; a ref a pinned skill. Refs are written one by one:
that several move together is the journal's business, and that nobody else writes is the lock's.
What a commit says is in `history`.
"""

import hashlib
import heapq
import mmap
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.base.atomic_files import sync_folder, write_all
from tacit.base.errors import Damaged, Unwritable
from tacit.base.git_program import run_git
from tacit.base.paths import make_private, walk_folders
from tacit.changes.change import File, FileKind, Files
from tacit.changes.git_pack import packed_ids, read_packed

if TYPE_CHECKING:
    import subprocess

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_MODES: dict[FileKind, bytes] = {"file": b"100644", "program": b"100755", "link": b"120000"}
_KINDS: dict[bytes, FileKind] = {mode: kind for kind, mode in _MODES.items()}
_FOLDER_MODE = b"40000"

_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
_HEAD = b"ref: refs/heads/none\n"


CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Objects:
    """The objects in one bare git directory, which is made when something is first written."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._made = False

    def make(self) -> None:
        """Lay out the git directory, unless it is there."""
        if self._made:
            return
        if not self.is_made():
            self.lay_out()
        self._made = True

    def lay_out(self) -> None:
        """Write what git needs to take the folder for a git directory."""
        for part in ("objects", "refs", "tmp"):
            make_private(self._path(part))
        self.write_file("config", _CONFIG)
        self.write_file("HEAD", _HEAD)  # last: from here on it is whole

    def is_laid_out(self) -> bool:
        """Whether the files that git needs are there and say what they should."""
        return all(
            _bytes_at(self._path(name)) == wanted
            for name, wanted in (("config", _CONFIG), ("HEAD", _HEAD))
        ) and os.path.isdir(self._path("refs"))

    def is_made(self) -> bool:
        """Whether the git directory is there, whole: a kill may have left a part of one."""
        return os.path.exists(self._path("HEAD"))

    def write_file(self, name: str, data: bytes) -> None:
        """Replace a file of the git directory in one step, by way of its `tmp`.

        Its bytes are forced to the disk, its name is not: the journal, which is written after it
        and forced whole, cannot be on the disk without it, as filesystems log names in order.
        """
        path = self._path(name)
        temporary = self._path("tmp", os.urandom(8).hex())
        try:
            try:
                descriptor = os.open(temporary, CREATE, 0o600)
            except FileNotFoundError:  # an empty folder is easily lost, as by a copy
                make_private(self._path("tmp"))
                descriptor = os.open(temporary, CREATE, 0o600)
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            try:
                os.rename(temporary, path)
            except FileNotFoundError:
                make_private(os.path.dirname(path))
                os.rename(temporary, path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
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
        oid, whole = _object(kind, data)
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

    def git(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a git command on this directory. Raises `TacitError` where there is no git."""
        return run_git(*arguments, repository=self.folder)

    def ids(self) -> Iterator[str]:
        """The ids of all objects, loose and packed."""
        for part in _names_in(self._path("objects")):
            if len(part) == 2:
                yield from (part + rest for rest in _names_in(self._path("objects", part)))
        yield from packed_ids(self._path("objects", "pack"))

    def kind_of(self, oid: str) -> str:
        """What kind of object `oid` is; empty where it cannot be read."""
        for kind in ("commit", "tree", "blob"):
            with suppress(Damaged):
                self.read(kind, oid)
                return kind
        return ""

    def count_loose(self) -> int:
        """About how many objects are not packed: their ids are spread evenly over 256 folders."""
        return 16 * sum(
            len(_names_in(self._path("objects", f"{n:02x}"))) for n in range(0, 256, 16)
        )

    def _read_packed(self, kind: str, oid: str) -> bytes:
        try:
            found = read_packed(self._path("objects", "pack"), oid)
        except (OSError, ValueError) as error:
            raise self._damaged(oid) from error
        if found is None or found.kind != kind:
            raise self._damaged(oid)
        return found.data

    def _damaged(self, oid: str) -> Damaged:
        return Damaged(
            f"the history in {self.folder} lacks {oid[:12]}, or it is broken",
            "run: tacit doctor --fix",
        )

    def _path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _bytes_at(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return b""


def tree_id(files: Files) -> str:
    """The id that `files` would have as a tree, without storing anything."""
    return _build_tree(files, lambda kind, data: _object(kind, data)[0])


def _object(kind: str, data: bytes) -> tuple[str, bytes]:
    """An object's id, and its bytes as git stores them."""
    whole = f"{kind} {len(data)}\0".encode() + data
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest(), whole


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


_OID = re.compile("[0-9a-f]{40}")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


class RefUpdate(msgspec.Struct, frozen=True):
    """One ref's move. An empty id is "not there"."""

    name: str
    new: str
    old: str = ""


def quote_name(name: str) -> str:
    """`name` in small letters, digits, `-`, `_` and `%xx`, whatever stands in it."""
    return "".join(
        c if c in _PLAIN else "".join(f"%{byte:02x}" for byte in os.fsencode(c)) for c in name
    )


def unquote_name(text: str) -> str:
    """The name that `quote` was given."""
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(text))


def ref_part(name: str) -> str:
    """`name` as one part of a ref: no two names collide, on any filesystem.

    A long name is cut and told apart by a hash; it then holds `%%`, which `quote` never makes.
    """
    text = quote_name(name)
    if len(text) <= 180:
        return text
    import hashlib

    return f"{text[:100]}%%{hashlib.sha256(os.fsencode(name)).hexdigest()}"


def skill_ref(skill: str) -> str:
    return f"refs/skills/{ref_part(skill)}"


def pin_ref(skill: str) -> str:
    return f"refs/pinned/{ref_part(skill)}"


def change_ref(change: str, skill: str) -> str:
    """By month, so that no folder grows without end and the newest are found first."""
    return f"refs/changes/{change[:6]}/{change}/{ref_part(skill)}"


def group_ref(group: str, change: str, skill: str) -> str:
    return f"refs/groups/{group[:6]}/{group}/{change}/{ref_part(skill)}"


class Refs:
    """The refs of one git directory."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._folder = objects.folder

    def get(self, name: str) -> str:
        """The commit that `name` points to, or an empty string."""
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                text = file.read(64).strip().decode("ascii", "replace")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return self._packed(name)
        if not _OID.fullmatch(text):
            raise Damaged(
                f"{name} in {self._folder} does not hold a commit's id", "run: tacit doctor --fix"
            )
        return text

    def move(self, updates: tuple[RefUpdate, ...]) -> None:
        """Let each ref point where it should; one that already does is passed over."""
        for update in updates:
            here = self.get(update.name)
            if here == update.new:
                continue
            if here != update.old:
                raise Damaged(
                    f"{update.name} points to {here[:12] or 'nothing'}"
                    f" instead of {update.old[:12] or 'nothing'}",
                    "run: tacit doctor",
                )
            self._set(update.name, update.new)

    def force(self, updates: tuple[RefUpdate, ...], *, back: bool = False) -> None:
        """Let each ref point where it should, or where it did before, whatever it holds now."""
        for update in updates:
            wanted = update.old if back else update.new
            try:
                if self.get(update.name) == wanted:
                    continue
            except Damaged:
                pass
            self._set(update.name, wanted)

    def stand(self, updates: tuple[RefUpdate, ...]) -> bool:
        """Whether each ref points where it should."""
        try:
            return all(self.get(update.name) == update.new for update in updates)
        except Damaged:
            return False

    def names(self, prefix: str) -> list[str]:
        """The names of the refs below `prefix`, whatever they hold."""
        packed = (name for name, _ in self._packed_below(prefix, False))
        return sorted({*packed, *(name for name, _ in self._loose(prefix, False))})

    def are_there(self) -> bool:
        """Whether there is any ref, whatever it holds."""
        both = (self._loose("refs", False), self._packed_below("refs", False))
        return any(True for refs in both for _ in refs)

    def broken(self) -> list[str]:
        """The names of the refs that hold no commit's id."""
        found = []
        for name, _ in self._loose("refs", False):
            try:
                self.get(name)
            except Damaged:
                found.append(name)
        return found

    def list(self, prefix: str, *, newest: int = 0) -> list[tuple[str, str]]:
        """Name and commit of each ref below `prefix` in order; with `newest`, the last so many by
        name, the last one first. Raises `Damaged` where one does not hold a commit's id."""
        backwards = bool(newest)
        loose = self._loose(prefix, backwards)
        packed = self._packed_below(prefix, backwards)
        merged = heapq.merge(loose, packed, key=lambda row: row[0], reverse=backwards)
        found: dict[str, str] = {}
        for name, oid in merged:
            if name not in found:
                if newest and len(found) == newest:
                    break
                found[name] = oid or self.get(name)
        return list(found.items())

    def pack(self) -> None:
        """Put all refs into one file. Kill-safe: a loose one goes after the file has it."""
        rows = self.list("refs")
        loose = [name for name, _ in self._loose("refs", False)]
        if not loose:
            return
        text = _PACKED_HEAD + "".join(f"{oid} {name}\n" for name, oid in rows)
        self._objects.write_file("packed-refs", text.encode())
        sync_folder(self._folder)
        for name in loose:
            os.unlink(os.path.join(self._folder, name))
        for here in [f for f, _, _ in walk_folders(os.path.join(self._folder, "refs"))][::-1]:
            if here.count(os.sep) > self._folder.count(os.sep) + 2:
                with suppress(OSError):  # something is in it
                    os.rmdir(here)

    def _loose(self, prefix: str, backwards: bool) -> Iterator[tuple[str, str]]:
        """The refs that are files of their own, in order; what each holds is looked up later."""
        below = []
        with suppress(FileNotFoundError, NotADirectoryError):
            for found in os.scandir(os.path.join(self._folder, prefix)):
                path, is_folder = f"{prefix}/{found.name}", found.is_dir()
                below.append((f"{path}/" if is_folder else path, path, is_folder))
        # As whole names are ordered: what is in a folder sorts as if its name ended in a slash.
        for _, path, is_folder in sorted(below, reverse=backwards):
            if is_folder:
                yield from self._loose(path, backwards)
            else:
                yield path, ""

    def _packed_below(self, prefix: str, backwards: bool) -> Iterator[tuple[str, str]]:
        try:
            with open(os.path.join(self._folder, "packed-refs"), "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    yield from _lines_below(text, prefix.encode() + b"/", backwards)
        except FileNotFoundError:
            return

    def _set(self, name: str, oid: str) -> None:
        if oid:
            self._objects.write_file(name, oid.encode() + b"\n")
        else:
            self._remove(name)

    def _remove(self, name: str) -> None:
        if self._packed(name):
            rows = "".join(
                f"{oid} {n}\n" for n, oid in self._packed_below("refs", False) if n != name
            )
            self._objects.write_file("packed-refs", (_PACKED_HEAD + rows).encode())
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, name))

    def _packed(self, name: str) -> str:
        """Look `name` up in the sorted file that `git pack-refs` makes, by halving."""
        try:
            with open(os.path.join(self._folder, "packed-refs"), "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return ""
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    return _bisect(text, name.encode())
        except FileNotFoundError:
            return ""


_PACKED_HEAD = "# pack-refs with: peeled fully-peeled sorted \n"


def _bisect(text: mmap.mmap, wanted: bytes) -> str:
    start = _first_line(text, wanted)
    oid, _, name = _line_at(text, start).partition(b" ")
    return oid.decode("ascii", "replace") if name == wanted else ""


def _first_line(text: mmap.mmap, wanted: bytes) -> int:
    """Where the first line begins whose name is not before `wanted`."""
    low, high = 0, len(text)
    while low < high:
        start = max(text.rfind(b"\n", 0, (low + high) // 2) + 1, low)
        line = _line_at(text, start)
        name = line.partition(b" ")[2]
        if line.startswith((b"#", b"^")) or name < wanted:  # the header stands first
            low = start + len(line) + 1
        else:
            high = start
    return low


def _line_at(text: mmap.mmap, start: int) -> bytes:
    end = text.find(b"\n", start)
    return text[start : len(text) if end < 0 else end]


def _lines_below(text: mmap.mmap, prefix: bytes, backwards: bool) -> Iterator[tuple[str, str]]:
    """The refs whose names begin with `prefix`; lines that are broken are passed over."""
    first, last = _first_line(text, prefix), _first_line(text, prefix + b"\xff")
    while first < last:
        if backwards:
            start = text.rfind(b"\n", first, last - 1) + 1 or first
            line, last = _line_at(text, start), start
        else:
            line = _line_at(text, first)
            first += len(line) + 1
        oid, _, name = line.decode("ascii", "replace").partition(" ")
        if _OID.fullmatch(oid) and name.startswith(prefix.decode()):
            yield name, oid
