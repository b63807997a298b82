"""`tacit chat` as a program: which face it takes, and the line-based one with pipes."""

import io
import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.testing import ModelServer, Request, Stall, ToolUse, Turns, reply
from tacit.testing.script import ScriptLike
from tacit.ui.cli.app import run
from waiting import FOREVER, LONG, until

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")
COMMAND = ToolUse("run_command", {"command": "echo made > made.txt"})


@pytest.fixture(autouse=True)
def project(home: Path) -> Path:
    (home / "work" / ".git").mkdir()
    skill = home / ".agents" / "skills" / "tidy-up"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tidy-up\ndescription: Tidy.\n---\n\nThe steps.\n")
    return home / "work"


class Done(msgspec.Struct, frozen=True):
    """What a run of the program gave."""

    returncode: int
    stdout: str
    stderr: str


Chat = Callable[..., tuple[Done, ModelServer]]


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chat:
    """Runs `tacit chat` with these lines as its input."""

    def run_it(script: ScriptLike, lines: str, *arguments: str) -> tuple[Done, ModelServer]:
        with ModelServer(script, strict=False) as server:
            for name, value in _env(server).items():
                monkeypatch.setenv(name, value)
            monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
            code = run(["chat", *arguments])
            assert not server.failures, server.failures
        told = capsys.readouterr()
        return Done(code, told.out, told.err), server

    return run_it


def _env(server: ModelServer) -> dict[str, str]:
    return {
        "TACIT_AGENT_BASE_URL": server.url + "/v1",
        "TACIT_AGENT_MODEL": "openai:mock-model",
    }


def test_pipes_get_lines(chat: Chat) -> None:
    """Without a terminal every line is a message, and the answers are plain lines."""
    done, server = chat(Turns(["First.\nMore \x1b[31mred.", "Second."]), "one\n\ntwo \\\nlines\n")
    assert done.stdout == "First.\nMore �[31mred.\nSecond.\n", done.stderr
    assert server.requests[1].messages[-1].text == "two \nlines"
    assert done.returncode == 0


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("n", False), ("what?\nno", False)])
def test_approval_by_line(chat: Chat, answer: str, runs: bool, project: Path) -> None:
    """The question names the command, and the next line answers it."""
    done, _ = chat([COMMAND, "Well."], f"do it\n{answer}\n")
    assert "May run_command do this?\n  echo made > made.txt\n" in done.stdout
    assert (project / "made.txt").exists() == runs
    assert done.stdout.endswith("Well.\n")
    assert ("[done in" in done.stdout) == runs


def test_nobody_left_to_answer_is_a_no(chat: Chat, project: Path) -> None:
    """When the input has ended, a command is not run."""
    done, _ = chat([COMMAND, "Well."], "do it\n")
    assert not (project / "made.txt").exists()
    assert done.returncode == 0


def test_questions_by_line(chat: Chat) -> None:
    """A number picks an option, any other line is the answer itself."""
    asked = ToolUse("ask_user", {"question": "Which?", "options": ["main", "next"]})
    done, server = chat([asked, asked, "Thanks."], "go\n2\nneither\n")
    assert "Question: Which?\n  1: main\n  2: next\n" in done.stdout
    assert server.requests[1].tool_results[-1].text == "next"
    assert server.requests[2].tool_results[-1].text == "neither"


