"""Gemini generateContent, as Gemini CLI and the Google client speak it."""

import base64
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
    first_duplicate,
    number_in,
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
_WINDOW = 1_048_576
_PARAMETERS = frozenset(
    {
        "cachedContent", "contents", "generationConfig", "labels", "model", "safetySettings",
        "serviceTier", "store", "systemInstruction", "toolConfig", "tools",
    }
)  # fmt: skip
_CONFIG = frozenset(
    {
        "audioTimestamp", "audioTranscriptionConfig", "candidateCount", "enableAffectiveDialog",
        "enableEnhancedCivicAnswers", "frequencyPenalty", "imageConfig", "logprobs",
        "maxOutputTokens", "mediaResolution", "modelSelectionConfig", "presencePenalty",
        "responseFormat", "responseJsonSchema", "responseLogprobs", "responseMimeType",
        "responseModalities", "responseSchema", "routingConfig", "seed", "speechConfig",
        "stopSequences", "temperature", "thinkingConfig", "topK", "topP", "translationConfig",
    }
)  # fmt: skip
# What of JSON Schema `parameters` knows; `parametersJsonSchema` takes all of it.
_SCHEMA = frozenset(
    {
        "anyOf", "default", "description", "enum", "example", "format", "items", "maxItems",
        "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
        "minimum", "nullable", "pattern", "properties", "propertyOrdering", "required", "title",
        "type",
    }
)  # fmt: skip
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


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

    def check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        _check_caller(envelope)
        body = {_camel(name): value for name, value in body.items()}
        _check_known("", body, _PARAMETERS)
        _check_config(envelope, body.get("generationConfig") or {})
        _check_tools(body.get("tools") or [])
        _check_contents(body.get("contents"))
        match = _ROUTE.search(envelope.route)
        if match and match[1].startswith(_SIGNING):
            _check_signatures(body["contents"])
        if over := envelope.tokens_over(_WINDOW):
            what = f"The input token count ({over[0]}) exceeds the maximum number of tokens allowed"
            raise Bad(f"{what} ({over[1]}).")

    def whole(self, answer: Answer) -> dict[str, Any]:
        parts = [_part(part) for part in answer.reply.parts]
        return _response(answer, _signed(answer, parts), last=True)

    def stream(self, answer: Answer) -> list[bytes]:
        parts: list[dict[str, Any]] = []
        for part in answer.reply.parts:
            # A call comes whole, as from Google: only prose is cut.
            parts += (
                [{"text": piece} for piece in pieces(part.text)]
                if isinstance(part, Text)
                else [_part(part)]
            )
        parts = _signed(answer, parts)
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
            "status": status.kind or _ERRORS.get(status.code, "UNKNOWN"),
        }
        if status.retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{status.retry_after:g}s"}]
        return {"error": error}

    def unknown_model(self, name: str) -> Bad:
        return Bad(
            f"models/{name} is not found for API version v1beta, or is not supported for"
            " generateContent. Call ListModels to see the list of available models and their"
            " supported methods.",
            404,
        )

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


_SIGNING = "gemini-3"
"""How the names of models begin that sign their first call of a turn, and want to see it again."""


