"""The daemon's ear for OpenTelemetry: OTLP over HTTP on loopback, by which any agent can teach.

Off unless `traces.otlp_port` is set. What comes in is checked (a token, the address it was sent to,
its size, how much comes), redacted, and appended to one file for each conversation in the data
folder before it is confirmed; then the spool is told, and the session goes the same way as all
others. The readers of traces make a session of the file. Keeps of other programs' spans only where
they stand in a trace, nothing that they say.
"""

import contextlib
import hashlib
import hmac
import os
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tacit import hook
from tacit.base import paths
from tacit.base.atomic_files import kept_token
from tacit.base.errors import Refused
from tacit.base.paths import make_private
from tacit.traces import redaction, values
from tacit.traces.hosts.otel import HOSTS, received_folder
from tacit.traces.otlp import RawSpan, flat_form, raw_spans
from tacit.traces.redaction import Redact, redacted_data
from tacit.work.presence import log

MAX_BODY = 16 * 1024 * 1024
MAX_CONVERSATION = 64 * 1024 * 1024
MAX_FOLDER = 512 * 1024 * 1024
"""Bytes of a request once unpacked, of one conversation, and of all of them together."""
MAX_AT_ONCE = 8
"""Connections at a time; more are closed, and may come again."""
PER_SECOND = 50
"""Requests that may come in a second, over ten seconds."""
_SECONDS = 10.0
_KEEP = 30 * 24 * 3600.0
"""Seconds after which a conversation's file goes; the session stays in the store."""
_TOLD_EVERY = 5.0
_MOST_TRACES = 20_000
_PATHS = {"/v1/traces": "trace", "/v1/logs": "logs"}
_WORDS = ("gen_ai.", "openinference.", "llm.", "traceloop.", "ai.", "session.id")
"""What the names of attributes begin with that tell of a conversation."""
_HOST = HOSTS[0]


class Refusal(Exception):
    """Why a request is not taken, and the HTTP status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def token() -> str:
    """What senders must show; made when it is first asked for."""
    return kept_token(token_file())


def token_file() -> str:
    return os.path.join(paths.folders().data, "otlp.token")


def sender_settings(port: int) -> dict[str, str]:
    """The variables by which OpenTelemetry's exporters send here; the token by its file."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20$(cat {token_file()})",
    }


