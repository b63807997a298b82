"""The four wire formats, byte shapes and event sequences, over plain HTTP."""

import json
import sys
from datetime import UTC, datetime

import pytest
from conversations import CALLS, CHAT, CONVERSATIONS, GEMINI, GEMINI_ROUTE, RESPONSES
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit.testing.wires
from tacit.testing import FakeClock, ModelServer, Reply, Text, ToolUse, Usage, reply
from tacit.testing.wires import Bad, Envelope, answer_for, pieces, read_request, wires

CREATED = 1_767_225_600
CLOCK = FakeClock(datetime.fromtimestamp(CREATED, UTC))
SAID = reply(
    "Hello there",
    ToolUse("read", {"path": "a"}),
    ToolUse("ls", {}, "mine"),
    usage=Usage(120, 33, 80),
)


@pytest.fixture
def server():
    with ModelServer(SAID, clock=CLOCK) as running:
        yield running


def test_chat_whole(server, call) -> None:
    """A chat completion has its message, calls with arguments as text, and usage."""
    answer = call(server.url, "/v1/chat/completions", CHAT)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": CREATED,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hello there",
                    "tool_calls": [
                        {
                            "id": "call_1_1",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path":"a"}'},
                        },
                        {
                            "id": "mine",
                            "type": "function",
                            "function": {"name": "ls", "arguments": "{}"},
                        },
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 120,
            "completion_tokens": 33,
            "total_tokens": 153,
            "prompt_tokens_details": {"cached_tokens": 80},
        },
    }


def test_chat_stream(server, call) -> None:
    """Chat deltas: role, text in pieces, each call opened once and its arguments in pieces."""
    asked = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    answer = call(server.url, "/v1/chat/completions", asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    names, values = zip(*answer.events, strict=True)
    assert set(names) == {""}
    assert values[-1] == "[DONE]"
    assert [value["choices"][0]["delta"] for value in values[:-2]] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello "},
        {"content": "there"},
        {"tool_calls": [_opening(0, "call_1_1", "read")]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"path'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '":"a"}'}}]},
        {"tool_calls": [_opening(1, "mine", "ls")]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]},
        {},
    ]
    reasons = [value["choices"][0]["finish_reason"] for value in values[:-2]]
    assert reasons == [None] * 9 + ["tool_calls"]
    assert values[-2]["choices"] == []
    assert values[-2]["usage"]["total_tokens"] == 153


def _opening(index: int, call_id: str, name: str) -> dict[str, object]:
    function = {"name": name, "arguments": ""}
    return {"index": index, "id": call_id, "type": "function", "function": function}


def test_chat_stream_counts_only_when_asked(server, call) -> None:
    """Without include_usage no event carries usage, as with the real service."""
    answer = call(server.url, "/v1/chat/completions", {**CHAT, "stream": True})
    assert not any("usage" in value for _, value in answer.events if isinstance(value, dict))


def test_responses_whole(server, call) -> None:
    """A response lists text and calls as items, and counts cached tokens among the input."""
    body = call(server.url, "/v1/responses", RESPONSES).json
    assert (body["object"], body["status"], body["created_at"]) == (
        "response",
        "completed",
        CREATED,
    )
    assert [item["type"] for item in body["output"]] == [
        "message",
        "function_call",
        "function_call",
    ]
    assert body["output"][0]["content"][0]["text"] == "Hello there"
    assert body["output"][1] == {
        "id": "fc_1_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1_1",
        "name": "read",
        "arguments": '{"path":"a"}',
    }
    assert body["usage"]["input_tokens"] == 120
    assert body["usage"]["input_tokens_details"]["cached_tokens"] == 80


def test_responses_stream(server, call) -> None:
    """The events of a response come in OpenAI's order, numbered, each named as its type."""
    answer = call(server.url, "/v1/responses", {**RESPONSES, "stream": True})
    names = [name for name, _ in answer.events]
    arguments = "response.function_call_arguments"
    a_call = [
        "response.output_item.added",
        f"{arguments}.delta",
        f"{arguments}.delta",
        f"{arguments}.done",
        "response.output_item.done",
    ]
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        *a_call,
        *a_call,
        "response.completed",
    ]
    values = [value for _, value in answer.events]
    assert [value["type"] for value in values] == names
    assert [value["sequence_number"] for value in values] == list(range(len(values)))
    assert [v["output_index"] for v in values if v["type"].endswith("item.done")] == [0, 1, 2]
    whole = call(server.url, "/v1/responses", RESPONSES).json
    assert values[-1]["response"] == {**whole, "id": "resp_1"} | _first_ids(whole)


