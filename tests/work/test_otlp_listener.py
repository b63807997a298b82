"""Agents send their traces to the daemon: the official exporter, and senders that mean no good."""

import gzip
import http.client
import json
import os
import socket
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.base import paths
from tacit.base.errors import Refused
from tacit.traces import hook_events
from tacit.traces.store import Store, forget_sessions
from tacit.work import housekeeping, otlp_listener
from tacit.work.otlp_listener import OtlpListener, drop_old, token
from tacit.work.worker import store_ended_session

FORMS = Path(__file__).parents[1] / "fixtures" / "trace-forms"
SECRET = "sk-ant-api03-" + "a1B2" * 23 + "-wxyzAA"


@pytest.fixture
def listener() -> Iterator[OtlpListener]:
    made = OtlpListener(0)
    yield made
    made.close()


def send(
    listener: OtlpListener, body: bytes, path: str = "/v1/traces", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=10)
    given = {"Content-Type": "application/json", "Authorization": f"Bearer {token()}"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, body, given | named)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def chat(trace: str, words: str, conversation: str = "", span: str = "1") -> dict[str, Any]:
    """A call of a model, as a request."""
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": words}]}])
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said}
    attributes |= {"gen_ai.conversation.id": conversation} if conversation else {}
    pairs = [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()]
    made = {"traceId": trace * 32, "spanId": span * 16, "name": "chat", "attributes": pairs}
    made |= {"startTimeUnixNano": "1794788077985140833", "endTimeUnixNano": "1794788078985140833"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [made]}]}]}


def post(listener: OtlpListener, request: dict[str, Any]) -> int:
    return send(listener, json.dumps(request).encode())[0]


def stored() -> list[Any]:
    """What the worker makes of the events in the spool."""
    for session in hook_events.quiet_sessions(hook_events.pending(), 4e9):
        store_ended_session(session)
    with Store.open() as store:
        return [store.trace(found.id) for found in store.sessions()]


def test_the_official_exporter_teaches(listener: OtlpListener) -> None:
    """Spans sent as OpenTelemetry sends them, packed, are a session in the store."""
    exporter_module = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter = exporter_module.OTLPSpanExporter(
        f"http://127.0.0.1:{listener.port}/v1/traces",
        headers={"authorization": f"Bearer {token()}"},
        compression=Compression.Gzip,
    )
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1"}
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Build it."}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Built."}]}])
    with tracer.start_as_current_span("invoke_agent", attributes=agent):
        with tracer.start_as_current_span("GET", attributes={"http.url": "https://x/?key=1"}):
            pass
        said = {"gen_ai.input.messages": messages, "gen_ai.output.messages": answer}
        call = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 7}
        with tracer.start_as_current_span("chat", attributes=call | said):
            pass
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash",
                "gen_ai.tool.call.result": "ok"}  # fmt: skip
        with tracer.start_as_current_span("execute_tool bash", attributes=tool):
            pass
    provider.shutdown()
    listener.inbox.tell_spool()
    (trace,) = stored()
    assert (trace.id, trace.prompts, trace.texts) == ("otel:c1", ("Build it.",), ("Built.",))
    assert ([call.name for call in trace.calls], trace.usage.output) == (["bash"], 7)
    kept = "".join(p.read_text() for p in Path(paths.folders().data, "otlp").iterdir())
    assert "http.url" not in kept


def test_recorded_requests_give_what_their_file_gives(listener: OtlpListener) -> None:
    """Spans and log records, sent request by request, are put together as from one file."""
    for line in (FORMS / "otel-events.jsonl").read_text().splitlines():
        path = "/v1/logs" if "resourceLogs" in line else "/v1/traces"
        assert send(listener, line.encode(), path)[0] == 200
    listener.inbox.tell_spool()
    (trace,) = stored()
    assert trace.prompts == ("Build the package.", "No, with clang.")
    assert [call.failed for call in trace.calls] == [True, False]
    assert len(trace.texts) == 3


