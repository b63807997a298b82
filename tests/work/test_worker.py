"""From a hook's call to a stored session, with the real programs."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.traces import events
from tacit.traces.store import Store
from tacit.work.worker import sole, work

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
        timeout=20,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.fixture
def claude(home: Path) -> Path:
    """A home in which Claude Code was used."""
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    return home


def test_an_ended_session_is_taken_in(claude: Path) -> None:
    """SessionEnd from the hook, then the worker: the session is in the store, the spool empty."""
    call_hook("claude-code", "SessionEnd", payload(claude, "claude", "SessionEnd"), TACIT_WORKER="")
    subprocess.run([str(BIN / "tacit"), "worker", "--idle", "0"], check=True, timeout=60)
    until = time.monotonic() + 20
    while events.pending() and time.monotonic() < until:
        time.sleep(0.1)  # the worker that the hook started may have it
    assert not events.pending()
    stored = Store.open().sessions()
    assert [(s.head.host, s.calls) for s in stored] == [("claude-code", 4)]


def test_a_turn_waits_for_quiet(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop fires on every turn: the session is taken up only when it has been quiet."""
    monkeypatch.setattr("tacit.hook.start_worker", lambda *a: False)
    call_hook("claude-code", "Stop", payload(claude, "claude", "Stop"), PATH="/nonexistent")
    found = events.pending()
    assert found
    assert events.due(found, found[0].time + 60) == []
    assert len(events.due(found, found[0].time + 121)) == 1


def test_one_worker_at_a_time(home: Path) -> None:
    """While one holds the lock, another goes at once with nothing done."""
    with sole() as first:
        assert first
        with sole(patience=0.1) as second:
            assert not second


def test_a_session_without_a_transcript_is_logged(home: Path) -> None:
    """An event whose transcript cannot be found is done with, and the log says so."""
    data = (
        b'{"session_id": "11111111-2222-3333-4444-555555555555", "hook_event_name": "SessionEnd"}'
    )
    call_hook("claude-code", "SessionEnd", data, TACIT_WORKER="")
    work(idle=0)
    until = time.monotonic() + 20
    log = home / ".local" / "share" / "tacit" / "worker.log"
    while (events.pending() or not log.exists()) and time.monotonic() < until:
        time.sleep(0.1)
    assert "no transcript" in log.read_text()
