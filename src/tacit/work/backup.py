"""Backups: skills, history, memory, settings, schedules and the databases, in one checked file.

A backup is a tar file whose last member lists what is in it, with a checksum each. It is made while
everything runs: a folder of skills and its history are read under the folder's lock, a database by
SQLite's own means. Restoring checks the whole file first, and puts what stood there aside. Every
day the worker makes a small one, without sessions and history, and keeps those of a week.
"""

import contextlib
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import IO

import msgspec

from tacit.base import database, paths, trust
from tacit.base.atomic_files import TemporaryFolder
from tacit.base.errors import Damaged, NotFound, Refused, TacitError, Unwritable
from tacit.changes.journal import OpenPlace
from tacit.changes.place import (
    Place,
    all_places,
    fact_places,
    own_places,
    place_of,
    project_place,
    user_place,
)
from tacit.changes.stage import STAGE
from tacit.work.presence import worker_lock

LIST = "tacit-backup.json"
_LEFT_OUT = ("locks", "backups", "history", "staging", "scheduled", "worker.lock", "worker.log")
"""Parts of the data folder that are of this machine and moment, or are read with their place."""
_DATABASES = ("tacit.db", "jobs.db")
_LARGE = ("sessions", "turns", "calls", "sources", "turns_text", "uses", "views", "recorded")
"""Tables that a daily backup does without: they can be made again from the agents' own files."""
_KEPT_DAYS = 7


class SavedPlace(msgspec.Struct, frozen=True):
    """A folder of skills or facts in a backup, in the part `places/<number>`."""

    root: str
    """With `~` for the home, so that it can be restored elsewhere."""
    scope: str
    project: str
    kind: str

    def place(self) -> Place:
        """The place that it is here."""
        root, project = os.path.expanduser(self.root), os.path.expanduser(self.project)
        return Place(root, self.scope, project, self.kind)  # type: ignore[arg-type]


class Contents(msgspec.Struct, frozen=True):
    """What is in a backup."""

    made: float
    small: bool
    places: tuple[SavedPlace, ...]
    sums: dict[str, str]
    """The SHA-256 of each file, by its name in the backup."""
    format: int = 1


class _Writer:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.sums: dict[str, str] = {}

    def folder(
        self, path: str, name: str, skip: Callable[[str], bool] = lambda name: False
    ) -> None:
        """Add what is below `path`; files that vanish meanwhile are left out."""
        for here, folders, files in paths.walk_folders(path):
            below = os.path.relpath(here, path)
            inside = name if below == "." else f"{name}/{below}"
            folders[:] = [
                f for f in sorted(folders) if not skip(os.path.normpath(os.path.join(below, f)))
            ]
            with contextlib.suppress(FileNotFoundError):
                self.tar.add(here, inside, recursive=False)
            for file in sorted([*files, *(f for f in folders if _is_link(here, f))]):
                if not skip(os.path.normpath(os.path.join(below, file))):
                    self.file(os.path.join(here, file), f"{inside}/{file}")
            folders[:] = [f for f in folders if not _is_link(here, f)]

    def file(self, path: str, name: str) -> None:
        """Add one file, or a link as it is; pipes and devices are passed over."""
        try:
            if os.path.islink(path):
                self.tar.addfile(self.tar.gettarinfo(path, name))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    member = tarfile.TarInfo(name)
                    found = os.fstat(file.fileno())
                    member.size, member.mtime = found.st_size, int(found.st_mtime)
                    member.mode = found.st_mode & 0o777
                    self._add(member, file)
        except FileNotFoundError:
            return

    def data(self, name: str, data: bytes) -> None:
        """Add a file with these bytes."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), 0o600
        self._add(member, io.BytesIO(data))

    def _add(self, member: tarfile.TarInfo, file: IO[bytes]) -> None:
        summing = _Summing(file)
        self.tar.addfile(member, summing)
        self.sums[member.name] = summing.sum.hexdigest()


class _Summing:
    """A file whose checksum is taken as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.sum.update(data)
        return data


def _is_link(folder: str, name: str) -> bool:
    return os.path.islink(os.path.join(folder, name))


