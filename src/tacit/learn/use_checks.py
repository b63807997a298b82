"""Whether the record of uses can be believed; it is rebuilt from the sessions when not.

What was lost is read again from the stored sessions. Not every use can be found again (a session
may have been dropped), so after a rebuild every skill is met as if for the first time: it may turn
out stale, but it is not archived before its days have passed once more.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from tacit.agent import skill_uses
from tacit.agent.skill_uses import Use
from tacit.base import database
from tacit.base.doctor import Check, Finding
from tacit.base.errors import Damaged, TacitError
from tacit.learn import use_records
from tacit.learn.curate import curation_records
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curation_scope import CurationScope
from tacit.learn.skill_runs import runs_of
from tacit.traces.store import Store
from tacit.traces.trace import OWN_HOST

_SAME_SECONDS = 5.0
"""A use and the activation in its session are written one after the other."""
_TABLES = {
    "uses": skill_uses.STEPS,
    "host_uses": use_records.USE_STEPS,
    "views": use_records.USE_STEPS,
    "recorded": use_records.USE_STEPS,
    "curated": curation_records.CURATION_STEPS,
    "curations": curation_records.CURATION_STEPS,
    "curation_facts": curation_records.CURATION_STEPS,
}


def ensure_use_tables(world: CurationScope, store: Store) -> tuple[str, ...]:
    """Bring the tables of uses up to date, and rebuild them when they are damaged.

    What was done about damage, in words; nothing when there was none. Raises `Damaged` where the
    database as a whole cannot be read: then nobody knows what was used, and nothing may be put
    away.
    """
    connection = store.connection
    with database.explain_errors(world.database):
        said = use_tables_trouble(connection)
        if not said:
            use_records.catch_up(store)
            return ()
        rebuild_use_tables(store)
        return (f"the record of uses was damaged ({said}); it was made again from the sessions",)


def rebuild_use_tables(store: Store) -> None:
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
    use_records.catch_up(store)
    _find_own(store)


def use_tables_trouble(connection: sqlite3.Connection) -> str:
    """What is wrong with the tables, or an empty text."""
    use_records.prepare_use_tables(connection)
    book = CurationRecords(connection)
    try:
        for table in _TABLES:
            found = connection.execute(f"PRAGMA integrity_check('{table}')").fetchone()[0]
            if found != "ok":
                return f"{table}: {found}"
        rows = len(use_records.uses_of(connection))
        use_records.views_of(connection)
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
        "SELECT session FROM sessions WHERE host = ?", (OWN_HOST,)
    ).fetchall()
    for session in sessions:
        trace = store.trace(f"{OWN_HOST}:{session['session']}")
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


def check_uses() -> list[Finding]:
    """The tables of uses hold what they should."""
    from tacit.traces.store import Store

    if not os.path.exists(database.default_path()):
        return []
    try:
        with Store.open() as store:
            said = use_tables_trouble(store.connection)
    except (TacitError, sqlite3.Error):
        return []  # the whole file is damaged, which its own check says
    if not said:
        return []
    fix = "make it again from the sessions; no skill is archived before its days have passed anew"
    return [Finding("uses", f"the record of uses is damaged: {said}", fix, _make_again)]


CHECKS: tuple[Check, ...] = (check_uses,)


def _make_again() -> None:
    from tacit.traces.store import Store

    with Store.open() as store:
        rebuild_use_tables(store)
