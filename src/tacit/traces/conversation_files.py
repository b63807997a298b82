"""Sessions in files of JSON or JSONL that a person names: the base of the readers of such forms.

A file holds records: its lines, the items of its one list, or one object. A reader claims a file by
its first records, whatever the file is called, and says which records belong together; each such
group is a session. Owns the places of records in a file, so that a session is read by itself, and
what is too long or broken is counted. What a record means is the reader's business.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import (
    ZSTD,
    Host,
    Source,
    file_stamp,
    ignore,
    open_as_it_is,
    open_regular,
    plain_files,
    repair_text,
    split_lines,
)
from tacit.traces.trace import Given, Head

MAX_DOCUMENT = 256 * 1024 * 1024
"""One JSON document has to be held whole, as bytes; JSONL has no such limit."""
_LOOK = 5
"""Records at the beginning of a file by which it is recognised."""
_HEADER = 64 * 1024
"""Bytes of a member that stands beside the list of records, up to which it is kept."""
_LINES = (".jsonl", ".ndjson")
_LISTS = ("simulations", "data", "runs", "observations", "spans", "trajectories", "results", "rows")
"""Where an object holds its list of records."""

Raw = dict[str, msgspec.Raw]


class Record(NamedTuple):
    """One record of a file: where it lies, and its members, not decoded."""

    start: int
    length: int
    data: bytes

    @property
    def members(self) -> Raw:
        """Of an object; empty for anything else, and where it is broken."""
        try:
            return _members(self.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return {}

    @property
    def value(self) -> Any:
        return _decoded(self.data)

    @property
    def is_sound(self) -> bool:
        """Whether it is an object or a list, if need be with wrong characters replaced."""
        return bool(self.members) or isinstance(self.value, dict | list)


class Layout(NamedTuple):
    """The sessions of a file: the places of each one's records, by its key, in order."""

    sessions: dict[str, list[tuple[int, int]]]
    header: dict[str, Any]
    """What stands beside the list of records."""
    skipped: dict[str, int]
    joined: dict[str, set[str]]
    """The names that a session's records were found by, where it has several."""


_members = msgspec.json.Decoder(Raw).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class ConversationFiles(Host):
    """A host whose sessions stand in JSON or JSONL files, several in one if need be."""

    def claims(self, record: Any) -> bool:
        """Whether `record`, one of the first of a file, is of this form."""
        raise NotImplementedError

    def group(self, record: Record) -> list[tuple[str, str]]:
        """The names of the sessions that `record` is a part of; "": it is one by itself.

        With each the name of a larger one, if the record tells: all that has the first name then
        belongs to that.
        """
        return [("", "")]

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        """Tell `into` the session whose records these are, decoded; yield after each step."""
        raise NotImplementedError

    def parts(self, record: Any) -> Iterator[str]:
        """Names for the sessions of helpers inside `record`, which is a session by itself."""
        return iter(())

    def whole_folders(self, path: str) -> Iterator[Source]:
        """The sessions at `path`, or right below it, that are folders."""
        return iter(())

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            for file in plain_files(path):
                yield from self.inside(file)
            return
        if not self._own(path):
            return
        modified = os.path.getmtime(path)
        for key in self.layout(path).sessions:
            yield Source(self.name, path, key, 0, modified, handed=True)

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        layout = self.layout(source.path)
        if source.key == next(iter(layout.sessions), ""):
            for reason, times in layout.skipped.items():
                into.passed(reason, times)
        found = self._records(source, layout, into)
        try:
            for number, _ in enumerate(self.tell(found, source, into)):
                into.begin(number)
                yield
        except OSError:
            raise
        except Exception:  # a boundary: whatever a file holds, the run goes on
            into.passed("host-error")

    def given(self, source: Source) -> Given:
        into = Assembler(Head(self.name))
        for _ in self.read(source, 0, into):
            if into.is_begun:
                break
        return into.given_first

    def layout(self, path: str) -> Layout:
        """Where the sessions of the file at `path` are."""
        return _layout(self._group_all, path, file_stamp(path))

    def _own(self, path: str) -> bool:
        for record in first_records(path):
            try:
                if self.claims(record):
                    return True
            except Exception:  # noqa: S112  # one reader's mistake keeps no other from looking
                continue
        return False

    def _group_all(self, record: Record, number: int, lines: bool) -> Iterator[tuple[str, str]]:
        """The keys of the sessions that a record is a part of."""
        own = f"at{record.start}" if lines else f"doc{number}"
        for name, larger in self.group(record):
            yield name or own, larger
        if type(self).parts is not ConversationFiles.parts:
            yield from ((f"{own}/{part}", "") for part in self.parts(record.value))

    def _records(self, source: Source, layout: Layout, into: Assembler) -> Iterator[Any]:
        stamp = file_stamp(source.path)
        for start, length in layout.sessions.get(source.key, ()):
            try:
                value = _decoded_at(source.path, stamp, start, length)
            except OSError:
                return
            if value is None:
                into.passed("not-json")
            else:
                yield value


