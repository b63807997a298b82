"""Who says yes to a call, and what that yes covers."""

import asyncio

import pytest

from tacit.agent.approval import Answer, Approver, Request


def request(command: str) -> Request:
    return Request("run_command", "command", command, {"command": command})


def ask(approver: Approver, command: str) -> bool:
    return asyncio.run(approver.allows(request(command)))


def answering(answer: Answer, asked: list[str]) -> Approver:
    async def reply(wanted: Request) -> Answer:
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
