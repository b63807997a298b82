"""tacit.db: opening it, and bringing its tables up to date.

Owns how a connection behaves (WAL, foreign keys, a wait while another process writes) and the
table `migrations`. Each layer owns its own tables and hands its numbered steps to `migrate`. A
step that was released is never edited; a change is a further step. A file beside tacit.db holds the
number that it was given when it was made, so that one that was emptied or deleted, and made anew by
whoever came next, is noticed.
"""

import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.errors import Busy, Damaged, Newer, TacitError, Unwritable
from tacit.base.paths import make_private

DATABASE_FILE = "tacit.db"
_NUMBER = ".number"
WAIT_SECONDS = 10.0

_TABLE = """CREATE TABLE IF NOT EXISTS migrations (
  layer TEXT NOT NULL, number INTEGER NOT NULL, applied TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (layer, number)) STRICT"""


def default_path() -> str:
    """Where tacit.db lies for this user."""
    return os.path.join(paths.folders().data, DATABASE_FILE)


def move_aside(path: str, aside: str) -> None:
    """Rename a database, and what SQLite keeps beside it. Nothing there is fine."""
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(path + ending):
            os.replace(path + ending, aside + ending)


def connect(
    path: str | None = None,
    *,
    wait: float = WAIT_SECONDS,
    tables: Sequence[tuple[str, Sequence[str]]] = (),
) -> sqlite3.Connection:
    """Open the database at `path`, else the user's tacit.db, making it when it is not there.

    `tables` are made where they are missing: layers with their steps, as for `migrate`. The
    connection is in autocommit mode (use `transaction`), belongs to the thread that opened it and
    gives rows that can be read by name; whoever opens it closes it: use `opened` where you can.
    Raises `Damaged`, `Busy`, `Unwritable` or `Newer`.
    """
    path = path or default_path()
    with explain_errors(path):
        make_private(os.path.dirname(os.path.abspath(path)))
        # SQLite would make it readable by all; sessions are nobody else's business. What it
        # keeps beside the database (-wal, -shm) takes over these permissions.
        _create(path)
        connection = sqlite3.connect(path, timeout=wait, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            _use_wal(connection, wait)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            # What is deleted is overwritten; by itself SQLite does so on some systems only.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if os.path.basename(path) == DATABASE_FILE:
                _give_number(connection, path)
            for layer, steps in tables:
                migrate(connection, layer, steps)
        except BaseException:
            connection.close()
            raise
    return connection


def _give_number(connection: sqlite3.Connection, path: str) -> None:
    """Give a database that is new a number, and write it beside it unless one is there already."""
    if number_of(connection):
        return
    with transaction(connection):
        if not number_of(connection):
            import secrets

            connection.execute(f"PRAGMA user_version = {1 + secrets.randbelow(2**31 - 2)}")
    if not os.path.exists(path + _NUMBER):
        write_number(connection, path)


def number_of(connection: sqlite3.Connection) -> int:
    """The number that a database was given when it was made; 0 for none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def write_number(connection: sqlite3.Connection, path: str) -> None:
    """From now on the database that is there is the one that should be there."""
    with suppress(TacitError):
        write_atomic(path + _NUMBER, b"%d\n" % number_of(connection))


def expected_number(path: str) -> int:
    """The number of the database that should be there; 0 where that is not known."""
    try:
        with open(path + _NUMBER, "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def rescue(
    source: str, target: sqlite3.Connection, *, skip: Collection[str] = ()
) -> dict[str, int]:
    """Copy what can be read of the tables of the database at `source`, except `skip`, and make
    those that `target` lacks; how many rows could not be read, by table.

    A row that is there already stays as it is. What a full-text index keeps is left out.
    """
    lost: dict[str, int] = {}
    known = {row[0] for row in target.execute("SELECT name FROM sqlite_master")}
    with closing(sqlite3.connect(source, isolation_level=None)) as damaged:
        schema = _schema(damaged)
        virtual = tuple(f"{name}_" for name, _, sql in schema if sql.startswith("CREATE VIRTUAL"))
        for name, kind, statement in schema:
            own = name in skip or name.startswith(("sqlite_", *virtual))
            if own or statement.startswith("CREATE VIRTUAL"):
                continue
            with suppress(sqlite3.Error):  # an index of a table that was left out
                if name not in known:
                    target.execute(statement)
            if kind == "table" and (missing := _copy_rows(damaged, target, name)):
                lost[name] = missing
    return lost


def _schema(damaged: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Name, kind and statement of each table and index, tables first; none where it is unread."""
    try:
        return damaged.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC"
        ).fetchall()
    except sqlite3.Error:
        return []