def test_traces_of_one_conversation_are_one_session(listener: OtlpListener) -> None:
    """A trace that says late what it belongs to is moved there; others stay apart."""
    for request in (
        chat("a", "First."),
        chat("a", "First, again.", "c", "2"),
        chat("b", "Second.", "c"),
        chat("d", "Elsewhere."),
    ):
        assert post(listener, request) == 200
    assert len(list(Path(paths.folders().data, "otlp").iterdir())) == 2
    listener.inbox.tell_spool()
    found = {trace.session: trace.prompts for trace in stored()}
    assert found == {"c": ("First.", "First, again.", "Second."), "d" * 32: ("Elsewhere.",)}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Host": "evil.example:4318"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Content_Length": "99999999999"}, 413),
        ({"Content_Length": "x"}, 411),
        ({"Content_Encoding": "br"}, 415),
        ({"Content_Encoding": "gzip"}, 400),
    ],
)
def test_others_are_refused(headers: dict[str, str], status: int, listener: OtlpListener) -> None:
    """Without the token, from a page, too large or packed wrongly: nothing is kept."""
    assert send(listener, json.dumps(chat("a", "x")).encode(), **headers)[0] == status
    assert not Path(paths.folders().data, "otlp").exists()


def test_what_is_not_otlp_is_refused(listener: OtlpListener) -> None:
    """Bytes of any kind, and a bomb of zeros, are answered with a reason."""
    assert send(listener, b"[1]")[0] == 400
    assert send(listener, b"\xff" * 50, Content_Type="application/x-protobuf")[0] in (400, 415)
    assert send(listener, b"{}", "/v1/metrics")[0] == 404
    bomb = gzip.compress(bytes(otlp_listener.MAX_BODY + 2))
    assert send(listener, bomb, Content_Encoding="gzip")[0] == 413
    packed = zlib.compress(json.dumps(chat("a", "Hello.")).encode())
    assert send(listener, packed, Content_Encoding="deflate")[0] == 200


def test_more_than_the_limits_is_put_off(
    listener: OtlpListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many requests, a full folder, a full conversation: the sender is told which."""
    assert post(listener, chat("a", "x")) == 200
    monkeypatch.setattr(otlp_listener, "MAX_CONVERSATION", 10)
    status, body = send(listener, json.dumps(chat("a", "x")).encode())
    assert (status, json.loads(body)["partialSuccess"]["rejectedSpans"]) == (200, "1")
    monkeypatch.setattr(otlp_listener, "MAX_FOLDER", 10)
    assert post(listener, chat("a", "x")) == 503
    monkeypatch.setattr(listener, "_rate", otlp_listener._Rate(0, 0))
    assert post(listener, chat("a", "x")) == 429


def test_silent_senders_do_not_keep_others_out(
    listener: OtlpListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More connections than there are places for are closed; when they are gone, all is well."""
    monkeypatch.setattr(listener._server, "_slots", threading.BoundedSemaphore(1))
    silent = socket.create_connection(("127.0.0.1", listener.port))
    silent.sendall(b"POST /v1/traces HTTP/1.1\r\n")
    with pytest.raises((http.client.HTTPException, OSError)):
        send(listener, b"{}")
    silent.close()
    assert post(listener, chat("a", "x")) == 200


def test_secrets_are_not_written(listener: OtlpListener) -> None:
    """A key in a message is taken out before anything is on disk, and the message stays one."""
    assert post(listener, chat("a", f'Use "{SECRET}" please.')) == 200
    (path,) = Path(paths.folders().data, "otlp").iterdir()
    assert SECRET not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    listener.inbox.tell_spool()
    (trace,) = stored()
    assert trace.prompts[0].endswith('" please.')


def test_what_is_forgotten_is_deleted(listener: OtlpListener) -> None:
    """With the session goes the file it was received in; old files go by themselves."""
    for name in "ab":
        post(listener, chat(name, "Words."))
    listener.inbox.tell_spool()
    stored()
    folder = Path(paths.folders().data, "otlp")
    with Store.open() as store:
        forget_sessions(store, session="a" * 32)
    (left,) = folder.iterdir()
    now = left.stat().st_mtime
    assert drop_old(now + 3600) == 0
    assert drop_old(now + 31 * 24 * 3600) == 1
    assert housekeeping._drop_received(now) is None


def test_a_port_that_is_taken_is_said(listener: OtlpListener) -> None:
    """The error names the port and the setting."""
    with pytest.raises(Refused, match=str(listener.port)) as caught:
        OtlpListener(listener.port)
    assert "otlp_port" in caught.value.hint


def test_an_event_that_was_lost_is_made_up_for(listener: OtlpListener) -> None:
    """The files are where the reader looks for sessions, so a kill before the event loses none."""
    from tacit.traces import host_registry

    post(listener, chat("a", "x"))
    (source,) = host_registry.get("otel").find()
    assert os.path.dirname(source.path) == os.path.join(paths.folders().data, "otlp")
