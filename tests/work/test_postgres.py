"""Machines that share queues on a real PostgreSQL server."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import msgspec
import pytest

from tacit.work import job_queue, jobs, jobs_db
from waiting import until

from .conftest import Workers, ask, open_jobs
from .postgres import server

Start = Callable[[str], "Popen[bytes]"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture
def start(workers: Workers, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a worker on the machine of this name: a data folder of its own, the same queues."""
    monkeypatch.setenv("TACIT_DATABASE_URL", address)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "one"))
    return lambda name: workers.start(TACIT_HOME=str(tmp_path / name), IDLE="600")


def ask_elsewhere(key: str, session: str) -> None:
    """A job that another machine, which does not run, has asked for."""
    from tacit.work.engine import client, options
    from tacit.work.job_kinds import Ticket

    ticket = Ticket("review", key, {"session": session}, home="elsewhere")
    opened = client(jobs_db.address())
    opened.enqueue(options(ticket), msgspec.json.encode(ticket).decode())
    opened.destroy()


def test_a_killed_machines_job_is_taken_over(start: Start, workers: Workers) -> None:
    """One of two workers is killed in a job: the other does it, and each change is made once.

    One that is about a session of a third machine waits for that one.
    """
    (workers.folder / "long.wait").touch()
    ask("review", "long")
    first = start("one")
    until((workers.folder / "long.waits").exists)
    for number in range(3):
        ask("review", f"s{number}")
    ask_elsewhere("far", "codex:far")
    start("two")
    until(lambda: workers.changes() == ["s0", "s1", "s2"] and not job_queue.waiting_jobs())
    assert workers.lines("long.read") == 1, "nobody takes a job from a worker that lives"
    first.send_signal(signal.SIGKILL)
    (workers.folder / "long.wait").unlink()
    until(lambda: {e.state for e in jobs.listing() if e.key != "far"} == {"done"})
    assert workers.changes() == ["long", "s0", "s1", "s2"]
    found = {entry.key: entry for entry in jobs.listing()}
    assert all(workers.lines(f"{key}.ran") == 1 for key in found if key != "far")
    assert workers.lines("long.read") == 1, "the step that the dead one did is not repeated"
    assert [(a.kills, a.outcome) for a in found["long"].attempts] == [(1, "created")]
    assert found["far"].state == "queued"
    assert found["far"].attempts[0].reason == "its session is on elsewhere"
    start("one")
    until(lambda: not open_jobs())  # each machine closes what it decided on
