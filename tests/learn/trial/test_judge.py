"""A judge: told nothing of the sides, asked in both orders, its agreement with itself kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")

from tacit.agent.sandbox import NoSandbox
from tacit.base.setting_sections import AgentSettings, Settings
from tacit.changes.change import File
from tacit.learn.trial.arms import Arms
from tacit.learn.trial.judge import Judge
from tacit.learn.trial.trial import Trial, TrialLimits, TrialPlan
from tacit.learn.trial.trial_records import TrialAbout, open_trials
from tacit.learn.trial.trial_run import Ran, RunResult
from tacit.learn.trial.trial_tasks import Task
from tacit.learn.trial.verifier import Verifier
from tacit.testing import ModelServer, Request

TASK = Task(id="t", prompt="Explain it", expectations=("It is short", "It is right"), expected="x")
SKILL = {"SKILL.md": File(b"---\nname: notes\ndescription: d\n---\nx\n")}


def result(answer: str, made: str = "") -> RunResult:
    return RunResult(state="done", ran=Ran(answer=answer), made=made)


def judged(a: bool, b: bool) -> str:
    return json.dumps({"A": [True, a], "B": [True, b]})


def fair(request: Request) -> str:
    """Finds GOOD good, wherever it stands."""
    text = request.user_texts[-1]
    parts = text.partition("<result-B>")
    return f"Well: {judged('GOOD' in parts[0], 'GOOD' in parts[2])}"


@pytest.fixture
def asked() -> Iterator[Any]:
    servers: list[ModelServer] = []

    def start(script: Any) -> tuple[Judge, ModelServer]:
        server = ModelServer(script, strict=False).__enter__()
        servers.append(server)
        agent = AgentSettings(model="openai:mock", base_url=f"{server.url}/v1", retries=0)
        return Judge(Settings(agent=agent), "openai:mock"), server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def test_each_run_gets_what_it_is_given_in_both_places(asked: Any) -> None:
    judge, server = asked(fair)
    assert judge.compare(TASK, result("GOOD"), result("bad")) == ((1.0, 1.0), (0.0, 0.0))
    assert judge.compare(TASK, result("bad"), result("bad", "GOOD")) == ((0.0, 0.0), (1.0, 1.0))
    first, second = (request.user_texts[-1] for request in server.requests[:2])
    assert first.index("GOOD") < first.index("bad")
    assert second.index("GOOD") > second.index("bad")
    assert "with" not in first.partition("<task>")[0].split()


def test_a_judge_that_prefers_a_place_disagrees_with_itself(asked: Any) -> None:
    """Then both get a half, which is no difference."""
    judge, _ = asked(lambda request: judged(True, False))
    ours, theirs = judge.compare(TASK, result("GOOD"), result("bad"))
    assert ours == theirs[::-1] == (1.0, 0.0)
    assert [RunResult(state="done", ran=Ran(), judged=said).score for said in (ours, theirs)] == [
        0.5,
        0.5,
    ]


def test_words_that_are_no_verdict_count_for_nobody(asked: Any) -> None:
    judge, _ = asked(lambda request: "Both are fine")
    assert judge.compare(TASK, result("GOOD"), result("bad")) == ((0.0, 0.0), (0.0, 0.0))


class Answering:
    """Answers well with the skill."""

    title = "answering"

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        return Ran(answer="GOOD" if (Path(skills) / "notes").exists() else "bad")


def test_a_trial_reports_the_judges_agreement(asked: Any, home: Path) -> None:
    judge, _ = asked(fair)
    about = TrialAbout(skill="notes", digest="1", tasks=(TASK.digest,), judge=judge.name)
    plan = TrialPlan(about, Arms("notes", {"with": SKILL, "without": {}}), (TASK,))
    with open_trials() as records:
        verifier = Verifier(NoSandbox(), AgentSettings())
        tried = Trial(plan, records, Answering(), verifier, judge)
        list(tried.run(TrialLimits(4)))
        answer = tried.answer()
    assert (answer.with_skill, answer.without, answer.agreement) == (1.0, 0.0, 1.0)
