"""The ledger of learning: what was decided about each session, and the result of its review.

Owns two tables in tacit.db: `reviews` has a row a session and method, `decisions` a row a session
and moment. By hand, a session that went on since its review, or whose review failed, is new
(`is_new`); a review that begins by itself happens once (`looked_at`). The rules by which it is
decided are `review_triggers`'.
"""

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.base import database

if TYPE_CHECKING:
    from tacit.traces.store import Stored

Moment = Literal["after", "chat", "hand"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to look, for what, and why or why not."""

    moment: Moment
    skills: bool = False
    facts: bool = False
    word: str = ""
    """The reason in a word or two, for a table."""
    reason: str = ""
    """The reasons for both, for the user."""
    weight: int = 0
    """For the order among several; more is sooner."""

    @property
    def look(self) -> bool:
        return self.skills or self.facts


LedgerOutcome = Literal["created", "edited", "proposed", "applied", "nothing", "refused", "failed"]
REVIEW = "review"
"""The method of a look by a model, after a session or in a chat."""

LEDGER_STEPS = (
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
    """The result of the review of one session."""

    session: str
    method: str
    at: str
    turns: int
    outcome: LedgerOutcome
    reason: str
    changes: tuple[str, ...] = ()


class RecordedDecision(msgspec.Struct, frozen=True):
    """A decision as it was recorded."""

    session: str
    at: str
    decision: Decision


class Ledger:
    """The reviews and decisions of this user."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "learn", LEDGER_STEPS)

    # Results of reviews.

    def record(
        self,
        stored: "Stored",
        method: str,
        outcome: LedgerOutcome,
        reason: str,
        changes: tuple[str, ...] = (),
    ) -> None:
        """Record the result for a session; an earlier one by the same method is replaced."""
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

    def outcomes(self) -> dict[str, LedgerOutcome]:
        """The result for each session that was reviewed, by its last review."""
        rows = self._connection.execute("SELECT session, outcome FROM reviews ORDER BY at")
        return {row["session"]: row["outcome"] for row in rows}

    def is_new(self, stored: "Stored", method: str) -> bool:
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

    def decisions(self, session: str) -> list[RecordedDecision]:
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
    return msgspec.convert(dict(row) | {"changes": row["changes"].split()}, Review)


def _decided(row: sqlite3.Row) -> RecordedDecision:
    decision = msgspec.convert(dict(row), Decision, strict=False)
    return RecordedDecision(row["session"], row["at"], decision)
