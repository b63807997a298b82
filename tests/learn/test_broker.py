"""The kit of background agents: services, refusals that go back, and what is left behind."""

import os
from typing import Any

import pytest

from tacit.agent.budget import Limits
from tacit.agent.tool import Failed, Result
from tacit.base.errors import NotFound
from tacit.base.setting_sections import AgentSettings, CurateSettings, LearnSettings, Settings
from tacit.changes.change import Refusal
from tacit.learn.background import child_process
from tacit.learn.background.broker import (
    ROUNDS,
    Assignment,
    Judged,
    RefusedChange,
    StagedBroker,
    limits_from,
    run_agent,
)
from tacit.learn.background.staging import StagedWork, Staging
from tacit.learn.background.task import RunReport, Task
from tacit.learn.background.toolset import StagedSkills


def refuse(reason: str) -> Judged:
    return Judged(refused=(RefusedChange("notes", Refusal("scan", "rule", reason, "mend it")),))


def test_what_a_service_raises_is_read_by_the_agent() -> None:
    """An error, wrong arguments and an unknown name are told, and end nothing."""

    def find(name: str) -> str:
        if name == "gone":
            raise NotFound("there is no 'gone'", "search for it")
        return f"found {name}"

    services = {"find": find, "run": lambda: Result("no", failed=True)}
    broker = StagedBroker(Staging.open("job-1"), lambda work, text: Judged(), services)
    assert broker.serve("find", {"name": "notes"}).text == "found notes"
    assert broker.serve("run", {}).failed
    for name, arguments, told in (
        ("find", {"name": "gone"}, "there is no 'gone'; search for it"),
        ("find", {"path": "x"}, "find: "),
        ("serve", {}, "nothing here is called 'serve'"),
    ):
        with pytest.raises(Failed, match=told):
            broker.serve(name, arguments)


def test_refusals_go_back_a_few_times_or_until_they_are_left() -> None:
    """Each new refusal is told while rounds remain; the same work twice is taken as an answer."""
    reasons = iter(["one", "two", "three", "four"])
    broker = StagedBroker(Staging.open("job-1"), lambda *_: refuse(next(reasons)), {})
    told = [broker.finished("done") for _ in range(ROUNDS + 1)]
    assert all(text and "mend it" in text for text in told[:ROUNDS])
    assert told[ROUNDS] is None
    stubborn = StagedBroker(Staging.open("job-2"), lambda *_: refuse("one"), {})
    assert stubborn.finished("done") is not None
    assert stubborn.finished("still") is None
    assert [found.refusal.reason for found in stubborn.refused] == ["one"]


def test_a_spoilt_folder_is_refused_whatever_the_judge_says() -> None:
    """A link among the staged files goes back to the agent; what is beside it is judged."""
    staging = Staging.open("job-1")
    staged = StagedSkills(staging.path)
    staged.write("fine", "SKILL.md", b"text")
    os.symlink("/etc/passwd", os.path.join(staged.path, "linked"))
    seen: list[StagedWork] = []
    broker = StagedBroker(staging, lambda work, text: seen.append(work) or Judged(), {})  # type: ignore[func-returns-value]
    told = broker.finished("done")
    assert told is not None
    assert "linked" in told
    assert [edited.name for edited in seen[0].edited] == ["fine"]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_stays_staged(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets its message from what was staged, and the folder is gone at the end."""
    tasks: list[Task] = []

    def run(task: Task, broker: Any, settings: Settings) -> RunReport:
        tasks.append(task)
        if fails:
            raise OSError("no space")
        return RunReport(reason="done", text="ok")

    monkeypatch.setattr(child_process, "run", run)
    assignment = Assignment(
        job="job-1",
        kind="review",
        actor="reviewer",
        instructions="Be good.",
        message=lambda staging: f"staged: {len(staging.copied())}",
        toolset="none:none",
        limits=Limits(turns=3),
    )

    def make(staging: Staging) -> StagedBroker:
        return StagedBroker(staging, lambda work, text: Judged(), {})

    if fails:
        with pytest.raises(OSError, match="no space"):
            run_agent(assignment, Settings(), make)
    else:
        ran, broker = run_agent(assignment, Settings(), make)
        assert (ran.text, broker.finished_once) == ("ok", False)
    (task,) = tasks
    assert (task.message, task.job, task.limits.turns) == ("staged: 0", "job-1", 3)
    assert not os.path.exists(task.staging)


def test_limits_come_from_the_section_and_else_from_reviews() -> None:
    """Curation names no tokens and no money of its own; retries are the agent's for all."""
    settings = Settings(
        agent=AgentSettings(retries=2),
        learn=LearnSettings(tokens=7, money=0.3),
        curate=CurateSettings(turns=5, seconds=9.0),
    )
    assert limits_from(settings.curate, settings) == Limits(5, 9.0, 7, 0.3, 2)
    assert limits_from(settings.learn, settings, turns=4).turns == 4
    assert limits_from(settings.improve, settings).retries == 2
