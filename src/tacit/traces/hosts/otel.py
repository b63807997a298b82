"""OpenTelemetry spans of calls to models, by the GenAI conventions of both eras.

Since 1.37 the messages are attributes (`gen_ai.input.messages`); before, they were events or log
records for each message, or `gen_ai.prompt` and `gen_ai.completion`, whole or with numbers, as
OpenLLMetry writes them to this day. OTLP in JSON, a request a line, or spans as the SDK prints
them. What was not captured cannot be read; how many calls that concerns is counted.
"""

import os
from collections.abc import Iterator
from typing import Any

from tacit.base import paths
from tacit.traces import values
from tacit.traces.chat_message import Message, Role, messages_of
from tacit.traces.host import Source
from tacit.traces.hosts.openinference import openinference_span
from tacit.traces.otlp import RawSpan, is_flat, is_otlp, raw_spans, unflatten
from tacit.traces.spans import Span, SpanFiles, SpanKind, scored, tool_name
from tacit.traces.trace import Usage

_KINDS: dict[str, SpanKind] = {
    "chat": "model", "generate_content": "model", "text_completion": "model",
    "completion": "model", "execute_tool": "tool", "invoke_agent": "agent",
    "create_agent": "agent", "invoke_workflow": "agent", "tool": "tool", "agent": "agent",
    "workflow": "other", "task": "other", "ai.generateText.doGenerate": "model",
    "ai.streamText.doStream": "model", "ai.generateObject.doGenerate": "model",
    "ai.streamObject.doStream": "model", "ai.toolCall": "tool",
}  # fmt: skip
_CONVERSATIONS = (
    "gen_ai.conversation.id", "session.id", "langfuse.session.id",
    "traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId",
)  # fmt: skip
_EVENTS: dict[str, Role] = {
    "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool", "gen_ai.system.message": "system",
}  # fmt: skip
_GIVEN = ("gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages", "traceloop.entity.input")
_TOOLS = ("gen_ai.tool.definitions", "ai.prompt.tools")
_MADE = ("gen_ai.output.messages", "gen_ai.completion", "traceloop.entity.output")


class OpenTelemetry(SpanFiles):
    name = "otel"
    title = "OpenTelemetry"
    precedence = 65

    def claims(self, record: Any) -> bool:
        return is_otlp(record) or is_flat(record)

    def find(self) -> Iterator[Source]:
        return self.inside(received_folder())

    def places(self, record: Any) -> Iterator[tuple[str, str]]:
        for raw in raw_spans(record):
            yield raw.trace, _first(raw.attributes, *_CONVERSATIONS)

    def spans(self, record: Any) -> Iterator[Span]:
        for raw in raw_spans(record):
            if (span := self.span_of(raw)) is not None:
                yield span

    def span_of(self, raw: RawSpan) -> Span | None:
        """What a span means, by whichever conventions it follows."""
        if "openinference.span.kind" in raw.attributes:
            return openinference_span(raw)
        return genai_span(raw)


def received_folder() -> str:
    """Where the daemon keeps the spans that agents send it."""
    return os.path.join(paths.folders().data, "otlp")


def genai_span(raw: RawSpan) -> Span | None:
    """A span by the GenAI conventions; None for a log record that says nothing of it."""
    told = raw.attributes
    given, made, verdict = _from_events(raw.events)
    if raw.log:
        if not given and not made and not verdict:
            return None
        return Span(
            raw.id, trace=raw.trace, kind="model", start=raw.start, given=given, made=made,
            verdict=verdict, partial=True,
        )  # fmt: skip
    kind = _kind(told)
    span = Span(
        raw.id, raw.parent, raw.trace, _first(told, *_CONVERSATIONS), kind, raw.name, raw.start,
        raw.end, error=raw.error, verdict=verdict, given=given, made=made,
    )  # fmt: skip
    span.model = _first(told, "gen_ai.response.model", "gen_ai.request.model", "ai.model.id")
    span.skill = _first(told, "gen_ai.skill.name")
    if kind == "tool":
        _tool(told, span)
        return span
    span.given = _messages(told, "user", *_GIVEN) or span.given
    system = told.get("gen_ai.system_instructions")
    system = values.decoded_json(system) or system  # parts, or words alone
    span.given = [*messages_of(system, "system"), *span.given]
    span.tools = next((told[name] for name in _TOOLS if told.get(name)), None)
    span.tools = span.tools or unflatten(told, "llm.request.functions")
    span.made = _messages(told, "assistant", *_MADE) or _vercel(told) or span.made
    if kind == "model":
        span.usage = _usage(told)
    else:
        span.name = _first(told, "gen_ai.agent.name", "traceloop.entity.name") or raw.name
    return span


