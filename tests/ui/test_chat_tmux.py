"""The real program in a real terminal: one whole journey in tmux, with a kill in the middle."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.testing import ModelServer, Request, ToolUse
from waiting import LONG

pytest.importorskip("textual", reason="the extra 'tui' is not installed")
pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

# Writes in the project, and tries to write beside it.
COMMAND = ToolUse(
    "run_command",
    {"command": "touch ~/outside; echo swept > desk.txt; cat desk.txt"},
)
QUESTION = ToolUse("ask_user", {"question": "Which colour?", "options": ["red", "green"]})


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)
        self._started = False

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, environment: dict[str, str], *arguments: str) -> None:
        """Run the chat in the window; a second time, in place of the one that died."""
        how = ("respawn-pane", "-k") if self._started else ("new-session", "-d", "-x80", "-y24")
        words = [f"{name}={value}" for name, value in environment.items()]
        chat = [sys.executable, "-m", "tacit", "chat", *arguments]
        self.call(*how, "-c", os.getcwd(), "env", *words, *chat)
        self.call("set-option", "-g", "remain-on-exit", "on")
        self._started = True

    @property
    def pid(self) -> int:
        return int(self.call("display-message", "-p", "#{pane_pid}"))

    def screen(self, *how: str) -> str:
        return self.call("capture-pane", "-p", *how)

    def until(self, text: str, seconds: float = LONG) -> str:
        end = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            assert time.monotonic() < end, f"{text!r} did not come; there is:\n{screen}"
            time.sleep(0.05)
        return screen

    def wait_dead(self) -> None:
        end = time.monotonic() + LONG
        while self.call("display-message", "-p", "#{pane_dead}").strip() != "1":
            assert time.monotonic() < end, "the program lives on"
            time.sleep(0.05)

    def type(self, *keys: str) -> None:
        self.call("send-keys", *keys)

    def stop(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    window = Tmux(tmp_path / "tmux")
    yield window
    window.stop()


def script(request: Request) -> Any:
    """By what the user said last: a command, a skill, a question, or the answer."""
    said = request.user_texts[-1]
    if request.messages[-1].role == "tool" and request.messages[-1].tool_uses == ():
        (result, *_) = reversed(request.tool_results)
        if result.text.startswith("<skill") and "my desk" in said:
            return COMMAND  # the skills that the user called are there
        return f"So: **{' '.join(result.text.split())[:40]}**."
    replies: dict[str, Any] = {
        "polish it": ToolUse("run_skill", {"name": "polish"}),
        "ask me": QUESTION,
    }
    return replies.get(said, "As the skill says: **swept**.")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(script, strict=False) as running:
        yield running


def test_the_whole_journey(tmux: Tmux, server: ModelServer, home: Path) -> None:
    """Start, stack two skills, allow a command, see it run in the sandbox, let the model call a
    skill, answer a question, kill -9, resume with all three active."""
    for name in ("tidy-up", "dust", "polish"):
        skill = home / ".agents" / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: How to {name}.\n---\n\nThe steps of {name}.\n"
        )
    environment = {
        "HOME": str(home),
        "NO_COLOR": "1",
        "TACIT_AGENT_BASE_URL": server.url + "/v1",
        "TACIT_AGENT_MODEL": "openai:mock-model",
    }
    tmux.start(environment, "--no-mouse")
    tmux.until("openai:mock-model")
    tmux.type("/tid")
    tmux.until("/tidy-up")
    tmux.type("Enter")
    tmux.until("› /tidy-up")
    tmux.type("/dust my desk", "Enter")
    tmux.until("◆ dust, called by you")
    tmux.until("Run this command?")
    assert not Path("desk.txt").exists()
    time.sleep(0.5)  # a question takes no key of somebody who is still typing
    tmux.type("y")
    tmux.until("So: swept.")
    tmux.until("✓ run_command")
    assert Path("desk.txt").read_text() == "swept\n"
    assert not (home / "outside").exists()
    assert "\x1b[3" not in tmux.screen("-e").replace("\x1b[39m", "")  # NO_COLOR holds

    tmux.type("polish it", "Enter")
    tmux.until("◆ polish, called by the model")
    tmux.until("So: <skill")
    tmux.type("ask me", "Enter")
    tmux.until("A question for you")
    time.sleep(0.5)
    tmux.type("2")
    tmux.until("So: green.")
    os.kill(tmux.pid, signal.SIGKILL)
    tmux.wait_dead()

    tmux.start(environment, "--continue")
    for text in ("So: green.", "skills active: tidy-up, dust, polish"):
        tmux.until(text)
    tmux.type("which steps now", "Enter")
    tmux.until("As the skill says: swept.")
    request = server.requests[-1]
    for name in ("tidy-up", "dust", "polish"):
        assert request.mentions(f"The steps of {name}.")
    tmux.type("C-d")
    tmux.until("Go on later: tacit chat --resume")
