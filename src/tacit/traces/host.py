"""What a host is to Tacit: the Protocol, and the base of hosts that write JSONL files.

A host knows where its sessions lie and what its records mean; it tells an `Assembler`. Going on
from where one stopped, and storing, are the same for all and not done here.

Owns the bytes of JSONL too, in constant memory: chunks, overlong lines, bytes that are not UTF-8, a
last line that is not finished; and what a tool's result says of itself where a host has no field
for failure.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from json import JSONDecodeError, loads
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    ClassVar,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import msgspec

from tacit.base.paths import user_home
from tacit.traces import host_folders, values

if TYPE_CHECKING:
    from tacit.traces.assembler import Assembler
    from tacit.traces.host_folders import HostFolders


MAX_LINE = 16 * 1024 * 1024
CHUNK = 256 * 1024

L = TypeVar("L")
Passed = Callable[[str], None]


def open_regular(path: str) -> BinaryIO:
    """Open the file at `path` for reading; pipes and devices are refused without waiting."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering=0)


def split_lines(file: BinaryIO, start: int, passed: Passed) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of `file` from `start`: place, bytes without the line end, whether it had one.

    A line longer than `MAX_LINE` is passed over, and never held in memory.
    """
    file.seek(start)
    position, rest, dropping = start, 0, False
    parts: list[bytes] = []
    while chunk := file.read(CHUNK):
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            rest += len(chunk)
            if rest > MAX_LINE:
                parts, dropping = [], True
            elif not dropping:
                parts.append(chunk)
            continue
        parts.append(lines[0])
        length = rest + len(lines[0])
        if dropping or length > MAX_LINE:
            passed("too-long")
        else:
            yield position, b"".join(parts) if rest else lines[0], True
        position += length + 1
        for line in lines[1:-1]:
            if line:
                yield position, line, True
            position += len(line) + 1
        parts, rest, dropping = [lines[-1]], len(lines[-1]), False
    if dropping:
        passed("too-long")
    elif rest:
        yield position, b"".join(parts), False


def decode_lines(path: str, start: int, form: type[L], passed: Passed) -> Iterator[tuple[int, L]]:
    """Each line of the file at `path` as a `form`, with its place.

    What cannot be decoded is passed over and counted. A last line without an end is taken when it
    is whole, and left for the next reading when it is not.
    """
    decoder = msgspec.json.Decoder(form)
    decode = decoder.decode
    with open_regular(path) as file:
        for position, line, ended in split_lines(file, start, passed):
            try:
                yield position, decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if not line.strip(b" \t\r\0"):
                    continue
                if isinstance(error, msgspec.ValidationError):
                    passed("bad-record")
                    continue
                mended = mend(line)
                try:
                    value = msgspec.convert(mended, form)
                except (msgspec.MsgspecError, RecursionError):
                    passed("not-json" if ended else "cut-off")
                else:
                    yield position, value
                    # Counted once the line was dealt with: it may be where a later reading begins.
                    passed("mended")


def mend(line: bytes) -> Any:
    """What `line` holds if only its characters are wrong (bytes, halves of pairs), else None."""
    try:
        return _clean(loads(line.decode("utf-8-sig", "replace")))
    except (JSONDecodeError, RecursionError, ValueError):
        return None


def _clean(value: Any) -> Any:
    """`value` with lone surrogates replaced: no database and no terminal takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value


_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_OUTPUTS = ("output", "content", "stdout", "result", "text")
_TAGGED = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_ERROR_BEGINS = ("Error:", "ERROR:", "error:", "Traceback (most recent call last)")


def stated_outcome(content: Any) -> tuple[str, bool, str]:
    """The readable part of a result, whether it failed, and the error that it names."""
    result = values.text(content)
    if result.lstrip().startswith("{"):
        inner = values.decoded_json(result)
        if isinstance(inner, dict):
            return _outcome_of_object(inner, result)
    if tagged := _TAGGED.search(result):
        return result, tagged.group(1) != "0", ""
    code = values.exit_code(result[:200]) or values.exit_code(result[-200:])
    return result, code not in (None, 0) or result.startswith(_ERROR_BEGINS), ""


def _outcome_of_object(inner: dict[str, Any], whole: str) -> tuple[str, bool, str]:
    code = next((inner[key] for key in _CODES if isinstance(inner.get(key), int)), 0)
    error = values.text(inner.get("error")) if inner.get("error") not in (None, False) else ""
    failed = bool(error) or code != 0 or inner.get("success") is False
    shown = next((inner[key] for key in _OUTPUTS if isinstance(inner.get(key), str)), "")
    return shown or error or whole, failed, error


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
    place: "HostFolders | None"
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
    def place(self) -> "HostFolders | None":
        return next((place for place in host_folders.HOST_FOLDERS if place.host == self.name), None)

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
            for file in plain_files(path):
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
        for position, line in decode_lines(source.path, start, self.form, into.passed):
            into.begin(position)
            try:
                self.tell(line, into)
            except Exception:  # a boundary: whatever a file holds, the run goes on
                into.passed("host-error")
            yield

    def _root(self) -> str:
        return host_folders.moved_folder(self.folder, user_home())

    def _matching(self, root: str) -> Iterator[Source]:
        wanted = re.compile(self.files)
        found = (p for p in plain_files(root) if wanted.fullmatch(_relative(p, root)))
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


def plain_files(folder: str, depth: int = 8) -> Iterator[str]:
    """The plain files below `folder`, by name; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth > 0:
                    yield from plain_files(entry.path, depth - 1)
            elif entry.is_file():
                yield entry.path
        except OSError:
            continue


def first_object(path: str) -> dict[str, Any] | None:
    """The first line of the file at `path` that is a JSON object, among its first few."""
    try:
        with open_regular(path) as file:
            for number, (_, line, _) in enumerate(split_lines(file, 0, _ignore)):
                value = mend(line)
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
        with open_regular(path) as file:
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
