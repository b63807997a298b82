"""A place under its lock, and the journal that lets a change to it land whole or not at all.

An entry says which folders move where and which refs follow. It is on the disk before the first
move and goes away after the last, so an entry that is found was interrupted: it is finished when
its first move had been made, else dropped. Both leave the old version or the new one, whole.
Whoever takes the lock settles first what a kill interrupted, so that nobody works on a half-made
change.

Folders change places by renameat2 (Linux) or renameatx_np (macOS). Where neither is there, or the
filesystem does not know them, plain renames do it, which the journal covers.
"""

import ctypes
import errno
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

import msgspec

from tacit.base.atomic_files import locked, sync_folder, write_atomic
from tacit.base.errors import Damaged
from tacit.changes.containment import Escape, Folder, open_root, read_contents
from tacit.changes.git_store import RefUpdate, tree_id
from tacit.changes.history import History
from tacit.changes.place import Place
from tacit.changes.stage import clean

_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def swap_names(folder: int, name: str, other: int, other_name: str) -> bool:
    """Let two names change places in one step. False where the system cannot; OSError else."""
    return _rename_flagged(folder, name, other, other_name, 2)


def rename_to_free(folder: int, name: str, other: int, other_name: str) -> None:
    """Rename, never replacing anything: FileExistsError where the new name is taken."""
    flag = 4 if sys.platform == "darwin" else 1
    if _rename_flagged(folder, name, other, other_name, flag):
        return
    # Without the flag a rename still replaces neither a file nor a folder with something in it,
    # as what is moved here is always a folder; an empty one is looked for first.
    try:
        os.stat(other_name, dir_fd=other, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, other_name, src_dir_fd=folder, dst_dir_fd=other)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), other_name)


def _rename_flagged(folder: int, name: str, other: int, other_name: str, flag: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(folder, os.fsencode(name), other, os.fsencode(other_name), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), name, None, other_name)


@cache
def _system_call() -> Any:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        call = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call


_ASIDE = ".aside"


class Move(msgspec.Struct, frozen=True):
    """A folder takes a new place. Paths are below the skills folder.

    "move" needs the target to be free. "swap" lets source and target change places. `number` is
    the source folder's inode: it tells whether the move was made. `expected` is the tree of what
    leaves its place; a person may have edited it since it was read.
    """

    kind: Literal["move", "swap"]
    source: str
    target: str
    number: int
    expected: str = ""


class JournalEntry(msgspec.Struct, frozen=True):
    """One change under way."""

    change: str
    root: str
    skill: str
    moves: tuple[Move, ...]
    refs: tuple[RefUpdate, ...]


class Overtaken(Exception):
    """What was to be replaced is no longer what was read: begin again."""


class Journal:
    """The entries of one place. Only for the holder of the place's lock."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def write(self, entry: JournalEntry) -> None:
        write_atomic(self._path(entry.change), msgspec.json.encode(entry))

    def finish(self, entry: JournalEntry) -> None:
        try:
            os.unlink(self._path(entry.change))
        except FileNotFoundError:
            return
        sync_folder(self.folder)

    def entries(self) -> list[JournalEntry]:
        """What was interrupted, oldest first. Raises `Damaged` on an entry that makes no sense."""
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []
        return [self._read(name) for name in names if name.endswith(".json")]

    def sweep(self) -> None:
        """Remove what a kill left of a half-written entry."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return
        for name in names:
            if name.endswith(".tmp"):
                os.unlink(os.path.join(self.folder, name))

    def put_broken_aside(self) -> None:
        """Rename the entries that make no sense, so that the others can be settled."""
        for name in os.listdir(self.folder):
            try:
                if name.endswith(".json"):
                    self._read(name)
            except Damaged:
                path = os.path.join(self.folder, name)
                os.replace(path, path + ".broken")

    def _read(self, name: str) -> JournalEntry:
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb") as file:
                return msgspec.json.decode(file.read(), type=JournalEntry)
        except (OSError, msgspec.DecodeError) as error:
            raise Damaged(
                f"the journal entry {path} is broken: {error}", "run: tacit doctor"
            ) from error

    def _path(self, change: str) -> str:
        return os.path.join(self.folder, f"{change}.json")


def carry_out(root: Folder, entry: JournalEntry, journal: Journal, history: History) -> None:
    """Make every move and point every ref, or nothing. Raises `Overtaken` or OSError."""
    journal.write(entry)
    try:
        for move in entry.moves:
            _make(root, move)
    except BaseException:
        _take_back(root, entry.moves)
        journal.finish(entry)
        raise
    history.refs.move(entry.refs)
    journal.finish(entry)


def recover(root: Folder, journal: Journal, history: History) -> list[str]:
    """Finish or revert what a kill interrupted; the ids of the changes that were finished."""
    finished = []
    for entry in journal.entries():
        # After a power failure the objects may be missing on some filesystems. The folder then
        # counts as edited by hand: its next change records it.
        if _settle(root, entry) and _has_objects(history, entry):
            history.refs.move(entry.refs)
            finished.append(entry.change)
        journal.finish(entry)
    journal.sweep()
    history.objects.sweep()
    clean(root)
    return finished


