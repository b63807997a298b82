"""All flows in a real browser: no error in its console, nothing that leaves the machine, and
nothing that keeps anybody out."""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from tacit.agent.agent_events import Usage
from tacit.agent.budget import record_spending
from tacit.changes.gate import Gate
from tacit.ui.cli.servers import open_listener
from tacit.ui.web import web_server
from tacit.ui.web.page_guard import PageKeys

sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright here")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
PAGES = ("/", "/inbox", "/skills", "/skills/ship-it", "/sessions", "/sessions/claude-code:s-0001",
         "/jobs", "/cost", "/memory", "/schedules", "/settings")  # fmt: skip


class Served:
    """The pages on a port of their own, as `tacit web` serves them; they can be started again."""

    def __init__(self) -> None:
        self._secret = "kept"
        self._port = 0
        self.start()

    def start(self) -> None:
        listener = open_listener("127.0.0.1", self._port)
        self._port = listener.getsockname()[1]
        keys = PageKeys(self._secret)
        hosts = web_server.known_hosts("127.0.0.1", self._port)
        app = web_server.make_app(keys, hosts, lambda: self._server.should_exit)
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=5)
        )
        sockets = {"sockets": [listener]}
        self._thread = threading.Thread(target=self._server.run, kwargs=sockets, daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._port}{keys.room}/?token={keys.new_token()}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)


@pytest.fixture
def served(library: str) -> Iterator[Served]:
    found = Served()
    yield found
    found.stop()


class Watched:
    """A page that remembers what went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._asked)
        page.on("response", lambda r: self.wrong.append(r.url) if r.status >= 400 else None)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            self.wrong.append(request.url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def watched(browser: Any, served: Served) -> Iterator[Watched]:
    context = browser.new_context()
    found = Watched(context.new_page())
    found.page.goto(served.address)
    yield found
    context.close()
    assert found.wrong == []


def test_the_inbox_by_keys_alone(watched: Watched, library: str, home: Path) -> None:
    """Down, open, look at the evidence, accept, undo."""
    page = watched.page
    page.goto(page.url + "inbox")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/inbox/{library}")
    page.locator("details.evidence summary").click()
    page.locator(".digest pre").wait_for()
    assert "make ship" in page.locator(".digest").inner_text()
    page.keyboard.press("a")
    page.get_by_text("Accepted: ship-it").wait_for()
    assert "make ship-all" in (home / ".agents/skills/ship-it/SKILL.md").read_text()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert "make ship-all" not in (home / ".agents/skills/ship-it/SKILL.md").read_text()


def test_search_as_one_types_and_live_news(watched: Watched, library: str) -> None:
    page = watched.page
    root = page.url
    page.goto(root + "skills")
    page.keyboard.press("/")
    page.keyboard.type("ship a release")
    page.locator(".row", has_text="ship-it").wait_for()
    with page.expect_response("**/events"):  # it listens
        page.goto(root + "inbox")
    page.get_by_text("ship alone is gone").wait_for()
    gate = Gate()
    gate.reject(gate.inbox.get(library), "not now")
    page.get_by_text("The inbox is empty.").wait_for()


def test_another_server_of_this_machine_sees_no_cookie(browser: Any, served: Served) -> None:
    """Cookies know no ports: what a sandboxed command serves beside us is asked without ours."""
    asked: list[Any] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["cookie"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Other) as other, browser.new_context() as context:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = context.new_page()
        page.goto(served.address)
        assert [one["path"] for one in context.cookies()] == [urlsplit(page.url).path]
        for path in ("/", "/inbox", "/static/page.js"):
            with contextlib.suppress(sync_api.Error):  # nothing comes, so the page stays
                page.goto(f"http://127.0.0.1:{other.server_port}{path}")
        other.shutdown()
    assert asked
    assert set(asked) == {None}


def test_many_tabs_and_a_server_that_starts_again(
    browser: Any, served: Served, library: str
) -> None:
    """More pages than a browser opens connections hear the news; after a restart they go on, and
    their forms count."""
    context = browser.new_context()
    pages = [context.new_page() for _ in range(7)]
    pages[0].goto(served.address)
    root = pages[0].url
    for page in pages:
        page.goto(root + "inbox")
    served.stop()
    pages[0].get_by_text("The server does not answer").wait_for()
    served.start()
    for page in pages:
        page.get_by_text("The server does not answer").wait_for(state="hidden")
    gate = Gate()
    gate.reject(gate.inbox.get(library), "not now")
    for page in pages:
        page.get_by_text("The inbox is empty.").wait_for()
    pages[-1].goto(root + "skills/ship-it")
    pages[-1].get_by_role("button", name="Pin").click()
    pages[-1].get_by_text("Pinned: ship-it").wait_for()
    context.close()


def test_every_page_can_be_used_by_everybody(watched: Watched) -> None:
    """By axe-core, in light and dark and on a phone's width."""
    from axe_playwright_python.sync_playwright import Axe

    usage = Usage(input_tokens=1, output_tokens=2, cost=0.25, model="a-model")
    record_spending("review", "claude-code:s-0001", usage)
    page, root = watched.page, watched.page.url
    for number, path in enumerate(PAGES):
        page.emulate_media(color_scheme=("light", "dark")[number % 2])
        page.set_viewport_size({"width": (1200, 390)[number // 2 % 2], "height": 800})
        page.goto(root.rstrip("/") + path)
        found = Axe().run(page)
        assert found.violations_count == 0, (path, found.generate_report())
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, (path, wide)
