"""The record of uses and views of skills, in the hosts beside our own chat.

Our chat writes the table `uses` itself. Here the sessions of the hosts are gone through once they
are in the store, into the tables `host_uses` and `views`. A session is recorded whole, in place of
what was recorded of it before, so a session that grew, or that is met twice, counts once. No text
of a session is kept here: what is forgotten leaves numbers only.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.agent.skill_uses import STEPS as OWN_STEPS
from tacit.agent.skill_uses import Use
from tacit.base import database, paths
from tacit.base.errors import Damaged
from tacit.changes.place import project_place, user_place
from tacit.learn.skill_runs import By, SkillRun, SkillVersions, VersionOf, runs_of
from tacit.traces.observations import paths_of
from tacit.traces.store import Store
from tacit.traces.tool_calls import skill_of_support_file
from tacit.traces.trace import Trace

OWN_HOST = "tacit"
"""The host that our own chat is."""

USE_STEPS = (
    """
    CREATE TABLE host_uses (
      session TEXT NOT NULL,
      turn INTEGER NOT NULL,
      skill TEXT NOT NULL,
      digest TEXT NOT NULL,
      by TEXT NOT NULL CHECK (by IN ('user', 'model')),
      at TEXT NOT NULL,
      project TEXT NOT NULL,
      calls INTEGER NOT NULL,
      failed INTEGER NOT NULL,
      PRIMARY KEY (session, turn, skill)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX host_uses_of_skill ON host_uses (skill, at);

    CREATE TABLE views (
      skill TEXT NOT NULL,
      by TEXT NOT NULL CHECK (by IN ('user', 'model')),
      day TEXT NOT NULL,
      session TEXT NOT NULL,
      times INTEGER NOT NULL,
      PRIMARY KEY (skill, by, day, session)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE recorded (
      session TEXT PRIMARY KEY,
      stored REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
)
_TABLES = (("agent", OWN_STEPS), ("usage", USE_STEPS))
_FIELDS = ("skill", "digest", "by", "at", "session", "project", "calls", "failed")


class RecordedViews(msgspec.Struct, frozen=True):
    """How often a skill was looked at without being loaded, on one day in one session."""

    skill: str
    by: Literal["user", "model"]
    day: str
    session: str
    times: int


def prepare_use_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of this module, and those that it reads, where they are not there."""
    for layer, steps in _TABLES:
        database.migrate(connection, layer, steps)


def catch_up(store: Store, versions_in: Callable[[str], VersionOf] | None = None) -> list[str]:
    """Record every session that is new or grew since it was last recorded; their ids.

    Twice is the same as once, also after a kill: a session and the mark that says so land together.
    """
    prepare_use_tables(store.connection)
    rows = store.connection.execute(
        """
        SELECT host || ':' || sessions.session AS id FROM sessions
          LEFT JOIN recorded ON recorded.session = host || ':' || sessions.session
        WHERE recorded.stored IS NOT sessions.stored ORDER BY sessions.id
        """
    ).fetchall()
    for row in rows:
        record_uses(store, row["id"], versions_in)
    return [row["id"] for row in rows]


def record_uses(
    store: Store, session: str, versions_in: Callable[[str], VersionOf] | None = None
) -> int:
    """Record the uses in one stored session, in place of what was recorded of it; how many."""
    connection = store.connection
    prepare_use_tables(connection)
    head = store.find(session).head
    session = f"{head.host}:{head.session}"
    trace = Trace(head)
    if _has_skills(connection, head.host, head.session):
        trace = store.trace(session)
    runs = _counted(trace, (versions_in or versions_for)(head.project))
    at = head.ended or head.started or datetime.now(UTC)
    with database.transaction(connection):
        # One that could be told when the session was first met may not be any more: the file has
        # changed since. So a version that is known stays.
        known = {
            (row["turn"], row["skill"]): row["digest"]
            for row in connection.execute(
                "SELECT turn, skill, digest FROM host_uses WHERE session = ?", (session,)
            )
        }
        connection.execute("DELETE FROM host_uses WHERE session = ?", (session,))
        connection.executemany(
            "INSERT OR REPLACE INTO host_uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    session,
                    run.turn,
                    run.skill,
                    run.digest or known.get((run.turn, run.skill), ""),
                    run.by,
                    (run.at or at).astimezone(UTC).isoformat(),
                    run.project,
                    run.answer,
                    sum(step.failed for step in run.steps[: run.answer]),
                )
                for run in runs
            ],
        )
        connection.execute("DELETE FROM views WHERE session = ?", (session,))
        connection.executemany(
            "INSERT INTO views VALUES (?, 'model', ?, ?, ?)",
            [(skill, f"{at:%Y-%m-%d}", session, n) for skill, n in _views(trace).items()],
        )
        connection.execute(
            "INSERT OR REPLACE INTO recorded SELECT ?, stored FROM sessions"
            " WHERE host = ? AND session = ?",
            (session, head.host, head.session),
        )
    return len(runs)


def record_view(skill: str, by: By = "user", path: str | None = None) -> None:
    """Note that somebody looked at a skill. Raises what the database raises."""
    with open_use_tables(path) as connection, database.transaction(connection):
        connection.execute(
            "INSERT INTO views VALUES (?, ?, ?, '', 1) ON CONFLICT DO UPDATE SET times = times + 1",
            (skill, by, f"{datetime.now(UTC):%Y-%m-%d}"),
        )


def uses_of(connection: sqlite3.Connection, skills: Iterable[str] = ()) -> list[Use]:
    """Every use of these skills, or of all, in our chat and in the hosts, newest first.

    Raises `Damaged` on a table that does not hold what it should; see `curate/rebuilding.py`.
    """
    try:
        return _uses_of(connection, skills)
    except msgspec.ValidationError as error:
        why = f"a row makes no sense: {error}"
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):
            raise
        why = str(error)
    hint = "have it made again from the sessions: tacit curate"
    raise Damaged(f"the record of uses is damaged: {why}", hint)


def _uses_of(connection: sqlite3.Connection, skills: Iterable[str]) -> list[Use]:
    chosen = tuple(dict.fromkeys(skills))
    where = f"WHERE skill IN ({', '.join('?' * len(chosen))})" if chosen else ""
    names = ", ".join(_FIELDS)
    rows = connection.execute(
        f"SELECT {names}, '' AS error, '' AS ended FROM host_uses {where}",  # noqa: S608
        chosen,
    ).fetchall()
    own = connection.execute(
        f"SELECT {names}, error, ended FROM uses {where}",  # noqa: S608
        chosen,
    ).fetchall()
    found = [msgspec.convert(dict(row), Use) for row in rows]
    for row in own:
        use = msgspec.convert(dict(row), Use)
        found.append(msgspec.structs.replace(use, session=f"{OWN_HOST}:{use.session}"))
    return sorted(found, key=lambda use: use.at, reverse=True)


def views_of(connection: sqlite3.Connection) -> list[RecordedViews]:
    """Every view that was recorded."""
    rows = connection.execute("SELECT * FROM views ORDER BY day").fetchall()
    return [msgspec.convert(dict(row), RecordedViews) for row in rows]


def open_use_tables(path: str | None = None) -> AbstractContextManager[sqlite3.Connection]:
    """tacit.db with the tables of uses in it, for a `with` block."""
    return database.opened(*_TABLES, path=path)


def versions_for(project: str) -> VersionOf:
    """Who knows the versions of skills that a session in `project` could have loaded."""
    places = [user_place()]
    if project:
        places.insert(0, project_place(project))
    return SkillVersions(places, paths.folders().data).at


def _counted(trace: Trace, version_of: VersionOf) -> list[SkillRun]:
    """The uses in a session that are not recorded yet.

    What our own chat loaded it has written down itself; what it merely read, it has not.
    """
    runs = runs_of(trace, version_of)
    return [run for run in runs if trace.host != OWN_HOST or run.read]


def _views(trace: Trace) -> dict[str, int]:
    """How often files beside a SKILL.md were opened, by skill."""
    found: dict[str, int] = {}
    for call in trace.each_call():
        if call.kind != "read" or call.failed:
            continue
        for skill in dict.fromkeys(filter(None, map(skill_of_support_file, paths_of(call)))):
            found[skill] = found.get(skill, 0) + 1
    return found


def _has_skills(connection: sqlite3.Connection, host: str, session: str) -> bool:
    """Whether a skill was loaded in a stored session; most are not gone through for that."""
    row = connection.execute(
        "SELECT 1 FROM turns JOIN sessions ON session_id = sessions.id"
        " WHERE host = ? AND session = ? AND skills != '[]' LIMIT 1",
        (host, session),
    ).fetchone()
    return row is not None
