"""The ledger of learning: when a session is reviewed, what was decided, what came of it.

The rules are pure: what is known of a session comes in, a decision with its reason goes out. After
a session: for skills, when it made enough tool calls and did not itself change skills; for facts,
when the user said enough in it, or when it is reviewed for skills anyway; each once. In a chat:
for skills after so many requests since the last change of a skill, for facts after so many
messages, only at a final answer.

Owns two tables in tacit.db: `reviews` has a row a session and method, `decisions` a row a session
and moment. By hand, a session that went on since its review, or whose review failed, is new
(`is_new`); a review that begins by itself happens once (`looked_at`). Who gathers what is known of
a session is `review_triggers`.
"""

import sqlite3
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.display import counted
from tacit.base.settings import LearnSettings, MemorySettings
from tacit.traces.store import Stored

Moment = Literal["after", "chat"]
_NAMED = 3
"""Skills that a reason names."""


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session that is over."""

    calls: int
    messages: int
    """Prompts of the user's."""
    changed: tuple[str, ...] = ()
    """The skills that it changed itself."""
    background: bool = False
    """Work of our own in the background."""
    skills_before: str = ""
    """When it was looked at for skills, or that was decided; empty where it never was."""
    facts_before: str = ""
    """Likewise for facts."""
    weight: int = 0
    """How much speaks for it, by cheap signals."""


class ChatFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a chat whose answer is over."""

    ended: str
    """`done` for a final answer; else how it ended."""
    iterations: int
    """Requests to the model since the last change of a skill, or the last look."""
    messages: int
    """Messages of the user's since the last look for facts."""


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


def after_session(seen: SessionFacts, learn: LearnSettings, memory: MemorySettings) -> Decision:
    """Whether a session that is over is looked at."""
    if seen.background:
        reason = "it is work of Tacit's own in the background"
        return Decision(moment="after", word="own work", reason=reason)
    skills = _for_skills(seen, learn)
    facts = _for_facts(seen, learn, memory, read_anyway=skills.due)
    return _decision("after", skills, facts, seen.weight)


def in_chat(spoken: ChatFacts, learn: LearnSettings, memory: MemorySettings) -> Decision:
    """Whether a chat is looked at now that an answer is over."""
    if spoken.ended != "done":
        how = "interrupted" if spoken.ended == "interrupted" else f"ended by: {spoken.ended}"
        reason = f"the answer was not a final one ({how})"
        return Decision(moment="chat", word="not final", reason=reason)
    skills = _counted(spoken.iterations, learn.chat_iterations, "request", "learn.chat_iterations")
    facts = _counted(spoken.messages, memory.chat_turns, "message", "memory.chat_turns")
    return _decision("chat", skills, facts if memory.use else _NO_MEMORY)


class _Due(msgspec.Struct, frozen=True):
    """Whether one of the two is due, in a word, and why."""

    due: bool
    word: str
    why: str


_NO_MEMORY = _Due(False, "off", "memory is off (memory.use)")


def _for_skills(seen: SessionFacts, learn: LearnSettings) -> _Due:
    calls = counted(seen.calls, "tool call")
    if not learn.after_calls:
        return _Due(False, "off", "looking at finished sessions is off (learn.after_calls)")
    if seen.skills_before:
        return _Due(False, "done before", f"it was looked at already ({seen.skills_before})")
    if seen.changed:
        names = ", ".join(seen.changed[:_NAMED])
        more = f" and {len(seen.changed) - _NAMED} more" if len(seen.changed) > _NAMED else ""
        return _Due(False, "changed skills", f"it changed skills itself: {names}{more}")
    if seen.calls < learn.after_calls:
        why = f"{calls}, fewer than {learn.after_calls} (learn.after_calls)"
        return _Due(False, "few calls", why)
    return _Due(True, "due", f"{calls}, at least {learn.after_calls}")


def _for_facts(
    seen: SessionFacts, learn: LearnSettings, memory: MemorySettings, *, read_anyway: bool
) -> _Due:
    messages = f"{counted(seen.messages, 'message')} of yours"
    if not memory.use:
        return _NO_MEMORY
    if seen.facts_before:
        return _Due(False, "done before", f"it was looked at already ({seen.facts_before})")
    if read_anyway and seen.messages:
        return _Due(True, "due", "it is read anyway")
    if not learn.after_messages:
        return _Due(False, "off", "looking at finished sessions is off (learn.after_messages)")
    if seen.messages < learn.after_messages:
        why = f"{messages}, fewer than {learn.after_messages} (learn.after_messages)"
        return _Due(False, "few messages", why)
    return _Due(True, "due", f"{messages}, at least {learn.after_messages}")


def _counted(number: int, least: int, noun: str, setting: str) -> _Due:
    if not least:
        return _Due(False, "off", f"looking at a running chat is off ({setting})")
    due = number >= least
    why = f"{counted(number, noun)} since the last time, of {least} ({setting})"
    return _Due(due, "due" if due else "not yet", why)


def _decision(moment: Moment, skills: _Due, facts: _Due, weight: int = 0) -> Decision:
    word = skills.word if skills.due or not facts.due else "due for facts"
    return Decision(
        moment=moment,
        skills=skills.due,
        facts=facts.due,
        word=word,
        reason=f"for skills: {skills.why}; for facts: {facts.why}",
        weight=weight,
    )


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
    """What came of looking at one session."""

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

    # What came of looks.

    def record(
        self,
        stored: Stored,
        method: str,
        outcome: LedgerOutcome,
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

    def outcomes(self) -> dict[str, LedgerOutcome]:
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
    return Review(
        row["session"],
        row["method"],
        row["at"],
        row["turns"],
        row["outcome"],
        row["reason"],
        tuple(row["changes"].split()),
    )


def _decided(row: sqlite3.Row) -> RecordedDecision:
    moment: Moment = row["moment"]
    decision = Decision(
        moment=moment,
        skills=bool(row["skills"]),
        facts=bool(row["facts"]),
        word=row["word"],
        reason=row["reason"],
        weight=row["weight"],
    )
    return RecordedDecision(row["session"], row["at"], decision)
