"""Uses of skills in every agent, our own among them: who loaded which version, and how it went.

Owns the tables `uses`, `views` and `recorded` in tacit.db, which are derived from the stored
sessions. No text of a session is kept in them: one that is forgotten leaves numbers only. Finding
the uses in a session is left to `learn/use_records.py`.
"""

import os
import sqlite3
from collections.abc import Collection, Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.errors import Damaged, TacitError

By = Literal["user", "model"]

USE_STEPS = (
    """
    CREATE TABLE host_uses (
      session TEXT NOT NULL,
      turn INTEGER NOT NULL,
      skill TEXT NOT NULL,
      digest TEXT NOT NULL,
      by TEXT NOT NULL CHECK (by IN ('user', 'model')),
      at TEXT NOT NULL,
      project TEXT NOT NULL,
      calls INTEGER NOT NULL,
      failed INTEGER NOT NULL,
      PRIMARY KEY (session, turn, skill)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX host_uses_of_skill ON host_uses (skill, at);

    CREATE TABLE views (
      skill TEXT NOT NULL,
      by TEXT NOT NULL CHECK (by IN ('user', 'model')),
      day TEXT NOT NULL,
      session TEXT NOT NULL,
      times INTEGER NOT NULL,
      PRIMARY KEY (skill, by, day, session)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE recorded (
      session TEXT PRIMARY KEY,
      stored REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # Our own chat wrote a table `uses` itself. Its rows know no turn: a negative one stands for it
    # until the session is recorded anew.
    """
    CREATE TABLE IF NOT EXISTS uses (id INTEGER PRIMARY KEY, skill, digest, by, at, session,
      project, calls, failed);
    INSERT INTO host_uses
      SELECT 'tacit:' || session, -id, skill, digest, by, at, project, calls, failed FROM uses;
    DROP TABLE uses;
    ALTER TABLE host_uses RENAME TO uses;
    DROP INDEX host_uses_of_skill;
    CREATE INDEX uses_of_skill ON uses (skill, at);
    """,
    """
    CREATE TABLE reports (
      id INTEGER PRIMARY KEY,
      skill TEXT NOT NULL,
      digest TEXT NOT NULL,
      worked INTEGER NOT NULL,
      said TEXT NOT NULL,
      client TEXT NOT NULL,
      project TEXT NOT NULL,
      at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX reports_of_skill ON reports (skill, at);
    """,
    # The uses of every skill are added up from the index alone.
    """
    DROP INDEX IF EXISTS uses_of_skill;
    CREATE INDEX uses_of_skill ON uses (skill, at, calls, failed);
    """,
)
USE_TABLES = ("uses", "views", "recorded")


class Use(msgspec.Struct, frozen=True):
    """One use of a skill. Counted are the calls from its loading to the end of the answer."""

    skill: str
    digest: str
    """Of the SKILL.md that was loaded; empty when that is not known."""
    by: By
    at: datetime
    session: str
    """`host:session`, as everywhere."""
    project: str
    calls: int = 0
    failed: int = 0


class RecordedViews(msgspec.Struct, frozen=True):
    """How often a skill was looked at without being loaded, on one day in one session."""

    skill: str
    by: By
    day: str
    session: str
    times: int


class SkillReport(msgspec.Struct, frozen=True):
    """What a client that followed a skill said of it; its own claim, which no trace confirms."""

    skill: str
    digest: str
    """Of the SKILL.md that it was given."""
    worked: bool
    said: str
    """The step that failed, and why."""
    client: str
    project: str
    at: datetime


def prepare_use_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where they are missing."""
    database.migrate(connection, "usage", USE_STEPS)


def open_use_tables(path: str | None = None) -> "closing[sqlite3.Connection]":
    """tacit.db with the tables of uses in it, for a `with` block."""
    return closing(database.connect(path, tables=[("usage", USE_STEPS)]))


def uses_of(connection: sqlite3.Connection, skills: Iterable[str] = ()) -> list[Use]:
    """Every use of these skills, or of all, newest first.

    Raises `Damaged` on a table that does not hold what it should; see `learn/use_records.py`.
    """
    chosen = tuple(dict.fromkeys(skills))
    where = f"WHERE skill IN ({', '.join('?' * len(chosen))})" if chosen else ""
    try:
        rows = connection.execute(f"SELECT * FROM uses {where}", chosen).fetchall()  # noqa: S608
        found = [msgspec.convert(dict(row), Use) for row in rows]
        return sorted(found, key=lambda use: use.at, reverse=True)
    except msgspec.ValidationError as error:
        why = f"a row makes no sense: {error}"
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):
            raise
        why = str(error)
    hint = "have it made again from the sessions: tacit curate"
    raise Damaged(f"the record of uses is damaged: {why}", hint)


def recently_used(most: int = 50) -> tuple[str, ...]:
    """The names of the skills that were used last, the latest first; none where nothing is kept."""
    if not os.path.exists(database.default_path()):
        return ()
    try:
        with open_use_tables() as connection:
            rows = connection.execute(
                "SELECT skill FROM uses GROUP BY skill ORDER BY MAX(at) DESC, skill LIMIT ?",
                (most,),
            )
            return tuple(row["skill"] for row in rows)
    except (TacitError, sqlite3.Error):
        return ()  # an order is a comfort; a conversation must begin without it


_MOST_NAMES = 500
"""Of more, the uses of all are counted: that takes no longer then."""


class UseTotals(msgspec.Struct, frozen=True):
    """All uses of one skill together."""

    uses: int
    calls: int
    failed: int


def use_totals(skills: Collection[str] = ()) -> dict[str, UseTotals]:
    """The uses of each of these skills, or of all, that was ever used, by name; none where nothing
    can be read."""
    chosen = tuple(skills) if len(skills) <= _MOST_NAMES else ()
    where = f"WHERE skill IN ({', '.join('?' * len(chosen))})" if chosen else ""
    if not os.path.exists(database.default_path()):
        return {}
    try:
        with open_use_tables() as connection:
            rows = connection.execute(
                "SELECT skill, count(*), sum(calls), sum(failed) FROM uses"  # noqa: S608
                f" {where} GROUP BY skill",
                chosen,
            )
            return {row[0]: UseTotals(*row[1:]) for row in rows.fetchall()}
    except (TacitError, sqlite3.Error):
        return {}  # a list of skills must be there without it


def views_of(connection: sqlite3.Connection) -> list[RecordedViews]:
    """Every view that was recorded."""
    rows = connection.execute("SELECT * FROM views ORDER BY day").fetchall()
    return [msgspec.convert(dict(row), RecordedViews) for row in rows]


def record_view(skill: str, by: By = "user", path: str | None = None) -> None:
    """Count that somebody looked at a skill. Raises what the database raises."""
    with open_use_tables(path) as connection, database.transaction(connection):
        connection.execute(
            "INSERT INTO views VALUES (?, ?, ?, '', 1) ON CONFLICT DO UPDATE SET times = times + 1",
            (skill, by, f"{datetime.now(UTC):%Y-%m-%d}"),
        )


def record_report(report: SkillReport, path: str | None = None) -> None:
    """Keep what a client reported; of each skill, the last hundred."""
    row = msgspec.structs.astuple(report)
    with open_use_tables(path) as connection, database.transaction(connection):
        connection.execute(
            "INSERT INTO reports (skill, digest, worked, said, client, project, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row[:-1], report.at.astimezone(UTC).isoformat()),
        )
        connection.execute(
            "DELETE FROM reports WHERE skill = ? AND id NOT IN"
            " (SELECT id FROM reports WHERE skill = ? ORDER BY id DESC LIMIT 100)",
            (report.skill, report.skill),
        )


def reports_of(connection: sqlite3.Connection, skill: str) -> list[SkillReport]:
    """What clients reported of a skill, newest first."""
    rows = connection.execute(
        "SELECT skill, digest, worked, said, client, project, at FROM reports WHERE skill = ?"
        " ORDER BY id DESC",
        (skill,),
    )
    return [msgspec.convert(dict(row), SkillReport, strict=False) for row in rows.fetchall()]
