"""`tacit web` where something is in the way: it says what, and what to do next."""

import os
import socket
import struct
import sys
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tacit.ui.cli import servers
from tacit.ui.web import web_server


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told is told; nothing is served."""
    monkeypatch.setattr(web_server.PageServer, "run", lambda self: self._listener.close())
    monkeypatch.setattr(servers.click, "launch", lambda _: pytest.fail("a browser was opened"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


def test_without_what_it_needs(home: Any, tacit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tacit.ui.web", None)
    assert "pip install 'tacit[web]'" in tacit.error("web", code=3)["hint"]


def test_where_its_port_is_taken(home: Any, tacit: Any, no_server: None) -> None:
    """One that was asked for is not had; else another is."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = tacit.error("web", "--port", str(port), code=9)
        assert found["hint"] == "any that is free: --port 0"
        listener = servers.open_listener("127.0.0.1", port, or_any=True)
        assert listener.getsockname()[1] != port
        listener.close()
    found = tacit.error("web", "--host", "192.0.2.1", "--let-others-in", code=9)
    assert found["hint"] == "name an address of this machine"


def test_where_there_is_no_screen(
    home: Any, tacit: Any, no_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over ssh and in a container it opens nothing, also none in the terminal, and says the way."""
    shown = tacit.ok("web", "--port", "0")
    assert "ssh -L" in shown
    assert "--host 0.0.0.0 --let-others-in" in shown
    assert "ssh" not in tacit.ok("web", "--port", "0", "--no-open")
    opened: list[str] = []
    monkeypatch.setattr(servers.click, "launch", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    assert "ssh" not in tacit.ok("web", "--port", "0")
    assert len(opened) == 1


def test_other_machines_only_in_words(home: Any, tacit: Any, no_server: None) -> None:
    """A loopback address needs none, whatever its kind."""
    assert tacit.error("web", "--host", "0.0.0.0", code=2)["hint"].endswith("if you want that")
    shown = tacit.ok("web", "--host", "0.0.0.0", "--let-others-in", "--no-open", "--port", "0")
    assert "http://127.0.0.1:" in shown
    assert web_server.known_hosts("::1", 7) == ("[::1]:7",)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is")
@pytest.mark.parametrize("theirs", [True, False])
def test_another_user_of_this_machine_is_not_answered(
    home: Any, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    """Whatever they know: a page that is open tells its cookie to who listens at the port next."""
    server = web_server.PageServer(port=0)
    asked = urlsplit(server.new_address())
    with server.beside(), closing(HTTPConnection(asked.netloc)) as connection:
        connection.connect()
        if theirs and os.getuid() == 0:
            os.fchown(connection.sock.fileno(), 65534, 65534)
        elif theirs:  # then we are somebody else than who asks
            monkeypatch.setattr(os, "getuid", lambda: 1)
        path = f"{asked.path}?{asked.query}"
        connection.request("GET", path, headers={"X-Forwarded-For": "192.0.2.1"})
        assert connection.getresponse().status == (403 if theirs else 303)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is")
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_who_hung_up_is_nobody(host: str) -> None:
    """A socket that was let go has no owner any more, so that anybody could have asked."""
    with closing(servers.open_listener(host, 0)) as listener:
        asks = socket.create_connection(("127.0.0.1", listener.getsockname()[1]))
        with closing(listener.accept()[0]) as answers:
            ends = answers.getpeername(), answers.getsockname()
            assert not servers.is_of_another(*ends)
            asks.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            asks.close()
            assert servers.is_of_another(*ends)
