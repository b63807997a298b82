"""The ledger of learning: what was decided about each session, and the result of its review.

Owns three tables in tacit.db: `reviews` has a row a session and method, `decisions` a row a session
and moment, `decided_jobs` a row for each job that was decided on and is not over. Such a row lands
together with its decision and says which queue has the job, so that what a lost queue held can be
queued again. It also says how far a session had come when it was decided on, so that what it did
since is looked at, and nothing twice (`looked_at`), and what was never decided on is found
(`is_decided`). By hand, a session that went on since its review, or whose review failed, is new
(`is_new`). The rules by which it is decided are `review_triggers`'.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tacit.base import database
from tacit.base.job import job_id

if TYPE_CHECKING:
    from tacit.traces.store import Stored

Moment = Literal["after", "chat", "hand"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a session is due for review, for what, and why or why not."""

    moment: Moment
    skills: bool = False
    facts: bool = False
    word: str = ""
    """The reason in a word or two, for a table."""
    reason: str = ""
    """The reasons for both, for the user."""
    weight: int = 0
    """For the order among several; more is sooner."""
    since: int = 0
    """The first turn that was not looked at before."""

    @property
    def due(self) -> bool:
        """Whether it is to be reviewed at all."""
        return self.skills or self.facts


LedgerOutcome = Literal["created", "edited", "proposed", "applied", "nothing", "refused", "failed"]
REVIEW = "review"
"""The method of a review by a model, after a session or in a chat."""

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
    """CREATE TABLE decided_jobs (
      kind TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL, session TEXT NOT NULL,
      at TEXT NOT NULL, queue TEXT NOT NULL DEFAULT '', PRIMARY KEY (kind, key)) STRICT;""",
    # How far the session had come: at the decision, and when it was last due for skills, for facts.
    """ALTER TABLE decisions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN skills_turns INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN skills_calls INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN facts_turns INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN facts_calls INTEGER NOT NULL DEFAULT 0;""",
    # Who has a job that is handed over to an agent, and since when.
    """ALTER TABLE decided_jobs ADD COLUMN claim TEXT NOT NULL DEFAULT '';
    ALTER TABLE decided_jobs ADD COLUMN claimed_at TEXT NOT NULL DEFAULT '';""",
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


class Extent(msgspec.Struct, frozen=True):
    """How far a session had come."""

    turns: int = 0
    calls: int = -1
    """Those of its helpers too; -1 where nobody counted."""


class Look(msgspec.Struct, frozen=True):
    """A review that was decided on, or made by hand."""

    at: str = ""
    """Empty where there never was one."""
    extent: Extent = Extent()
    """Without turns where nobody knows how far it went: then all of it counts as looked at."""


class RecordedDecision(msgspec.Struct, frozen=True):
    """A decision as it was recorded."""

    session: str
    at: str
    decision: Decision


class DecidedJob(msgspec.Struct, frozen=True):
    """A job that was decided on and is not over."""

    kind: str
    key: str
    payload: dict[str, Any] = {}
    """JSON, as the job is given it."""
    session: str = ""
    """The session that called for it."""
    at: str = ""
    queue: str = ""
    """The database of the queue that has it; empty for none yet."""
    claim: str = ""
    """Under which id an agent has it that it is handed over to; empty for none."""
    claimed_at: str = ""

    @property
    def id(self) -> str:
        return job_id(self.kind, self.key)


@contextmanager
def open_ledger() -> "Iterator[Ledger]":
    """The ledger in tacit.db. Raises `Damaged`, `Busy`, `Unwritable` or `Newer`."""
    with database.opened() as connection:
        yield Ledger(connection)


