"""Who may talk to the pages. Each fault that a peer had is a test."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tacit.changes.gate import Gate
from tacit.ui.web import pages, web_server
from tacit.ui.web.page_guard import BY_NUMBER, COOKIE, WORD_HEADER, PageKeys
from waiting import until

HOST = "127.0.0.1:8766"


@pytest.fixture
def keys() -> PageKeys:
    return PageKeys()


@pytest.fixture
def stranger(keys: PageKeys, home: Path) -> TestClient:
    return TestClient(
        web_server.make_app(keys, (HOST, "localhost:8766")),
        base_url=f"http://{HOST}{keys.room}",
        follow_redirects=False,
    )


def test_without_the_token_nothing_is_shown(stranger: TestClient, library: str) -> None:
    for path in ("/", "/inbox", "/static/page.js", "/events", "/nothing", "/undo"):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "ship-it" not in answer.text


def test_the_token_opens_once_and_turns_into_a_cookie(stranger: TestClient, keys: PageKeys) -> None:
    token = keys.new_token()
    answer = stranger.get(f"/?token={token}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{keys.room}/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert f"path={keys.room}/;" in cookie  # browsers send it to every port, but to no other folder
    assert token not in cookie
    stranger.cookies.clear()
    assert stranger.get(f"/?token={token}").status_code == 401
    assert stranger.get("/?token=guess").status_code == 401


def test_outside_of_the_folder_nothing_is_served(stranger: TestClient, keys: PageKeys) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    token = keys.new_token()
    for path in ("/", "/inbox", "/static/page.js", f"/?token={token}", f"{keys.room}x/inbox"):
        assert stranger.get(f"http://{HOST}{path}").status_code == 401
    assert stranger.get("/skills/").status_code == 404  # nor led out of it
    assert stranger.get("/skills").status_code == stranger.get("").status_code == 200
    assert keys.use(token)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),  # DNS that leads here
        ({"host": "evil.example:8766"}, 421),
        ({"host": "127.0.0.1:9999"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": ""}, 421),
        ({"host": "127.0.0.1.nip.io:8766"}, 421),
        ({"host": "localhost.evil.example:8766"}, 421),
        ({"host": "127.0.0.1:8766.evil.example"}, 421),
        ({"host": "[::1]:8766"}, 421),
        ({"origin": "http://localhost:8766"}, 403),  # the other name of the same server
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),  # another program of this machine
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_another_site_gets_nothing(
    stranger: TestClient, keys: PageKeys, headers: dict[str, str], status: int
) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    assert stranger.get("/inbox", headers=headers).status_code == status
    assert stranger.post("/undo", headers=headers).status_code == status
    stranger.cookies.clear()
    assert stranger.get(f"/?token={keys.new_token()}", headers=headers).status_code == status


def test_a_write_needs_a_form_of_ours(stranger: TestClient, keys: PageKeys, library: str) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    inner = [route for route in pages.Pages(keys, bool).routes() if route.methods == {"POST"}]
    assert len(inner) == 9
    for path in (route.path for route in inner):
        for csrf in ({}, {"csrf": ""}, {"csrf": "guess"}):
            assert stranger.post(path, data={"id": library, **csrf}).status_code == 403
        assert stranger.get(path).status_code in (404, 405)  # a link changes nothing
    assert Gate().inbox.get(library).state == "waiting"


def test_a_write_leads_nowhere_else(stranger: TestClient, keys: PageKeys) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    for back in ("//evil.example", "https://evil.example", "javascript:x", "/\\evil.example"):
        form = {"csrf": keys.form, "change": "", "back": back}
        where = stranger.post("/undo", data=form).headers["location"]
        assert where.startswith((f"{keys.room}/?", f"{keys.room}/%5Cevil.example?"))


def test_every_answer_is_sealed(stranger: TestClient, keys: PageKeys) -> None:
    """A policy without inline scripts, no CORS, nothing kept, no frame: on errors too."""
    stranger.cookies.set(COOKIE, keys.cookie)
    for path in ("/", "/static/page.js", "/nothing", "/?token=guess"):
        headers = stranger.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert not any(name.startswith("access-control") for name in headers)


def test_too_much_is_not_read(stranger: TestClient, keys: PageKeys) -> None:
    """Whether a form says how long it is or not, and however many fields it has."""
    stranger.cookies.set(COOKIE, keys.cookie)

    def parts() -> Iterator[bytes]:
        yield f"csrf={keys.form}&text=".encode()
        for _ in range(pages._MOST_BODY // 100_000 + 1):
            yield b"x" * 100_000

    assert stranger.post("/inbox/edit", content=parts()).status_code == 413
    assert stranger.post("/inbox/edit", content=b"x" * 2_000_001).status_code == 413
    assert stranger.post("/inbox/edit", content=b"a=b&" * 1000).status_code == 413
    assert stranger.post("/inbox/edit", data={"csrf": keys.form}).status_code == 400


def test_only_what_is_meant_is_asked(stranger: TestClient, keys: PageKeys, library: str) -> None:
    """No other method, and none in another's clothes."""
    stranger.cookies.set(COOKIE, keys.cookie)
    for method in ("PUT", "TRACE", "DELETE", "OPTIONS", "ACCEPT"):
        assert stranger.request(method, "/inbox").status_code == 405
    for headers in ({"x-http-method-override": "POST"}, {"x-method-override": "POST"}):
        query = f"csrf={keys.form}&id={library}&_method=POST"
        answer = stranger.get(f"/inbox/accept?{query}", headers=headers)
        assert answer.status_code in (404, 405)
    assert Gate().inbox.get(library).state == "waiting"


