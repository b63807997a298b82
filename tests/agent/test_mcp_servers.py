"""MCP servers from the settings: real ones, started as processes."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from talking import of, say

from tacit.agent import agent_events
from tacit.base import settings, trust
from tacit.testing import ModelServer, ToolUse, reply
from waiting import FOREVER, until

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

SERVER = """
import os, time
from mcp.server import MCPServer

server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> str:
    "Add two numbers."
    return f"{a + b} with {os.environ.get('ANTHROPIC_API_KEY', 'no key')}"

@server.tool()
def note(file_path: str, text: str) -> str:
    return f"{file_path}: {text}"

@server.tool()
def fail() -> str:
    raise ValueError("not today")

@server.tool()
def die() -> str:
    os._exit(1)

@server.tool()
def stall() -> str:
    open(__file__ + ".stalls", "w").close()
    time.sleep(3600)

server.run("stdio")
"""


@pytest.fixture
def configured(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "TOPSECRET")
    (home / "server.py").write_text(SERVER)
    config = home / ".config" / "tacit"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[mcp.servers.sums]\ncommand = "{sys.executable}"\nargs = ["{home}/server.py"]\n'
        "seconds = 60\n"
        '[mcp.servers.gone]\ncommand = "/nonexistent/program"\nseconds = 5\n'
    )


async def yes(request: Any) -> str:
    return "once"


def test_a_servers_tools_are_offered_and_called(open_session, configured) -> None:
    """Its tools stand beside ours, calls reach it as they are, failures are failures, our keys do
    not reach it."""
    uses = [
        ToolUse("mcp__sums__add", {"a": 2, "b": 3}),
        ToolUse("mcp__sums__fail", {}),
        ToolUse("mcp__sums__add", {"a": "x"}),
        ToolUse("mcp__sums__note", {"file_path": "a", "text": "b"}),
    ]
    with ModelServer([*uses, "done", "again"]) as server:
        session = open_session(server, approve=yes)
        told = say(session, "go", "once more")
    added, failed, wrong, noted = of(agent_events.Return, told)
    assert (added.text, added.failed) == ("5 with no key", False)
    assert failed.failed
    assert "Error executing tool fail" in failed.text
    assert wrong.failed
    assert (noted.text, noted.failed) == ("a: b", False)
    first, last = server.requests[0], server.requests[-1]
    assert "mcp__sums__add" in first.tool_names
    assert first.tools == last.tools
    notices = [notice.text for notice in of(agent_events.Notice, told)]
    assert len([text for text in notices if "'gone' failed" in text]) == 1


def test_a_servers_tools_ask_first(open_session, configured) -> None:
    """With nobody to ask they are refused; a pattern over them lets them through."""
    uses = [ToolUse("mcp__sums__add", {"a": 1, "b": 1}), ToolUse("mcp__sums__fail", {})]
    with ModelServer([reply(*uses), "done"]) as server:
        told = say(open_session(server, flags={"allow": ("mcp__sums__a*",)}), "go")
    added, failed = of(agent_events.Return, told)
    assert not added.failed
    assert "Nobody is there to allow this call" in failed.text


def test_a_server_that_dies_or_stalls_fails_its_call_only(open_session, configured) -> None:
    """The call fails by name, the run goes on, and the next call finds the server anew."""
    add = (60, ToolUse("mcp__sums__add", {"a": 1, "b": 1}))
    die, stall = (60, ToolUse("mcp__sums__die", {})), (0.5, ToolUse("mcp__sums__stall", {}))
    told = patiently(open_session, [die, add, stall, add, (60, "done")])
    died, added, stalled, again = of(agent_events.Return, told)
    assert died.failed
    assert stalled.failed
    assert "the MCP server 'sums' failed" in died.text
    assert "no answer in 0.5 s" in stalled.text
    assert (added.text, added.failed) == ("2 with no key", False)
    assert (again.text, again.failed) == ("2 with no key", False)
    assert told[-1].reason == "done"


def test_an_interrupt_in_a_call_leaves_the_server_usable(
    open_session, configured, home: Path
) -> None:
    """Stopped in the middle of a call, the next message can call the server again."""

    async def run(session: Any) -> list[Any]:
        async def talk() -> None:
            async for _ in session.say("go"):
                pass

        task = asyncio.create_task(talk())
        await asyncio.to_thread(until, (home / "server.py.stalls").exists)
        task.cancel()
        await asyncio.wait({task})
        return [event async for event in session.say("again")]

    uses = [ToolUse("mcp__sums__stall", {}), ToolUse("mcp__sums__add", {"a": 1, "b": 1})]
    with ModelServer([*uses, "done"]) as server:
        told = asyncio.run(run(open_session(server, approve=yes)))
    (added,) = of(agent_events.Return, told)
    assert (added.text, added.failed) == ("2 with no key", False)


def test_a_projects_server_starts_as_it_was_allowed(
    open_session, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs outside the sandbox, so what the agent itself writes never does: neither in place of
    its program, once it has to be started again, nor beside it in the folder where the user is."""
    file, below = project / ".tacit" / "config.toml", project / "below"
    for folder in (file.parent, below):
        folder.mkdir()
    (project / "server.py").write_text(SERVER)
    (below / "server.py").write_text("open('evil', 'w')")
    file.write_text(f'[mcp.servers.sums]\ncommand = "{sys.executable}"\nargs = ["server.py"]\n')
    digest = settings.read_project_file(str(file)).digest
    trust.allow_server(str(file), digest, "sums")
    monkeypatch.chdir(below)
    add = ToolUse("mcp__sums__add", {"a": 1, "b": 1})
    write = ToolUse("write_file", {"path": "server.py", "content": "open('evil', 'w')"})
    with ModelServer([reply(add, write, ToolUse("mcp__sums__die", {}), add), "done"]) as server:
        told = say(open_session(server, approve=yes), "go")
    first, written, _, last = of(agent_events.Return, told)
    assert (first.text, first.failed, written.failed) == ("2 with no key", False, False)
    assert last.failed
    assert "tacit trust --server sums" in last.text
    assert not list(project.rglob("evil"))


