"""Reading a database that belongs to another program, without disturbing it.

Owns the ways in: read-only; a copy when its owner holds it locked, or when its write-ahead log
cannot be used where it lies (a read-only disk). Nothing is ever written beside the original but
what SQLite itself needs to share it.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

WAIT_SECONDS = 1.0
MAX_VALUE = 16 * 1024 * 1024
"""Longer values are not fetched; the hosts' queries ask for their length first."""


@contextmanager
def open_foreign(path: str, passed: Callable[[str], None]) -> Iterator[sqlite3.Connection]:
    """The database at `path`, for reading. Raises `OSError` or `sqlite3.Error`."""
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    connection = _try(path, "mode=ro")
    if connection is not None:
        with _closing(connection):
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        passed("locked")
        with _closing(_copied(path, folder)) as connection:
            yield connection


def _try(path: str, options: str) -> sqlite3.Connection | None:
    """A connection that has read something, or None: many faults show only at the first read."""
    connection = sqlite3.connect(
        f"file:{quote(path)}?{options}", uri=True, timeout=WAIT_SECONDS, isolation_level=None
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except UnicodeDecodeError:  # the error names a damaged table
        connection.close()
        return None
    except sqlite3.DatabaseError as error:
        connection.close()
        if (error.sqlite_errorcode or 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise
        return None
    # What is not UTF-8 is shown as such, not raised.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.row_factory = sqlite3.Row
    return connection


def _copied(path: str, folder: str) -> sqlite3.Connection:
    """A copy with its log or journal, opened for writing so that SQLite can recover it."""
    copy = os.path.join(folder, "copy.db")
    for suffix in ("", "-wal", "-journal"):
        if os.path.isfile(path + suffix):
            shutil.copyfile(path + suffix, copy + suffix)
    connection = _try(copy, "mode=rw") or _try(copy, "immutable=1")
    if connection is None:
        raise sqlite3.DatabaseError(f"{path} cannot be read, nor a copy of it")
    return connection


@contextmanager
def _closing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("it says what is wrong in bytes that are no text") from error
    finally:
        connection.close()


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """The names of the columns of `table`; empty when there is no such table."""
    return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
