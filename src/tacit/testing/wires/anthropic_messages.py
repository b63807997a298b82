"""Anthropic Messages, as Claude Code and the Anthropic clients speak it."""

from datetime import datetime
from typing import Any

from tacit.testing.script import (
    Message,
    Request,
    Status,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)
from tacit.testing.wires import (
    Answer,
    Bad,
    Envelope,
    Wire,
    arguments_text,
    decode,
    event,
    pieces,
    request,
    system_and_rest,
    texts,
    tool,
)

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_FINISHES = {
    "": "end_turn",
    "tool": "tool_use",
    "length": "max_tokens",
    "filtered": "refusal",
}


class Anthropic(Wire):
    """POST …/messages"""

    name = "anthropic"

    def fits(self, route: str) -> bool:
        return route.endswith("/messages")

    def read(self, envelope: Envelope) -> Request:
        body = decode(envelope.body)
        if not isinstance(body.get("messages"), list):
            raise Bad("'messages' is not a list")
        system, messages = system_and_rest(
            [
                Message("system", texts(body.get("system"))),
                *(message for entry in body["messages"] for message in _messages(entry)),
            ]
        )
        return request(
            envelope,
            self.name,
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=system,
            messages=messages,
            tools=tuple(tool(entry, "input_schema") for entry in body.get("tools") or ()),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        content: list[dict[str, Any]] = [
            {"type": "text", "text": part.text} if isinstance(part, Text) else _call(part)
            for part in answer.reply.parts
        ]
        return {
            **_head(answer),
            "content": content,
            "stop_reason": answer.finish(_FINISHES),
            "stop_sequence": None,
            "usage": _usage(answer.reply.usage),
        }

    def stream(self, answer: Answer) -> list[bytes]:
        usage = _usage(answer.reply.usage)
        opening = {
            **_head(answer),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        }
        steps: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
        for index, part in enumerate(answer.reply.parts):
            steps += _block_steps(part, index)
            if index == 0:
                steps.append({"type": "ping"})
        delta = {"stop_reason": answer.finish(_FINISHES), "stop_sequence": None}
        steps.append({"type": "message_delta", "delta": delta, "usage": usage})
        steps.append({"type": "message_stop"})
        return [event(step, step["type"]) for step in steps]

    def error(self, status: Status) -> dict[str, Any]:
        kind = _ERRORS.get(status.code, "api_error")
        return {"type": "error", "error": {"type": kind, "message": status.message}}

    def lists(self, route: str, headers: dict[str, str]) -> bool:
        return "anthropic-version" in headers

    def model_row(self, name: str, now: datetime) -> dict[str, Any]:
        when = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"type": "model", "id": name, "display_name": name, "created_at": when}

    def model_list(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
        return {"data": rows, "has_more": False, **ends}

    def count(self, route: str, tokens: int) -> dict[str, Any] | None:
        return {"input_tokens": tokens} if route.endswith("/messages/count_tokens") else None


def _messages(entry: dict[str, Any]) -> list[Message]:
    """One entry may carry both results of tools and words of the user: two messages here."""
    role, content = entry.get("role"), entry.get("content")
    if role not in ("user", "assistant", "system"):
        raise Bad(f"a message has the role {role!r}")
    blocks: list[dict[str, Any]]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = texts([block for block in blocks if block.get("type") == "text"])
    if role == "assistant":
        uses = tuple(
            ToolUse(block.get("name", ""), block.get("input") or {}, block.get("id", ""))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        return [Message("assistant", text, uses)]
    results = tuple(
        ToolResult(
            id=str(block.get("tool_use_id", "")),
            text=texts(block.get("content")),
            failed=bool(block.get("is_error")),
        )
        for block in blocks
        if block.get("type") == "tool_result"
    )
    found = [Message("tool", tool_results=results)] if results else []
    return found + ([Message(role, text)] if text or not results else [])


def _call(use: ToolUse) -> dict[str, Any]:
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments}


def _block_steps(part: Text | ToolUse, index: int) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(part.text)]
    else:
        block = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
        text = arguments_text(part)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
        deltas.insert(0, {"type": "input_json_delta", "partial_json": ""})
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _head(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    # Anthropic counts what came from the cache apart from the other input.
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


wire = Anthropic()