def make_backup(file: str, *, small: bool = False) -> Contents:
    """Write a backup to `file`, whole or not at all, and read it again to check it."""
    folder = os.path.dirname(os.path.abspath(file))
    if not os.path.isdir(folder):
        raise NotFound(f"there is no folder {folder}", "make it first, or name another")
    temporary = os.path.join(folder, f".{os.path.basename(file)}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=6) as tar:
                contents = _write(_Writer(tar), small)
            stream.flush()
            os.fsync(stream.fileno())
        check_backup(temporary)
        os.replace(temporary, file)
    except OSError as error:
        raise Unwritable(
            f"cannot write {file}: {error.strerror or error}",
            "check the free space and the permissions there",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return contents


def _write(writer: _Writer, small: bool) -> Contents:
    data = paths.folders().data
    saved: list[SavedPlace] = []
    for place in _places():
        opened = OpenPlace(place, data)
        if not os.path.isdir(opened.real) and not opened.history.is_begun():
            continue
        _write_place(writer, opened, f"places/{len(saved)}", small)
        root, project = paths.with_tilde(place.root), paths.with_tilde(place.project)
        saved.append(SavedPlace(root, place.scope, project, place.kind))
    known = {OpenPlace(one.place(), data).history.folder for one in saved}
    if not small:
        for name in _names(os.path.join(data, "history")):
            path = os.path.join(data, "history", name)
            if name.endswith(".git") and path not in known:
                writer.folder(path, f"data/history/{name}")
    writer.folder(paths.folders().config, "config")
    writer.folder(data, "data", lambda name: _is_left_out(name, small))
    for name in _DATABASES[: 1 if small else 2]:
        _write_database(writer, os.path.join(data, name), f"data/{name}", small)
    contents = Contents(time.time(), small, tuple(saved), dict(writer.sums))
    writer.data(LIST, msgspec.json.encode(contents))
    return contents


def _write_place(writer: _Writer, opened: OpenPlace, name: str, small: bool) -> None:
    """A place as it is between two changes, with its history."""
    with contextlib.suppress(TacitError, OSError):
        opened.recover()
    with opened.lock():
        writer.folder(opened.real, f"{name}/files", lambda path: path.partition(os.sep)[0] == STAGE)
        if not small and opened.history.is_begun():
            writer.folder(opened.history.folder, f"{name}/history", lambda path: path == "tmp")


def _is_left_out(name: str, small: bool) -> bool:
    top = name.partition(os.sep)[0]
    if top in _LEFT_OUT or name.endswith(".lock") or ".damaged-" in name:
        return True
    if top.startswith(_DATABASES) and not top.endswith(".number"):
        return True
    return small and top in ("sessions", "journal")


def _write_database(writer: _Writer, path: str, name: str, small: bool) -> None:
    if not os.path.exists(path):
        return
    with TemporaryFolder() as folder:
        copy = os.path.join(folder, "copy")
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as target:
                if small:
                    with closing(sqlite3.connect(path)) as source:
                        number = database.number_of(source)
                    database.rescue(path, target, skip=_LARGE)
                    target.execute(f"PRAGMA user_version = {number}")
                else:
                    with closing(sqlite3.connect(path)) as source:
                        source.backup(target)
        except sqlite3.Error as error:
            raise Damaged(f"{path} cannot be read: {error}", "run: tacit doctor --fix") from error
        writer.file(copy, name)


def _places() -> list[Place]:
    """Every place that is known: the user's, that of this project, those of trusted projects, and
    those in which something is the user's own."""
    found = [*all_places(), *fact_places(), *own_places()]
    for project in trust.trusted():
        if os.path.isdir(project):
            found += [project_place(project), project_place(project, "facts")]
    by_root = {place.real: place for place in found if place.scope != "bundled"}
    return [place for place in by_root.values() if place.scope != "extra"]


def check_backup(file: str) -> Contents:
    """What is in a backup, every byte of it compared with its checksum. Raises `Damaged`."""
    try:
        found: dict[str, str] = {}
        contents = None
        with tarfile.open(file, "r:gz") as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isfile() else None
                if stream is None:
                    continue
                if member.name == LIST:
                    contents = msgspec.json.decode(stream.read(), type=Contents)
                else:
                    found[member.name] = _sum(stream)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", "name a file that tacit backup made") from None
    except (
        tarfile.TarError,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        msgspec.MsgspecError,
    ) as error:
        raise Damaged(f"{file} is damaged, or no backup: {error}", "take another one") from error
    if contents is None or contents.sums != found:
        raise Damaged(f"{file} is damaged: it does not hold what it lists", "take another one")
    return contents


def _sum(stream: IO[bytes]) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def restore_backup(file: str) -> tuple[Contents, list[str]]:
    """Put back what a backup holds; what was in it, and where what stood there was put.

    The whole file is checked first. Raises `Refused` while a worker runs.
    """
    contents = check_backup(file)
    for saved in contents.places:
        if not _is_place(saved.place()):
            what = f"{file} would be put into {saved.root}, which is no folder of skills or facts"
            raise Refused(what, "take a file that tacit backup made")
    if contents.small:
        hint = "it is used by: tacit doctor --fix; restore one that tacit backup made"
        raise Refused(f"{file} is a daily backup, which lacks sessions and history", hint)
    with worker_lock() as alone:
        if not alone:
            raise Refused("a worker runs here", "end it first: tacit daemon stop, or wait")
        parent = os.path.realpath(os.path.dirname(paths.folders().data.rstrip(os.sep)))
        os.makedirs(parent, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tacit-restore-", dir=parent) as folder:
            _extract(file, folder)
            return contents, _put_in_place(contents, folder)


def _is_place(place: Place) -> bool:
    """Whether a backup may fill this folder: one that is named as those of skills and facts are, or
    that is one here."""
    root = os.path.realpath(place.root)
    if root == os.path.normpath(place.root) and place_of(root) is not None:
        return True
    known = {one.real for one in (*_places(), user_place(), user_place("facts"))}
    return root in known or paths.is_inside(root, os.path.realpath(paths.folders().data))


def _extract(file: str, folder: str) -> None:
    """Unpack below `folder` and nowhere else: links last, so that nothing goes through one."""
    links = []
    with tarfile.open(file, "r:gz") as tar:
        for member in tar:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise Damaged(f"{file} holds the path {member.name}", "take another one")
            path = os.path.join(folder, member.name)
            if member.issym():
                links.append((path, member.linkname))
            elif member.isdir():
                _make_below(folder, path)
            elif member.isfile() and (stream := tar.extractfile(member)) is not None:
                _make_below(folder, os.path.dirname(path))
                with open(path, "wb") as target:
                    shutil.copyfileobj(stream, target)
                os.chmod(path, member.mode & 0o700)
    for path, target_path in links:
        above = os.path.dirname(path)
        if os.path.lexists(above) and os.path.realpath(above) != above:
            raise Damaged(f"{file} holds a path through a link: {path}", "take another one")
        _make_below(folder, above)
        os.symlink(target_path, path)


def _make_below(folder: str, path: str) -> None:
    """Make all that is missing on the way from `folder` to `path`, for this user alone."""
    for above in reversed(paths.upwards(path, folder)):
        os.makedirs(above, mode=0o700, exist_ok=True)


def _put_in_place(contents: Contents, folder: str) -> list[str]:
    own = paths.folders()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = []
    data = os.path.join(folder, "data")
    _make_below(folder, os.path.join(data, "history"))
    moves = [(os.path.join(folder, "config"), own.config)]
    for number, saved in enumerate(contents.places):
        place = saved.place()
        part = os.path.join(folder, "places", str(number))
        inside = paths.is_inside(os.path.realpath(place.root), os.path.realpath(own.data))
        if inside:  # schedules lie in the data folder
            shutil.move(os.path.join(part, "files"), os.path.join(data, "scheduled"))
        elif not saved.project or os.path.isdir(place.project):
            moves.append((os.path.join(part, "files"), place.real))
        history = os.path.join(data, "history", f"{place.id}.git")
        if os.path.isdir(os.path.join(part, "history")) and not os.path.islink(part):
            shutil.move(os.path.join(part, "history"), history)
    for source, target in [*moves, (data, own.data)]:
        if os.path.islink(source) or not os.path.isdir(source):
            continue
        if os.path.lexists(target):
            before = f"{target.rstrip(os.sep)}.before-{stamp}"
            os.rename(target, before)
            aside.append(before)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.move(source, target)
    return aside


def backups_folder() -> str:
    """Where the daily backups lie."""
    return os.path.join(paths.folders().data, "backups")


def make_daily(now: float | None = None) -> str:
    """Make today's small backup unless it is there, and drop those older than a week; its file."""
    day = time.strftime("%Y-%m-%d", time.gmtime(now if now is not None else time.time()))
    folder = backups_folder()
    paths.make_private(folder)
    file = os.path.join(folder, f"{day}.tar.gz")
    if not os.path.exists(file):
        make_backup(file, small=True)
    for name in _daily()[:-_KEPT_DAYS]:
        os.unlink(os.path.join(folder, name))
    return file


def _daily() -> list[str]:
    return [name for name in _names(backups_folder()) if name.endswith(".tar.gz")]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


@contextmanager
def latest_database() -> Iterator[str]:
    """The database in the last daily backup that is whole, as a file for the block, else empty."""
    with TemporaryFolder() as folder:
        for name in reversed(_daily()):
            file = os.path.join(backups_folder(), name)
            copy = os.path.join(folder, "copy")
            with contextlib.suppress(TacitError, tarfile.TarError, zlib.error, OSError, KeyError):
                check_backup(file)
                with tarfile.open(file, "r:gz") as tar:
                    stream = tar.extractfile("data/tacit.db")
                    if stream is None:
                        continue
                    with open(copy, "wb") as target:
                        shutil.copyfileobj(stream, target)
                break
        copy = os.path.join(folder, "copy")
        yield copy if os.path.exists(copy) else ""
