"""Tacit's own sessions: `sessions/<session>.jsonl` in the data folder, one event a line.

Owns the format, which docs/traces.md describes, on both sides: reading, and `SessionWriter`, which
the agent writes with. Events are for readers; beside them stand lines for resuming. What belongs
together is written at once with such a line last, so whatever follows the last of them was cut off
by a kill. Turning lines into the provider's messages is the agent's.

Secrets are taken out of every line on its way to the file, of those for resuming too: what goes on
after a resume holds the mark in the place of the secret. What must come back byte for byte (ids,
names, signatures) is not touched.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from tacit.base.atomic_files import write_atomic
from tacit.base.errors import Busy, NotFound, Unwritable
from tacit.base.paths import folders, make_private
from tacit.traces import redaction, values
from tacit.traces.assembler import Assembler
from tacit.traces.host import JsonlHost, Source
from tacit.traces.redaction import Known, redacted_data
from tacit.traces.trace import OWN_HOST, Given, Usage

FORMAT = 1
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    at: Any = None
    id: Any = None
    name: Any = None
    text: Any = None
    arguments: Any = None
    result: Any = None
    failed: Any = None
    error: Any = None
    duration: Any = None
    session: Any = None
    version: Any = None
    model: Any = None
    project: Any = None
    branch: Any = None
    title: Any = None
    parent: Any = None
    usage: Any = None


class Tacit(JsonlHost):
    name = OWN_HOST
    title = "Tacit"
    asks = ("ask_user",)
    precedence = 9
    files = r"[^/]+\.jsonl"
    form = _Line

    def homes(self) -> list[str]:
        return [sessions_folder()] if os.path.isdir(sessions_folder()) else []

    def recognises(self, line: dict[str, Any]) -> bool:
        return line.get("type") == "session" and "session" in line and "format" in line

    def tell(self, line: _Line, into: Assembler) -> None:
        at, call_id, text = values.when(line.at), values.string(line.id), values.string(line.text)
        kind, name = line.type, values.string(line.name)
        if kind == "session":
            into.at(at)
            into.about(**{fact: values.string(getattr(line, fact)) for fact in _FACTS})
        elif kind == "prompt":
            into.prompt(text, at)
        elif kind == "text":
            into.said(text, at, call_id)
        elif kind == "call":
            into.called(call_id, name, line.arguments, at)
        elif kind == "result":
            into.returned(
                call_id,
                values.text(line.result),
                failed=line.failed is True,
                error=values.string(line.error),
                at=at,
                duration=values.amount(line.duration),
            )
        elif kind == "usage":
            told = values.mapping(line.usage)
            into.used(values.usage(told, *_COUNTS, cost=told.get("cost")), call_id)
        elif kind == "skill":
            into.activated(name, at)
        elif kind == "compaction":
            into.compacted(text, at)
        elif kind == "subagent":
            into.delegated(name, text, values.string(line.session), at)
        elif kind not in RESUME_LINES:
            into.passed("unknown-record")

    def given(self, source: Source) -> Given:
        lines = (line for line, _ in read_lines(source.path, "message", "return", "result"))
        told = next((line for line in lines if line.get("type") == "instructions"), {})
        return Given(values.string(told.get("text")))

    def _root(self) -> str:
        return sessions_folder()


# What the agent keeps for resuming; no events.
RESUME_LINES = (
    "instructions", "message", "return", "ended", "known", "compacted", "looked", "model",
)  # fmt: skip
_COUNTS = Usage.__struct_fields__[:-1]
_FACTS = ("session", "version", "model", "project", "branch", "title", "parent")


def sessions_folder() -> str:
    return os.path.join(folders().data, "sessions")


def session_path(session: str) -> str:
    """The file of the session with this id, whether it exists or not."""
    return os.path.join(sessions_folder(), f"{session}.jsonl")


def session_ids() -> list[str]:
    """The ids of all sessions, newest first."""
    try:
        names = os.listdir(sessions_folder())
    except OSError:
        return []
    found = (name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl"))
    return sorted(found, reverse=True)


def find_session(part: str) -> str:
    """The id of the session whose id begins or ends with `part`. Raises `NotFound`."""
    part = part.removeprefix(f"{OWN_HOST}:")
    found = [s for s in session_ids() if s.startswith(part) or s.endswith(part)]
    if len(found) != 1:
        many = f"{len(found)} sessions begin or end" if found else "no session begins or ends"
        raise NotFound(f"{many} with '{part}'", "see them: tacit sessions")
    return found[0]


def latest_session(project: str) -> str:
    """The id of the last chat in `project` where something was said. Raises `NotFound`.

    The last is the one that was written to last; runs of schedules are no chats.
    """
    for session in sorted(session_ids(), key=_last_written, reverse=True):
        lines = read_lines(session_path(session))
        head = next(lines, ({}, 0))[0]
        if (head.get("project"), head.get("purpose")) == (project, None) and any(
            line.get("type") == "message" for line, _ in lines
        ):
            return session
    raise NotFound(f"there is no earlier session in {project}", "start one: tacit chat")


def _last_written(session: str) -> tuple[int, str]:
    try:
        return os.stat(session_path(session)).st_mtime_ns, session
    except OSError:
        return 0, session


def new_session_id() -> str:
    """An id that sorts by time."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + os.urandom(4).hex()


