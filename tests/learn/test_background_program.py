"""A background agent whose model is the user's own program: the parent runs it, limits hold."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import budget
from tacit.agent.budget import Limits
from tacit.agent.tool import Result
from tacit.base.setting_sections import Settings
from tacit.learn.background import child_process
from tacit.learn.background.broker import retry_after
from tacit.learn.background.task import RunReport, Task

Tasks = Callable[..., Task]
Chosen = Callable[..., Settings]
PRINTED = Path(__file__).parents[1] / "fixtures" / "programs" / "claude.out"


class Broker:
    """Says once that it goes on, then lets it end."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def finished(self, text: str) -> str | None:
        self.heard.append(text)
        return "The second part is refused." if len(self.heard) == 1 else None

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        raise AssertionError(name)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a `claude` on the PATH that keeps what it is asked, and then does what it is told."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def put(does: str) -> Path:
        file = tmp_path / "claude"
        file.write_text(
            f"#!{sys.executable} -SE\nimport sys, time\n"
            f"open({str(tmp_path / 'asked')!r}, 'a').write(sys.stdin.read() + chr(0))\n{does}\n"
        )
        file.chmod(0o755)
        return tmp_path / "asked"

    return put


def _spent() -> budget.Spent:
    return budget.since(datetime.now(UTC) - timedelta(hours=1))


def _run(task: Task, settings: Settings, broker: Broker | None = None) -> RunReport:
    return child_process.run(task, broker or Broker(), settings)


def test_the_parent_runs_it_and_the_walls_stand(
    asked: Callable[[str], Path], make_task: Tasks, chosen: Chosen
) -> None:
    """The child holds the conversation and may start nothing and reach no server; what the program
    reports is booked, and a refusal goes back to it with what was said before."""
    kept = asked(f"print(open({str(PRINTED)!r}).read())")
    broker = Broker()
    settings = chosen(agent__model="", learn__model="cli:claude", agent__base_url="")
    report = _run(make_task("no_tools"), settings, broker)
    assert (report.reason, report.error) == ("done", "")
    assert broker.heard == ["The answer is READY-42."] * 2
    first, second = kept.read_text().split("\0")[:2]
    assert first == "Begin."
    assert "READY-42" in second
    assert "The second part is refused." in second
    assert report.turns == 2
    assert _spent().tokens == 240
    assert _spent().money == pytest.approx(0.0012)
    assert _spent().estimated == 0
    if sys.platform == "linux":
        assert report.confinement.group
        assert report.confinement.network


def test_work_that_needs_tools_is_refused_before_it_costs(
    asked: Callable[[str], Path], make_task: Tasks, chosen: Chosen
) -> None:
    """A program calls no tools: nothing is asked of it that could not be done."""
    kept = asked("")
    report = _run(make_task("plain"), chosen(learn__model="cli:claude", agent__model=""))
    assert report.reason == "refused"
    assert "cli:claude answers in words and calls no tools" in report.error
    assert not kept.exists()


def test_one_that_stalls_is_ended_with_the_run_and_its_take_is_estimated(
    asked: Callable[[str], Path], make_task: Tasks, chosen: Chosen
) -> None:
    """The limit holds in mid-answer, the job is put off, what was sent is on the account."""
    kept = asked("time.sleep(3600)")
    for seconds in (6, 24, 96):  # the child needs some of them to come to its question
        limits = Limits(turns=2, seconds=seconds, retries=0)
        report = _run(make_task("no_tools", limits=limits), chosen(learn__model="cli:claude"))
        if kept.exists():
            break
    assert report.reason == "seconds"
    assert retry_after(report)
    assert (_spent().requests, _spent().estimated) == (1, 1)
    assert _spent().money > 0


@pytest.mark.parametrize(
    ("does", "reason", "says", "later"),
    [
        ("sys.exit('Not logged in. Please run /login')", "refused", "is not logged in", False),
        ("sys.exit('usage limit reached')", "error", "is at its limit", True),
        ("print('hello')", "error", "answered with something else", True),
        ("sys.exit('error: unknown option --x')", "refused", "does not take its options", False),
    ],
)
def test_a_fault_says_what_it_was_and_is_tried_once(
    asked: Callable[[str], Path],
    make_task: Tasks,
    chosen: Chosen,
    does: str,
    reason: str,
    says: str,
    later: bool,
) -> None:
    """One line with the reason; put off where it may pass, and nothing is asked a second time."""
    kept = asked(does)
    report = _run(make_task("no_tools"), chosen(learn__model="cli:claude", agent__model=""))
    assert report.reason == reason
    assert f"claude {says}" in report.error
    assert "\n" not in report.error
    assert bool(retry_after(report)) == later
    assert kept.read_text().count("\0") == 1
