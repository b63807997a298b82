"""The checks of scripts/test-hosts say yes to a right session, and no to each wrong one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import host_checks
import host_sessions
from host_agents import AGENTS
from host_programs import Place, Run
from tacit.testing.script import Message, Request, Tool, ToolResult
from tacit.traces.trace import Head, Text, ToolCall, Trace, Turn, Usage


@pytest.fixture
def checks() -> Any:
    return host_checks


def request(text: str, system: str = "", results: tuple[str, ...] = ()) -> Request:
    """A call of the model in a conversation that begins with `text`."""
    said = [Message("user", text)]
    if results:
        given = tuple(ToolResult(str(i), result) for i, result in enumerate(results))
        said.append(Message("tool", tool_results=given))
    return Request(
        number=1, wire="anthropic", path="/", headers={}, body=b"{}", model="m", stream=False,
        system=system, messages=tuple(said), tools=(Tool("bash"),),
    )  # fmt: skip


def good(checks: Any, home: Path) -> Any:
    """A session in which everything is right, made by hand."""
    sessions = host_sessions
    agent = AGENTS[0]
    results = (sessions.SHELL_SAYS[0], sessions.SHELL_SAYS[1], sessions.README_SAYS)
    results += (sessions.SHELL_SAYS[2],)
    kinds: Any = ("shell", "shell", "read", "shell")
    calls = [
        ToolCall(str(i), "t", kind, result=result, failed=i == 0)
        for i, (kind, result) in enumerate(zip(kinds, results, strict=True))
    ]
    texts = [Text(text) for text in sessions.TEXTS]
    project = home / "joined" / "herd"
    trace = Trace(
        Head("claude-code", "s", project=str(project), usage=Usage(output=120)),
        (
            Turn(0, sessions.PROMPTS[0], (*calls[:3], *texts[:4])),
            Turn(1, sessions.PROMPTS[1], (calls[3], *texts[4:])),
        ),
    )
    kept = home / "joined" / ".claude" / "projects" / "herd" / "s.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(sessions.PROMPTS[0])

    def talk(where: str, requests: list[Request]) -> Any:
        place = Place(home=home / where, project=home / where / "herd", url="http://127.0.0.1")
        run = Run(0, 1.0, '{"type": "result"}\n', f"session 12ab in {home / where}\n")
        return sessions.Conversation(place, (run, run), requests, [])

    asked = [request(sessions.PROMPTS[0], results=results)] * 6
    return sessions.Session(
        agent=agent, host="claude-code", alone=talk("alone", asked),
        connected=talk("joined", asked),
        after=talk("joined", [request(sessions.NEXT_PROMPT, sessions.SKILL_SAYS)]),
        times=[(2.0, 2.5)], heard=True,
        listed=[{"host": "claude-code", "prompts": 2, "calls": 4}],
        waited=0.5, trace=trace, log="", before=b"{}", between=b'{"hooks": 1}', back=b"{}", left=[],
    )  # fmt: skip


def failing(checks: Any, session: Any) -> list[str]:
    return [name for name, check in checks.CHECKS if check(session).good is False]


def test_a_right_session_passes(checks: Any, tmp_path: Path) -> None:
    """Every check says yes."""
    assert failing(checks, good(checks, tmp_path)) == []


@pytest.mark.parametrize(
    ("field", "value", "fails"),
    [
        ("heard", False, "hook"),
        ("waited", None, "stored after"),
        ("listed", [], "stored after"),
        ("trace", None, "trace"),
        ("times", [(2.0, 3.5), (2.1, 3.2)], "slower by"),
        ("between", b"{}", "given back"),
        ("back", b"{ }", "given back"),
        ("left", [".claude/skills/x"], "given back"),
    ],
)
def test_each_fault_is_seen(
    checks: Any, tmp_path: Path, field: str, value: object, fails: str
) -> None:
    """One thing wrong fails the check that is about it, and no other."""
    session = msgspec.structs.replace(good(checks, tmp_path), **{field: value})
    assert failing(checks, session) == [fails]


@pytest.mark.parametrize(
    "wrong",
    [
        {"usage": Usage(output=100)},
        {"project": "/elsewhere"},
        {"skipped": {"not-json": 1}},
    ],
)
def test_a_trace_with_a_wrong_head_is_seen(checks: Any, tmp_path: Path, wrong: Any) -> None:
    """Tokens, project, and what was passed over."""
    session = good(checks, tmp_path)
    head = msgspec.structs.replace(session.trace.head, **wrong)
    session = msgspec.structs.replace(session, trace=Trace(head, session.trace.turns))
    assert failing(checks, session) == ["trace"]


def test_a_trace_without_its_second_turn_is_seen(checks: Any, tmp_path: Path) -> None:
    """A session that was stored before its end."""
    session = good(checks, tmp_path)
    short = Trace(session.trace.head, session.trace.turns[:1])
    assert failing(checks, msgspec.structs.replace(session, trace=short)) == ["trace"]


@pytest.mark.parametrize(
    "line",
    ["Warning: hook timed out", '{"type": "hook.failed"}', '{"type": "result", "x": "tacit"}'],
)
def test_what_a_hook_prints_is_seen(checks: Any, tmp_path: Path, line: str) -> None:
    """As text, as a record of a new kind, or by its name."""
    session = good(checks, tmp_path)
    run = session.connected.runs[0]
    loud = msgspec.structs.replace(run, stdout=run.stdout + line + "\n")
    talk = msgspec.structs.replace(session.connected, runs=(run, loud))
    assert failing(checks, msgspec.structs.replace(session, connected=talk)) == ["silent"]


def test_a_skill_that_nobody_was_told_of_is_seen(checks: Any, tmp_path: Path) -> None:
    """The session after it was made went by without it."""
    session = good(checks, tmp_path)
    asked = [request(host_sessions.NEXT_PROMPT)]
    after = msgspec.structs.replace(session.after, requests=asked)
    assert failing(checks, msgspec.structs.replace(session, after=after)) == ["skill seen"]
