"""The server: what it records, how its replies fail, and that it stays on loopback."""

import gzip
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from tacit.testing import (
    Cut,
    Endless,
    Garbage,
    ModelServer,
    Page,
    Replies,
    Stall,
    Status,
    reply,
)
from tacit.testing.script import ScriptFailed
from waiting import FOREVER, LONG

PATH = "/v1/chat/completions"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}
CALLER = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
EVERY_WIRE = {
    "openai-chat": (PATH, STREAM),
    "openai-responses": ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
    "anthropic": ("/v1/messages", {**STREAM, "max_tokens": 10}),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"parts": [{"text": "hi"}]}]},
    ),
}


def test_listens_on_loopback_only() -> None:
    """The server is bound to 127.0.0.1 and to nothing else."""
    with ModelServer("hi") as server:
        host = server.url.removeprefix("http://").split(":")[0]
        assert host == "127.0.0.1"
        port = int(server.url.rsplit(":", 1)[1])
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))  # taken, were it bound to every address


def test_keys_are_not_kept(call) -> None:
    """Headers and query fields that carry keys are recorded as hidden."""
    sent = {
        "Authorization": "Bearer sk-1",
        "x-api-key": "sk-2",
        "X-Goog-Api-Key": "sk-3",
        "X-Other": "kept",
    }
    with ModelServer("hi") as server:
        call(server.url, f"{PATH}?key=sk-4&v=1", ASK, headers=sent)
        call(server.url, "/v1/models?key=sk-5", method="GET", headers=sent)
        request, other = server.requests[0], server.others[0]
    assert "sk-" not in repr(request) + repr(other)
    assert request.headers["authorization"] == "[hidden]"
    assert request.headers["x-other"] == "kept"
    assert request.path == f"{PATH}?key=[hidden]&v=1"


