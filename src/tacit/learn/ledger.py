"""The ledger of learning: which session was looked at, how, what came of it, and why not.

In tacit.db. `reviews` has one row a session and method: what came of a look. `decisions` has one
row a session and moment: whether it was to be looked at, and why or why not. By hand, a session
that went on since, or whose look failed, counts as not looked at (`is_new`); a look that begins by
itself happens once (`looked_at`).
"""

import sqlite3
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.learn.triggers import Decision, Moment
from tacit.traces.store import Stored

Outcome = Literal["created", "edited", "proposed", "applied", "nothing", "refused", "failed"]
REVIEW = "review"
"""The method of a look by a model, after a session or in a chat."""

STEPS = (
    """CREATE TABLE reviews (
      session TEXT NOT NULL, method TEXT NOT NULL, at TEXT NOT NULL, turns INTEGER NOT NULL,
      outcome TEXT NOT NULL, reason TEXT NOT NULL, changes TEXT NOT NULL,
      PRIMARY KEY (session, method)) STRICT;""",
    """CREATE TABLE decisions (
      session TEXT NOT NULL, moment TEXT NOT NULL, at TEXT NOT NULL, skills INTEGER NOT NULL,
      facts INTEGER NOT NULL, word TEXT NOT NULL, reason TEXT NOT NULL, weight INTEGER NOT NULL,
      skills_at TEXT NOT NULL, facts_at TEXT NOT NULL,
      PRIMARY KEY (session, moment)) STRICT;""",
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


class Decided(msgspec.Struct, frozen=True):
    """A decision as it was recorded."""

    session: str
    at: str
    decision: Decision


class Ledger:
    """The reviews and decisions of this user."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "learn", STEPS)

    # What came of looks.

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
        """Whether the session has not been looked at, went on since, or the look failed."""
        row = self._connection.execute(
            "SELECT turns FROM reviews WHERE session = ? AND method = ? AND outcome != 'failed'",
            (stored.id, method),
        ).fetchone()
        return row is None or row["turns"] < stored.turns

    # What was decided.

    def decide(self, session: str, decision: Decision) -> None:
        """Record a decision; an earlier one at the same moment is replaced, but not that it was
        ever decided to look."""
        now = datetime.now(UTC).isoformat()
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (session, moment) DO UPDATE SET at = excluded.at,"
                " skills = excluded.skills, facts = excluded.facts, word = excluded.word,"
                " reason = excluded.reason, weight = excluded.weight,"
                " skills_at = CASE excluded.skills_at WHEN '' THEN skills_at"
                " ELSE excluded.skills_at END,"
                " facts_at = CASE excluded.facts_at WHEN '' THEN facts_at"
                " ELSE excluded.facts_at END",
                (
                    session,
                    decision.moment,
                    now,
                    decision.skills,
                    decision.facts,
                    decision.word,
                    decision.reason,
                    decision.weight,
                    now if decision.skills else "",
                    now if decision.facts else "",
                ),
            )

    def decisions(self, session: str) -> list[Decided]:
        """What was decided about one session, the newest first."""
        rows = self._connection.execute(
            "SELECT * FROM decisions WHERE session = ? ORDER BY at DESC", (session,)
        ).fetchall()
        return [_decided(row) for row in rows]

    def latest_decisions(self) -> dict[str, Decision]:
        """What was decided last about each session."""
        rows = self._connection.execute("SELECT * FROM decisions ORDER BY at")
        return {row["session"]: _decided(row).decision for row in rows}

    def looked_at(self, session: str) -> tuple[str, str]:
        """When it was last decided to look at a session for skills, and for facts; empty where it
        never was. A look by hand counts for both.

        A review that was decided on was for what the decision says, and for no more: one for facts
        does not stand in for the one for skills that is due when the session goes on.
        """
        row = self._connection.execute(
            "SELECT max(skills_at), max(facts_at) FROM decisions WHERE session = ?", (session,)
        ).fetchone()
        if row[0] or row[1]:
            return row[0], row[1]
        by_hand = self._connection.execute(
            "SELECT max(at) FROM reviews WHERE session = ? AND method = ?", (session, REVIEW)
        ).fetchone()[0]
        return by_hand or "", by_hand or ""


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


def _decided(row: sqlite3.Row) -> Decided:
    moment: Moment = row["moment"]
    decision = Decision(
        moment=moment,
        skills=bool(row["skills"]),
        facts=bool(row["facts"]),
        word=row["word"],
        reason=row["reason"],
        weight=row["weight"],
    )
    return Decided(row["session"], row["at"], decision)
