"""From a host's records to turns: the `Assembler` that hosts tell, and the `Reading` behind it.

The Assembler owns order, the pairing of calls with results, the length at which texts are cut, and
counting. It never raises on what it is told, and needs memory for one turn, not for a session.

A Reading goes through one session, whole or from a bookmark on. A turn that is not over is given as
it stands, and the bookmark points to its beginning: a later reading gives it again, complete, under
the same number. So a reading's turns replace what was kept from their first number on. What the
records mean is the host's business, keeping the turns is the store's.
"""

import re
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from tacit.base import paths
from tacit.base.display import one_line
from tacit.traces import tool_calls, values
from tacit.traces.host import Host, Source
from tacit.traces.tool_calls import delegation_of, skills_loaded, tools_of
from tacit.traces.trace import (
    Activation,
    Compaction,
    Given,
    Head,
    Step,
    Subagent,
    Teller,
    Text,
    Told,
    ToolCall,
    Trace,
    Turn,
    Usage,
)

MAX_STEPS = 2_000
"""Steps in one turn; what follows goes into a next turn without a prompt."""
MAX_WAITING = 8
"""Turns that wait for results of their calls: a user may write on before a call is over."""
_BEGINS: tuple[Teller, ...] = ("agent", "plan", "teammate")
_BACKWARDS = timedelta(seconds=1)  # hosts write a few records out of order by milliseconds


_CHECKOUT = re.compile(r"(?:/\.claude/worktrees|/\.worktrees|(?<=[^/])(?:__|[.-])worktrees)/[^/]+")


def repository_folder(folder: str) -> str:
    """`folder` in the main checkout, where it lies in another checkout of the same repository.

    Checkouts come and go; what was learned in one is of use in all.
    """
    if found := _CHECKOUT.search(folder):  # also where it is gone
        return folder[: found.start()] + folder[found.end() :]
    root = paths.project_root(folder)
    main = paths.main_checkout(root)
    return main + folder[len(root) :] if main != root else folder


class Mark(NamedTuple):
    """Where the open turn begins, and all that was known before it: enough to read on from."""

    position: int
    number: int
    head: Head
    state: dict[str, Any]


class _OpenCall:
    """A call as it becomes known."""

    __slots__ = (
        "arguments", "at", "duration", "error", "failed", "finished", "id", "name", "reply",
        "result",
    )  # fmt: skip

    def __init__(
        self, call_id: str, name: str, arguments: dict[str, Any], at: datetime | None
    ) -> None:
        self.id = call_id
        self.name = name
        self.arguments = arguments
        self.at = at
        self.result = ""
        self.reply = ""
        self.failed = False
        self.error = ""
        self.finished = False
        self.duration: float | None = None


class _ClosedTurn(NamedTuple):
    """A turn whose calls may still get results, and where it began."""

    mark: Mark
    turn: Turn
    steps: "list[Step | _OpenCall]"

    @property
    def waits(self) -> bool:
        return any(isinstance(step, _OpenCall) and not step.finished for step in self.steps)


