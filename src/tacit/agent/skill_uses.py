"""Uses of skills in our own sessions: who activated which version when, and what failed afterwards.

Owns the table `uses` in tacit.db. Only sessions with a user write here: what an agent in the
background reads is no use. A database that cannot be written never disturbs a session.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.agent import agent_events
from tacit.base import database
from tacit.base.errors import TacitError

STEPS = (
    """
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
    """,
)
_LONGEST = 300


class Use(msgspec.Struct, frozen=True):
    """One activation. Counted are the calls between it and the end of the answer."""

    skill: str
    digest: str
    by: Literal["user", "model"]
    at: datetime
    session: str
    project: str
    calls: int = 0
    failed: int = 0
    error: str = ""
    """The last words of the first call that failed."""
    ended: str = ""
    """How the answer ended: `done`, a limit, `interrupted`, `error`; empty when it was killed."""


def uses(skill: str = "", *, path: str | None = None) -> list[Use]:
    """The recorded uses of a skill, or of all, newest first."""
    names = ", ".join(Use.__struct_fields__)
    with _open(path) as connection:
        rows = connection.execute(
            f"SELECT {names} FROM uses WHERE ? IN ('', skill) ORDER BY at DESC, id DESC",  # noqa: S608
            (skill,),
        )
        return [msgspec.convert(dict(row), Use) for row in rows.fetchall()]


def recently_used(most: int = 50) -> tuple[str, ...]:
    """The names of the skills that were used last, the latest first; none where nothing is kept."""
    if not os.path.exists(database.default_path()):
        return ()
    try:
        with _open(None) as connection:
            rows = connection.execute(
                "SELECT skill FROM uses GROUP BY skill ORDER BY MAX(at) DESC, skill LIMIT ?",
                (most,),
            )
            return tuple(row["skill"] for row in rows)
    except (TacitError, sqlite3.Error):
        return ()  # an order is a comfort; a conversation must begin without it


class Recorder:
    """Hears the events of one session and writes down what becomes of its skills."""

    def __init__(self, session: str, project: str) -> None:
        self._session = session
        self._project = project
        self._open: list[int] = []
        """The activations of the answer that is being made."""
        self.trouble = ""
        """Why nothing can be written, once that is so."""

    def hear(self, event: agent_events.AnyEvent) -> None:
        if isinstance(event, agent_events.Skill):
            self._write(lambda c: self._open.append(self._begin(c, event)))
        elif isinstance(event, agent_events.Return) and self._open:
            failed = agent_events.last_words(event.text)[:_LONGEST] if event.failed else ""
            self._write(lambda c: self._count(c, event.failed, failed))
        elif isinstance(event, agent_events.End):
            self.end(event.reason)

    def end(self, reason: str) -> None:
        """The answer is over. Twice is the same as once."""
        if self._open:
            self._write(lambda c: self._close(c, reason))
            self._open.clear()

    def _begin(self, connection: sqlite3.Connection, event: agent_events.Skill) -> int:
        made = connection.execute(
            "INSERT INTO uses (skill, digest, by, at, session, project) VALUES (?, ?, ?, ?, ?, ?)",
            (event.name, event.digest, event.by, _now(), self._session, self._project),
        )
        return int(made.lastrowid or 0)

    def _count(self, connection: sqlite3.Connection, failed: bool, error: str) -> None:
        connection.executemany(
            "UPDATE uses SET calls = calls + 1, failed = failed + ?,"
            " error = CASE error WHEN '' THEN ? ELSE error END WHERE id = ?",
            [(int(failed), error, number) for number in self._open],
        )

    def _close(self, connection: sqlite3.Connection, reason: str) -> None:
        connection.executemany(
            "UPDATE uses SET ended = ? WHERE id = ?", [(reason, number) for number in self._open]
        )

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        if self.trouble:
            return
        try:
            with (
                _open(None) as connection,
                database.explain_errors(database.default_path()),
                database.transaction(connection),
            ):
                work(connection)
        except TacitError as error:
            self.trouble = error.message


def _open(path: str | None) -> "contextlib.closing[sqlite3.Connection]":
    return contextlib.closing(database.connect(path, wait=2.0, tables=[("agent", STEPS)]))


def _now() -> str:
    return datetime.now(UTC).isoformat()
