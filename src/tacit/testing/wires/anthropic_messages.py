"""Anthropic Messages, as Claude Code and the Anthropic clients speak it."""

import re
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
    first_duplicate,
    number_in,
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
_WINDOW = 200_000
_LARGEST = 32 * 1024 * 1024
_PARAMETERS = frozenset(
    {
        "cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages",
        "metadata", "model", "output_config", "service_tier", "speed", "stop_sequences", "stream",
        "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
        "user_profile_id", "workspace_id",
    }
)  # fmt: skip
_ID = "^[a-zA-Z0-9_-]+$"
_NAME = "^[a-zA-Z0-9_-]{1,128}$"
_PROPERTY = "^[a-zA-Z0-9_.-]{1,64}$"
# Models that want the conversation to end with the user.
_NO_PREFILL = re.compile(r"^claude-(opus-4-[6-9]|sonnet-4-[6-9]|\w+-5)")


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

    def check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        _check_caller(envelope)
        _check_parameters(envelope, body)
        _check_tools(body)
        _check_thinking(body)
        if not _has_beta(envelope):
            _check_roles(body["messages"])
        _check_messages(body)
        if over := envelope.tokens_over(_WINDOW):
            raise Bad(f"prompt is too long: {over[0]} tokens > {over[1]} maximum")

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
        kind = status.kind or _ERRORS.get(status.code, "api_error")
        return {"type": "error", "error": {"type": kind, "message": status.message}}

    def unknown_model(self, name: str) -> Bad:
        return Bad(f"model: {name}", 404)

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


def _check_caller(envelope: Envelope) -> None:
    wanted = envelope.terms.key
    if not envelope.key:
        raise Bad("x-api-key header is required", 401)
    if wanted and envelope.key != wanted:
        raise Bad("invalid x-api-key", 401)
    if "anthropic-version" not in envelope.headers:
        raise Bad("anthropic-version: header is required")
    if len(envelope.body) > _LARGEST:
        raise Bad("Request exceeds the maximum size", 413)


