"""A scripted model behind HTTP on loopback, in the formats of OpenAI, Anthropic and Gemini.

    with ModelServer([ToolUse("read_file", {"path": "a.txt"}), "done"]) as server:
        ...  # point any client at server.url; then look at server.requests

It owns the listening, one thread a connection, the record of what came in, and the bytes of HTTP:
a reply becomes a list of chunks, and a fault says before which of them something happens. The
shapes are in `wires/`, the answers in `script.py`. It listens on 127.0.0.1 only, and refuses to
forward anything: as somebody's proxy it notes where they wanted to go.

As a program: `python -m tacit.testing.server SCRIPT [--port N]`, where SCRIPT is JSON or a Python
file (`script.load_script` says how); it prints its URL and runs until it is interrupted.
"""

import contextlib
import gzip
import select
import socket
import threading
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from tacit.base.clock import Clock, SystemClock
from tacit.testing.script import (
    HIDDEN,
    Cut,
    Endless,
    Fault,
    Garbage,
    Page,
    Reply,
    Request,
    ScriptFailed,
    ScriptLike,
    Stall,
    Status,
    as_reply,
    as_script,
)
from tacit.testing.wires import (
    Bad,
    Envelope,
    Terms,
    Wire,
    answer_for,
    encode,
    read_request,
    side_answer,
    wires,
)

if TYPE_CHECKING:
    from types import TracebackType


