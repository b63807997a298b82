"""Jobs over real kills and a full disk, on the engine and the file that users have."""

import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tacit.base import paths
from tacit.base.job import JobResult
from tacit.work import engine, jobs, jobs_db
from tacit.work.job_kinds import Ticket

from .conftest import Workers, ask, open_jobs

POINTS = [
    "at the start",
    "before it is queued",
    "when it is queued",
    "before it is marked",
    "when it is marked",
    "before it may begin",
    "when it may begin",
    "at the beginning",
    "between steps",
    "after the change",
    "before it is over",
    "when it is over",
    "before it is closed",
    "when it is closed",
]
FULL = os.environ.get("TACIT_TEST_FULL")


def check_done(workers: Workers) -> jobs.Entry:
    """The job is done, what it changes was changed, and nothing is left over of it."""
    (entry,) = jobs.listing()
    assert (entry.state, entry.outcome, entry.reason) == ("done", "created", "for s1")
    assert len(entry.attempts) == 1
    assert workers.changes() == ["s1"]
    assert not open_jobs()
    assert jobs_db.backlog(jobs_db.address()) == jobs_db.Backlog()
    return entry


def test_a_job_survives_a_full_disk(workers: Workers) -> None:
    """Without room for what came of it, it is done by the next worker.

    In between it is said where it stands, and a step that was done is not done again.
    """
    ask("review", "s1", {"session": "claude-code:s1"})
    assert workers.run(FULL="after the change") == 0
    (entry,) = jobs.listing()
    assert (entry.state, entry.reason) == ("queued", "its worker is gone; the next one takes it up")
    assert workers.run() == 0
    assert check_done(workers).attempts[0].kills == 1
    assert workers.lines("s1.read") == 1


def test_the_next_job_begins_when_one_is_over(workers: Workers) -> None:
    """The engine is woken by what is queued and by the end of a job: it need not look by itself."""
    for number in range(3):
        ask("review", f"s{number}", {"session": f"claude-code:s{number}"})
    assert workers.run(POLL="36000") == 0
    assert [entry.state for entry in jobs.listing()] == ["done"] * 3
    assert workers.changes() == ["s0", "s1", "s2"]


@pytest.mark.skipif(not FULL, reason="takes a minute: set TACIT_TEST_FULL=1")
@pytest.mark.parametrize("point", POINTS if FULL else POINTS[:1])
@pytest.mark.parametrize("how", ["kill", "full"] if FULL else ["kill"])
def test_a_job_is_done_once_whatever_happens_where(workers: Workers, point: str, how: str) -> None:
    """At each point: killed, or from there on without room on the disk."""
    ask("review", "s1", {"session": "claude-code:s1"})
    if how == "kill":
        assert workers.run(point) == -signal.SIGKILL
    else:
        assert workers.run(FULL=point) == 0
    assert workers.run() == 0
    check_done(workers)


def files(name: str) -> list[Path]:
    """A database in the data folder, with what lies beside it."""
    return sorted(Path(paths.folders().data).glob(f"{name}*"))


def put_back(copies: list[Path], name: str) -> None:
    for path in files(name):
        path.unlink()
    for copy in copies:
        shutil.copy(copy, paths.folders().data)


def test_a_job_has_others_done(workers: Workers) -> None:
    """It queues them by key and learns what came of each; killed in between, it asks again, and
    each is done once. Those that it is done with are gone from the queue."""
    ask("improve", "parent", {"others": ["c1", "c2"]})
    assert workers.run("after others are queued") == -signal.SIGKILL
    assert workers.run() == 0
    assert [workers.lines(f"{key}.ran") for key in ("c1", "c2")] == [1, 1]
    (parent,) = jobs.listing()
    assert (parent.key, parent.outcome, parent.reason) == ("parent", "created", "for c1 for c2")


