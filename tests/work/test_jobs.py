"""Jobs as a person sees and steers them, done by a real worker."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.base.errors import NotFound, Refused
from tacit.base.errors import Usage as WrongUse
from tacit.work import job_kinds, jobs, jobs_db
from waiting import until

from .conftest import Workers, ask, open_jobs


@pytest.fixture
def asked(workers: Workers) -> Workers:
    """A worker that has done jobs of every ending, and one that it is in the middle of."""
    (workers.folder / "held.wait").touch()
    (workers.folder / "plain.wait").touch()
    for key, payload in {
        "plain": {},
        "off": {"off": 3600},
        "later": {"off": 3600},
        "fault": {"fault": True},
        "held": {},
    }.items():
        ask("review", key, payload)
    ask("review", "plain")
    for key in ("rare-1", "rare-2"):
        ask("improve", key)
    return workers


def test_every_job_can_be_seen_steered_and_explained(asked: Workers) -> None:
    """What waits, runs, is put off and is over, each with its reason; again, now, no more.

    One of a kind at a time, and of a kind that may begin once an hour, one.
    """
    assert {entry.state for entry in jobs.listing()} == {"waiting"}
    worker = asked.start(IDLE="600")
    until((asked.folder / "plain.waits").exists)
    # What has just ended is on record a moment later.
    until(lambda: [e.key for e in jobs.listing(kind="review") if e.state == "running"] == ["plain"])
    with pytest.raises(Refused, match="running already"):
        jobs.retry("plain")
    jobs.cancel("plain")
    (asked.folder / "held.wait").unlink()
    over = {"put off", "done", "cancelled"}
    until(lambda: {entry.state for entry in jobs.listing(kind="review")} <= over)
    until(lambda: "done" in {entry.state for entry in jobs.listing(kind="improve")})
    assert sorted(e.state for e in jobs.listing(kind="improve")) == ["done", "queued"]
    found = {entry.key: entry for entry in jobs.listing()}
    assert found["plain"].state == "cancelled"
    assert not (asked.folder / f"plain.change-{found['plain'].id}").exists()
    assert (found["off"].state, found["off"].reason) == ("put off", "not today")
    assert (found["fault"].state, found["fault"].reason) == (
        "put off",
        "ValueError: a fault of its own",
    )
    for key, wait in {"off": 3600, "fault": 60, "later": 3600}.items():
        due = found[key].attempts[-1].due
        assert due is not None
        assert 0 < due.timestamp() - time.time() <= wait
    # Now instead of later, again what was cancelled, and never what was put off.
    (asked.folder / "plain.wait").unlink()
    assert jobs.retry("off").state in ("put off", "queued", "running", "done")
    jobs.retry("plain")
    jobs.cancel("fault")
    until(lambda: sum(entry.state == "done" for entry in jobs.listing(kind="review")) == 3)
    worker.kill()
    found = {entry.key: entry for entry in jobs.listing()}
    assert [attempt.outcome for attempt in found["off"].attempts] == ["nothing", "created"]
    assert found["fault"].state == "cancelled"
    with pytest.raises(Refused, match="is over: created"):
        jobs.cancel("off")
    _is_read_as_the_engine_reads_it()
    done = {key.partition("-")[0] for key in asked.changes()}
    assert done == {"fault", "held", "later", "off", "plain", "rare"}
    assert found["off"].changes == (f"c-{found['off'].id}",)
    with pytest.raises(NotFound, match="no job 'nowhere'"):
        jobs.show("nowhere")
    with pytest.raises(WrongUse, match="several jobs"):
        jobs.show("review-")
    assert jobs.show(found["off"].id[:11]).id == found["off"].id


def _is_read_as_the_engine_reads_it() -> None:
    """From the tables or by the engine, the runs are the same; only the first is light."""
    place = jobs_db.address()
    kept = sorted(jobs_db.engine_runs(place), key=lambda run: run.id)
    assert kept == sorted(jobs_db._asked_of_engine(place), key=lambda run: run.id)
    assert {run.status for run in kept} >= {"SUCCESS", "CANCELLED", "DELAYED", "ENQUEUED"}
    code = "import sys; from tacit.work import jobs; jobs.listing(); print('dbos' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert said.stdout.split() == [b"False"]


def test_tables_that_are_not_known_are_left_to_the_engine(monkeypatch, workers: Workers) -> None:
    """A version of the engine with other tables is asked itself."""
    monkeypatch.setattr(jobs_db, "_RUNS", "SELECT absent FROM nowhere")
    monkeypatch.setattr(jobs_db, "_asked_of_engine", lambda place, ids: ["asked"])
    assert jobs_db.engine_runs(jobs_db.address()) == ["asked"]


def test_no_worker_is_needed_to_call_a_waiting_job_off(workers: Workers) -> None:
    """A job that no worker has queued is not on record any more."""
    ask("review", "one")
    assert jobs.cancel("one").state == "cancelled"
    assert not open_jobs()


def test_a_job_that_may_not_spend_is_put_off_until_tomorrow(home: Path) -> None:
    """The reason names the budget; a kind that asks no model may begin all the same."""
    from tacit.base.clock import until_tomorrow
    from tacit.work.engine import Permission, may_begin
    from tacit.work.job_kinds import Ticket

    assert may_begin(Ticket("review", "one")) == Permission()
    assert budget.record_spending("review", "x", Usage(1, 1, cost=99.0, model="m")) == ""
    kept = may_begin(Ticket("review", "one"))
    assert "today" in kept.reason
    assert abs(kept.later - until_tomorrow()) < 5
    assert may_begin(Ticket("curate", "one")) == Permission()


def test_settings_that_cannot_be_read_only_put_a_job_off(home: Path) -> None:
    """A typing error in the configuration loses no job."""
    from tacit.work.engine import may_begin
    from tacit.work.job_kinds import Ticket

    file = home / ".config/tacit/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[learn]\nturns = 'many'\n")
    kept = may_begin(Ticket("review", "one"))
    assert "learn.turns" in kept.reason
    assert kept.later > 0


def test_a_kind_whose_code_is_missing_says_so() -> None:
    """Not an import error out of nowhere, but which kind nobody does."""
    job_kinds.register("odd", "tacit.nowhere:run")
    with pytest.raises(NotFound, match="nothing here does jobs of the kind 'odd'"):
        job_kinds.runner("odd")