def test_a_second_start_asks_the_first(stranger: TestClient, keys: PageKeys) -> None:
    """Only who can read the note in the data folder gets a token."""
    assert stranger.post("/another-start").status_code == 401
    assert stranger.post("/another-start", headers={WORD_HEADER: "guess"}).status_code == 401
    other = {WORD_HEADER: keys.word, "host": "evil.example"}
    assert stranger.post("/another-start", headers=other).status_code == 421
    answer = stranger.post("/another-start", headers={WORD_HEADER: keys.word})
    assert stranger.get(f"/?token={answer.text}").status_code == 303


def test_words_that_nobody_gave(stranger: TestClient, keys: PageKeys) -> None:
    """Letters beyond ASCII where a secret is asked for are a wrong secret, not a fault."""
    strange = "\u00e9\ud7ff"
    assert stranger.get("/", params={"token": strange}).status_code == 401
    latin = {WORD_HEADER: b"\xe9\xff"}
    assert stranger.post("/another-start", headers=latin).status_code == 401
    cookie = {"cookie": f"{COOKIE}=".encode() + b"\xe9\xff"}
    assert stranger.get("/", headers=cookie).status_code == 401
    stranger.cookies.set(COOKIE, keys.cookie)
    assert stranger.post("/undo", data={"csrf": strange}).status_code == 403


def test_a_fault_tells_a_stranger_nothing(
    keys: PageKeys, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is shown where our own code fails is sealed too, and holds no word of forms."""
    app = web_server.make_app(keys, (HOST,))
    client = TestClient(app, base_url=f"http://{HOST}{keys.room}", raise_server_exceptions=False)
    client.cookies.set(COOKIE, keys.cookie)
    monkeypatch.setattr(pages, "ask", lambda *_: 1 / 0)
    answer = client.get("/jobs?said=x&undo=path%3D%2Fundo")
    assert (answer.status_code, "ZeroDivisionError" in answer.text) == (500, True)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert keys.form not in answer.text


def test_forms_of_another_server_are_not_ours(stranger: TestClient, keys: PageKeys) -> None:
    """Nor its cookie; but a server that was started again goes on with its own."""
    other, again = PageKeys("another"), (PageKeys("kept"), PageKeys("kept"))
    assert len({keys.form, other.form, again[0].form, keys.cookie, other.cookie}) == 5
    assert keys.room != other.room
    assert len({(one.form, one.cookie, one.room) for one in again}) == 1
    assert again[0].word != again[1].word
    stranger.cookies.set(COOKIE, other.cookie)
    assert stranger.get("/").status_code == 401
    stranger.cookies.set(COOKIE, keys.cookie)
    assert stranger.post("/undo", data={"csrf": other.form, "change": "x"}).status_code == 403


def test_pages_that_listen_are_counted(
    stranger: TestClient, keys: PageKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MOST_LISTENERS", 0)
    stranger.cookies.set(COOKIE, keys.cookie)
    assert stranger.get("/events").text == "retry: 60000\n\n"  # else it would not end


@pytest.mark.parametrize("name", ["desk", ""])  # of a machine that has none, nobody asks for it
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.168.1.5:9000", 401),  # served; who asks is not known
        ("[fe80::1]:9000", 401),
        ("localhost", 401),
        ("127.0.0.1.nip.io:9000", 421),
        ("evil.example:8766", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_others_that_were_let_in_ask_by_number(
    keys: PageKeys, monkeypatch: pytest.MonkeyPatch, host: str, status: int, name: str
) -> None:
    """At any port, since a container's may be published as another; never by a foreign name."""
    monkeypatch.setattr("socket.gethostname", lambda: name)
    hosts = web_server.known_hosts("0.0.0.0", 8766)
    assert hosts[0] == HOST
    assert hosts[-1] == BY_NUMBER
    client = TestClient(web_server.make_app(keys, hosts), base_url=f"http://{HOST}{keys.room}")
    assert client.get("/", headers={"host": host}).status_code == status
    both = {"host": host, "origin": "http://192.168.1.9"}
    assert client.get("/", headers=both).status_code in (403, 421)


def test_the_note_is_private_and_goes(home: Any) -> None:
    web_server.note_running("http://127.0.0.1:1", "word")
    (file,) = home.rglob("web.json")
    assert file.stat().st_mode & 0o077 == 0
    assert web_server.running_address() == ""  # nothing answers there
    web_server.forget_running()
    assert not file.exists()


def test_a_second_start_opens_what_runs(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what runs beside a daemon; when that ends, nothing says that it runs. A proxy that is
    set for the machine is not asked: it would learn the word."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server = web_server.PageServer(port=0)
    with server.beside():
        address = until(web_server.running_address)
        assert address.startswith(f"{server.address}/?token=")
    assert web_server.running_address() == ""
    assert not list(home.rglob("web.json"))


def test_a_killed_server_is_not_asked(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port may be another program's by now, which must not learn the word."""
    if not (gone := os.fork()):
        os._exit(0)
    os.waitpid(gone, 0)
    monkeypatch.setattr(web_server.os, "getpid", lambda: gone)
    web_server.note_running("http://127.0.0.1:1", "word")
    monkeypatch.setattr(web_server, "build_opener", lambda *_: pytest.fail("it was asked"))
    assert web_server.running_address() == ""