class Assembler:
    """Hears what happened in one session, in order; gives turns.

    A host calls `begin` with the place of a record before it tells of it: a later reading can go
    on from there. `state` is the host's own memory between records: small, and of JSON values.
    """

    def __init__(
        self,
        head: Head,
        number: int = 0,
        state: dict[str, Any] | None = None,
        position: int = 0,
    ) -> None:
        self.state: dict[str, Any] = dict(state or {})
        self._position = position
        self._resuming = position > 0
        self._number = number
        self._facts = {name: getattr(head, name) for name in _FACTS}
        self._told: dict[str, dict[str, str]] = {}
        self._span = (head.started, head.ended)
        self._skipped = dict(head.skipped)
        self._before = head.usage  # of the turns before the open one
        self._total: Usage | None = None
        self._cost: float | None = None
        self._last: datetime | None = head.ended
        self._done: list[Turn] = []
        self._waiting: list[_ClosedTurn] = []
        self._prompt = ""
        self._steps: list[Step | _OpenCall] = []
        self._texts: dict[str, int] = {}
        self._calls: dict[str, _OpenCall] = {}
        self._unpaired: _OpenCall | None = None
        self._usage: dict[str, Usage] = {}
        self._started: datetime | None = None
        self._ended: datetime | None = None
        self._system: list[str] = []
        self._tools: list[Any] = []
        self._open_mark = self._mark()

    @property
    def mark(self) -> Mark:
        """Where the first turn begins that is not over."""
        return self._waiting[0].mark if self._waiting else self._open_mark

    # What hosts say.

    def begin(self, position: int) -> None:
        """A record begins at `position`, which only grows."""
        self._position = position
        if len(self._steps) >= MAX_STEPS:
            waiting = any(not call.finished for call in self._calls.values())
            if not waiting or len(self._steps) >= 2 * MAX_STEPS:
                self._next_turn()

    def about(self, **facts: str) -> None:
        """Facts about the session, by the names of `Head`'s fields. Empty ones tell nothing.

        The last word on model and version counts, the first on all else. Each is one line without
        signs that steer a terminal, but for a folder, which is found by its name as it is.
        """
        first = next(iter(facts), "")
        if self._told.get(first) == facts:  # most records say what the one before said
            return
        for name, value in facts.items():
            known = self._facts[name]
            if value and value != known and (not known or name in ("model", "version")):
                self._told.clear()
                clean = repository_folder if name == "project" else one_line
                self._facts[name] = clean(value[:4000])
        self._told[first] = facts

    def restore_host(self, name: str) -> None:
        """The session is another host's, as an export of ours says; a name that is not known stays
        what it was read by."""
        from tacit.traces import host_registry

        if name in host_registry.names():
            self._facts["host"] = name

    def at(self, moment: datetime | None) -> datetime | None:
        """Note that something happened at `moment`. Clocks may go backwards; that is counted."""
        if moment is None:
            return None
        if self._last is not None and self._last - moment > _BACKWARDS:
            self.passed("clock")
        self._last = moment
        if self._ended is None or moment > self._ended:
            self._ended = moment
        if self._started is None or moment < self._started:
            self._started = moment
        return moment

    def prompt(self, text: str, at: datetime | None = None) -> None:
        """The user said `text`: a new turn begins here. In a helper's session the agent said it."""
        if self._facts["parent"]:
            self.told(text, "agent", at)
        elif text := text.strip():
            self._next_turn()
            self._prompt = self._short(text)
            self.at(at)

    def told(self, text: str, by: Teller, at: datetime | None = None) -> None:
        """`text` stands in the user's place, and the user did not type it.

        What another agent says, or an accepted plan, begins a turn, unless it comes right behind
        a prompt; the rest belongs to one.
        """
        if text := text.strip():
            if by in _BEGINS and self._steps:
                self._next_turn()
            self._steps.append(Told(self._short(text), by, self.at(at)))

    def given(self, system: str = "", tools: Any = (), at: datetime | None = None) -> None:
        """What the model was given: instructions, definitions of tools. No part of a trace.

        Words of the system's in the middle of a session are a step of it.
        """
        if self.is_begun:
            self.told(system, "system", at)
            return
        self._system += [system] if system.strip() else []
        self._tools += [tools] if tools else []

    def said(self, text: str, at: datetime | None = None, key: str = "") -> None:
        """The assistant said `text`. The same `key` again replaces what was said before."""
        if not text.strip():
            return
        said = Text(self._short(text), self.at(at))
        if key and key in self._texts:
            self._steps[self._texts[key]] = said
            return
        if key:
            self._texts[key] = len(self._steps)
        self._steps.append(said)

    def called(self, call_id: str, name: str, arguments: Any, at: datetime | None = None) -> None:
        """A tool was called. The same `call_id` again adds what was not known."""
        known = values.arguments(arguments)
        call = self._calls.get(call_id) if call_id else None
        if call is not None:
            call.arguments = call.arguments or self._trim(known)
            call.name = call.name or name[:200]
            return
        call = _OpenCall(call_id, name[:200], self._trim(known), self.at(at))
        if call_id:
            self._calls[call_id] = call
        self._unpaired = call
        self._steps.append(call)

    def is_answered(self, call_id: str) -> bool:
        """Whether a call of that id in this turn has its result."""
        call = self._calls.get(call_id)
        return call is not None and call.finished

    def tool_of(self, call_id: str) -> str:
        """The name of the tool that a call used; empty where the call is not known."""
        call = self._call(call_id)
        return call.name if call is not None else ""

    def returned(
        self,
        call_id: str,
        result: str = "",
        *,
        failed: bool = False,
        error: str = "",
        reply: str = "",
        at: datetime | None = None,
        duration: float | None = None,
    ) -> None:
        """A call gave `result`. Told twice, the later text counts, and a failure stays one.

        Without a `call_id` the latest call is meant. `reply` is what the user typed to it.
        """
        call = self._call(call_id)
        if call is None:
            # The record that a reading goes on from may also end the turn before: told already.
            if not self._resuming:
                self.passed("lone-result")
            return
        moment = self.at(at)
        call.finished = True
        if result:
            call.result = self._short(result)
        if failed or error:
            call.failed = True
            call.error = values.why(error or call.result, values.exit_code(result[-2000:]))
        if reply.strip():
            call.reply = self._short(reply.strip())
        if duration is not None:
            call.duration = duration
        elif call.duration is None and moment and call.at and moment >= call.at:
            call.duration = round((moment - call.at).total_seconds(), 3)

    def used(self, usage: Usage, key: str = "") -> None:
        """Tokens for one answer of the model. The same `key` again replaces the figure."""
        self._usage[key or f"#{len(self._usage)}"] = usage

    def used_in_all(self, usage: Usage) -> None:
        """The host's own total for the whole session so far; it wins over the sum."""
        self._total = usage

    def cost_in_all(self, cost: float | None) -> None:
        """The host's own total of what the session cost, in US dollars."""
        self._cost = cost if cost is not None else self._cost

    def activated(self, name: str, at: datetime | None = None) -> None:
        """A skill was loaded."""
        if name := name.strip().strip("/")[:200]:
            self._steps.append(Activation(name, self.at(at)))

    def compacted(self, summary: str = "", at: datetime | None = None) -> None:
        """The history was replaced by a summary."""
        self._steps.append(Compaction(self._short(summary), self.at(at)))

    def delegated(
        self, name: str = "", task: str = "", session: str = "", at: datetime | None = None
    ) -> None:
        """Work was handed to another agent."""
        self._steps.append(Subagent(name[:200], self._short(task), session[:500], self.at(at)))

    def passed(self, reason: str, times: int = 1) -> None:
        """Something was passed over; see `trace.REASONS`."""
        if times:
            self._skipped[reason] = self._skipped.get(reason, 0) + times

    # What the reader asks.

    @property
    def is_begun(self) -> bool:
        """Whether something was said or done."""
        return bool(self._number or self._prompt or self._steps)

    @property
    def given_first(self) -> Given:
        """What the model was given before anything was said."""
        return Given("\n\n".join(self._system), tuple(tools_of(self._tools)))

    def take(self) -> list[Turn]:
        """The turns that were finished since the last call."""
        if self._waiting:
            self._release(MAX_WAITING)
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Turn]:
        """The rest, with the turn that is still open, if it holds anything."""
        self._close()
        self._release(0)
        return self.take()

    def head(self) -> Head:
        """The session as known so far, with the open turn's usage and times."""
        started, ended = self._whole_span()
        usage = self._total or self._before
        if self._usage and not self._total:
            usage = usage + self._turn_usage()
        if self._cost is not None:
            usage = msgspec.structs.replace(usage, cost=self._cost)
        skipped = dict(self._skipped)
        return Head(**self._facts, started=started, ended=ended, usage=usage, skipped=skipped)

    # How it is done.

    def _clear(self) -> None:
        self._prompt, self._steps = "", []
        self._texts, self._calls, self._unpaired = {}, {}, None
        self._usage = {}
        self._started = self._ended = None

    def _next_turn(self) -> None:
        self._close()
        self._resuming = False
        self._open_mark = self._mark()

    def _call(self, call_id: str) -> _OpenCall | None:
        """The call of that id in the open turn, or in one before that still waits for results."""
        if not call_id or call_id in self._calls:
            return self._calls.get(call_id) if call_id else self._unpaired
        for closed in reversed(self._waiting):
            for step in closed.steps:
                if isinstance(step, _OpenCall) and step.id == call_id:
                    return step
        return None

    def _release(self, most: int) -> None:
        """Give out the turns that wait for nothing more, and those before the last `most`."""
        held = sum(len(closed.steps) for closed in self._waiting)
        while self._waiting and (
            len(self._waiting) > most or held > 2 * MAX_STEPS or not self._waiting[0].waits
        ):
            closed = self._waiting.pop(0)
            held -= len(closed.steps)
            steps = tuple(_finished_steps(closed.steps))
            self._done.append(msgspec.structs.replace(closed.turn, steps=steps))

    def _mark(self) -> Mark:
        return Mark(self._position, self._number, self.head(), dict(self.state))

    def _turn_usage(self) -> Usage:
        return Usage.sum(self._usage.values())

    def _whole_span(self) -> tuple[datetime | None, datetime | None]:
        """The first and the last moment of the session, the open turn included."""
        started, ended = self._span
        if self._started and (started is None or self._started < started):
            started = self._started
        if self._ended and (ended is None or self._ended > ended):
            ended = self._ended
        return started, ended

    def _close(self) -> None:
        """End the open turn; one that holds nothing leaves no trace but its usage and times."""
        usage = self._turn_usage()
        if self._prompt or self._steps:
            turn = Turn(self._number, self._prompt, (), self._started, self._ended, usage)
            self._waiting.append(_ClosedTurn(self._open_mark, turn, self._steps))
            self._number += 1
        self._before = self._before + usage
        self._span = self._whole_span()
        self._clear()

    def _short(self, text: str) -> str:
        short = values.cut_long(text)
        if short is not text:
            self.passed("shortened")
        return short

    def _trim(self, arguments: dict[str, Any]) -> dict[str, Any]:
        trimmed, cuts = values.trim_arguments(arguments)
        if cuts:
            self.passed("shortened", cuts)
        return trimmed


