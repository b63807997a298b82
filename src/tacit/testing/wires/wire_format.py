"""What the wire formats share: the Protocol, an answer with its ids, and cutting it into pieces.

Also what the server says to requests that are no call of the model: agents ask for lists of models,
count tokens and probe addresses before they start; what they get is right in shape and does not
come from the script.
"""

from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec

from tacit.testing.script import Message, Reply, Request, Status, Tool, ToolUse, WireName

if TYPE_CHECKING:
    from tacit.testing.server import ModelServer


class Bad(Exception):
    """The request breaks its wire format; the client gets a 400 that says how."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A request as HTTP gave it, before its body is understood."""

    number: int
    path: str
    headers: dict[str, str]
    body: bytes
    route: str
    """The path without its query."""


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


class Wire(Protocol):
    """One provider's format. Its methods keep no state and may be called from any thread."""

    name: WireName

    def fits(self, route: str) -> bool:
        """Whether a POST to `route` is a call of the model in this format."""
        ...

    def read(self, envelope: Envelope) -> Request:
        """The request in one form. Raises Bad where the body breaks the format."""
        ...

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The body of a reply that is not streamed."""
        ...

    def stream(self, answer: Answer) -> list[bytes]:
        """The server-sent events of a streamed reply, one chunk each."""
        ...

    def error(self, status: Status) -> dict[str, Any]:
        """The body of an HTTP error."""
        ...


def read_request(wire: Wire, envelope: Envelope) -> Request:
    """The request in one form; whatever its body is, the only error is Bad."""
    try:
        return wire.read(envelope)
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


def request(envelope: Envelope, wire: WireName, **fields: Any) -> Request:
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
    method: str, path: str, headers: dict[str, str], body: bytes, model: "ModelServer"
) -> SideAnswer:
    route = urlsplit(path).path
    if not path.startswith("/"):  # CONNECT, or a whole URL: we are taken for a proxy
        return SideAnswer(403, {"error": {"message": f"no way out to {path} from here"}})
    if method == "POST":
        return _count_tokens(route, body) or _unknown(method, route)
    if method == "HEAD" or (method == "GET" and route in ("", "/")):
        return SideAnswer(200, {"ok": True} if method == "GET" else None)
    if method == "GET":
        return _list_models(route, headers, model) or _unknown(method, route)
    return _unknown(method, route)


def _count_tokens(route: str, body: bytes) -> SideAnswer | None:
    """Tokens estimated as a quarter of the bytes: plausible, and the same for the same body."""
    tokens = max(1, len(body) // 4)
    if route.endswith("/messages/count_tokens"):
        return SideAnswer(200, {"input_tokens": tokens})
    if route.endswith(":countTokens"):
        return SideAnswer(200, {"totalTokens": tokens})
    return None


def _list_models(route: str, headers: dict[str, str], model: "ModelServer") -> SideAnswer | None:
    if not route.endswith("/models"):
        head, _, name = route.rpartition("/")
        if not head.endswith("/models"):
            return None
        described = _describe_model(head, name, headers, model)
        return SideAnswer(200, described) if name in model.models else None
    rows = [_describe_model(route, name, headers, model) for name in model.models]
    if _gemini(route, headers):
        return SideAnswer(200, {"models": rows})
    if "anthropic-version" in headers:
        ends = {"first_id": model.models[0], "last_id": model.models[-1]} if rows else {}
        return SideAnswer(200, {"data": rows, "has_more": False, **ends})
    return SideAnswer(200, {"object": "list", "data": rows})


def _describe_model(
    route: str, name: str, headers: dict[str, str], model: "ModelServer"
) -> dict[str, Any]:
    now = model.clock.now()
    if _gemini(route, headers):
        return {
            "name": f"models/{name}",
            "displayName": name,
            "inputTokenLimit": 200_000,
            "outputTokenLimit": 8_192,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
    if "anthropic-version" in headers:
        when = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"type": "model", "id": name, "display_name": name, "created_at": when}
    return {"id": name, "object": "model", "created": int(now.timestamp()), "owned_by": "script"}


def _gemini(route: str, headers: dict[str, str]) -> bool:
    return "x-goog-api-key" in headers or "/v1beta" in route


def _unknown(method: str, route: str) -> SideAnswer:
    return SideAnswer(404, {"error": {"message": f"{method} {route} is not known here"}})