@lru_cache(maxsize=1)
def _decoded_at(path: str, stamp: str, start: int, length: int) -> Any:
    """The record at a place of a file that is as `stamp` says: many sessions may share it."""
    with open_regular(path) as file:
        file.seek(start)
        return _decoded(_read_exactly(file.read, length))


Grouping = Callable[[Record, int, bool], Iterator[tuple[str, str]]]


@lru_cache(maxsize=128)
def _layout(group: Grouping, path: str, stamp: str) -> Layout:
    """The layout by the reader that groups so; `stamp` is the file as it is now."""
    skipped: Counter[str] = Counter()
    places: dict[str, list[tuple[int, int]]] = {}
    larger: dict[str, str] = {}
    header: dict[str, Any] = {}
    try:
        lines, records = _split(path, header, lambda reason: skipped.update((reason,)))
        for number, record in enumerate(records):
            if not record.is_sound:
                skipped["not-json"] += 1
                continue
            try:
                names = dict(group(record, number, lines))
            except Exception:  # a boundary: whatever a file holds, the run goes on
                skipped["host-error"] += 1
                continue
            for name, whole in names.items():
                places.setdefault(name, []).append((record.start, record.length))
                if whole:
                    larger.setdefault(name, whole)
    except OSError:
        skipped["unreadable"] += 1
    sessions: dict[str, list[tuple[int, int]]] = {}
    joined: dict[str, set[str]] = {}
    for name, found in places.items():
        key = larger.get(name, name)
        sessions[key] = list(dict.fromkeys((*sessions.get(key, ()), *found)))
        joined.setdefault(key, set()).add(name)
    return Layout(sessions, header, dict(skipped), joined)


_JSON = re.compile(rb"[\xef\xbb\xbf\s\0]*(?:\{\s*\"|\[\s*\{)")


def looks_like_records(path: str) -> bool:
    """Whether a file begins like JSON objects, whole or not."""
    try:
        with open_as_it_is(path) as file:
            return _JSON.match(file.read(4096)) is not None
    except OSError:
        return False


def first_records(path: str) -> tuple[Any, ...]:
    """The first records of a file that may hold conversations; none where it cannot."""
    return _first_records(path, file_stamp(path))


@lru_cache(maxsize=2)
def _first_records(path: str, stamp: str) -> tuple[Any, ...]:
    """The same, of a file that is as `stamp` says: every reader asks for them."""
    if path.endswith(ZSTD):  # sessions are read from their places, and there are none
        return ()
    try:
        with open_regular(path) as file:
            head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head[:1] not in (b"{", b"["):
            return ()
        _, records = _split(path, {}, ignore)
        return tuple(record.value for record in islice(records, _LOOK))
    except OSError:
        return ()