def _finished_steps(steps: "list[Step | _OpenCall]") -> Iterator[Step]:
    loaded: set[str] = set()
    for step in steps:
        if not isinstance(step, _OpenCall):
            if not isinstance(step, Activation) or step.name not in loaded:
                yield step
            if isinstance(step, Activation):
                loaded.add(step.name)
            continue
        kind = tool_calls.kind_of(step.name, step.arguments)
        call = ToolCall(
            step.id,
            step.name,
            kind,
            step.arguments,
            step.result,
            step.failed,
            step.error,
            step.finished,
            step.at,
            step.duration,
            step.reply,
        )
        yield call
        if tool_calls.is_delegation(step.name):
            yield delegation_of(call)
        for name in () if step.failed else skills_loaded(kind, step.arguments):
            if name not in loaded:
                loaded.add(name)
                yield Activation(name, step.at)


_FACTS = (
    "host", "session", "version", "model", "project", "repository", "branch", "title",
    "parent", "copied_from", "source", "verdict", "handed",
)  # fmt: skip


READERS = 6
"""Raised when readers tell of the same records what they did not before: all is read anew then."""


class Bookmark(msgspec.Struct, frozen=True):
    """Where a reading can go on, and what was known at that place."""

    position: int
    number: int
    head: Head
    state: dict[str, Any]
    stamp: str
    """The source as it was; the same again: nothing to read."""
    fingerprint: str
    """What lies before `position`; another: it was replaced, and is read anew."""
    readers: int = 1
    """The readers that it was made by; see `READERS`."""


