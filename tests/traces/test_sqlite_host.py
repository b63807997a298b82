"""Databases of other programs: read, whatever state their owner has them in."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trace_samples

from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.host import Source
from tacit.traces.sqlite_host import open_foreign

DATABASES = ("opencode", "hermes")


@pytest.fixture(params=DATABASES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    path = tmp_path / "theirs" / "x.db"
    path.parent.mkdir()
    shutil.copyfile(trace_samples.file_of(request.param), path)
    return Source(request.param, str(path), trace_samples.REAL[request.param][2])


def figures(source: Source) -> tuple[int, int, dict[str, int]]:
    trace = read_trace(host_registry.get(source.host), source)
    return len(trace.prompts), len(trace.calls), trace.skipped


def test_a_database_that_its_owner_is_writing(source: Source) -> None:
    """An open write transaction of the owner, in either journal mode, does not disturb reading."""
    for mode in ("DELETE", "WAL"):
        owner = sqlite3.connect(source.path, isolation_level=None)
        owner.execute(f"PRAGMA journal_mode = {mode}")
        owner.execute("BEGIN IMMEDIATE")
        owner.execute("CREATE TABLE new_one (x)")
        assert figures(source) == (2, 4, {})
        owner.execute("ROLLBACK")
        owner.close()


def test_a_database_that_its_owner_holds_locked(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under an exclusive lock a copy is read, and that is counted."""
    monkeypatch.setattr("tacit.traces.sqlite_host.WAIT_SECONDS", 0.05)
    owner = sqlite3.connect(source.path, isolation_level=None)
    owner.execute("PRAGMA journal_mode = DELETE")
    owner.execute("PRAGMA locking_mode = EXCLUSIVE")
    owner.execute("BEGIN EXCLUSIVE")
    assert figures(source) == (2, 4, {"locked": 1})
    owner.execute("ROLLBACK")
    owner.close()


def test_what_stands_only_in_the_log_is_read(source: Source) -> None:
    """Rows that a killed owner left in its write-ahead log are there."""
    program = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode = WAL')\n"
        "c.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "c.execute(sys.argv[2])\n"
        "os._exit(9)\n"
    )
    table = "session" if source.host == "opencode" else "sessions"
    change = f"UPDATE {table} SET title = 'only in the log'"
    subprocess.run([sys.executable, "-c", program, source.path, change], check=False)
    assert os.path.getsize(source.path + "-wal") > 0
    assert read_trace(host_registry.get(source.host), source).head.title == "only in the log"


def test_a_log_on_a_disk_that_cannot_be_written(source: Source, tmp_path: Path) -> None:
    """In WAL mode on a read-only disk, without the files that SQLite would make there."""
    owner = sqlite3.connect(source.path, isolation_level=None)
    owner.execute("PRAGMA journal_mode = WAL")
    owner.close()
    folder = Path(source.path).parent
    unwritable = tmp_path / "ro"
    done = subprocess.run(
        [
            *("unshare", "-rm", sys.executable, "-c", _READ_ONLY),
            *(str(folder), str(unwritable), source.host, source.key),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot mount" in done.stderr or done.returncode == 125 or "unshare" in done.stderr:
        pytest.skip("this machine gives no mount namespace")
    assert done.stdout.split() == ["2", "4"], done.stderr


_READ_ONLY = """
import os, subprocess, sys
folder, target, host, key = sys.argv[1:]
os.mkdir(target)
def mount(*words):
    if subprocess.run(["mount", *words], capture_output=True).returncode:
        sys.exit("cannot mount")
mount("--bind", folder, target)
mount("-o", "remount,ro,bind", target)
from tacit.traces import host_registry as registry
from tacit.traces.host import Source
from tacit.traces.assembler import read_trace
trace = read_trace(registry.get(host), Source(host, os.path.join(target, "x.db"), key))
print(len(trace.prompts), len(trace.calls))
"""


def test_a_session_that_is_gone_from_its_database(source: Source) -> None:
    """A session id that the database does not know gives an empty trace."""
    gone = Source(source.host, source.path, "no-such-session")
    assert figures(gone) == (0, 0, {})
    assert host_registry.get(source.host).stamp(gone) == "" or source.host == "hermes"


def test_a_database_that_is_gone(source: Source) -> None:
    """A file that was deleted is counted as unreadable."""
    os.unlink(source.path)
    assert figures(source) == (0, 0, {"unreadable": 1})
    assert host_registry.get(source.host).stamp(source) == ""


def test_nothing_is_written_to_the_database(source: Source) -> None:
    """A connection to another program's database cannot write."""
    with (
        open_foreign(source.path, lambda _: None) as connection,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        connection.execute("CREATE TABLE mine (x)")


def test_an_older_table_without_a_column_is_read(tmp_path: Path) -> None:
    """Hermes without `compacted`, as earlier versions made it."""
    path = tmp_path / "x.db"
    shutil.copyfile(trace_samples.file_of("hermes"), path)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE messages DROP COLUMN compacted")
    connection.commit()
    connection.close()
    assert figures(Source("hermes", str(path), trace_samples.REAL["hermes"][2])) == (2, 4, {})


def test_a_table_of_a_future_version_is_counted(tmp_path: Path) -> None:
    """A column that was renamed makes the session unreadable, and no more than that."""
    path = tmp_path / "x.db"
    shutil.copyfile(trace_samples.file_of("hermes"), path)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE messages RENAME COLUMN role TO speaker")
    connection.commit()
    connection.close()
    _, _, skipped = figures(Source("hermes", str(path), trace_samples.REAL["hermes"][2]))
    assert skipped == {"unreadable": 1}


def test_compaction_in_hermes(tmp_path: Path) -> None:
    """Rows that a compaction wrote again are left out; what was really said is kept."""
    path = tmp_path / "x.db"
    shutil.copyfile(trace_samples.file_of("hermes"), path)
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT session_id, role, content, tool_call_id, tool_calls, timestamp FROM messages"
        " ORDER BY id"
    ).fetchall()
    connection.execute("UPDATE messages SET active = 0, compacted = 1")
    session = rows[0][0]
    summary = (session, "user", "[CONTEXT COMPACTION — REFERENCE ONLY] x", None, None, 1794725500.0)
    added = [*rows[:3], summary, *rows[-4:]]
    added.append((session, "user", rows[0][2], None, None, 1794725600.0))  # said again, really
    connection.executemany(
        "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        added,
    )
    connection.commit()
    connection.close()
    trace = read_trace(host_registry.get("hermes"), Source("hermes", str(path), session))
    assert trace.prompts == (*trace_samples.PROMPTS, trace_samples.PROMPTS[0])
    assert len(trace.calls) == 4
    assert sum(len(turn.compactions) for turn in trace.turns) == 1
