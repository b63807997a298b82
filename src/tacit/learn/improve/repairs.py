"""What was tried to mend each skill, and what came of it: the table `repairs` in tacit.db.

By it the same failure is not looked at twice for one version, a skill is left alone for a while
after a repair, and what did harm is not tried again.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from tacit.base import database
from tacit.changes.duplicates import resemblance, sketch

Outcome = Literal[
    "begun", "repaired", "proposed", "nothing", "refused", "failed", "put off", "rolled back"
]

STEPS = (
    """
    CREATE TABLE repairs (
      id TEXT PRIMARY KEY,
      at REAL NOT NULL,
      skill TEXT NOT NULL,
      root TEXT NOT NULL,
      session TEXT NOT NULL,
      turn INTEGER NOT NULL,
      digest TEXT NOT NULL,
      marks TEXT NOT NULL,
      outcome TEXT NOT NULL,
      change TEXT NOT NULL DEFAULT '',
      tried TEXT NOT NULL DEFAULT '',
      note TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX repairs_of_skill ON repairs (skill, root, at);
    CREATE INDEX repairs_by_change ON repairs (change);
    """,
)
SAME = 0.8
"""How alike two repairs are, from 0 to 1, that are taken for one."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One repair, done or tried."""

    id: str
    """The job's."""
    skill: str
    """Its folder below `root`."""
    root: str
    session: str = ""
    turn: int = 0
    digest: str = ""
    """Of the version that failed."""
    marks: tuple[str, ...] = ()
    """The failures that it was about."""
    at: datetime = datetime.min.replace(tzinfo=UTC)
    outcome: Outcome = "begun"
    change: str = ""
    tried: str = ""
    """What it did, as a diff."""
    note: str = ""
    """In words: why, what was checked, what could not be."""


class Repairs:
    """The repairs of this user. One thread at a time; many processes may have one each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "repairs", STEPS)

    def begin(self, attempt: Attempt) -> None:
        """Note that a repair begins; the same one again begins anew."""
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO repairs (id, at, skill, root, session, turn, digest, marks,"
                " outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'begun')",
                (
                    attempt.id,
                    datetime.now(UTC).timestamp(),
                    attempt.skill,
                    attempt.root,
                    attempt.session,
                    attempt.turn,
                    attempt.digest,
                    " ".join(attempt.marks),
                ),
            )

    def finish(
        self, id_: str, outcome: Outcome, *, change: str = "", tried: str = "", note: str = ""
    ) -> None:
        """Note what came of it."""
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE repairs SET outcome = ?, change = ?, tried = ?, note = ? WHERE id = ?",
                (outcome, change, tried, note, id_),
            )

    def taken_back(self, change: str, note: str) -> None:
        """A repair turned out to be worse: it is remembered, so that it is not made again.

        `change` is what landed; a repair that the user accepted is known by its proposal.
        """
        with database.transaction(self._connection):
            self._connection.executemany(
                "UPDATE repairs SET outcome = 'rolled back', note = ? WHERE change = ?",
                [(note, known) for known in (change, *self._proposals(change))],
            )

    def _proposals(self, change: str) -> list[str]:
        try:
            rows = self._connection.execute(
                "SELECT id FROM proposals WHERE applied_as = ?", (change,)
            ).fetchall()
        except sqlite3.OperationalError:  # nothing was ever proposed
            return []
        return [row[0] for row in rows]

    def of(self, skill: str, root: str, most: int = 20) -> list[Attempt]:
        """What was tried with a skill, newest first."""
        rows = self._connection.execute(
            "SELECT * FROM repairs WHERE skill = ? AND root = ? ORDER BY at DESC LIMIT ?",
            (skill, root, most),
        ).fetchall()
        return [_attempt(row) for row in rows]

    def in_session(self, session: str) -> list[Attempt]:
        """What was tried because of a session, in order."""
        rows = self._connection.execute(
            "SELECT * FROM repairs WHERE session = ? ORDER BY at", (session,)
        ).fetchall()
        return [_attempt(row) for row in rows]

    def get(self, id_: str) -> Attempt | None:
        row = self._connection.execute("SELECT * FROM repairs WHERE id = ?", (id_,)).fetchone()
        return _attempt(row) if row is not None else None

    def looked_at(self, skill: str, root: str, digest: str) -> set[str]:
        """The failures of this version that a repair was about already."""
        return {
            mark
            for attempt in self.of(skill, root, most=200)
            if attempt.digest == digest and attempt.outcome != "put off"
            for mark in attempt.marks
        }

    def rests_until(self, skill: str, root: str, hours: float) -> datetime | None:
        """Until when the skill is left alone after its last repair; None when it is not."""
        for attempt in self.of(skill, root):
            until = attempt.at + timedelta(hours=hours)
            if attempt.outcome != "put off":
                return until if until > datetime.now(UTC) else None
        return None

    def harmful(self, skill: str, root: str, tried: str) -> Attempt | None:
        """An earlier repair that did the same and was taken back."""
        mine = sketch(tried)
        for attempt in self.of(skill, root, most=200):
            if attempt.outcome != "rolled back":
                continue
            if attempt.tried == tried or resemblance(mine, sketch(attempt.tried)) >= SAME:
                return attempt
        return None


def opened() -> "closing[sqlite3.Connection]":
    """tacit.db, to make `Repairs` of."""
    return closing(database.connect())


def _attempt(row: sqlite3.Row) -> Attempt:
    return Attempt(
        id=row["id"],
        skill=row["skill"],
        root=row["root"],
        session=row["session"],
        turn=row["turn"],
        digest=row["digest"],
        marks=tuple(row["marks"].split()),
        at=datetime.fromtimestamp(row["at"], UTC),
        outcome=row["outcome"],
        change=row["change"],
        tried=row["tried"],
        note=row["note"],
    )
