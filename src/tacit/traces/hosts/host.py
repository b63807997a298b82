"""What a host is to Tacit: the Protocol, and the ground that hosts with JSONL files stand on.

A host knows where its sessions lie and what its records mean; it tells an `Assembler`. Reading,
going on from where one stopped, and storing are the same for all.
"""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import msgspec

from tacit.base.paths import user_home
from tacit.traces import lines
from tacit.traces.hosts import places

if TYPE_CHECKING:
    from tacit.traces.assemble import Assembler
    from tacit.traces.hosts.places import Place


class Source(msgspec.Struct, frozen=True):
    """One session where its host keeps it: a file or folder, or one `key` of a database."""

    host: str
    path: str
    key: str = ""
    size: int = 0
    modified: float = 0.0


class Hooks(NamedTuple):
    """The host's events that say that a turn, or a session, has ended."""

    turn: tuple[str, ...] = ()
    session: tuple[str, ...] = ()


@runtime_checkable
class Host(Protocol):
    """An agent program whose sessions can be read.

    Nothing here may write to the host's files. `find` and `inside` pass over what they cannot
    read. `read` may raise `OSError` or `sqlite3.Error` when the source cannot be opened; what
    stands in it never raises. All may be called from any thread, and twice is the same as once.
    """

    name: str
    """A short word that names it in commands and in the store."""
    title: str
    tested: bool
    """Whether it was checked against what the real program wrote, not against documents alone."""
    place: "Place | None"
    """Its skill folders."""
    hooks: Hooks

    def homes(self) -> list[str]:
        """The folders that exist where this host is installed or was used; none: not here."""
        ...

    def find(self) -> Iterator[Source]:
        """Every session of this user."""
        ...

    def inside(self, path: str) -> Iterator[Source]:
        """The sessions in the file or folder `path`, if this host wrote it."""
        ...

    def stamp(self, source: Source) -> str:
        """A text that changes when the session does; cheap, and empty when it is gone."""
        ...

    def fingerprint(self, source: Source, position: int) -> str:
        """A text that stays while what lies before `position` is the same; empty: never go on."""
        ...

    def read(self, source: Source, start: int, into: "Assembler") -> Iterator[None]:
        """Tell `into` what happened from `start` on; yield after each record."""
        ...


class JsonlHost:
    """A host that writes one JSONL file a session and only ever appends to it.

    A subclass names the folder and the form of a line, and says in `tell` what a line means.
    """

    name: str
    title: str
    tested = True
    hooks = Hooks()
    folder: ClassVar[str]
    """Where the sessions lie, below the user's home."""
    files: ClassVar[str]
    """A pattern for the paths below `folder`, with `/` between names."""
    form: ClassVar[type[msgspec.Struct]]
    """A struct of the fields that matter, all of type Any: a future type never raises."""

    @property
    def place(self) -> "Place | None":
        return next((place for place in places.PLACES if place.host == self.name), None)

    def tell(self, line: Any, into: "Assembler") -> None:
        """Tell `into` what one decoded line says."""
        raise NotImplementedError

    def recognises(self, line: dict[str, Any]) -> bool:
        """Whether `line`, the first object of some file, is in this host's form."""
        raise NotImplementedError

    def start(self, source: Source, into: "Assembler") -> None:
        """Tell what the file's place says, before its lines."""

    def homes(self) -> list[str]:
        home = os.path.dirname(self._root())
        return [home] if os.path.isdir(home) else []

    def find(self) -> Iterator[Source]:
        return self._matching(self._root())

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            for file in walk(path):
                if file.endswith(".jsonl"):
                    yield from self.inside(file)
        elif (first := first_object(path)) is not None and self._own(first):
            yield from self._sources([path])

    def stamp(self, source: Source) -> str:
        return file_stamp(source.path)

    def fingerprint(self, source: Source, position: int) -> str:
        return file_fingerprint(source.path, position)

    def read(self, source: Source, start: int, into: "Assembler") -> Iterator[None]:
        self.start(source, into)
        for position, line in lines.decode_lines(source.path, start, self.form, into.passed):
            into.begin(position)
            try:
                self.tell(line, into)
            except Exception:  # a boundary: whatever a file holds, the run goes on
                into.passed("host-error")
            yield

    def _root(self) -> str:
        return places.moved(self.folder, user_home())

    def _matching(self, root: str) -> Iterator[Source]:
        wanted = re.compile(self.files)
        found = (p for p in walk(root) if wanted.fullmatch(_relative(p, root)))
        return self._sources(found)

    def _sources(self, found: "Iterator[str] | list[str]") -> Iterator[Source]:
        for path in found:
            try:
                status = os.stat(path)
            except OSError:
                continue
            yield Source(self.name, path, "", status.st_size, status.st_mtime)

    def _own(self, line: dict[str, Any]) -> bool:
        try:
            return self.recognises(line)
        except Exception:
            return False


def walk(folder: str, depth: int = 8) -> Iterator[str]:
    """The plain files below `folder`, by name; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth > 0:
                    yield from walk(entry.path, depth - 1)
            elif entry.is_file():
                yield entry.path
        except OSError:
            continue


def first_object(path: str) -> dict[str, Any] | None:
    """The first line of the file at `path` that is a JSON object, among its first few."""
    try:
        with lines.open_regular(path) as file:
            for number, (_, line, _) in enumerate(lines.split_lines(file, 0, _ignore)):
                value = lines.mend(line)
                if isinstance(value, dict):
                    return value
                if number >= 4:
                    return None
    except OSError:
        return None
    return None


def file_stamp(path: str) -> str:
    """Size, time and identity of a file, in one text; empty when it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def file_fingerprint(path: str, position: int) -> str:
    """The file's identity and the bytes at its beginning and just before `position`."""
    import hashlib

    try:
        with lines.open_regular(path) as file:
            status = os.fstat(file.fileno())
            if status.st_size < position:
                return ""
            digest = hashlib.sha256(file.read(min(1024, position)))
            file.seek(max(0, position - 1024))
            digest.update(file.read(min(1024, position)))
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{digest.hexdigest()[:32]}"


def _relative(path: str, root: str) -> str:
    return path[len(root) :].lstrip(os.sep).replace(os.sep, "/")


def _ignore(reason: str) -> None:
    """Nothing is counted while looking at what a file is."""
