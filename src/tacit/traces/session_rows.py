"""The tables of sessions in tacit.db: their migrations, their rows, and their full text.

Every text is redacted on its way in. Owns what a row holds, and that the full text agrees with it:
all that was asked, said, done and printed. When something is written, and in which transaction, is
the store's business; nothing here begins or ends one.

Languages without spaces between words (Chinese, Japanese) are indexed by character, all else by
words. How a query is understood is `session_search.py`'s.
"""

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

import msgspec

from tacit.base.patterns import late_pattern
from tacit.traces.assembler import READERS, Bookmark, Reading
from tacit.traces.host import Source, zstd_module
from tacit.traces.outcomes import call_outcome
from tacit.traces.redaction import Known, Rules, redacted, sum_counts
from tacit.traces.task_outcomes import TaskOutcome, session_outcome, task_outcome
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import Head, Told, ToolCall, Turn, text_of_step

MIGRATIONS = (
    """
    CREATE TABLE sessions (
      id INTEGER PRIMARY KEY,
      host TEXT NOT NULL,
      session TEXT NOT NULL,
      project TEXT NOT NULL,
      source TEXT NOT NULL,
      started REAL,
      ended REAL,
      stored REAL NOT NULL,
      turns INTEGER NOT NULL DEFAULT 0,
      prompts INTEGER NOT NULL DEFAULT 0,
      calls INTEGER NOT NULL DEFAULT 0,
      failures INTEGER NOT NULL DEFAULT 0,
      head BLOB NOT NULL,
      UNIQUE (host, session)
    ) STRICT;
    CREATE INDEX sessions_ended ON sessions (ended);
    CREATE INDEX sessions_project ON sessions (project);

    CREATE TABLE turns (
      id INTEGER PRIMARY KEY,
      session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
      number INTEGER NOT NULL,
      has_prompt INTEGER NOT NULL,
      skills TEXT NOT NULL,
      redacted TEXT NOT NULL,
      body BLOB NOT NULL,
      UNIQUE (session_id, number)
    ) STRICT;

    CREATE TABLE calls (
      turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      kind TEXT NOT NULL,
      failed INTEGER NOT NULL,
      error TEXT NOT NULL,
      duration REAL,
      PRIMARY KEY (turn_id, place)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX calls_by_kind ON calls (kind, failed);

    CREATE VIRTUAL TABLE turns_text USING fts5 (
      prompt, said, done, content = '', tokenize = 'unicode61 remove_diacritics 2'
    );

    CREATE TABLE sources (
      host TEXT NOT NULL,
      path TEXT NOT NULL,
      key TEXT NOT NULL,
      session_id INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
      bookmark BLOB,
      PRIMARY KEY (host, path, key)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE forgotten (
      host TEXT NOT NULL,
      session TEXT NOT NULL,
      ended REAL,
      by_user INTEGER NOT NULL,
      PRIMARY KEY (host, session)
    ) STRICT, WITHOUT ROWID;
    """,
    # Whose part a helper's session is. Of other hosts' old ones a branch named a parent too.
    """
    ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
    UPDATE sessions SET parent = coalesce(json_extract(CAST(head AS TEXT), '$.parent'), '')
      WHERE host IN ('claude-code', 'opencode');
    CREATE INDEX sessions_parent ON sessions (host, parent) WHERE parent != '';
    """,
    """
    ALTER TABLE turns ADD COLUMN outcome TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT '{}';
    """,
    # The version of the rules for secrets by which a session was redacted; below zero while the
    # full text may still hold words that were taken out.
    "ALTER TABLE sessions ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;",
    # Sessions are looked up by the whole of their own id, by its beginning, by its end (as
    # `SHORT_ID` has it), and listed by their time.
    """
    CREATE INDEX sessions_session ON sessions (session);
    CREATE INDEX sessions_short_id ON sessions (substr(session, -8));
    CREATE INDEX sessions_when ON sessions (coalesce(ended, stored), id);
    """,
    # The way in which a turn stands in the full text, and the turns in which a skill was used.
    """
    ALTER TABLE turns ADD COLUMN indexed INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX turns_to_index ON turns (indexed) WHERE indexed < 2;
    CREATE INDEX turns_skills ON turns (session_id, skills) WHERE skills != '[]';
    """,
    # The latest sessions of each agent.
    "CREATE INDEX sessions_of_host ON sessions (host, coalesce(ended, stored));",
    # What a whole session, its helpers' included, shows to those who count over many, and by which
    # rules. It lasts as long as nothing of it changes.
    """
    CREATE TABLE counted (
      session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
      rules TEXT NOT NULL,
      body BLOB NOT NULL
    ) STRICT;
    """,
    # What the model was given, of sessions whose file need not stay; see `trajectory_source.py`.
    """
    CREATE TABLE given (session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
      rules INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
    """,
    # The words by which a call that failed is looked for; see `_call_rows`.
    """
    ALTER TABLE calls ADD COLUMN failed_words TEXT;
    DROP INDEX calls_by_kind;
    DROP INDEX turns_to_index;
    CREATE INDEX turns_to_index ON turns (indexed) WHERE indexed < 3;
    """,
    # What is stored together is put into the full text at once, not a megabyte at a time, and eight
    # such pieces are merged, not four.
    "INSERT INTO turns_text (turns_text, rank) VALUES ('hashsize', 8388608), ('automerge', 8);",
)

