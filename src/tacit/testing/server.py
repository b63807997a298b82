"""A scripted model behind HTTP on loopback, in the formats of OpenAI, Anthropic and Gemini.

    with ModelServer([ToolUse("read_file", {"path": "a.txt"}), "done"]) as server:
        ...  # point any client at server.url; then look at server.requests

It owns the listening, the record of what came in, and the faults of a reply; the shapes are in
`wires/`, the answers in `script.py`, the bytes of HTTP in `listener.py`. It listens on 127.0.0.1
only, and refuses to forward anything: as somebody's proxy it notes where they wanted to go.

As a program: `python -m tacit.testing.server SCRIPT [--port N]`, where SCRIPT is JSON or a Python
file (`script_file.py` says how); it prints its URL and runs until it is interrupted.
"""

import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from tacit.base.clock import Clock, SystemClock
from tacit.testing.replies import Reply, ScriptFailed, as_reply
from tacit.testing.request import Request
from tacit.testing.script import ScriptLike, as_script

if TYPE_CHECKING:
    from types import TracebackType

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

    Leaving the `with` block raises what went wrong in the script, because a client may take the
    error it was sent for the model's; `strict=False` leaves that to `failures`.
    """

    def __init__(
        self,
        script: ScriptLike,
        *,
        port: int = 0,
        clock: Clock | None = None,
        strict: bool = True,
        models: tuple[str, ...] = ("mock-model",),
    ) -> None:
        self.clock = clock or SystemClock()
        self.models = models
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
        from tacit.testing.listener import Listener

        self._listener = Listener(self, self._port)
        # Polled often, so that closing takes no noticeable time.
        run = self._listener.serve_forever
        self._thread = threading.Thread(target=run, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and end every stall. Twice is the same as once."""
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
        """What went wrong in the script."""
        with self._changed:
            return list(self._failures)

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
    from tacit.testing.script_file import load_script

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
    print(server.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