class Ledger:
    """The reviews, decisions and decided jobs of this user."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "learn", LEDGER_STEPS)

    # Results of reviews.

    def forget_sessions(self, sessions: Collection[str]) -> None:
        """Keep that sessions were looked at, and drop the words for what came of it."""
        with database.transaction(self._connection):
            for table in ("reviews", "decisions"):
                self._connection.executemany(
                    f"UPDATE {table} SET reason = 'forgotten' WHERE session = ?",  # noqa: S608
                    [(name,) for name in sessions],
                )

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
        """Whether the session has not been reviewed, went on since, or the review failed."""
        row = self._connection.execute(
            "SELECT turns FROM reviews WHERE session = ? AND method = ? AND outcome != 'failed'",
            (stored.id, method),
        ).fetchone()
        return row is None or row["turns"] < stored.turns

    # What was decided.

    def decide(
        self,
        session: str,
        decision: Decision,
        jobs: Sequence[DecidedJob] = (),
        extent: Extent | None = None,
    ) -> None:
        """Record a decision about a session as far as it had come, and the jobs that it calls for,
        all or nothing.

        An earlier decision at the same moment is replaced, but not that it was ever decided to
        look. A job that is known stays as it is.
        """
        now = datetime.now(UTC).isoformat()
        extent = extent or Extent()
        values = msgspec.structs.asdict(decision)
        del values["since"]
        values |= {"session": session, "at": now, "turns": extent.turns, "calls": extent.calls}
        for what, due in (("skills", decision.skills), ("facts", decision.facts)):
            values[f"{what}_at"] = now if due else ""
            values[f"{what}_turns"] = extent.turns
            values[f"{what}_calls"] = extent.calls
        with database.transaction(self._connection):
            self._connection.execute(_DECIDE, values)
            self._insert(jobs)

    def is_decided(self, stored: "Stored") -> bool:
        """Whether it was decided what a session that is over calls for, as far as it has come."""
        row = self._connection.execute(
            "SELECT turns, calls FROM decisions WHERE session = ? AND moment = 'after'",
            (stored.id,),
        ).fetchone()
        return row is not None and (row["turns"], row["calls"]) == (stored.turns, stored.calls)

    def add_jobs(self, jobs: Sequence[DecidedJob]) -> None:
        """Record jobs that follow from no decision to review. One that is known stays as it is."""
        with database.transaction(self._connection):
            self._insert(jobs)

    def open_jobs(self) -> list[DecidedJob]:
        """The jobs that were decided on and are not over, the oldest first."""
        rows = self._connection.execute("SELECT * FROM decided_jobs ORDER BY at, rowid")
        return [_job(row) for row in rows]

    def mark_queued(self, kind: str, key: str, queue: str) -> None:
        """The queue `queue` has the job; empty: none has. Calling it again changes nothing."""
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE decided_jobs SET queue = ? WHERE kind = ? AND key = ?", (queue, kind, key)
            )

    # Jobs that are handed over to an agent.

    def hand_over(self, jobs: Sequence[DecidedJob]) -> None:
        """Record jobs for agents; of a session that waits for one already, no second."""
        with database.transaction(self._connection):
            for job in jobs:
                known = self._connection.execute(
                    "SELECT 1 FROM decided_jobs WHERE kind = ? AND session = ?",
                    (job.kind, job.session),
                ).fetchone()
                if known is None:
                    self._insert([job])

    def claimable(self, kind: str, lapsed: datetime) -> list[DecidedJob]:
        """The jobs of `kind` that nobody has, or had since `lapsed`, the oldest first."""
        rows = self._connection.execute(
            "SELECT * FROM decided_jobs WHERE kind = ? AND (claim = '' OR claimed_at < ?)"
            " ORDER BY claim != '', at, rowid",
            (kind, lapsed.isoformat()),
        )
        return [_job(row) for row in rows.fetchall()]

    def claim(self, job: DecidedJob, claim: str, lapsed: datetime) -> bool:
        """Give a job that is `claimable` to `claim`; False where another was faster."""
        with database.transaction(self._connection):
            taken = self._connection.execute(
                "UPDATE decided_jobs SET claim = ?, claimed_at = ? WHERE kind = ? AND key = ?"
                " AND (claim = '' OR claimed_at < ?)",
                (claim, datetime.now(UTC).isoformat(), job.kind, job.key, lapsed.isoformat()),
            )
        return taken.rowcount == 1

    def renew(self, kind: str, claim: str) -> DecidedJob | None:
        """The job that `claim` has, for as long again; None where it has none, or lost it."""
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE decided_jobs SET claimed_at = ? WHERE kind = ? AND claim = ?",
                (datetime.now(UTC).isoformat(), kind, claim),
            )
            row = self._connection.execute(
                "SELECT * FROM decided_jobs WHERE kind = ? AND claim = ? AND claim != ''",
                (kind, claim),
            ).fetchone()
        return _job(row) if row else None

    def keep_payload(self, kind: str, key: str, payload: dict[str, Any]) -> None:
        """Replace what a job knows."""
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE decided_jobs SET payload = ? WHERE kind = ? AND key = ?",
                (msgspec.json.encode(payload).decode(), kind, key),
            )

    def close_job(self, kind: str, key: str) -> None:
        """The job is over, or is not wanted any more. Calling it again changes nothing."""
        with database.transaction(self._connection):
            self._connection.execute(
                "DELETE FROM decided_jobs WHERE kind = ? AND key = ?", (kind, key)
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

    def looked_at(self, session: str) -> tuple[Look, Look]:
        """The last review of a session for skills, and the last for facts. One by hand counts for
        both.

        A review that was decided on was for what the decision says, and for no more: one for facts
        does not stand in for the one for skills that is due when the session goes on.
        """
        rows = self._connection.execute(
            "SELECT * FROM decisions WHERE session = ?", (session,)
        ).fetchall()
        review = self._connection.execute(
            "SELECT at, turns FROM reviews WHERE session = ? AND method = ?", (session, REVIEW)
        ).fetchone()
        by_hand = Look(review["at"], Extent(review["turns"])) if review else Look()
        if not any(row["skills_at"] or row["facts_at"] for row in rows):
            return by_hand, by_hand
        return _last_look(rows, "skills", by_hand), _last_look(rows, "facts", by_hand)

    def _insert(self, jobs: Sequence[DecidedJob]) -> None:
        now = datetime.now(UTC).isoformat()
        self._connection.executemany(
            "INSERT OR IGNORE INTO decided_jobs (kind, key, payload, session, at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (job.kind, job.key, msgspec.json.encode(job.payload).decode(), job.session, now)
                for job in jobs
            ],
        )


_KEPT = ", ".join(
    f"{what}_{name} = CASE excluded.{what}_at WHEN '' THEN {what}_{name}"
    f" ELSE excluded.{what}_{name} END"
    for what in ("skills", "facts")
    for name in ("turns", "calls", "at")
)
_DECIDE = f"""
  INSERT INTO decisions (session, moment, at, skills, facts, word, reason, weight, skills_at,
    facts_at, turns, calls, skills_turns, skills_calls, facts_turns, facts_calls)
  VALUES (:session, :moment, :at, :skills, :facts, :word, :reason, :weight, :skills_at,
    :facts_at, :turns, :calls, :skills_turns, :skills_calls, :facts_turns, :facts_calls)
  ON CONFLICT (session, moment) DO UPDATE SET at = excluded.at, skills = excluded.skills,
    facts = excluded.facts, word = excluded.word, reason = excluded.reason,
    weight = excluded.weight, turns = excluded.turns, calls = excluded.calls, {_KEPT}
"""  # noqa: S608


def _last_look(rows: list[sqlite3.Row], what: str, by_hand: Look) -> Look:
    """The latest of the decisions to look for `what`. One in a chat did not know how far it was;
    what was reviewed then tells."""
    at, turns, calls = max(
        (row[f"{what}_at"], row[f"{what}_turns"], row[f"{what}_calls"]) for row in rows
    )
    if not at:
        return Look()
    return Look(at, Extent(turns, calls) if turns else by_hand.extent)


def _job(row: sqlite3.Row) -> DecidedJob:
    values = dict(row) | {"payload": msgspec.json.decode(row["payload"])}
    return msgspec.convert(values, DecidedJob)


def _review(row: sqlite3.Row) -> Review:
    return msgspec.convert(dict(row) | {"changes": row["changes"].split()}, Review)


def _decided(row: sqlite3.Row) -> RecordedDecision:
    decision = msgspec.convert(dict(row), Decision, strict=False)
    return RecordedDecision(row["session"], row["at"], decision)
