"""The nouns of a run in the background: the task, what became of it, and what the tools get."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from tacit.agent.limits import Limits
from tacit.agent.tools.tool import Result, Tool
from tacit.changes.actor import Actor

if TYPE_CHECKING:
    from tacit.base.sections import Settings
    from tacit.learn.background.desk import Desk

Reason = Literal[
    "done", "turns", "seconds", "tokens", "money", "error", "killed", "budget", "refused"
]
"""How a run ended. `killed`: the child was gone of a sudden. `budget`: the day's is used up.
`refused`: it could not begin, because there is no model or the room could not be closed."""

MOST_SHOWN = 2_000
"""Characters of a call's result that a report keeps."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is to do, alone."""

    job: str
    kind: str
    """What the spending is booked under: `review`, `improve`, `curate`."""
    actor: Actor
    session: str = ""
    """The session that it is about, if it is about one; the spending is booked on it."""
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


class Walls(msgspec.Struct, frozen=True):
    """What kept the child in. Away from Linux that is only what its tools can do."""

    writes: bool = False
    """It could write nothing but its staging folder."""
    reads: bool = False
    """It could read nothing but the project, the library and what Python needs."""
    network: bool = False
    """It could connect to no port but the model's."""
    group: bool = False
    """No process that it started could get away."""
    why_not: str = ""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run. Whatever happened, the figures are those of the requests made."""

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
    walls: Walls = Walls()

    @property
    def is_done(self) -> bool:
        """Whether the agent came to its own end, and the broker had nothing more to say."""
        return self.reason == "done"


Serve: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Result]]


class TaskContext(msgspec.Struct, frozen=True):
    """What a toolset works with, in the child."""

    task: Task
    settings: "Settings"
    desk: "Desk"
    """The staged files."""
    serve: Serve
    """Have the parent's broker do something; for what cannot be done inside."""


Toolset: TypeAlias = Callable[[TaskContext], tuple[Tool, ...]]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
