"""The wire formats that the scripted model speaks, one file each.

Each module of this package has a `wire`, and is found by itself. Here is what they share: the
Protocol, an answer with its ids, and cutting it into pieces. Also what the server says to requests
that are no call of the model: agents ask for lists of models, count tokens and probe addresses
before they start; what they get is right in shape and does not come from the script.

A wire also refuses what its provider refuses, with the provider's status, words and shape: unknown
parameters, limits, the order of roles, calls without results. A client whose requests pass here and
fail there is the kind of fault that tests with a scripted model would hide.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from tacit.testing.script import Message, Reply, Request, Status, Tool, ToolUse


class Bad(Exception):
    """The provider would not take this request; the client gets the error that says why."""

    def __init__(
        self, message: str, code: int = 400, *, param: str | None = None, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.status = Status(code, message=message, param=param, kind=kind)


class Terms(msgspec.Struct, frozen=True):
    """What a server holds its clients to."""

    key: str = ""
    """The only key that it takes; empty for any."""
    output: int = 0
    """The most tokens that an answer may be allowed; 0 for what the model's name is known for."""
    window: int = 0
    """Tokens that the model can read, by four bytes each; 0 for the format's usual size."""
    models: tuple[str, ...] = ()
    """The models that there are; empty for any."""
    checked: bool = True
    """Whether requests are held to the provider's rules at all."""


# The most output of models, by how their names begin; the longest beginning counts.
_OUTPUT = {
    "claude-3-": 4_096, "claude-3-5-": 8_192, "claude-3-7-": 64_000, "claude-opus-4-": 32_000,
    "claude-opus-4-5": 64_000, "claude-sonnet-4": 64_000, "claude-haiku-4": 64_000,
    "gpt-3.5": 4_096, "gpt-4-": 4_096, "gpt-4o": 16_384, "gpt-4.1": 32_768, "gpt-5": 128_000,
    "o1": 100_000, "o3": 100_000, "o4": 100_000, "gemini-1.5": 8_192, "gemini-2.0": 8_192,
    "gemini-": 65_536,
}  # fmt: skip
_ANY_OUTPUT = 64_000


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A request as HTTP gave it, before its body is understood."""

    number: int
    path: str
    headers: dict[str, str]
    body: bytes
    route: str
    """The path without its query."""
    key: str = ""
    """The key that came with it; it goes no further."""
    terms: Terms = Terms()

    def output_limit(self, model: str) -> int:
        """The most tokens that an answer of `model` may be allowed."""
        fits = [name for name in _OUTPUT if model.startswith(name)]
        return self.terms.output or (_OUTPUT[max(fits, key=len)] if fits else _ANY_OUTPUT)

    def tokens_over(self, window: int) -> tuple[int, int] | None:
        """The prompt's tokens and the most there may be, where it has more than that."""
        tokens, most = len(self.body) // 4, self.terms.window or window
        return (tokens, most) if tokens > most else None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply on its way out, in which every tool call has an id."""

    request: Request
    reply: Reply
    created: int
    """Seconds since 1970."""

    @property
    def number(self) -> int:
        return self.request.number

    @property
    def model(self) -> str:
        return self.request.model

    def finish(self, words: dict[str, str]) -> str:
        """Why the reply ends, in a format's `words` for "", "tool", "length" and "filtered"."""
        return words[self.reply.finish or ("tool" if self.reply.tool_uses else "")]


class Wire(Protocol):
    """One provider's format. Its methods keep no state and may be called from any thread."""

    name: str

    def fits(self, route: str) -> bool:
        """Whether a POST to `route` is a call of the model in this format."""
        ...

    def read(self, envelope: Envelope) -> Request:
        """The request in one form. Raises Bad where the body breaks the format."""
        ...

    def check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        """Raise Bad where the provider would refuse the request."""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The body of a reply that is not streamed."""
        ...

    def stream(self, answer: Answer) -> list[bytes]:
        """The server-sent events of a streamed reply, one chunk each."""
        ...

    def error(self, status: Status) -> dict[str, Any]:
        """The body of an HTTP error."""
        ...

    # As it stands from here on, it is OpenAI's.

    def unknown_model(self, name: str) -> Bad:
        """The refusal of a model that there is not."""
        what = f"The model `{name}` does not exist or you do not have access to it."
        return Bad(what, 404, kind="model_not_found")

    # What is no call of the model.

    def lists(self, route: str, headers: dict[str, str]) -> bool:
        """Whether a question about models is in this format; where none says so, OpenAI's is."""
        return False

    def model_row(self, name: str, now: datetime) -> dict[str, Any]:
        """One model, as a list of models has it."""
        created = int(now.timestamp())
        return {"id": name, "object": "model", "created": created, "owned_by": "script"}

    def model_list(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "list", "data": rows}

    def count(self, route: str, tokens: int) -> dict[str, Any] | None:
        """The answer to a question for the count of tokens; None where `route` asks for none."""
        return None


