"""Uses of skills in our own chat are read from its session file, by people and models apart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from talking import interrupt, say, write_skill

from tacit.base import database
from tacit.learn.use_records import catch_up
from tacit.testing import ModelServer, Stall, ToolUse, reply
from tacit.traces.skill_uses import Use, recently_used, uses_of
from tacit.traces.store import Store


@pytest.fixture
def skills(home: Path) -> Path:
    folder = home / ".agents" / "skills"
    for name in ("deploy", "review", "release-notes"):
        write_skill(folder, name, f"# {name}")
    return folder


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open() as opened:
        yield opened


def uses(store: Store) -> list[Use]:
    """What is counted without any worker."""
    catch_up(store)
    return uses_of(store.connection)


def test_who_when_which_version_and_what_failed(open_session, skills, project, store) -> None:
    """A slash is the user's, a call the model's; failures after each are counted with the first."""
    bad = ToolUse("read_file", {"path": "nothing"})
    script = [bad, ToolUse("run_skill", {"name": "review"}), bad, "done", "fine"]
    with ModelServer(script) as server:
        session = open_session(server)
        say(session, "/deploy it", "more")
    review, deploy = uses(store)
    assert (deploy.skill, deploy.by, deploy.calls, deploy.failed) == ("deploy", "user", 3, 2)
    assert (review.skill, review.by, review.calls, review.failed) == ("review", "model", 1, 1)
    assert deploy.digest == session.library.get("deploy").digest
    assert review.digest == session.library.get("review").digest
    assert deploy.session == f"tacit:{session.conversation.session}"
    assert deploy.project == str(project)
    assert recently_used() == ("review", "deploy")


def test_several_at_once(open_session, skills, store) -> None:
    """Each has its version and who asked for it, also where the model spells it in another way."""
    both = [ToolUse("run_skill", {"name": name}) for name in ("deploy", "Release-Notes")]
    with ModelServer(["fine", reply(*both), "done"]) as server:
        session = open_session(server)
        say(session, "/deploy /review it", "go")
    found = uses(store)
    assert sorted((use.skill, use.by) for use in found) == [
        ("deploy", "model"),
        ("deploy", "user"),
        ("release-notes", "model"),
        ("review", "user"),
    ]
    assert all(use.digest == session.library.get(use.skill).digest for use in found)


def test_a_session_that_goes_on_counts_each_use_once(open_session, skills, store) -> None:
    """Counted while it is open, interrupted, and again later: nothing is there twice."""
    with ModelServer([reply("a b c d e f", fault=Stall(20, after_chunks=4)), "fine"]) as server:
        session = open_session(server)
        interrupt(session, "/deploy it")
        assert [use.skill for use in uses(store)] == ["deploy"]
        say(session, "/review it")
    assert [use.skill for use in uses(store)] == ["review", "deploy"]
    assert len(uses(store)) == 2


def test_a_database_that_cannot_be_read_disturbs_nothing(open_session, skills) -> None:
    """With a broken tacit.db the conversation goes on as if nothing were."""
    Path(database.default_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(database.default_path()).write_bytes(b"this is no database, by any means" * 99)
    with ModelServer(["fine"]) as server:
        assert say(open_session(server), "/deploy it")[-1].reason == "done"
