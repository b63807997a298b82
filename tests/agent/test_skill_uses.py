"""Use and outcome of skills are recorded, by people and by models separately."""

import asyncio
from pathlib import Path

import pytest
from talking import interrupt, say, write_skill

from tacit.agent.skill_uses import uses
from tacit.base import database
from tacit.testing import ModelServer, Stall, ToolUse, reply


@pytest.fixture
def skills(home: Path) -> Path:
    for name in ("deploy", "review"):
        write_skill(home / ".agents" / "skills", name, f"# {name}")
    return home / ".agents" / "skills"


def test_who_when_which_version_and_what_failed(open_session, skills, project) -> None:
    """A slash is the user's, a call the model's; failures after each are counted with the first."""
    bad = ToolUse("read_file", {"path": "nothing"})
    script = [bad, ToolUse("run_skill", {"name": "review"}), bad, "done", "fine"]
    with ModelServer(script) as server:
        session = open_session(server)
        say(session, "/deploy it", "more")
    review, deploy = uses()
    assert (deploy.skill, deploy.by, deploy.calls, deploy.failed) == ("deploy", "user", 3, 2)
    assert (review.skill, review.by, review.calls, review.failed) == ("review", "model", 2, 1)
    assert deploy.error == "there is no nothing"
    assert deploy.digest == session.library.get("deploy").digest
    assert (deploy.ended, review.ended) == ("done", "done")
    assert (deploy.session, deploy.project) == (session.conversation.session, str(project))
    assert [use.skill for use in uses("deploy")] == ["deploy"]


def test_an_interrupted_use_says_so(open_session, skills) -> None:
    """Cancelled in the middle, the use is closed as interrupted."""

    with ModelServer([reply("a b c d e f", fault=Stall(20, after_chunks=4))]) as server:
        interrupt(open_session(server), "/deploy it")
    assert [use.ended for use in uses()] == ["interrupted"]


def test_a_database_that_cannot_be_written_disturbs_nothing(open_session, skills) -> None:
    """With a broken tacit.db the conversation goes on as if nothing were."""
    Path(database.default_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(database.default_path()).write_bytes(b"this is no database, by any means" * 99)
    with ModelServer(["fine"]) as server:
        assert say(open_session(server), "/deploy it")[-1].reason == "done"


def test_the_agent_alone_records_nothing(open_session, skills) -> None:
    """The loop without a session, as agents in the background use it, leaves no use."""
    with ModelServer([ToolUse("run_skill", {"name": "review"}), "done"]) as server:
        session = open_session(server)

        async def run() -> None:
            async for _ in session._loaded().respond("go"):
                pass

        asyncio.run(run())
    assert uses() == []