SHORT_ID = 8
"""Characters of a session's id that people are shown: its end, for many agents' begin with the
time."""


WIDE = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\U00020000-\U0003134f"
)  # fmt: skip
WIDE_CHARACTER = late_pattern(f"([{WIDE}])")
_WIDE_BYTE = late_pattern(rb"[\xe3-\xf4]")
"""Each of them begins with such a byte, and what else stands in most texts does not."""
INDEXED = 3
"""The way in which a turn's texts are put into the full text, kept with each: to take a turn out of
it, the same texts are needed again. In the first, results were cut and only the first level of
what a tool was given was read; in the second, calls had no `failed_words`."""
_MAX_RESULT = 6000
_MAX_FAILED = 2000


def spaced(text: str) -> str:
    """`text` with spaces around each character of a language that has none between words."""
    if text.isascii() or not _WIDE_BYTE.search(text.encode(errors="replace")):
        return text  # mostly a dash or a tick
    return " ".join(WIDE_CHARACTER.split(text))


def indexed_texts(turn: Turn, way: int = INDEXED) -> tuple[str, str, str]:
    """The three texts under which a turn is indexed: asked, said, done.

    Depends on the turn and the way alone.
    """
    asked = [turn.prompt]
    said: list[str] = []
    done: list[str] = []
    for step in turn.steps:
        if isinstance(step, ToolCall):
            done.append(_cut_text(step) if way == 1 else text_of_step(step))
            asked += [step.reply] if step.reply else []
        elif isinstance(step, Told):
            done.append(step.text)
        elif text := text_of_step(step):
            said.append(text)
    return spaced("\n".join(asked)), spaced("\n".join(said)), spaced("\n".join(done))


def failed_text(call: ToolCall) -> str | None:
    """The text of a call that failed, by which it is looked for; None where it did not fail."""
    told = call.kind in ("shell", "other")  # of others, only the host says that they failed
    if call.failed or (told and call_outcome(call).failed):
        return (command_of(call) or text_of_step(call)).casefold()
    return None


def _call_rows(turn: int, calls: Iterable[ToolCall]) -> Iterator[tuple[object, ...]]:
    """The rows of a turn's calls. Of one that failed the text is kept, unless it is long: then it
    is empty, and the turn has to be asked."""
    for place, call in enumerate(calls):
        words = failed_text(call)
        words = words if words is None or len(words) <= _MAX_FAILED else ""
        yield turn, place, call.name, call.kind, call.failed, call.error, call.duration, words


def _cut_text(call: ToolCall) -> str:
    """The text of a call in the first way; see `INDEXED`."""
    given = [part for part in call.arguments.values() if isinstance(part, str)]
    result = call.result
    if len(result) > _MAX_RESULT:
        result = f"{result[: _MAX_RESULT // 2]} {result[-_MAX_RESULT // 2 :]}"
    return "\n".join((call.name, *given, call.error, result))


# These name the session and its place; to change them would lose it.
_NOT_REDACTED = frozenset({"host", "session", "source", "project", "parent", "copied_from"})