def _first_ids(whole: dict[str, object]) -> dict[str, object]:
    """The second request's output with the first one's ids."""
    text = json.dumps(whole["output"]).replace("_2_", "_1_")
    return {"output": json.loads(text)}


def test_anthropic_whole(server, call) -> None:
    """A message has its blocks in order, and counts cached tokens apart from the input."""
    body = call(server.url, *CALLS["anthropic"]).json
    assert body == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "text", "text": "Hello there"},
            {"type": "tool_use", "id": "call_1_1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "mine", "name": "ls", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 40,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 80,
            "output_tokens": 33,
        },
    }


def test_anthropic_stream(server, call) -> None:
    """The events of a message come in Anthropic's order, with arguments as partial JSON."""
    path, body = CALLS["anthropic"]
    answer = call(server.url, path, {**body, "stream": True})
    shape = [
        (name, value.get("index"), value.get("delta", {}).get("type"))
        for name, value in answer.events
    ]
    assert shape == [
        ("message_start", None, None),
        ("content_block_start", 0, None),
        ("content_block_delta", 0, "text_delta"),
        ("content_block_delta", 0, "text_delta"),
        ("content_block_stop", 0, None),
        ("ping", None, None),
        ("content_block_start", 1, None),
        ("content_block_delta", 1, "input_json_delta"),
        ("content_block_delta", 1, "input_json_delta"),
        ("content_block_delta", 1, "input_json_delta"),
        ("content_block_stop", 1, None),
        ("content_block_start", 2, None),
        ("content_block_delta", 2, "input_json_delta"),
        ("content_block_delta", 2, "input_json_delta"),
        ("content_block_delta", 2, "input_json_delta"),
        ("content_block_stop", 2, None),
        ("message_delta", None, None),
        ("message_stop", None, None),
    ]
    values = [value for _, value in answer.events]
    assert all(value["type"] == name for name, value in answer.events)
    partial = [v["delta"]["partial_json"] for v in values[7:10]]
    assert partial == ["", '{"path', '":"a"}']
    assert values[6]["content_block"]["input"] == {}
    assert values[-2]["delta"]["stop_reason"] == "tool_use"
    assert values[-2]["usage"]["output_tokens"] == 33


def test_gemini_whole(server, call) -> None:
    """A response has one candidate whose parts are the text and the calls."""
    body = call(server.url, *CALLS["gemini"]).json
    assert body == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Hello there"},
                        {"functionCall": {"id": "call_1_1", "name": "read", "args": {"path": "a"}}},
                        {"functionCall": {"id": "mine", "name": "ls", "args": {}}},
                    ],
                },
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 120,
            "candidatesTokenCount": 33,
            "totalTokenCount": 153,
            "cachedContentTokenCount": 80,
        },
        "modelVersion": "m",
        "responseId": "resp-1",
    }


def test_gemini_stream(server, call) -> None:
    """Text comes in pieces, a call whole, and only the last event says why it stopped."""
    answer = call(server.url, f"{GEMINI_ROUTE}streamGenerateContent?alt=sse", GEMINI)
    candidates = [value["candidates"][0] for _, value in answer.events]
    assert [next(iter(c["content"]["parts"][0])) for c in candidates] == [
        "text",
        "text",
        "functionCall",
        "functionCall",
    ]
    assert [c.get("finishReason") for c in candidates] == [None, None, None, "STOP"]
    assert server.requests[0].model == "m"


def test_gemini_stream_needs_sse(call) -> None:
    """Without alt=sse the real service answers otherwise, so here it is a clear 400."""
    with ModelServer("hi", strict=False) as server:
        answer = call(server.url, f"{GEMINI_ROUTE}streamGenerateContent", GEMINI)
    assert answer.status == 400
    assert "alt=sse" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("wire", "done", "length", "filtered"),
    [
        ("openai-chat", "stop", "length", "content_filter"),
        ("anthropic", "end_turn", "max_tokens", "refusal"),
        ("gemini", "STOP", "MAX_TOKENS", "SAFETY"),
        ("openai-responses", None, "max_output_tokens", "content_filter"),
    ],
)
def test_why_it_stopped(call, wire, done, length, filtered) -> None:
    """Each format says in its own words why the model stopped."""
    said = [Reply((Text("x"),), finish=f) for f in ("", "length", "filtered")]
    with ModelServer(said) as server:
        answers = [call(server.url, *CALLS[wire]).json for _ in said]
    found = {
        "openai-chat": lambda b: b["choices"][0]["finish_reason"],
        "anthropic": lambda b: b["stop_reason"],
        "gemini": lambda b: b["candidates"][0]["finishReason"],
        "openai-responses": lambda b: (b["incomplete_details"] or {}).get("reason"),
    }[wire]
    assert [found(body) for body in answers] == [done, length, filtered]


