"""A trial as it runs: pairs, looks, limits, void runs, and going on after a kill."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.agent.sandbox import NoSandbox
from tacit.base.setting_sections import AgentSettings
from tacit.changes.change import File
from tacit.learn.trial.arms import Arms
from tacit.learn.trial.trial import Trial, TrialLimits, TrialPlan, usable_tasks, version_of
from tacit.learn.trial.trial_records import TrialAbout, TrialRecords, open_trials
from tacit.learn.trial.trial_report import benchmark
from tacit.learn.trial.trial_run import Ran
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.learn.trial.verifier import Verifier

SKILL = {
    "SKILL.md": File(b"---\nname: notes\ndescription: d\n---\nx\n"),
    "evals/e": File(b"secret"),
}


def interrupt() -> None:
    raise KeyboardInterrupt


class Scripted:
    """An agent that succeeds with one chance with the skill, and with another without."""

    title = "scripted"

    def __init__(
        self, without: float, with_skill: float, *, reads: float = 1.0, seed: int = 3
    ) -> None:
        self._chances = (without, with_skill)
        self._reads = reads
        self._rng = random.Random(seed)
        self.seen: list[tuple[str, bool, int]] = []
        self.break_after = -1
        self.breaks: Callable[[], None] = interrupt
        self.void: Callable[[bool], bool] = lambda has: False

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        has = (Path(skills) / "notes" / "SKILL.md").exists()
        assert not (Path(skills) / "notes" / "evals").exists()
        if len(self.seen) == self.break_after:
            self.breaks()
        self.seen.append((task.id, has, seed))
        if self.void(has):
            return Ran(void="no answer", cost=0.1)
        read = has and self._rng.random() < self._reads
        if self._rng.random() < self._chances[read]:
            Path(work, "out.txt").write_text("right")
        skill = ("notes",) if read else ()
        return Ran(session="tacit:x", skills=skill, tokens=200 if has else 100, calls=1, cost=0.1)


@pytest.fixture
def records(home: Path) -> Iterator[TrialRecords]:
    with open_trials() as opened:
        yield opened


def tasks(count: int = 2) -> tuple[Task, ...]:
    check = Check(file="out.txt", contains="right")
    return tuple(Task(id=f"notes/{n}", prompt=f"do {n}", checks=(check,)) for n in range(count))


def trial(records: TrialRecords, runner: Scripted, *, version: str = "1", count: int = 2) -> Trial:
    chosen = tasks(count)
    about = TrialAbout(
        skill="notes", digest=version, agent=runner.title, tasks=tuple(t.digest for t in chosen)
    )
    arms = Arms("notes", {"with": SKILL, "without": {}})
    verifier = Verifier(NoSandbox(), AgentSettings())
    return Trial(TrialPlan(about, arms, chosen), records, runner, verifier)


def test_a_skill_that_helps_is_found_and_the_trial_ends(records: TrialRecords) -> None:
    runner = Scripted(0.0, 1.0)
    tried = trial(records, runner)
    runs = list(tried.run(TrialLimits(100)))
    answer = tried.answer()
    assert (answer.finding, tried.stopped) == ("helps", "the answer is clear")
    assert len(runs) == 2 * answer.pairs < 40
    assert (answer.with_skill, answer.without, answer.read) == (1.0, 0.0, answer.pairs)
    assert answer.tokens.mean == pytest.approx(1 / 3)
    assert answer.cost == pytest.approx(0.1 * len(runs))
    assert [row.task for row in answer.tasks] == ["notes/0", "notes/1"]


def test_both_sides_of_a_pair_have_one_seed_and_the_order_is_drawn(records: TrialRecords) -> None:
    runner = Scripted(0.5, 0.5)
    list(trial(records, runner).run(TrialLimits(40)))
    pairs = list(zip(runner.seen[::2], runner.seen[1::2], strict=True))
    assert all(one[0] == other[0] and one[2] == other[2] for one, other in pairs)
    assert {one[1] for one, _ in pairs} == {True, False}
    assert len({seen[2] for seen in runner.seen}) == len(pairs)


def test_it_stops_at_its_limits_and_says_what_would_be_enough(records: TrialRecords) -> None:
    tried = trial(records, Scripted(0.5, 0.5))
    assert len(list(tried.run(TrialLimits(6)))) == 6
    answer = tried.answer()
    assert answer.finding == "unclear"
    assert answer.needed > answer.pairs == 3
    assert "not enough runs to tell" in answer.says()
    more = trial(records, Scripted(0.5, 0.5))
    assert len(list(more.run(TrialLimits(50, money=0.45)))) == 4
    assert "more runs would go beyond the $0.45" in more.stopped


def test_a_check_that_no_run_has_passed_is_doubted(records: TrialRecords) -> None:
    """On either side, after six runs of its task; it may be one that can never pass."""
    tried = trial(records, Scripted(0.0, 0.0), count=1)
    list(tried.run(TrialLimits(4)))
    assert not tried.answer().doubts
    list(tried.run(TrialLimits(2)))
    (why,) = tried.answer().doubts
    assert why.startswith("notes/0: no run of either side passed in 6 runs: out.txt holds")
    helped = trial(records, Scripted(0.0, 1.0), version="2", count=1)
    list(helped.run(TrialLimits(8)))
    assert not helped.answer().doubts


def test_a_comparison_without_consequences_spends_no_chance_of_error(
    records: TrialRecords,
) -> None:
    first = TrialAbout(skill="notes", digest="1", against="version 3f2a91c0")
    assert [records.begin(first).attempt, records.attempt_of(first)] == [1, 1]
    assert records.begin(TrialAbout(skill="notes", digest="1")).attempt == 1
    assert records.begin(TrialAbout(skill="notes", digest="2")).attempt == 2
    assert records.attempt_of(TrialAbout(skill="notes", digest="2", against="sessions")) == 2


def test_a_kill_in_the_middle_loses_no_finished_run(records: TrialRecords) -> None:
    """The same command goes on with the pair that was half done."""
    runner = Scripted(0.0, 0.0)
    runner.break_after = 5
    tried = trial(records, runner)
    with pytest.raises(KeyboardInterrupt):
        list(tried.run(TrialLimits(20)))
    assert len(records.runs(tried.record.id)) == 5
    again = Scripted(0.0, 0.0)
    gone_on = trial(records, again)
    assert gone_on.record.id == tried.record.id
    first = next(gone_on.run(TrialLimits(20)))
    assert (first.task, first.round) == (runner.seen[4][0], 1)
    assert again.seen[0][1] is not runner.seen[4][1]


def test_a_real_kill_loses_no_finished_run(home: Path) -> None:
    """SIGKILL in the middle of the sixth run, of another process."""
    own = os.environ | {"TMPDIR": str(home)}
    done = subprocess.run([sys.executable, __file__], check=False, timeout=120, env=own)
    assert done.returncode == -signal.SIGKILL
    with open_trials() as records:
        gone_on = trial(records, Scripted(0.0, 0.0))
        assert len(records.runs(gone_on.record.id)) == 5
        (last,) = gone_on.run(TrialLimits(1))
        assert (last.round, last.tried) == (1, 1)
        assert len(records.runs(gone_on.record.id)) == 6


def test_a_run_that_fails_for_reasons_of_its_own_counts_on_neither_side(
    records: TrialRecords,
) -> None:
    runner = Scripted(0.0, 1.0)
    runner.void = lambda has: has and len(runner.seen) % 5 == 0
    tried = trial(records, runner)
    list(tried.run(TrialLimits(30)))
    answer = tried.answer()
    assert answer.void["with"] > 0 == answer.void["without"]
    assert answer.with_skill == 1.0


def test_a_trial_ends_where_no_run_comes_to_an_end(records: TrialRecords) -> None:
    runner = Scripted(0.0, 1.0)
    runner.void = lambda has: True
    tried = trial(records, runner)
    assert len(list(tried.run(TrialLimits(100)))) <= 4
    assert "no answer" in tried.stopped
    assert tried.answer().pairs == 0


def test_not_being_read_is_told_apart_from_making_no_difference(records: TrialRecords) -> None:
    tried = trial(records, Scripted(0.0, 1.0, reads=0.3))
    list(tried.run(TrialLimits(60)))
    answer = tried.answer()
    assert 0 < answer.read < answer.pairs
    assert answer.when_read.mean == 1.0
    assert answer.success.mean < 1.0


def test_the_next_candidate_of_a_skill_may_err_less(records: TrialRecords) -> None:
    """Trying version after version until one looks good is what fools people."""
    answers = []
    for version in ("1", "2", "3"):
        tried = trial(records, Scripted(0.0, 1.0), version=version)
        list(tried.run(TrialLimits(20)))
        answers.append(tried.answer())
    assert [answer.attempt for answer in answers] == [1, 2, 3]
    assert answers[0].finding == "helps"
    assert answers[2].finding == "unclear"
    assert answers[0].level < answers[1].level < answers[2].level
    assert trial(records, Scripted(0, 1), version="2").record.attempt == 2


def test_the_trial_itself_hardly_ever_promotes_what_has_no_effect(records: TrialRecords) -> None:
    """Three tasks, a look after each round, candidate after candidate of one skill.

    `bench/trial_rates.py` simulates thousands by the same class.
    """
    found = []
    for number in range(10):
        tried = trial(records, Scripted(0.5, 0.5, seed=number), version=str(number), count=3)
        list(tried.run(TrialLimits(36)))
        found.append(tried.answer().finding)
        assert tried.record.attempt == number + 1
    assert "helps" not in found


def test_the_trial_itself_finds_what_has_an_effect(records: TrialRecords) -> None:
    found = []
    for number in range(5):
        runner = Scripted(0.1, 0.9, seed=number)
        tried = trial(records, runner, version=str(number), count=3)
        list(tried.run(TrialLimits(80)))
        found.append(tried.answer().finding)
    assert found.count("helps") >= 4


def test_a_trial_never_makes_more_runs_than_it_was_given(records: TrialRecords) -> None:
    """A void run is made again only where there is room; else when the trial goes on."""
    runner = Scripted(0.0, 1.0)
    runner.void = lambda has: len(runner.seen) == 2
    tried = trial(records, runner, count=1)
    assert [run.result.state for run in tried.run(TrialLimits(2))] == ["done", "void"]
    assert (tried.answer().pairs, tried.stopped) == (0, "2 runs made, of at most 2")
    (again,) = tried.run(TrialLimits(2))
    assert (again.tried, again.round, again.result.state) == (2, 0, "done")
    assert tried.answer().pairs == 1


def test_a_round_with_a_run_still_to_be_made_is_not_looked_at(records: TrialRecords) -> None:
    runner = Scripted(0.0, 1.0)
    runner.void = lambda has: len(runner.seen) == 4
    tried = trial(records, runner, count=2)
    list(tried.run(TrialLimits(4)))
    answer = tried.answer()
    assert (answer.pairs, answer.verdict.count) == (1, 0)
    list(tried.run(TrialLimits(1)))
    assert tried.answer().verdict.count == 2


def test_the_benchmark_has_skill_creators_form(records: TrialRecords) -> None:
    tried = trial(records, Scripted(0.0, 1.0))
    list(tried.run(TrialLimits(8)))
    found = benchmark(tried.record, records.runs(tried.record.id), tasks())
    assert found["metadata"]["skill_name"] == "notes"
    assert {run["configuration"] for run in found["runs"]} == {"with_skill", "without_skill"}
    assert found["run_summary"]["with_skill"]["pass_rate"]["mean"] == 1.0
    assert found["run_summary"]["delta"]["pass_rate"] == "+1.00"


def test_tasks_from_the_skills_own_sessions_do_not_count_unless_asked_for() -> None:
    own = Task(id="a", prompt="", checks=(Check(answer="x"),), learned_from=("tacit:1",))
    other = Task(id="b", prompt="", checks=(Check(answer="x"),), learned_from=("tacit:2",))
    judged = Task(id="c", prompt="", expectations=("y",))
    every = [own, other, judged]
    kept, left = usable_tasks(every, seen=False, judged=False, sessions=["tacit:1"])
    assert [task.id for task in kept] == ["b"]
    assert len(left) == 2
    kept, left = usable_tasks(every, seen=True, judged=True, sessions=["tacit:1"])
    assert (len(kept), left) == (3, [])


def test_the_tasks_are_no_part_of_the_version() -> None:
    assert version_of(SKILL) == version_of({"SKILL.md": SKILL["SKILL.md"]})
    assert version_of(SKILL) != version_of({"SKILL.md": File(b"y")})


if __name__ == "__main__":  # what `test_a_real_kill_loses_no_finished_run` starts
    killed = Scripted(0.0, 0.0)
    killed.break_after = 5
    killed.breaks = lambda: os.kill(os.getpid(), signal.SIGKILL)
    with open_trials() as opened:
        list(trial(opened, killed).run(TrialLimits(20)))
