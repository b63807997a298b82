"""Spans and log records as OpenTelemetry writes them: OTLP in JSON, or one flat object a span.

Owns the wire: the nesting by resource and scope, typed values, ids in hex or base64, times in
nanoseconds or in ISO form. What attributes mean is left to the readers, by their conventions.
"""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from tacit.traces import values

_DEEPEST = 12
_NESTED = 200
"""How far spans that hold others are followed."""


class RawSpan(msgspec.Struct):
    """One span, or the words of one that a log record tells."""

    trace: str = ""
    id: str = ""
    parent: str = ""
    name: str = ""
    start: datetime | None = None
    end: datetime | None = None
    attributes: dict[str, Any] = {}
    events: list[tuple[str, dict[str, Any]]] = []
    error: str = ""
    log: bool = False
    scope: str = ""


def is_otlp(record: Any) -> bool:
    """Whether `record` is an export of spans or of log records."""
    request = values.mapping(record)
    return any(isinstance(request.get(name), list) for name in (*_SPANS, *_LOGS))


def is_flat(record: Any) -> bool:
    """Whether `record` is one span by itself."""
    span = values.mapping(record)
    told = values.mapping(span.get("context")) | span
    if values.either(told, *_TRACE) is None or values.either(told, *_ID) is None:
        return False
    return bool(span.keys() & set(_ATTRIBUTES)) or any(k.startswith("attributes.") for k in span)


_TRACE = ("traceId", "trace_id", "context.trace_id")
_ID = ("spanId", "span_id", "context.span_id")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id")
_START = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "timestamp")
_END = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
_ATTRIBUTES = ("attributes", "span_attributes")
_ROLES = ("INTERNAL", "CLIENT", "SERVER", "PRODUCER", "CONSUMER", "UNSPECIFIED")
"""What OpenTelemetry calls the kind of a span, which is not what OpenInference calls so."""
_SPANS = ("resourceSpans", "resource_spans")
_LOGS = ("resourceLogs", "resource_logs")
_SCOPES = (
    "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs",
)  # fmt: skip
_RECORDS = ("spans", "logRecords", "log_records")


def raw_spans(record: Any) -> Iterator[RawSpan]:
    """The spans in one record of a file, or in one request."""
    if is_flat(record):
        yield from _with_children(record)
        return
    request = values.mapping(record)
    for name in (*_SPANS, *_LOGS):
        for resource in values.objects(request.get(name)):
            for scoped in _each(resource, _SCOPES):
                scope = values.mapping(scoped.get("scope"))
                for span in _each(scoped, _RECORDS):
                    made = _log(span) if name in _LOGS else _span(span)
                    made.scope = values.string(scope.get("name"))
                    yield made


