"""From what a host's records say to turns. Every host speaks to an `Assembler`, in these verbs.

Owns order, pairing of calls with results, limits and counting. Never raises on what it is told,
and needs memory for one turn, not for a session.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from tacit.traces import kinds, limits, values
from tacit.traces.loading import skills_loaded
from tacit.traces.trace import (
    Activation,
    Compaction,
    Head,
    Step,
    Subagent,
    Text,
    ToolCall,
    Turn,
    Usage,
)

MAX_STEPS = 2_000
"""Steps in one turn; what follows goes into a next turn without a prompt."""
_BACKWARDS = timedelta(seconds=1)  # hosts write a few records out of order by milliseconds


class Mark(NamedTuple):
    """Where the open turn begins, and all that was known before it: enough to read on from."""

    position: int
    number: int
    head: Head
    state: dict[str, Any]


class _Open:
    """A call as it becomes known."""

    __slots__ = (
        "arguments", "at", "duration", "error", "failed", "finished", "id", "name", "result",
    )  # fmt: skip

    def __init__(
        self, call_id: str, name: str, arguments: dict[str, Any], at: datetime | None
    ) -> None:
        self.id = call_id
        self.name = name
        self.arguments = arguments
        self.at = at
        self.result = ""
        self.failed = False
        self.error = ""
        self.finished = False
        self.duration: float | None = None


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
        self._span = (head.started, head.ended)
        self._skipped = dict(head.skipped)
        self._before = head.usage  # of the turns before the open one
        self._total: Usage | None = None
        self._cost: float | None = None
        self._last: datetime | None = head.ended
        self._done: list[Turn] = []
        self._prompt = ""
        self._steps: list[Step | _Open] = []
        self._texts: dict[str, int] = {}
        self._calls: dict[str, _Open] = {}
        self._unpaired: _Open | None = None
        self._usage: dict[str, Usage] = {}
        self._started: datetime | None = None
        self._ended: datetime | None = None
        self.mark = self._mark()

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

        The first word on session, project, branch, title and parent counts; the last on model
        and version.
        """
        for name, value in facts.items():
            if value and (not self._facts[name] or name in ("model", "version")):
                self._facts[name] = value[:4000]

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
        """The user said `text`: a new turn begins here."""
        if text := text.strip():
            self._next_turn()
            self._prompt = self._short(text)
            self.at(at)

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
        call = _Open(call_id, name[:200], self._trim(known), self.at(at))
        if call_id:
            self._calls[call_id] = call
        self._unpaired = call
        self._steps.append(call)

    def returned(
        self,
        call_id: str,
        result: str = "",
        *,
        failed: bool = False,
        error: str = "",
        at: datetime | None = None,
        duration: float | None = None,
    ) -> None:
        """A call gave `result`. Told twice, the later text counts, and a failure stays one.

        Without a `call_id` the latest call is meant.
        """
        call = self._calls.get(call_id) if call_id else self._unpaired
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
        self._skipped[reason] = self._skipped.get(reason, 0) + times

    # What the reader asks.

    def take(self) -> list[Turn]:
        """The turns that were finished since the last call."""
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Turn]:
        """The rest, with the turn that is still open, if it holds anything."""
        self._close()
        return self.take()

    def head(self) -> Head:
        """The session as known so far, with the open turn's usage and times."""
        started, ended = self._span
        if self._started and (started is None or self._started < started):
            started = self._started
        if self._ended and (ended is None or self._ended > ended):
            ended = self._ended
        usage = self._total or self._before + self._turn_usage()
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
        self.mark = self._mark()

    def _mark(self) -> Mark:
        return Mark(self._position, self._number, self.head(), dict(self.state))

    def _turn_usage(self) -> Usage:
        usage = Usage()
        for used in self._usage.values():
            usage = usage + used
        return usage

    def _close(self) -> None:
        """End the open turn; one that holds nothing leaves no trace but its usage and times."""
        head = self.head()
        usage = self._turn_usage()
        if self._prompt or self._steps:
            steps = tuple(self._finished_steps())
            self._done.append(
                Turn(self._number, self._prompt, steps, self._started, self._ended, usage)
            )
            self._number += 1
        self._before = self._before + usage
        self._span = (head.started, head.ended)
        self._clear()

    def _finished_steps(self) -> Iterator[Step]:
        loaded: set[str] = set()
        for step in self._steps:
            if not isinstance(step, _Open):
                if not isinstance(step, Activation) or step.name not in loaded:
                    yield step
                if isinstance(step, Activation):
                    loaded.add(step.name)
                continue
            kind = kinds.kind_of(step.name, step.arguments)
            yield ToolCall(
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
            )
            if kinds.hands_over(step.name):
                yield _handed_over(step)
            for name in () if step.failed else skills_loaded(kind, step.arguments):
                if name not in loaded:
                    loaded.add(name)
                    yield Activation(name, step.at)

    def _short(self, text: str) -> str:
        short = limits.shorten(text)
        if short is not text:
            self.passed("shortened")
        return short

    def _trim(self, arguments: dict[str, Any]) -> dict[str, Any]:
        trimmed, cuts = limits.trim(arguments)
        if cuts:
            self.passed("shortened", cuts)
        return trimmed


_FACTS = ("host", "session", "version", "model", "project", "branch", "title", "parent", "source")


def _handed_over(call: _Open) -> Subagent:
    said = {name: values.string(value) for name, value in call.arguments.items()}
    who = said.get("subagent_type") or said.get("agent") or said.get("agent_name") or ""
    task = next((said[key] for key in _TASKS if said.get(key)), "")
    return Subagent(who, task, at=call.at)


_TASKS = ("prompt", "task", "goal", "message", "description")
