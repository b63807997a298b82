"""Sessions made of a few words, for tests of what is learned from them.

    made(["Build it.", ran("make", "no rule", failed=True), ran("make all", "ok"), "Built."])

Each list is a turn: the prompt, then calls and what the agent said.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import msgspec

from tacit.traces.tool_calls import kind_of
from tacit.traces.trace import Activation, Head, Step, Text, ToolCall, Trace, Turn

_BEGAN = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)


def ran(command: str, output: str = "", *, failed: bool = False, tool: str = "Bash") -> ToolCall:
    """A command that the agent ran."""
    return called(tool, {"command": command}, output, failed=failed)


def called(
    tool: str, arguments: dict[str, Any], output: str = "", *, failed: bool = False
) -> ToolCall:
    """Any call; its kind is that of the tool's name."""
    error = output.strip().rsplit("\n", 1)[-1][:200] if failed else ""
    return ToolCall("", tool, kind_of(tool, arguments), arguments, output, failed, error)


def used(skill: str) -> Activation:
    """A skill that was loaded."""
    return Activation(skill)


def made(
    *turns: Sequence[str | Step],
    session: str = "made-1",
    host: str = "claude-code",
    project: str = "",
    model: str = "mock-model",
    copy_of: str = "",
) -> Trace:
    """A whole session; its turns begin at moments of its own, or of the one that it copies."""
    built = []
    own = timedelta(microseconds=crc32((copy_of or session).encode()) % 1_000_000)
    for number, (prompt, *rest) in enumerate(turns):
        at = _BEGAN + own + timedelta(minutes=number)
        steps = [_step(item, f"call-{number}-{place}") for place, item in enumerate(rest)]
        built.append(Turn(number, str(prompt), tuple(steps), at, at))
    ended = _BEGAN + timedelta(minutes=len(built))
    head = Head(
        host, session, model=model, project=project, started=_BEGAN, ended=ended, source=session
    )
    return Trace(head, tuple(built))


def _step(item: str | Step, name: str) -> Step:
    if isinstance(item, str):
        return Text(item)
    return msgspec.structs.replace(item, id=name) if isinstance(item, ToolCall) else item