_SECRET_HEADERS = frozenset(
    {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)
_WHOLE_CHUNK = 64
"""A reply that is not streamed is also written in pieces, so that a fault can fall inside."""


class ClientLeft(Exception):
    """The client closed its side before the reply was complete."""


class Dropped(Exception):
    """The script wants the connection dropped here."""


class Listener(ThreadingHTTPServer):
    """Listens on loopback for one ModelServer."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, model: "ModelServer", port: int) -> None:
        self.model = model
        self._connections: set[Any] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Also end the connections that clients left open: nothing outlives the server."""
        super().server_close()
        for request in tuple(self._connections):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RD)  # an answer that is under way is sent

    def server_bind(self) -> None:
        # Not HTTPServer's own, which asks the resolver for the host's name.
        socket_address = self.server_address
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(socket_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is daily bread here, not a traceback on stderr."""


class Handler(BaseHTTPRequestHandler):
    """One connection, kept open over many requests."""

    protocol_version = "HTTP/1.1"
    server: Listener
    timeout = 60
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent: what came in is on record."""

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        route = urlsplit(self.path).path
        wire = next((wire for wire in wires() if wire.fits(route)), None)
        # A proxy's request names a whole URL; that is somebody else's model.
        if wire is None or not self.path.startswith("/"):
            self._side(body)
        else:
            self._model_call(wire, body)

    def do_GET(self) -> None:
        body = self._body()
        if body is not None:
            self._side(body)

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_CONNECT = do_GET  # noqa: N815

    # Reading

    def _body(self) -> bytes | None:
        """The body with its encodings undone; None when it was refused."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            raw = self._chunked_body()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        encoding = self.headers.get("Content-Encoding", "").lower()
        try:
            if encoding == "gzip":
                return gzip.decompress(raw)
            if encoding == "deflate":
                return zlib.decompress(raw)
        except (OSError, zlib.error, EOFError):
            self._json(400, {"error": {"message": f"the body is not {encoding}"}})
            return None
        if encoding not in ("", "identity"):
            self._json(415, {"error": {"message": f"the encoding {encoding} is not known here"}})
            return None
        return raw

    def _chunked_body(self) -> bytes:
        found = bytearray()
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return bytes(found)

    def _headers(self) -> dict[str, str]:
        return {
            name.lower(): HIDDEN if name.lower() in _SECRET_HEADERS else value
            for name, value in self.headers.items()
        }

    def _shown_path(self) -> str:
        parts = urlsplit(self.path)
        query = parse_qsl(parts.query, keep_blank_values=True)
        if not any(name == "key" for name, _ in query):
            return self.path
        shown = [(name, HIDDEN if name == "key" else value) for name, value in query]
        return f"{parts.path}?{urlencode(shown, safe='[]')}"

    # Answering

    def _side(self, body: bytes) -> None:
        model = self.server.model
        envelope = self._envelope(0, self.path, body)
        answer = side_answer(envelope, self.command, model.models, model.clock.now())
        self._note(body, answer.status)
        self._json(answer.status, answer.body)

    def _note(self, body: bytes, status: int) -> None:
        other = Other(self.command, self._shown_path(), self._headers(), body, status)
        self.server.model.note(other)

    def _envelope(self, number: int, path: str, body: bytes) -> Envelope:
        route = urlsplit(self.path).path
        return Envelope(
            number=number,
            path=path,
            headers=self._headers(),
            body=body,
            route=route,
            key=self._key(),
            terms=self.server.model.terms,
        )

    def _key(self) -> str:
        """The key that came with the request, in whichever way."""
        query = dict(parse_qsl(urlsplit(self.path).query))
        for name in ("x-api-key", "x-goog-api-key", "api-key"):
            if found := self.headers.get(name):
                return found
        return query.get("key") or self.headers.get("Authorization", "").removeprefix("Bearer ")

    def _model_call(self, wire: Wire, body: bytes) -> None:
        model, since = self.server.model, time.monotonic()

        def make(number: int) -> Request:
            return read_request(wire, self._envelope(number, self._shown_path(), body))

        try:
            request = model.arrive(make)
        except Bad as error:
            model.refused(error)
            self._note(body, error.status.code)
            self._json(error.status.code, wire.error(error.status))
            return
        reply = Reply()
        try:
            reply = model.ask(request)
            outcome = self._answer(wire, request, reply)
        except ScriptFailed as error:
            # 400, because a client repeats a 500 and the script would fail again.
            self._json(400, wire.error(Status(400, message=str(error))))
            outcome = "script failed"
        except Dropped:
            # Closed without the end that was announced. Not reset: a reset may also swallow the
            # chunks that were sent before it, and the same script would not give the same bytes.
            outcome = "cut"
            self.close_connection = True
        except (ClientLeft, ConnectionError, TimeoutError):
            outcome = "client left"
            self.close_connection = True
        model.ended(request, reply, outcome, since)

    def _answer(self, wire: Wire, request: Request, reply: Reply) -> "Outcome":
        fault = reply.fault
        if isinstance(fault, Status):
            self._refuse(wire, fault)
            return "refused"
        if isinstance(fault, Page):
            self._page(fault)
            return "refused"
        created = int(self.server.model.clock.now().timestamp())
        answer = answer_for(request, reply, created)
        if request.stream:
            chunks = wire.stream(answer)
        else:
            data = encode(wire.whole(answer))
            chunks = [data[at : at + _WHOLE_CHUNK] for at in range(0, len(data), _WHOLE_CHUNK)]
        chunks, at = _place_fault(chunks, fault)
        if at == 0:
            self._strike(fault)
        self.send_response(200)
        self.send_header("X-Request-Id", f"req_{request.number}")
        if request.stream:
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(sum(map(len, chunks))))
        self.end_headers()
        for index, chunk in enumerate(chunks):
            if index == at and at > 0:
                if isinstance(fault, Cut) and fault.clean:
                    break
                self._strike(fault, chunks[index - 1])
            self._chunk(chunk, request.stream)
        if request.stream:
            self.wfile.write(b"0\r\n\r\n")
        return "answered"

    def _chunk(self, chunk: bytes, stream: bool) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if stream else chunk)

    def _page(self, page: Page) -> None:
        text = f"<!DOCTYPE html>\n<html><head><title>{page.title}</title></head>"
        data = f"{text}<body><h1>{page.title}</h1></body></html>\n".encode()
        self.send_response(page.code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, wire: Wire, status: Status) -> None:
        extra = {}
        if status.retry_after is not None:
            extra["Retry-After"] = f"{status.retry_after:g}"
        self._json(status.code, wire.error(status), extra)

    def _json(self, status: int, body: Any, extra: dict[str, str] | None = None) -> None:
        data = b"" if body is None else encode(body)
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            for name, value in (extra or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    # Faults

    def _strike(self, fault: Fault | None, before: bytes = b"") -> None:
        if isinstance(fault, Cut):
            raise Dropped
        if isinstance(fault, Stall):
            self._stall(fault.seconds)
        while isinstance(fault, Endless):
            if self.server.model.closing.is_set():
                raise Dropped
            self._chunk(before, stream=True)

    def _stall(self, seconds: float) -> None:
        """Keep silent, but notice a client that leaves and a server that closes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.server.model.closing.wait(min(left, 0.02)):
                raise Dropped
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientLeft


def _place_fault(chunks: list[bytes], fault: Fault | None) -> tuple[list[bytes], int | None]:
    """The chunks to send and before which of them the fault strikes, which it always does."""
    if fault is None or isinstance(fault, Status | Page):
        return chunks, None
    at = min(fault.after_chunks, max(0, len(chunks) - 1))
    if isinstance(fault, Garbage):
        return [*chunks[:at], fault.data], None
    return chunks, at


Outcome = Literal["answered", "refused", "cut", "client left", "script failed"]
T = TypeVar("T")


class Exchange(msgspec.Struct, frozen=True):
    """A request, what the script said to it, and how that ended."""

    request: Request
    reply: Reply
    outcome: Outcome
    seconds: float


class Other(msgspec.Struct, frozen=True):
    """A request that is no call of the model: a probe, a list of models, a count of tokens."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int


class ModelServer:
    """Serves one script from threads of its own, between `start` and `close` or in a `with`.

    What the provider would refuse is refused, by the rules of its wire format; `terms` say which
    key and which limits hold, and where `models` are named, a request for another is refused.
    Leaving the `with` block raises such a refusal and what went wrong in the script, because a
    client may take the error it was sent for the model's or go on
    after it; `strict=False` leaves that to `failures`.
    """

    def __init__(
        self,
        script: ScriptLike,
        *,
        port: int = 0,
        clock: Clock | None = None,
        strict: bool = True,
        models: tuple[str, ...] = (),
        terms: Terms | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.terms = msgspec.structs.replace(terms or Terms(), models=models)
        self.models = models or ("mock-model",)
        self.closing = threading.Event()
        self._script = as_script(script)
        self._port = port
        self._strict = strict
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._exchanges: list[Exchange] = []
        self._others: list[Other] = []
        self._failures: list[Exception] = []
        self._listener: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> "ModelServer":
        self._listener = Listener(self, self._port)
        # Polled often, so that closing takes no noticeable time.
        run = self._listener.serve_forever
        self._thread = threading.Thread(target=run, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and end every stall. Safe to call again."""
        self.closing.set()
        if self._listener is not None and self._thread is not None:
            self._listener.shutdown()
            self._thread.join()
            self._listener.server_close()
            self._listener = self._thread = None

    def __enter__(self) -> "ModelServer":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        self.close()
        if self._strict and error is None and self._failures:
            raise self._failures[0]

    @property
    def url(self) -> str:
        """Without a path. OpenAI clients want `/v1` after it, the others do not."""
        if self._listener is None:
            raise RuntimeError("the server is not running; use it in a with block, or start() it")
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def requests(self) -> list[Request]:
        """Every call of the model, as it arrived."""
        with self._changed:
            return list(self._requests)

    @property
    def exchanges(self) -> list[Exchange]:
        """Every call that has ended, in the order of the ends."""
        with self._changed:
            return list(self._exchanges)

    @property
    def others(self) -> list[Other]:
        with self._changed:
            return list(self._others)

    @property
    def failures(self) -> list[Exception]:
        """What went wrong in the script, and what was refused as the provider would."""
        with self._changed:
            return list(self._failures)

    @property
    def refusals(self) -> list[Bad]:
        """Of the failures, the requests that the provider would not have taken."""
        return [failure for failure in self.failures if isinstance(failure, Bad)]

    def wait(self, count: int = 1, timeout: float = 10.0) -> list[Request]:
        """Wait until `count` calls of the model have arrived; TimeoutError if they do not."""
        return self._wait(lambda: self._requests, count, timeout, "calls of the model")

    def wait_ended(self, count: int = 1, timeout: float = 10.0) -> list[Exchange]:
        """Wait until `count` calls have ended, well or badly."""
        return self._wait(lambda: self._exchanges, count, timeout, "ends of calls")

    def wait_for(self, fits: Callable[[Request], bool], timeout: float = 10.0) -> Request:
        """Wait for the first call that fits."""
        found = self._wait(
            lambda: [request for request in self._requests if fits(request)],
            1,
            timeout,
            "calls that fit",
        )
        return found[0]

    def _wait(self, got: Callable[[], list[T]], count: int, timeout: float, what: str) -> list[T]:
        with self._changed:
            if self._changed.wait_for(lambda: len(got()) >= count, timeout):
                return list(got())
            seen = ", ".join(request.path for request in self._requests) or "none"
            raise TimeoutError(
                f"{len(got())} of {count} {what} within {timeout:g} s; calls so far: {seen}"
            )

    # What follows is for the HTTP side.

    def arrive(self, make: Callable[[int], Request]) -> Request:
        """Record a call under the next number."""
        with self._changed:
            request = make(len(self._requests) + 1)
            self._requests.append(request)
            self._changed.notify_all()
            return request

    def ask(self, request: Request) -> Reply:
        """The script's reply. What the script raises is kept, and raised as ScriptFailed."""
        try:
            return as_reply(self._script(request))
        except Exception as error:
            with self._changed:
                self._failures.append(error)
            raise ScriptFailed(f"the script failed: {error}") from error

    def refused(self, error: Bad) -> None:
        """A request was not taken."""
        with self._changed:
            self._failures.append(error)
            self._changed.notify_all()

    def ended(self, request: Request, reply: Reply, outcome: Outcome, since: float) -> None:
        exchange = Exchange(request, reply, outcome, time.monotonic() - since)
        with self._changed:
            self._exchanges.append(exchange)
            self._changed.notify_all()

    def note(self, other: Other) -> None:
        with self._changed:
            self._others.append(other)
            self._changed.notify_all()


def main(arguments: list[str] | None = None) -> int:
    """The program: serve a script from a file until interrupted."""
    import argparse
    import sys

    from tacit.base.errors import TacitError
    from tacit.testing.script import load_script

    parser = argparse.ArgumentParser(
        prog="python -m tacit.testing.server", description="A scripted model on loopback."
    )
    parser.add_argument("script", help="a .json file of replies, or a .py file that sets `script`")
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    chosen = parser.parse_args(arguments)
    try:
        server = ModelServer(load_script(chosen.script), port=chosen.port, strict=False).start()
    except (TacitError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        print(server.url, flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
