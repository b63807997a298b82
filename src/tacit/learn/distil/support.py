"""The tables of distillation in tacit.db: tasks that were read, lessons, and what supports each.

A lesson is kept once, whatever words it was found in; each task that shows it is a row of support,
with its session, project, model, outcome, and the quotes. Support is counted over distinct
sessions by the database, never added up by a model, so reading a task again changes no count. Rows
outlive a run: a later one reads only what is new. Also keeps contradictions, and which jobs of a
run are on their way with what each may cost.
"""

import hashlib
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from tacit.base import database
from tacit.base.errors import NotFound
from tacit.learn.distil.lessons import Lesson, LessonQuote
from tacit.learn.segments import Segment

Side = Literal["for", "against", "followed"]
"""`for`: the task shows the lesson. Of a lesson that stood in a skill the session had loaded:
`followed` and fine, or followed and it failed, which is `against` it."""
LessonState = Literal["open", "written", "rejected", "removed"]

STEPS = (
    """CREATE TABLE distil_tasks (
      id TEXT PRIMARY KEY, session TEXT NOT NULL, digest TEXT NOT NULL, method TEXT NOT NULL,
      segment BLOB NOT NULL, at TEXT NOT NULL) STRICT;
    CREATE INDEX distil_tasks_session ON distil_tasks (session);
    CREATE TABLE distil_sessions (id TEXT PRIMARY KEY, stamp TEXT NOT NULL) STRICT;
    CREATE TABLE lessons (
      id TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, about TEXT NOT NULL,
      condition TEXT NOT NULL, joined TEXT NOT NULL DEFAULT '', state TEXT NOT NULL DEFAULT 'open',
      line TEXT NOT NULL DEFAULT '', skill TEXT NOT NULL DEFAULT '',
      root TEXT NOT NULL DEFAULT '', change TEXT NOT NULL DEFAULT '') STRICT;
    CREATE INDEX lessons_skill ON lessons (skill);
    CREATE TABLE lesson_support (
      lesson TEXT NOT NULL, task TEXT NOT NULL, side TEXT NOT NULL, session TEXT NOT NULL,
      project TEXT NOT NULL, person TEXT NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL,
      said INTEGER NOT NULL, text TEXT NOT NULL, quotes BLOB NOT NULL,
      PRIMARY KEY (lesson, task, side)) STRICT;
    CREATE INDEX lesson_support_task ON lesson_support (task);
    CREATE TABLE lesson_conflicts (
      one TEXT NOT NULL, other TEXT NOT NULL, why TEXT NOT NULL, settled TEXT NOT NULL DEFAULT '',
      winner TEXT NOT NULL DEFAULT '', PRIMARY KEY (one, other)) STRICT;
    CREATE TABLE distil_runs (
      id TEXT PRIMARY KEY, at TEXT NOT NULL, options BLOB NOT NULL, state TEXT NOT NULL,
      spent REAL NOT NULL DEFAULT 0, requests INTEGER NOT NULL DEFAULT 0,
      result BLOB NOT NULL DEFAULT x'7b7d') STRICT;
    CREATE TABLE distil_children (
      run TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL,
      held REAL NOT NULL, state TEXT NOT NULL, PRIMARY KEY (run, kind, key)) STRICT;""",
)


class Support(msgspec.Struct, frozen=True):
    """What speaks for a lesson, counted over distinct sessions, and what against it."""

    sessions: int = 0
    projects: int = 0
    people: int = 0
    models: int = 0
    worked: int = 0
    failed: int = 0
    said: int = 0
    """Sessions in which the user's own words ask for it."""
    against: int = 0
    """Sessions in which it was followed and failed."""
    followed: int = 0
    """Sessions in which it was followed and was fine."""

    @property
    def is_negative(self) -> bool:
        """Whether following it failed more often than not, and not by accident."""
        return self.against >= _NEGATIVE and self.against > self.followed


_NEGATIVE = 2


class KnownLesson(Lesson, frozen=True, kw_only=True):
    """A lesson as it is kept: its line, what became of it, and its support."""

    id: str
    state: LessonState = "open"
    line: str = ""
    """As it stands in the skill, where it was written."""
    skill: str = ""
    root: str = ""
    change: str = ""
    support: Support = Support()


class SupportRow(msgspec.Struct, frozen=True):
    """One task that shows a lesson, or speaks against it."""

    lesson: str
    task: str
    side: Side
    session: str
    project: str
    person: str
    model: str
    outcome: str
    said: bool
    text: str
    quotes: tuple[LessonQuote, ...]


