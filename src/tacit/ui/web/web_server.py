"""The server of the pages: one for a user, on this machine's own address, until its terminal goes.

What runs is noted in the data folder with the word by which a second start asks the first for a
token of its own, so that it opens the same pages.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener
from urllib.request import Request as Asked

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tacit.base import paths
from tacit.base.atomic_files import kept_token, write_atomic
from tacit.base.errors import TacitError
from tacit.ui.cli.servers import open_listener
from tacit.ui.web.page_guard import ANOTHER_START, BY_NUMBER, WORD_HEADER, PageGuard, PageKeys
from tacit.ui.web.pages import Pages

if TYPE_CHECKING:
    from starlette.types import ASGIApp

PORT = 8766
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104


class RunningServer(msgspec.Struct, frozen=True):
    """A server that was started: where, and the word that a second start says to it."""

    address: str
    word: str
    pid: int


def make_app(
    keys: PageKeys, hosts: tuple[str, ...], ending: Callable[[], bool] = lambda: False
) -> "ASGIApp":
    """All pages, guarded. `ending`: whether the server waits for its last answers to be over."""
    pages = Pages(keys, ending)
    here = os.path.join(os.path.dirname(__file__), "static")
    said: dict[Any, Any] = dict.fromkeys(
        (TacitError, HTTPException, ClientDisconnect, 500), pages.not_served
    )
    routes = [*pages.routes(), Mount("/static", StaticFiles(directory=here))]
    app = Starlette(routes=routes, exception_handlers=said)
    app.router.redirect_slashes = False  # it would lead out of the folder of the pages
    return PageGuard(app, hosts, keys)


class PageServer:
    """The pages at an address, noted as running from its making until it is closed."""

    def __init__(self, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Raises `Unwritable` where the port cannot be had."""
        self._listener = open_listener(host, PORT if port is None else port, or_any=port is None)
        number = self._listener.getsockname()[1]
        self._keys = PageKeys(kept_token(os.path.join(paths.folders().data, "web.token")))
        hosts = known_hosts(host, number)
        self.address = f"http://{hosts[0]}{self._keys.room}"
        app = make_app(self._keys, hosts, lambda: self._server.should_exit)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                timeout_graceful_shutdown=3,
                ws="none",
                proxy_headers=False,  # who asks does not say who that is
            )
        )
        note_running(self.address, self._keys.word)

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
    """The names by which the pages may be asked for, the best first."""
    loopback = (f"127.0.0.1:{port}", f"localhost:{port}")
    if host == "127.0.0.1":
        return loopback
    if host in _EVERY_ADDRESS:
        return (*loopback, BY_NUMBER)
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}",)


def note_running(address: str, word: str) -> None:
    """Note that a server runs at `address`, and the word for a second start."""
    running = RunningServer(address, word, os.getpid())
    write_atomic(_file(), msgspec.json.encode(running), mode=0o600)


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
    asked = Asked(f"{found.address}{ANOTHER_START}", b"", {WORD_HEADER: found.word})  # noqa: S310
    try:  # never by way of a proxy, which would learn the word
        with build_opener(ProxyHandler({})).open(asked, timeout=3) as answer:
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
