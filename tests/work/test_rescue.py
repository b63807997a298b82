"""tacit.db is made again of what there is, and what is lost is said."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.base import database
from tacit.base.doctor import database_trouble
from tacit.base.errors import Busy
from tacit.changes.change import Refusal, make_change
from tacit.changes.inbox import Inbox
from tacit.learn.ledger import DecidedJob, Ledger
from tacit.traces.store import Store, forget_sessions
from tacit.work import backup, rescue
from tacit.work.intake import open_store, sources, take_in
from tacit.work.presence import worker_lock

TRANSCRIPTS = Path(__file__).parent.parent / "fixtures" / "transcripts"


@pytest.fixture
def used(home: Path) -> Path:
    """A database with sessions, a proposal and a decided job; its path."""
    for agent in ("claude", "qwen", "codex"):
        shutil.copytree(TRANSCRIPTS / agent / "home", home, dirs_exist_ok=True)
    from tacit.base.setting_sections import TraceSettings

    with open_store(TraceSettings()) as store:
        take_in(store, sources())
        Ledger(store.connection).add_jobs([DecidedJob("review", "key-1")])
    Inbox().add(make_change("notes", actor="improver"), Refusal("policy", "asks", "why", ""))
    return Path(database.default_path())


def contents() -> dict[str, Any]:
    with Store.open() as store:
        jobs = Ledger(store.connection).open_jobs()
        found = {hit.id for hit in store.search("the")}
        counts = store.counts()
    waiting = [proposal.change.skill for proposal in Inbox().waiting()]
    return {"sessions": counts, "jobs": len(list(jobs)), "inbox": waiting, "found": found}


def truncate_log(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def mend() -> str:
    (finding,) = rescue.check_database()
    said = finding.repair()
    assert rescue.check_database() == []
    return str(said)


def test_all_is_well(used: Path) -> None:
    """Nothing is found in a sound database, nor where none was ever made."""
    assert rescue.check_database() == []
    shutil.rmtree(used.parent)
    assert rescue.check_database() == []


@pytest.mark.parametrize("way", ["garbage", "emptied", "deleted", "cut"])
def test_nothing_can_be_read(way: str, used: Path) -> None:
    """Sessions come from the transcripts, the inbox and the ledger from the last daily backup."""
    before = contents()
    backup.make_daily()
    truncate_log(used)
    for ending in ("-wal", "-shm"):
        Path(f"{used}{ending}").unlink(missing_ok=True)
    if way == "deleted":
        used.unlink()
    else:
        used.write_bytes({"garbage": os.urandom(9000), "emptied": b"", "cut": b"SQLite f"}[way])
    said = mend()
    assert contents() == before
    assert "3 sessions there now" in said
    assert "lost" not in said


def test_without_a_backup(used: Path) -> None:
    """It is said that the inbox is lost."""
    used.unlink()
    assert "what waited in the inbox" in mend()
    assert contents()["inbox"] == []
    assert sum(contents()["sessions"].values()) == 3


def test_a_folder_in_its_place(used: Path) -> None:
    """It is told as damage, put aside with what is in it, and the sessions are read again."""
    used.unlink()
    (used / "x").mkdir(parents=True)
    assert "a folder stands in its place" in database_trouble()
    mend()
    assert sum(contents()["sessions"].values()) == 3
    assert [path.name for path in used.parent.glob("tacit.db.damaged-*/*")] == ["x"]


def test_made_anew_by_whoever_came_next(used: Path) -> None:
    """A database that was deleted, and made anew by the next command, is noticed all the same."""
    used.unlink()
    with Store.open() as store:
        assert store.counts() == {}
    assert "began anew" in database_trouble()
    mend()
    assert sum(contents()["sessions"].values()) == 3


def test_what_can_be_read_of_it(used: Path, home: Path) -> None:
    """What is whole in a damaged file is kept, though the transcripts are gone and there is no
    backup; sessions that are lost are counted."""
    truncate_log(used)
    with sqlite3.connect(used) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'calls'")
        number = page.fetchone()[0]
    connection.close()
    data = bytearray(used.read_bytes())
    data[(number - 1) * 4096 : number * 4096] = b"\xff" * 4096
    used.write_bytes(data)
    for folder in (".claude", ".qwen", ".codex"):
        shutil.rmtree(home / folder, ignore_errors=True)
    said = mend()
    now = contents()
    assert now["inbox"] == ["notes"]
    assert now["jobs"] == 1
    kept = sum(now["sessions"].values())
    assert kept == 3 or f"{3 - kept} session" in said
    assert list(used.parent.glob("tacit.db.damaged-*"))


def test_what_was_forgotten_stays_forgotten(used: Path) -> None:
    """Sessions that the user forgot do not come back with the import."""
    with Store.open() as store:
        gone = store.sessions(limit=1)[0].id
        forget_sessions(store, session=gone)
    backup.make_daily()
    used.unlink()
    mend()
    with Store.open() as store:
        assert gone not in {stored.id for stored in store.sessions()}
        assert sum(store.counts().values()) == 2


def test_not_under_a_running_worker(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker would go on writing into the file that is put aside."""
    monkeypatch.setattr("tacit.work.presence._LOCK_WAIT", 0.0)
    used.unlink()
    (finding,) = rescue.check_database()
    monkeypatch.setattr(rescue, "worker_lock", lambda: worker_lock(wait=0.0))
    with worker_lock(), pytest.raises(Busy, match="worker"):
        finding.repair()


def test_any_file_may_be_damaged(tmp_path: Path) -> None:
    """A sample of what scripts/test-faults does with every kind of file in every way."""
    program = Path(__file__).parent / "corruption_driver.py"
    arguments = [str(tmp_path / "run"), "97", str(TRANSCRIPTS / "claude" / "home")]
    done = subprocess.run(
        [sys.executable, str(program), *arguments], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["wrong"] == []
