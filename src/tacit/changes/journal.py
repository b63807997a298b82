"""A place under its lock, and the journal that lets a change to it land whole or not at all.

An entry says which folders move where, which refs follow, and which lines of the change wait in the
inbox then. It is on the disk before the first move and goes away after the last, so an entry that
is found was interrupted: it is finished when its first move had been made, else dropped. Both leave
the old version or the new one, whole. What fails in the middle is taken back at once. Whoever takes
the lock settles first what a kill interrupted, from any state of any file: what was to move and is
gone (a `git clean` of the stage) is made again from the history.

Folders change places by renameat2 (Linux) or renameatx_np (macOS). Where neither is there, or the
filesystem does not know them, plain renames do it, which the journal covers.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Literal

import msgspec

from tacit.base.atomic_files import TemporaryFolder, locked, sync_folder, write_atomic
from tacit.base.database import DATABASE_FILE
from tacit.base.errors import Busy, Damaged, TacitError, Unwritable
from tacit.changes import git_exclude
from tacit.changes.change import Contents, Files
from tacit.changes.containment import Escape, Folder, open_root, read_contents
from tacit.changes.git_store import RefUpdate, skill_ref, tree_id
from tacit.changes.history import History
from tacit.changes.left_out import Apart
from tacit.changes.place import Place
from tacit.changes.stage import STAGE, clean, open_hidden, stage

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
    import ctypes

    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), name, None, other_name)


@cache
def _system_call() -> Any:
    import ctypes

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
    hides: tuple[str, ...] = ()
    """New skills that git is not to see; see `git_exclude`."""
    apart: Apart | None = None
    """Lines of it that are put into the inbox once it has landed."""


class Overtaken(Exception):
    """What was to be replaced is no longer what was read: begin again."""


class Interrupted(Unwritable):
    """A change could neither be finished nor taken back; whoever takes the lock next does it."""


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

    def holds(self, change: str) -> bool:
        """Whether the entry of `change` is there, or may be: the disk may not say."""
        try:
            os.stat(self._path(change))
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def entries(self) -> list[JournalEntry]:
        """What was interrupted, oldest first. Raises `Damaged` on an entry that makes no sense."""
        return [self._read(name) for name in self._names() if name.endswith(".json")]

    def sweep(self) -> None:
        """Remove what a kill left of a half-written entry."""
        for name in self._names():
            if name.endswith(".tmp"):
                os.unlink(os.path.join(self.folder, name))

    def put_broken_aside(self) -> bool:
        """Rename the entries that make no sense, so that the others can be settled; whether
        there were any."""
        found = False
        for name in self._names():
            try:
                if name.endswith(".json"):
                    self._read(name)
            except Damaged:
                path = os.path.join(self.folder, name)
                os.replace(path, path + ".broken")
                found = True
        return found

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> JournalEntry:
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb") as file:
                return msgspec.json.decode(file.read(), type=JournalEntry)
        except (msgspec.DecodeError, UnicodeDecodeError, IsADirectoryError) as error:
            raise Damaged(
                f"the journal entry {path} is broken: {error}", "run: tacit doctor --fix"
            ) from error

    def _path(self, change: str) -> str:
        return os.path.join(self.folder, f"{change}.json")


def carry_out(opened: "OpenPlace", root: Folder, entry: JournalEntry) -> None:
    """Make every move and point every ref, or nothing.

    Raises `Overtaken`, `Unwritable` or OSError where nothing was done. Where not even taking it
    back worked, `Interrupted`: then the entry stays for whoever takes the lock next.
    """
    try:
        opened.journal.write(entry)
        for skill in entry.hides:
            git_exclude.hide(opened.place, skill, opened.data)
        for move in entry.moves:
            _make(root, move)
        opened.history.refs.move(entry.refs)
        _put_apart(opened, entry)
    except BaseException:
        _revert(opened, root, entry)
        raise
    with suppress(OSError):  # it is done: an entry that stays is found to be so
        opened.journal.finish(entry)


def _revert(opened: "OpenPlace", root: Folder, entry: JournalEntry) -> None:
    """Take back what was done of `entry`: refs first, so that it can still be finished."""
    try:
        opened.history.refs.force(entry.refs, back=True)
        _take_back(root, entry, opened.history)
        for skill in entry.hides:
            git_exclude.show(opened.place, skill, opened.data)
        opened.journal.finish(entry)
    except (OSError, TacitError, Escape) as error:
        why = error.message if isinstance(error, TacitError) else str(error)
        raise Interrupted(
            f"the change {entry.change} to '{entry.skill}' was interrupted: {why}",
            "free some space or mend the disk; the next change finishes it or takes it back,"
            " and so does: tacit doctor --fix",
        ) from error


def recover(opened: "OpenPlace", root: Folder) -> list[str]:
    """Finish or revert what was interrupted; the ids of the changes that were finished."""
    journal = opened.journal
    if journal.put_broken_aside() and root.status(STAGE) is not None:
        # What is on the stage may be the only copy. Nobody knows whose, so a person has to look.
        os.rename(STAGE, f"{KEPT}-{os.urandom(4).hex()}", src_dir_fd=root.fd, dst_dir_fd=root.fd)
    finished = []
    for entry in journal.entries():
        if _settle(opened, root, entry):
            _put_apart(opened, entry)
            finished.append(entry.change)
        journal.finish(entry)
    with suppress(OSError, Escape):  # what is left over is in nobody's way
        journal.sweep()
        opened.history.objects.sweep()
        clean(root)
    return finished


def _put_apart(opened: "OpenPlace", entry: JournalEntry) -> None:
    """Let what was left out of a change wait in the inbox. Twice is the same as once."""
    if entry.apart is not None:
        from tacit.changes.inbox import Inbox

        path = os.path.join(opened.data, DATABASE_FILE)
        Inbox(path).add(entry.apart.change, entry.apart.why)


def _settle(opened: "OpenPlace", root: Folder, entry: JournalEntry) -> bool:
    """Finish an interrupted entry, or take it back; True when it was finished."""
    history = opened.history
    if history.refs.stand(entry.refs):
        return True  # only the entry itself was left
    for move in entry.moves:
        _put_back_aside(root, move)
    begun = not entry.moves or any(
        _is_done(root, move) or _is_torn(root, move) for move in entry.moves
    )
    if begun and _finish_moves(root, entry, history):
        # After a power failure the objects may be missing on some filesystems. The folder then
        # counts as edited by hand: its next change records it.
        if _has_objects(history, entry):
            history.refs.force(entry.refs)
            return True
        return False
    history.refs.force(entry.refs, back=True)
    _take_back(root, entry, history)
    for skill in entry.hides:
        git_exclude.show(opened.place, skill, opened.data)
    return False


def _has_objects(history: History, entry: JournalEntry) -> bool:
    try:
        for update in entry.refs:
            if update.new:
                history.files(history.version(update.new))
    except Damaged:
        return False
    return True


def _finish_moves(root: Folder, entry: JournalEntry, history: History) -> bool:
    """Make the moves that were not made yet; False where that cannot be done."""
    try:
        for move in entry.moves:
            if _is_done(root, move):
                _verify(root, move, may_be_gone=True)
            elif _number_at(root, move.source) is None:
                _make_again(root, entry, history, move.target)
            else:
                _make(root, move)
    except (Overtaken, OSError, Escape, Damaged):
        return False
    return True


def _make_again(
    root: Folder, entry: JournalEntry, history: History, path: str, *, before: bool = False
) -> None:
    """Put the skill that belongs at `path` there from the history, as it is after the entry or
    was `before` it. Raises `Damaged` where the history lacks it."""
    wanted = next((ref.new for ref in entry.refs if ref.name == skill_ref(path)), "")
    if not wanted:
        raise Damaged(f"the history does not say what {path} was", "")
    version = history.version(wanted)
    if before:
        version = history.version(version.parent)
    _put_files(root, path, history.files(version))


def _put_files(root: Folder, path: str, files: Files) -> None:
    """Make a folder with these files, in one step, where nothing is."""
    *above, name = path.split("/")
    temporary = os.urandom(8).hex()
    with open_hidden(root, STAGE) as top, root.descend(above, make=True) as folder:
        stage(top, temporary, files, None, Contents({}))
        rename_to_free(top.fd, temporary, folder.fd, name)
        folder.sync()


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
    """Whether what was to move has moved."""
    if _number_at(root, move.target) == move.number:
        return True
    source = _number_at(root, move.source)
    if source == move.number:
        return False
    # It is nowhere any more. What was to leave the library has left it; what was to come has not.
    return source is None and not move.source.startswith(f"{STAGE}/")


def _is_torn(root: Folder, move: Move) -> bool:
    """Whether both sides of a swap are gone: it was killed between two renames, then swept away."""
    here, there = _number_at(root, move.source), _number_at(root, move.target)
    return move.kind == "swap" and here is None and there is None


def _number_at(root: Folder, path: str) -> int | None:
    """The inode of what stands at `path`."""
    try:
        with _parent(root, path) as folder:
            found = folder.identity(_name(path))
    except (FileNotFoundError, Escape):
        return None
    return found[1] if found else None


def _verify(root: Folder, move: Move, *, may_be_gone: bool = False) -> None:
    """Whether what left its place is what was read there before."""
    if not move.expected:
        return
    place = move.source if move.kind == "swap" else move.target
    try:
        with _parent(root, place) as above, above.open(_name(place)) as folder:
            found = tree_id(read_contents(folder).files)
    except (FileNotFoundError, Escape):
        if may_be_gone:
            return
        raise Overtaken from None
    if found != move.expected:
        raise Overtaken


def _take_back(root: Folder, entry: JournalEntry, history: History) -> None:
    for move in reversed(entry.moves):
        _put_back_aside(root, move)
        if _is_done(root, move):
            _take_move_back(root, move, entry, history)


def _take_move_back(root: Folder, move: Move, entry: JournalEntry, history: History) -> None:
    leaving = move.source if move.kind == "swap" else move.target
    if _number_at(root, leaving) is None:  # what was there before is gone with the stage
        with suppress(Damaged, FileExistsError):
            if move.kind == "move":
                _make_again(root, entry, history, move.source, before=True)
        return
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


_MANY = 1_000
"""Loose objects from which a history is packed: about two hundred changes."""


def pack_histories(data: str) -> int:
    """Pack each history that has many loose objects; how many were packed. Waits for no lock."""
    packed = 0
    folder = os.path.join(data, "history")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        history = History(Place(""), data, folder=os.path.join(folder, name))
        if not name.endswith(".git") or history.objects.count_loose() < _MANY:
            continue
        lock = os.path.join(data, "locks", f"{name.removesuffix('.git')}.lock")
        with suppress(Busy), locked(lock, seconds=1.0):
            history.pack()
            packed += 1
    return packed


KEPT = f"{STAGE}-kept"
"""How folders begin that hold what a broken entry left on the stage."""
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
            recover(self, root)
            yield root

    @contextmanager
    def empty_stand_in(self) -> Iterator[Folder]:
        """An empty folder in place of a skills folder that is not there yet: to judge by."""
        with TemporaryFolder() as folder, open_root(Place(folder)) as root:
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
            if not os.path.isdir(self.real):
                self.journal.put_broken_aside()
                if not self.journal.entries():
                    return []
            with open_root(self.place, make=True) as root:
                return recover(self, root)
