"""The server of the pages: one for a user, on this machine's own address, until its terminal goes.

What runs is noted in the data folder with the word by which a second start asks the first for a
token of its own, so that it opens the same pages.
"""

import contextlib
import os
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import Request as Asked
from urllib.request import urlopen

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.errors import TacitError
from tacit.ui.cli.servers import open_listener
from tacit.ui.web.page_guard import PageGuard, PageKeys
from tacit.ui.web.pages import Pages

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PORT = 8766


class RunningServer(msgspec.Struct, frozen=True):
    """A server that was started: where, and the word that a second start says to it."""

    address: str
    word: str
    pid: int


def make_app(keys: PageKeys, hosts: tuple[str, ...], word: str = "") -> "ASGIApp":
    """All pages, guarded."""
    pages = Pages(keys)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        pages.stopping.set()

    here = os.path.join(os.path.dirname(__file__), "static")
    inner = Starlette(
        routes=[*pages.routes(), Mount("/static", StaticFiles(directory=here))],
        exception_handlers={
            TacitError: pages.not_served,
            404: pages.not_served,
            403: pages.not_served,
            500: pages.not_served,
        },
        lifespan=lifespan,
        middleware=[Middleware(PageGuard, hosts=hosts, keys=keys)],
    )

    async def token(request: Request) -> Response:
        given = request.headers.get("x-tacit-word", "")
        if not word or not secrets.compare_digest(given, word):
            return PlainTextResponse("no", 401)
        return PlainTextResponse(keys.new_token())

    another = Starlette(routes=[Route("/another-start", token, methods=["POST"])])

    async def app(scope: "Scope", receive: "Receive", send: "Send") -> None:
        inside = scope["type"] == "http" and scope["path"] == "/another-start"
        await (another if inside else inner)(scope, receive, send)

    return app


class PageServer:
    """The pages at an address, noted as running from its making until it is closed."""

    def __init__(self, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Raises `Unwritable` where the port cannot be had."""
        import uvicorn

        self._listener = open_listener(host, PORT if port is None else port, or_any=port is None)
        number = self._listener.getsockname()[1]
        self._keys = PageKeys()
        self.address = f"http://{host}:{number}"
        word = note_running(self.address)
        app = make_app(self._keys, known_hosts(host, number), word)
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        )

    def new_address(self) -> str:
        """An address that opens the pages, once."""
        return f"{self.address}/?token={self._keys.new_token()}"

    def run(self) -> None:
        """Answer until the process is told to stop, also by its terminal going."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, lambda *_: self._stop())
        try:
            self._server.run(sockets=[self._listener])
        finally:
            forget_running()

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Answer in a thread for a `with` block."""
        thread = threading.Thread(target=self.run, name="pages", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop()
            thread.join(5)

    def _stop(self) -> None:
        self._server.should_exit = True


def known_hosts(host: str, port: int) -> tuple[str, ...]:
    """The names by which the pages may be asked for."""
    names = ("127.0.0.1", "localhost") if host == "127.0.0.1" else (host,)
    return tuple(f"{name}:{port}" for name in names)


def note_running(address: str) -> str:
    """Note that a server runs at `address`; the word for a second start."""
    word = secrets.token_urlsafe(24)
    running = RunningServer(address, word, os.getpid())
    write_atomic(_file(), msgspec.json.encode(running), mode=0o600)
    return word


def forget_running() -> None:
    """Take the note away, if it is of this process."""
    found = _noted()
    if found is not None and found.pid == os.getpid():
        with contextlib.suppress(OSError):
            os.unlink(_file())


def running_address() -> str:
    """The address that opens a server that runs already, with a fresh token; empty: none does."""
    found = _noted()
    if found is None:
        return ""
    asked = Asked(f"{found.address}/another-start", b"", {"x-tacit-word": found.word})  # noqa: S310
    try:
        with urlopen(asked, timeout=3) as answer:  # noqa: S310
            return f"{found.address}/?token={answer.read(200).decode()}"
    except (URLError, OSError, ValueError):
        return ""


def _noted() -> RunningServer | None:
    try:
        with open(_file(), "rb") as file:
            found = msgspec.json.decode(file.read(4096), type=RunningServer)
        os.kill(found.pid, 0)  # a server that was killed leaves its note, and its port to others
        return found
    except (OSError, msgspec.DecodeError):
        return None


def _file() -> str:
    return os.path.join(paths.folders().data, "web.json")
