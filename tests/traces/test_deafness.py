"""An agent that is not understood any more: noticed, with its name, since when, what was lost."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trace_samples

from tacit.testing.sample_sessions import made, ran
from tacit.traces import deafness, host_registry
from tacit.traces.deafness import check_deafness, find_deafness
from tacit.traces.host import Source
from tacit.traces.store import Store
from tacit.traces.trace import Trace

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def put(store: Store, number: int, calls: int, version: str = "1.0", **head: Any) -> None:
    """A session that ended so many hours after the first, of that version of Claude Code."""
    trace = made(["go", *[ran(f"make {n}") for n in range(calls)]], session=f"s{number}")
    ended = NOW + timedelta(hours=number)
    facts = {"ended": ended, "started": ended, "version": version, **head}
    store.write(Trace(msgspec.structs.replace(trace.head, **facts), trace.turns))


def test_all_is_well_with_what_is_understood(agents: Path, store: Store) -> None:
    """The real sessions of the eight agents raise no alarm."""
    for host in host_registry.each():
        for source in host.find():
            store.take_in(host, source)
    assert len(store.sessions()) == len(trace_samples.REAL)
    assert find_deafness(store.connection) == []
    assert check_deafness() == []


@pytest.mark.parametrize(
    ("was", "now", "lost"),
    [
        ('"tool_use"', '"tool_invocation"', "tool results without a call"),
        ('"type": "assistant"', '"type": "model"', "records of a kind that this version does not"),
        ('"type":', '"kind":', "records of a kind that this version does not"),
    ],
)
def test_a_renamed_record_is_noticed(
    tmp_path: Path, store: Store, was: str, now: str, lost: str
) -> None:
    """Results without calls, unknown records, and a file of which nothing was understood."""
    file = tmp_path / "s.jsonl"
    rows = map(json.loads, trace_samples.file_of("claude-code").read_text().splitlines())
    file.write_text("".join(json.dumps(row).replace(was, now) + "\n" for row in rows))
    store.take_in(host_registry.get("claude-code"), Source("claude-code", str(file)))
    (deaf,) = find_deafness(store.connection)
    assert (deaf.host, deaf.sessions) == ("claude-code", 1)
    assert deaf.since is not None
    assert lost in deaf.explain()


def test_calls_that_stop_are_noticed(store: Store) -> None:
    """Not at once: a talk has no calls. After an update two such sessions are enough."""
    for number in range(6):
        put(store, number, 4)
    put(store, 6, 0)
    assert find_deafness(store.connection) == []
    put(store, 7, 0)
    put(store, 8, 0)
    assert find_deafness(store.connection) == []
    put(store, 9, 0)
    (deaf,) = find_deafness(store.connection)
    assert (deaf.sessions, deaf.since) == (4, NOW + timedelta(hours=6))
    assert "not one tool call was read" in deaf.explain()
    for number in range(10, 25):
        put(store, number, 3)
    assert find_deafness(store.connection) == []
    put(store, 31, 0, version="2.0")
    put(store, 32, 0, version="2.0")
    (deaf,) = find_deafness(store.connection)
    assert (deaf.version, deaf.sessions) == ("2.0", 2)


def test_a_trifle_is_no_alarm_and_what_is_over_neither(store: Store) -> None:
    """A few unknown records beside much that was understood; a fault that later sessions lack."""
    put(store, 1, 9, skipped={"unknown-record": 3})
    put(store, 2, 9, skipped={"lone-result": 3})
    assert find_deafness(store.connection)
    put(store, 3, 9)
    put(store, 4, 9)
    assert find_deafness(store.connection) == []


@pytest.mark.parametrize(
    ("host", "change", "lost"),
    [
        ("opencode", "ALTER TABLE part RENAME TO piece", "the table part"),
        ("opencode", "ALTER TABLE session RENAME time_updated TO changed", "session.time_updated"),
        ("hermes", "ALTER TABLE messages RENAME tool_calls TO calls", "messages.tool_calls"),
    ],
)
def test_a_changed_database_is_named(
    agents: Path, host: str, change: str, lost: str, store: Store
) -> None:
    """Its sessions are not silently none: the table or the column that is missing is named."""
    path = agents / trace_samples.REAL[host].file
    with sqlite3.connect(path) as database:
        database.execute(change)
    database.close()
    (deaf,) = find_deafness(store.connection)
    assert (deaf.host, lost in deaf.explain()) == (host, True)
    (finding,) = check_deafness()
    assert lost in finding.what


def test_a_locked_database_is_not_deafness(agents: Path) -> None:
    """Its owner writes; what its tables are can be seen all the same."""
    with sqlite3.connect(agents / trace_samples.REAL["opencode"].file) as owner:
        owner.execute("PRAGMA locking_mode = EXCLUSIVE")
        owner.execute("BEGIN EXCLUSIVE")
        assert check_deafness() == []
    owner.close()


def test_a_database_that_is_none_is_named(agents: Path) -> None:
    """Also before there is a store."""
    file = agents / trace_samples.REAL["opencode"].file
    file.write_bytes(file.read_bytes()[:100] + b"\0" * 9000)
    (finding,) = check_deafness()
    assert "is damaged" in finding.what
    file.write_bytes(b"something else")
    (finding,) = check_deafness()
    assert "cannot be read" in finding.what
    assert not deafness.os.path.exists(deafness.database.default_path())