def _kind(told: dict[str, Any]) -> SpanKind:
    for name in ("gen_ai.operation.name", "ai.operationId", "traceloop.span.kind"):
        if (found := _KINDS.get(values.string(told.get(name)))) is not None:
            return found
    if told.get("llm.request.type") in ("chat", "completion") or "gen_ai.prompt.0.role" in told:
        return "model"
    if "gen_ai.tool.call.id" in told:
        return "tool"
    # Some name the operation in words of their own (Gemini CLI: llm_call).
    asked = "gen_ai.operation.name" not in told or "gen_ai.input.messages" in told
    return "model" if asked and "gen_ai.request.model" in told else "other"


def _messages(told: dict[str, Any], role: Role, *names: str) -> list[Message]:
    """The messages under the first of `names` that has any, whole or with numbers."""
    for name in names:
        found = unflatten(told, name) or told.get(name)
        if found and (messages := list(messages_of(found, role))):
            return messages
    return []


def _from_events(
    events: list[tuple[str, dict[str, Any]]],
) -> tuple[list[Message], list[Message], str]:
    """What the events of a span say: given, made, and an evaluation's verdict."""
    given: list[Message] = []
    made: list[Message] = []
    verdict = ""
    for name, told in events:
        if name in _EVENTS:
            said = {key: value for key, value in told.items() if not key.startswith("gen_ai.")}
            said.setdefault("content", told.get("gen_ai.event.content"))
            given += messages_of({"role": _EVENTS[name], **said}, _EVENTS[name])
        elif name == "gen_ai.choice":
            message = told.get("message", told.get("gen_ai.event.content"))
            message = unflatten({"m.0": message}, "m")[0] if isinstance(message, dict) else message
            if message is None:  # nested attributes become names with dots
                message = next(iter(unflatten(_prefixed(told, "message."), "m")), None)
            made += messages_of(_spoken(message), "assistant")
        elif name == "gen_ai.evaluation.result":
            label = told.get("gen_ai.evaluation.score.label")
            score = told.get("gen_ai.evaluation.score.value", label)
            verdict = scored(values.string(told.get("gen_ai.evaluation.name")) or "score", score)
        else:
            given += _messages(told, "user", *_GIVEN)
            made += _messages(told, "assistant", *_MADE)
    return given, made, verdict


def _prefixed(told: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {f"m.0.{k.removeprefix(prefix)}": v for k, v in told.items() if k.startswith(prefix)}


def _spoken(message: Any) -> Any:
    """An answer whose role need not be said."""
    return {"role": "assistant", **message} if isinstance(message, dict) else message


def _vercel(told: dict[str, Any]) -> list[Message]:
    text, calls = values.string(told.get("ai.response.text")), told.get("ai.response.toolCalls")
    found = values.objects(values.decoded_json(calls) if isinstance(calls, str) else calls)
    if not text and not found:
        return []
    parts = [{"type": "text", "text": text}, *({"type": "tool-call", **call} for call in found)]
    return list(messages_of({"role": "assistant", "content": parts}))


def _tool(told: dict[str, Any], span: Span) -> None:
    named = _first(told, "gen_ai.tool.name", "ai.toolCall.name", "traceloop.entity.name")
    span.name = named or tool_name(span.name)
    span.call_id = _first(told, "gen_ai.tool.call.id", "ai.toolCall.id")
    asked = ("gen_ai.tool.call.arguments", "ai.toolCall.args", "traceloop.entity.input")
    gave = ("gen_ai.tool.call.result", "ai.toolCall.result", "traceloop.entity.output")
    span.arguments = next((told[name] for name in asked if name in told), None)
    span.result = next((told[name] for name in gave if name in told), None)


def _usage(told: dict[str, Any]) -> Usage | None:
    tokens = {
        "input": told.get("gen_ai.usage.input_tokens", told.get("gen_ai.usage.prompt_tokens")),
        "output": told.get(
            "gen_ai.usage.output_tokens", told.get("gen_ai.usage.completion_tokens")
        ),
        "read": told.get("gen_ai.usage.cache_read.input_tokens"),
        "written": told.get("gen_ai.usage.cache_creation.input_tokens"),
    }
    if not any(tokens.values()):
        return None
    return values.usage(tokens, "input", "output", "read", "written", cached_in_input=True)


def _first(told: dict[str, Any], *names: str) -> str:
    return next((text for name in names if (text := values.string(told.get(name)))), "")


HOSTS = (OpenTelemetry(),)