class Reading:
    """One session being read. Iterate over it once, for turns; then ask for the rest.

    `first` is the number of the first turn that it gives. `unchanged` says that nothing has
    happened since the bookmark, and then there are no turns.
    """

    def __init__(self, host: Host, source: Source, bookmark: Bookmark | None = None) -> None:
        self.source = source
        self._host = host
        self._stamp = host.stamp(source)  # taken before reading: what comes later is seen later
        self.unchanged = (
            bookmark is not None and bool(self._stamp) and (bookmark.stamp == self._stamp)
        )
        if bookmark is not None and not self.unchanged and not self._same_file(bookmark):
            bookmark = None
        self._start, self.first = (bookmark.position, bookmark.number) if bookmark else (0, 0)
        fresh = Head(host.name, source=source.path, handed=source.handed)
        head, state = (bookmark.head, bookmark.state) if bookmark else (fresh, None)
        self._bookmark = bookmark
        self._into = Assembler(head, self.first, state, self._start)

    @property
    def gone(self) -> bool:
        """Whether there is nothing to read any more."""
        return not self._stamp

    def _same_file(self, bookmark: Bookmark) -> bool:
        found = self._host.fingerprint(self.source, bookmark.position)
        return bool(found) and found == bookmark.fingerprint

    def __iter__(self) -> Iterator[Turn]:
        if self.unchanged:
            return
        into = self._into
        try:
            for _ in self._host.read(self.source, self._start, into):
                if done := into.take():
                    yield from done
        except (OSError, sqlite3.Error):
            into.passed("unreadable")
            self._stamp = ""  # what could not be read now is read again
        mark = into.mark
        yield from into.finish()
        self._bookmark = Bookmark(
            mark.position,
            mark.number,
            mark.head,
            mark.state,
            self._stamp,
            self._host.fingerprint(self.source, mark.position),
            READERS,
        )

    def anew(self) -> "Reading":
        """The same from its beginning."""
        return Reading(self._host, self.source)

    def before(self) -> Iterator[Turn]:
        """The turns before `first`, which an earlier reading gave, read once more."""
        for turn in self.anew() if self.first else ():
            if turn.number >= self.first:
                return
            yield turn

    @property
    def head(self) -> Head:
        """The session, complete once all turns were given."""
        head = self._into.head()
        if head.session:
            return head
        return msgspec.structs.replace(head, session=_stem(self.source))

    @property
    def bookmark(self) -> Bookmark | None:
        """Where to go on; None until all turns were given."""
        return self._bookmark


def read_trace(host: Host, source: Source) -> Trace:
    """The whole session in memory."""
    reading = Reading(host, source)
    turns = tuple(reading)
    return Trace(reading.head, turns)


def _stem(source: Source) -> str:
    """A name for a session that does not say its own."""
    name = source.path.rstrip("/").rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    return one_line(f"{stem}#{source.key}" if source.key else stem)
