"""Who may talk to the pages. Each fault that a peer had is a test."""

import os
from typing import Any

import pytest
from starlette.testclient import TestClient

from tacit.changes.gate import Gate
from tacit.ui.web import web_server
from tacit.ui.web.page_guard import COOKIE, PageKeys
from waiting import until

HOST = "127.0.0.1:8766"


@pytest.fixture
def keys() -> PageKeys:
    return PageKeys()


@pytest.fixture
def stranger(keys: PageKeys, library: str) -> TestClient:
    return TestClient(
        web_server.make_app(keys, (HOST, "localhost:8766"), "word"),
        base_url=f"http://{HOST}",
        follow_redirects=False,
    )


@pytest.mark.parametrize("path", ["/", "/inbox", "/static/page.js", "/events", "/nothing", "/undo"])
def test_without_the_token_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert "ship-it" not in answer.text


def test_the_token_opens_once_and_turns_into_a_cookie(stranger: TestClient, keys: PageKeys) -> None:
    token = keys.new_token()
    answer = stranger.get(f"/?token={token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token not in cookie
    stranger.cookies.clear()
    assert stranger.get(f"/?token={token}").status_code == 401
    assert stranger.get("/?token=guess").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),  # DNS that leads here
        ({"host": "evil.example:8766"}, 421),
        ({"host": "127.0.0.1:9999"}, 421),
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


@pytest.mark.parametrize("csrf", [{}, {"csrf": ""}, {"csrf": "guess"}])
def test_a_write_needs_a_form_of_ours(
    stranger: TestClient, keys: PageKeys, library: str, csrf: dict[str, str]
) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    for path in (
        "/inbox/accept",
        "/inbox/reject",
        "/inbox/edit",
        "/undo",
        "/skills/do",
        "/settings/do",
    ):
        assert stranger.post(path, data={"id": library, **csrf}).status_code == 403
        assert stranger.get(path).status_code in (404, 405)  # a link changes nothing
    assert Gate().inbox.get(library).state == "waiting"


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "javascript:x"])
def test_a_write_leads_nowhere_else(
    stranger: TestClient, keys: PageKeys, library: str, back: str
) -> None:
    stranger.cookies.set(COOKIE, keys.cookie)
    form = {"csrf": keys.form, "id": library, "back": back}
    assert stranger.post("/inbox/reject", data=form).headers["location"].startswith("/?")


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
    stranger.cookies.set(COOKIE, keys.cookie)
    assert stranger.post("/inbox/edit", content=b"x" * 2_000_001).status_code == 413
    assert stranger.request("PUT", "/inbox").status_code == 405
    assert stranger.request("TRACE", "/inbox").status_code == 405


def test_a_second_start_asks_the_first(stranger: TestClient, keys: PageKeys) -> None:
    """Only who can read the note in the data folder gets a token."""
    assert stranger.post("/another-start").status_code == 401
    assert stranger.post("/another-start", headers={"x-tacit-word": "guess"}).status_code == 401
    answer = stranger.post("/another-start", headers={"x-tacit-word": "word"})
    assert stranger.get(f"/?token={answer.text}").status_code == 303


def test_the_note_is_private_and_goes(home: Any) -> None:
    web_server.note_running("http://127.0.0.1:1")
    (file,) = home.rglob("web.json")
    assert file.stat().st_mode & 0o077 == 0
    assert web_server.running_address() == ""  # nothing answers there
    web_server.forget_running()
    assert not file.exists()


def test_a_second_start_opens_what_runs(home: Any) -> None:
    """Also what runs beside a daemon; when that ends, nothing says that it runs."""
    server = web_server.PageServer(port=0)
    with server.beside():
        address = until(web_server.running_address)
        assert address.startswith(f"{server.address}/?token=")
    assert web_server.running_address() == ""
    assert not list(home.rglob("web.json"))


def test_other_machines_only_in_words(tacit: Any) -> None:
    assert tacit.error("web", "--host", "0.0.0.0", code=2)["hint"].endswith("if you want that")


def test_a_killed_server_is_not_asked(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port may be another program's by now, which must not learn the word."""
    if not (gone := os.fork()):
        os._exit(0)
    os.waitpid(gone, 0)
    monkeypatch.setattr(web_server.os, "getpid", lambda: gone)
    web_server.note_running("http://127.0.0.1:1")
    monkeypatch.setattr(web_server, "urlopen", lambda *_, **__: pytest.fail("it was asked"))
    assert web_server.running_address() == ""
