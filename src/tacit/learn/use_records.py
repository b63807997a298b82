"""The record of uses and views of skills, derived from the stored sessions of every agent.

A session is recorded whole, in place of what was recorded of it before, so a session that grew, or
that is met twice, counts once. The tables are `traces/skill_uses.py`'s.

Also owns whether the record can be believed, and rebuilds it when not. Not every use can be found
again then, so every skill is met as if for the first time: it may turn out stale, but it is not
archived before its days have passed once more.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from tacit.base import database, paths
from tacit.base.doctor import Check, Finding
from tacit.base.errors import Damaged, TacitError
from tacit.changes.place import project_place, user_place
from tacit.learn.curate.curation_records import CURATION_STEPS, CurationRecords
from tacit.traces.skill_uses import (
    USE_STEPS,
    USE_TABLES,
    Use,
    prepare_use_tables,
    uses_of,
    views_of,
)
from tacit.traces.store import Store
from tacit.traces.tool_calls import skill_of_support_file
from tacit.traces.trace import Trace

if TYPE_CHECKING:
    from tacit.learn.skill_runs import SkillRun, VersionOf

_CHECKED_TABLES = (*USE_TABLES, "curated", "curations", "curation_facts")
_STORED_SESSIONS = "SELECT host || ':' || session FROM sessions"


def catch_up(store: Store, versions_in: "Callable[[str], VersionOf] | None" = None) -> list[str]:
    """Record every session that is new or grew since it was last recorded; their ids.

    Those of our own chat are stored first: no worker need have run since. Idempotent, also after a
    kill: a session's uses and the mark that it was recorded land together.
    """
    prepare_use_tables(store.connection)
    store.take_in_own()
    if _is_caught_up(store.connection):
        return []
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


def _is_caught_up(connection: sqlite3.Connection) -> bool:
    """Whether as many sessions were recorded as are stored, at the same times in all. To look for
    each takes four times as long, and mostly there is nothing new."""
    counted = "SELECT count(*), sum(CAST(stored * 1000 AS INTEGER)) FROM"
    rows = [connection.execute(f"{counted} {table}") for table in ("sessions", "recorded")]
    stored, recorded = (tuple(row.fetchone()) for row in rows)
    return stored == recorded


def record_uses(
    store: Store, session: str, versions_in: "Callable[[str], VersionOf] | None" = None
) -> int:
    """Record the uses in one stored session, in place of what was recorded of it; how many."""
    from tacit.learn.review.review_triggers import is_background_work
    from tacit.learn.skill_runs import runs_of

    connection = store.connection
    prepare_use_tables(connection)
    head = store.find(session).head
    session = f"{head.host}:{head.session}"
    trace = Trace(head)
    if _has_skills(connection, head.host, head.session) and not is_background_work(head):
        trace = store.trace(session)
    runs = runs_of(trace, (versions_in or versions_for)(head.project))
    at = head.ended or head.started or datetime.now(UTC)
    with database.transaction(connection):
        _write_uses(connection, session, runs, at)
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


def _write_uses(
    connection: sqlite3.Connection, session: str, runs: "Sequence[SkillRun]", at: datetime
) -> None:
    # One that could be told when the session was first met may not be any more: the file has
    # changed since. So a version that is known stays.
    known = {
        (row["turn"], row["skill"]): row["digest"]
        for row in connection.execute(
            "SELECT turn, skill, digest FROM uses WHERE session = ?", (session,)
        )
    }
    connection.execute("DELETE FROM uses WHERE session = ?", (session,))
    connection.executemany(
        "INSERT OR REPLACE INTO uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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


def versions_for(project: str) -> "VersionOf":
    """Who knows the versions of skills that a session in `project` could have loaded."""
    from tacit.learn.skill_runs import SkillVersions

    places = [user_place()]
    if project:
        places.insert(0, project_place(project))
    return SkillVersions(places, paths.folders().data).at


def _views(trace: Trace) -> dict[str, int]:
    """How often files beside a SKILL.md were opened, by skill."""
    from tacit.traces.observations import paths_of

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


def ensure_use_tables(store: Store, path: str) -> tuple[str, ...]:
    """Bring the tables of uses in the database at `path` up to date; rebuild damaged ones.

    What was done about damage, in words; nothing when there was none. Raises `Damaged` where the
    database as a whole cannot be read: then nobody knows what was used, and nothing may be
    archived.
    """
    with database.explain_errors(path):
        trouble = use_tables_trouble(store.connection)
        if not trouble:
            catch_up(store)
            return ()
        rebuild_use_tables(store)
        return (f"the record of uses was damaged ({trouble}); it was made again from the sessions",)


def rebuild_use_tables(store: Store) -> None:
    """Make the tables again from the stored sessions; what forgotten ones left is kept."""
    connection = store.connection
    with database.transaction(connection):
        _make_missing(connection)
        for row in connection.execute("SELECT * FROM uses").fetchall():
            if not _is_use(row):
                key = (row["session"], row["turn"], row["skill"])
                connection.execute("DELETE FROM uses WHERE (session, turn, skill) = (?, ?, ?)", key)
        connection.execute(f"DELETE FROM uses WHERE session IN ({_STORED_SESSIONS})")  # noqa: S608
        connection.execute("DELETE FROM views WHERE session != ''")
        connection.execute("DELETE FROM recorded")
        connection.execute("DELETE FROM curated")
        connection.execute("DELETE FROM curation_facts WHERE name = 'recorded_uses'")
    catch_up(store)


def use_tables_trouble(connection: sqlite3.Connection) -> str:
    """What is wrong with the tables, or an empty text."""
    prepare_use_tables(connection)
    records = CurationRecords(connection)
    try:
        for table in _CHECKED_TABLES:
            found = connection.execute(f"PRAGMA integrity_check('{table}')").fetchone()[0]
            if found != "ok":
                return f"{table}: {found}"
        rows = len(uses_of(connection))
        views_of(connection)
        records.skills()
        lost = records.uses() - rows
    except Damaged as error:
        return error.message.removeprefix("the record of uses is damaged: ")
    except msgspec.ValidationError as error:
        return f"a row makes no sense: {error}"
    except sqlite3.OperationalError as error:
        return str(error)
    return f"{lost} of {rows + lost} uses are gone" if lost > 0 else ""


def _make_missing(connection: sqlite3.Connection) -> None:
    """Make every table and index that an undamaged database has."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        database.migrate(sound, "usage", USE_STEPS)
        database.migrate(sound, "curate", CURATION_STEPS)
        for (statement,) in sound.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
            with suppress(sqlite3.OperationalError):  # it is there
                connection.execute(statement)


def _is_use(row: sqlite3.Row) -> bool:
    try:
        msgspec.convert(dict(row), Use)
    except msgspec.ValidationError:
        return False
    return True


def check_uses() -> list[Finding]:
    """The tables of uses hold what they should."""
    if not os.path.exists(database.default_path()):
        return []
    try:
        with Store.open() as store:
            trouble = use_tables_trouble(store.connection)
    except (TacitError, sqlite3.Error):
        return []  # the whole file is damaged, which its own check says
    if not trouble:
        return []
    fix = "make it again from the sessions; no skill is archived before its days have passed anew"
    return [Finding("uses", f"the record of uses is damaged: {trouble}", fix, _make_again)]


CHECKS: tuple[Check, ...] = (check_uses,)


def _make_again() -> None:
    with Store.open() as store:
        rebuild_use_tables(store)