class Written(msgspec.Struct, frozen=True):
    """The result of storing one session."""

    status: Literal["new", "grown", "unchanged", "empty", "forgotten", "poorer"]
    """`poorer`: the same session is known from another file that says more."""
    id: str = ""
    turns: int = 0
    redacted: dict[str, int] = {}
    skipped: dict[str, int] = {}
    """What was passed over in all of it, by reason."""


_ADD_TURN = """
  INSERT INTO turns (session_id, number, has_prompt, skills, redacted, body, outcome, indexed)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_CALL = "INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_TEXT = "INSERT INTO turns_text (rowid, prompt, said, done) VALUES (?, ?, ?, ?)"
_DROP_TEXT = """
  INSERT INTO turns_text (turns_text, rowid, prompt, said, done) VALUES ('delete', ?, ?, ?, ?)
"""


# Whatever of a session changes, the sessions that it is a helper's part of change with it.
_DROP_COUNTED = """
  DELETE FROM counted WHERE session_id IN (
    WITH RECURSIVE line (id, host, parent) AS (
      SELECT id, host, parent FROM sessions WHERE id = ?
      UNION
      SELECT s.id, s.host, s.parent FROM sessions s JOIN line
        ON s.host = line.host AND s.session = line.parent AND line.parent != ''
    )
    SELECT id FROM line
  )
