"""What the worker does about jobs when it cannot do any."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base.settings import JobSettings
from tacit.work import job_queue, jobs_db, work_checks
from tacit.work.job_queue import JobQueue, request
from tacit.work.presence import present, worker_lock


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_WORKER", "1")


def log(home: Path) -> list[str]:
    path = home / ".local/share/tacit/worker.log"
    return path.read_text().splitlines() if path.exists() else []


def test_without_the_extra_requests_wait_and_it_is_said_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, one line that says what to install, and the request is still there."""
    monkeypatch.setitem(sys.modules, "dbos", None)
    request("review", "one", {})
    for _ in range(2):
        made = JobQueue(JobSettings())
        assert not made.turn()
        assert not made.turn()
        assert made.troubled
    (line,) = log(home)
    assert "learning from sessions needs the extra 'work'" in line
    assert "pip install 'tacit[work]'" in line
    assert [asked.key for asked in job_queue.waiting_requests()] == ["one"]
    (finding,) = work_checks.check_requests()
    assert finding.fix == "pip install 'tacit[work]'"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://x/y", "TACIT_DATABASE_URL cannot be used: it begins with 'mysql'"),
        ("postgresql://me:pw@127.0.0.1:1/x", "postgresql://me@127.0.0.1:1/x cannot be reached"),
    ],
)
def test_queues_that_cannot_be_reached_lose_nothing(
    url: str, said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said in the log, once, and by the doctor; the request stays."""
    monkeypatch.setenv("TACIT_DATABASE_URL", url)
    monkeypatch.setattr(job_queue, "_TRY", 0.0)
    request("review", "one", {})
    made = JobQueue(JobSettings())
    assert not made.turn()
    assert not made.turn()
    (line,) = log(home)
    assert said in line
    assert "pw" not in line
    assert said in work_checks.check_jobs()[0].what
    assert job_queue.waiting_requests()


def test_a_damaged_queue_is_put_aside_and_what_was_asked_is_asked_again(home: Path) -> None:
    """The worker says so and goes on without; the doctor mends it, and no request is lost."""
    request("review", "taken", {})
    job_queue.take(job_queue.waiting_requests()[0])
    request("review", "waiting", {})
    place = jobs_db.address()
    Path(place.path).write_bytes(b"SQLite format 3\0" + os.urandom(9000))
    made = JobQueue(JobSettings())
    assert not made.turn()
    assert "tacit doctor --fix" in log(home)[0]
    (finding,) = work_checks.check_jobs()
    assert finding.mend is not None
    finding.mend()
    assert {asked.key for asked in job_queue.waiting_requests()} == {"taken", "waiting"}
    assert not work_checks.check_jobs()
    assert len(list(Path(place.path).parent.glob("jobs.db.damaged-*"))) == 1


def test_the_engine_is_not_imported_for_nothing() -> None:
    """A worker that has no job starts and goes without it."""
    script = "import sys; from tacit.work.worker import work; work(idle=0); \
print([name for name in ('dbos', 'sqlalchemy', 'psycopg') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_it_is_known_which_worker_runs() -> None:
    """While one has the lock, its process is named; then nobody is."""
    assert present() is None
    with worker_lock(permanent=True) as alone:
        assert alone
        here = present()
        assert here is not None
        assert (here.pid, here.permanent) == (os.getpid(), True)
    assert present() is None