class Conflict(msgspec.Struct, frozen=True):
    """Two lessons that cannot both be followed, and how that was settled, if it was."""

    one: str
    other: str
    why: str
    settled: str = ""
    winner: str = ""


@contextmanager
def open_lessons() -> "Iterator[Lessons]":
    """The lessons in tacit.db. Raises what `database.connect` does."""
    with database.opened() as connection:
        yield Lessons(connection)


_HOME = re.compile(r"^(?:[A-Za-z]:)?[/\\](?:Users|home)[/\\]([^/\\]+)[/\\]")


def person_of(project: str) -> str:
    """Whose session it is, where the project lies in somebody's home; else empty."""
    found = _HOME.match(project)
    return found[1] if found else ""


class Lessons:
    """All lessons of this user, with their support."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._do = connection.execute
        database.migrate(connection, "distil", STEPS)

    def writing(self) -> AbstractContextManager[object]:
        """One transaction; within another, a part of that."""
        if self._connection.in_transaction:
            return nullcontext()
        return database.transaction(self._connection)

    def _pairs(self, query: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self._do(query)}

    # Tasks, and which were read.

    def cut_sessions(self) -> dict[str, str]:
        """The sessions that were cut into tasks, each with how far it had come then."""
        return self._pairs("SELECT id, stamp FROM distil_sessions")

    def keep_tasks(self, session: str, stamp: str, tasks: Sequence[Segment]) -> None:
        """The tasks of a session as it is now. Of one that changed, what was found is dropped."""
        same = {task.id: task.digest for task in tasks}
        now = datetime.now(UTC).isoformat()
        with self.writing():
            self._do("INSERT OR REPLACE INTO distil_sessions VALUES (?, ?)", (session, stamp))
            known = self._do("SELECT id, digest FROM distil_tasks WHERE session = ?", (session,))
            for name in [row["id"] for row in known if same.get(row["id"]) != row["digest"]]:
                self._do("DELETE FROM distil_tasks WHERE id = ?", (name,))
                self._do("DELETE FROM lesson_support WHERE task = ?", (name,))
            self._connection.executemany(
                "INSERT OR IGNORE INTO distil_tasks VALUES (?, ?, ?, '', ?, ?)",
                [(t.id, session, t.digest, msgspec.json.encode(t), now) for t in tasks],
            )

    def tasks(self, sessions: Collection[str]) -> Iterator[Segment]:
        """The tasks of these sessions."""
        for row in self._do("SELECT session, segment FROM distil_tasks"):
            if row["session"] in sessions:
                yield msgspec.json.decode(row["segment"], type=Segment)

    def methods(self) -> dict[str, str]:
        """How each task was read; empty for one that was not."""
        return self._pairs("SELECT id, method FROM distil_tasks")

    # Lessons and support.

    def begin_task(self, task: str, method: str) -> None:
        """A task is read by `method`: what was found in it before is dropped. Within `writing`."""
        self._do("DELETE FROM lesson_support WHERE task = ?", (task,))
        self._do("UPDATE distil_tasks SET method = ? WHERE id = ?", (method, task))

    def keep(self, lesson: Lesson) -> str:
        """Make a lesson known; its id. A known one stays as it is."""
        words = " ".join(lesson.text.casefold().split())
        parts = "\0".join((lesson.kind, lesson.when, words))
        name = hashlib.sha256(parts.encode()).hexdigest()[:16]
        self._do(
            "INSERT OR IGNORE INTO lessons (id, kind, text, about, condition)"
            " VALUES (?, ?, ?, ?, ?)",
            (name, lesson.kind, lesson.text, lesson.about, lesson.when),
        )
        return name

    def add_support(self, lesson: str, task: Segment, found: Lesson, side: Side = "for") -> None:
        """A task shows a lesson, in the words of `found`. Twice is once."""
        whose = (task.session, task.project, person_of(task.project), task.model)
        shown = (task.outcome.state, found.said, found.text, msgspec.json.encode(found.quotes))
        self._do(
            "INSERT OR REPLACE INTO lesson_support VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (lesson, task.id, side, *whose, *shown),
        )

    def join(self, lesson: str, into: str) -> None:
        """Two lessons are one: the support of `lesson` is that of `into` from now on."""
        both = (into, lesson)
        with self.writing():
            self._do("UPDATE OR IGNORE lesson_support SET lesson = ? WHERE lesson = ?", both)
            self._do("DELETE FROM lesson_support WHERE lesson = ?", (lesson,))
            self._do("UPDATE lessons SET joined = ? WHERE ? IN (id, joined)", both)
            self._do("DELETE FROM lesson_conflicts WHERE ? IN (one, other)", (lesson,))

    def mark(self, lessons: Iterable[str], state: LessonState) -> None:
        """What became of lessons."""
        with self.writing():
            for lesson in lessons:
                self._do("UPDATE lessons SET state = ? WHERE id = ?", (state, lesson))

    def write(self, lines: Mapping[str, str], skill: str, root: str, change: str) -> None:
        """Lessons stand in a skill, or are proposed for it by `change`; each with its line."""
        with self.writing():
            self._connection.executemany(
                "UPDATE lessons SET state = 'written', line = ?, skill = ?, root = ?, change = ?"
                " WHERE id = ?",
                [(line, skill, root, change, lesson) for lesson, line in lines.items()],
            )

    def aliases(self) -> dict[str, str]:
        """The lessons that were joined into another, and into which."""
        return self._pairs("SELECT id, joined FROM lessons WHERE joined != ''")

    def all(
        self, sessions: Collection[str] | None = None, *, joined: bool = False
    ) -> list[KnownLesson]:
        """The lessons with their support, by these sessions or by all; the best supported first.

        `joined`: also those that are a part of another by now, which have none.
        """
        named = None if sessions is None else msgspec.json.encode(list(sessions)).decode()
        counts = {row[0]: Support(*row[1:]) for row in self._do(_COUNT, (named, named))}
        query = "SELECT *, condition AS \"when\" FROM lessons WHERE joined = '' OR ?"
        found = [
            msgspec.convert(dict(row) | {"support": counts.get(row["id"], Support())}, KnownLesson)
            for row in self._do(query, (joined,))
        ]
        return sorted(found, key=lambda one: (-one.support.sessions, one.id))

    def of_skill(self, skill: str, root: str) -> list[KnownLesson]:
        """The lessons that stand in a skill of the folder `root`, or are proposed for it."""
        found = [one for one in self.all() if (one.skill, one.root) == (skill, root)]
        return [one for one in found if one.state == "written"]

    def rows(self, lesson: str, side: Side | None = None) -> list[SupportRow]:
        """What supports a lesson and what speaks against it, in the order of sessions."""
        query = "SELECT * FROM lesson_support WHERE lesson = ? ORDER BY side DESC, session, task"
        found = (
            dict(row) | {"said": bool(row["said"]), "quotes": msgspec.json.decode(row["quotes"])}
            for row in self._do(query, (lesson,))
            if side in (None, row["side"])
        )
        return [msgspec.convert(row, SupportRow) for row in found]

    def forget_sessions(self, sessions: Collection[str]) -> None:
        """Drop all that was kept of sessions: their tasks, their words, the lessons that only they
        showed and that stand in no skill, and what earlier runs said, which quotes them."""
        with self.writing():
            for name in sessions:
                self._do("DELETE FROM lesson_support WHERE session = ?", (name,))
                self._do("DELETE FROM distil_tasks WHERE session = ?", (name,))
                if self._do("DELETE FROM distil_sessions WHERE id = ?", (name,)).rowcount:
                    self._do("UPDATE distil_runs SET result = x'7b7d' WHERE state = 'done'")
            self._drop_unsupported()

    def forget_change(self, change: str) -> None:
        """What was proposed by `change` stands nowhere: its lessons are open again, or go."""
        with self.writing():
            self._do(
                "UPDATE lessons SET state = 'open', line = '', skill = '', root = '', change = ''"
                " WHERE change = ?",
                (change,),
            )
            self._drop_unsupported()

    def _drop_unsupported(self) -> None:
        self._do(
            "DELETE FROM lessons WHERE state != 'written'"
            " AND NOT EXISTS (SELECT 1 FROM lesson_support"
            " WHERE lesson IN (lessons.id, lessons.joined))"
        )
        self._do(
            "DELETE FROM lesson_conflicts WHERE one NOT IN (SELECT id FROM lessons)"
            " OR other NOT IN (SELECT id FROM lessons)"
        )

    # Contradictions.

    def conflict(self, one: str, other: str, why: str) -> None:
        """Record that two lessons contradict each other. One that is known stays as it is."""
        self._do(
            "INSERT OR IGNORE INTO lesson_conflicts (one, other, why) VALUES (?, ?, ?)",
            (*sorted((one, other)), why),
        )

    def settle(self, found: Conflict, how: str, winner: str = "") -> None:
        """How a contradiction is settled, and for which side; empty where both stand."""
        self._do(
            "UPDATE lesson_conflicts SET settled = ?, winner = ? WHERE one = ? AND other = ?",
            (how, winner, found.one, found.other),
        )

    def conflicts(self) -> list[Conflict]:
        rows = self._do("SELECT * FROM lesson_conflicts ORDER BY one, other")
        return [msgspec.convert(dict(row), Conflict) for row in rows]

    # Runs, and their jobs.

    def begin_run(self, name: str, options: Any) -> str:
        """The run with these options that is not over, else a new one called `name`."""
        given = msgspec.json.encode(options)
        with self.writing():
            row = self._do(
                "SELECT id FROM distil_runs WHERE options = ? AND state != 'done' ORDER BY at DESC",
                (given,),
            ).fetchone()
            run = str(row["id"]) if row else name
            self._do(
                "INSERT OR IGNORE INTO distil_runs (id, at, options, state) VALUES (?, ?, ?, '')",
                (run, datetime.now(UTC).isoformat(), given),
            )
            self.set_run(run, "read")
        return run

    def run(self, run: str) -> sqlite3.Row:
        """Raises `NotFound`."""
        found = self._do("SELECT * FROM distil_runs WHERE id = ?", (run,)).fetchall()
        if not found:
            raise NotFound(f"there is no distillation {run}", "ask for it anew: tacit distil")
        row: sqlite3.Row = found[0]
        return row

    def set_run(self, run: str, state: str, result: Any = None) -> None:
        """How far a run is: `read`, `merge`, `write`, `stopped`; once `done`, what it kept of its
        jobs goes, and it stays so."""
        told = None if result is None else msgspec.json.encode(result)
        self._do(
            "UPDATE distil_runs SET state = ?, result = coalesce(?, result)"
            " WHERE id = ? AND state != 'done'",
            (state, told, run),
        )
        if state == "done":
            self._do("DELETE FROM distil_children WHERE run = ?", (run,))

    def hold(self, run: str, kind: str, key: str, data: Any, held: float) -> None:
        """A job is about to be queued, and may cost `held`. One that is over stays as it is."""
        self._do(
            "INSERT INTO distil_children VALUES (?, ?, ?, ?, ?, 'queued')"
            " ON CONFLICT DO UPDATE SET state = 'queued', held = excluded.held,"
            " data = excluded.data WHERE state = 'withdrawn'",
            (run, kind, key, msgspec.json.encode(data), held),
        )

    def release(self, run: str, kind: str, key: str, state: str, cost: float, asked: int) -> None:
        """A job is over: what it cost is the run's, and nothing is held any more. Within
        `writing`; a second time changes nothing."""
        done = self._do(
            "UPDATE distil_children SET state = ?, held = 0, data = x'7b7d'"
            " WHERE run = ? AND kind = ? AND key = ? AND state = 'queued'",
            (state, run, kind, key),
        )
        if done.rowcount:
            self._do(
                "UPDATE distil_runs SET spent = spent + ?, requests = requests + ? WHERE id = ?",
                (cost, asked, run),
            )

    def children(self, run: str, kind: str) -> Iterator[tuple[str, str, Any]]:
        """The jobs of a run: key, state, and what is kept to understand the answer by."""
        query = "SELECT key, state, data FROM distil_children WHERE run = ? AND kind = ?"
        for key, state, data in self._do(f"{query} ORDER BY key", (run, kind)).fetchall():
            yield key, state, msgspec.json.decode(data)

    def held(self, run: str) -> float:
        """What the jobs of a run that are on their way may still cost."""
        query = "SELECT total(held) FROM distil_children WHERE run = ?"
        return float(self._do(query, (run,)).fetchone()[0])

    def counts(self, run: str) -> dict[tuple[str, str], int]:
        """How many jobs of a run there are, by kind and state."""
        query = "SELECT kind, state, count(*) FROM distil_children WHERE run = ? GROUP BY 1, 2"
        return {(row[0], row[1]): row[2] for row in self._do(query, (run,))}


# One row a lesson and session first, so that several tasks of a session count once.
_COUNT = """
  WITH each AS (
    SELECT lesson, session, max(project) AS project, max(person) AS person, max(model) AS model,
      max(side = 'for') AS shown, max(side = 'against') AS against,
      max(side = 'followed') AS followed, max(said AND side = 'for') AS said,
      max(outcome = 'worked' AND side = 'for') AS worked,
      max(outcome = 'failed' AND side = 'for') AS failed
    FROM lesson_support
    WHERE ? IS NULL OR session IN (SELECT value FROM json_each(?)) GROUP BY lesson, session)
  SELECT lesson, sum(shown),
    count(DISTINCT CASE WHEN shown AND project != '' THEN project END),
    count(DISTINCT CASE WHEN shown AND person != '' THEN person END),
    count(DISTINCT CASE WHEN shown AND model != '' THEN model END),
    sum(worked AND NOT failed), sum(failed), sum(said), sum(against), sum(followed)
  FROM each GROUP BY lesson
"""
