"""Finding a step in the stored sessions: by words, by a command that failed, by a file.

Owns how a query is understood, which turns are looked at and in which order, and which step of a
turn is meant. The full text and what stands in it are `session_rows.py`'s.

A rank for every hit would cost time for every hit, so the latest few hundred are ranked, which are
all of them but for words that stand everywhere. Words are taken as they are; where too few turns
hold them, their beginnings count as well.
"""

import re
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from itertools import islice

import msgspec

from tacit.traces.observations import paths_of
from tacit.traces.session_rows import WIDE, WIDE_CHARACTER, failed_text, spaced, turn_of
from tacit.traces.trace import ToolCall, Turn, text_of_step

_PIECE = re.compile(f"[{WIDE}]+|[^{WIDE}]+")
_QUERY = re.compile(r'"([^"]+)"|(\S+)')
_AROUND = 70
_RANKED = 200
"""The latest hits, of which the best are shown."""


class Snippet(msgspec.Struct, frozen=True):
    """A piece of text around what was found, and where in it the words stand."""

    text: str
    marks: tuple[tuple[int, int], ...]


class Hit(msgspec.Struct, frozen=True):
    """A step in which something was found."""

    id: str
    turn: int
    project: str
    at: datetime | None
    snippet: Snippet
    step: int = 0
    """Its place in the turn, from 1; 0 is the prompt."""

    @property
    def place(self) -> str:
        """What names the step in its session: `3.2` is the second of turn 3."""
        return f"{self.turn}.{self.step}"


class Sought(msgspec.Struct, frozen=True):
    """What is looked for. All that is given holds for the same turn."""

    words: str = ""
    failed: str = ""
    """Words of a command that failed."""
    file: str = ""
    """A file that a tool named: its path, or the end of it."""
    skill: str = ""
    host: str = ""
    project: str = ""
    since: datetime | None = None


def find_hits(connection: sqlite3.Connection, sought: Sought, limit: int) -> list[Hit]:
    """The steps that fit, the best first; those of a failed command or a file the latest first."""
    if sought.failed or sought.file:
        return _latest(connection, sought, limit)
    whole, begun = (_full_text(sought, beginnings=beginnings) for beginnings in (False, True))
    found = _best(connection, sought, limit, whole)
    if len(found) < limit and begun != whole:  # of a phrase, and of Chinese, there is no beginning
        found = _best(connection, sought, limit, begun)
    return found


@lru_cache(maxsize=16)
def words_of(query: str) -> tuple[str, ...]:
    """The words of a query, quoted ones as one, those of a language without spaces apart."""
    return tuple(
        piece
        for phrase, word in _QUERY.findall(query)
        for piece in ([phrase] if phrase else _PIECE.findall(word))
        if any(c.isalnum() for c in piece)
    )


def match_query(query: str, *, beginnings: bool = True) -> str:
    """`query` in FTS5's own language: all words, in any order; quoted ones as a phrase.

    Empty when it holds no word.
    """
    terms = []
    phrases = {phrase for phrase, _ in _QUERY.findall(query)}
    for piece in words_of(query):
        quoted = '"' + spaced(piece).strip().replace('"', '""') + '"'
        whole = piece in phrases or WIDE_CHARACTER.match(piece) or not beginnings
        terms.append(quoted if whole else quoted + "*")
    return " AND ".join(terms)


def _full_text(sought: Sought, *, beginnings: bool) -> str:
    """What the full text is asked for; empty where there is nothing to ask for."""
    parts = [match_query(sought.words, beginnings=beginnings)]
    failed = match_query(sought.failed, beginnings=beginnings)
    for done in (failed, match_query(f'"{sought.file}"')):
        parts += [f"{{done}} : ({done})"] if done else []
    return " AND ".join(f"({part})" for part in parts if part)


# The `+` has SQLite test each hit, rather than ask the full text about each turn that is allowed.
_ALLOWED = """
  AND +turns_text.rowid IN (SELECT turns.id FROM sessions JOIN turns ON session_id = sessions.id
    WHERE {conditions})
"""
_CONDITIONS = {
    "host": "host = :host",
    "since": "coalesce(ended, stored) >= :since",
    "project": "(project = :project OR (project > :project || '/' AND project < :project || '0'))",
    "skill": "skills != '[]' AND EXISTS (SELECT 1 FROM json_each(skills) WHERE value = :skill)",
}
# What an earlier version stored says of no call whether it failed, until it is indexed again.
_FAILED = """
  AND (EXISTS (SELECT 1 FROM calls
      WHERE turn_id = turns_text.rowid AND failed_words IS NOT NULL AND (failed_words = ''
        OR NOT EXISTS (SELECT 1 FROM json_each(:failed) WHERE NOT instr(failed_words, value))))
    OR +turns_text.rowid IN (SELECT id FROM turns WHERE indexed < 3))
"""
_LATEST = """
  SELECT turns_text.rowid FROM turns_text WHERE turns_text MATCH :wanted {allowed}
  ORDER BY turns_text.rowid DESC LIMIT :most
"""
_BEST = """
  SELECT turns_text.rowid FROM turns_text
  WHERE turns_text MATCH :wanted AND turns_text.rowid >= :first
    AND +turns_text.rowid IN (SELECT value FROM json_each(:chosen))
  ORDER BY bm25(turns_text, 3.0, 2.0, 1.0), turns_text.rowid DESC LIMIT :limit
"""
_TURN = """
  SELECT host, session, project, number, body FROM turns
    JOIN sessions ON session_id = sessions.id WHERE turns.id = ?
"""