def _each(value: dict[str, Any], names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for name in names:
        yield from values.objects(value.get(name))


def _with_children(span: dict[str, Any], depth: int = 0) -> Iterator[RawSpan]:
    yield _span(span)
    for child in values.objects(span.get("child_spans")) if depth < _NESTED else ():
        yield from _with_children(child, depth + 1)


def _span(span: dict[str, Any]) -> RawSpan:
    """A span of OTLP, or as an SDK prints it, as Phoenix gives it, or as a row of a table."""
    told = values.mapping(span.get("context")) | span
    attributes = attributes_of(values.either(span, *_ATTRIBUTES))
    for key, value in span.items():
        if key.startswith("attributes.") and value is not None:
            attributes |= flatten({key.removeprefix("attributes."): value})
    kind = values.string(span.get("span_kind"))
    if kind and not kind.upper().endswith(_ROLES):
        attributes.setdefault("openinference.span.kind", kind)
    state = values.mapping(span.get("status"))
    code = (
        values.either(state, "code", "status_code") or span.get("status_code") or span.get("status")
    )
    failed = code == 2 or values.string(code).upper().endswith("ERROR")
    message = values.either(state, "message", "description") or span.get("status_message")
    made = RawSpan(
        _id(values.either(told, *_TRACE)),
        _id(values.either(told, *_ID)),
        _id(values.either(told, *_PARENT)),
        values.string(values.either(told, "name", "span_name")),
        _time(values.either(told, *_START)),
        _time(values.either(told, *_END)),
        attributes,
        [_event(event) for event in _each(span, ("events", "span_events"))],
        log=span.get("log") is True,
    )
    made.error = _error(made, failed, values.string(message))
    return made


def _event(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    told = attributes_of(event.get("attributes")) | flatten(values.mapping(event.get("body")))
    return values.string(values.either(event, "name", "event_name")), told


def _log(record: dict[str, Any]) -> RawSpan:
    """A log record: an event of the span that it names."""
    told = attributes_of(record.get("attributes"))
    body = plain_value(record.get("body"))
    name = values.either(record, "eventName", "event_name") or told.get("event.name")
    at = _time(values.either(record, "timeUnixNano", "time_unix_nano"))
    return RawSpan(
        _id(values.either(record, "traceId", "trace_id")),
        _id(values.either(record, "spanId", "span_id")),
        start=at,
        events=[(values.string(name), told | values.mapping(body))],
        log=True,
    )


def flat_form(span: RawSpan) -> dict[str, Any]:
    """`span` as one object by itself, which is read back as the same."""
    status = {"status_code": "ERROR", "description": span.error} if span.error else {}
    return {
        "name": span.name,
        "context": {"trace_id": span.trace, "span_id": span.id},
        "parent_id": span.parent,
        "start_time": span.start,
        "end_time": span.end,
        "attributes": span.attributes,
        "events": [{"name": name, "attributes": told} for name, told in span.events],
        "status": status,
        "log": span.log,
    }


def _error(span: RawSpan, failed: bool, message: str) -> str:
    """Why a span failed, in words; empty when it did not."""
    kind = values.text(span.attributes.get("error.type"))
    if not failed and not kind:
        return ""
    thrown = next((told for name, told in span.events if name == "exception"), {})
    return message or values.text(thrown.get("exception.message")) or kind or "failed"


def attributes_of(found: Any) -> dict[str, Any]:
    """Attributes by name, whether they come as a list with types or as an object."""
    if isinstance(found, dict):
        return flatten(found)
    return {
        key: plain_value(pair.get("value"))
        for pair in values.objects(found)
        if (key := values.string(pair.get("key")))
    }


def plain_value(value: Any, depth: int = 0) -> Any:
    """The value without its type."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    for name, inner in value.items():
        if name in ("stringValue", "string_value", "boolValue", "bool_value", "bytesValue"):
            return inner
        if name in ("intValue", "int_value", "doubleValue", "double_value"):
            return _number(inner)
        if name in ("arrayValue", "array_value"):
            items = values.items(values.mapping(inner).get("values"))
            return [plain_value(item, depth + 1) for item in items]
        if name in ("kvlistValue", "kvlist_value"):
            pairs = values.objects(values.mapping(inner).get("values"))
            return {
                values.string(pair.get("key")): plain_value(pair.get("value"), depth + 1)
                for pair in pairs
            }
    return value or None


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return int(value[:20])
        except ValueError:
            return 0
    return value


def flatten(value: dict[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """`value` with the names of nested objects joined by dots; lists stay."""
    made: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner and depth < _DEEPEST:
            made |= flatten(inner, f"{before}{key}.", depth + 1)
        else:
            made[f"{before}{key}"] = inner
    return made


def unflatten(attributes: dict[str, Any], prefix: str) -> list[Any]:
    """The list that attributes called `prefix.0.…`, `prefix.1.…` spell, or that `prefix` is."""
    if isinstance(attributes.get(prefix), list):
        return [
            _nest(flatten(item)) if isinstance(item, dict) else item for item in attributes[prefix]
        ]
    inside = {
        key[len(prefix) + 1 :]: value
        for key, value in attributes.items()
        if key.startswith(prefix + ".")
    }
    found = _nest(inside)
    return found if isinstance(found, list) else []


def _nest(flat: dict[str, Any]) -> Any:
    """Objects and lists, out of names joined by dots."""
    made: dict[str, Any] = {}
    for key, value in flat.items():
        place = made
        *above, last = key.split(".")[:_DEEPEST]
        for part in above:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place[last] = value
    return _with_lists(made)


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() and len(key) < 7 for key in value):
        return [_with_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _with_lists(inner) for key, inner in value.items()}


def _id(value: Any) -> str:
    """An id in hex: OTLP's JSON has it so, protobuf's own JSON in base64, the SDK with 0x."""
    text = values.string(value)[:200].removeprefix("0x")
    if len(text) in (12, 24) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text


def _time(value: Any) -> datetime | None:
    """A moment: nanoseconds, or ISO text."""
    if isinstance(value, str) and not value.isdigit():
        return values.when(value)
    number = _number(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return values.when(number / 1e9 if number > 1e17 else number)
