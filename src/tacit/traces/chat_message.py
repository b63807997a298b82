"""One message of a conversation, whatever API or library wrote it, and what it tells an Assembler.

Reads the messages of OpenAI (chat and responses), Anthropic, Gemini, Bedrock, LangChain, Vercel's
AI SDK and OpenTelemetry, alone, in lists, and in the wrappings of requests and answers. Nothing
here raises. What a file of them looks like is left to its reader.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import stated_outcome

Role = Literal["user", "assistant", "tool", "system", ""]
_ROLES: dict[str, Role] = {
    "user": "user", "human": "user", "humanmessage": "user", "humanmessagechunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant", "tool": "tool", "function": "tool", "toolmessage": "tool",
    "functionmessage": "tool", "system": "system", "developer": "system", "systemmessage": "system",
}  # fmt: skip
_TEXTS = {"", "text", "input-text", "output-text", "refusal", "markdown"}
_THOUGHTS = {"thinking", "redacted-thinking", "reasoning", "redacted-reasoning", "thought"}
_CALLS = {"tool-use", "tool-call", "function-call", "server-tool-use", "server-tool-call"}
_RESULTS = ("tool-result", "tool-call-response", "function-call-output", "function-response")
_ATTACHED = ("image", "audio", "video", "file", "document", "blob", "uri", "media")
_WRAPPED = (
    "messages", "choices", "generations", "candidates", "contents", "message", "output", "input",
    "prompt", "input_messages", "output_messages", "content", "parts", "chat_history", "question",
    "query", "answer", "response", "result", "text", "args",
)  # fmt: skip
"""Where a request or an answer holds its messages; the first that is there counts."""
_INNER = ("function", "functionCall", "function_call", "toolUse")
_DEEPEST = 8
_MOST_OPEN = 64


class Call(NamedTuple):
    """A tool call in a message."""

    id: str
    name: str
    arguments: Any


class Result(NamedTuple):
    """The result of a tool call in a message; `name` where it names the tool."""

    id: str
    text: str
    failed: bool = False
    error: str = ""
    name: str = ""


class Message(msgspec.Struct):
    """A message in the common form. Thoughts are left out, as they are for all hosts."""

    role: Role = ""
    texts: list[str] = []
    calls: list[Call] = []
    results: list[Result] = []
    attachments: int = 0
    unknown: int = 0
    at: datetime | None = None
    model: str = ""
    by: str = ""
    """The role as it was written, where it is none that is known: some put a tool's name there."""
    tools: Any = None
    """Definitions of tools, where they stand among the messages."""

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def sign(self) -> tuple[object, ...]:
        """The same for two messages that say the same: a later request repeats earlier ones."""
        calls = tuple((call.name, _same(call.arguments)) for call in self.calls)
        return self.role, self.text.strip(), calls, tuple(r.text.strip() for r in self.results)

    def tell(self, into: Assembler, *, sure: bool = False) -> None:
        """Tell what it says: results first, then words, then calls.

        `sure` says that an id stands for one call, however often it is told.
        """
        for result in self.results:
            call_id = result.id if sure else answered_as(result.id, into)
            into.returned(
                call_id, result.text, failed=result.failed, error=result.error, at=self.at
            )
        if self.role == "user":
            into.state.pop("unanswered", None)
            into.state.pop("again", None)
            into.prompt(self.text, self.at)
        elif self.role == "assistant":
            if self.model:
                into.about(model=self.model)
            into.said(self.text, self.at)
            for call in self.calls:
                call_id = call.id if sure else asked_as(call.id, into)
                into.called(call_id, call.name, call.arguments, self.at)
        elif self.role == "system":
            into.given(self.text, self.tools, self.at)
        elif not self.role:
            into.passed("unknown-record")
        self.tell_lost(into)

    def tell_lost(self, into: Assembler) -> None:
        """Count what of it a trace cannot hold."""
        if self.attachments:
            into.passed("attachment", self.attachments)
        if self.unknown:
            into.passed("unknown-record", self.unknown)


def asked_as(call_id: str, into: Assembler) -> str:
    """The id by which a call is told: its own, unless it has none or an earlier call had it.

    Files repeat ids, of calls that were over: the answers of a model are cached, for one.
    """
    if call_id and not into.is_answered(call_id):
        return call_id
    number = into.state["numbered"] = into.state.get("numbered", 0) + 1
    made = f"{call_id}#{number}"
    if call_id:
        again = into.state.get("again", {})
        kept = dict(list(again.items())[-_MOST_OPEN:])  # copied: a bookmark may hold the one before
        into.state["again"] = kept | {call_id: made}
    else:
        into.state["unanswered"] = [*into.state.get("unanswered", ())[-_MOST_OPEN:], made]
    return made


