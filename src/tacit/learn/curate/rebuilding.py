"""Tables of uses that can be believed: looked through before each run, and made again when not.

What was lost is read again from the stored sessions; when skills were made and edited stands in
their history anyway. Not every use can be found again (a session may have been dropped), so after
a rebuilding every skill is met as if for the first time: it may turn out stale, and it is not
archived before its days have passed once more.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from tacit.agent import uses as own
from tacit.agent.uses import Use
from tacit.base import database
from tacit.base.errors import Damaged
from tacit.learn import recording
from tacit.learn.curate import book as books
from tacit.learn.curate.book import Book
from tacit.learn.curate.world import World
from tacit.learn.usage import runs_of
from tacit.traces.store import Store

_SAME_SECONDS = 5.0
"""A use and the activation in its session are written one after the other."""
_TABLES = {
    "uses": own.STEPS,
    "host_uses": recording.STEPS,
    "views": recording.STEPS,
    "recorded": recording.STEPS,
    "curated": books.STEPS,
    "curations": books.STEPS,
    "curation_facts": books.STEPS,
}


def sound_tables(world: World, store: Store) -> tuple[str, ...]:
    """Bring the tables of uses up to date, and rebuild them when they are damaged.

    What was done about damage, in words; nothing when there was none. Raises `Damaged` where the
    database as a whole cannot be read: then nobody knows what was used, and nothing may be put
    away.
    """
    connection = store.connection
    with database.explained(world.database):
        said = trouble(connection)
        if not said:
            recording.catch_up(store)
            return ()
        rebuild(store)
        return (f"the record of uses was damaged ({said}); it was made again from the sessions",)


def rebuild(store: Store) -> None:
    """Make the tables again, from what can still be read and from the stored sessions."""
    connection = store.connection
    with database.transaction(connection):
        _make_missing(connection)
        for row in connection.execute("SELECT * FROM uses").fetchall():
            if _use(row) is None:
                connection.execute("DELETE FROM uses WHERE id = ?", (row["id"],))
        for table in ("host_uses", "recorded", "curated"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608
        connection.execute("DELETE FROM views WHERE session != ''")
        connection.execute("DELETE FROM curation_facts WHERE name = 'uses'")
    recording.catch_up(store)
    _find_own(store)


def trouble(connection: sqlite3.Connection) -> str:
    """What is wrong with the tables, or an empty text."""
    recording.prepare(connection)
    book = Book(connection)
    try:
        for table in _TABLES:
            found = connection.execute(f"PRAGMA integrity_check('{table}')").fetchone()[0]
            if found != "ok":
                return f"{table}: {found}"
        rows = len(recording.uses_of(connection))
        recording.views_of(connection)
        book.noted()
        lost = book.uses() - rows
    except Damaged as error:
        return error.message.removeprefix("the record of uses is damaged: ")
    except msgspec.ValidationError as error:
        return f"a row makes no sense: {error}"
    except sqlite3.OperationalError as error:
        return str(error)
    return f"{lost} of {rows + lost} uses are gone" if lost > 0 else ""


def _make_missing(connection: sqlite3.Connection) -> None:
    for steps in dict.fromkeys(_TABLES.values()):
        for statement in _statements(steps):
            with suppress(sqlite3.OperationalError):  # it is there
                connection.execute(statement)


def _statements(steps: Sequence[str]) -> list[str]:
    return [part.strip() for step in steps for part in step.split(";") if part.strip()]


def _find_own(store: Store) -> None:
    """Put back the uses in our own chat that its stored sessions show."""
    connection = store.connection
    known: dict[tuple[str, str], list[datetime]] = {}
    for row in connection.execute("SELECT * FROM uses").fetchall():
        if (use := _use(row)) is not None:
            known.setdefault((use.session, use.skill), []).append(use.at)
    sessions = connection.execute(
        "SELECT session FROM sessions WHERE host = ?", (recording.OWN,)
    ).fetchall()
    for session in sessions:
        trace = store.trace(f"{recording.OWN}:{session['session']}")
        for run in runs_of(trace):
            at = run.at or trace.head.ended
            if run.read or at is None or _is_among(at, known.get((trace.session, run.skill), [])):
                continue
            failed = sum(step.failed for step in run.steps[: run.answer])
            with database.transaction(connection):
                connection.execute(
                    "INSERT INTO uses (skill, digest, by, at, session, project, calls, failed)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        run.skill,
                        run.digest,
                        run.by,
                        at.isoformat(),
                        trace.session,
                        trace.project,
                        run.answer,
                        failed,
                    ),
                )


def _is_among(at: datetime, known: list[datetime]) -> bool:
    return any(abs((at - other).total_seconds()) <= _SAME_SECONDS for other in known)


def _use(row: sqlite3.Row) -> Use | None:
    try:
        values = {name: row[name] for name in Use.__struct_fields__}
        return msgspec.convert(values, Use)
    except msgspec.ValidationError:
        return None
