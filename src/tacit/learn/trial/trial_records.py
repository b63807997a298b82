"""The record of trials: what was tried, and every run as it ended. Nothing that ran is lost.

Owns the tables `trials` and `trial_runs` in tacit.db. A trial is known by what it compares (skill
and version, the other side, tasks, agent and model), so that the same command goes on with it,
after a kill or another day: looking again, and going on, does its error no harm. The n-th trial of
a skill that has consequences is its n-th attempt, and may err less.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from tacit.base import database
from tacit.base.errors import NotFound
from tacit.learn.trial.arms import Side
from tacit.learn.trial.trial_run import TRIES, RunResult

TRIAL_STEPS = (
    """
    CREATE TABLE trials (
      id TEXT PRIMARY KEY, at REAL NOT NULL, skill TEXT NOT NULL, digest TEXT NOT NULL,
      attempt INTEGER NOT NULL, about TEXT NOT NULL) STRICT;
    CREATE INDEX trials_of_skill ON trials (skill, at);
    CREATE TABLE trial_runs (
      trial TEXT NOT NULL REFERENCES trials (id) ON DELETE CASCADE, round INTEGER NOT NULL,
      task TEXT NOT NULL, side TEXT NOT NULL, try INTEGER NOT NULL, at REAL NOT NULL,
      result TEXT NOT NULL, PRIMARY KEY (trial, round, task, side, try)) STRICT, WITHOUT ROWID;
    """,
)


IN_USE = "the version in use"
"""What a change that waits is compared with, if it is one of a skill that is in use."""
DAILY_USE = "daily use"
"""Stands for the agent where sessions drew lots: an attempt of the skill like any other trial."""


class TrialAbout(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, with what, by whom."""

    skill: str
    digest: str
    """Of the SKILL.md under trial: what a standing is kept by."""
    version: str = ""
    """Of all its files but the tasks."""
    against: str = ""
    """What the other side has in its place; empty for nothing."""
    among: bool = False
    agent: str = ""
    """The agent and its model."""
    judge: str = ""
    tasks: tuple[str, ...] = ()
    """Digests."""
    foreign: tuple[str, ...] = ()
    """The ids of those that are tasks of other skills."""

    @property
    def settles(self) -> bool:
        """Whether its answer has consequences: a comparison with another version has none."""
        return self.against in ("", IN_USE)

    @property
    def id(self) -> str:
        """The same for a trial that goes on."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:10]


class TrialRecord(msgspec.Struct, frozen=True):
    """A trial that was begun."""

    id: str
    at: datetime
    attempt: int
    about: TrialAbout


class RecordedRun(msgspec.Struct, frozen=True):
    """One run, and where it belongs."""

    round: int
    task: str
    side: Side
    tried: int
    """Which try this is, from 1: one that was void is made again."""
    result: RunResult

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do for this run, a judge's word aside."""
        return self.result.state == "done" or self.tried >= TRIES


class TrialRecords:
    """The tables, over an open tacit.db."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "trials", TRIAL_STEPS)

    def begin(self, about: TrialAbout) -> TrialRecord:
        """The record of this trial: the one that is there, or a new one with the next number."""
        with database.transaction(self._connection):
            if self._row(about.id) is None:
                self._connection.execute(
                    "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        about.id,
                        datetime.now(UTC).timestamp(),
                        about.skill,
                        about.digest,
                        self.attempt_of(about),
                        msgspec.json.encode(about).decode(),
                    ),
                )
            row = self._row(about.id)
        assert row is not None
        return _record(row)

    def attempt_of(self, about: TrialAbout) -> int:
        """Which trial of its skill this is, or would be, of those that settle as it does."""
        if (row := self._row(about.id)) is not None:
            return int(row["attempt"])
        before = [one for one in self._all(about.skill) if one.about.settles == about.settles]
        return 1 + len(before)

    def add(self, trial: str, run: RecordedRun) -> None:
        """Keep a run that has ended, or what a judge said of it since."""
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO trial_runs VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    *(trial, run.round, run.task, run.side, run.tried),
                    datetime.now(UTC).timestamp(),
                    msgspec.json.encode(run.result).decode(),
                ),
            )

    def runs(self, trial: str) -> list[RecordedRun]:
        """Every run of a trial, in the order of its rounds."""
        rows = self._connection.execute(
            "SELECT round, task, side, try, result FROM trial_runs WHERE trial = ?"
            " ORDER BY round, task, side, try",
            (trial,),
        ).fetchall()
        return [
            RecordedRun(number, task, side, tried, msgspec.json.decode(result, type=RunResult))
            for number, task, side, tried, result in rows
        ]

    def trials(self, skill: str = "") -> list[TrialRecord]:
        """The trials of a skill, or all, the latest first."""
        return [one for one in self._all(skill) if one.about.agent != DAILY_USE]

    def find(self, name: str) -> TrialRecord:
        """The trial whose id begins with `name`, or the latest of the skill called so."""
        found = [one for one in self.trials() if one.id.startswith(name) or one.about.skill == name]
        if not found:
            raise NotFound(f"there is no trial '{name}'", "see them: tacit trial show")
        return found[0]

    def _all(self, skill: str) -> list[TrialRecord]:
        query = "SELECT * FROM trials WHERE ? IN ('', skill) ORDER BY at DESC"
        return list(map(_record, self._connection.execute(query, (skill,)).fetchall()))

    def _row(self, trial: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(
            "SELECT * FROM trials WHERE id = ?", (trial,)
        ).fetchone()
        return row


@contextmanager
def open_trials() -> Iterator[TrialRecords]:
    """The records in tacit.db, for a `with` block."""
    with database.opened(("trials", TRIAL_STEPS)) as connection:
        yield TrialRecords(connection)


def _record(row: sqlite3.Row) -> TrialRecord:
    return TrialRecord(
        row["id"],
        datetime.fromtimestamp(row["at"], UTC),
        row["attempt"],
        msgspec.json.decode(row["about"], type=TrialAbout),
    )
