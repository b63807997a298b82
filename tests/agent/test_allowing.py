"""`always` is kept in the user's settings, and the rest of the file is as it was."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from talking import of, say

from tacit.agent import events
from tacit.agent.allowing import added, allow_always
from tacit.agent.approval import Approver, Request
from tacit.base import settings
from tacit.base.errors import BadConfig
from tacit.testing import ModelServer, ToolUse


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\n",
        '[search]\nlimit = 5\n\n[agent]\nmodel = "x:y"  # best\n\n[catalogue]\nbudget = 9\n',
        "[agent]\nallow = []\n",
        '[agent]\nallow = ["a"]  # one\nturns = 5\n',
        '[agent]\nallow = [\n  "a",  # first ]\n  "b"  # second, no comma\n]\n',
        '[agent]\nallow = [\n  "a",\n]\n[search]\nlimit = 3',
        '[agent]\nallow = [\'lit]eral\', "q\\"uote]"]\n',
        "[agent] # mine",
    ],
)
def test_one_pattern_more_and_nothing_else(home: Path, before: str) -> None:
    """Whatever the file looks like, it says the same and one thing more; comments are kept."""
    path = home / ".config" / "tacit" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(before)
    wanted = tomllib.loads(before)
    pattern = 'run_command:echo "hi" *'
    allow_always(pattern)
    wanted.setdefault("agent", {}).setdefault("allow", []).append(pattern)
    after = path.read_text()
    assert tomllib.loads(after) == wanted
    for line in before.splitlines():
        assert "#" not in line or line[line.index("#") :] in after
    allow_always(pattern)
    assert path.read_text() == after


@pytest.mark.parametrize("before", ["agent.turns = 3\n", "agent = { turns = 3 }\n", "[agent\n"])
def test_a_file_that_cannot_be_edited_is_left_alone(home: Path, before: str) -> None:
    """Other ways to write the section, and broken files, are named and not touched."""
    path = home / ".config" / "tacit" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(before)
    with pytest.raises(BadConfig):
        allow_always("x")
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status -s", "run_command:git *"),
        ("bash -c evil", "run_command:bash -c evil"),
        ("/usr/bin/python3.12 x.py", "run_command:/usr/bin/python3.12 x.py"),
        ("sudo make", "run_command:sudo make"),
    ],
)
def test_what_always_would_allow(command: str, pattern: str) -> None:
    """A program with any arguments; but of one that runs others, this very command."""
    assert Request("run_command", "command", command, {}).pattern == pattern


def test_a_file_that_is_not_there_is_made(home: Path) -> None:
    """Without settings, the first `always` makes the file, for the user's eyes only."""
    allow_always("write_file:a")
    path = home / ".config" / "tacit" / "config.toml"
    assert settings.load().settings.agent.allow == ("write_file:a",)
    assert path.stat().st_mode & 0o777 == 0o600
    assert added("", "x") == '[agent]\nallow = ["x"]\n'


def test_always_holds_in_the_next_session(open_session, project: Path) -> None:
    """The user is asked once; the same call in a new session is not asked about."""
    asked: list[Request] = []

    async def always(request: Request) -> Any:
        asked.append(request)
        return "always"

    use = ToolUse("write_file", {"path": "n", "content": "1"})
    for _ in range(2):
        with ModelServer([use, "done"]) as server:
            told = say(open_session(server, approve=always), "go")
        assert not of(events.Return, told)[0].failed
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("pattern", "command", "allowed"),
    [
        ("run_command:git *", "git status", True),
        ("run_command:git *", "git", True),
        ("run_command:git *", "gitk", False),
        ("run_command:git *", "git status; rm -rf x", False),
        ("run_command:git *", "git status && evil", False),
        ("run_command:git *", "git log | sh", False),
        ("run_command:git *", "git log $(evil)", False),
        ("run_command:git *", "git log `evil`", False),
        ("run_command:git *", "git log\nevil", False),
        ("run_command:git *", "git log > ~/.profile", False),
        ("run_command:git *", "git -c alias.x='!evil' x", True),
        ("run_command:make test", "make test", True),
        ("run_command:make test", "make test2", False),
        ("run_command", "anything; at all", True),
        ("write_file:*", "git status", False),
    ],
)
def test_a_pattern_lets_one_program_through(pattern: str, command: str, allowed: bool) -> None:
    """A pattern for one program never lets a second one pass behind it."""
    import asyncio

    request = Request("run_command", "command", command, {"command": command})
    assert asyncio.run(Approver((pattern,)).allows(request)) is allowed
