"""What a host is to Tacit: all that is known of one, and the base of hosts that write JSONL files.

A host knows where its sessions lie and what its records mean; it tells an `Assembler`. It also
knows its hooks, skill folders and files of keys, and how it is connected. Going on from where one
stopped, and storing, are the same for all and not done here.

Owns the bytes of JSONL too, in constant memory: chunks, overlong lines, bytes that are not UTF-8, a
last line that is not finished; and what a tool's result says of itself where a host has no field
for failure.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from itertools import islice
from json import JSONDecodeError, loads
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, NamedTuple, TypeVar, cast

import msgspec

from tacit.traces import values
from tacit.traces.host_folders import HostFolders, UserPath
from tacit.traces.trace import Given

if TYPE_CHECKING:
    from tacit.traces.assembler import Assembler
    from tacit.traces.connector import Connector
    from tacit.traces.program import Program


MAX_LINE = 16 * 1024 * 1024
CHUNK = 256 * 1024

L = TypeVar("L")
Passed = Callable[[str], None]


def open_regular(path: str) -> BinaryIO:
    """Open the file at `path` for reading; pipes and devices are refused without waiting.

    One called `.zst` is unpacked on the way: its places are those of what it holds.
    """
    file = open_as_it_is(path)
    if not path.endswith(ZSTD):
        return file
    file.close()
    return cast("BinaryIO", _zstd_file()(path))


def open_as_it_is(path: str) -> BinaryIO:
    """The same, and never unpacked."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering=0)


ZSTD = ".zst"


@cache
def zstd_module() -> Any:
    """Zstandard, which is a part of Python from 3.14 on."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


@cache
def _zstd_file() -> type[Any]:
    """A file that is unpacked as it is read, damage being an `OSError`."""
    zstd = zstd_module()

    class Unpacked(zstd.ZstdFile):  # type: ignore[misc, name-defined]
        def read(self, size: int = -1) -> bytes:
            try:
                return bytes(super().read(size))
            except (zstd.ZstdError, EOFError) as error:
                raise OSError(errno.EIO, f"damaged: {error}") from error

    return Unpacked


def unpacking_program(path: str) -> str:
    """What unpacks the compressed file at `path`; empty where it is not compressed."""
    try:
        with open_as_it_is(path) as file:
            return {b"\x1f\x8b": "zcat", b"\x28\xb5": "zstdcat"}.get(file.read(2), "")
    except OSError:
        return ""


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
                repaired = repair_text(line)
                try:
                    value = msgspec.convert(repaired, form)
                except (msgspec.MsgspecError, RecursionError):
                    passed("not-json" if ended else "cut-off")
                else:
                    yield position, value
                    # Counted once the line was dealt with: it may be where a later reading begins.
                    passed("mended")


def repair_text(line: bytes) -> Any:
    """What `line` holds if only its characters are wrong (bytes, halves of pairs), else None."""
    try:
        return _clean(loads(line.decode("utf-8-sig", "replace")))
    except (JSONDecodeError, RecursionError, ValueError):
        return None


def read_document(path: str, limit: int, passed: Passed, kind: type = object) -> Any:
    """The one JSON document, of type `kind`, in the file at `path`, or None. Raises `OSError`."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        passed("too-long")
        return None
    decoded = values.decoded_json(data)
    found = repair_text(data) if decoded is None else decoded
    if isinstance(found, kind):
        return found
    passed("not-json")
    return None


def ignore(reason: str) -> None:
    """Count nothing: what is passed over while only looking at what a file is."""


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
    if isinstance(content, dict) and any(key in content for key in (*_CODES, "error", "success")):
        return _outcome_of_object(content, result)
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
    handed: bool = False
    """A file that was handed in, not one that an agent of this user keeps: anybody may have written
    what it says, the user's words too."""


class Hooks(NamedTuple):
    """The host's events that say that a turn, or a session, has ended."""

    turn: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    shared: bool = False
    """Whether other agents run its hooks too: the name in them does not tell then who called."""
    opening: str = ""
    """The event at which it takes an answer as a session begins."""
    form: str = ""
    """The form of that answer, in the words of `tacit-hook`."""

    @property
    def draws(self) -> bool:
        """Whether a session can go without a learned skill by lot: a program of ours is inside."""
        return self.form.startswith("pair")

    @property
    def events(self) -> tuple[str, ...]:
        return (*self.turn, *self.session)


class Signs(NamedTuple):
    """By what a hook's call is known to be this host's, where the hook itself does not tell."""

    variable: str = ""
    """A variable that it sets for the programs it runs."""
    session: str = ""
    """The variable that holds the session's id; its name must end in _SESSION_ID."""
    transcript: str = ""
    """A pattern for the end of its transcripts' paths, also where a variable moved its home."""
    key: str = ""
    """A key of its payloads that others spell differently."""


class SkillFolders(NamedTuple):
    """Where a host looks for skills."""

    project: tuple[str, ...] = ()
    """Below a project."""
    user: tuple[str, ...] = ()
    """Below `home`."""
    home: UserPath | None = None
    """The host's home, unless said otherwise."""
    shared: Literal["read", "linked", "set"] = "read"
    """How skills in `.agents/skills` reach it: it reads that folder, needs links in its own, or is
    told of the folder in its settings when it is connected."""
    apart: bool = False
    """Whether it passes over a project's folders: such skills reach it by a folder in our data."""