"""


def counted(connection: sqlite3.Connection, name: str, rules: str) -> bytes | None:
    """What was counted of the session of that full name by these rules, if it still holds."""
    host, _, session = name.partition(":")
    row = connection.execute(
        "SELECT body FROM sessions JOIN counted ON session_id = sessions.id"
        " WHERE host = ? AND session = ? AND counted.rules = ?",
        (host, session, rules),
    ).fetchone()
    return None if row is None else bytes(row["body"])


def keep_counted(connection: sqlite3.Connection, name: str, rules: str, body: bytes) -> None:
    """Keep what was counted of a session until something of it changes."""
    host, _, session = name.partition(":")
    connection.execute(
        "INSERT OR REPLACE INTO counted SELECT id, ?, ? FROM sessions"
        " WHERE host = ? AND session = ?",
        (rules, body, host, session),
    )


class SessionRows:
    """The rows behind a store, on its connection."""

    def __init__(self, connection: sqlite3.Connection, rules: Rules, version: int) -> None:
        self._connection = connection
        self._rules = rules
        self._version = version

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
        values = (
            session, turn.number, bool(turn.prompt), _json_text(skills), _json_text(counts),
            packed(turn), _json_text(task_outcome(turn)), INDEXED,
        )  # fmt: skip
        row = self._connection.execute(_ADD_TURN, values).lastrowid
        self._connection.execute(_ADD_TEXT, (row, *indexed_texts(turn)))
        self._connection.executemany(f"INSERT {_CALL}", _call_rows(row or 0, turn.calls))

    def drop_turns(self, session: int, first: int, last: int = 2**62) -> None:
        """Take the turns from `first` to `last` out of the table and out of the full text."""
        self._connection.execute(_DROP_COUNTED, (session,))
        rows = self._connection.execute(
            "SELECT id, body, indexed FROM turns WHERE session_id = ? AND number BETWEEN ? AND ?",
            (session, first, last),
        )
        for row in rows:
            texts = indexed_texts(turn_of(row["body"]), row["indexed"])
            self._connection.execute(_DROP_TEXT, (row["id"], *texts))
        self._connection.execute(
            "DELETE FROM turns WHERE session_id = ? AND number BETWEEN ? AND ?",
            (session, first, last),
        )

    def index_again(self, most: int) -> int:
        """Put turns that were indexed in an earlier way into the full text anew; how many."""
        rows = self._connection.execute(
            "SELECT id, body, indexed FROM turns WHERE indexed < 3 LIMIT ?", (most,)
        ).fetchall()
        for row in rows:
            turn = turn_of(row["body"])
            before, now = indexed_texts(turn, row["indexed"]), indexed_texts(turn)
            if before != now:
                self._connection.execute(_DROP_TEXT, (row["id"], *before))
                self._connection.execute(_ADD_TEXT, (row["id"], *now))
            self._connection.executemany(f"REPLACE {_CALL}", _call_rows(row["id"], turn.calls))
            self._connection.execute(
                "UPDATE turns SET indexed = ? WHERE id = ?", (INDEXED, row["id"])
            )
        return len(rows)

    def _strike_earlier(self, session: int, known: Known) -> bool:
        """Take out of the turns stored before what only a later turn told to be a secret."""
        rows = self._connection.execute(
            "SELECT number, redacted, body FROM turns WHERE session_id = ? AND number < ?",
            (session, known.last_found_in),
        ).fetchall()
        return self._replace(session, [(row, *known.struck(turn_of(row["body"]))) for row in rows])

    def _replace(self, session: int, turns: list[tuple[sqlite3.Row, Turn, dict[str, int]]]) -> bool:
        """Put turns in the place of their rows where something was taken out; whether any was.

        The full text keeps the old words until `merge_text`.
        """
        struck = [(row, turn, counts) for row, turn, counts in turns if counts]
        if not struck:
            return False
        for row, turn, counts in struck:
            self.drop_turns(session, row["number"], row["number"])
            self._insert(session, turn, sum_counts(msgspec.json.decode(row["redacted"]), counts))
        return True

    def merge_text(self) -> None:
        """Leave in the full text no word that was taken out of it."""
        self._connection.execute("INSERT INTO turns_text (turns_text) VALUES ('optimize')")
        self._connection.execute("UPDATE sessions SET rules = -rules WHERE rules < 0")

    def outdated(self) -> int | None:
        """A session that was redacted by fewer rules than there are now."""
        row = self._connection.execute(
            "SELECT id FROM sessions WHERE abs(rules) < ? ORDER BY id LIMIT 1", (self._version,)
        ).fetchone()
        return None if row is None else int(row["id"])

    def is_merged(self) -> bool:
        """Whether `merge_text` has nothing to do."""
        found = self._connection.execute("SELECT 1 FROM sessions WHERE rules < 0 LIMIT 1")
        return found.fetchone() is None

    def redact_again(self, session: int) -> None:
        """Take out of a stored session what the rules of today know for a secret."""
        known = self.known()
        rows = self._connection.execute(
            "SELECT number, redacted, body FROM turns WHERE session_id = ? ORDER BY number",
            (session,),
        ).fetchall()
        turns = [(row, *known.redacted_turn(turn_of(row["body"]))) for row in rows]
        changed = self._replace(session, turns)
        changed |= self._strike_earlier(session, known)
        (stored,) = self._connection.execute("SELECT head FROM sessions WHERE id = ?", (session,))
        head, _ = redacted(msgspec.json.decode(stored["head"], type=Head), known, _NOT_REDACTED)
        version = -self._version if changed else self._version
        outcome = _json_text(session_outcome(self.tasks(session), head.verdict))
        self._connection.execute(
            "UPDATE sessions SET head = ?, outcome = ?, rules = ? WHERE id = ?",
            (msgspec.json.encode(head), outcome, version, session),
        )
        for row in self._connection.execute(
            "SELECT host, path, key FROM sources WHERE session_id = ?", (session,)
        ).fetchall():
            mark = self.bookmark(Source(row["host"], row["path"], row["key"]))
            if mark is not None:
                head, _ = redacted(mark.head, known, _NOT_REDACTED)
                self._connection.execute(
                    "UPDATE sources SET bookmark = ? WHERE host = ? AND path = ? AND key = ?",
                    (msgspec.json.encode(msgspec.structs.replace(mark, head=head)), *row),
                )

    def summed(
        self, session: int, head: Head, new: bool, known: Known, *, whole: bool = True
    ) -> Written:
        """Bring the session's row up to date with its turns, which were `whole` written now."""
        if known.last_found_in and self._strike_earlier(session, known):
            self.merge_text()
        head, counts = redacted(head, known, _NOT_REDACTED)
        self._connection.execute(
            """
            UPDATE sessions SET project = :project, source = :source, parent = :parent,
              started = :started, ended = :ended, head = :head, stored = :now, outcome = :outcome,
              rules = CASE WHEN :whole THEN :rules ELSE min(rules, :rules) END,
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
                "parent": head.parent,
                "started": _seconds(head.started),
                "ended": _seconds(head.ended),
                "head": msgspec.json.encode(head),
                "now": time.time(),
                "outcome": _json_text(session_outcome(self.tasks(session), head.verdict)),
                "whole": whole,
                "rules": self._version,
            },
        )
        if head.parent or not new:
            self._connection.execute(_DROP_COUNTED, (session,))
        turns = self.of_turns(session)
        taken_out = sum_counts(counts, *(taken for _, taken in turns))
        return Written("new" if new else "grown", head.id, len(turns), taken_out, head.skipped)

    def digest(self, session: int, first: int) -> bytes:
        """A session as it is stored, from a turn on, but for where it was read from."""
        (head,) = self._connection.execute("SELECT head FROM sessions WHERE id = ?", (session,))
        known = msgspec.json.decode(head["head"])
        made = hashlib.blake2b(msgspec.json.encode(known | {"source": ""}))
        for row in self._connection.execute(
            "SELECT body FROM turns WHERE session_id = ? AND number >= ? ORDER BY number",
            (session, first),
        ):
            made.update(unpacked(row["body"]))
        return made.digest()

    def bookmark(self, source: Source) -> Bookmark | None:
        row = self._connection.execute(
            "SELECT bookmark FROM sources WHERE host = ? AND path = ? AND key = ?",
            (source.host, source.path, source.key),
        ).fetchone()
        if row is None or row["bookmark"] is None:
            return None
        try:
            found = msgspec.json.decode(row["bookmark"], type=Bookmark)
        except msgspec.MsgspecError:  # of another version: read anew
            return None
        return found if found.readers == READERS else None

    def session_from(self, source: Source) -> str:
        """The session that was last read from `source`; empty where none is stored."""
        row = self._connection.execute(
            "SELECT sessions.host, session FROM sources JOIN sessions ON session_id = sessions.id"
            " WHERE sources.host = ? AND path = ? AND key = ?",
            (source.host, source.path, source.key),
        ).fetchone()
        return f"{row['host']}:{row['session']}" if row is not None else ""

    def marked(
        self, reading: Reading, session: int | None, written: Written, known: Known | None = None
    ) -> Written:
        """Remember where a later reading goes on; of a forgotten session, only that it was seen,
        and of one that gave nothing, also what was passed over."""
        mark = reading.bookmark
        if mark is not None and session is None:
            head = Head(mark.head.host)
            if written.status == "empty" and reading.head.skipped:
                seen = reading.head
                head = Head(
                    seen.host, version=seen.version, ended=datetime.now(UTC), skipped=seen.skipped
                )
            mark = Bookmark(0, 0, head, {}, mark.stamp, "", READERS)
        elif mark is not None:
            head, _ = redacted(mark.head, known or self.known(), _NOT_REDACTED)
            mark = msgspec.structs.replace(mark, head=head)
        source = reading.source
        place = (source.host, source.path, source.key)
        # `REPLACE` only where there is something: for it SQLite makes a savepoint, and at each of
        # those FTS5 writes what it could have put together with what comes next.
        known_place = "SELECT 1 FROM sources WHERE host = ? AND path = ? AND key = ?"
        again = self._connection.execute(known_place, place).fetchone() is not None
        self._connection.execute(
            f"{'REPLACE' if again else 'INSERT'} INTO sources VALUES (?, ?, ?, ?, ?)",
            (*place, session, mark and msgspec.json.encode(mark)),
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

    def tasks(self, session: int) -> list[TaskOutcome]:
        """How each turn ended, by its own evidence and its prompt."""
        rows = self._connection.execute(
            "SELECT outcome FROM turns WHERE session_id = ? ORDER BY number", (session,)
        )
        return [msgspec.json.decode(row["outcome"], type=TaskOutcome) for row in rows]

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
    return msgspec.json.decode(unpacked(body), type=Turn)


def packed(value: msgspec.Struct) -> bytes:
    """The JSON of a turn, or of what a model was given, as it is stored."""
    packer = _packer()
    return bytes(packer.compress(msgspec.json.encode(value), packer.FLUSH_FRAME))


@cache
def _packer() -> Any:
    return zstd_module().ZstdCompressor(level=1)  # a new one for each turn takes half as long again


def unpacked(body: bytes) -> bytes:
    """The JSON of what is stored. That of earlier versions is packed by zlib, or not at all."""
    if body.startswith(b"{"):
        return body
    zstd = zstd_module()
    try:
        return zlib.decompress(body) if body.startswith(b"x") else bytes(zstd.decompress(body))
    except (zlib.error, zstd.ZstdError) as error:
        raise msgspec.DecodeError(f"a stored turn is damaged: {error}") from error


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