def read_lines(path: str, *unwanted: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Each whole line of a session's file, and where it ends; `unwanted` types are not decoded."""
    marks = [f'"type":"{kind}"'.encode() for kind in unwanted]
    end = 0
    with open(path, "rb") as file:
        for text in file:
            end += len(text)
            if not text.endswith(b"\n") or any(mark in text[:200] for mark in marks):
                continue
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line, end


def read_whole(path: str) -> tuple[list[dict[str, Any]], int]:
    """The lines up to and with the last one for resuming, and where that one ends."""
    found = list(read_lines(path))
    while found and found[-1][0].get("type") not in (*RESUME_LINES, "session"):
        found.pop()
    return [line for line, _ in found], found[-1][1] if found else 0


def drop_cut_off(path: str) -> None:
    """Take away what a kill left at the end. Only for whoever holds the session."""
    _, end = read_whole(path)
    if end < os.path.getsize(path):
        os.truncate(path, end)


# The texts in a line, by its type; the rest names things and stays.
_TEXTS = {
    "prompt": ("text",), "text": ("text",), "compaction": ("text",), "subagent": ("text",),
    "call": ("arguments",), "result": ("result", "error"), "instructions": ("text",),
    "message": ("message",), "return": ("part",), "compacted": ("messages",),
}  # fmt: skip


def _redacted_line(line: dict[str, Any], known: Known) -> dict[str, Any]:
    """`line` without secrets."""
    kind = line.get("type", "")
    clean = _redacted_message if kind in ("message", "return", "compacted") else redacted_data
    texts = {name: clean(line[name], known) for name in _TEXTS.get(kind, ()) if name in line}
    return line | texts


def _redacted_message(data: Any, known: Known) -> Any:
    """A provider's message, or parts of one: what was said in it, without secrets."""
    if isinstance(data, list):
        return [made for part in data if (made := _redacted_message(part, known)) is not None]
    if not isinstance(data, dict):
        return data
    if data.get("part_kind") == "thinking" and data.get("signature"):
        said = redacted_data(data.get("content"), known)
        if said != data.get("content") and data.get("provider_name") != "openai":
            return None  # signed with its words; without it the message is still valid
        return data | {"content": said}
    made = {}
    for name, part in data.items():
        if name == "args" and isinstance(part, str):
            made[name] = _redacted_json(part, known)
        elif name in ("content", "args", "instructions"):
            made[name] = part if _is_media(part) else redacted_data(part, known)
        else:
            made[name] = _redacted_message(part, known) if name == "parts" else part
    if data.get("parts") and not made["parts"]:
        made["parts"] = [{"part_kind": "text", "content": "[redacted: thinking]"}]
    return made


def _redacted_json(text: str, known: Known) -> str:
    """The arguments of a call: they stay JSON, and stay as they are where nothing is in them."""
    try:
        data = json.loads(text)
    except ValueError:
        return known(text)[0]
    made = redacted_data(data, known)
    return text if made == data else json.dumps(made, ensure_ascii=False)


def _is_media(content: Any) -> bool:
    """Whether a user's message brings pictures or files, whose bytes are no text."""
    return isinstance(content, list) and any(isinstance(part, dict) for part in content)


def redact_session_files() -> None:
    """Take out of files that were written under fewer rules what those of today know.

    Files that a process has open wait for the next time.
    """
    for session in session_ids():
        path = session_path(session)
        first = next(read_lines(path), ({}, 0))[0]
        if not first or first.get("rules", 0) >= redaction.VERSION:
            continue
        try:
            writer = SessionWriter(session)
        except (Busy, ValueError):
            continue
        known = Known(redaction.rules())
        lines = [_redacted_line(line, known) for line in read_whole(path)[0]]
        lines = [_redacted_line(line, known) for line in lines]  # what only a later line told
        lines[0] |= {"rules": redaction.VERSION}
        write_atomic(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        writer.close()


class SessionWriter:
    """Appends the events of one session to its file. One write a line: a kill cuts at most one.

    Raises `Unwritable`, and `Busy` while another process writes the same session. One thread at a
    time.
    """

    def __init__(
        self, session: str, *, folder: str = "", redact: bool = True, **about: str
    ) -> None:
        if not _SAFE.fullmatch(session):
            raise ValueError(f"{session!r} cannot name a file")
        folder = folder or sessions_folder()
        self.path = os.path.join(folder, f"{session}.jsonl")
        try:
            make_private(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise Unwritable(
                f"cannot write {self.path}: {error.strerror}",
                "check the free space and the permissions there",
            ) from error
        self._hold(session)
        self._waiting: bytearray | None = None
        self._late = b""
        self._known = Known(redaction.rules()) if redact else None
        if os.fstat(self._file).st_size == 0:
            first = {"type": "session", "format": FORMAT, "session": session, **about}
            self._write(first | ({"rules": redaction.VERSION} if redact else {}))
        elif not self._ends_whole():
            os.write(self._file, b"\n")  # a line that a kill cut off ends here

    def prompt(self, text: str) -> None:
        self._write({"type": "prompt", "text": text})

    def said(self, text: str) -> None:
        self._write({"type": "text", "text": text})

    def called(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        self._write({"type": "call", "id": call_id, "name": name, "arguments": arguments})

    def returned(
        self,
        call_id: str,
        result: str,
        *,
        failed: bool = False,
        error: str = "",
        seconds: float = 0.0,
    ) -> None:
        event = {"type": "result", "id": call_id, "result": result, "duration": seconds}
        self._write(event | ({"failed": True, "error": error} if failed else {}))

    def used(self, usage: Usage, call_id: str = "") -> None:
        self._write({"type": "usage", "id": call_id, "usage": usage})

    def activated(self, name: str) -> None:
        self._write({"type": "skill", "name": name})

    def compacted(self, summary: str) -> None:
        self._write({"type": "compaction", "text": summary})

    def delegated(self, name: str, task: str, session: str) -> None:
        self._write({"type": "subagent", "name": name, "text": task, "session": session})

    def note(self, line: dict[str, Any]) -> None:
        """A line that is not an event: what the agent needs to resume."""
        self._write(line)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Lines of a `with` block go out in one write; inside another block, with that one's."""
        if self._waiting is not None:
            yield
            return
        self._waiting = bytearray()
        try:
            yield
        finally:
            lines, self._waiting = bytes(self._waiting), None
            self._append(lines)

    def close(self) -> None:
        """Close the file. Does nothing if it is closed already."""
        if self._file >= 0:
            with suppress(Unwritable):  # which was told when it happened
                self._append(b"")
            os.close(self._file)
            self._file = -1

    def _hold(self, session: str) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._file), os.stat(self.path)):
                raise BlockingIOError  # it was redacted again in this moment
        except OSError:
            os.close(self._file)
            raise Busy(f"the session {session} is open elsewhere", "end it there first") from None

    def _write(self, event: dict[str, Any]) -> None:
        if self._known is not None:
            event = _redacted_line(event, self._known)
        line = msgspec.json.encode(event | {"at": datetime.now(UTC)}) + b"\n"
        if self._waiting is not None:
            self._waiting += line
        else:
            self._append(line)

    def _append(self, lines: bytes) -> None:
        """Write `lines` whole; what a full disk did not take is written with the next ones."""
        lines, self._late = self._late + lines, b""
        before = os.fstat(self._file).st_size
        left = lines
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            self._late = lines
            with suppress(OSError):
                os.ftruncate(self._file, before)
            raise Unwritable(
                f"cannot write {self.path}: {error.strerror}", "check the free space there"
            ) from error

    def _ends_whole(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


HOSTS = (Tacit(),)
