"""OTLP as it is written: ids, values, times, and spans by themselves."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tacit.traces.otlp import RawSpan, attributes_of, flat_form, raw_spans, unflatten

SPAN = {
    "traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat",
    "startTimeUnixNano": "1794788077985140833",
    "attributes": [{"key": "n", "value": {"intValue": "7"}}],
    "status": {"code": 2, "message": "broke"},
}  # fmt: skip


def test_a_span_in_the_json_of_both_encoders() -> None:
    """Ids in hex as OTLP says, or in base64 as protobuf's own JSON has them."""
    encoded = SPAN | {
        "traceId": base64.b64encode(bytes.fromhex("ab" * 16)).decode(),
        "spanId": base64.b64encode(bytes.fromhex("cd" * 8)).decode(),
        "status": {"code": "STATUS_CODE_ERROR", "message": "broke"},
    }
    for span, names in ((SPAN, ("resourceSpans", "scopeSpans")),
                        (encoded, ("resource_spans", "scope_spans"))):  # fmt: skip
        (made,) = raw_spans({names[0]: [{names[1]: [{"spans": [span]}]}]})
        assert (made.trace, made.id) == ("ab" * 16, "cd" * 8)
        assert (made.attributes, made.error) == ({"n": 7}, "broke")
        assert made.start == datetime(2026, 11, 16, 0, 14, 37, 985141, UTC)


def test_a_span_by_itself_is_the_same_span() -> None:
    """What the daemon keeps is read back as what it was."""
    events = [("gen_ai.choice", {"index": 0}), ("exception", {})]
    at = datetime(2026, 11, 15, tzinfo=UTC)
    span = RawSpan("t", "s", "p", "chat", at, at, {"a.b": [1, {"c": 2}]}, events, "broke")
    (made,) = raw_spans(msgspec.json.decode(msgspec.json.encode(flat_form(span))))
    assert made == span


@pytest.mark.parametrize(
    "span",
    [
        {"traceId": "t", "spanId": "s", "parentSpanId": "p", "name": "chat",
         "startTimeUnixNano": "1794700800000000000", "attributes": SPAN["attributes"],
         "status": {"code": 2, "message": "broke"}},
        {"trace_id": "t", "span_id": "s", "parent_span_id": "p", "name": "chat",
         "start_time": 1794700800000000000, "attributes": {"n": 7},
         "status": {"code": "ERROR", "message": "broke"}},
        {"trace_id": "t", "span_id": "s", "parent_id": "p", "name": "chat",
         "start_time": "2026-11-15T00:00:00Z", "attributes": {"n": 7},
         "status_code": "ERROR", "status_message": "broke"},
        {"trace_id": "t", "span_id": "s", "parent_span_id": "p", "span_name": "chat",
         "timestamp": "2026-11-15T00:00:00Z", "span_attributes": {"n": 7}, "span_kind": "Internal",
         "status_code": "Error", "status_message": "broke"},
    ],
)  # fmt: skip
def test_a_span_by_itself_has_many_names(span: dict[str, Any]) -> None:
    """As tools write spans to files: ids at the top, and names by this or that habit."""
    (made, child) = raw_spans(span | {"child_spans": [span | {"span_id": "c", "spanId": "c"}]})
    at = datetime(2026, 11, 15, tzinfo=UTC)
    assert made == RawSpan("t", "s", "p", "chat", at, None, {"n": 7}, [], "broke")
    assert child.id == "c"


def test_values_of_every_type_and_names_with_numbers() -> None:
    """Lists and objects, typed or plain; numbers in names are places in lists."""
    typed = {"kvlistValue": {"values": [{"key": "a", "value": {"arrayValue": {"values": [
        {"boolValue": True}, {"doubleValue": 1.5}, {}]}}}]}}  # fmt: skip
    assert attributes_of([{"key": "x", "value": typed}]) == {"x": {"a": [True, 1.5, None]}}
    flat = {f"m.{n}.message.role": str(n) for n in (10, 2, 0)} | {"m.2.message.calls.0.id": "c"}
    assert unflatten(flat, "m") == [
        {"message": {"role": "0"}},
        {"message": {"role": "2", "calls": [{"id": "c"}]}},
        {"message": {"role": "10"}},
    ]
