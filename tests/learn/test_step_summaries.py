"""Summaries of cut steps: by the model that a person chose, within the day's budget."""

import os

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import budget, models
from tacit.base.errors import BadConfig
from tacit.base.setting_sections import AgentSettings, LearnSettings, Settings
from tacit.learn.step_summaries import StepSummaries
from tacit.testing import ModelServer, Status
from tacit.testing.sample_sessions import made
from tacit.traces.trajectory import trajectory_of

TRAJECTORY = trajectory_of(made(["Go.", "Done."]))


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LOCAL", ())
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}/bin")


def chosen(server: ModelServer, **learn: float) -> Settings:
    agent = AgentSettings(base_url=f"{server.url}/v1", retries=0)
    return Settings(agent=agent, learn=LearnSettings(model="openai:mock-model", **learn))  # type: ignore[arg-type]


def test_without_a_choice_no_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that lies in the environment is nobody's choice; `none` is one."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with pytest.raises(BadConfig, match="no model was chosen"):
        StepSummaries(Settings())
    with pytest.raises(BadConfig, match="asks no model"):
        StepSummaries(Settings(learn=LearnSettings(model="none")))


def test_a_summary_is_asked_for_and_paid_from_the_budget() -> None:
    """The steps are the question, what it took is on record, and one after the other works."""
    with ModelServer(["It was built.", "It was tested."]) as server:
        summaries = StepSummaries(chosen(server))
        first = summaries(TRAJECTORY, "agent: I build.", 300)
        second = summaries(TRAJECTORY, "agent: I test.", 300)
        asked = server.requests[0]
    assert first == ("It was built.", "openai:mock-model")
    assert second == ("It was tested.", "openai:mock-model")
    assert asked.user_texts == ("agent: I build.",)
    assert "at most 300 tokens" in asked.system
    assert asked.tools == ()
    assert (summaries.made, summaries.faults) == (2, {})
    (spent,) = budget.totals("kind", budget.days_ago(0)).items()
    assert (spent[0], spent[1].requests) == ("export", 2)
    assert budget.held() == budget.Spent()


def test_a_model_that_fails_is_named_and_stops_nothing() -> None:
    with ModelServer([Status(500, message="broken"), "Fine."]) as server:
        summaries = StepSummaries(chosen(server))
        assert summaries(TRAJECTORY, "x", 300) == ("", "")
        assert summaries(TRAJECTORY, "x", 300) == ("Fine.", "openai:mock-model")
    (why,) = summaries.faults
    assert "broken" in why


def test_where_the_budget_is_used_up_nobody_is_asked() -> None:
    """The refusal counts once for each summary that is missing."""
    usage = budget.Usage(100, 10, cost=5.0, model="m")
    budget.record_spending("review", "x", usage)
    with ModelServer("never") as server:
        summaries = StepSummaries(chosen(server, daily_money=1.0))
        assert [summaries(TRAJECTORY, "x", 300) for _ in range(2)] == [("", "")] * 2
        assert server.requests == []
    ((why, number),) = summaries.faults.items()
    assert "a day is used up" in why
    assert number == 2
