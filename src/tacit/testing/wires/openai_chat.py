"""OpenAI Chat Completions, as OpenAI itself and every compatible server speak it."""

import re
from collections.abc import Sequence
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
    first_duplicate,
    number_in,
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
_WINDOW = 128_000
_PARAMETERS = frozenset(
    {
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
        "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model",
        "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
        "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
        "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
        "verbosity", "web_search_options",
    }
)  # fmt: skip
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_NAME = "^[a-zA-Z0-9_-]+$"
_REASONING = re.compile(r"^(o\d|gpt-5(?!.*chat))")


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

    def check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        check_key(envelope)
        check_parameters(body, _PARAMETERS, "messages")
        _check_limits(envelope, body)
        check_tools(body, nested=True)
        _check_messages(body["messages"])
        check_window(envelope)

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
        code = status.kind or (kind if status.code != 400 else None)
        return {
            "error": {
                "message": status.message,
                "type": kind,
                "param": status.param,
                "code": code,
            },
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


def check_key(envelope: Envelope) -> None:
    """Servers of one's own often want no key; where one is wanted, it has to be that."""
    if envelope.terms.key and envelope.key != envelope.terms.key:
        shown = f"{envelope.key[:4]}***" if envelope.key else "none"
        raise Bad(f"Incorrect API key provided: {shown}.", 401, kind="invalid_api_key")


def check_window(envelope: Envelope) -> None:
    if over := envelope.tokens_over(_WINDOW):
        raise Bad(
            f"This model's maximum context length is {over[1]} tokens. However, your messages"
            f" resulted in {over[0]} tokens. Please reduce the length of the messages.",
            param="messages",
            kind="context_length_exceeded",
        )


def check_parameters(body: dict[str, Any], known: frozenset[str], asked: str) -> None:
    """What both formats of OpenAI want: a model, what is `asked`, and no parameter besides."""
    if not body.get("model"):
        raise Bad("you must provide a model parameter")
    if unknown := sorted(set(body) - known):
        name = unknown[0]
        raise Bad(f"Unknown parameter: '{name}'.", param=name, kind="unknown_parameter")
    if asked not in body:
        what = f"Missing required parameter: '{asked}'."
        raise Bad(what, param=asked, kind="missing_required_parameter")
    if body[asked] == []:
        raise _empty(asked)
    if body.get("stream_options") is not None and not body.get("stream"):
        what = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise Bad(what, param="stream_options")
    _check_sampling(body)


def _check_sampling(body: dict[str, Any]) -> None:
    model, given = str(body["model"]), body.get("temperature")
    for name, most in (("temperature", 2), ("top_p", 1)):
        if not number_in(body.get(name), 0, most):
            what = f"Invalid '{name}': expected a value between 0 and {most}"
            raise Bad(f"{what}, but got {body[name]} instead.", param=name, kind="invalid_value")
    if _REASONING.match(model) and given not in (None, 1):
        what = f"Unsupported value: 'temperature' does not support {given} with this model."
        only = "Only the default (1) value is supported."
        raise Bad(f"{what} {only}", param="temperature", kind="unsupported_value")


def _check_limits(envelope: Envelope, body: dict[str, Any]) -> None:
    model = str(body["model"])
    given = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(given) == 2:
        both = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        raise Bad(both, param="max_tokens")
    if given == ["max_tokens"] and _REASONING.match(model):
        what = "Unsupported parameter: 'max_tokens' is not supported with this model."
        use = "Use 'max_completion_tokens' instead."
        raise Bad(f"{what} {use}", param="max_tokens", kind="unsupported_parameter")
    for name in given:
        check_limit(name, body[name], least=1)
        if body[name] > (most := envelope.output_limit(model)):
            raise Bad(
                f"{name} is too large: {body[name]}. This model supports at most {most} completion"
                f" tokens, whereas you provided {body[name]}.",
                param=name,
                kind="invalid_value",
            )


def check_limit(name: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or value < least:
        what = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}"
        raise Bad(f"{what}, but got {value} instead.", param=name, kind="integer_below_min_value")


def check_tools(body: dict[str, Any], *, nested: bool) -> None:
    """The tools; `nested` where names and schemas stand below `function` in each."""
    tools = body.get("tools")
    if tools == []:
        raise _empty("tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not tools:
            what = f"'{name}' is only allowed when 'tools' are specified."
            raise Bad(f"Invalid value for '{name}': {what}", param=name)
    if len(tools or ()) > 128:
        what = "Invalid 'tools': array too long. Expected an array with maximum length 128"
        raise Bad(f"{what}, but got {len(tools or ())} instead.", param="tools")
    names = []
    for index, entry in enumerate(tools or ()):
        if entry.get("type") != "function":
            continue  # a tool of the provider's own
        declared = entry.get("function") or {} if nested else entry
        place = f"tools[{index}].function" if nested else f"tools[{index}]"
        check_name(f"{place}.name", declared.get("name"))
        names.append(declared["name"])
        _check_schema(declared, f"{place}.parameters")
    if twice := first_duplicate(names):
        raise Bad(f"Duplicate tool name: '{twice}'.", param="tools", kind="invalid_value")


def check_name(place: str, name: Any) -> None:
    if not isinstance(name, str) or not name:
        what = f"Missing required parameter: '{place}'."
        raise Bad(what, param=place, kind="missing_required_parameter")
    if not re.match(_NAME, name):
        what = f"Invalid '{place}': string does not match pattern. Expected a string that matches"
        raise Bad(f"{what} the pattern '{_NAME}'.", param=place, kind="invalid_value")
    check_length(place, name, 64)


def check_length(place: str, text: str, most: int) -> None:
    if len(text) > most:
        raise Bad(
            f"Invalid '{place}': string too long. Expected a string with maximum length {most}, but"
            f" got a string with length {len(text)} instead.",
            param=place,
            kind="string_above_max_length",
        )


def _check_schema(function: dict[str, Any], place: str) -> None:
    """The schema of a tool's parameters; a tool without any may leave it out."""
    schema = function.get("parameters")
    if schema is None:
        return
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type") if isinstance(schema, dict) else schema
        raise _bad_schema(
            function, place, f"""schema must be a JSON Schema of 'type: "object"', got '{kind}'"""
        )
    for context, part in _schemas(schema):
        if part.get("type") == "array" and "items" not in part:
            raise _bad_schema(function, place, f"In context={context}, array schema missing items")
        loose = part.get("type") == "object" and part.get("additionalProperties") is not False
        if function.get("strict") and loose:
            what = "'additionalProperties' is required to be supplied and to be false"
            raise _bad_schema(function, place, f"In context={context}, {what}")


def _schemas(schema: Any, context: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """A schema and those inside it, each with where it stands."""
    if not isinstance(schema, dict):
        return []
    found = [(context, schema)]
    for name, inner in (schema.get("properties") or {}).items():
        found += _schemas(inner, (*context, "properties", name))
    return found + _schemas(schema.get("items"), (*context, "items"))


def _bad_schema(function: dict[str, Any], place: str, why: str) -> Bad:
    message = f"Invalid schema for function '{function.get('name')}': {why}."
    return Bad(message, param=place, kind="invalid_function_parameters")


def _empty(name: str) -> Bad:
    what = f"Invalid '{name}': empty array. Expected an array with minimum length 1"
    return Bad(f"{what}, but got an empty array instead.", param=name, kind="empty_array")


def _check_messages(entries: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    answered: set[str] = set()
    for index, entry in enumerate(entries):
        role, place = entry.get("role"), f"messages[{index}]"
        if role not in _ROLES:
            known = ", ".join(f"'{name}'" for name in _ROLES)
            what = f"Invalid value: '{role}'. Supported values are: {known}."
            raise Bad(what, param=f"{place}.role", kind="invalid_value")
        if role != "tool":
            _check_answered(waiting, index)
            waiting, answered = [], set()
        if role == "assistant":
            waiting = _check_calls(entry.get("tool_calls"), place)
            answered = set(waiting)
        elif role == "tool":
            if str(entry.get("tool_call_id")) not in answered:
                what = "messages with role 'tool' must be a response to a preceeding message with"
                raise Bad(f"Invalid parameter: {what} 'tool_calls'.", param=f"{place}.role")
            if str(entry["tool_call_id"]) not in waiting:
                what = f"Duplicate value for 'tool_call_id' of '{entry['tool_call_id']}'"
                raise Bad(f"{what} in {place}.", param=f"{place}.tool_call_id")
            waiting.remove(str(entry["tool_call_id"]))
        _check_content(entry, place)
    _check_answered(waiting, len(entries))


def _check_answered(waiting: Sequence[str], index: int) -> None:
    if waiting:
        raise Bad(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to"
            " each 'tool_call_id'. The following tool_call_ids did not have response messages:"
            f" {', '.join(waiting)}",
            param=f"messages.[{index}].role",
        )


def _check_calls(calls: Any, place: str) -> list[str]:
    """The ids of an assistant's calls."""
    if calls == []:
        raise _empty(f"{place}.tool_calls")
    found = []
    for number, call in enumerate(calls or ()):
        spot, function = f"{place}.tool_calls[{number}]", call.get("function") or {}
        check_length(f"{spot}.id", str(call.get("id") or ""), 40)
        check_name(f"{spot}.function.name", function.get("name"))
        check_arguments(f"{spot}.function.arguments", function.get("arguments"))
        found.append(str(call.get("id")))
    if twice := first_duplicate(found):
        raise Bad(f"Duplicate value for 'id' of '{twice}' in {place}.tool_calls.", param=place)
    return found


def check_arguments(place: str, arguments: Any) -> None:
    """OpenAI takes any string; servers that fill a model's template with it want JSON."""
    if not isinstance(arguments, str):
        what = f"Invalid type for '{place}': expected a string, but got {type(arguments).__name__}"
        raise Bad(f"{what} instead.", param=place, kind="invalid_type")
    if arguments_of(arguments)[1] is not None:
        raise Bad(f"Invalid '{place}': not a JSON object.", param=place, kind="invalid_value")


def _check_content(entry: dict[str, Any], place: str) -> None:
    content, role = entry.get("content"), entry["role"]
    if role == "assistant":
        if not content and not entry.get("tool_calls"):
            what = "Assistant message must have either content or tool_calls, but not none."
            raise Bad(what, param=place)
        return
    if content is None:
        what = "Invalid value for 'content': expected a string, got null."
        raise Bad(what, param=f"{place}.content")
    if content == []:
        raise _empty(f"{place}.content")


wire = OpenAIChat()
