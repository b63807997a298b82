"""`tacit jobs` and `tacit daemon`, as they are typed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inside import answer, error, tacit

from tacit.learn.ledger import DecidedJob, open_ledger
from waiting import until

PROGRAM = str(Path(sys.executable).with_name("tacit"))


def decided(key: str, payload: dict[str, str]) -> None:
    """A review that was decided on, and that no worker has queued."""
    with open_ledger() as ledger:
        ledger.add_jobs([DecidedJob("review", key, payload)])


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_WORKER", "1")


def test_without_jobs_it_says_so() -> None:
    """No engine is needed to see that there is nothing."""
    assert tacit("jobs").stdout == "No jobs yet.\n"
    assert tacit("jobs", "--live").stdout == "No jobs fit.\n"
    assert answer("jobs")["jobs"] == []


def test_what_waits_is_shown_and_called_off() -> None:
    """With its id, what it is about and why it waits; by any word for it that is clear."""
    decided("codex:abc", {"session": "codex:abc"})
    (job,) = answer("jobs", "--kind", "review")["jobs"]
    assert (job["state"], job["key"]) == ("waiting", "codex:abc")
    assert tacit("jobs").stdout.startswith(f"{job['id']}\twaiting\t")
    assert "no worker has taken it up yet" in tacit("jobs", "show", job["id"][:12]).stdout
    assert "is cancelled" in tacit("jobs", "cancel", "codex:abc").stdout
    assert answer("jobs")["jobs"] == []


def test_a_long_session_is_cut_short_in_the_list() -> None:
    """The reason is what the list is read for: 80 columns leave room for it."""
    decided("claude-code:01a1ddf2-64a3-74f1-92ab-0ebd1877ed24", {})
    (_, line) = tacit("jobs", COLUMNS="80").stdout.splitlines()
    assert "  claude-code:01a1ddf2  no worker has" in line


def test_what_is_wrong_is_an_error_with_its_code(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown job, a damaged file, a bad address, a server that is down: each by its number."""
    assert error(3, "jobs", "show", "nothing")["code"] == "not-found"
    file = home / ".local/share/tacit/jobs.db"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database" * 1000)
    damaged = error(6, "jobs")
    assert "tacit doctor --fix" in damaged["hint"]
    done = tacit("doctor", "--fix")
    assert "jobs.db is damaged" in done.stdout
    assert tacit("jobs").returncode == 0
    monkeypatch.setenv("TACIT_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/jobs")
    down = error(9, "jobs")
    assert "cannot be reached" in down["message"]
    assert "secret" not in str(down)
    monkeypatch.setenv("TACIT_DATABASE_URL", "http://somewhere")
    assert error(4, "jobs")["code"] == "bad-config"
    assert error(4, "daemon")["code"] == "bad-config"


def test_a_daemon_stays_works_and_is_stopped(home: Path) -> None:
    """It is known as the worker, a second one is refused, and it ends when it is told to."""
    running = subprocess.Popen([PROGRAM, "daemon"], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert "Working until Ctrl-C" in running.stdout.readline()
        here = until(lambda: answer("daemon", "status")["worker"])
        assert (here["pid"], here["stays"]) == (running.pid, True)
        assert "a daemon runs already" in error(5, "daemon")["message"]
        assert answer("daemon", "stop")["stopped"]["pid"] == running.pid
        assert running.wait(120) == 0
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    assert "No worker runs" in tacit("daemon", "status").stdout
    assert "daemon: ended" in (home / ".local/share/tacit/worker.log").read_text()


def test_the_unit_can_be_seen_before_it_is_written(home: Path) -> None:
    """`--print` writes nothing."""
    shown = tacit("daemon", "install", "--print").stdout
    assert "ExecStart=" in shown or "<plist" in shown
    assert not os.path.exists(home / ".config/systemd")
    assert tacit("daemon", "uninstall").stdout == "Nothing was installed.\n"


def test_why_of_a_name_that_means_nothing(tacit: Any) -> None:
    """Neither a session nor a skill; one near to it is named."""
    told = tacit.error("why", "using-tacitt", code=3)
    assert told["message"] == "there is no session and no skill 'using-tacitt'"
    assert told["hint"] == "did you mean using-tacit?"
