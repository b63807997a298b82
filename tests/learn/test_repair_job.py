"""Repair from end to end: a skill fails in chat, is mended, checked, and watched."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

import repairing
from repairing import COUNT, chat, do, due, failed_steps, fails, make_skill, mends, server, works

from tacit.base import database
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn import notices
from tacit.learn.improve.repair_triggers import DueRepair
from tacit.learn.improve.repairs import Repairs
from tacit.learn.improve.verification import find_sandbox
from tacit.testing import ModelServer, ToolUse, Turns, reply

Reach = Callable[..., None]

needs_sandbox = pytest.mark.skipif(find_sandbox() is None, reason="there is no sandbox here")


@pytest.fixture
def folder(project: Path) -> Path:
    return make_skill(project)


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Reach:
    """Lets settings name a server, as the user's own would."""

    def use(model: ModelServer, **more: str) -> None:
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:mock")
        monkeypatch.setenv("TACIT_AGENT_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("TACIT_LEARN_APPROVAL", "auto")
        monkeypatch.setenv("TACIT_AGENT_RETRIES", "0")

    return use


@needs_sandbox
def test_it_fails_is_repaired_and_works(folder: Path, reach: Reach) -> None:
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
    head = gate.state_of("check-notes").head
    record = head.record
    commit = gate.open_place().history.objects.read("commit", head.id)
    assert b"\n\nimprove check-notes\n\n" in commit
    assert (record.actor, record.change, record.evidence) == (
        "improver",
        done.changes[0],
        (session,),
    )
    assert record.reason.startswith("The script was missing")
    assert any("repaired the skill check-notes" in line for line in notices.tell("chat"))
    said = asked.messages[-1].text
    assert "scripts/check.sh" in said
    assert "- Bash" in said or "Bash, " in said, "the table of other names"
    with database.opened() as connection:
        (attempt,) = Repairs(connection).of("check-notes", project_place().root)
    assert attempt.outcome == "repaired"
    assert "scripts/count.sh parses" in attempt.note


BAD = "Run `sh scripts/count.sh` in the skill's folder; it fails for everybody."


def _spoils() -> Turns:
    """An improver whose repair looks right and is not."""
    old = "Use the `Bash` tool to run `scripts/check.sh` on the notes."
    return Turns(
        [
            ToolUse("write_file", {"path": "scripts/count.sh", "content": COUNT}),
            ToolUse("edit_file", {"path": "SKILL.md", "old": old, "new": BAD}),
            "Mended.",
        ]
    )


def _many(folder: Path, command: str) -> Turns:
    """A chat that loads the skill and runs a command three times."""
    calls = [ToolUse("run_command", {"command": command}) for _ in range(3)]
    return Turns([repairing.LOAD, reply(*calls), "So it is."])


@needs_sandbox
def test_a_repair_that_makes_it_worse_is_rolled_back(folder: Path, reach: Reach) -> None:
    """After a few bad uses the skill is what it was, to the byte; the user is told, and
    the same failure does not bring the same repair back."""
    before = (folder / "SKILL.md").read_bytes()
    chats = [
        ("good", _many(folder, "true")),
        ("first", fails(folder)),
        ("bad", _many(folder, "false")),
    ]
    with server(_spoils(), *chats) as model:
        reach(model, TACIT_IMPROVE_COOLDOWN_HOURS="0")
        for _ in range(3):
            chat("good")
        session, _ = chat("first")
        (wanted,) = due(session)
        repaired = do(wanted)
        assert repaired.outcome == "repaired"
        assert BAD in (folder / "SKILL.md").read_text()
        verdicts: list[DueRepair] = []
        while not verdicts:
            session, _ = chat("bad")
            verdicts = [wanted for wanted in due(session) if "probation" in wanted.payload]
        (verdict,) = verdicts
        done = do(verdict)
        assert done.outcome == "rolled back", done.reason
        assert " points (" in done.reason
        assert do(verdict) == done, "done twice is the same as once"
        assert (folder / "SKILL.md").read_bytes() == before
        assert not (folder / "scripts").exists()
        told = notices.tell("chat")
        assert sum("took a change of check-notes back" in line for line in told) == 1
        session, _ = chat("first again")
        assert due(session) == (), "the failure was looked at for this version, which stands again"
    log = list(Gate([project_place()]).open_place().history.log("check-notes"))
    assert [version.record.actor for version in log] == ["improver", "improver", "user"]
    assert log[0].record.undoes == repaired.changes[0]
    with database.opened() as connection:
        (attempt,) = Repairs(connection).of("check-notes", project_place().root)
    assert attempt.outcome == "rolled back"
    assert " points (" in attempt.note