def _split(
    path: str, header: dict[str, Any], passed: Callable[[str], None]
) -> tuple[bool, Iterator[Record]]:
    """Whether the file is one of lines, and its records. Raises `OSError`."""
    if not path.endswith(_LINES) and not _begins_with_lines(path):
        with open_regular(path) as file:
            data = _read_exactly(file.read, MAX_DOCUMENT + 1)
        if len(data) > MAX_DOCUMENT:
            passed("too-long")
            return False, iter(())
        if data.strip(b" \t\r\n\0"):
            try:
                return False, iter(_of_document(data, header))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                if repair_text(data) is not None:
                    return False, iter((Record(0, len(data), data),))
    return True, _of_lines(path, passed)


def _begins_with_lines(path: str) -> bool:
    """Whether the first line of a file is an object, and there are more lines."""
    with open_regular(path) as file:
        found = list(islice(split_lines(file, 0, ignore), 2))
    return len(found) == 2 and all(line[:1] == b"{" and _decoded(line) for _, line, _ in found)


def _of_lines(path: str, passed: Callable[[str], None]) -> Iterator[Record]:
    with open_regular(path) as file:
        for position, line, ended in split_lines(file, 0, passed):
            if line.strip(b" \t\r\0"):
                if not ended and _decoded(line) is None:
                    passed("cut-off")
                else:
                    yield Record(position, len(line), line)


def _of_document(data: bytes, header: dict[str, Any]) -> list[Record]:
    """The records of one JSON document. Raises what msgspec raises."""
    start = len(data) - len(data.lstrip(b"\xef\xbb\xbf \t\r\n"))
    body = data[start:].rstrip(b" \t\r\n\0")
    if body[:1] == b"[":
        return _places(data, _items(body), start)
    members = _members(body)
    name = next((name for name in _LISTS if bytes(members.get(name, b""))[:1] == b"["), "")
    inner = _items(bytes(members[name])) if name else []
    one_trace = "trace" in members or (name == "observations" and "id" in members)
    if not inner or bytes(inner[0])[:1] != b"{" or one_trace:
        return [Record(start, len(body), body)]
    for key, value in members.items():
        if key != name and len(raw := bytes(value)) <= _HEADER:
            header[key] = _decoded(raw)
    return _places(data, inner, data.index(bytes(members[name]), start))


def _places(data: bytes, found: list[msgspec.Raw], start: int) -> list[Record]:
    """Records with their places: each begins where the one before, and a separator, end."""
    if found and all(_is_message(raw) for raw in found[:_LOOK]):
        end = data.rindex(b"]") + 1
        begin = data.index(b"[", start)
        return [Record(begin, end - begin, data[begin:end])]
    records = []
    for raw in found:
        item = bytes(raw)
        start = data.index(item, start)
        records.append(Record(start, len(item), item))
        start += len(item)
    return records


def _is_message(raw: msgspec.Raw) -> bool:
    """Whether an item of a list is one message: the list is then one conversation."""
    try:
        members = _members(bytes(raw))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    if "role" in members and not members.keys() & {"messages", "traj", "run_type"}:
        return True
    event = members.keys() & {"action", "observation", "kind"} and "source" in members
    return bool(event) or ("from" in members and "value" in members)


def _decoded(data: bytes) -> Any:
    found = values.decoded_json(data)
    return repair_text(data) if found is None and data.strip() != b"null" else found


def _read_exactly(read: Callable[[int], bytes | None], length: int) -> bytes:
    """`length` bytes, or what there is: a read may give less than it was asked for."""
    parts = []
    while length > 0 and (part := read(min(length, 1 << 20))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def verdict(name: str, value: Any) -> str:
    """What a verifier made of a run, as `Head.verdict` says it; empty where `value` is none.

    True and false, words for them, and numbers from 0 to 1, of which 1 is success; a reward may be
    any number.
    """
    if isinstance(value, str):
        word = value.strip().lower()
        value = True if word in _GOOD else False if word in _BAD else None
    if isinstance(value, bool):
        return f"{name}: {str(value).lower()}"
    if isinstance(value, int | float) and (0 <= value <= 1 or name == "reward"):
        return f"{name}: {value:g}"
    return ""


_GOOD = {"true", "pass", "passed", "correct", "success", "succeeded", "resolved", "yes"}
_BAD = {"false", "fail", "failed", "incorrect", "failure", "unresolved", "no"}
