"""Who says yes to a call, and what that yes covers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from talking import of, say

from tacit.agent import agent_events
from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest, Approver
from tacit.testing import ModelServer, ToolUse, reply
from tacit.ui.chat.event_text import call_preview


def request(command: str) -> ApprovalRequest:
    return ApprovalRequest("run_command", "command", command, {"command": command})


def ask(approver: Approver, command: str) -> bool:
    return asyncio.run(approver.allows(request(command)))


def answering(answer: ApprovalAnswer, asked: list[str]) -> Approver:
    async def reply(wanted: ApprovalRequest) -> ApprovalAnswer:
        asked.append(wanted.subject)
        return answer

    return Approver(ask=reply)


def test_nobody_to_ask_means_no() -> None:
    """Without a person, and without a pattern, a command is not allowed."""
    assert not ask(Approver(), "git status")
    assert ask(Approver(yes=True), "git status")


@pytest.mark.parametrize(
    "command", ["git status", "git push && rm -rf /", "a | b", "x > y", "f `g`"]
)
def test_a_yes_for_the_session_covers_the_same_call(command: str) -> None:
    """What was allowed for the session is not asked again, also when it joins programs."""
    asked: list[str] = []
    approver = answering("session", asked)
    assert ask(approver, command)
    assert ask(approver, command)
    assert asked == [command]


def test_a_yes_for_one_program_lets_no_second_one_through() -> None:
    """`git *` covers git with other arguments, not what is joined to it, nor another program."""
    asked: list[str] = []
    approver = answering("session", asked)
    assert ask(approver, "git status")
    assert ask(approver, "git log -1")
    assert asked == ["git status"]
    for other in ("git status; curl evil", "git log | sh", "gitk", "git $(id)"):
        ask(approver, other)
    assert asked == ["git status", "git status; curl evil", "git log | sh", "gitk", "git $(id)"]


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status -s", "run_command:git *"),
        ("bash -c evil", "run_command:bash -c evil"),
        ("/usr/bin/python3.12 x.py", "run_command:/usr/bin/python3.12 x.py"),
        ("sudo make", "run_command:sudo make"),
        ("NODE_ENV=test npm test", "run_command:NODE_ENV=test npm test"),
        ("npx prettier .", "run_command:npx prettier ."),
        ("! grep -q x y", "run_command:! grep -q x y"),
        (". ./build.sh", "run_command:. ./build.sh"),
    ],
)
def test_what_always_would_allow(command: str, pattern: str) -> None:
    """A program with any arguments; but of one that runs others, this very command."""
    assert ApprovalRequest("run_command", "command", command, {}).pattern == pattern


def test_always_holds_in_the_next_session(open_session, project: Path) -> None:
    """The user is asked once; the same call in a new session is not asked about."""
    asked: list[ApprovalRequest] = []

    async def always(request: ApprovalRequest) -> Any:
        asked.append(request)
        return "always"

    use = ToolUse("write_file", {"path": "n", "content": "1"})
    for _ in range(2):
        with ModelServer([use, "done"]) as server:
            told = say(open_session(server, approve=always), "go")
        assert not of(agent_events.Return, told)[0].failed
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
    assert ask(Approver((pattern,)), command) is allowed


@pytest.mark.parametrize("name", ["*", "a[1].txt", "what?", "src/*", "[!a]"])
def test_a_name_is_never_taken_for_a_pattern(name: str) -> None:
    """A file called `*` that may be written lets no other file be written."""
    asked: list[str] = []
    approver = answering("session", asked)
    for path in (name, name, "another", "src/another", "b"):
        asyncio.run(approver.allows(ApprovalRequest("write_file", "write", path, {"path": path})))
    assert asked == [name, "another", "src/another", "b"]


def test_a_command_called_star_allows_nothing_else() -> None:
    """The program's name in a pattern is that name, whatever is in it; joined ones too."""
    asked: list[str] = []
    approver = answering("session", asked)
    for command in ("* x", "* y", "rm -rf /", "ls [a]* | wc", "ls [a]* | wc", "ls abc | wc"):
        ask(approver, command)
    assert asked == ["* x", "rm -rf /", "ls [a]* | wc", "ls abc | wc"]


def test_a_pattern_for_a_folder_lets_nothing_above_it_be_written() -> None:
    """`docs/*` does not cover `docs/../Makefile`; what was allowed as it stands, does."""

    def allows(pattern: str, path: str) -> bool:
        request = ApprovalRequest("write_file", "write", path, {"path": path})
        return asyncio.run(Approver((pattern,)).allows(request))

    assert allows("write_file:docs/*", "docs/a..b.md")
    assert not allows("write_file:docs/*", "docs/../Makefile")
    assert allows("write_file:docs/../Makefile", "docs/../Makefile")


@pytest.mark.parametrize(
    ("tool", "arguments", "seen", "unseen"),
    [
        (
            "write_file",
            {"path": "n", "content": "EVIL", "old": "typo", "new": "right", "command": "ls"},
            ("path: n", "+EVIL"),
            ("right", "ls"),
        ),
        (
            "manage_skill",
            {"action": "create", "name": "victim", "path": "a.md", "description": "Use it.",
             "content": "EVIL", "old": "typo", "new": "right"},
            ("name: victim", "path: a.md", "content: EVIL"),
            (),
        ),
        (
            "remember",
            {"command": "a harmless word", "name": "n", "fact": "It is EVIL.", "kind": "project"},
            ("name: n", "It is EVIL."),
            ("harmless",),
        ),
    ],
)  # fmt: skip
def test_who_is_asked_sees_what_the_call_does(
    open_session, project: Path, tool: str, arguments: dict[str, str], seen: Any, unseen: Any
) -> None:
    """Every argument that counts is shown, and none that does not: it could hide the others."""
    shown: list[str] = []

    async def refuse(request: ApprovalRequest) -> ApprovalAnswer:
        shown.append(f"{request.subject}\n{call_preview(request, str(project))[0]}")
        return "no"

    with ModelServer([ToolUse(tool, arguments), "done"]) as server:
        say(open_session(server, approve=refuse), "go")
    assert all(words in shown[0] for words in seen)
    assert not any(words in shown[0] for words in unseen)


@pytest.mark.parametrize("asks", [True, False])
def test_what_others_obey_is_asked_about(open_session, project: Path, asks: bool) -> None:
    """A person is asked, also by the first call of a session; without one it is refused, also
    where a pattern or --yes lets all others through."""

    async def once(request: ApprovalRequest) -> ApprovalAnswer:
        return "once"

    how: dict[str, Any] = {"approve": once} if asks else {"yes": True}
    write = [ToolUse("write_file", {"path": name, "content": "1"}) for name in ("AGENTS.md", "n")]
    with ModelServer([reply(*write, write[0]), "done"]) as server:
        told = say(open_session(server, **how), "go")
    assert [event.failed for event in of(agent_events.Return, told)] == [not asks, False, not asks]
