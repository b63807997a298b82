"""Tacit's own sessions: `sessions/<session>.jsonl` in the data folder, one event a line.

Owns the format, which docs/traces.md describes, on both sides: reading, and `SessionWriter`, which
the agent writes with. Events are for readers; beside them stand lines for resuming. What belongs
together is written at once with such a line last, so whatever follows the last of them was cut off
by a kill. Turning lines into the provider's messages is the agent's.
"""

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from tacit.base.errors import Busy, NotFound, Unwritable
from tacit.base.paths import folders, make_private
from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import JsonlHost
from tacit.traces.trace import OWN_HOST, Usage

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
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)


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


class SessionWriter:
    """Appends the events of one session to its file. One write a line: a kill cuts at most one.

    Raises `Unwritable`, and `Busy` while another process writes the same session. One thread at a
    time.
    """

    def __init__(self, session: str, *, folder: str = "", **about: str) -> None:
        if not _SAFE.fullmatch(session):
            raise ValueError(f"{session!r} cannot name a file")
        folder = folder or sessions_folder()
        self.path = os.path.join(folder, f"{session}.jsonl")
        try:
            make_private(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}", "check it") from error
        self._hold(session)
        self._waiting: bytearray | None = None
        if os.fstat(self._file).st_size == 0:
            self._write({"type": "session", "format": FORMAT, "session": session, **about})
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
            os.close(self._file)
            self._file = -1

    def _hold(self, session: str) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise Busy(f"the session {session} is open elsewhere", "end it there first") from None

    def _write(self, event: dict[str, Any]) -> None:
        line = msgspec.json.encode(event | {"at": datetime.now(UTC)}) + b"\n"
        if self._waiting is not None:
            self._waiting += line
        else:
            self._append(line)

    def _append(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise Unwritable(
                f"cannot write {self.path}: {error.strerror}", "check the free space there"
            ) from error

    def _ends_whole(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


HOSTS = (Tacit(),)
