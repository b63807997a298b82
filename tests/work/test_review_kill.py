"""A whole review by a real worker over kills: library whole, queue right, done once."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.base import config_file, paths, trust
from tacit.changes.gate import Gate
from tacit.learn import notices
from tacit.learn.ledger import Ledger
from tacit.testing import ModelServer, ToolUse, Turns
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
from tacit.work import jobs
from tacit.work.intake import SessionStored
from tacit.work.reactions import session_stored

from .conftest import Workers, open_jobs

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

DRIVER = Path(__file__).parent / "review_driver.py"
POINTS = [
    "before the conversation",
    "in the conversation",
    "at its end",
    "after the conversation",
    "before the landing",
    "after the landing",
    "before it is recorded",
    "when it is recorded",
]
FULL = os.environ.get("TACIT_TEST_FULL")
ASKED = (
    "Build the package. Read the version from the VERSION file, never invent one: run"
    " `make check`, then `make package`."
)
SKILL = """---
name: package-builds
description: How packages are built here. Use before building one.
---

# Package builds

1. Read the version from the VERSION file, never invent one.
2. Run `make check`, then `make package`.
"""


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A reviewer that keeps one skill, however often it is asked."""
    script = Turns(
        [ToolUse("write_file", {"path": "package-builds/SKILL.md", "content": SKILL}), "Kept it."]
    )
    with ModelServer(script) as server:
        config_file.set_values(
            {
                "agent.model": "openai:mock",
                "agent.base_url": f"{server.url}/v1",
                "agent.retries": 0,
                "learn.approval": "auto",
                "memory.use": False,
            }
        )
        yield server


@pytest.fixture
def session(home: Path, workers: Workers) -> str:
    """A session that is over, long enough to be looked at, in a trusted project."""
    project = home / "work"
    (project / ".git").mkdir()
    trust.add(str(project))
    calls = [ran("make check", f"ok {number}") for number in range(20)]
    trace = made(
        [
            ASKED,
            *calls,
            ran("make package", "built"),
            "Built.",
        ],
        project=str(project),
    )
    store = Store.open()
    store.write(trace)
    store.close()
    session_stored(SessionStored(trace.id, "new", ended=True))
    return trace.id


@pytest.mark.parametrize("points", [[p] for p in POINTS] if FULL else [["in the conversation"]])
def test_a_review_survives_kills_and_learns_once(
    workers: Workers, model: ModelServer, session: str, home: Path, points: list[str]
) -> None:
    """Killed at these points, it ends with one skill, one change, one notice, and nothing left."""
    assert len(open_jobs()) == 1
    for point in points:
        assert workers.run(point, driver=DRIVER) == -signal.SIGKILL, point
        text = home / "work/.agents/skills/package-builds/SKILL.md"
        assert not text.exists() or text.read_text().endswith("`make package`.\n"), "whole or not"
    assert workers.run(driver=DRIVER) == 0
    (entry,) = jobs.listing()
    assert (entry.state, entry.outcome, entry.reason) == (
        "done",
        "created",
        "created package-builds",
    )
    root = str(home / "work/.agents/skills")
    log = list(Gate().open_place(root).history.log("package-builds"))
    assert [version.record.change for version in log] == list(entry.changes)
    assert [notice.skill for notice in notices.pending("chat")] == ["package-builds"]
    store = Store.open()
    assert Ledger(store.connection).outcomes() == {session: "created"}
    store.close()
    assert not open_jobs()
    staging = Path(paths.folders().data) / "staging"
    assert not list(staging.glob("[!.]*"))
    if not FULL:
        assert len(model.requests) == 4, "the conversation was had again, once"