@pytest.mark.parametrize("wire", CONVERSATIONS)
def test_one_request_whatever_the_format(call, wire) -> None:
    """The same conversation reads the same in all four formats, and its bytes are kept."""
    body = json.dumps(CONVERSATIONS[wire], indent=1).encode()
    with ModelServer("fine") as server:
        assert call(server.url, CALLS[wire][0], body).status == 200
        request = server.requests[0]
    assert request.wire == wire
    assert request.body == body
    assert (request.model, request.system, request.turn) == ("m", "be brief", 1)
    assert request.user_texts == ("read it", "again")
    uses = [use for message in request.messages for use in message.tool_uses]
    assert uses == [ToolUse("read", {"path": "a"}, "c1")]
    assert [(r.id, r.text, r.failed) for r in request.tool_results] == [("c1", "text of a", False)]
    assert [(t.name, t.description, t.parameters) for t in request.tools] == [
        ("read", "d", {"type": "object"})
    ]


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_broken_arguments_go_out_as_written(call, wire) -> None:
    """A script can make the model write arguments that are not JSON."""
    broken = '{"path": "a'
    path, body = CALLS[wire]
    with ModelServer(ToolUse("read", raw=broken)) as server:
        events = call(server.url, path, {**body, "stream": True}).events
    deltas = {
        "openai-chat": lambda v: "".join(
            c["function"]["arguments"]
            for choice in v.get("choices", ())
            for c in choice["delta"].get("tool_calls", ())
        ),
        "openai-responses": lambda v: v["delta"] if v["type"].endswith(".delta") else "",
        "anthropic": lambda v: v.get("delta", {}).get("partial_json", ""),
    }[wire]
    assert "".join(deltas(value) for _, value in events if isinstance(value, dict)) == broken


@given(st.text(max_size=300))
def test_pieces_are_the_text(text: str) -> None:
    """Pieces put together are the text; there are at most eight, and two where there can be."""
    cut = pieces(text)
    assert "".join(cut) == text
    assert len(cut) <= 8
    assert len(cut) >= min(2, len(text))
    assert all(cut)


WORDS = (
    "role content messages input contents parts tools type text functionCall functionResponse "
    "response tool_calls function arguments system stream_options"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["user", "model", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.sampled_from(wires()), json_values | st.binary(max_size=20))
def test_any_body_is_read_or_refused(wire, value) -> None:
    """Whatever a client sends, a wire gives a request or says that it is bad."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    route = CALLS[wire.name][0]
    envelope = Envelope(number=1, path=route, headers={}, body=body, route=route)
    try:
        request = read_request(wire, envelope)
    except Bad:
        return
    assert request.body == body
    answer = answer_for(request, SAID, CREATED)
    assert wire.whole(answer)
    assert wire.stream(answer)


FIFTH = """
from tacit.testing.wires import Wire, decode, encode, request

class Echo(Wire):
    name = "echo"
    def fits(self, route): return route == "/echo"
    def read(self, envelope): return request(envelope, self.name, model="m", stream=False)
    def whole(self, answer): return {"said": answer.reply.text}
    def stream(self, answer): return [encode(self.whole(answer))]
    def error(self, status): return {"bad": status.message}
    def count(self, route, tokens): return {"n": tokens} if route == "/echo/count" else None

wire = Echo()
"""


def test_a_wire_format_is_one_file(tmp_path, monkeypatch, server, call) -> None:
    """A module beside the others is spoken without a line elsewhere."""
    (tmp_path / "echo.py").write_text(FIFTH)
    monkeypatch.setattr(
        tacit.testing.wires, "__path__", [*tacit.testing.wires.__path__, str(tmp_path)]
    )
    wires.cache_clear()
    try:
        assert call(server.url, "/echo", {}).json == {"said": "Hello there"}
        assert call(server.url, "/echo/count", {}).json == {"n": 1}
        assert call(server.url, "/v1/models", method="GET").json["object"] == "list"
    finally:
        wires.cache_clear()
        sys.modules.pop("tacit.testing.wires.echo", None)
