"""The scripted model: what it is asked, what it can say, and which reply a request gets.

A script is a fixed list of replies, a function of the request, or rules that choose between
scripts; it can also be kept in a file, as JSON or Python. It reads a `Request`, which has one form
whatever the wire format, and gives a `Reply`, which may also fail on its way: stall, be cut off, be
an HTTP error or garbage. The body of a request is kept as it came, for tests that compare byte for
byte. Nothing here knows of HTTP or of wire formats: `server.py` and `wires/` do.
"""

import os
import runpy
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Literal, TypeAlias

import msgspec

from tacit.base.errors import BadConfig, NotFound, TacitError


class ScriptFailed(TacitError):
    """The script had no reply for a request, or its function raised."""


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A piece of prose."""

    text: str


class ToolUse(msgspec.Struct, frozen=True, tag="tool_use"):
    """A call of a tool. Without an id it gets one made of the request's number."""

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""
    raw: str | None = None
    """Sent in place of `arguments`, for a model that writes broken JSON. Only where arguments go
    over the wire as text: both OpenAI formats, and Anthropic when it streams."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as the provider reports them. `input_tokens` counts the cached ones too."""

    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0


class Stall(msgspec.Struct, frozen=True, tag="stall"):
    """Silence for some seconds, then the rest of the reply. With 0 chunks, before the headers."""

    seconds: float
    after_chunks: int = 0


class Status(msgspec.Struct, frozen=True, tag="status"):
    """An HTTP error in place of the reply, in the provider's own shape."""

    code: int
    retry_after: float | None = None
    message: str = "scripted failure"
    param: str | None = None
    """The part of the request that is refused, where the format names one."""
    kind: str = ""
    """The provider's own word for the error; the usual one for the code, where it is empty."""


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """The connection is dropped. With 0 chunks, before the headers."""

    after_chunks: int = 1
    clean: bool = False
    """HTTP ends as it should, and only the format's own end mark is missing, as when a proxy or a
    server that gives up closes the stream."""


class Endless(msgspec.Struct, frozen=True, tag="endless"):
    """The chunk before this place is sent again and again, until the client leaves."""

    after_chunks: int = 3


class Page(msgspec.Struct, frozen=True, tag="page"):
    """A web page in place of the reply, as proxies and wrong addresses give."""

    code: int = 200
    title: str = "Welcome"


class Garbage(msgspec.Struct, frozen=True, tag="garbage"):
    """Bytes that mean nothing, in place of the rest of the reply; the status is still 200."""

    after_chunks: int = 0
    data: bytes = b'data: {"\xff\xfe half a thing\n\n'


Part: TypeAlias = Text | ToolUse
Fault: TypeAlias = Stall | Status | Cut | Garbage | Endless | Page


class Reply(msgspec.Struct, frozen=True):
    """One answer of the model. A fault whose chunk the reply never reaches strikes at its last."""

    parts: tuple[Part, ...] = ()
    usage: Usage = Usage()
    fault: Fault | None = None
    finish: Literal["", "length", "filtered"] = ""
    """Why it stopped, where that is not "done" or "wants a tool"."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


ReplyLike: TypeAlias = Reply | Part | Fault | str


def reply(*parts: Part | str, usage: Usage | None = None, fault: Fault | None = None) -> Reply:
    """A Reply from its parts; a plain string is a Text."""
    whole = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Reply(whole, usage or Usage(), fault)


def as_reply(value: ReplyLike) -> Reply:
    """The Reply that `value` is short for."""
    if isinstance(value, Reply):
        return value
    if isinstance(value, str | Text | ToolUse):
        return reply(value)
    if isinstance(value, Fault):
        return Reply(fault=value)
    raise ScriptFailed(
        f"a script gave {type(value).__name__}, which is not a reply",
        "return a Reply, a Text, a ToolUse, a fault or a string",
    )


Role = Literal["system", "user", "assistant", "tool"]

HIDDEN = "[hidden]"
"""Stands in for the value of a header that carries a key."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool gave back. `name` is empty where the wire format does not repeat it."""

    id: str
    text: str
    name: str = ""
    failed: bool = False


class Message(msgspec.Struct, frozen=True):
    """One entry of the conversation. Results of tools have the role `tool` in every format."""

    role: Role
    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


class Tool(msgspec.Struct, frozen=True):
    """A tool that the client offered, with its JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the model."""

    number: int
    """1 for the first call that this server saw."""
    wire: str
    """The name of its wire format."""
    path: str
    """With the query, except that a `key` in it is hidden."""
    headers: dict[str, str]
    """Names in lower case; values that carry a key are hidden."""
    body: bytes
    """Exactly what was sent, after any content encoding was undone."""
    model: str
    stream: bool
    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)

    @property
    def user_texts(self) -> tuple[str, ...]:
        return tuple(message.text for message in self.messages if message.role == "user")

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Every result in the conversation, oldest first."""
        return tuple(result for message in self.messages for result in message.tool_results)

    @property
    def turn(self) -> int:
        """How often the model has already spoken in this conversation."""
        roles = [message.role for message in self.messages]
        # Responses lists each part of one reply as an item of its own, so runs are counted.
        return sum(
            role == "assistant" and (index == 0 or roles[index - 1] != "assistant")
            for index, role in enumerate(roles)
        )

    def mentions(self, text: str) -> bool:
        """Whether `text` stands anywhere in what the model is shown."""
        shown = [self.system, *(message.text for message in self.messages)]
        shown += [tool.description for tool in self.tools]
        shown += [result.text for result in self.tool_results]
        return any(text in part for part in shown)


Script: TypeAlias = Callable[[Request], ReplyLike]
"""Called from the server's threads, perhaps from several at once."""
ScriptLike: TypeAlias = Script | Sequence[ReplyLike] | ReplyLike
Predicate: TypeAlias = Callable[[Request], bool]


def as_script(value: ScriptLike) -> Script:
    """The Script that `value` is short for: a list is used up in order, one reply is repeated."""
    if isinstance(value, Reply | Text | ToolUse | Fault | str):
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


_Entry = Reply | str
"""In JSON, a reply is an object with `parts`, or a string that is its text."""


class _Marked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    replies: list[_Entry]
    marker: str
    then: _Entry | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: list[_Marked] = []
    default: _Entry | None = None


def load_script(path: str) -> Script:
    """The script in a file.

    JSON: a list of replies, used up in order; or `{"rules": [{"marker": "…", "replies": […]}],
    "default": …}`, where a rule takes the conversations with its marker in the user's first
    message and replies by turn. Python: a file that sets `script`.
    """
    if not os.path.isfile(path):
        raise NotFound(f"there is no script at {path}", "give the path of a .json or .py file")
    if path.endswith(".py"):
        return _python(path)
    with open(path, "rb") as file:
        data = file.read()
    try:
        loaded: list[_Entry] | _File = msgspec.json.decode(data, type=list[_Entry] | _File)
    except msgspec.DecodeError as error:
        raise BadConfig(f"{path} is not a script: {error}", "see docs/testing.md") from error
    if isinstance(loaded, list):
        return Replies(loaded)
    rules = [(marked(rule.marker), Turns(rule.replies, then=rule.then)) for rule in loaded.rules]
    return Rules(*rules, default=loaded.default)


def _python(path: str) -> Script:
    names: dict[str, Any] = runpy.run_path(path)
    if "script" not in names:
        raise BadConfig(f"{path} sets no `script`", "end the file with `script = …`")
    return as_script(names["script"])
