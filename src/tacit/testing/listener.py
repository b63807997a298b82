"""The bytes of HTTP for the scripted model: reading requests, writing replies and their faults.

One thread a connection. A reply becomes a list of chunks; a fault says before which of them
something happens.
"""

import contextlib
import gzip
import select
import socket
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tacit.testing.replies import Cut, Fault, Garbage, Reply, ScriptFailed, Stall, Status
from tacit.testing.request import HIDDEN, Request
from tacit.testing.side import side_answer
from tacit.testing.wires import WIRES, Bad, Envelope, Wire, answer_for, read_request
from tacit.testing.wires.wire import encode

if TYPE_CHECKING:
    from tacit.testing.server import ModelServer, Outcome

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
        super().__init__(("127.0.0.1", port), Handler)

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
        wire = next((wire for wire in WIRES if wire.fits(route)), None)
        # A proxy's request names a whole URL; that is somebody else's model.
        if wire is None or not self.path.startswith("/"):
            self._side(body)
        else:
            self._model_call(wire, route, body)

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
        answer = side_answer(self.command, self.path, self._headers(), body, self.server.model)
        self._note(body, answer.status)
        self._json(answer.status, answer.body)

    def _note(self, body: bytes, status: int) -> None:
        from tacit.testing.server import Other

        other = Other(self.command, self._shown_path(), self._headers(), body, status)
        self.server.model.note(other)

    def _model_call(self, wire: Wire, route: str, body: bytes) -> None:
        model, since = self.server.model, time.monotonic()

        def make(number: int) -> Request:
            path, headers = self._shown_path(), self._headers()
            return read_request(
                wire,
                Envelope(number=number, path=path, headers=headers, body=body, route=route),
            )

        try:
            request = model.arrive(make)
        except Bad as error:
            self._note(body, 400)
            self._json(400, wire.error(Status(400, message=str(error))))
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
        created = int(self.server.model.clock.now().timestamp())
        answer = answer_for(request, reply, created)
        if request.stream:
            chunks = wire.stream(answer)
        else:
            data = encode(wire.whole(answer))
            chunks = [data[at : at + _WHOLE_CHUNK] for at in range(0, len(data), _WHOLE_CHUNK)]
        chunks, at = _place(chunks, fault)
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
                self._strike(fault)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if request.stream else chunk)
        if request.stream:
            self.wfile.write(b"0\r\n\r\n")
        return "answered"

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

    def _strike(self, fault: Fault | None) -> None:
        if isinstance(fault, Cut):
            raise Dropped
        if isinstance(fault, Stall):
            self._stall(fault.seconds)

    def _stall(self, seconds: float) -> None:
        """Keep silent, but notice a client that leaves and a server that closes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.server.model.closing.wait(min(left, 0.02)):
                raise Dropped
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientLeft


def _place(chunks: list[bytes], fault: Fault | None) -> tuple[list[bytes], int | None]:
    """The chunks to send and before which of them the fault strikes, which it always does."""
    if fault is None or isinstance(fault, Status):
        return chunks, None
    at = min(fault.after_chunks, max(0, len(chunks) - 1))
    if isinstance(fault, Garbage):
        return [*chunks[:at], fault.data], None
    return chunks, at
