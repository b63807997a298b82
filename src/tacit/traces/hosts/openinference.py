"""OpenInference, the conventions of Arize Phoenix: spans in OTLP, or as Phoenix exports them.

Messages have numbers in their names (`llm.input_messages.0.message.role`); a span's kind is LLM,
TOOL, AGENT or CHAIN. Phoenix gives a span as an object with `context` and `attributes`, flat or
nested, or as a row of a table.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.chat_message import Message, Role, messages_of
from tacit.traces.otlp import RawSpan, raw_spans, unflatten
from tacit.traces.spans import Span, SpanFiles, SpanKind, scored, tool_name

_KINDS: dict[str, SpanKind] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_TOKENS = (
    "llm.token_count.prompt", "llm.token_count.completion",
    "llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_write",
    "llm.token_count.completion_details.reasoning",
)  # fmt: skip


class OpenInference(SpanFiles):
    name = "openinference"
    title = "OpenInference"
    precedence = 64

    def claims(self, record: Any) -> bool:
        return any("openinference.span.kind" in raw.attributes for raw in raw_spans(record))

    def places(self, record: Any) -> Iterator[tuple[str, str]]:
        for raw in raw_spans(record):
            yield raw.trace, values.string(raw.attributes.get("session.id"))

    def spans(self, record: Any) -> Iterator[Span]:
        annotated = values.objects(values.mapping(record).get("annotations"))
        for raw in raw_spans(record):
            span = openinference_span(raw)
            for note in annotated:
                result = values.mapping(note.get("result")) or note
                score = result.get("score")
                value = result.get("label") if score is None else score
                span.verdict = span.verdict or scored(values.string(note.get("name")), value)
            yield span


def openinference_span(raw: RawSpan) -> Span:
    """A span by OpenInference's conventions."""
    told = raw.attributes
    kind = _KINDS.get(values.string(told.get("openinference.span.kind")).upper(), "other")
    span = Span(
        raw.id, raw.parent, raw.trace, values.string(told.get("session.id")), kind, raw.name,
        raw.start, raw.end, error=raw.error, model=values.string(told.get("llm.model_name")),
        partial=raw.log,
    )  # fmt: skip
    if kind == "tool":
        span.name = values.string(told.get("tool.name")) or tool_name(raw.name)
        span.call_id = values.string(told.get("tool.id") or told.get("tool_call.id"))
        span.arguments = told.get("input.value")
        span.result = told.get("output.value")
        return span
    if kind == "agent":
        span.name = values.string(told.get("agent.name")) or raw.name
    span.given = _messages(told, "user", "llm.input_messages", "input.value")
    span.tools = unflatten(told, "llm.tools")
    span.made = _messages(told, "assistant", "llm.output_messages", "output.value")
    if kind == "model" and any(told.get(name) for name in _TOKENS):
        cost = told.get("llm.cost.total")
        span.usage = values.usage(told, *_TOKENS, cost=cost, cached_in_input=True)
    return span


def _messages(told: dict[str, Any], role: Role, listed: str, value: str) -> list[Message]:
    found = unflatten(told, listed)
    return list(messages_of(found, role)) if found else list(messages_of(told.get(value), role))


HOSTS = (OpenInference(),)
