"""OpenAI Responses, as Codex and the newer OpenAI clients speak it."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

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
    arguments_of,
    arguments_text,
    decode,
    event,
    first_duplicate,
    openai_chat,
    pieces,
    request,
    system_and_rest,
    texts,
    tool,
)

_PARAMETERS = frozenset(
    {
        "access_programs", "background", "client_metadata", "context_management", "conversation",
        "image", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
        "metadata", "model", "moderation", "parallel_tool_calls", "previous_response_id", "prompt",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature",
        "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
    }
)  # fmt: skip
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_CALLS = ("function_call", "custom_tool_call")
_REASONING = ("gpt-5", "o1", "o3", "o4")
"""How the names of models begin that think first, and want to see that again with what followed."""
_THOUGHT = "r"
"""Stands before the number in the id of an item that followed a reasoning item."""


class OpenAIResponses(Wire):
    """POST …/responses"""

    name = "openai-responses"

    def fits(self, route: str) -> bool:
        return route.endswith("/responses")

    def read(self, envelope: Envelope) -> Request:
        body = decode(envelope.body)
        given = body.get("input", [])
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        if not isinstance(given, list):
            raise Bad("'input' is neither a string nor a list")
        messages = [message for entry in given if (message := _message(entry))]
        system, rest = system_and_rest(
            [Message("system", str(body.get("instructions") or "")), *messages]
        )
        return request(
            envelope,
            self.name,
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=system,
            messages=rest,
            tools=tuple(_tools(body.get("tools") or ())),
        )

    def check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        openai_chat.check_key(envelope)
        openai_chat.check_parameters(body, _PARAMETERS, "input")
        if (wanted := body.get("max_output_tokens")) is not None:
            openai_chat.check_limit("max_output_tokens", wanted, least=16)
            if wanted > (most := envelope.output_limit(str(body["model"]))):
                what = "Invalid 'max_output_tokens': integer above maximum value. Expected a value"
                raise Bad(
                    f"{what} <= {most}, but got {wanted} instead.",
                    param="max_output_tokens",
                    kind="integer_above_max_value",
                )
        openai_chat.check_tools(body, nested=False)
        if isinstance(body["input"], list):
            earlier = bool(body.get("previous_response_id"))
            _check_items(body["input"], earlier=earlier)
            if not earlier:
                _check_thoughts(body["input"])
        openai_chat.check_window(envelope)

    def whole(self, answer: Answer) -> dict[str, Any]:
        items = [_item(part, answer, index) for index, part in enumerate(answer.reply.parts)]
        items = [*_thoughts(answer), *items]
        cut = answer.reply.finish
        status = "incomplete" if cut else "completed"
        reason = {"length": "max_output_tokens", "filtered": "content_filter"}.get(cut)
        return {
            **_head(answer, status),
            "incomplete_details": {"reason": reason} if reason else None,
            "output": items,
            "usage": _usage(answer.reply.usage),
        }

    def stream(self, answer: Answer) -> list[bytes]:
        started = {**_head(answer, "in_progress"), "output": [], "usage": None}
        steps: list[dict[str, Any]] = [
            {"type": "response.created", "response": started},
            {"type": "response.in_progress", "response": started},
        ]
        thoughts = _thoughts(answer)
        for index, item in enumerate(thoughts):
            kinds = ("response.output_item.added", "response.output_item.done")
            steps += [{"type": kind, "output_index": index, "item": item} for kind in kinds]
        for number, part in enumerate(answer.reply.parts):
            item, index = _item(part, answer, number), number + len(thoughts)
            steps += _text_steps(part, item, index) if isinstance(part, Text) else []
            steps += _call_steps(part, item, index) if isinstance(part, ToolUse) else []
        whole = self.whole(answer)
        steps.append({"type": f"response.{whole['status']}", "response": whole})
        return [
            event({**step, "sequence_number": number}, step["type"])
            for number, step in enumerate(steps)
        ]

    def error(self, status: Status) -> dict[str, Any]:
        return openai_chat.wire.error(status)


def _message(entry: dict[str, Any]) -> Message | None:
    kind = entry.get("type", "message")
    if kind == "message":
        role = entry.get("role")
        if role in ("system", "developer"):
            return Message("system", texts(entry.get("content")))
        if role not in ("user", "assistant"):
            raise Bad(f"a message has the role {role!r}")
        return Message(role, texts(entry.get("content")))
    call_id = str(entry.get("call_id", ""))
    if kind == "function_call":
        arguments, raw = arguments_of(entry.get("arguments", ""))
        name = ".".join(filter(None, (entry.get("namespace"), entry.get("name", ""))))
        use = ToolUse(name, arguments, call_id, raw)
        return Message("assistant", tool_uses=(use,))
    if kind == "custom_tool_call":
        use = ToolUse(str(entry.get("name", "")), {"input": entry.get("input", "")}, call_id)
        return Message("assistant", tool_uses=(use,))
    if kind in ("function_call_output", "custom_tool_call_output"):
        return Message("tool", tool_results=(ToolResult(call_id, texts(entry.get("output"))),))
    return None  # reasoning, and items that a script has no use for


def _thinks(answer: Answer) -> bool:
    return answer.model.startswith(_REASONING) and bool(answer.reply.parts)


def _thoughts(answer: Answer) -> list[dict[str, Any]]:
    """The reasoning item of a model that thinks first."""
    if not _thinks(answer):
        return []
    told = {"id": f"rs_{answer.number}", "type": "reasoning", "summary": []}
    return [{**told, "encrypted_content": f"thoughts {answer.number}"}]


def _item(part: Part, answer: Answer, index: int) -> dict[str, Any]:
    mark = _THOUGHT if _thinks(answer) and index == 0 else ""
    if isinstance(part, Text):
        return {
            "id": f"msg_{mark}{answer.number}_{index}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [_content(part.text)],
        }
    return {
        "id": f"fc_{mark}{answer.number}_{index}",
        "type": "function_call",
        "status": "completed",
        "call_id": part.id,
        **_named(part.name),
        "arguments": arguments_text(part),
    }


def _tools(declared: Iterable[dict[str, Any]]) -> Iterator[Tool]:
    """The tools that were declared; one in a namespace is called `namespace.tool` here."""
    for entry in declared:
        if entry.get("type") == "namespace":
            for inner in entry.get("tools") or ():
                found = tool(inner, "parameters")
                yield msgspec.structs.replace(found, name=f"{entry.get('name')}.{found.name}")
        else:
            yield tool(entry, "parameters")


def _named(name: str) -> dict[str, str]:
    """How a call of a tool names it."""
    namespace, _, own = name.rpartition(".")
    return {"name": own, "namespace": namespace} if namespace else {"name": name}


def _content(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _text_steps(part: Text, item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    open_item = {**item, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": open_item},
        {"type": "response.content_part.added", **place, "part": _content("")},
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in pieces(part.text)
        ),
        {"type": "response.output_text.done", **place, "text": part.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": _content(part.text)},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _call_steps(part: ToolUse, item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index}
    kind = "response.function_call_arguments"
    text = arguments_text(part)
    open_item = {**item, "status": "in_progress", "arguments": ""}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": open_item},
        *({"type": f"{kind}.delta", **place, "delta": piece} for piece in pieces(text)),
        {"type": f"{kind}.done", **place, "name": part.name, "arguments": text},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _head(answer: Answer, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _check_items(items: list[dict[str, Any]], *, earlier: bool) -> None:
    """The input; with an `earlier` response at the server, its calls are not seen here."""
    for index, item in enumerate(items):
        _check_item(item, f"input[{index}]")
    if twice := first_duplicate(str(item["id"]) for item in items if item.get("id")):
        what = f"Duplicate item found with id {twice}."
        raise Bad(f"{what} Remove duplicate items from your input and try again.", param="input")
    calls = [str(item.get("call_id")) for item in items if item.get("type") in _CALLS]
    outputs = [
        str(item.get("call_id")) for item in items if item.get("type") in _outputs_of(_CALLS)
    ]
    if twice := first_duplicate(calls) or first_duplicate(outputs):
        raise Bad(f"Duplicate call_id in the input: {twice}.", param="input")
    if lost := [name for name in outputs if name not in calls and not earlier]:
        raise Bad(f"No tool call found for function call output with call_id {lost[0]}.")
    if unanswered := [name for name in calls if name not in outputs]:
        raise Bad(f"No tool output found for function call {unanswered[0]}.", param="input")


def _check_thoughts(items: list[dict[str, Any]]) -> None:
    """A reasoning item and what followed it come together, or neither comes."""
    for item, after in zip(items, [*items[1:], {}], strict=True):
        follows = after.get("type") in ("reasoning", *_CALLS) or after.get("role") == "assistant"
        if item.get("type") == "reasoning" and not follows:
            what = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required"
            raise Bad(f"{what} following item.", param="input")
    given = {str(item.get("id")) for item in items}
    for item in items:
        _, _, number = str(item.get("id") or "").partition(f"_{_THOUGHT}")
        wanted = f"rs_{number.partition('_')[0]}"
        if number and wanted not in given:
            kind = item.get("type", "message")
            what = f"Item '{item['id']}' of type '{kind}' was provided without its required"
            raise Bad(f"{what} 'reasoning' item: '{wanted}'.", param="input")


def _outputs_of(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}_output" for kind in kinds)


def _check_item(item: dict[str, Any], place: str) -> None:
    kind = item.get("type", "message")
    prefix, given = _PREFIXES.get(kind), item.get("id")
    if prefix and given and not str(given).startswith(prefix):
        what = f"Invalid '{place}.id': '{given}'. Expected an ID that begins with '{prefix}'."
        raise Bad(what, param=f"{place}.id", kind="invalid_value")
    if kind in (*_CALLS, *_outputs_of(_CALLS)):
        call_id = str(item.get("call_id") or "")
        if not call_id:
            what = f"Missing required parameter: '{place}.call_id'."
            raise Bad(what, param=f"{place}.call_id", kind="missing_required_parameter")
        openai_chat.check_length(f"{place}.call_id", call_id, 64)
    if kind == "function_call":
        openai_chat.check_name(f"{place}.name", item.get("name"))
        openai_chat.check_arguments(f"{place}.arguments", item.get("arguments"))
    elif kind == "message":
        _check_content(item, place)


def _check_content(item: dict[str, Any], place: str) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in ("assistant", "system", "developer", "user"):
        what = "Supported values are: 'assistant', 'system', 'developer', and 'user'."
        raise Bad(f"Invalid value: '{role}'. {what}", param=f"{place}.role", kind="invalid_value")
    if not content:
        what = f"Invalid '{place}.content': it is empty."
        raise Bad(what, param=f"{place}.content", kind="invalid_value")
    allowed = ("output_text", "refusal") if role == "assistant" else ("input_",)
    for part in content if isinstance(content, list) else ():
        if not str(part.get("type")).startswith(allowed):
            what = f"Invalid value: '{part.get('type')}'. Supported values are: "
            raise Bad(what + ", ".join(allowed), param=f"{place}.content", kind="invalid_value")


wire = OpenAIResponses()