@functools.cache
def wires() -> tuple[Wire, ...]:
    """The `wire` of each module in this package."""
    modules = [f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)]
    return tuple(importlib.import_module(module).wire for module in modules)


def read_request(wire: Wire, envelope: Envelope) -> Request:
    """The request in one form; whatever its body is, the only error is Bad."""
    try:
        if envelope.terms.checked:
            wire.check(envelope, decode(envelope.body))
        found, known = wire.read(envelope), envelope.terms.models
        if known and found.model not in known:
            raise wire.unknown_model(found.model)
        return found
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise Bad(f"the body does not have the shape of {wire.name}: {error}") from error


def answer_for(request: Request, reply: Reply, created: int) -> Answer:
    """Give every tool call without an id one that no other call on this server has."""
    parts = tuple(
        msgspec.structs.replace(part, id=f"call_{request.number}_{index}")
        if isinstance(part, ToolUse) and not part.id
        else part
        for index, part in enumerate(reply.parts)
    )
    whole = msgspec.structs.replace(reply, parts=parts)
    return Answer(request=request, reply=whole, created=created)


def decode(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Bad(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Bad("the body is not a JSON object")
    return value


def first_duplicate(names: Iterable[str]) -> str:
    """The first of `names` that was there before; empty where each is there once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def number_in(value: Any, least: float, most: float) -> bool:
    """Whether `value` is a number between the two; what is not given is in order."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (is_number and least <= value <= most)


def request(envelope: Envelope, wire: str, **fields: Any) -> Request:
    return Request(
        number=envelope.number,
        wire=wire,
        path=envelope.path,
        headers=envelope.headers,
        body=envelope.body,
        **fields,
    )


def tool(declared: dict[str, Any], schema: str) -> Tool:
    """A Tool from its declaration, whose JSON schema stands under the key `schema`."""
    return Tool(
        name=str(declared.get("name") or declared.get("type") or ""),
        description=str(declared.get("description") or ""),
        parameters=declared.get(schema) or {},
    )


def texts(content: Any) -> str:
    """The prose in a content value: a string, or a list of parts of which some carry text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    found = [part if isinstance(part, str) else part.get("text") for part in content]
    return "\n".join(text for text in found if isinstance(text, str))


def arguments_of(raw: Any) -> tuple[dict[str, Any], str | None]:
    """Arguments sent as a string of JSON: the object, or nothing and the string as it came."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, TypeError, ValueError):
        return {}, str(raw)
    return (value, None) if isinstance(value, dict) else ({}, str(raw))


def arguments_text(use: ToolUse) -> str:
    return use.raw if use.raw is not None else encode(use.arguments).decode()


def system_and_rest(messages: list[Message]) -> tuple[str, tuple[Message, ...]]:
    """Take the system messages out of a list that carries them among the others."""
    system = "\n".join(message.text for message in messages if message.role == "system")
    return system, tuple(message for message in messages if message.role != "system")


def pieces(text: str, most: int = 8) -> list[str]:
    """Cut `text` into at least two and at most `most` pieces, where it has that many letters."""
    size = max(1, min(-(-len(text) // 2), max(6, -(-len(text) // most))))
    return [text[start : start + size] for start in range(0, len(text), size)]


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(value) + b"\n\n"


class SideAnswer(msgspec.Struct, frozen=True):
    status: int
    body: Any = None


def side_answer(
    envelope: Envelope, method: str, models: Sequence[str], now: datetime
) -> SideAnswer:
    """What the server says to a request that is no call of the model."""
    path, route = envelope.path, envelope.route
    if not path.startswith("/"):  # CONNECT, or a whole URL: we are taken for a proxy
        return SideAnswer(403, {"error": {"message": f"no way out to {path} from here"}})
    if method == "HEAD" or (method == "GET" and route in ("", "/")):
        return SideAnswer(200, {"ok": True} if method == "GET" else None)
    body = None
    if method == "POST":
        # A quarter of the bytes: plausible, and the same for the same body.
        tokens = max(1, len(envelope.body) // 4)
        body = next(filter(None, (wire.count(route, tokens) for wire in wires())), None)
    elif method == "GET":
        body = _models(route, envelope.headers, models, now)
    if body is None:
        return SideAnswer(404, {"error": {"message": f"{method} {route} is not known here"}})
    return SideAnswer(200, body)


def _models(
    route: str, headers: dict[str, str], models: Sequence[str], now: datetime
) -> dict[str, Any] | None:
    """The list of models, or one of them; None where `route` asks for neither."""
    formats = {wire.name: wire for wire in wires()}
    meant = (wire for wire in formats.values() if wire.lists(route, headers))
    wire = next(meant, formats["openai-chat"])
    if route.endswith("/models"):
        return wire.model_list([wire.model_row(name, now) for name in models])
    head, _, name = route.rpartition("/")
    return wire.model_row(name, now) if head.endswith("/models") and name in models else None