class OtlpListener:
    """Listens on a port of loopback, in threads of its own, until it is closed."""

    def __init__(self, port: int, *, redact: bool = True) -> None:
        """Raises `Refused` where the port is taken."""
        self.inbox = _Inbox(redact)
        self._token = token()
        self._rate = _Rate(PER_SECOND, _SECONDS)
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise Refused(
                f"OpenTelemetry cannot be listened for at port {port}: {error.strerror}",
                "choose another: tacit config set traces.otlp_port PORT",
            ) from error
        self._server.listener = self
        self.port: int = self._server.server_address[1]
        self._ended = threading.Event()
        for target in (lambda: self._server.serve_forever(0.05), self._tell_often):
            threading.Thread(target=target, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self.inbox.tell_spool()

    def check(self, headers: Any) -> None:
        """Raise `Refusal` unless a request with these headers may be read."""
        host = (headers.get("Host") or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost") or headers.get("Origin"):
            raise Refusal(403, "only programs on this machine may send")
        shown = (headers.get("Authorization") or "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(shown.encode(), self._token.encode()):
            raise Refusal(401, "the header authorization must be: Bearer TOKEN")
        if not self._rate.allows():
            raise Refusal(429, "too many requests")

    def _tell_often(self) -> None:
        while not self._ended.wait(_TOLD_EVERY):
            self.inbox.tell_spool()


class _Server(ThreadingHTTPServer):
    """A thread for each connection, up to a number; each connection is one request."""

    daemon_threads = True
    listener: OtlpListener

    def __init__(self, *where: Any) -> None:
        super().__init__(*where)
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(timeout=1.0):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # the sender tries again

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()


class _Handler(BaseHTTPRequestHandler):
    timeout = 20  # seconds that a sender may be silent
    server: _Server
    server_version = "tacit"
    sys_version = ""

    def do_POST(self) -> None:
        listener = self.server.listener
        try:
            listener.check(self.headers)
            if self.path not in _PATHS:
                raise Refusal(404, f"send to {' or '.join(_PATHS)}")
            body = self._body()
            binary = "json" not in (self.headers.get("Content-Type") or "")
            request = _from_protobuf(body, _PATHS[self.path]) if binary else _from_json(body)
            rejected = listener.inbox.take(request)
        except Refusal as refusal:
            self._answer(refusal.status, {"message": str(refusal)})
        except OSError as error:  # a full disk: the sender may try again
            self._answer(503, {"message": error.strerror or "not stored"})
        else:
            partial = {"rejectedSpans": str(rejected), "errorMessage": "the conversation is full"}
            self._answer(200, {"partialSuccess": partial} if rejected else {}, binary=binary)

    def _body(self) -> bytes:
        size = self.headers.get("Content-Length") or ""
        if not size.isdigit():
            raise Refusal(411, "Content-Length is needed")
        if int(size) > MAX_BODY:
            raise Refusal(413, f"more than {MAX_BODY:,} bytes")
        body = self.rfile.read(int(size))
        if self.headers.get("Content-Encoding", "identity") == "identity":
            return body
        if self.headers["Content-Encoding"] not in ("gzip", "deflate"):
            raise Refusal(415, "send it plain, gzip or deflate")
        try:
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
            made = unpacker.decompress(body, MAX_BODY + 1)
        except zlib.error as error:
            raise Refusal(400, f"not packed as it says: {error}") from None
        if len(made) > MAX_BODY:
            raise Refusal(413, f"more than {MAX_BODY:,} bytes")
        return made

    def _answer(self, status: int, said: dict[str, Any], *, binary: bool = False) -> None:
        body = b"" if binary else msgspec.json.encode(said)
        kind = "application/x-protobuf" if binary else "application/json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status in (429, 503):
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: requests are no news."""


def _from_json(body: bytes) -> dict[str, Any]:
    found = values.decoded_json(body)
    if not isinstance(found, dict):
        raise Refusal(400, "not OTLP in JSON")
    return found


def _from_protobuf(body: bytes, kind: str) -> dict[str, Any]:
    """A request in protobuf, which OpenTelemetry's exporters send, as in JSON."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ImportError:
        log("OTLP in protobuf was refused: it needs the extra 'otel': pip install 'tacit[otel]'")
        raise Refusal(415, "protobuf needs: pip install 'tacit[otel]'; or send JSON") from None
    form = ExportTraceServiceRequest if kind == "trace" else ExportLogsServiceRequest
    try:
        made: dict[str, Any] = MessageToDict(form.FromString(body))
    except (DecodeError, RecursionError, ValueError) as error:
        raise Refusal(400, f"not OTLP: {error}") from None
    return made


class _Rate:
    """So many requests a second, over a few seconds. Any thread."""

    def __init__(self, per_second: float, seconds: float) -> None:
        self._most = self._left = per_second * seconds
        self._per_second = per_second
        self._last = time.monotonic()
        self._lock = threading.Lock()

    def allows(self) -> bool:
        with self._lock:
            now = time.monotonic()
            gained = (now - self._last) * self._per_second
            self._left, self._last = min(self._most, self._left + gained), now
            if self._left < 1:
                return False
            self._left -= 1
            return True


class _Inbox:
    """Files of what was received, one for each conversation. Any thread."""

    def __init__(self, redact: bool) -> None:
        self._redact = redaction.rules()({}) if redact else None
        self._lock = threading.Lock()
        self._conversations: dict[str, str] = {}
        """The conversation of each trace that said which it is a part of."""
        self._untold: set[str] = set()

    def take(self, request: dict[str, Any]) -> int:
        """Keep what a request says, on disk when this returns; how many spans there was no room
        for. Raises `Refusal` and `OSError`."""
        found: dict[str, list[RawSpan]] = {}
        for span in raw_spans(request):
            if span.trace:
                found.setdefault(span.trace, []).append(span)
        with self._lock:
            if found and _size_of(received_folder()) > MAX_FOLDER:
                log("OpenTelemetry traces were refused: the folder for them is full")
                raise Refusal(503, "the folder for traces is full")
            return sum(self._keep(trace, spans) for trace, spans in found.items())

    def _keep(self, trace: str, spans: list[RawSpan]) -> int:
        told = [span for span in spans if _tells(span)]
        known = filter(None, map(_HOST.span_of, told))
        if conversation := next((span.conversation for span in known if span.conversation), ""):
            self._remember(trace, conversation)
        conversation = self._conversations.get(trace, "")
        own, path = _file_of(f"trace {trace}"), _file_of(f"conversation {conversation}")
        if not conversation:
            path = own
        elif os.path.exists(own):  # it was not known before that it is a part of a larger one
            self._move(own, path)
        if not told and not os.path.exists(path):
            return 0
        if os.path.exists(path) and os.path.getsize(path) > MAX_CONVERSATION:
            return len(spans)
        self._append(path, [_line(span, self._redact) for span in spans])
        return 0

    def _remember(self, trace: str, conversation: str) -> None:
        self._conversations.pop(trace, None)
        self._conversations[trace] = conversation
        if len(self._conversations) > _MOST_TRACES:
            self._conversations.pop(next(iter(self._conversations)))

    def _move(self, source: str, target: str) -> None:
        with open(source, "rb") as file:
            self._append(target, [file.read().rstrip(b"\n")])
        os.unlink(source)
        self._untold.discard(source)

    def _append(self, path: str, lines: Iterable[bytes]) -> None:
        make_private(os.path.dirname(path))
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        self._untold.add(path)

    def tell_spool(self) -> None:
        """Put an event into the spool for each conversation that grew."""
        with self._lock:
            untold, self._untold = self._untold, set()
        for path in untold:
            name = os.path.basename(path).partition(".")[0]
            payload = msgspec.json.encode({"session_id": name, "transcript_path": path})
            head = hook.head([_HOST.name, "spans"], len(payload))
            if not hook.record(paths.folders().data, head, payload):
                with self._lock:
                    self._untold.add(path)


def drop_old(now: float) -> int:
    """Delete the files of conversations that nothing was added to for long; how many."""
    dropped = 0
    for path in list(_files()):
        try:
            if now - os.path.getmtime(path) > _KEEP:
                os.unlink(path)
                dropped += 1
        except OSError:
            continue
    return dropped


def _tells(span: RawSpan) -> bool:
    """Whether a span tells of a conversation."""
    names = (*span.attributes, *(name for name, _ in span.events))
    return any(name.startswith(_WORDS) for name in names)


def _line(span: RawSpan, redact: Redact | None) -> bytes:
    """A span as a line without secrets, or without all it says where it is no business of ours."""
    kept = msgspec.structs.replace(span)
    if not _tells(span):
        kept.attributes, kept.events, kept.error = {}, [], ""
    made = flat_form(kept)
    if redact is not None:
        for name in ("attributes", "events", "status"):
            made[name] = _without_secrets(made[name], redact)
    return msgspec.json.encode(made)


def _without_secrets(value: Any, redact: Redact) -> Any:
    """`value` redacted, also in texts that hold JSON, which stay JSON."""
    if isinstance(value, dict):
        return {key: _without_secrets(part, redact) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part, redact) for part in value]
    inner = values.decoded_json(value) if str(value)[:1] in ("{", "[") else None
    if inner is None:
        return redacted_data(value, redact)
    return msgspec.json.encode(redacted_data(inner, redact)).decode()


def _file_of(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]
    return os.path.join(received_folder(), f"{digest}.jsonl")


def _files() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(received_folder()):
            if name.endswith(".jsonl"):
                yield os.path.join(received_folder(), name)


def _size_of(folder: str) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except OSError:
        return 0