class Host:
    """An agent program: all that Tacit knows of it. One that leaves a fact out has none of it.

    Nothing here may write to the host's files. `find` and `inside` pass over what they cannot
    read. `read` may raise `OSError` or `sqlite3.Error` when the source cannot be opened; what
    stands in it never raises. All may be called from any thread, and again with the same result.
    """

    name: str
    """A short word that names it in commands and in the store."""
    title: str
    aliases: tuple[str, ...] = ()
    """Other words that people use for it."""
    tested: bool = True
    """Whether it was checked against what the real program wrote, not against documents alone."""
    precedence: int = 50
    """Who is asked first whether a file is theirs, and whose skills win: low numbers first."""
    home: UserPath = UserPath()
    """Its folder."""
    settings_home: UserPath | None = None
    """The folder of its settings, if that is another."""
    programs: tuple[str, ...] = ()
    """What it is called on the PATH."""
    program: "Program | None" = None
    """How its program is asked for an answer, as a model."""
    hooks: Hooks = Hooks()
    signs: Signs = Signs()
    skills: SkillFolders = SkillFolders()
    secrets: tuple[str | UserPath, ...] = ()
    """Files of keys: below its home, or with a place of their own."""
    obeys: tuple[str, ...] = ()
    """Files and folders of a project that it obeys, also deeper down: no command may write them."""
    asks: tuple[str, ...] | None = None
    """The tools by which it asks its user, whose answers are the user's words; None: not known."""
    remark: str = ""
    """What the user should know of how skills reach it, where that is not as with the others."""

    def connector(self) -> "Connector | None":
        """How it is told to call the hook; None where it cannot be."""
        return None

    def server_entry(self) -> "Connector | None":
        """How it is told of `tacit mcp`; None where it takes no MCP servers."""
        return None

    def session_of(self, transcript: str) -> str:
        """The session's id by the name of its file."""
        return os.path.basename(transcript).removesuffix(ZSTD).rpartition(".")[0]

    def folders(self) -> HostFolders:
        """Its skill folders and files of keys, without the rest of it.

        What was said in its sessions is as secret as a key.
        """
        home = self.skills.home or self.home
        sessions = getattr(self, "folder", "") or getattr(self, "file", "")
        secret = (*self.secrets, sessions) if sessions else self.secrets
        return HostFolders(
            self.name,
            self.title,
            self.skills.project,
            tuple(home.below(folder) for folder in self.skills.user),
            secrets=tuple(
                self.home.below(file) if isinstance(file, str) else file for file in secret
            ),
            obeys=self.obeys,
            linked=self.skills.shared == "linked",
            apart=self.skills.apart,
        )

    def homes(self) -> list[str]:
        """The folders that exist where this host is installed or was used; none: not here."""
        return []

    def find(self) -> Iterator[Source]:
        """Every session of this user."""
        return iter(())

    def inside(self, path: str) -> Iterator[Source]:
        """The sessions in the file or folder `path`, if this host wrote it."""
        raise NotImplementedError

    def fault(self) -> str:
        """What keeps its sessions, or some, from being read, in words; empty: nothing."""
        return ""

    def helpers(self, source: Source) -> Iterator[Source]:
        """The own sessions of the helpers that the session at `source` started."""
        return iter(())

    def given(self, source: Source) -> Given:
        """The system prompt and the tools of the session at `source`, where they are written.

        May raise `OSError` or `sqlite3.Error`.
        """
        return Given()

    def stamp(self, source: Source) -> str:
        """A text that changes when the session does; cheap, and empty when it is gone."""
        return file_stamp(source.path)

    def fingerprint(self, source: Source, position: int) -> str:
        """A text that stays while what lies before `position` is the same; empty: never go on."""
        return ""

    def read(self, source: Source, start: int, into: "Assembler") -> Iterator[None]:
        """Tell `into` what happened from `start` on; yield after each record."""
        raise NotImplementedError


class JsonlHost(Host):
    """A host that writes one JSONL file a session and only ever appends to it.

    A subclass names the folder and the form of a line, and says in `tell` what a line means.
    """

    folder: ClassVar[str]
    """Where the sessions lie, below `home`."""
    files: ClassVar[str]
    """A pattern for the paths below `folder`, with `/` between names."""
    form: ClassVar[type[msgspec.Struct]]
    """A struct of the fields that matter, all of type Any: a future type never raises."""

    def tell(self, line: Any, into: "Assembler") -> None:
        """Tell `into` what one decoded line says."""
        raise NotImplementedError

    def recognises(self, line: dict[str, Any]) -> bool:
        """Whether `line`, one of the first objects of some file, is in this host's form."""
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
        elif any(map(self._own, first_objects(path))):
            yield from self._sources([path])

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
        return self.home.below(self.folder).resolve()

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


_LOOK = 10
"""Objects at the beginning of a file by which it is recognised: the first may say little."""


def first_objects(path: str) -> tuple[dict[str, Any], ...]:
    """The JSON objects among the first few lines of the file at `path`."""
    return _first_objects(path, file_stamp(path))


def first_object(path: str) -> dict[str, Any] | None:
    """The first of them."""
    return next(iter(first_objects(path)), None)


@lru_cache(maxsize=2)
def _first_objects(path: str, stamp: str) -> tuple[dict[str, Any], ...]:
    """The same, of a file that is as `stamp` says: every host asks for them."""
    found = []
    try:
        with open_regular(path) as file:
            for _, line, _ in islice(split_lines(file, 0, ignore), _LOOK):
                value = values.decoded_json(line)
                value = repair_text(line) if value is None else value
                if isinstance(value, dict):
                    found.append(value)
    except OSError:
        return ()
    return tuple(found)


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
