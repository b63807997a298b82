"""Where the queues are, and what is said when they cannot be used."""

import os
import sqlite3
import time
from contextlib import closing

import pytest

from tacit.base import database
from tacit.base.errors import BadConfig, Damaged
from tacit.work import jobs_db
from tacit.work.jobs_db import Address, Unreachable


def test_without_an_address_it_is_a_file_in_the_data_folder() -> None:
    """jobs.db, and asking what is ahead of an absent one makes nothing."""
    place = jobs_db.address()
    assert place.path.endswith("/tacit/jobs.db")
    assert not place.shared
    assert jobs_db.backlog(place) == jobs_db.Backlog()
    assert jobs_db.run_statuses(place) == {}
    assert not os.path.exists(place.path)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://somewhere/db", "begins with 'mysql'"),
        ("somewhere", "begins with 'somewhere'"),
        ("postgresql://host", "names no database"),
        ("postgresql://host:port/db", "[Pp]ort"),
    ],
)
def test_a_bad_address_is_said(url: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what is wrong with it and how one looks, with the code for configuration."""
    monkeypatch.setenv("TACIT_DATABASE_URL", url)
    with pytest.raises(BadConfig, match=why) as caught:
        jobs_db.address()
    assert "postgresql://USER" in caught.value.hint


def test_a_server_that_is_down_is_said_without_the_password() -> None:
    """What cannot be reached, and what to do; the password stays out of every message."""
    place = Address("postgresql://me:s3cret@127.0.0.1:1/jobs?connect_timeout=2")
    with pytest.raises(Unreachable) as caught:
        jobs_db.backlog(place)
    assert "postgresql://me@127.0.0.1:1/jobs cannot be reached" in caught.value.message
    assert "unset TACIT_DATABASE_URL" in caught.value.hint
    assert "s3cret" not in caught.value.message + caught.value.hint + place.shown


@pytest.mark.parametrize("content", [b"not a database at all" * 400, b"SQLite format 3\0" * 300])
def test_a_damaged_file_is_said(content: bytes) -> None:
    """The error names the file and the command that mends it."""
    place = jobs_db.address()
    os.makedirs(os.path.dirname(place.path))
    with open(place.path, "wb") as file:
        file.write(content)
    with pytest.raises(Damaged, match=r"jobs\.db") as caught:
        jobs_db.backlog(place)
    assert "tacit doctor --fix" in caught.value.hint


def test_a_place_that_is_a_folder_is_said() -> None:
    """Not a traceback, but what cannot be opened."""
    place = jobs_db.address()
    os.makedirs(place.path)
    with pytest.raises(Damaged, match=r"jobs\.db"):
        jobs_db.check(place)


def test_what_is_ahead_is_counted_by_who_can_do_it() -> None:
    """Running and due ones are ready; of the others the first date counts; others' are not ours."""
    place = jobs_db.address()
    soon = int((time.time() + 500) * 1000)
    connection = database.connect(place.path)
    connection.execute(
        "CREATE TABLE workflow_status (workflow_uuid TEXT, status TEXT, queue_name TEXT,"
        " executor_id TEXT, delay_until_epoch_ms INTEGER)"
    )
    rows = [
        ("a", "PENDING", "review", "me", None),
        ("b", "PENDING", "review", "other", None),
        ("c", "ENQUEUED", "review", None, None),
        ("d", "ENQUEUED", "review@other", None, None),
        ("e", "DELAYED", "review", None, 5),
        ("f", "DELAYED", "review", None, soon + 9000),
        ("g", "DELAYED", "review", None, soon),
        ("h", "SUCCESS", "review", "me", None),
    ]
    connection.executemany("INSERT INTO workflow_status VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    assert jobs_db.backlog(place) == jobs_db.Backlog(5, 2, soon / 1000)
    assert jobs_db.backlog(place, ["review"], "me") == jobs_db.Backlog(3, 2, soon / 1000)
    assert jobs_db.run_statuses(place, ["a", "h"]) == {"a": "PENDING", "h": "SUCCESS"}


def test_kills_are_forgiven_to_one_that_has_got_somewhere() -> None:
    """They are counted from then on; those of others stay."""
    place = jobs_db.address()
    with closing(database.connect(place.path)) as connection:
        connection.execute("CREATE TABLE workflow_status (workflow_uuid, recovery_attempts)")
        connection.execute("INSERT INTO workflow_status VALUES ('a', 4), ('b', 4), ('c', 0)")
        jobs_db.forgive_kills(place, "a")
        jobs_db.forgive_kills(place, "c")
        found = connection.execute("SELECT recovery_attempts FROM workflow_status").fetchall()
    assert [row[0] for row in found] == [1, 4, 0]


def test_looking_waits_for_no_writer() -> None:
    """While the engine writes, the worker can still look at what is ahead."""
    place = jobs_db.address()
    writer = database.connect(place.path)
    writer.execute("CREATE TABLE workflow_status (workflow_uuid, status, queue_name,"
                   " executor_id, delay_until_epoch_ms)")  # fmt: skip
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO workflow_status VALUES ('a', 'ENQUEUED', 'review', NULL, NULL)")
    assert jobs_db.backlog(place) == jobs_db.Backlog()
    writer.execute("COMMIT")
    assert jobs_db.backlog(place).ready == 1
    assert isinstance(writer, sqlite3.Connection)
    writer.close()


_COLUMNS = {
    "workflow_status": "workflow_uuid status queue_name executor_id delay_until_epoch_ms name"
    " recovery_attempts created_at updated_at started_at_epoch_ms completed_at serialization"
    " inputs output error",
    "workflow_input": "workflow_uuid inputs",
    "workflow_output": "workflow_uuid output error",
}


def test_the_installed_dbos_is_as_it_is_known_here() -> None:
    """What is read and called of its inside is there; what is not is named."""
    dbos = pytest.importorskip("dbos", reason="the extra 'work' is not installed")
    from inspect import getsource

    lacking = [] if hasattr(dbos.DBOS, "_recover_pending_workflows") else ["its private recovery"]
    queue_thread = getsource(__import__("dbos._queue", fromlist=["_queue"]))
    waited = ("stop_event.wait(timeout", "queue-worker-{", "_active_workflows_set.count_for_queue")
    lacking += [f"'{part}'" for part in waited if part not in queue_thread]
    lacking += [] if jobs_db.POLL_FAILED in queue_thread else [f"'{jobs_db.POLL_FAILED}'"]
    known = {state.value for state in dbos.WorkflowStatusString}
    lacking += sorted(set(jobs_db.STATES) - known)
    jobs_db.make_jobs_db(jobs_db.address())
    with jobs_db.opened(jobs_db.address()) as connection:
        for table, columns in _COLUMNS.items():
            there = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
            lacking += [f"{table}.{name}" for name in columns.split() if name not in there]
    assert not lacking, f"look at jobs_db: this DBOS has no {', '.join(lacking)}"
