"""Runs that came to no end, and which machine does them."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from schedule_factory import scheduled

pytest.importorskip("dbos", reason="the extra 'work' is not installed")

from tacit.base.job import job_id
from tacit.learn import notices
from tacit.work import schedule_runner, schedule_runs
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


class Queue:
    """Keeps what it is sent, or takes nothing."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.sent: list[str] = []

    def send(self, run: str, payload: dict[str, Any]) -> bool:
        self.sent += [run] if self.works else []
        return self.works


def test_a_run_whose_job_is_in_no_queue_is_queued_again() -> None:
    """After a minute without news a run is looked for; a lost one is queued, once a minute."""
    lost = sent("lost-1a2b3c4d", timedelta(minutes=5))
    fresh = sent("fresh-1a2b3c4d", timedelta(seconds=5))
    schedule_runner.end_lost_runs(live(), NOW, Queue(works=False).send)
    queue = Queue()
    for _ in range(2):
        schedule_runner.end_lost_runs(live(), NOW, queue.send)
    assert queue.sent == [lost.id]
    assert {row.id for row in live()} == {lost.id, fresh.id}


def test_a_run_whose_job_is_over_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job ended and said nothing of it; one whose job is not over is left alone."""
    over, going = (sent(f"{name}-1a2b3c4d", timedelta(minutes=5)) for name in ("over", "going"))
    known = {job_id("schedule", over.id): False, job_id("schedule", going.id): True}
    monkeypatch.setattr(schedule_runner.jobs_db, "live_jobs", lambda address: known)
    queue = Queue()
    schedule_runner.end_lost_runs(live(), NOW, queue.send)
    assert ([row.id for row in live()], queue.sent) == ([going.id], [])
    assert "its job ended without a result" in schedule_runs.find_run(over.id).reason
    assert notices.tell("inbox")[0].startswith("over-1a2b3c4d failed")


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
    schedule_runner.end_lost_runs(live(), NOW, Queue().send)
    assert [row.id for row in live()] == [mine.id]
    assert str(os.getpid()) in mine.reason
    assert schedule_runs.find_run(other.id).state == "failed"


def test_a_schedule_is_done_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """On queues that machines share, a run and a curation are in their machine's own queue, under
    an id of their own: another machine may have a schedule of the same name."""
    from tacit.work.engine import queue_for
    from tacit.work.presence import machine, own_ticket

    assert own_ticket("schedule", "a@x").job == job_id("schedule", "a@x")
    monkeypatch.setenv("TACIT_DATABASE_URL", "postgresql://me@nowhere/jobs")
    for kind in ("schedule", "curate"):
        mine = own_ticket(kind, "a@x")
        theirs = msgspec.structs.replace(mine, home="elsewhere")
        assert queue_for(mine) == f"{kind}@{machine()}"
        assert queue_for(theirs) == f"{kind}@elsewhere"
        assert len({mine.job, theirs.job, job_id(kind, "a@x")}) == 3
    assert own_ticket("review", "codex:s").job == job_id("review", "codex:s")


def test_a_renamed_computer_keeps_its_name_for_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a machine by its name is still found after the computer was renamed."""
    from tacit.work import presence

    before = presence.machine()
    monkeypatch.setattr("socket.gethostname", lambda: "other")
    assert presence.machine() == before


def test_schedules_of_others_are_not_fired() -> None:
    """A worker fires what its own user made, and nothing else; what no queue takes waits."""
    made = NOW - timedelta(minutes=2)
    scheduled("* * * * *", made, owner="somebody-else")
    queue = Queue(works=False)
    assert not schedule_runner.fire(NOW, queue.send).begun
    mine = scheduled("* * * * *", made)
    assert not schedule_runner.fire(NOW, queue.send).begun
    assert {(row.schedule, row.state) for row in live()} == {(mine.name, "waiting")}
    queue.works = True
    assert schedule_runner.fire(NOW, queue.send).begun
    assert queue.sent == [row.id for row in live() if row.state == "sent"]