def _hits(
    connection: sqlite3.Connection, sought: Sought, wanted: str, most: int = -1
) -> sqlite3.Cursor:
    """The turns that fit, the latest first; `most` of them."""
    conditions = " AND ".join(text for name, text in _CONDITIONS.items() if getattr(sought, name))
    allowed = _ALLOWED.format(conditions=conditions) if conditions else ""
    query = _LATEST.format(allowed=allowed + (_FAILED if sought.failed else ""))
    values = {name: getattr(sought, name) for name in ("host", "project", "skill")}
    failed = [word.casefold() for word in words_of(sought.failed)]
    values["failed"] = msgspec.json.encode(failed).decode()
    since = sought.since.timestamp() if sought.since else 0.0
    return connection.execute(query, {**values, "since": since, "wanted": wanted, "most": most})


def _best(connection: sqlite3.Connection, sought: Sought, limit: int, wanted: str) -> list[Hit]:
    if not wanted:
        return []
    latest = [row[0] for row in _hits(connection, sought, wanted, max(_RANKED, limit))]
    if not latest:
        return []
    chosen = msgspec.json.encode(latest).decode()
    given = {"wanted": wanted, "first": latest[-1], "chosen": chosen, "limit": limit}
    best = connection.execute(_BEST, given).fetchall()
    return [hit for row in best if (hit := _hit(connection, row[0], sought)) is not None]


def _latest(connection: sqlite3.Connection, sought: Sought, limit: int) -> list[Hit]:
    """The full text knows the words of a turn; which of its calls is meant, only the turn does."""
    found: list[Hit] = []
    for wanted in dict.fromkeys(_full_text(sought, beginnings=begun) for begun in (False, True)):
        rows = _hits(connection, sought, wanted) if wanted else ()
        meant = (hit for (row,) in rows if (hit := _hit(connection, row, sought)) is not None)
        found = list(islice(meant, limit))
        if len(found) >= limit:
            break
    return found


def _hit(connection: sqlite3.Connection, row: int, sought: Sought) -> Hit | None:
    """The step of a turn that is meant; none where it is about calls, and no call fits."""
    stored = connection.execute(_TURN, (row,)).fetchone()
    turn = turn_of(stored["body"])
    if sought.failed or sought.file:
        at = next((at for at, step in _calls(turn) if _is_meant(step, sought)), 0)
        if not at:
            return None
        words = sought.words or sought.failed or sought.file
    else:
        at, words = _best_step(turn, sought.words), sought.words
    text = turn.prompt if at == 0 else text_of_step(turn.steps[at - 1])
    when = (turn.steps[at - 1].at if at else None) or turn.started
    name = f"{stored['host']}:{stored['session']}"
    return Hit(name, stored["number"], stored["project"], when, snippet_around(text, words), at)


def _calls(turn: Turn) -> Iterator[tuple[int, ToolCall]]:
    for at, step in enumerate(turn.steps, 1):
        if isinstance(step, ToolCall):
            yield at, step


def _is_meant(call: ToolCall, sought: Sought) -> bool:
    if sought.file and not any(_ends_with(path, sought.file) for path in paths_of(call)):
        return False
    if not sought.failed:
        return True
    text = failed_text(call)
    return text is not None and all(word.casefold() in text for word in words_of(sought.failed))


def _ends_with(path: str, wanted: str) -> bool:
    wanted = wanted.removeprefix("./")
    return path == wanted or path.endswith(f"/{wanted.lstrip('/')}")


def _best_step(turn: Turn, query: str) -> int:
    """The step that holds the most of the words, the first of several."""
    words = [word.casefold() for word in words_of(query)]
    texts = [turn.prompt, *map(text_of_step, turn.steps)]
    held = [sum(word in text.casefold() for word in words) for text in texts]
    return held.index(max(held))


def snippet_around(text: str, query: str) -> Snippet:
    """The first place in `text` where a word of `query` stands, with its surroundings."""
    words = "|".join(re.escape(word) for word in words_of(query))
    wanted = re.compile(words or r"\Z", re.IGNORECASE)
    if found := wanted.search(text):
        start, end = max(0, found.start() - _AROUND), found.end() + _AROUND
        piece = " ".join(text[start:end].split())
        marks = tuple(match.span() for match in wanted.finditer(piece) if match.group())
        return Snippet(piece, marks)
    return Snippet(" ".join(text[: 2 * _AROUND].split()), ())
