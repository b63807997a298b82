"""From a hook's call to a stored session, with the real programs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit import hook
from tacit.base import paths
from tacit.base.setting_sections import WorkerSettings
from tacit.traces import hook_events
from tacit.traces.store import Store, Stored
from tacit.work.presence import worker_lock
from tacit.work.worker import work, worker_settings
from waiting import until

FIXTURES = Path(__file__).parent.parent / "fixtures" / "transcripts"
BIN = Path(sys.executable).parent


def payload(home: Path, name: str, event: str) -> bytes:
    """A real payload of this event, with the paths of this home."""
    for line in (FIXTURES / name / "hook_payloads.jsonl").read_text().splitlines():
        row = json.loads(line)
        if event in row["tag"]:
            return json.dumps(row["payload"]).replace("/home/dev", str(home)).encode()
    raise AssertionError(event)


def call_hook(host: str, event: str, data: bytes, **environment: str) -> None:
    """Run the hook program as an agent would."""
    done = subprocess.run(
        [str(BIN / "tacit-hook"), host, event],
        input=data,
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def stored() -> list[Stored]:
    with Store.open() as store:
        return store.sessions()


@pytest.fixture
def claude(home: Path) -> Path:
    """A home in which Claude Code was used."""
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    return home


def test_an_ended_session_is_taken_in(claude: Path) -> None:
    """SessionEnd from the hook, then the worker: the session is in the store, the spool empty."""
    call_hook("claude-code", "SessionEnd", payload(claude, "claude", "SessionEnd"), TACIT_WORKER="")
    subprocess.run([str(BIN / "tacit"), "worker", "--idle", "0"], check=True, timeout=120)
    until(lambda: not hook_events.pending())  # the worker that the hook started may have it
    assert [(s.head.host, s.calls) for s in stored()] == [("claude-code", 4)]


def test_a_turn_waits_for_quiet(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop fires on every turn: the session is taken up only when it has been quiet."""
    monkeypatch.setattr("tacit.hook.start_worker", lambda *a: False)
    call_hook("claude-code", "Stop", payload(claude, "claude", "Stop"), PATH="/nonexistent")
    found = hook_events.pending()
    assert found
    assert hook_events.quiet_sessions(found, found[0].time + 60) == []
    assert len(hook_events.quiet_sessions(found, found[0].time + 121)) == 1


def test_one_worker_at_a_time(home: Path) -> None:
    """While one holds the lock, another goes at once with nothing done."""
    with worker_lock() as first:
        assert first
        with worker_lock(0.1) as second:
            assert not second


def test_a_worker_leaves_a_folder_that_is_no_longer_in_its_place(home: Path) -> None:
    """Moved to another disk, say: whoever works in the new one has a lock of its own there, and
    two would do everything twice."""
    data = Path(paths.folders().data)
    moved: list[Path] = []

    def move(seconds: float) -> None:
        assert not moved, "it goes on working"
        moved.append(data.rename(home / "was"))

    assert work(idle=600, pause=move) == 0
    assert moved
    assert not data.exists() or not (data / "jobs.db").exists()


def test_a_session_without_a_transcript_is_logged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event whose transcript cannot be found stays for another try, and the log says so."""
    data = (
        b'{"session_id": "11111111-2222-3333-4444-555555555555", "hook_event_name": "SessionEnd"}'
    )
    head = hook.head(["claude-code", "SessionEnd"], len(data))
    assert hook.record(paths.folders().data, head, data)
    monkeypatch.setattr("tacit.work.worker._PATIENCE", -1.0)
    monkeypatch.setattr("tacit.work.worker._TROUBLE", 0.0)
    work(idle=0)
    log = home / ".local" / "share" / "tacit" / "worker.log"
    assert "is tried again: no transcript was found" in log.read_text()
    assert len(hook_events.pending()) == 1


def test_the_worker_of_a_hook_is_as_patient_as_set(claude: Path) -> None:
    """One Stop, a short quiet time in the settings, no further command: the session is stored."""
    file = claude / ".config" / "tacit" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[worker]\nquiet = 0.2\nidle = 0.1\n")
    call_hook("claude-code", "Stop", payload(claude, "claude", "Stop"))
    until((claude / ".local/share/tacit/tacit.db").exists)
    until(stored)
    assert [(s.head.host, s.calls) for s in stored()] == [("claude-code", 4)]


def test_broken_settings_stop_no_worker(home: Path) -> None:
    """The defaults count then, and the log says why."""
    file = home / ".config" / "tacit" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[worker]\nquiet = 'long'\n")
    assert worker_settings() == WorkerSettings()
    assert "worker.quiet" in (home / ".local/share/tacit/worker.log").read_text()