def answered_as(call_id: str, into: Assembler) -> str:
    """The id of the call that a result answers; without one, of the first that has no result yet,
    and if none is known, empty: the latest of all calls."""
    if call_id:
        return str(into.state.get("again", {}).get(call_id, call_id))
    first, *into.state["unanswered"] = into.state.get("unanswered") or [""]
    return str(first)


def messages_of(value: Any, role: Role = "user", depth: int = 0) -> Iterator[Message]:
    """The messages in `value`: one, a list, a request, an answer, the JSON of any of them.

    Words that belong to nobody are by `role`.
    """
    if depth > _DEEPEST or value is None:
        return
    if isinstance(value, str):
        inner = values.decoded_json(value) if value.lstrip()[:1] in ("{", "[") else None
        found = list(messages_of(inner, role, depth + 1)) if inner is not None else []
        if any(message.role for message in found):
            yield from found
        elif value.strip():
            yield Message(role, [value])
    elif isinstance(value, list):
        if any(isinstance(part, dict) and _is_part(part) for part in value):
            yield _message(role, {"content": value})
        else:
            for part in value:
                yield from messages_of(part, role, depth + 1)
    elif isinstance(value, dict):
        yield from _of_object(value, role, depth)


def _of_object(value: dict[str, Any], role: Role, depth: int) -> Iterator[Message]:
    if (own := message_of(value)) is not None:
        yield own
        return
    for key in _WRAPPED:
        inner = value.get(key)
        if inner not in (None, [], ""):
            yield from messages_of(inner, role, depth + 1)
            return
    if _is_part(value):
        yield _message(role, {"content": [value]})


def message_of(value: dict[str, Any]) -> Message | None:
    """The message that `value` is; None where it is none, or only wraps some."""
    kind = value.get("type")
    if kind == "constructor":  # LangChain's own JSON
        names = values.items(value.get("id"))
        name = values.string(names[-1]).lower() if names else ""
        return _message(_ROLES.get(name, ""), values.mapping(value.get("kwargs")))
    if "role" in value and not isinstance(value.get("message"), dict):
        said = values.string(value.get("role"))
        known = _ROLES.get(said.lower(), "")
        made = _message(known or ("tool" if value.get("tool_call_id") else ""), value)
        made.by = said if not made.role else ""
        return made
    if isinstance(kind, str):
        if kind in ("function_call", "custom_tool_call"):
            return _message("assistant", {"content": [value]})
        if kind in ("function_call_output", "custom_tool_call_output"):
            return _message("tool", {"content": [value]})
        if kind in _THOUGHTS:
            return Message("assistant")
        if (role_ := _ROLES.get(kind.lower())) and ("content" in value or "data" in value):
            return _message(role_, values.mapping(value.get("data")) or value)
    return None


def _message(role: Role, value: dict[str, Any]) -> Message:
    """The message whose fields are `value`."""
    made = Message(role, [], [], [], model=values.string(value.get("model")))
    if said := value.get("timestamp") or value.get("created_at"):
        made.at = values.when(said)
    content = value.get("parts", value.get("content", value.get("contents")))
    if isinstance(content, str):
        content = _parts_of(content) if content.startswith('[{"') else content
    if role == "tool" and isinstance(content, dict) and "function" in content:
        # Langfuse puts definitions of tools among LangChain's messages.
        made.role, made.tools = "system", content
        return made
    if role == "tool" and not _has_result(content):
        made.results.append(_whole_result(value, content))
        return made
    if isinstance(content, str):
        if content.strip():
            made.texts.append(content)
    else:
        for part in content if isinstance(content, list) else [content]:
            _take(part, made)
    _take_calls(value, made)
    if made.results and made.role in ("user", "") and not made.texts:
        made.role = "tool"
    return made


def _parts_of(content: str) -> Any:
    """The parts in a content that became text on the way; the text where it is only that."""
    parts = values.objects(values.decoded_json(content))
    sound = bool(parts) and all(_is_part(part) or "function" in part for part in parts)
    return parts if sound else content


def _whole_result(value: dict[str, Any], content: Any) -> Result:
    """The result that a tool's message is as a whole."""
    text, failed, error = stated_outcome(content)
    wrong = value.get("is_error") is True or value.get("status") == "error"
    call_id = values.string(value.get("tool_call_id")) or values.string(value.get("id"))
    return Result(call_id, text, failed or wrong, error, values.string(value.get("name")))


