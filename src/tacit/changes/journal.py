"""What is about to happen to a place, written down before it does.

An entry says which folders move where and which refs follow. It is on the disk before the first
move and goes away after the last, so an entry that is found was interrupted: it is finished when
its first move had been made, else dropped. Both leave the old version or the new one, whole.
"""

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from tacit.base.errors import Damaged
from tacit.base.files import sync_folder, write_atomic
from tacit.changes import exchange
from tacit.changes.contain import Escape, Folder, read_contents
from tacit.changes.history import History
from tacit.changes.objects import tree_id
from tacit.changes.refs import RefUpdate
from tacit.changes.stage import clean

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


class Entry(msgspec.Struct, frozen=True):
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

    def write(self, entry: Entry) -> None:
        write_atomic(self._path(entry.change), msgspec.json.encode(entry))

    def finish(self, entry: Entry) -> None:
        try:
            os.unlink(self._path(entry.change))
        except FileNotFoundError:
            return
        sync_folder(self.folder)

    def entries(self) -> list[Entry]:
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

    def is_readable(self, name: str) -> bool:
        try:
            self._read(name)
        except Damaged:
            return False
        return True

    def _read(self, name: str) -> Entry:
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb") as file:
                return msgspec.json.decode(file.read(), type=Entry)
        except (OSError, msgspec.DecodeError) as error:
            raise Damaged(
                f"the journal entry {path} is broken: {error}", "run: tacit doctor"
            ) from error

    def _path(self, change: str) -> str:
        return os.path.join(self.folder, f"{change}.json")


def carry_out(root: Folder, entry: Entry, journal: Journal, history: History) -> None:
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
        if _settle(root, entry):
            history.refs.move(entry.refs)
            finished.append(entry.change)
        journal.finish(entry)
    journal.sweep()
    history.objects.sweep()
    clean(root)
    return finished


def _settle(root: Folder, entry: Entry) -> bool:
    """Bring the folders to one side; True when that is the new one."""
    for move in entry.moves:
        _put_back_aside(root, move)
    if entry.moves and not any(_made(root, move) for move in entry.moves):
        return False
    try:
        for move in entry.moves:
            if _made(root, move):
                _verify(root, move)
            else:
                _make(root, move)
    except (Overtaken, OSError, Escape):
        _take_back(root, entry.moves)
        return False
    return True


def _make(root: Folder, move: Move) -> None:
    with _at(root, move.source) as source, _at(root, move.target) as target:
        here, there = _base(move.source), _base(move.target)
        if move.kind == "move":
            exchange.move(source.fd, here, target.fd, there)
        elif not exchange.exchange(source.fd, here, target.fd, there):
            _swap_in_turns(source, here, target, there)
        source.sync()
        target.sync()
    _verify(root, move)


def _swap_in_turns(source: Folder, here: str, target: Folder, there: str) -> None:
    """The same by three renames; a kill between them is seen by `_put_back_aside`."""
    aside = here + _ASIDE
    exchange.move(target.fd, there, source.fd, aside)
    exchange.move(source.fd, here, target.fd, there)
    exchange.move(source.fd, aside, source.fd, here)


def _put_back_aside(root: Folder, move: Move) -> None:
    if move.kind != "swap":
        return
    try:
        with _at(root, move.source) as source, _at(root, move.target) as target:
            here, there = _base(move.source), _base(move.target)
            if source.status(here + _ASIDE) is None:
                return
            if source.status(here) is None:
                exchange.move(source.fd, here + _ASIDE, source.fd, here)
            elif target.status(there) is None:
                exchange.move(source.fd, here + _ASIDE, target.fd, there)
    except FileNotFoundError:  # the stage was never there
        return


def _made(root: Folder, move: Move) -> bool:
    """Whether the source folder has left its place."""
    try:
        with _at(root, move.source) as folder:
            found = folder.identity(_base(move.source))
    except FileNotFoundError:
        return True
    return found is None or found[1] != move.number


def _verify(root: Folder, move: Move) -> None:
    """Whether what left its place is what was read there before."""
    if not move.expected:
        return
    place = move.source if move.kind == "swap" else move.target
    try:
        with _at(root, place) as above, above.open(_base(place)) as folder:
            found = tree_id(read_contents(folder).files)
    except (FileNotFoundError, Escape):
        raise Overtaken from None
    if found != move.expected:
        raise Overtaken


def _take_back(root: Folder, moves: Iterable[Move]) -> None:
    for move in reversed(list(moves)):
        _put_back_aside(root, move)
        if not _made(root, move):
            continue
        with _at(root, move.source) as source, _at(root, move.target) as target:
            here, there = _base(move.source), _base(move.target)
            if move.kind == "move":
                exchange.move(target.fd, there, source.fd, here)
            elif not exchange.exchange(source.fd, here, target.fd, there):
                _swap_in_turns(source, here, target, there)
            source.sync()
            target.sync()


def _at(root: Folder, path: str) -> Folder:
    return root.descend(path.split("/")[:-1])


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]
