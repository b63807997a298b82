"""Sessions in which skills were used, made by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tacit.traces.tool_calls import kind_of
from tacit.traces.trace import Activation, Head, ToolCall, Trace, Turn

BEGAN = datetime(2026, 11, 1, 9, tzinfo=UTC)


def call(
    tool: str, arguments: dict[str, Any] | str, error: str = "", *, result: str = "", **more: Any
) -> ToolCall:
    """A call that failed if it has an `error`; a string is a command."""
    given = {"command": arguments} if isinstance(arguments, str) else arguments
    return ToolCall(
        id="",
        name=tool,
        kind=kind_of(tool, given),
        arguments=given,
        result=result or error,
        failed=bool(error),
        error=error,
        **more,
    )


def session(
    skill: str,
    *calls: ToolCall,
    name: str = "s1",
    host: str = "claude-code",
    project: str = "",
    ago: float = 1,
) -> Trace:
    """One turn in which `skill` was loaded and these calls made, `ago` seconds before now."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    head = Head(host=host, session=name, project=project, started=at, ended=at)
    steps = (Activation(skill, at), *calls)
    return Trace(head, (Turn(1, f"/{skill}", steps, started=at, ended=at),))