def _take_calls(value: dict[str, Any], made: Message) -> None:
    """The calls that stand beside a message's content."""
    extra = value.get("additional_kwargs")
    for place in (value, extra) if isinstance(extra, dict) else (value,):
        calls = values.items(place.get("tool_calls"))
        if not calls and place.get("function_call"):
            calls = [{"function": place["function_call"]}]
        if calls:
            known = {call.id for call in made.calls if call.id}
            found = [_call(values.mapping(call)) for call in calls]
            made.unknown += sum(not call.name for call in found)
            made.calls += [c for c in found if c.name and (not c.id or c.id not in known)]
            return


def _take(part: Any, made: Message) -> None:
    """Put one part of a message's content where it belongs."""
    if isinstance(part, str):
        if part.strip():
            made.texts.append(part)
        return
    if not isinstance(part, dict):
        if part is not None:
            made.texts.append(values.text(part))
        return
    part = values.mapping(part.get("message_content")) or part
    kind = _kind(part)
    if kind in _THOUGHTS or part.get("thought") is True:
        return
    if kind in _CALLS:
        made.calls.append(_call(part))
    elif kind.endswith(_RESULTS):
        made.results.append(_result(part))
    elif any(word in kind for word in _ATTACHED):
        made.attachments += 1
        made.texts.append(f"[{kind.partition('-')[0]}]")
    elif kind in _TEXTS or isinstance(part.get("text"), str):
        if (text := values.text(part)).strip() and part:
            made.texts.append(text)
    else:
        made.unknown += 1


def _kind(part: dict[str, Any]) -> str:
    """The kind of a part, also where it has no field for that (Gemini, Bedrock, Vercel)."""
    kind = values.string(part.get("type")).lower().replace("_", "-")
    if kind == "function" and "function" in part:
        return "tool-call"
    if not kind:
        if part.keys() & {"functionCall", "function_call", "toolName", "toolUse"}:
            return "tool-call"
        if part.keys() & {"functionResponse", "function_response", "toolResult"}:
            return "function-response"
        if part.keys() & {"inlineData", "inline_data", "fileData", "image", "video", "document"}:
            return "file"
        if "reasoningContent" in part:
            return "reasoning"
    return kind


def _is_part(value: dict[str, Any]) -> bool:
    """Whether `value` is a part of a message's content, and no message."""
    kind = _kind(value)
    if "role" in value or kind in ("function-call", "function-call-output", ""):
        return False
    known = kind in _TEXTS | _THOUGHTS | _CALLS or kind.endswith(_RESULTS)
    return known or kind.startswith(_ATTACHED)


def _has_result(content: Any) -> bool:
    return any(_kind(part).endswith(_RESULTS) for part in values.objects(content))


def _call(part: dict[str, Any]) -> Call:
    part = values.mapping(part.get("tool_call")) or part
    inner = next((part[k] for k in _INNER if isinstance(part.get(k), dict)), part)
    if isinstance(part.get("value"), str):  # LLaMA-Factory
        inner = values.mapping(values.decoded_json(part["value"])) or inner
    call_id = _first(part, "id", "call_id", "toolCallId", "tool_call_id")
    call_id = call_id or _first(inner, "id", "toolUseId")
    if part.get("type") in ("function_call", "custom_tool_call"):
        call_id = part.get("call_id") or call_id  # `id` is the item's own there
    given = next(
        (inner[k] for k in ("arguments", "args", "input", "parameters") if k in inner), None
    )
    name = _first(inner, "name", "toolName", "tool_name", "tool")
    return Call(values.string(call_id), values.string(name), given)


def _result(part: dict[str, Any]) -> Result:
    inner = part
    for key in ("functionResponse", "function_response", "toolResult"):
        inner = values.mapping(part.get(key)) or inner
    keys = ("content", "response", "result", "output")
    content = next((inner[key] for key in keys if key in inner), None)
    if isinstance(content, dict) and set(content) <= {"type", "value"}:
        content = content.get("value")
    if isinstance(content, dict):
        content = as_json(content)
    text, failed, error = stated_outcome(content)
    wrong = True in (part.get("is_error"), part.get("isError")) or inner.get("status") == "error"
    call_id = _first(part, "tool_use_id", "tool_call_id", "call_id", "toolCallId", "id")
    name = _first(inner, "name", "toolName")
    call_id = values.string(call_id or _first(inner, "id", "toolUseId"))
    return Result(call_id, text, failed or wrong, error, values.string(name))


def _first(value: dict[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name)), None)


def _same(arguments: Any) -> str:
    """Arguments as text, whether they came as an object or as its JSON."""
    return as_json(values.arguments(arguments))


def as_json(value: Any) -> str:
    """`value` as JSON, its keys in order."""
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)