def test_events_as_json(chat: Chat) -> None:
    """With --json every event, approval and fault is a line of JSON."""
    done, _ = chat([COMMAND, "Well."], "do it\ny\n/nothing\n", "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [one["type"] for one in told]
    assert kinds[0] == "session"
    asked = next(one for one in told if one["type"] == "approval")
    assert asked["subject"] == "echo made > made.txt"
    assert {"call", "return", "text", "usage", "end", "error"} <= set(kinds)


def test_commands_inside(chat: Chat) -> None:
    """/skills, /cost, /help, /sessions and /quit work without a screen."""
    done, server = chat(
        ["Hi."], "/skills\nhello\n/cost\n/sessions\n/help\n/inbox nothing-like-it\n/quit\nnever\n"
    )
    assert "tidy-up" in done.stdout
    assert "requests   1" in done.stdout
    assert "hello" in done.stdout
    assert "/undo [ID]" in done.stdout
    assert len(server.requests) == 1


def test_resume_says_what_was_said(chat: Chat, home: Path) -> None:
    """--continue and --resume go on with the same messages, and say briefly what was said."""
    chat(["Noted."], "/tidy-up remember the milk\n")
    done, server = chat(["Milk."], "what was it?\n", "--continue")
    assert "You said: remember the milk\nThe answer was: Noted.\n" in done.stdout
    assert "Skills active: tidy-up." in done.stdout
    assert "remember the milk" in [m.text for m in server.requests[0].messages]
    [file] = (home / ".local/share/tacit/sessions").glob("*.jsonl")
    again, _ = chat(["Yes."], "sure?\n", "--resume", file.stem[:-3])
    assert f"Resumed {file.stem}." in again.stdout
    assert len(file.read_text().splitlines()) > 10


def test_an_unknown_session_is_said(chat: Chat) -> None:
    """--resume of nothing ends with the code of things not found."""
    done, _ = chat(["unused"], "", "--resume", "1999")
    assert done.returncode == 3
    assert "1999" in done.stderr


def test_both_ways_to_resume_exclude_each_other(chat: Chat) -> None:
    """--continue with --resume is a usage error."""
    done, _ = chat(["unused"], "", "--continue", "--resume", "x")
    assert done.returncode == 2


def test_no_model_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a model the program ends with the next step."""
    from tacit.agent import models

    monkeypatch.setattr(models, "LOCAL", ())
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi\n"))
    assert run(["chat"]) == 4
    assert "tacit setup" in capsys.readouterr().err


def test_a_missing_extra_is_named(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Textual the line-based face is taken, and one line says what to install."""
    from importlib import util

    from tacit.ui.cli import chats

    monkeypatch.setattr(chats, "_is_capable", lambda: True)
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "textual" else name)
    done, _ = chat(["Hello."], "hi\n")
    assert done.stdout == "Hello.\n"
    assert "tacit[tui]" in done.stderr
    assert done.stderr.count("\n") == 1


class _Terminal:
    """A program on a terminal of its own."""

    def __init__(self, server: ModelServer, *arguments: str, **env: str) -> None:
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.environ.update(_env(server) | env)
            os.execv(sys.executable, [sys.executable, "-m", "tacit", "chat", *arguments])
        self.seen = ""

    def until(self, text: str) -> None:
        assert self.comes(text, LONG), f"{text!r} did not come; there is: {self.seen!r}"

    def comes(self, text: str, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > end:
                return False
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
                except OSError:
                    self.seen += "<closed>"
        return True

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until that is said: one before the reading begins waits for the next."""
        self.press("\x03")
        while not self.comes(text, 10.0):
            self.press("\x03")

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def close(self) -> int:
        try:
            os.kill(self.process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = os.waitpid(self.process, 0)[1]
        os.close(self.fd)
        return code


def _states(request: Request) -> Any:
    """A reply for each state in which the user may press Ctrl-C."""
    replies: dict[str, Any] = {
        "count": reply("One\ntwo three four five six", fault=Stall(FOREVER, after_chunks=6)),
        "run": ToolUse("run_command", {"command": "echo ran > made; sleep 600"}),
        "approve": ToolUse("run_command", {"command": "touch never"}),
        "ask": ToolUse("ask_user", {"question": "Which one?"}),
    }
    return replies.get(request.user_texts[-1], "Here again.\n")


def test_ctrl_c_in_every_state_of_a_dumb_terminal(home: Path) -> None:
    """With TERM=dumb there are lines only. Ctrl-C ends an answer, a command, a question of either
    kind, and the talk goes on; what ran, what did not, and what was said is in the next request."""
    with ModelServer(_states, strict=False) as server:
        terminal = _Terminal(server, TERM="dumb")
        try:
            for count, (text, sign, keys) in enumerate(
                [
                    ("count", "One", ""),
                    ("run", "y, s, a or n> ", "y\n"),
                    ("approve", "y, s, a or n> ", ""),
                    ("ask", "your answer> ", ""),
                ],
                start=1,
            ):
                terminal.until("you> ")
                terminal.seen = ""
                terminal.press(f"{text}\n")
                terminal.until(sign)
                terminal.press(keys)
                if text == "run":
                    until((home / "work" / "made").exists)
                terminal.interrupt("Interrupted; what was done is kept.")
                assert len(server.requests) == count
                assert "Traceback" not in terminal.seen
                assert "\x1b" not in terminal.seen
            terminal.press("again\n")
            terminal.until("Here again.\r\nyou> ")
            terminal.press("\x04")
            terminal.until("Go on later: tacit chat --resume ")
        finally:
            terminal.close()
    last = server.requests[-1]
    assert any(m.role == "assistant" and m.text.endswith("[interrupted]") for m in last.messages)
    ran, approved, asked = (result.text for result in last.tool_results)
    assert "while it ran" in ran
    assert approved == asked == "[not run: interrupted by the user]"
    assert not (home / "work" / "never").exists()
