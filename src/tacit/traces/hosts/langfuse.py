"""Langfuse: observations as its exports and its API give them, and traces with theirs inside.

The blob export writes JSONL with names like `trace_id` (older: `traceId`), a line an observation,
with the fields of its trace; scores stand in files of their own, or in the trace. The API and the
interface give `{"trace": {…}, "observations": […]}`, or a trace that holds both lists.
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import messages_of
from tacit.traces.host import Source, decode_lines, file_stamp, ignore, plain_files
from tacit.traces.spans import Span, SpanFiles, SpanKind, scored, tool_name
from tacit.traces.trace import Usage

_KINDS: dict[str, SpanKind] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_FAILED = ("ERROR",)


class Langfuse(SpanFiles):
    name = "langfuse"
    title = "Langfuse"
    precedence = 66

    def claims(self, record: Any) -> bool:
        found = values.mapping(record)
        if isinstance(found.get("observations"), list):
            inner = values.objects(found["observations"])  # which need not repeat the trace's id
            return "trace" in found or any(_is_observation(one, _PLACED) for one in inner[:5])
        return _is_observation(found) or _is_score(found)

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        beside = os.path.join(os.path.dirname(os.path.dirname(source.path)), "scores")
        known = {source.key, *self.layout(source.path).joined.get(source.key, ())}
        for file in plain_files(beside, 0):
            scores = _scores(file, file_stamp(file))
            into.about(verdict=next((scores[name] for name in known if name in scores), ""))
        yield from super().tell(records, source, into)

    def places(self, record: Any) -> Iterator[tuple[str, str]]:
        found = values.mapping(record)
        if isinstance(found.get("observations"), list):
            yield from super().places(record)
        else:
            session = values.string(values.either(found, "sessionId", "session_id"))
            yield values.string(values.either(found, *_TRACE)), session

    def spans(self, record: Any) -> Iterator[Span]:
        found = values.mapping(record)
        if not isinstance(found.get("observations"), list):
            yield _score(found) if _is_score(found) else _observation(found)
            return
        trace = values.mapping(found.get("trace")) or found
        scores = values.objects(found.get("scores")) or values.objects(trace.get("scores"))
        verdict = next((word for score in scores if (word := _verdict(score))), "")
        session = values.either(trace, "sessionId", "session_id")
        for observation in values.objects(found["observations"]):
            span = _observation(observation)
            span.trace = span.trace or values.string(trace.get("id"))
            span.conversation = span.conversation or values.string(session)
            span.verdict = verdict
            yield span
        yield Span(
            f"trace {values.string(trace.get('id'))}",
            trace=values.string(trace.get("id")),
            conversation=values.string(session),
            start=values.when(trace.get("timestamp")),
            given=list(messages_of(trace.get("input"), "user")),
            made=list(messages_of(trace.get("output"), "assistant")),
            verdict=verdict,
        )


@lru_cache(maxsize=64)
def _scores(file: str, stamp: str) -> dict[str, str]:
    """The verdicts in a file of scores, as the blob export writes it, by trace and by session."""
    found: dict[str, str] = {}
    try:
        for _, line in decode_lines(file, 0, dict[str, Any], ignore):
            if _is_score(line) and (span := _score(line)).verdict:
                found |= dict.fromkeys(filter(None, (span.trace, span.conversation)), span.verdict)
    except OSError:
        pass
    return found


_TRACE = ("traceId", "trace_id")
_PLACED = (*_TRACE, "startTime", "start_time")


def _is_observation(value: dict[str, Any], by: tuple[str, ...] = _TRACE) -> bool:
    known = ("GENERATION", "SPAN", "EVENT", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING")
    return _type(value) in known and bool(values.either(value, *by))


def _type(value: dict[str, Any]) -> str:
    return values.string(value.get("type")).upper()


def _is_score(value: dict[str, Any]) -> bool:
    named = {"name", "value"} <= value.keys() and bool(values.either(value, *_TRACE))
    return named and bool(values.either(value, "dataType", "data_type"))


def _observation(found: dict[str, Any]) -> Span:
    kind = _KINDS.get(_type(found), "other")
    span = Span(
        values.string(found.get("id")),
        values.string(values.either(found, "parentObservationId", "parent_observation_id")),
        values.string(values.either(found, *_TRACE)),
        values.string(values.either(found, "sessionId", "session_id")),
        kind,
        values.string(found.get("name")),
        values.when(values.either(found, "startTime", "start_time")),
        values.when(values.either(found, "endTime", "end_time")),
        model=values.string(values.either(found, "model", "provided_model_name")),
    )
    if found.get("level") in _FAILED:
        span.error = (
            values.text(values.either(found, "statusMessage", "status_message")) or "failed"
        )
    if kind == "tool":
        span.name = tool_name(span.name)
        span.arguments, span.result = found.get("input"), _opened(found.get("output"))
        return span
    span.given = list(messages_of(found.get("input"), "user"))
    asked = values.mapping(_opened(found.get("input")))
    span.tools = asked.get("tools") or values.either(found, "toolDefinitions", "tool_definitions")
    span.made = list(messages_of(found.get("output"), "assistant"))
    span.usage = _usage(found) if kind == "model" else None
    return span


def _usage(found: dict[str, Any]) -> Usage | None:
    tokens = _opened(values.either(found, "usageDetails", "usage_details")) or found.get("usage")
    tokens = values.mapping(tokens)
    costs = values.mapping(_opened(values.either(found, "costDetails", "cost_details")))
    cost = values.either(found, "totalCost", "total_cost", "calculatedTotalCost") or costs.get(
        "total"
    )
    if not tokens and not cost:
        return None
    named = {
        "input": values.either(tokens, "input", "promptTokens"),
        "output": values.either(tokens, "output", "completionTokens"),
        "read": tokens.get("input_cache_read", tokens.get("input_cached_tokens")),
        "written": tokens.get("input_cache_creation"),
        "reasoning": tokens.get("output_reasoning", tokens.get("output_reasoning_tokens")),
    }
    return values.usage(named, "input", "output", "read", "written", "reasoning", cost=cost)


def _score(found: dict[str, Any]) -> Span:
    trace = values.string(values.either(found, *_TRACE))
    session = values.string(values.either(found, "sessionId", "session_id"))
    name = f"score {values.string(found.get('id'))}"
    return Span(name, trace=trace, conversation=session, verdict=_verdict(found))


def _verdict(score: dict[str, Any]) -> str:
    kind = values.either(score, "dataType", "data_type")
    value = score.get("value")
    if kind == "BOOLEAN" and isinstance(value, int | float):
        value = bool(value)
    elif kind == "CATEGORICAL":
        value = values.either(score, "stringValue", "string_value")
    return scored(values.string(score.get("name")) or "score", value)


def _opened(value: Any) -> Any:
    """What a text of JSON holds; the blob export writes some members so."""
    if isinstance(value, str) and value[:1] in ("{", '"'):
        inner = values.decoded_json(value)
        return value if inner is None else inner
    return value


HOSTS = (Langfuse(),)