def _has_objects(history: History, entry: JournalEntry) -> bool:
    try:
        for update in entry.refs:
            if update.new:
                history.files(history.version(update.new))
    except Damaged:
        return False
    return True


def _settle(root: Folder, entry: JournalEntry) -> bool:
    """Finish or take back the moves of an interrupted entry; True when it was finished."""
    for move in entry.moves:
        _put_back_aside(root, move)
    if entry.moves and not any(_is_done(root, move) for move in entry.moves):
        return False
    try:
        for move in entry.moves:
            if _is_done(root, move):
                _verify(root, move)
            else:
                _make(root, move)
    except (Overtaken, OSError, Escape):
        _take_back(root, entry.moves)
        return False
    return True


def _make(root: Folder, move: Move) -> None:
    with _parent(root, move.source) as source, _parent(root, move.target) as target:
        here, there = _name(move.source), _name(move.target)
        if move.kind == "move":
            rename_to_free(source.fd, here, target.fd, there)
        elif not swap_names(source.fd, here, target.fd, there):
            _swap_in_turns(source, here, target, there)
        target.sync()
    _verify(root, move)


def _swap_in_turns(source: Folder, here: str, target: Folder, there: str) -> None:
    """The same by three renames; a kill between them is seen by `_put_back_aside`."""
    aside = here + _ASIDE
    rename_to_free(target.fd, there, source.fd, aside)
    rename_to_free(source.fd, here, target.fd, there)
    rename_to_free(source.fd, aside, source.fd, here)


def _put_back_aside(root: Folder, move: Move) -> None:
    if move.kind != "swap":
        return
    try:
        with _parent(root, move.source) as source, _parent(root, move.target) as target:
            here, there = _name(move.source), _name(move.target)
            if source.status(here + _ASIDE) is None:
                return
            if source.status(here) is None:
                rename_to_free(source.fd, here + _ASIDE, source.fd, here)
            elif target.status(there) is None:
                rename_to_free(source.fd, here + _ASIDE, target.fd, there)
    except FileNotFoundError:  # the stage was never there
        return


def _is_done(root: Folder, move: Move) -> bool:
    """Whether the source folder has left its place."""
    try:
        with _parent(root, move.source) as folder:
            found = folder.identity(_name(move.source))
    except FileNotFoundError:
        return True
    return found is None or found[1] != move.number


def _verify(root: Folder, move: Move) -> None:
    """Whether what left its place is what was read there before."""
    if not move.expected:
        return
    place = move.source if move.kind == "swap" else move.target
    try:
        with _parent(root, place) as above, above.open(_name(place)) as folder:
            found = tree_id(read_contents(folder).files)
    except (FileNotFoundError, Escape):
        raise Overtaken from None
    if found != move.expected:
        raise Overtaken


def _take_back(root: Folder, moves: Iterable[Move]) -> None:
    for move in reversed(list(moves)):
        _put_back_aside(root, move)
        if not _is_done(root, move):
            continue
        with _parent(root, move.source) as source, _parent(root, move.target) as target:
            here, there = _name(move.source), _name(move.target)
            if move.kind == "move":
                rename_to_free(target.fd, there, source.fd, here)
            elif not swap_names(source.fd, here, target.fd, there):
                _swap_in_turns(source, here, target, there)
            source.sync()
            target.sync()


def _parent(root: Folder, path: str) -> Folder:
    return root.descend(path.split("/")[:-1])


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


LOCK_SECONDS = 120.0


class OpenPlace:
    """A place, as the gate works on it. `data` is Tacit's data folder."""

    def __init__(self, place: Place, data: str) -> None:
        self.place = place
        self.real = place.real
        self.data = data
        self.id = place.id
        self.history = History(place, data)
        self.journal = Journal(os.path.join(data, "journal", self.id))
        self._lock = os.path.join(data, "locks", f"{self.id}.lock")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the place against every other process."""
        with locked(self._lock, seconds=LOCK_SECONDS, what=f"the skills in {self.place.root}"):
            yield

    @contextmanager
    def writing(self) -> Iterator[Folder]:
        """The skills folder, made if need be, locked, with nothing left over from before."""
        with self.lock(), open_root(self.place, make=True) as root:
            recover(root, self.journal, self.history)
            yield root

    @contextmanager
    def empty_stand_in(self) -> Iterator[Folder]:
        """An empty folder in place of a skills folder that is not there yet: to judge by."""
        with (
            tempfile.TemporaryDirectory(prefix="tacit-") as folder,
            open_root(Place(folder)) as root,
        ):
            yield root

    def exists(self) -> bool:
        """Whether the skills folder is there. Raises `Escape` where the way to it leads astray."""
        try:
            with open_root(self.place):
                return True
        except FileNotFoundError:
            return False

    def recover(self) -> list[str]:
        """Settle what a kill interrupted; the ids of the changes that were finished."""
        with self.lock():
            if not self.journal.entries() and not os.path.isdir(self.real):
                return []
            with open_root(self.place, make=True) as root:
                return recover(root, self.journal, self.history)