def _copy_rows(damaged: sqlite3.Connection, target: sqlite3.Connection, table: str) -> int:
    """Copy from both ends up to the damage; how many rows are missing."""
    found: set[tuple[object, ...]] = set()
    width = len(target.execute(f'PRAGMA table_info("{table}")').fetchall())
    marks = ", ".join("?" * width)
    with transaction(target):
        for order in ("", "ORDER BY rowid DESC", "ORDER BY 1 DESC"):
            with suppress(sqlite3.Error):
                for row in damaged.execute(f'SELECT * FROM "{table}" {order}'):  # noqa: S608
                    found.add(tuple(row))
                    target.execute(f'INSERT OR IGNORE INTO "{table}" VALUES ({marks})', row)  # noqa: S608
                break
    with suppress(sqlite3.Error):
        counted = damaged.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608
        return max(0, int(counted) - len(found))
    return 0


@contextmanager
def opened(
    *tables: tuple[str, Sequence[str]], path: str | None = None, wait: float = WAIT_SECONDS
) -> Iterator[sqlite3.Connection]:
    """As `connect`, for a `with` block: closed at its end, and SQLite's errors in it explained."""
    with closing(connect(path, wait=wait, tables=tables)) as connection:
        try:
            yield connection
        except sqlite3.Error as error:
            raise explain(error, path or default_path()) from error


def migrate(connection: sqlite3.Connection, layer: str, steps: Sequence[str]) -> None:
    """Apply those of `steps` that `layer` has not seen yet; step 1 is `steps[0]`.

    Each step and its record land together or not at all. Two processes may do this at once: one
    applies a step, the other waits and then finds it done. A step may hold several statements,
    but no BEGIN or COMMIT. Raises `Newer` when the database knows more steps than are given.
    """
    with explain_errors(path_of(connection)):
        if _applied(connection, layer, missing_table=True) == len(steps):
            return  # the usual case: no write lock is taken
        while True:
            with transaction(connection):
                connection.execute(_TABLE)
                done = _applied(connection, layer)
                if done > len(steps):
                    raise Newer(
                        f"{path_of(connection)} was written by a newer tacit: its {layer} tables"
                        f" are at step {done}, this tacit knows {len(steps)}",
                        "upgrade: pip install --upgrade tacit",
                    )
                if done == len(steps):
                    return
                for statement in _statements(steps[done]):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO migrations (layer, number) VALUES (?, ?)", (layer, done + 1)
                )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A write transaction for a `with` block: all of it lands, or, on any exception, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Writes:
    """The write transactions on one connection, with SQLite's errors explained."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._joined = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """A transaction for a `with` block; inside of `together`, a part of that one."""
        if self._joined:
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            yield
            return
        with explain_errors(path_of(self._connection)), transaction(self._connection):
            yield

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written in a `with` block lands together or not at all, quicker than one by one.

        Nobody else can write from the first of it on, so let it be little.
        """
        self._joined = True
        try:
            with explain_errors(path_of(self._connection)):
                yield
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
        finally:
            self._joined = False
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn what SQLite or the system raises in a `with` block into an error a person can use."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error


def explain(error: sqlite3.Error | OSError, path: str) -> TacitError:
    """The error that a person can use for what SQLite or the system raised."""
    if isinstance(error, OSError):
        return Unwritable(
            f"cannot open {path}: {error.strerror or error}", "check the permissions of its folder"
        )
    if os.path.isdir(path):
        return Damaged(
            f"{path} is damaged: a folder stands in its place", "run: tacit doctor --fix"
        )
    # The low byte is the primary code; the rest says which kind of it.
    match (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Busy(f"another process has been writing {path} for too long", "try again")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return Damaged(f"{path} is damaged: {error}", "run: tacit doctor --fix")
        case (
            sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_READONLY
            | sqlite3.SQLITE_FULL
            | sqlite3.SQLITE_IOERR
            | sqlite3.SQLITE_PERM
        ):
            return Unwritable(
                f"cannot use {path}: {error}", "check the free space and the permissions there"
            )
    return Damaged(f"{path} does not hold what it should: {error}", "run: tacit doctor --fix")


def _create(path: str) -> None:
    """Make the file, private, where it is missing. One that exists must not even be opened.

    To close any descriptor of a file lets go of all locks that this process holds on it, SQLite's
    too: a second connection would take the first one's away, and another process that closes the
    database would then delete the log that the first one still writes to.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass


def _use_wal(connection: sqlite3.Connection, wait: float) -> None:
    """Switch to WAL. Two processes that do so at once can both be told "busy" without a wait."""
    until = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = (error.sqlite_errorcode or 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _applied(connection: sqlite3.Connection, layer: str, *, missing_table: bool = False) -> int:
    if (
        missing_table
        and not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'migrations'"
        ).fetchone()
    ):
        return -1
    row = connection.execute(
        "SELECT coalesce(max(number), 0) FROM migrations WHERE layer = ?", (layer,)
    ).fetchone()
    return int(row[0])


def _statements(step: str) -> Iterator[str]:
    """The statements of `step`. (`executescript` would commit the open transaction.)"""
    statement = ""
    for part in step.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip("; \n\t"):
                yield statement
            statement = ""
    if statement.strip("; \n\t"):
        raise ValueError(f"a migration step ends in the middle of a statement: {statement[-80:]}")


def path_of(connection: sqlite3.Connection) -> str:
    return connection.execute("PRAGMA database_list").fetchone()[2] or "the database in memory"
