"""Whether a run did its task: commands, files, texts, and scripts with a reward."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from tacit.agent.sandbox import NoSandbox, Sandbox, find_sandbox
from tacit.base.setting_sections import AgentSettings
from tacit.learn.trial import verifier
from tacit.learn.trial.trial import doubts_of
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.learn.trial.verifier import Verifier, placed


@pytest.fixture
def box() -> Sandbox:
    return find_sandbox() if shutil.which("bwrap") else NoSandbox()


def verified(box: Sandbox, work: Path, task: Task, answer: str = "") -> list[bool]:
    return [one.passed for one in Verifier(box, AgentSettings()).verify(task, str(work), answer)]


def test_files_and_texts_are_looked_at_without_a_command(tmp_path: Path, box: Sandbox) -> None:
    (tmp_path / "out.txt").write_text("a right answer")
    (tmp_path / "out").symlink_to("/etc/passwd")
    checks = (
        Check(file="out.txt"), Check(file="out.txt", contains="right"),
        Check(file="out.txt", contains="wrong"), Check(file="gone"), Check(file="out"),
        Check(answer="FORTY"), Check(answer="fifty"),
    )  # fmt: skip
    task = Task(id="t", prompt="", checks=checks)
    found = verified(box, tmp_path, task, "It is forty-two.")
    assert found == [True, True, False, False, False, True, False]


def test_a_command_must_succeed(tmp_path: Path, box: Sandbox) -> None:
    (tmp_path / "out.txt").write_text("x")
    checks = (Check(command="test -f out.txt"), Check(command="exit 3"))
    assert verified(box, tmp_path, Task(id="t", prompt="", checks=checks)) == [True, False]


def test_a_script_finds_its_tests_and_gives_its_reward(tmp_path: Path, box: Sandbox) -> None:
    """The paths that it names are those of a container; here they lead into the run's folders."""
    (tmp_path / "out.txt").write_text("7")
    script = b"if grep -q $(cat /tests/wanted) /app/out.txt; then r=1; else r=0; fi\n"
    script += b"echo $r > /logs/verifier/reward.txt\n"
    for wanted, passed in ((b"7", True), (b"8", False)):
        tests = {"test.sh": script, "wanted": wanted}
        task = Task(id="t", prompt="", tests=tests, script="test.sh", root="/app")
        assert verified(box, tmp_path, task) == [passed]


def test_a_task_is_doubted_whose_own_solution_does_not_pass(box: Sandbox) -> None:
    """Tried in a clean folder of its own, under the paths that its texts speak of."""
    script = b"test -f /app/out.txt && grep right /app/out.txt\n"
    solution = {"solve.sh": b"cp /solution/right.txt /app/out.txt\n", "right.txt": b"right"}
    good = Task(
        id="t", prompt="x", root="/app", tests={"test.sh": script}, script="test.sh",
        solution=solution,
    )  # fmt: skip
    bad = msgspec.structs.replace(good, id="u", solution=solution | {"right.txt": b"wrong"})
    (why,) = doubts_of([good, bad], Verifier(box, AgentSettings()))
    assert why.startswith("u: its own solution does not pass: test.sh is content")
    assert good.digest == msgspec.structs.replace(good, solution={}).digest


def test_without_a_reward_the_exit_code_speaks(tmp_path: Path, box: Sandbox) -> None:
    task = Task(id="t", prompt="", tests={"test.sh": b"exit 1\n"}, script="test.sh", root="/app")
    assert verified(box, tmp_path, task) == [False]


def test_only_whole_paths_are_replaced() -> None:
    places = {"/app": "/w", "/tests": "/t"}
    assert placed("cat /app/a /application x/app '/app' /tests", places) == (
        "cat /w/a /application x/app '/w' /t"
    )


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_reward_that_is_no_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    """A pipe in the place of the reward holds nothing up, and a link is none."""
    other = tmp_path / "other"
    other.write_text("1")
    if kind == "pipe":
        os.mkfifo(tmp_path / "reward.txt")
    else:
        (tmp_path / "reward.txt").symlink_to(other)
    assert verifier._reward(str(tmp_path)) in (None, 0.0)
