"""The base of hosts that keep their sessions in an SQLite database, found and read by id.

A session that changed is read anew: rows are updated in place, so there is no place to go on from.

Owns the ways into a database of another program without disturbing it: read-only; a copy when its
owner holds it locked, or when its write-ahead log cannot be used where it lies (a read-only disk).
Nothing is ever written beside the original but what SQLite itself needs to share it.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from tacit.base.atomic_files import TemporaryFolder
from tacit.traces.host import Host, Source, ignore, open_as_it_is, plain_files

if TYPE_CHECKING:
    from tacit.traces.assembler import Assembler


WAIT_SECONDS = 1.0
MAX_VALUE = 16 * 1024 * 1024
"""Longer values are not fetched; the hosts' queries ask for their length first."""


@contextmanager
def open_foreign(path: str, passed: Callable[[str], None]) -> Iterator[sqlite3.Connection]:
    """The database at `path`, for reading. Raises `OSError` or `sqlite3.Error`."""
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    connection = _try_open(path, "mode=ro")
    if connection is not None:
        with _closing(connection):
            yield connection
        return
    with TemporaryFolder() as folder:
        passed("locked")
        with _closing(_copied(path, folder)) as connection:
            yield connection


def _try_open(path: str, options: str) -> sqlite3.Connection | None:
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
    connection = _try_open(copy, "mode=rw") or _try_open(copy, "immutable=1")
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


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """The names of the columns of `table`; empty when there is no such table."""
    return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


class SqliteHost(Host):
    """A subclass names the file and the query for its sessions, and reads one from a connection."""

    file: ClassVar[str]
    """Where the database lies, below `home`."""
    listing: ClassVar[str]
    """A query for the id and the time of change, in seconds, of every session, by time."""
    version: ClassVar[str]
    """A query for texts that change when the session `?` does."""
    needs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The columns that are read, by table."""

    def rows(
        self, connection: sqlite3.Connection, session: str, into: "Assembler"
    ) -> Iterator[None]:
        """Tell `into` what the session's rows say; yield after each message."""
        raise NotImplementedError

    def homes(self) -> list[str]:
        home = os.path.dirname(self._file())
        return [home] if os.path.isdir(home) else []

    def fault(self) -> str:
        if not os.path.isfile(self._file()):
            return ""
        try:
            # Its tables are as they are, also where it is locked: that needs no copy.
            connection = _try_open(self._file(), "mode=ro") or _try_open(
                self._file(), "immutable=1"
            )
            if connection is None:
                return f"{self._file()} is damaged"
            with _closing(connection):
                there = {table: columns_of(connection, table) for table in self.needs}
        except (OSError, sqlite3.Error) as error:
            return f"{self._file()} cannot be read: {error}"
        tables = [table for table, columns in there.items() if not columns]
        gone = [
            f"{table}.{column}"
            for table, columns in self.needs.items()
            for column in columns
            if there[table] and column not in there[table]
        ]
        lacks = [f"the table {name}" for name in tables] + [f"the column {name}" for name in gone]
        return f"{self._file()} lacks {', '.join(lacks)}" if lacks else ""

    def find(self) -> Iterator[Source]:
        if os.path.isfile(self._file()):
            yield from self._listed(self._file())

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            wanted = os.path.basename(self.file)
            found = [file for file in plain_files(path) if os.path.basename(file) == wanted]
        else:
            found = [path]
        for file in found:
            if _is_sqlite(file):
                yield from self._listed(file)

    def stamp(self, source: Source) -> str:
        try:
            with open_foreign(source.path, ignore) as connection:
                found = connection.execute(self.version, {"session": source.key}).fetchone()
                return "" if found is None else ":".join(str(value) for value in found)
        except (OSError, sqlite3.Error):
            return ""

    def read(self, source: Source, start: int, into: "Assembler") -> Iterator[None]:
        with open_foreign(source.path, into.passed) as connection:
            try:
                yield from self.rows(connection, source.key, into)
            except (IndexError, KeyError, TypeError, ValueError):  # a column that is not there
                into.passed("host-error")

    def _file(self) -> str:
        return self.home.below(self.file).resolve()

    def _listed(self, path: str, query: str = "", *given: str) -> Iterator[Source]:
        try:
            with open_foreign(path, ignore) as connection:
                found = connection.execute(query or self.listing, given).fetchall()
        except (OSError, sqlite3.Error):
            return
        for session, changed in found:
            if isinstance(session, str):
                modified = float(changed) if isinstance(changed, int | float) else 0.0
                yield Source(self.name, path, session, 0, modified)


def _is_sqlite(path: str) -> bool:
    try:
        with open_as_it_is(path) as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False