def _signed(answer: Answer, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`parts`, of which the first call is signed where the model does that."""
    first = next((i for i, part in enumerate(parts) if "functionCall" in part), None)
    if first is None or not answer.model.startswith(_SIGNING):
        return parts
    signature = base64.b64encode(f"thoughts {answer.number}".encode()).decode()
    signed = {**parts[first], "thoughtSignature": signature}
    return [*parts[:first], signed, *parts[first + 1 :]]


def _check_signatures(contents: list[dict[str, Any]]) -> None:
    """Since the user's last words, the first call of each turn has its signature."""
    last = max((i for i, entry in enumerate(contents) if _is_said(entry)), default=0)
    for index, entry in enumerate(contents[last:], last):
        calls = [part for part in entry["parts"] if part.get("functionCall")]
        if calls and not (calls[0].get("thoughtSignature") or calls[0].get("thought_signature")):
            name = calls[0]["functionCall"].get("name")
            what = f"Function call `{name}` in the `{index + 1}.` content block"
            raise Bad(f"{what} is missing a `thought_signature`.")


def _is_said(entry: dict[str, Any]) -> bool:
    is_users = entry.get("role", "user") == "user"
    return is_users and any(isinstance(part.get("text"), str) for part in entry["parts"])


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


def _check_caller(envelope: Envelope) -> None:
    if not envelope.key:
        what = "Method doesn't allow unregistered callers (callers without established identity)."
        raise Bad(f"{what} Please use API Key or other form of API consumer identity.", 403)
    if envelope.terms.key and envelope.key != envelope.terms.key:
        raise Bad("API key not valid. Please pass a valid API key.")


def _camel(name: str) -> str:
    """Google takes `system_instruction` for `systemInstruction`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _check_known(place: str, given: dict[str, Any], known: frozenset[str]) -> None:
    if unknown := sorted(name for name in given if _camel(name) not in known):
        at = f" at '{place}'" if place else ""
        what = f'Invalid JSON payload received. Unknown name "{unknown[0]}"{at}'
        raise Bad(f"{what}: Cannot find field.")


def _check_config(envelope: Envelope, config: dict[str, Any]) -> None:
    _check_known("generation_config", config, _CONFIG)
    match = _ROUTE.search(envelope.route)
    most = envelope.output_limit(match[1] if match else "")
    if not number_in(wanted := config.get("maxOutputTokens"), 1, most):
        raise Bad(
            f"Unable to submit request because it has a maxOutputTokens value of {wanted} but the"
            f" supported range is from 1 (inclusive) to {most + 1} (exclusive)."
            " Update the value and try again."
        )
    for name, top in (("temperature", 2), ("topP", 1)):
        if not number_in(config.get(name), 0, top):
            what = f"{name} must be in the range [0.0, {top}.0]"
            raise Bad(f"* GenerateContentRequest.generation_config.{name}: {what}.")
    budget = (config.get("thinkingConfig") or {}).get("thinkingBudget")
    if not number_in(budget, -1, 32_768):
        what = f"The thinking budget {budget} is invalid."
        raise Bad(f"{what} Please choose a value between -1 and 32768.")


def _check_tools(tools: list[dict[str, Any]]) -> None:
    names = []
    for index, entry in enumerate(tools):
        declared = entry.get("functionDeclarations") or entry.get("function_declarations") or ()
        for number, one in enumerate(declared):
            place = f"tools[{index}].function_declarations[{number}]"
            names.append(_checked_name(str(one.get("name", "")), place))
            if one.get("parameters") and one.get("parametersJsonSchema"):
                what = "parameters and parameters_json_schema are mutually exclusive"
                raise Bad(f"* GenerateContentRequest.{place}: {what}.")
            _check_schema(one.get("parameters"), f"{place}.parameters")
    if twice := first_duplicate(names):
        raise Bad(f"Duplicate function declaration found: {twice}")


def _checked_name(name: str, place: str) -> str:
    if not _NAME.fullmatch(name):
        raise Bad(
            f"* GenerateContentRequest.{place}.name: Invalid function name. Must start with a"
            " letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots"
            " (.), colons (:), or dashes (-), with a maximum length of 64."
        )
    return name


def _check_schema(schema: Any, place: str) -> None:
    if not isinstance(schema, dict):
        return
    _check_known(place, schema, _SCHEMA)
    properties = schema.get("properties")
    if str(schema.get("type", "")).upper() == "OBJECT" and properties == {}:
        what = "should be non-empty for OBJECT type"
        raise Bad(f"* GenerateContentRequest.{place}.properties: {what}")
    for name, inner in (properties or {}).items():
        _check_schema(inner, f"{place}.properties[{name}]")
    _check_schema(schema.get("items"), f"{place}.items")


def _check_contents(contents: Any) -> None:
    if not isinstance(contents, list) or not contents:
        raise Bad("* GenerateContentRequest.contents: contents is not specified\n")
    waiting: list[str] | None = None
    before = ""
    for index, entry in enumerate(contents):
        role, parts = entry.get("role", "user"), entry.get("parts")
        place = f"GenerateContentRequest.contents[{index}].parts"
        if role not in ("user", "model", "function", "tool"):
            raise Bad("Please use a valid role: user, model.")
        if not parts:
            raise Bad(f"* {place}: contents.parts must not be empty.\n")
        for number, part in enumerate(parts):
            _check_part(part, f"{place}[{number}]")
        calls = [str(p["functionCall"].get("name")) for p in parts if p.get("functionCall")]
        results = [p["functionResponse"] for p in parts if p.get("functionResponse") is not None]
        _check_turn(calls, [str(result.get("name")) for result in results], waiting, before)
        waiting, before = calls or None, role
    if waiting:
        raise Bad(f"Please ensure that function call turn {_AFTER_CALL}")


_AFTER_CALL = "is followed by a function response turn."
_EACH_CALL = (
    "Please ensure that the number of function response parts is equal to the number of function"
    " call parts of the function call turn."
)


def _check_turn(
    calls: list[str], results: list[str], waiting: list[str] | None, before: str
) -> None:
    """One turn's calls and results, after a turn whose calls are `waiting`."""
    if results and waiting is None:
        what = "function response turn comes immediately after a function call turn"
        raise Bad(f"Please ensure that {what}.")
    if waiting is not None and sorted(results) != sorted(waiting):
        raise Bad(_EACH_CALL)
    if calls and before not in ("user", "function", "tool"):
        what = "comes immediately after a user turn or after a function response turn"
        raise Bad(f"Please ensure that function call turn {what}.")


def _check_part(part: dict[str, Any], place: str) -> None:
    data = set(part) - {"thought", "thoughtSignature", "thought_signature", "videoMetadata"}
    if not data:
        what = "required oneof field 'data' must have one initialized field"
        raise Bad(f"* {place}.data: {what}\n")
    if part.get("text") == "" and not part.get("thoughtSignature"):
        raise Bad("Unable to submit request because it has an empty text parameter.")
    for name, inner in (("functionCall", "args"), ("functionResponse", "response")):
        given = part.get(name)
        if given is not None and not isinstance(given.get(inner, {}), dict):
            raise Bad(f"Invalid value at '{place}.{name}.{inner}' ({_STRUCT})")


_STRUCT = "type.googleapis.com/google.protobuf.Struct"

wire = Gemini()
