"""Repair from end to end: a skill fails in chat, is mended, checked, and watched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

import repairing
from repairing import chat, do, due, failed_steps, fails, make_skill, mends, server, works

from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn import notices
from tacit.learn.improve.repairs import Repairs, opened
from tacit.learn.improve.trying import find_sandbox
from tacit.testing import ModelServer

needs_sandbox = pytest.mark.skipif(find_sandbox() is None, reason="there is no sandbox here")


@pytest.fixture
def folder(project: Path) -> Path:
    return make_skill(project)


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Lets settings name a server, as the user's own would."""

    def use(model: ModelServer) -> None:
        monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:mock")
        monkeypatch.setenv("TACIT_AGENT_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("TACIT_LEARN_APPROVAL", "auto")
        monkeypatch.setenv("TACIT_AGENT_RETRIES", "0")

    return use


@needs_sandbox
def test_it_fails_is_repaired_and_works(folder: Path, reach) -> None:
    """A skill that names a tool of others and a missing script fails in chat, is repaired by the
    improver, and works the next time; the change names the session, and the user is told."""
    with server(mends(), ("first", fails(folder)), ("second", works(folder))) as model:
        reach(model)
        session, told = chat("check the notes: first")
        assert failed_steps(told) == [True]
        (wanted,) = due(session)
        assert due(session) == (wanted,), "asked twice it is the same job"
        done = do(wanted)
        assert done.outcome == "repaired", model.requests[-1].messages[-1].text
        assert due(session) == (), "it was looked at"
        second, told = chat("check the notes: second")
        assert failed_steps(told) == [False]
        assert due(second) == ()
        asked = next(r for r in model.requests if repairing.IMPROVER(r))
    text = (folder / "SKILL.md").read_text()
    assert repairing.MENDED in text
    assert "Bash" not in text
    assert (folder / "scripts" / "count.sh").read_text() == repairing.COUNT
    gate = Gate([project_place()])
    record = gate.look("check-notes").head.record
    assert (record.actor, record.change, record.evidence) == (
        "improver",
        done.changes[0],
        (session,),
    )
    assert record.reason.startswith("improve check-notes: The script was missing")
    assert any("repaired the skill check-notes" in line for line in notices.tell("chat"))
    said = asked.messages[-1].text
    assert "scripts/check.sh" in said
    assert "- Bash" in said or "Bash, " in said, "the table of other names"
    with opened() as connection:
        (attempt,) = Repairs(connection).of("check-notes", project_place().root)
    assert attempt.outcome == "repaired"
    assert "scripts/count.sh parses" in attempt.note
