"""Tasks as they are read and written: skill-creator's form, Harbor's and terminal-bench's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.base.errors import NotFound, Usage
from tacit.changes.change import File
from tacit.learn.trial.trial_tasks import EVALS, Check, evals_of, tasks_in, with_evals


def files_with(*evals: dict[str, Any], **more: bytes) -> dict[str, File]:
    data = json.dumps({"skill_name": "notes", "evals": evals}).encode()
    return {EVALS: File(data)} | {path: File(text) for path, text in more.items()}


def test_a_task_of_skill_creators_form_is_read() -> None:
    entry = {
        "id": 1, "prompt": "Count", "expected_output": "3", "files": ["evals/files/a.txt"],
        "expectations": ["It is counted"], "later": True,
    }  # fmt: skip
    found = evals_of(files_with(entry, **{"evals/files/a.txt": b"x"}), "notes")
    (task,) = found.tasks
    assert (task.id, task.prompt, task.owner) == ("notes/1", "Count", "notes")
    assert task.files == {"a.txt": b"x"}
    assert (task.expectations, task.expected, task.by_code) == (("It is counted",), "3", False)


def test_checks_by_code_are_ours() -> None:
    checks = [{"command": "make"}, {"file": "out", "contains": "ok"}, {"answer": "42"}]
    (task,) = evals_of(files_with({"id": 1, "prompt": "Do", "checks": checks}), "notes").tasks
    assert task.checks == (
        Check(command="make"),
        Check(file="out", contains="ok"),
        Check(answer="42"),
    )
    assert task.by_code


def test_a_task_that_cannot_be_run_is_left_and_says_why() -> None:
    missing = {"id": 1, "prompt": "x", "files": ["gone"], "expectations": ["y"]}
    bare = {"id": 2, "prompt": "x"}
    both = {"id": 3, "prompt": "x", "checks": [{"command": "a", "file": "b"}]}
    found = evals_of(files_with(missing, bare, both), "notes")
    assert not found.tasks
    assert [left.id for left in found.left] == ["notes/1", "notes/2", "notes/3"]
    assert "gone" in found.left[0].why


def test_a_broken_file_is_named() -> None:
    with pytest.raises(Usage, match=r"evals\.json of 'notes'"):
        evals_of({EVALS: File(b"{")}, "notes")


def test_a_file_that_a_run_must_not_know_tells_tasks_apart() -> None:
    """The digest of a task changes with its files, so that another task is another trial."""
    entry = {"id": 1, "prompt": "x", "files": ["a"], "expectations": ["y"]}
    one, other = (evals_of(files_with(entry, a=data), "n").tasks[0] for data in (b"1", b"2"))
    assert one.digest != other.digest


def test_what_is_added_keeps_what_was_there() -> None:
    old = b'{"skill_name": "notes", "mine": 1, "evals": [{"id": 4, "prompt": "a", "x": 2}]}'
    data, made = with_evals(old, "notes", [{"prompt": "a"}, {"prompt": "b"}])
    whole = json.loads(data)
    assert made == ["notes/5"]
    assert whole["mine"] == 1
    assert whole["evals"] == [{"id": 4, "prompt": "a", "x": 2}, {"id": 5, "prompt": "b"}]
    with pytest.raises(Usage):
        with_evals(b"[]", "notes", [])


def harbor(folder: Path, name: str, dockerfile: str = "FROM x\nWORKDIR /srv\n") -> Path:
    task = folder / name
    (task / "environment").mkdir(parents=True)
    (task / "tests").mkdir()
    (task / "task.toml").write_text("[agent]\ntimeout_sec = 90.0\n")
    (task / "instruction.md").write_text("Write /srv/out.txt\n")
    (task / "environment" / "Dockerfile").write_text(dockerfile)
    (task / "environment" / "in.txt").write_text("1")
    (task / "tests" / "test.sh").write_text("grep -q 1 /srv/out.txt\n")
    return task


def test_a_folder_of_harbors_is_read(tmp_path: Path) -> None:
    harbor(tmp_path, "one")
    harbor(tmp_path, "two", "FROM x\nRUN apt-get install y\n")
    found = tasks_in(str(tmp_path))
    (task,) = found.tasks
    assert (task.id, task.seconds, task.root, task.script) == ("one", 90.0, "/srv", "test.sh")
    assert task.files == {"in.txt": b"1"}
    assert [left.id for left in found.left] == ["two"]
    assert tasks_in(str(tmp_path / "one")).tasks == (task,)


def test_a_folder_of_terminal_benchs_is_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "task.yaml").write_text("instruction: |\n  Do it\nmax_agent_timeout_sec: 30\n")
    (tmp_path / "run-tests.sh").write_text("pytest $TEST_DIR\n")
    (tmp_path / "tests" / "test_outputs.py").write_text("pass\n")
    (tmp_path / "solution.sh").write_text("cheat\n")
    (tmp_path / "data.txt").write_text("x")
    (task,) = tasks_in(str(tmp_path)).tasks
    assert task.prompt.strip() == "Do it"
    assert set(task.files) == {"data.txt"}
    assert "tests/test_outputs.py" in task.tests


def test_a_folder_without_tasks_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no task is in"):
        tasks_in(str(tmp_path))


@pytest.mark.parametrize("name", ["instruction.md", "task.toml"])
def test_a_task_that_is_a_link_is_not_read(name: str, tmp_path: Path) -> None:
    """What a task says goes to the model: a link in somebody's folder of tasks leads nowhere."""
    secret = tmp_path / "netrc"
    secret.write_text("machine = 'password hunter2'\n")
    place = tmp_path / "tasks" / "one"
    (place / "tests").mkdir(parents=True)
    (place / "tests" / "test.sh").write_text("true\n")
    (place / "task.toml").write_text("[agent]\n")
    (place / "instruction.md").write_text("Do it.\n")
    (place / name).unlink()
    (place / name).symlink_to(secret)
    found = tasks_in(str(tmp_path / "tasks"))
    assert not found.tasks
    assert found.left[0].why.startswith("it cannot be read")
