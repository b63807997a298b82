"""A background agent's task, the report of its run, and what parent and child tell each other.

The messages are JSON objects, one a line, over two pipes. The parent believes nothing that it
cannot read: a line that is too long, no JSON, or not one of these messages is a `Garbled`, and
ends the run. `Channel` never blocks for longer than it is told to. Nothing here starts a process
or knows a skill.
"""

import os
import select
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from tacit.agent.agent_events import Usage
from tacit.agent.budget import Limits
from tacit.agent.tool import Result
from tacit.base.setting_sections import Settings
from tacit.changes.change import Actor
from tacit.learn.background.confinement import Confinement
from tacit.traces.program import Said

if TYPE_CHECKING:
    from tacit.learn.background.toolset import StagedSkills


Reason = Literal[
    "done", "turns", "seconds", "tokens", "money", "error", "killed", "budget", "refused"
]
"""How a run ended. `killed`: the child was gone of a sudden. `budget`: the day's is used up.
`refused`: trying again is of no use: there is no model, the provider does not take the key, the
name or the request, or the child could not be confined. `error`: it may work later."""

MOST_SHOWN = 2_000
"""Characters of a call's result that a report keeps."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is to do, alone."""

    job: str
    kind: str
    """What the spending is recorded under: `review`, `improve`, `curate`."""
    actor: Actor
    session: str = ""
    """The session that it is about, if it is about one; the spending is recorded under it."""
    project: str = ""
    """The project's folder, which it may read."""
    staging: str
    """The folder of `Staging.open`: the one place that it may write."""
    instructions: str
    """The system prompt."""
    message: str
    """What it is told first."""
    toolset: str
    """`module:function`, called in the child with a `TaskContext`; gives the tools, all allowed."""
    data: dict[str, Any] = {}
    """What the toolset needs to know, as JSON."""
    read: tuple[str, ...] = ()
    """More folders that its tools read. The library's own are among what can be read already."""
    limits: Limits = Limits()


class Call(msgspec.Struct, frozen=True):
    """One call of a tool that the agent made."""

    name: str
    arguments: dict[str, Any]
    failed: bool
    result: str
    """The beginning of what it gave."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a run. Whatever happened, the figures are those of the requests made."""

    reason: Reason
    text: str = ""
    """The last thing that the agent said."""
    error: str = ""
    """For people: what went wrong, if something did."""
    day: Literal["", "rest", "whole"] = ""
    """What it had of the day's budget, where that cut it off: only what others had left of it,
    and then there is more tomorrow, or the whole, and then there is not."""
    turns: int = 0
    """Requests to the model that were answered."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    """In dollars; None when no price is known."""
    seconds: float = 0.0
    model: str = ""
    calls: tuple[Call, ...] = ()
    confinement: Confinement = msgspec.field(default=Confinement(), name="walls")
    """Under the name that it has in JSON since the first version."""

    @property
    def is_done(self) -> bool:
        """Whether the agent came to its own end, and the broker had nothing more to say."""
        return self.reason == "done"


Serve: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Result]]


class TaskContext(msgspec.Struct, frozen=True):
    """What a toolset works with, in the child."""

    task: Task
    settings: "Settings"
    staged: "StagedSkills"
    serve: Serve
    """Have the parent's broker do something; for what cannot be done inside."""


LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one line."""
_CHUNK = 65_536
_LONGEST_WAIT = 3600.0

Words = Annotated[str, msgspec.Meta(max_length=1_000_000)]


class Garbled(Exception):
    """The other side said what cannot be read."""


class Start(msgspec.Struct, frozen=True, tag="start"):
    """To the child, first: what to do, and with what."""

    task: Task
    settings: Settings
    model: str
    base_url: str
    parent: int
    read: tuple[str, ...]
    ports: tuple[int, ...]


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """To the child: what the broker made of its `Ask`."""

    text: str
    failed: bool = False
    diff: str = ""

    def result(self) -> Result:
        return Result(self.text, failed=self.failed, diff=self.diff)


class GoOn(msgspec.Struct, frozen=True, tag="go-on"):
    """To the child after `Finished`: what the agent is told next; None lets it end."""

    message: str | None


class Locked(msgspec.Struct, frozen=True, tag="locked"):
    """From the child, first: it has confined itself."""

    confinement: Confinement


class Used(msgspec.Struct, frozen=True, tag="used"):
    """From the child after each request: what it took."""

    usage: Usage
    seconds: Annotated[float, msgspec.Meta(ge=0)]


class Called(msgspec.Struct, frozen=True, tag="called"):
    """From the child after each call of a tool."""

    call: Call


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """From the child: the broker is to serve this; an `Answer` is awaited."""

    name: Words
    arguments: dict[str, Any]


class Lookup(msgspec.Struct, frozen=True, tag="lookup"):
    """From the child: which addresses a name has; `Addresses` are awaited."""

    host: Words


class Addresses(msgspec.Struct, frozen=True, tag="addresses"):
    """To the child after `Lookup`; none where there are none, or the name is not the model's."""

    found: tuple[str, ...]


