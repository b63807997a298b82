"""What the scripted model says in one reply, and how a reply can fail on the wire.

`script.py` decides which reply a request gets; `wires/` and `listener.py` put it on the wire.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from tacit.base.errors import TacitError


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


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """The connection is dropped. With 0 chunks, before the headers."""

    after_chunks: int = 1


class Garbage(msgspec.Struct, frozen=True, tag="garbage"):
    """Bytes that mean nothing, in place of the rest of the reply; the status is still 200."""

    after_chunks: int = 0
    data: bytes = b'data: {"\xff\xfe half a thing\n\n'


Part: TypeAlias = Text | ToolUse
Fault: TypeAlias = Stall | Status | Cut | Garbage


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
    if isinstance(value, Stall | Status | Cut | Garbage):
        return Reply(fault=value)
    raise ScriptFailed(
        f"a script gave {type(value).__name__}, which is not a reply",
        "return a Reply, a Text, a ToolUse, a fault or a string",
    )
