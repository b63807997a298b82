"""The tables of uses: those of older databases keep their numbers; the catalogue asks them."""

import sqlite3
from contextlib import closing

from tacit.base import database
from tacit.traces.skill_uses import (
    USE_STEPS,
    open_use_tables,
    recently_used,
    record_view,
    uses_of,
    views_of,
)

# As the chat wrote it itself once, in a layer of its own.
_OWN = """
    CREATE TABLE uses (
      id INTEGER PRIMARY KEY,
      skill TEXT NOT NULL,
      digest TEXT NOT NULL,
      by TEXT NOT NULL CHECK (by IN ('user', 'model')),
      at TEXT NOT NULL,
      session TEXT NOT NULL,
      project TEXT NOT NULL,
      calls INTEGER NOT NULL DEFAULT 0,
      failed INTEGER NOT NULL DEFAULT 0,
      error TEXT NOT NULL DEFAULT '',
      ended TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX uses_of_skill ON uses (skill, at);
    """


def old_database(*, own: bool = True) -> None:
    """A tacit.db as versions before one record of uses left it; two sessions were forgotten."""
    layers = [("usage", USE_STEPS[:1]), *([("agent", (_OWN,))] if own else [])]
    with closing(database.connect(tables=layers)) as connection:
        connection.execute(
            "INSERT INTO host_uses VALUES"
            " ('codex:gone', 0, 'build', 'd1', 'model', '2026-11-02T09:00:00+00:00', '/p', 4, 1)"
        )
        connection.execute("INSERT INTO views VALUES ('build', 'user', '2026-11-02', '', 3)")
        connection.execute("INSERT INTO recorded VALUES ('codex:gone', 1.5)")
        if own:
            connection.executemany(
                "INSERT INTO uses (skill, digest, by, at, session, project, calls, failed, error)"
                " VALUES (?, 'd2', 'user', ?, 'mine', '/p', 2, 2, 'a secret word')",
                [
                    ("deploy", "2026-11-03T09:00:00.5+00:00"),
                    ("deploy", "2026-11-03T09:00:00.7+00:00"),
                    ("build", "2026-11-01T09:00:00+00:00"),
                ],
            )


def test_an_older_database_keeps_its_numbers() -> None:
    """Every use in our chat and in the hosts is there, also of forgotten sessions; no text is."""
    old_database()
    for _ in range(2):
        with open_use_tables() as connection:
            found = [
                (use.skill, use.session, use.by, use.digest, use.calls, use.failed)
                for use in uses_of(connection)
            ]
            assert found == [
                ("deploy", "tacit:mine", "user", "d2", 2, 2),
                ("deploy", "tacit:mine", "user", "d2", 2, 2),
                ("build", "codex:gone", "model", "d1", 4, 1),
                ("build", "tacit:mine", "user", "d2", 2, 2),
            ]
            assert [view.times for view in views_of(connection)] == [3]
            assert "a secret word" not in "".join(connection.iterdump())
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            assert "host_uses" not in tables
    assert recently_used() == ("deploy", "build")


def test_an_older_database_in_which_nobody_chatted() -> None:
    """Where the chat never made its table, the others' uses are kept all the same."""
    old_database(own=False)
    assert recently_used() == ("build",)


def test_the_order_by_recent_use_counts_every_host() -> None:
    """A skill that was used in another agent comes before one that was used here earlier."""
    with open_use_tables() as connection:
        connection.executemany(
            "INSERT INTO uses VALUES (?, 0, ?, '', 'model', ?, '', 0, 0)",
            [
                ("tacit:a", "here", "2026-11-02T09:00:00+00:00"),
                ("claude-code:b", "there", "2026-11-03T09:00:00+00:00"),
                ("tacit:c", "before", "2026-11-01T09:00:00+00:00"),
            ],
        )
    assert recently_used() == ("there", "here", "before")
    assert recently_used(1) == ("there",)


def test_without_a_database_there_is_no_order() -> None:
    """Nothing is made where nothing is kept, and a table that is gone is no error."""
    assert recently_used() == ()
    record_view("build")
    with closing(sqlite3.connect(database.default_path())) as connection:
        connection.execute("DROP TABLE uses")
    assert recently_used() == ()