def test_a_job_that_kills_stopped_is_taken_up_by_whoever_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the jobs that another asks about, those that are left alone after kills are resumed on
    their queue, and have no result yet; of the rest, no more are read than were asked for."""
    tickets = {key: Ticket("analyse", key) for key in ("stopped", "over", "waits")}
    states = dict(
        zip(tickets, ("MAX_RECOVERY_ATTEMPTS_EXCEEDED", "SUCCESS", "PENDING"), strict=True)
    )
    by_run = {ticket.run: key for key, ticket in tickets.items()}
    read: list[str] = []
    resumed: list[tuple[str, str]] = []

    def runs(place: object, ids: list[str]) -> list[jobs_db.EngineRun]:
        read.extend(by_run[run] for run in ids)
        done = JobResult("answered")
        return [
            jobs_db.EngineRun(run, states[by_run[run]], tickets[by_run[run]], done) for run in ids
        ]

    def statuses(place: object, ids: tuple[str, ...]) -> dict[str, str]:
        return {run: states[by_run[run]] for run in ids}

    monkeypatch.setattr(jobs_db, "run_statuses", statuses)
    monkeypatch.setattr(jobs_db, "engine_runs", runs)
    monkeypatch.setattr(
        engine.DBOS, "resume_workflow", lambda run, queue_name: resumed.append((run, queue_name))
    )
    hold = engine._Hold(jobs_db.address(), "distil-1")
    assert hold.results("analyse", tuple(tickets), 10) == {"over": JobResult("answered")}
    assert resumed == [(tickets["stopped"].run, "analyse")]
    assert read == ["stopped", "over"]
    assert len(hold.results("analyse", ("over", "stopped"), 1)) <= 1


def test_a_lost_queue_loses_no_job(workers: Workers) -> None:
    """What was not over is queued and done again, and changes the same thing once; what was over is
    not repeated."""
    ask("review", "s1", {"session": "claude-code:s1"})
    assert workers.run("between steps") == -signal.SIGKILL
    put_back([], "jobs.db")
    assert workers.run() == 0
    check_done(workers)
    put_back([], "jobs.db")
    assert workers.run() == 0
    assert not jobs.listing()
    assert workers.lines("s1.ran") == 1


@pytest.mark.parametrize(("name", "ran"), [("jobs.db", 2), ("tacit.db", 1)])
def test_a_database_that_is_taken_back_changes_nothing_twice(
    workers: Workers, tmp_path: Path, name: str, ran: int
) -> None:
    """An older jobs.db has a job as unfinished: it is done again, to the same change. An older
    tacit.db has it as open: the queue knows that it is over."""
    ask("review", "s1", {"session": "claude-code:s1"})
    assert workers.run("when it is marked") == -signal.SIGKILL
    kept = tmp_path / "kept"
    kept.mkdir()
    copies = [Path(shutil.copy(path, kept)) for path in files(name)]
    assert workers.run() == 0
    check_done(workers)
    put_back(copies, name)
    assert workers.run() == 0
    check_done(workers)
    assert workers.lines("s1.ran") == ran


def test_a_job_that_failed_for_good_is_told_once() -> None:
    """One that is tried again later is no news; the last failure is, however often it is heard."""
    from tacit.base.job import JobResult
    from tacit.learn import notices
    from tacit.work.engine import Ticket, _over

    ticket = Ticket("review", "codex:s1", {"session": "codex:s1"})
    _over(ticket, JobResult("failed", "no answer", later=600.0))
    assert notices.pending("chat") == []
    for _ in range(2):
        _over(ticket, JobResult("failed", "no answer"))
    (told,) = notices.pending("chat")
    assert notices.line(told) == (
        "could not learn from a session (no answer) · see: tacit why codex:s1"
    )


def test_an_old_sqlite_tells_the_time_in_milliseconds(home: Path) -> None:
    """The engine's tables have a time in them whatever version of SQLite Python was built with."""
    import sqlalchemy

    from tacit.work import engine

    with closing(sqlite3.connect(":memory:")) as connection:
        engine._tell_time(connection, None)
        (told,) = connection.execute("SELECT unixepoch('subsec') * 1000").fetchone()
    assert abs(told / 1000 - time.time()) < 60
    assert round(told) == pytest.approx(told, abs=0.01)
    made = sqlalchemy.create_engine("sqlite://")
    with made.connect() as connection:
        assert connection.exec_driver_sql("SELECT unixepoch('subsec')").scalar() is not None
    made.dispose()


@pytest.mark.parametrize("delay", [1e300, float("inf"), float("nan"), -5.0, 30.0])
def test_no_delay_is_longer_than_the_queue_can_count(delay: float) -> None:
    """What a provider asks for may be absurd; a job waits a week at most."""
    asked = engine.options(Ticket("review", "k", {}), delay=delay)
    assert 0 < asked.get("delay_seconds", 1.0) <= 7 * 86_400
