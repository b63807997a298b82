"""A judge: told nothing of the sides, asked in both orders, its agreement with itself kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")

from tacit.agent.sandbox import NoSandbox
from tacit.base.errors import Busy
from tacit.base.setting_sections import AgentSettings, Settings
from tacit.changes.change import File
from tacit.learn.trial.arms import Arms
from tacit.learn.trial.judge import Judge, Judgement
from tacit.learn.trial.trial import Trial, TrialLimits, TrialPlan
from tacit.learn.trial.trial_records import TrialAbout, TrialRecords, open_trials
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

    def start(script: Any, model: str = "openai:mock") -> tuple[Judge, ModelServer]:
        server = ModelServer(script, strict=False).__enter__()
        servers.append(server)
        agent = AgentSettings(model=model, base_url=f"{server.url}/v1", retries=0)
        return Judge(Settings(agent=agent), model), server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def test_each_run_gets_what_it_is_given_in_both_places(asked: Any) -> None:
    judge, server = asked(fair)
    assert judge.compare(TASK, result("GOOD"), result("bad")).given == ((1.0, 1.0), (0.0, 0.0))
    turned = judge.compare(TASK, result("bad"), result("bad", "GOOD"))
    assert turned.given == ((0.0, 0.0), (1.0, 1.0))
    first, second = (request.user_texts[-1] for request in server.requests[:2])
    assert first.index("GOOD") < first.index("bad")
    assert second.index("GOOD") > second.index("bad")
    assert "with" not in first.partition("<task>")[0].split()


def test_a_judge_that_prefers_a_place_disagrees_with_itself(asked: Any) -> None:
    """Then both get a half, which is no difference."""
    judge, _ = asked(lambda request: judged(True, False))
    ours, theirs = judge.compare(TASK, result("GOOD"), result("bad")).given
    assert ours == theirs[::-1] == (1.0, 0.0)
    assert [RunResult(state="done", ran=Ran(), judged=said).score for said in (ours, theirs)] == [
        0.5,
        0.5,
    ]


def test_words_that_are_no_verdict_are_no_agreement_either(asked: Any) -> None:
    """It is asked again, and in the end another judge is needed."""
    judge, server = asked(lambda request: "Both are fine")
    with pytest.raises(Busy, match="no verdict that can be read"):
        judge.compare(TASK, result("GOOD"), result("bad"))
    assert len(server.requests) == 3
    words = iter(["What?", judged(True, False), judged(False, True)])
    judge, _ = asked(lambda request: next(words))
    given = judge.compare(TASK, result("GOOD"), result("bad")).given
    assert given == ((1.0, 1.0), (0.0, 0.0))


class Answering:
    """Answers well with the skill."""

    title = "answering"

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        return Ran(answer="GOOD" if (Path(skills) / "notes").exists() else "bad", cost=1.0)


def tried_by(judge: Judge, records: TrialRecords) -> Trial:
    about = TrialAbout(skill="notes", digest="1", tasks=(TASK.digest,), judge=judge.name)
    plan = TrialPlan(about, Arms("notes", {"with": SKILL, "without": {}}), (TASK,))
    return Trial(plan, records, Answering(), Verifier(NoSandbox(), AgentSettings()), judge)


def test_a_trial_reports_the_judges_agreement_and_its_cost(asked: Any, home: Path) -> None:
    judge, server = asked(fair, model="openai:gpt-4o")
    with open_trials() as records:
        tried = tried_by(judge, records)
        list(tried.run(TrialLimits(4)))
        answer = tried.answer()
    assert (answer.with_skill, answer.without, answer.agreement) == (1.0, 0.0, 1.0)
    assert len(server.requests) == 4
    assert answer.judge_cost
    assert answer.cost == pytest.approx(4.0 + answer.judge_cost)


def test_a_judges_cost_counts_against_the_limit(
    asked: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, _ = asked(fair)
    given = ((1.0, 1.0), (0.0, 0.0))
    monkeypatch.setattr(judge, "compare", lambda *_: Judgement(given, 5.0))
    with open_trials() as records:
        tried = tried_by(judge, records)
        assert len(list(tried.run(TrialLimits(50, money=8.0)))) == 2
        assert "beyond the $8.00" in tried.stopped
        assert tried.answer().cost == 7.0


def test_a_pair_without_the_judges_word_counts_for_nobody(asked: Any, home: Path) -> None:
    """A judge that gives no verdict stops the trial; the runs are kept, and judged later."""
    silent, _ = asked(lambda request: "?")
    fair_one, _ = asked(fair)
    with open_trials() as records:
        tried = tried_by(silent, records)
        with pytest.raises(Busy):
            list(tried.run(TrialLimits(2)))
        assert tried.answer().pairs == 0
        assert list(tried_by(fair_one, records).run(TrialLimits(1))) == []
        assert tried.answer().pairs == 1
