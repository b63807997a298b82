"""What the worker does about jobs when it cannot do any."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base.setting_sections import JobSettings
from tacit.learn.ledger import open_ledger
from tacit.work import job_queue, jobs_db, work_checks
from tacit.work.job_kinds import Ticket
from tacit.work.job_queue import JobQueue
from tacit.work.presence import present, worker_lock

from .conftest import ask, open_jobs


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_WORKER", "1")


def log(home: Path) -> list[str]:
    path = home / ".local/share/tacit/worker.log"
    return path.read_text().splitlines() if path.exists() else []


def test_without_the_extra_jobs_wait_and_it_is_said_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, one line that says what to install, and the job still waits."""
    monkeypatch.setitem(sys.modules, "dbos", None)
    ask("review", "one")
    for _ in range(2):
        made = JobQueue(JobSettings())
        assert not made.turn()
        assert not made.turn()
        assert not made.has_waiting()
    (line,) = log(home)
    assert "learning from sessions needs the extra 'work'" in line
    assert "pip install 'tacit[work]'" in line
    assert [job.key for job in job_queue.waiting_jobs()] == ["one"]
    (finding,) = work_checks.check_waiting()
    assert finding.fix.endswith("pip install 'tacit[work]'")


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
    """It is said in the log, once, and by the doctor; the job waits."""
    monkeypatch.setenv("TACIT_DATABASE_URL", url)
    monkeypatch.setattr(job_queue, "_TRY", 0.0)
    ask("review", "one")
    made = JobQueue(JobSettings())
    assert not made.turn()
    assert not made.turn()
    (line,) = log(home)
    assert said in line
    assert "pw" not in line
    assert said in work_checks.check_jobs()[0].what
    assert job_queue.waiting_jobs()


def test_a_damaged_queue_is_put_aside_and_its_jobs_are_queued_again(home: Path) -> None:
    """The worker says so and goes on without; the doctor mends it, and no job is lost."""
    ask("review", "queued")
    with open_ledger() as ledger:
        ledger.mark_queued("review", "queued", "jobs.db")
    ask("review", "waiting")
    address = jobs_db.address()
    Path(address.path).write_bytes(b"SQLite format 3\0" + os.urandom(9000))
    made = JobQueue(JobSettings())
    assert not made.turn()
    assert "tacit doctor --fix" in log(home)[0]
    (finding,) = work_checks.check_jobs()
    assert finding.repair is not None
    finding.repair()
    JobQueue(JobSettings())._settle(address)
    assert {job.key for job in job_queue.waiting_jobs()} == {"queued", "waiting"}
    assert not work_checks.check_jobs()
    assert len(list(Path(address.path).parent.glob("jobs.db.damaged-*"))) == 1


def test_jobs_of_another_database_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What PostgreSQL has is not queued here too, and is seen again when that is set again."""
    ask("review", "one")
    with open_ledger() as ledger:
        ledger.mark_queued("review", "one", "postgresql://me@host/jobs")
    made = JobQueue(JobSettings())
    assert not made.turn()
    assert not made.has_waiting()
    assert [job.queue for job in open_jobs()] == ["postgresql://me@host/jobs"]
    monkeypatch.setenv("TACIT_DATABASE_URL", "postgresql://me:pw@host/jobs?connect_timeout=2")
    assert jobs_db.address().name == open_jobs()[0].queue


def test_a_queue_that_cannot_be_used_takes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has a job on record elsewhere is told so, and asks again; it is logged once."""
    monkeypatch.setenv("TACIT_DATABASE_URL", "mysql://x/y")
    made = JobQueue(JobSettings())
    assert not made.put(Ticket("curate", "2026-11-15"))
    assert not made.put(Ticket("curate", "2026-11-15"))
    assert len(log(home)) == 1


def test_files_of_the_first_version_are_taken_over_once(home: Path) -> None:
    """What was asked for, and what was queued and not over, is on record; the folders are gone."""
    spool = home / ".local/share/tacit/requests"
    (spool / "taken").mkdir(parents=True, mode=0o700)
    (spool / "taken-shared").mkdir(mode=0o700)
    spool.chmod(0o700)
    for place, key in {"": "asked", "taken": "taken", "taken-shared": "shared"}.items():
        text = f'{{"kind":"review","key":"{key}","payload":{{"session":"s"}},"at":1.5,"delay":0.0}}'
        (spool / place / f"{key}.request").write_text(text)
    job_queue.adopt_requests()
    assert {(job.key, job.session, job.queue) for job in open_jobs()} == {
        ("asked", "s", ""),
        ("taken", "s", ""),
        ("shared", "s", ""),
    }
    assert not spool.exists()
    job_queue.adopt_requests()


def test_what_is_no_request_stays(home: Path) -> None:
    """Garbage among the files of the first version stands in nobody's way, and is not lost."""
    spool = home / ".local/share/tacit/requests"
    spool.mkdir(parents=True, mode=0o700)
    for name, data in {"a": b"", "b": b"\xff\xfe", "c": b"[" * 5000, "d": b'{"kind": 3}'}.items():
        (spool / f"{name}.request").write_bytes(data)
    job_queue.adopt_requests()
    assert not open_jobs()
    assert len(list(spool.iterdir())) == 4
    spool.chmod(0o777)  # in a folder that others can write in, nothing is read
    (spool / "e.request").write_text('{"kind":"review","key":"k","payload":{}}')
    job_queue.adopt_requests()
    assert not open_jobs()


def test_the_engine_is_not_imported_for_nothing() -> None:
    """A worker that has no job starts and goes without it."""
    script = "import sys; from tacit.work.worker import work; work(idle=0); \
print([name for name in ('dbos', 'sqlalchemy', 'psycopg') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
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
