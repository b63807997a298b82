"""Runs that came to no end, and which machine does them."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from schedule_factory import scheduled

pytest.importorskip("dbos", reason="the extra 'work' is not installed")

from tacit.learn import notices
from tacit.work import job_queue, schedule_runner, schedule_runs
from tacit.work.schedule_runs import ScheduleRun, run_id

NOW = datetime.now(UTC).replace(microsecond=0)


def live() -> list[ScheduleRun]:
    with schedule_runs.open_runs() as connection:
        return schedule_runs.live_runs(connection)


def sent(name: str, ago: timedelta) -> ScheduleRun:
    """A run that was given to the queues so long ago."""
    at = NOW - ago
    row = ScheduleRun(id=run_id(name, at), schedule=name, due=at, why="due", state="sent")
    with schedule_runs.write_runs() as connection:
        schedule_runs.add_run(connection, row, at)
    return row


def test_a_run_whose_job_is_nowhere_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute without news a run is looked for; one in the spool is left alone."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    lost, waits = (
        sent("lost-1a2b3c4d", timedelta(minutes=5)),
        sent("waits-1a2b3c4d", timedelta(hours=1)),
    )
    fresh = sent("fresh-1a2b3c4d", timedelta(seconds=5))
    job_queue.request("schedule", waits.id, {})
    schedule_runner.settle(live(), NOW)
    assert {row.id for row in live()} == {waits.id, fresh.id}
    assert "its job ended without a result" in schedule_runs.find_run(lost.id).reason
    assert notices.tell("inbox")[0].startswith("lost-1a2b3c4d failed")


def test_a_run_by_hand_ends_with_its_process() -> None:
    """One whose process is gone does not block its schedule; one whose process lives goes on."""
    schedule = scheduled("every day 9:00", NOW)
    mine = schedule_runner.begin_hand(schedule, "s1")
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    other = schedule_runner.begin_hand(schedule, "s2")
    while other.id == mine.id:
        other = schedule_runner.begin_hand(schedule, "s2")
    with schedule_runs.write_runs() as connection:
        schedule_runs.update_run(
            connection, other.id, NOW, reason=f"{schedule_runner.HAND}{int(gone.stdout)}"
        )
    schedule_runner.settle(live(), NOW)
    assert [row.id for row in live()] == [mine.id]
    assert str(os.getpid()) in mine.reason
    assert schedule_runs.find_run(other.id).state == "failed"


def test_a_schedule_is_done_where_it_lies() -> None:
    """On a queue that machines share, another one hands a run back to the schedule's own."""
    from tacit.work.engine import Ticket, may_begin
    from tacit.work.presence import machine

    assert may_begin(Ticket("schedule", "a@x", {}, home="elsewhere")).home == "elsewhere"
    assert may_begin(Ticket("schedule", "a@x", {}, home=machine())).home == ""


def test_schedules_of_others_are_not_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker fires what its own user made, and nothing else."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    made = NOW - timedelta(minutes=2)
    scheduled("* * * * *", made, owner="somebody-else")
    assert not schedule_runner.fire(NOW).begun
    mine = scheduled("* * * * *", made)
    assert schedule_runner.fire(NOW).begun
    assert {row.schedule for row in live()} == {mine.name}
    assert [asked.key for asked in job_queue.waiting_requests()] == [
        row.id for row in live() if row.state == "sent"
    ]
