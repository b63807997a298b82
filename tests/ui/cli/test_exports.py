"""`tacit export`, as a person and a script use it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from inside import answer, error, tacit

from tacit.base import config_file
from tacit.testing.sample_sessions import made, ran, used
from tacit.traces.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "transcripts"


@pytest.fixture
def sessions(home: Path) -> Path:
    """Two sessions of Claude Code's, one with a skill, and a real one of Codex's."""
    shutil.copytree(FIXTURES / "codex" / "home", home, dirs_exist_ok=True)
    assert tacit("import", "codex").returncode == 0
    with Store.open() as store:
        store.write(made(["Test.", ran("pytest", "ok"), "Good."], session="good-1"))
        failed = ran("pytest", "1 failed in 0.1s", failed=True)
        store.write(made(["Test.", used("release"), failed], session="bad-1"))
    return home


def rows(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_rows_are_printed_and_the_report_is_told_beside(sessions: Path) -> None:
    """Rows on the output, words for a person on the other stream."""
    done = tacit("export", "--form", "openai")
    assert done.returncode == 0, done.stderr
    assert len(rows(done.stdout)) == 3
    assert "Wrote 3 sessions in 3 rows" in done.stderr
    assert "home folder" in done.stderr
    assert "/home/dev" not in done.stdout


def test_a_file_its_report_and_what_is_said_of_them(sessions: Path) -> None:
    done = tacit("export", "good-1", "--form", "atif", "-o", "x.jsonl")
    assert done.returncode == 0, done.stderr
    assert "Wrote 1 session in 1 row" in done.stdout
    assert "x.jsonl.report.json" in done.stdout
    assert rows(Path("x.jsonl").read_text())[0]["trajectory_id"] == "claude-code:good-1"


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (("--only", "succeeded"), ["good-1"]),
        (("--outcome", "failed", "--host", "claude-code"), ["bad-1"]),
        (("--skill", "release"), ["bad-1"]),
        (("--host", "claude-code"), ["bad-1", "good-1"]),
        (("--since", "2026-11-10", "--host", "codex"), ["01a1ddf2-64a3-74f1-92ab-0ebd1877ed24"]),
    ],
)
def test_choosing(sessions: Path, wish: tuple[str, ...], names: list[str]) -> None:
    report = answer("export", *wish, "--form", "tinker", "-o", "x.jsonl")
    found = [row["session_id"] for row in rows(Path("x.jsonl").read_text())]
    assert found == names
    assert report["sessions"] == len(names)
    assert report["failed"] == report["left_out"] == []


def test_what_does_not_go_together(sessions: Path) -> None:
    """Each error names the thing and what to do."""
    codes = {
        (2, "give one of them"): ("--only", "failed", "--outcome", "failed", "-o", "x"),
        (2, "add -o FILE"): ("good-1",),
        (2, "do one or the other"): ("good-1", "--host", "pi", "-o", "x"),
        (3, "see what there is: tacit sessions"): ("--skill", "none", "-o", "x"),
    }
    for (code, hint), wish in codes.items():
        found = error(code, "export", "--form", "atif", *wish)
        assert found["hint"] == hint
    assert "Choose from: atif, openai" in error(2, "export")["message"]
    found = error(2, "export", "--form", "sts", "-o", "x.jsonl")
    assert found["hint"] == "give a folder: -o x.jsonl/"
    assert not Path("x").exists()


def test_a_folder(sessions: Path) -> None:
    done = tacit("export", "--form", "sts", "-o", "out/")
    assert done.returncode == 0, done.stderr
    assert len(list(Path("out").iterdir())) == 3
    assert Path("out.report.json").exists()


def test_cutting_without_a_model_says_so(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is asked that nobody chose, and the person is told that none was."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with Store.open() as store:
        long = [[f"n {n}", ran("x", "y" * 400), "ok"] for n in range(9)]
        store.write(made(["Go.", "I go.", ran("make", "ok")], *long, session="long-1"))
    done = tacit("export", "long-1", "--form", "tinker", "--tokens", "600", "-o", "x.jsonl")
    assert done.returncode == 0, done.stderr
    assert "cut steps are not summed up: no model was chosen" in done.stderr
    assert "compressed  1 session, by" in done.stdout
    (row,) = rows(Path("x.jsonl.labels.jsonl").read_text())
    assert row["stands_for"][0]["by"] == "no model"
    config_file.set_values({"learn.model": "none"})
    done = tacit("export", "long-1", "--form", "tinker", "--tokens", "600", "--no-model")
    assert "summed up" not in done.stderr