def _check_parameters(envelope: Envelope, body: dict[str, Any]) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Bad(f"{name}: Field required")
    # A beta that the client asks for by a header may add parameters of its own.
    unknown = sorted(set(body) - _PARAMETERS)
    if unknown and not _has_beta(envelope):
        raise Bad(f"{unknown[0]}: Extra inputs are not permitted")
    model, wanted = str(body["model"]), body["max_tokens"]
    most = envelope.output_limit(model)
    if not isinstance(wanted, int) or wanted < 1:
        raise Bad("max_tokens: Input should be greater than or equal to 1")
    if wanted > most:
        allowed = f"which is the maximum allowed number of output tokens for {model}"
        raise Bad(f"max_tokens: {wanted} > {most}, {allowed}")
    for name in ("temperature", "top_p"):
        if not number_in(body.get(name), 0, 1):
            raise Bad(f"{name}: range: 0..1")
    if body.get("temperature") is not None and body.get("top_p") is not None:
        both = "`temperature` and `top_p` cannot both be specified for this model"
        raise Bad(f"{both}. Please use only one.")
    marks = envelope.body.count(b'"cache_control"')
    if marks > 4:
        raise Bad(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    if body.get("tool_choice") and not tools:
        raise Bad("tool_choice: tool_choice may only be specified while providing tools")
    if first_duplicate(str(entry.get("name")) for entry in tools):
        raise Bad("tools: Tool names must be unique.")
    for index, entry in enumerate(tools):
        place = f"tools.{index}.custom"
        if not re.match(_NAME, str(entry.get("name", ""))):
            raise Bad(f"{place}.name: String should match pattern '{_NAME}'")
        if entry.get("type", "custom") != "custom":
            continue  # a tool of the provider's own has no schema
        schema = entry.get("input_schema")
        if not isinstance(schema, dict):
            raise Bad(f"{place}.input_schema: Field required")
        if schema.get("type") != "object":
            raise Bad(f"{place}.input_schema.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"} & set(schema):
            what = "input_schema does not support oneOf, allOf, or anyOf at the top level"
            raise Bad(f"{place}.input_schema: {what}")
        if not all(re.match(_PROPERTY, name) for name in schema.get("properties") or ()):
            what = f"Property keys should match pattern '{_PROPERTY}'"
            raise Bad(f"{place}.input_schema.properties: {what}")


def _check_thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        least = "Input should be greater than or equal to 1024"
        raise Bad(f"thinking.enabled.budget_tokens: {least}")
    if body["max_tokens"] <= budget:
        raise Bad("`max_tokens` must be greater than `thinking.budget_tokens`")
    if body.get("temperature") not in (None, 1):
        raise Bad("`temperature` may only be set to 1 when thinking is enabled")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Bad("Thinking may not be enabled when tool_choice forces tool use.")


def _check_messages(body: dict[str, Any]) -> None:
    entries = body["messages"]
    if not isinstance(entries, list) or not entries:
        raise Bad("messages: at least one message is required")
    _check_texts("system", _blocks(body.get("system") or []))
    for index, entry in enumerate(entries):
        if set(entry) - {"role", "content"}:
            extra = min(set(entry) - {"role", "content"})
            raise Bad(f"messages.{index}.{extra}: Extra inputs are not permitted")
        _check_content(index, entry, last=index == len(entries) - 1)
    if entries[0].get("role") != "user":
        raise Bad('messages: first message must use the "user" role')
    _check_last(str(body["model"]), entries[-1])
    used = [b for entry in entries for b in _of_kind(entry, "tool_use")]
    if used and not body.get("tools"):
        raise Bad("Requests which include `tool_use` or `tool_result` blocks must define tools")
    if first_duplicate(str(block.get("id")) for block in used):
        raise Bad("messages: `tool_use` ids must be unique")
    for index, entry in enumerate(entries):
        _check_results(index, entry, entries[index - 1] if index else {})
        _check_calls(index, entry, entries[index + 1] if index + 1 < len(entries) else {})


def _check_roles(entries: list[dict[str, Any]]) -> None:
    if any(entry.get("role") == "system" for entry in entries):
        what = 'Unexpected role "system". The Messages API accepts a top-level `system` parameter'
        raise Bad(f'messages: {what}, not "system" as an input message role.')


def _has_beta(envelope: Envelope) -> bool:
    return "anthropic-beta" in envelope.headers


def _check_content(index: int, entry: dict[str, Any], *, last: bool) -> None:
    role, content = entry.get("role"), entry.get("content")
    if role not in ("user", "assistant", "system"):
        raise Bad(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    if not content and not (last and role == "assistant"):
        what = "all messages must have non-empty content except for the optional final assistant"
        raise Bad(f"messages.{index}: {what} message")
    _check_texts("messages", _blocks(content))
    for number, block in enumerate(_blocks(content)):
        place = f"messages.{index}.content.{number}.{block.get('type')}"
        if block.get("type") == "tool_use":
            if not re.match(_ID, str(block.get("id", ""))):
                raise Bad(f"{place}.id: String should match pattern '{_ID}'")
            if not isinstance(block.get("input"), dict):
                raise Bad(f"{place}.input: Input should be a valid dictionary")
        if block.get("type") == "tool_result" and role != "user":
            raise Bad(f"messages.{index}: `tool_result` blocks can only be in `user` messages")


def _check_texts(where: str, blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        if block.get("type") != "text":
            continue
        text = block.get("text")
        if not isinstance(text, str) or not text:
            raise Bad(f"{where}: text content blocks must be non-empty")
        if not text.strip():
            raise Bad(f"{where}: text content blocks must contain non-whitespace text")


def _check_last(model: str, entry: dict[str, Any]) -> None:
    if entry.get("role") != "assistant":
        return
    if _NO_PREFILL.match(model):
        what = "This model does not support assistant message prefill."
        raise Bad(f"{what} The conversation must end with a user message.")
    blocks = _blocks(entry.get("content"))
    text = str(blocks[-1].get("text") or "") if blocks else ""
    if text != text.rstrip():
        raise Bad("messages: final assistant content cannot end with trailing whitespace")


def _check_results(index: int, entry: dict[str, Any], before: dict[str, Any]) -> None:
    """Each result has its call in the message before, and no two are of one."""
    found = [str(block.get("tool_use_id")) for block in _of_kind(entry, "tool_result")]
    calls = {str(block.get("id")) for block in _of_kind(before, "tool_use")}
    for number, name in enumerate(found):
        if name not in calls:
            raise Bad(
                f"messages.{index}.content.{number}: unexpected `tool_use_id` found in"
                f" `tool_result` blocks: {name}. Each `tool_result` block must have a"
                " corresponding `tool_use` block in the previous message."
            )
    if twice := first_duplicate(found):
        what = "each `tool_use` must have a single result. Found multiple `tool_result` blocks"
        raise Bad(f"messages.{index}.content: {what} with id: {twice}")


def _check_calls(index: int, entry: dict[str, Any], after: dict[str, Any]) -> None:
    """Each call has its result at the beginning of the message after."""
    calls = [str(block.get("id")) for block in _of_kind(entry, "tool_use")]
    answered: set[str] = set()
    for block in _blocks(after.get("content")):
        if block.get("type") != "tool_result":
            break
        answered.add(str(block.get("tool_use_id")))
    if open_calls := [name for name in calls if name not in answered]:
        raise Bad(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately"
            f" after: {', '.join(open_calls)}. Each `tool_use` block must have a corresponding"
            " `tool_result` block in the next message."
        )


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _of_kind(entry: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in _blocks(entry.get("content")) if block.get("type") == kind]


wire = Anthropic()
