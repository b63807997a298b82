"""Rows of sessions and turns: made, replaced, summed up. Every text is redacted on its way in.

Owns what a row holds and that the full text agrees with it. When something is written, and in
which transaction, is the store's business; nothing here begins or ends one.
"""

import sqlite3
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from tacit.traces import words
from tacit.traces.hosts.host import Source
from tacit.traces.reading import Bookmark, Reading
from tacit.traces.redaction import Known, Rules, redacted
from tacit.traces.trace import Head, Turn

# These name the session and its place; to change them would lose it.
_NAMES = frozenset({"host", "session", "source", "project", "parent"})


class Written(msgspec.Struct, frozen=True):
    """What became of a session that was handed to the store."""

    status: Literal["new", "grown", "unchanged", "empty", "forgotten", "poorer"]
    """`poorer`: the same session is known from another file that says more."""
    id: str = ""
    turns: int = 0
    redacted: dict[str, int] = {}


class Shelf:
    """The rows behind a store, on its connection."""

    def __init__(self, connection: sqlite3.Connection, rules: Rules) -> None:
        self._connection = connection
        self._rules = rules

    def known(self) -> Known:
        """What takes the secrets out of one session; it lasts as long as the writing does."""
        return Known(self._rules)

    def session(self, head: Head) -> tuple[int, bool]:
        """The row of a session, made when there is none; and whether it was made."""
        self._connection.execute(
            "DELETE FROM forgotten WHERE host = ? AND session = ?", (head.host, head.session)
        )
        found = self._connection.execute(
            "SELECT id FROM sessions WHERE host = ? AND session = ?", (head.host, head.session)
        ).fetchone()
        if found is not None:
            return int(found["id"]), False
        made = self._connection.execute(
            "INSERT INTO sessions (host, session, project, source, stored, head)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (head.host, head.session, head.project, head.source, time.time(), b"{}"),
        )
        return int(made.lastrowid or 0), True

    def add_turn(self, session: int, turn: Turn, known: Known) -> None:
        turn, counts = known.redacted_turn(turn)
        self._insert(session, turn, counts)

    def _insert(self, session: int, turn: Turn, counts: dict[str, int]) -> None:
        skills = tuple(dict.fromkeys(turn.skills))
        row = self._connection.execute(
            "INSERT INTO turns (session_id, number, has_prompt, skills, redacted, body)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                session,
                turn.number,
                bool(turn.prompt),
                _text(skills),
                _text(counts),
                msgspec.json.encode(turn),
            ),
        ).lastrowid
        self._connection.execute(
            "INSERT INTO turns_text (rowid, prompt, said, done) VALUES (?, ?, ?, ?)",
            (row, *words.columns(turn)),
        )
        self._connection.executemany(
            "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    row,
                    place,
                    call.name,
                    call.kind,
                    call.failed,
                    call.error,
                    call.duration,
                )
                for place, call in enumerate(turn.calls)
            ),
        )

    def drop_turns(self, session: int, first: int, last: int = 2**62) -> None:
        """Take the turns from `first` to `last` out of the table and out of the full text."""
        rows = self._connection.execute(
            "SELECT id, body FROM turns WHERE session_id = ? AND number BETWEEN ? AND ?",
            (session, first, last),
        )
        for row in rows:
            self._connection.execute(
                "INSERT INTO turns_text (turns_text, rowid, prompt, said, done)"
                " VALUES ('delete', ?, ?, ?, ?)",
                (row["id"], *words.columns(turn_of(row["body"]))),
            )
        self._connection.execute(
            "DELETE FROM turns WHERE session_id = ? AND number BETWEEN ? AND ?",
            (session, first, last),
        )

    def _sweep(self, session: int, known: Known) -> None:
        """Take out of the turns stored before what only a later turn told to be a secret."""
        rows = self._connection.execute(
            "SELECT number, redacted, body FROM turns WHERE session_id = ? AND number < ?",
            (session, known.told_by),
        ).fetchall()
        struck = [(row, *known.struck(turn_of(row["body"]))) for row in rows]
        struck = [(row, turn, counts) for row, turn, counts in struck if counts]
        if not struck:
            return
        # Overwritten, not only let go of; and the full text keeps old words until it is merged.
        (before,) = self._connection.execute("PRAGMA secure_delete").fetchone()
        self._connection.execute("PRAGMA secure_delete = ON")
        for row, turn, counts in struck:
            self.drop_turns(session, row["number"], row["number"])
            self._insert(session, turn, total([msgspec.json.decode(row["redacted"]), counts]))
        self._connection.execute("INSERT INTO turns_text (turns_text) VALUES ('optimize')")
        self._connection.execute(f"PRAGMA secure_delete = {int(before)}")

    def summed(self, session: int, head: Head, new: bool, known: Known) -> Written:
        """Bring the session's row up to date with its turns."""
        self._sweep(session, known)
        head, counts = redacted(head, known, _NAMES)
        self._connection.execute(
            """
            UPDATE sessions SET project = :project, source = :source, started = :started,
              ended = :ended, head = :head, stored = :now,
              turns = (SELECT count(*) FROM turns WHERE session_id = :id),
              prompts = (SELECT coalesce(sum(has_prompt), 0) FROM turns WHERE session_id = :id),
              calls = (SELECT count(*) FROM calls JOIN turns ON turn_id = turns.id
                WHERE session_id = :id),
              failures = (SELECT coalesce(sum(failed), 0) FROM calls JOIN turns
                ON turn_id = turns.id WHERE session_id = :id)
            WHERE id = :id
            """,
            {
                "id": session,
                "project": head.project,
                "source": head.source,
                "started": _seconds(head.started),
                "ended": _seconds(head.ended),
                "head": msgspec.json.encode(head),
                "now": time.time(),
            },
        )
        turns = self._connection.execute(
            "SELECT turns FROM sessions WHERE id = ?", (session,)
        ).fetchone()["turns"]
        taken_out = total([counts, *(taken for _, taken in self.of_turns(session))])
        return Written("new" if new else "grown", name_of(head), turns, taken_out)

    def bookmark(self, source: Source) -> Bookmark | None:
        row = self._connection.execute(
            "SELECT bookmark FROM sources WHERE host = ? AND path = ? AND key = ?",
            (source.host, source.path, source.key),
        ).fetchone()
        if row is None or row["bookmark"] is None:
            return None
        try:
            return msgspec.json.decode(row["bookmark"], type=Bookmark)
        except msgspec.MsgspecError:  # of another version: read anew
            return None

    def marked(
        self, reading: Reading, session: int | None, written: Written, known: Known | None = None
    ) -> Written:
        """Remember where a later reading goes on; of a forgotten session, only that it was seen."""
        mark = reading.bookmark
        if mark is not None and session is None:
            mark = Bookmark(0, 0, Head(mark.head.host), {}, mark.stamp, "")
        elif mark is not None:
            head, _ = redacted(mark.head, known or self.known(), _NAMES)
            mark = msgspec.structs.replace(mark, head=head)
        source = reading.source
        self._connection.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)",
            (source.host, source.path, source.key, session, mark and msgspec.json.encode(mark)),
        )
        return written

    def is_forgotten(self, head: Head) -> bool:
        """Whether a session was forgotten, and does not come back."""
        row = self._connection.execute(
            "SELECT ended, by_user FROM forgotten WHERE host = ? AND session = ?",
            (head.host, head.session),
        ).fetchone()
        if row is None:
            return False
        ended = _seconds(head.ended)
        went_on = ended is not None and row["ended"] is not None and ended > row["ended"]
        return bool(row["by_user"]) or not went_on

    def forget(self, head: Head, *, by_user: bool) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?, ?)",
            (head.host, head.session, _seconds(head.ended), by_user),
        )

    def of_turns(self, session: int) -> list[tuple[list[str], dict[str, int]]]:
        """The skills of each turn, and what was redacted in it."""
        rows = self._connection.execute(
            "SELECT skills, redacted FROM turns WHERE session_id = ? ORDER BY number", (session,)
        )
        return [
            (msgspec.json.decode(row["skills"]), msgspec.json.decode(row["redacted"]))
            for row in rows
        ]


def turn_of(body: bytes) -> Turn:
    return msgspec.json.decode(body, type=Turn)


def name_of(head: Head) -> str:
    return f"{head.host}:{head.session}"


def total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """The sum of several counts."""
    found: dict[str, int] = {}
    for part in counts:
        for rule, times in part.items():
            found[rule] = found.get(rule, 0) + times
    return found


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