class Question(msgspec.Struct, frozen=True, tag="question"):
    """From the child: the model is a program, and is to answer this; a `Told` is awaited."""

    instructions: Words
    text: Words


class Told(msgspec.Struct, frozen=True, tag="told"):
    """To the child after `Question`: what the program said, or why it said nothing."""

    said: Said = Said()
    fault: str = ""
    hint: str = ""
    may_pass: bool = False


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """From the child: the agent says that it is done; a `GoOn` is awaited."""

    text: Words


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """From the child, last."""

    reason: Reason
    text: Words = ""
    error: Words = ""


Up = Locked | Used | Called | Ask | Lookup | Question | Finished | Ended
Down = Start | Answer | Addresses | Told | GoOn

_up: "msgspec.json.Decoder[Up]" = msgspec.json.Decoder(Up)


def encode_message(message: Up | Down) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def decode_message(line: bytes) -> Up:
    """What the child said. Raises `Garbled`."""
    try:
        return _up.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Garbled(f"a line that cannot be read ({error}): {line[:80]!r}") from None


class Channel:
    """The parent's ends of the pipes, and what the child printed besides."""

    def __init__(self, to_child: int, from_child: int, printed: int) -> None:
        self._to, self._from, self._printed = to_child, from_child, printed
        self._waiting = bytearray()
        self._incoming = bytearray()
        self._scanned = 0
        self.printed = bytearray()
        """The end of what it printed."""
        for descriptor in (to_child, from_child, printed):
            os.set_blocking(descriptor, False)

    def send(self, message: Down) -> None:
        """Have `message` sent while lines are awaited."""
        self._waiting += encode_message(message)

    def line(self, until: float) -> bytes | None:
        """The next line, or None when the time is over. Raises EOFError at the end, `Garbled`."""
        while True:
            at = self._incoming.find(b"\n", self._scanned)
            if at >= 0:
                line = bytes(self._incoming[:at])
                del self._incoming[: at + 1]
                self._scanned = 0
                return line
            self._scanned = len(self._incoming)
            if self._scanned > LONGEST_LINE:
                raise Garbled(f"a line of more than {LONGEST_LINE:,} bytes")
            left = until - time.monotonic()
            if left <= 0:
                return None
            self._move(left)

    def close(self) -> None:
        """Idempotent: a second call changes nothing."""
        for name in ("_to", "_from", "_printed"):
            if (descriptor := getattr(self, name)) >= 0:
                os.close(descriptor)
                setattr(self, name, -1)

    def _move(self, seconds: float) -> None:
        """Wait for something to read or room to write, and do it."""
        poll = select.poll()  # not select, which knows no descriptor above 1,023
        for reader in (self._from, self._printed):
            if reader >= 0:
                poll.register(reader, select.POLLIN)
        if self._waiting and self._to >= 0:
            poll.register(self._to, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(min(seconds, _LONGEST_WAIT) * 1000)}
        if self._to in ready:
            self._write()
        if self._printed in ready:
            self._keep_printed()
        if self._from in ready:
            part = _read(self._from)
            if part == b"":
                raise EOFError
            self._incoming += part or b""

    def _write(self) -> None:
        try:
            del self._waiting[: os.write(self._to, self._waiting[:_CHUNK])]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it is gone, or does not listen: the reading tells which
            self._waiting.clear()

    def _keep_printed(self) -> None:
        part = _read(self._printed)
        if part == b"":
            os.close(self._printed)
            self._printed = -1
            return
        self.printed += part or b""
        del self.printed[:-8192]


def _read(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
