"""The scripted model: which reply a request gets.

A script is a fixed list of replies, a function of the request, or rules that choose between
scripts. It knows nothing of HTTP or of wire formats: `replies.py` has what can be said,
`request.py` what the client sent, `server.py` and `wires/` put one against the other.
"""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TypeAlias

from tacit.testing.replies import (
    Cut,
    Garbage,
    Reply,
    ReplyLike,
    ScriptFailed,
    Stall,
    Status,
    Text,
    ToolUse,
    as_reply,
)
from tacit.testing.request import Request

Script: TypeAlias = Callable[[Request], ReplyLike]
"""Called from the server's threads, perhaps from several at once."""
ScriptLike: TypeAlias = Script | Sequence[ReplyLike] | ReplyLike
Predicate: TypeAlias = Callable[[Request], bool]


def as_script(value: ScriptLike) -> Script:
    """The Script that `value` is short for: a list is used up in order, one reply is repeated."""
    if isinstance(value, Reply | Text | ToolUse | Stall | Status | Cut | Garbage | str):
        return lambda request: value
    if callable(value):
        return value
    return Replies(value)


class Replies:
    """Replies in the order in which requests arrive. Safe from any thread."""

    def __init__(self, replies: Iterable[ReplyLike], *, then: ReplyLike | None = None) -> None:
        self._replies = [as_reply(value) for value in replies]
        self._then = then
        self._used = 0
        self._lock = Lock()

    def __call__(self, request: Request) -> ReplyLike:
        with self._lock:
            index, self._used = self._used, self._used + 1
        return _pick(self._replies, index, self._then, request)

    @property
    def left(self) -> int:
        """How many replies were not asked for."""
        return max(0, len(self._replies) - self._used)


class Turns:
    """Replies by how often the model has already spoken in the conversation at hand.

    It keeps no count of its own: a repeated request gets the same reply, conversations may run
    side by side, and a session that is killed and resumed goes on where it was.
    """

    def __init__(self, replies: Iterable[ReplyLike], *, then: ReplyLike | None = None) -> None:
        self._replies = [as_reply(value) for value in replies]
        self._then = then

    def __call__(self, request: Request) -> ReplyLike:
        return _pick(self._replies, request.turn, self._then, request)


class Rules:
    """Pairs of a predicate and a script: the first that fits answers, else the default."""

    def __init__(
        self, *rules: tuple[Predicate, ScriptLike], default: ScriptLike | None = None
    ) -> None:
        self._rules = [(when, as_script(script)) for when, script in rules]
        self._default = None if default is None else as_script(default)

    def __call__(self, request: Request) -> ReplyLike:
        for when, script in self._rules:
            if when(request):
                return script(request)
        if self._default is None:
            raise ScriptFailed(
                f"no rule fits request {request.number} ({request.path})",
                "add a rule for it, or a default",
            )
        return self._default(request)


def marked(marker: str) -> Predicate:
    """Fits a conversation that carries `marker` in the first thing the user said.

    Agents put messages of their own before the user's, so every message up to the model's first
    reply counts.
    """

    def fits(request: Request) -> bool:
        for message in request.messages:
            if message.role == "assistant":
                break
            if message.role == "user" and marker in message.text:
                return True
        return False

    return fits


def toolless(request: Request) -> bool:
    """Fits a request that offers no tools: an agent's side request, such as for a title."""
    return not request.tools


def _pick(
    replies: Sequence[Reply], index: int, then: ReplyLike | None, request: Request
) -> ReplyLike:
    if index < len(replies):
        return replies[index]
    if then is not None:
        return then
    raise ScriptFailed(
        f"the script has {len(replies)} replies and was asked for number {index + 1} "
        f"(request {request.number}, {request.path})",
        "add a reply, or give the script one for everything after the last",
    )
