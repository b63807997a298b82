"""A schedule from the conversation that makes it to the trash, on a clock that a test moves."""

import io
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")
pytest.importorskip("cronsim", reason="the extra 'work' is not installed")

from tacit.base.job import Job, JobResult
from tacit.learn import notices
from tacit.testing import FakeClock, ModelServer, ToolUse
from tacit.testing.script import Request
from tacit.ui.cli.app import run
from tacit.work import schedule_runner, schedule_runs, schedule_store
from tacit.work.job_kinds import Ticket
from tacit.work.worker import ScheduleTicker

EVERY = {
    "when": "every minute",
    "task": "Say that the minute is over.",
    "output": "One short sentence.",
    "name": "minutes",
}
ONCE = EVERY | {"when": "+1m", "task": "Say that the hour of tea has come.", "name": "tea"}
Chat = Callable[[str], str]


def model(request: Request) -> Any:
    """Follows schedule-creator in a chat, and does what a run is told."""
    first = request.messages[0].text
    if "scheduled skill" in first:
        return "The minute is over." if "minutes-" in first else "Tea!"
    results = request.messages[-1].tool_results
    if not results:
        return ToolUse("run_skill", {"name": "schedule-creator"})
    asked = [message.text for message in request.messages if message.role == "user"][-1]
    made = any("made the schedule" in result.text for result in results)
    return "It is set." if made else ToolUse("add_schedule", EVERY if "minute" in asked else ONCE)


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path) -> Any:
    (home / "work" / ".git").mkdir()
    monkeypatch.setenv("TACIT_WORKER", "1")  # nobody starts a real one
    with ModelServer(model, strict=False) as server:
        monkeypatch.setenv("TACIT_AGENT_BASE_URL", server.url + "/v1")
        monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:mock-model")

        def talk(lines: str) -> str:
            monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
            run(["chat", "--plain"])
            return capsys.readouterr().out

        talk.server = server  # type: ignore[attr-defined]
        yield talk
        assert not server.failures


class Queue:
    """What the queues would do, in this process: each job once, over restarts of the worker."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._waiting: list[Ticket] = []

    def put(self, ticket: Ticket) -> bool:
        if ticket.run not in self._known:
            self._known.add(ticket.run)
            self._waiting.append(ticket)
        return True

    def drain(self) -> list[JobResult]:
        waiting, self._waiting = self._waiting, []
        return [schedule_runner.run(Job(t.job, t.kind, t.key, t.payload)) for t in waiting]


def test_from_a_conversation_to_the_trash(chat: Any, home: Path) -> None:
    """Made in a chat, fired once a due time over restarts, delivered once, the one-shot trashed."""
    said = chat("Every minute, say that it is over.\ny\nRemind me of tea in 60 seconds.\ny\n")
    assert "May add_schedule do this?\n  every minute (* * * * *)" in said
    assert "  next: " in said
    tea, minutes = sorted(schedule_store.names(), reverse=True)
    clock = FakeClock(datetime.now(UTC).replace(second=0, microsecond=0))
    queue = Queue()
    ticking = ScheduleTicker(queue.put, clock)
    fired = []
    for step in range(1, 8):
        clock.advance(30)
        if step in (3, 6):
            ticking = ScheduleTicker(queue.put, clock)  # the worker was killed
        ticking.turn()
        if step not in (2, 5):
            fired += queue.drain()
    assert {done.outcome for done in fired} == {"done"}
    rows = schedule_runs.run_history()
    assert len({(row.schedule, row.due) for row in rows}) == len(rows)
    assert {row.state for row in rows if row.why == "due"} <= {"done", "skipped"}
    assert [row.output for row in rows if row.schedule == tea] == ["Tea!"]
    assert sum(row.state == "done" for row in rows if row.schedule == minutes) >= 2
    told = notices.tell("inbox", most=20)
    assert len(told) == sum(row.state == "done" for row in rows)
    assert schedule_store.names() == [minutes]
    assert schedule_store.trash() == [tea]


def test_by_hand_no_schedule_can_be_made(chat: Any) -> None:
    """`/sched-NAME` runs now, says so, and is given neither the creator nor the tools."""
    chat("Every minute, say that it is over.\ny\n")
    (name,) = schedule_store.names()
    said = chat(f"/sched-{name}\n/sched-nothing\n")
    assert "The minute is over." in said
    assert "there is no schedule 'nothing'" in said
    asked = chat.server.requests[-1]
    assert f'runs the existing scheduled skill "{name}" now, by hand' in asked.messages[0].text
    assert "This is not a request for a schedule" in asked.messages[0].text
    assert not [tool.name for tool in asked.tools if "schedule" in tool.name]
    assert "schedule-creator" not in asked.system
    (row,) = schedule_runs.run_history(name)
    assert (row.why, row.state, row.output) == ("hand", "done", "The minute is over.")
    assert run(["schedule", "run", "minutes"]) == 0
    assert [row.state for row in schedule_runs.run_history(name)] == ["done", "done"]
    assert schedule_store.names() == [name]


def test_a_worker_goes_on_after_any_trouble(chat: Any, home: Path) -> None:
    """A schedule that cannot be read is told of once, and the others fire."""
    chat("Every minute, say that it is over.\ny\n")
    (name,) = schedule_store.names()
    broken = Path(schedule_store.read(name).folder).parent / "broken-1a2b3c4d"
    broken.mkdir()
    (broken / "SKILL.md").write_text("---\nname: broken-1a2b3c4d\n---\n\nx\n")
    clock = FakeClock(datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=2))
    queue = Queue()
    ticking = ScheduleTicker(queue.put, clock)
    for _ in range(3):
        clock.advance(timedelta(minutes=1))
        ticking.turn()
        queue.drain()
    assert sum(row.state == "done" for row in schedule_runs.run_history(name)) == 3
    told = [line for line in notices.tell("inbox", most=20) if "broken" in line]
    clock.set(clock.now() - timedelta(days=2))  # somebody sets the clock right
    for _ in range(2):
        clock.advance(timedelta(minutes=1))
        ticking.turn()
        queue.drain()
    assert sum(row.state == "done" for row in schedule_runs.run_history(name)) == 4
    assert [line for line in notices.tell("inbox", most=20) if "the clock was set back" in line]
    lost = "the schedule 'broken-1a2b3c4d' has lost its schedule.json"
    assert told == [f"{lost} · bring it back: tacit rollback broken-1a2b3c4d"]