def patiently(open_session: Any, steps: list[tuple[float, Any]]) -> list[Any]:
    """Say something; each step is how long servers may take from then on, and a reply."""
    left = iter(steps)
    sessions: list[Any] = []

    def script(request: Any) -> Any:
        seconds, step = next(left)
        for connection in sessions[0]._servers._connections:
            connection._server = msgspec.structs.replace(connection._server, seconds=seconds)
        return step() if callable(step) else step

    with ModelServer(script) as server:
        sessions.append(open_session(server, approve=yes))
        return say(sessions[0], "go")


class Remote:
    """A server at an address, in a thread; it can go away and come back at the same port."""

    def __init__(self) -> None:
        from mcp.server import MCPServer

        self.port = 0
        self._made = MCPServer("far")
        self._made.tool()(self.greet)
        self._made.tool()(self.wait)

    async def greet(self, name: str) -> str:
        """Greet somebody."""
        return f"hello {name}"

    async def wait(self) -> str:
        """Take very long."""
        await asyncio.sleep(FOREVER)
        return "at last"

    def start(self) -> None:
        import uvicorn

        app = self._made.streamable_http_app()
        self._made._session_manager = None  # one app a start
        options = uvicorn.Config(
            app, port=self.port, log_level="critical", timeout_graceful_shutdown=0
        )
        self._server = uvicorn.Server(options)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        until(lambda: self._server.started or not self._thread.is_alive())
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()


def test_a_server_at_an_address(open_session, home: Path, project: Path) -> None:
    """By url the same holds: called, gone and told so, slow and told so, back again."""
    remote = Remote()
    remote.start()
    config = home / ".config" / "tacit"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[mcp.servers.far]\nurl = "http://127.0.0.1:{remote.port}/mcp"\n'
    )
    greet = ToolUse("mcp__far__greet", {"name": "Ada"})

    def stopped() -> ToolUse:
        remote.stop()
        return greet

    def back() -> ToolUse:
        remote.start()
        return greet

    wait = (0.5, ToolUse("mcp__far__wait", {}))
    try:
        told = patiently(
            open_session,
            [(60, greet), wait, (60, greet), (60, stopped), (60, back), (60, "done")],
        )
    finally:
        remote.stop()
    answers = [(event.text, event.failed) for event in of(agent_events.Return, told)]
    assert answers[0] == answers[2] == answers[4] == ("hello Ada", False), answers
    assert answers[1][1]
    assert "no answer in 0.5 s" in answers[1][0]
    assert answers[3][1]
    assert "the MCP server 'far'" in answers[3][0]
    assert told[-1].reason == "done"


def test_the_settings_of_servers_are_shown(configured) -> None:
    """`tacit config` lists them, and where they come from."""
    loaded = settings.load_settings()
    assert set(loaded.settings.mcp.servers) == {"sums", "gone"}
    (value,) = [value for value in loaded.values() if value.key == "mcp.servers"]
    assert value.source.endswith("config.toml")
