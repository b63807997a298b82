"""Gemini generateContent, as Gemini CLI and the Google client speak it."""

import re
from datetime import datetime
from typing import Any

from tacit.testing.script import (
    Message,
    Part,
    Request,
    Status,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Usage,
)
from tacit.testing.wires import (
    Answer,
    Bad,
    Envelope,
    Wire,
    decode,
    encode,
    event,
    pieces,
    request,
    texts,
)

_ROUTE = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)$")
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_FINISHES = {"": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"}


class Gemini(Wire):
    """POST …/models/MODEL:generateContent and :streamGenerateContent?alt=sse"""

    name = "gemini"

    def fits(self, route: str) -> bool:
        return _ROUTE.search(route) is not None

    def read(self, envelope: Envelope) -> Request:
        match = _ROUTE.search(envelope.route)
        if match is None:
            raise Bad(f"{envelope.route} names no model")
        if match[2] == "streamGenerateContent" and "alt=sse" not in envelope.path:
            raise Bad("only server-sent events are spoken here: add ?alt=sse")
        body = decode(envelope.body)
        if not isinstance(body.get("contents"), list):
            raise Bad("'contents' is not a list")
        instruction = body.get("systemInstruction") or body.get("system_instruction") or {}
        return request(
            envelope,
            self.name,
            model=match[1],
            stream=match[2] == "streamGenerateContent",
            system=texts(instruction if isinstance(instruction, str) else instruction.get("parts")),
            messages=tuple(message for entry in body["contents"] for message in _messages(entry)),
            tools=tuple(found for entry in body.get("tools") or () for found in _tools(entry)),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        parts = [_part(part) for part in answer.reply.parts]
        return _response(answer, parts, last=True)

    def stream(self, answer: Answer) -> list[bytes]:
        parts: list[dict[str, Any]] = []
        for part in answer.reply.parts:
            # A call comes whole, as from Google: only prose is cut.
            parts += (
                [{"text": piece} for piece in pieces(part.text)]
                if isinstance(part, Text)
                else [_part(part)]
            )
        # The last event carries the reason to stop, and may carry no words.
        groups = [[part] for part in parts] or [[]]
        return [
            event(_response(answer, group, last=index == len(groups) - 1))
            for index, group in enumerate(groups)
        ]

    def error(self, status: Status) -> dict[str, Any]:
        error: dict[str, Any] = {
            "code": status.code,
            "message": status.message,
            "status": _ERRORS.get(status.code, "UNKNOWN"),
        }
        if status.retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{status.retry_after:g}s"}]
        return {"error": error}

    def lists(self, route: str, headers: dict[str, str]) -> bool:
        return "x-goog-api-key" in headers or "/v1beta" in route

    def model_row(self, name: str, now: datetime) -> dict[str, Any]:
        return {
            "name": f"models/{name}",
            "displayName": name,
            "inputTokenLimit": 200_000,
            "outputTokenLimit": 8_192,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }

    def model_list(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"models": rows}

    def count(self, route: str, tokens: int) -> dict[str, Any] | None:
        return {"totalTokens": tokens} if route.endswith(":countTokens") else None


def _messages(entry: dict[str, Any]) -> list[Message]:
    role, parts = entry.get("role", "user"), entry.get("parts") or []
    text = texts([part for part in parts if not part.get("thought")])
    if role == "model":
        uses = tuple(
            ToolUse(str(call.get("name", "")), call.get("args") or {}, str(call.get("id") or ""))
            for part in parts
            if (call := part.get("functionCall"))
        )
        return [Message("assistant", text, uses)]
    if role not in ("user", "function", "tool"):
        raise Bad(f"a content has the role {role!r}")
    results = tuple(
        _result(given) for part in parts if (given := part.get("functionResponse")) is not None
    )
    found = [Message("tool", tool_results=results)] if results else []
    return found + ([Message("user", text)] if text or not results else [])


def _result(given: dict[str, Any]) -> ToolResult:
    response = given.get("response") or {}
    failed = isinstance(response, dict) and "error" in response
    values = list(response.values()) if isinstance(response, dict) else [response]
    # Clients wrap prose as {"output": "…"}; anything else is shown as the JSON it is.
    plain = len(values) == 1 and isinstance(values[0], str)
    text = values[0] if plain else encode(response).decode()
    return ToolResult(str(given.get("id") or ""), text, str(given.get("name", "")), failed)


def _tools(entry: dict[str, Any]) -> list[Tool]:
    declared = entry.get("functionDeclarations") or entry.get("function_declarations") or ()
    return [
        Tool(
            name=str(one.get("name", "")),
            description=str(one.get("description") or ""),
            parameters=one.get("parametersJsonSchema") or one.get("parameters") or {},
        )
        for one in declared
    ]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"functionCall": {"id": part.id, "name": part.name, "args": part.arguments}}


def _response(answer: Answer, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = answer.finish(_FINISHES)
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(answer.reply.usage),
        "modelVersion": answer.model,
        "responseId": f"resp-{answer.number}",
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
    }


wire = Gemini()