def test_bodies_are_kept_byte_for_byte(call) -> None:
    """A plain, a gzipped and a chunked body are all recorded as the bytes the client meant."""
    body = json.dumps(ASK, indent=3).encode() + b"\n "
    with ModelServer("hi") as server:
        call(server.url, PATH, body)
        call(server.url, PATH, gzip.compress(body), headers={"Content-Encoding": "gzip"})
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.request("POST", PATH, iter([body[:9], body[9:]]), encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()
        assert [request.body for request in server.requests] == [body] * 3


def test_an_unknown_encoding_is_refused(call) -> None:
    """A body in an encoding that the standard library lacks gives 415, not nonsense."""
    with ModelServer("hi") as server:
        answer = call(server.url, PATH, b"xx", headers={"Content-Encoding": "zstd"})
        assert answer.status == 415
        broken = call(server.url, PATH, b"xx", headers={"Content-Encoding": "gzip"})
        assert broken.status == 400


def test_one_connection_carries_many_requests() -> None:
    """Connections are kept open, after whole and after streamed replies."""
    with ModelServer("hi") as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.connect()
        ours = connection.sock.getsockname()
        for body in (ASK, STREAM, ASK):
            connection.request("POST", PATH, json.dumps(body))
            assert b'"finish_reason":"stop"' in connection.getresponse().read()
            assert connection.sock.getsockname() == ours
        connection.close()


def test_fifty_at_once(call) -> None:
    """Fifty clients at once each get one reply of a list, and each call has its own number."""
    said = [f"reply-{n:02}" for n in range(50)]
    with ModelServer(said) as server:
        got: list[str] = []

        def ask() -> None:
            answer = call(server.url, PATH, ASK).json
            got.append(answer["choices"][0]["message"]["content"])

        threads = [threading.Thread(target=ask) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [request.number for request in server.requests]
    assert sorted(got) == said
    assert numbers == list(range(1, 51))


def test_waiting(call) -> None:
    """A test can wait for a number of calls or for one that fits, and is told what did come."""
    with ModelServer("hi") as server:
        asking = threading.Timer(0.05, call, (server.url, PATH, ASK))
        asking.start()
        assert server.wait(1)[0].model == "m"
        assert server.wait_for(lambda request: request.model == "m").number == 1
        assert server.wait_ended(1)[0].outcome == "answered"
        with pytest.raises(TimeoutError, match=f"1 of 2 calls of the model.*{PATH}"):
            server.wait(2, timeout=0.05)
        asking.join()


@pytest.mark.parametrize("wire", EVERY_WIRE)
@pytest.mark.parametrize("code", [429, 500, 529])
def test_status(call, wire, code) -> None:
    """An HTTP error has the provider's shape, the message, and the time to wait."""
    said = Status(code, retry_after=1.5, message="slow down")
    with ModelServer(said) as server:
        answer = call(server.url, *EVERY_WIRE[wire])
        assert server.wait_ended()[0].outcome == "refused"
    assert answer.status == code
    assert answer.headers["retry-after"] == "1.5"
    assert answer.json["error"]["message"] == "slow down"


@pytest.mark.parametrize("wire", EVERY_WIRE)
def test_stall_in_the_middle(wire) -> None:
    """After the chosen chunk nothing comes for the chosen time, then the rest does."""
    path, body = EVERY_WIRE[wire]
    with ModelServer(reply("Hello there", fault=Stall(0.4, after_chunks=1))) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.request("POST", path, json.dumps(body), CALLER)
        response = connection.getresponse()
        first = response.read1()
        rest = response.read()
        connection.close()
        ended = server.wait_ended()[0]
    assert first.startswith((b"data: ", b"event: "))
    assert rest
    assert ended.seconds >= 0.4
    assert ended.outcome == "answered"


def test_stall_before_the_headers_and_a_client_that_leaves() -> None:
    """A client that gives up during a stall is noticed at once, long before the stall ends."""
    with ModelServer(reply("hi", fault=Stall(FOREVER))) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=0.2)
        connection.request("POST", PATH, json.dumps(ASK))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        ended = server.wait_ended(timeout=LONG)[0]
    assert ended.outcome == "client left"


def test_closing_ends_a_stall(call) -> None:
    """Leaving the with block does not wait for a stall."""
    failed = []

    def ask() -> None:
        try:
            call(server.url, PATH, ASK)
        except (OSError, http.client.HTTPException) as error:
            failed.append(error)

    with ModelServer(reply("hi", fault=Stall(FOREVER))) as server:
        asking = threading.Thread(target=ask)
        asking.start()
        server.wait()
    asking.join(LONG)
    assert failed


@pytest.mark.parametrize("wire", EVERY_WIRE)
@pytest.mark.parametrize("after", [0, 1, 99])
def test_cut(call, wire, after) -> None:
    """A cut connection is an error for the client, wherever the cut falls; 99 is the last."""
    path, body = EVERY_WIRE[wire]
    with ModelServer(reply("Hello there", fault=Cut(after))) as server:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            call(server.url, path, body)
        assert server.wait_ended()[0].outcome == "cut"


def test_cut_in_a_whole_reply(call) -> None:
    """A reply that is not streamed breaks off before its announced length."""
    with (
        ModelServer(reply("Hello " * 50, fault=Cut(2))) as server,
        pytest.raises((ConnectionError, http.client.IncompleteRead)),
    ):
        call(server.url, PATH, ASK)


def test_garbage(call) -> None:
    """Garbage follows the right chunks with status 200, and is not JSON."""
    with ModelServer(reply("Hello there", fault=Garbage(after_chunks=2))) as server:
        streamed = call(server.url, PATH, STREAM)
        whole = call(server.url, PATH, ASK)
    assert streamed.status == whole.status == 200
    events = streamed.body.split(b"\n\n")
    assert [b"chat.completion.chunk" in event for event in events] == [True, True, False, False]
    with pytest.raises(ValueError, match="decode"):
        whole.json  # noqa: B018


def test_a_script_that_runs_out_is_told(call) -> None:
    """The client gets a 400 with the reason, and the with block raises it."""
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(ScriptFailed, match="has 1 replies"))
        server = stack.enter_context(ModelServer(["one"]))
        call(server.url, PATH, ASK)
        answer = call(server.url, PATH, ASK)
        assert answer.status == 400
        assert "has 1 replies" in answer.json["error"]["message"]
        assert server.wait_ended(2)[1].outcome == "script failed"


def test_a_script_that_raises_is_told(call) -> None:
    """What a script's function raises reaches the test, also when the client ignores it."""

    def script(request):
        assert request.tools, "no tools were offered"

    with pytest.raises(AssertionError, match="no tools were offered"), ModelServer(script) as s:
        call(s.url, PATH, ASK)


def test_not_strict_keeps_failures(call) -> None:
    """With strict off the failures are kept and nothing is raised."""
    with ModelServer(Replies([]), strict=False) as server:
        call(server.url, PATH, ASK)
        assert [type(error) for error in server.failures] == [ScriptFailed]


def test_a_failing_test_is_not_hidden(call) -> None:
    """An error of the test itself goes before the script's."""
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(ZeroDivisionError))
        server = stack.enter_context(ModelServer(Replies([])))
        call(server.url, PATH, ASK)
        assert server.failures
        raise ZeroDivisionError


def test_a_malformed_request_is_refused_and_noted(call) -> None:
    """A body that is no request gives 400 in the provider's shape and is no call of the model."""
    with ModelServer("hi", strict=False) as server:
        for body in (b"{", b"[]", b'{"messages": [1]}', b'{"messages": [{"role": "king"}]}'):
            assert call(server.url, PATH, body).status == 400
        assert server.requests == []
        assert [other.status for other in server.others] == [400] * 4


