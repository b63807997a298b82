"""OpenAI Chat Completions, as OpenAI itself and every compatible server speak it."""

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
    arguments_of,
    arguments_text,
    decode,
    event,
    pieces,
    request,
    system_and_rest,
    texts,
    tool,
)

_ERRORS = {401: "authentication_error", 429: "rate_limit_error"}
_FINISHES = {
    "": "stop",
    "tool": "tool_calls",
    "length": "length",
    "filtered": "content_filter",
}


class OpenAIChat(Wire):
    """POST …/chat/completions"""

    name = "openai-chat"

    def fits(self, route: str) -> bool:
        return route.endswith("/chat/completions")

    def read(self, envelope: Envelope) -> Request:
        body = decode(envelope.body)
        if not isinstance(body.get("messages"), list):
            raise Bad("'messages' is not a list")
        system, messages = system_and_rest([_message(entry) for entry in body["messages"]])
        return request(
            envelope,
            self.name,
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=system,
            messages=messages,
            tools=tuple(
                tool(entry.get("function") or entry, "parameters")
                for entry in body.get("tools") or ()
            ),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        reply = answer.reply
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool_uses:
            message["tool_calls"] = [
                {
                    "id": use.id,
                    "type": "function",
                    "function": {"name": use.name, "arguments": arguments_text(use)},
                }
                for use in reply.tool_uses
            ]
        choice = {"index": 0, "message": message, "finish_reason": answer.finish(_FINISHES)}
        return {
            **_head(answer, "chat.completion"),
            "choices": [choice],
            "usage": _usage(reply.usage),
        }

    def stream(self, answer: Answer) -> list[bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        index = 0
        for part in answer.reply.parts:
            if isinstance(part, Text):
                deltas += [{"content": piece} for piece in pieces(part.text)]
            else:
                deltas += [{"tool_calls": [call]} for call in _call_deltas(part, index)]
                index += 1
        head = _head(answer, "chat.completion.chunk")
        options = answer.request.json.get("stream_options")
        counted = isinstance(options, dict) and bool(options.get("include_usage"))
        if counted:
            head["usage"] = None
        events = [
            event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            for delta in deltas
        ]
        last = {"index": 0, "delta": {}, "finish_reason": answer.finish(_FINISHES)}
        events.append(event({**head, "choices": [last]}))
        if counted:
            events.append(event({**head, "choices": [], "usage": _usage(answer.reply.usage)}))
        events.append(b"data: [DONE]\n\n")
        return events

    def error(self, status: Status) -> dict[str, Any]:
        kind = _ERRORS.get(status.code)
        kind = kind or ("server_error" if status.code >= 500 else "invalid_request_error")
        return {
            "error": {"message": status.message, "type": kind, "param": None, "code": kind},
        }


def _message(entry: dict[str, Any]) -> Message:
    role, text = entry.get("role"), texts(entry.get("content"))
    if role in ("system", "developer"):
        return Message("system", text)
    if role == "tool":
        result = ToolResult(str(entry.get("tool_call_id", "")), text, str(entry.get("name") or ""))
        return Message("tool", tool_results=(result,))
    if role == "assistant":
        uses = []
        for call in entry.get("tool_calls") or ():
            function = call.get("function") or {}
            arguments, raw = arguments_of(function.get("arguments", ""))
            name, call_id = str(function.get("name", "")), str(call.get("id", ""))
            uses.append(ToolUse(name, arguments, call_id, raw))
        return Message("assistant", text, tuple(uses))
    if role == "user":
        return Message("user", text)
    raise Bad(f"a message has the role {role!r}")


def _call_deltas(use: ToolUse, index: int) -> list[dict[str, Any]]:
    function = {"name": use.name, "arguments": ""}
    opening = {"index": index, "id": use.id, "type": "function", "function": function}
    rest = [
        {"index": index, "function": {"arguments": piece}} for piece in pieces(arguments_text(use))
    ]
    return [opening, *rest]


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": kind,
        "created": answer.created,
        "model": answer.model,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


wire = OpenAIChat()
