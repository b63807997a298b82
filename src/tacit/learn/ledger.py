"""The ledger of learning: which session was looked at, how, what came of it, and why not.

In tacit.db, one row a session and method. A session that went on since counts as not looked at.
"""

import sqlite3
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.traces.store import Stored

Outcome = Literal["proposed", "applied", "nothing", "refused", "failed"]

STEPS = (
    """CREATE TABLE reviews (
      session TEXT NOT NULL, method TEXT NOT NULL, at TEXT NOT NULL, turns INTEGER NOT NULL,
      outcome TEXT NOT NULL, reason TEXT NOT NULL, changes TEXT NOT NULL,
      PRIMARY KEY (session, method)) STRICT;""",
)


class Review(msgspec.Struct, frozen=True):
    """What came of looking at one session."""

    session: str
    method: str
    at: str
    turns: int
    outcome: Outcome
    reason: str
    changes: tuple[str, ...] = ()


class Ledger:
    """The reviews of this user."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "learn", STEPS)

    def record(
        self,
        stored: Stored,
        method: str,
        outcome: Outcome,
        reason: str,
        changes: tuple[str, ...] = (),
    ) -> None:
        """Note what came of a session; an earlier note by the same method is replaced."""
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    stored.id,
                    method,
                    datetime.now(UTC).isoformat(),
                    stored.turns,
                    outcome,
                    reason,
                    " ".join(changes),
                ),
            )

    def of(self, session: str) -> list[Review]:
        """What is known of one session, the newest first."""
        rows = self._connection.execute(
            "SELECT * FROM reviews WHERE session = ? ORDER BY at DESC", (session,)
        ).fetchall()
        return [_review(row) for row in rows]

    def outcomes(self) -> dict[str, Outcome]:
        """What came of each session that was looked at, by the last look."""
        rows = self._connection.execute("SELECT session, outcome FROM reviews ORDER BY at")
        return {row["session"]: row["outcome"] for row in rows}

    def is_new(self, stored: Stored, method: str) -> bool:
        """Whether the session has not been looked at, or went on since."""
        row = self._connection.execute(
            "SELECT turns FROM reviews WHERE session = ? AND method = ?", (stored.id, method)
        ).fetchone()
        return row is None or row["turns"] < stored.turns


def _review(row: sqlite3.Row) -> Review:
    return Review(
        row["session"],
        row["method"],
        row["at"],
        row["turns"],
        row["outcome"],
        row["reason"],
        tuple(row["changes"].split()),
    )