def test_models_in_each_shape(call) -> None:
    """The list of models has the shape that the asking client knows."""
    with ModelServer("hi", models=("a", "b")) as server:
        openai = call(server.url, "/v1/models", method="GET").json
        asked = {"anthropic-version": "2023-06-01"}
        anthropic = call(server.url, "/v1/models", method="GET", headers=asked).json
        gemini = call(server.url, "/v1beta/models", method="GET").json
        one = call(server.url, "/v1/models/b", method="GET").json
        missing = call(server.url, "/v1/models/c", method="GET")
    assert (openai["object"], [m["id"] for m in openai["data"]]) == ("list", ["a", "b"])
    assert [m["type"] for m in anthropic["data"]] == ["model", "model"]
    assert (anthropic["first_id"], anthropic["last_id"]) == ("a", "b")
    assert [m["name"] for m in gemini["models"]] == ["models/a", "models/b"]
    assert one["id"] == "b"
    assert missing.status == 404


def test_counting_tokens_and_probes(call) -> None:
    """Counts and probes are answered without the script, and noted apart from its calls."""
    with ModelServer(Replies([])) as server:
        counted = call(server.url, "/v1/messages/count_tokens", ASK).json
        google = call(server.url, "/v1beta/models/m:countTokens", {"contents": []}).json
        head = call(server.url, "/", method="HEAD")
        root = call(server.url, "/", method="GET")
        unknown = call(server.url, "/api/event_logging/batch", {})
        noted = [(other.method, other.status) for other in server.others]
    assert counted["input_tokens"] == len(json.dumps(ASK)) // 4
    assert google["totalTokens"] >= 1
    assert (head.status, head.body, root.status, unknown.status) == (200, b"", 200, 404)
    assert noted == [("POST", 200), ("POST", 200), ("HEAD", 200), ("GET", 200), ("POST", 404)]


def test_as_a_proxy_it_forwards_nothing(call) -> None:
    """Asked to forward, it refuses, and notes where the client wanted to go."""
    with ModelServer(Replies([])) as server:
        assert call(server.url, "http://example.com/v1/messages", ASK).status == 403
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.set_tunnel("example.com", 443)
        with pytest.raises(OSError, match="403"):
            connection.connect()
        connection.close()
        noted = [(other.method, other.path) for other in server.others]
    assert noted == [("POST", "http://example.com/v1/messages"), ("CONNECT", "example.com:443")]


def test_closed_twice_and_not_started() -> None:
    """Closing twice is closing once, and a server that does not run says so."""
    server = ModelServer("hi")
    with pytest.raises(RuntimeError, match="not running"):
        server.url  # noqa: B018
    server.start()
    server.close()
    server.close()


def test_as_a_program(tmp_path, call) -> None:
    """`python -m tacit.testing.server` prints its URL, serves the file, and warns of nothing."""
    script = tmp_path / "script.json"
    script.write_text('["from a file"]')
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tacit.testing.server", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        answer = call(url, PATH, ASK).json
        assert answer["choices"][0]["message"]["content"] == "from a file"
    finally:
        process.send_signal(2)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "", "")


def test_as_a_program_without_a_script(tmp_path) -> None:
    """A missing script file is one line on stderr."""
    command = [sys.executable, "-m", "tacit.testing.server", str(tmp_path / "no.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no script at")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("wire", EVERY_WIRE)
def test_a_clean_cut_lacks_only_the_end_mark(wire, call) -> None:
    """HTTP ends as it should, and the stream is shorter than the whole one."""
    path, body = EVERY_WIRE[wire]
    whole, half = reply("Hello there"), reply("Hello there", fault=Cut(1, clean=True))
    with ModelServer([whole, half]) as server:
        first, second = (call(server.url, path, body) for _ in range(2))
    assert second.status == 200
    assert len(second.events) == 1 < len(first.events)


def test_an_endless_stream_ends_with_the_client() -> None:
    """The same chunk comes again and again, and the server notices that the client has left."""
    with ModelServer(reply("Hello there", fault=Endless(2))) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.request("POST", PATH, json.dumps(STREAM))
        response = connection.getresponse()
        assert response.read(100_000).count(b"data: ") > 100
        response.close()
        connection.close()
        assert server.wait_ended()[0].outcome == "client left"


def test_a_page_is_no_answer_of_a_model(call) -> None:
    """What a proxy or a wrong address gives: HTML, with the status that was asked for."""
    with ModelServer([Page(502, "Bad Gateway"), Page()]) as server:
        bad, fine = (call(server.url, PATH, ASK) for _ in range(2))
    assert (bad.status, fine.status) == (502, 200)
    assert b"<title>Bad Gateway</title>" in bad.body
    assert fine.headers["content-type"].startswith("text/html")


def test_no_connection_outlives_the_server() -> None:
    """A client that keeps its connection open does not keep a thread of the server."""
    before = set(threading.enumerate())
    with ModelServer("hi") as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LONG)
        connection.request("POST", PATH, json.dumps(ASK))
        assert connection.getresponse().read()
        serving = [thread for thread in threading.enumerate() if thread not in before]
    for thread in serving:
        thread.join(LONG)
        assert not thread.is_alive()
    connection.close()
