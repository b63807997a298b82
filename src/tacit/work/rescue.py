"""Makes tacit.db again when it is damaged, emptied or deleted, from all that there is.

The damaged file is put aside, never deleted. What can be read of it comes first, then the last
daily backup, then the agents' own transcripts. What nothing had any more is said in numbers.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress

from tacit.base import database
from tacit.base.display import counted
from tacit.base.doctor import Check, Finding, database_trouble
from tacit.base.errors import Busy, TacitError
from tacit.base.setting_sections import TraceSettings
from tacit.base.settings import load_settings
from tacit.learn.use_records import rebuild_use_tables
from tacit.traces.skill_uses import prepare_use_tables
from tacit.traces.store import Store
from tacit.work import backup
from tacit.work.intake import open_store, sources, store_session
from tacit.work.presence import worker_lock

_SESSION_TABLES = ("sessions", "turns", "calls", "sources", "turns_text", "counted")
"""Written by way of the store, which also fills the full-text index."""


def check_database() -> list[Finding]:
    """tacit.db is whole, and the one that was there before."""
    try:
        trouble = database_trouble()
    except TacitError as error:
        return [Finding("database", error.message, error.hint)]
    if not trouble:
        return []
    fix = (
        "put it aside and make it again of what can be read of it, of the last daily backup and of"
        " the sessions of your agents; what is lost is said"
    )
    return [Finding("database", trouble, fix, rebuild)]


DATABASE_CHECKS: tuple[Check, ...] = (check_database,)


def rebuild() -> str:
    """Make the database again; what became of what was in it."""
    with worker_lock() as alone:
        if not alone and not os.environ.get("TACIT_WORKER"):
            raise Busy("a worker has tacit.db open", "stop it first: tacit daemon stop, or wait")
        if not database_trouble():
            return ""
        return _rebuild(database.default_path())


def _rebuild(path: str) -> str:
    aside = f"{path}.damaged-{int(time.time())}"
    began_anew = os.path.exists(path) and not _is_damaged(path)
    known = 0
    lost: dict[str, int] = {}
    if not began_anew:
        database.move_aside(path, aside)
    with open_store(_settings()) as store:
        if not began_anew and os.path.isfile(aside):
            lost = database.rescue(aside, store.connection, skip=_SESSION_TABLES)
            known = _copy_sessions(aside, store)
        with backup.latest_database() as kept:
            if kept:
                database.rescue(kept, store.connection, skip=_SESSION_TABLES)
        imported = _import(store)
        prepare_use_tables(store.connection)
        rebuild_use_tables(store)
        here = sum(store.counts().values())
        database.write_number(store.connection, path)
    said = [f"{counted(here, 'session')} there now, {imported} of them read from transcripts"]
    if known > here:
        said.append(f"{counted(known - here, 'session')} lost")
    said += [f"{counted(number, 'row')} of {table} lost" for table, number in sorted(lost.items())]
    if not kept and (began_anew or not _has_tables(aside)):
        said.append("what waited in the inbox, what was reviewed and what was spent is lost")
    if not began_anew and os.path.exists(aside):
        said.append(f"the damaged file is {aside}")
    return "; ".join(said)


def _is_damaged(path: str) -> bool:
    with suppress(TacitError, sqlite3.Error), closing(database.connect(path)) as connection:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    return True


def _has_tables(path: str) -> bool:
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as damaged:
        return bool(damaged.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    return False


def _copy_sessions(aside: str, store: Store) -> int:
    """Copy the sessions that can be read; how many there were, as far as that can be told."""
    known = 0
    with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        with suppress(sqlite3.Error):
            known = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        try:
            damaged = Store(connection)
        except (sqlite3.Error, TacitError):
            return known
        for name in _names(connection):
            with suppress(sqlite3.Error, TacitError, ValueError):
                store.write(damaged.trace(name))
    return known


def _names(connection: sqlite3.Connection) -> Iterator[str]:
    for order in ("id", "id DESC"):
        with suppress(sqlite3.Error):
            rows = connection.execute(f"SELECT host, session FROM sessions ORDER BY {order}")  # noqa: S608
            for row in rows:
                yield f"{row['host']}:{row['session']}"
            return


def _import(store: Store) -> int:
    """Take in what the agents still have; how many sessions that were not there."""
    found = 0
    for source in sources():
        with suppress(TacitError, sqlite3.Error, OSError, ValueError):
            written = store_session(store, source, tell=lambda stored: None)
            found += written.status == "new"
    return found


def _settings() -> TraceSettings:
    try:
        return load_settings().settings.traces
    except TacitError:
        return TraceSettings()
