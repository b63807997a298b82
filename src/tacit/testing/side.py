"""What the server says to requests that are no call of the model.

Agents ask for lists of models, count tokens and knock on doors before they start; what they get
here is right in shape and free of the script.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from tacit.testing.server import ModelServer


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
        return _count(route, body) or _unknown(method, route)
    if method == "HEAD" or (method == "GET" and route in ("", "/")):
        return SideAnswer(200, {"ok": True} if method == "GET" else None)
    if method == "GET":
        return _models(route, headers, model) or _unknown(method, route)
    return _unknown(method, route)


def _count(route: str, body: bytes) -> SideAnswer | None:
    """Tokens estimated as a quarter of the bytes: plausible, and the same for the same body."""
    tokens = max(1, len(body) // 4)
    if route.endswith("/messages/count_tokens"):
        return SideAnswer(200, {"input_tokens": tokens})
    if route.endswith(":countTokens"):
        return SideAnswer(200, {"totalTokens": tokens})
    return None


def _models(route: str, headers: dict[str, str], model: "ModelServer") -> SideAnswer | None:
    if not route.endswith("/models"):
        head, _, name = route.rpartition("/")
        if not head.endswith("/models"):
            return None
        described = _describe(head, name, headers, model)
        return SideAnswer(200, described) if name in model.models else None
    rows = [_describe(route, name, headers, model) for name in model.models]
    if _gemini(route, headers):
        return SideAnswer(200, {"models": rows})
    if "anthropic-version" in headers:
        ends = {"first_id": model.models[0], "last_id": model.models[-1]} if rows else {}
        return SideAnswer(200, {"data": rows, "has_more": False, **ends})
    return SideAnswer(200, {"object": "list", "data": rows})


def _describe(
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
