"""Where the queues are: jobs.db in the data folder, or a PostgreSQL that many machines share.

Opens and looks, without the engine: what is said of an address that cannot be used, a server that
is down or a damaged file, and whether there is anything to do at all. The tables are the engine's
own; of them only the state of each job and when it is due are read here.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from tacit.base import database, paths
from tacit.base.errors import BadConfig, Damaged, MissingExtra, Unwritable

LIVE = ("PENDING", "ENQUEUED", "DELAYED")
"""What the engine calls a run that is not over."""
SCHEMA = "tacit"
"""The schema in PostgreSQL that holds the engine's tables."""
_CONNECT = 5
"""Seconds to wait for a server."""


class Unreachable(Unwritable):
    """The server that holds the queues does not answer."""


class Place(msgspec.Struct, frozen=True):
    """Where the queues are."""

    url: str
    """As the engine takes it."""
    path: str = ""
    """The file, if it is one."""

    @property
    def shared(self) -> bool:
        """Whether other machines may work on the same queues."""
        return not self.path

    @property
    def shown(self) -> str:
        """For a person: without the password."""
        if self.path:
            return paths.shorten(self.path)
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit((parts.scheme, user + host, parts.path, "", ""))


class Ahead(msgspec.Struct, frozen=True):
    """What the queues hold that is not over."""

    ready: int = 0
    """Jobs that run, or could begin now."""
    delayed: int = 0
    due: float = 0.0
    """When the first delayed one is due, in seconds since 1970; 0 if there is none."""


def place() -> Place:
    """Where the queues are, by `TACIT_DATABASE_URL`. Raises `BadConfig`."""
    url = os.environ.get("TACIT_DATABASE_URL", "").strip()
    if not url:
        path = os.path.join(paths.folders().data, "jobs.db")
        return Place(f"sqlite:///{path}", path)
    try:
        parts = urlsplit(url)
        scheme, name, _ = parts.scheme, parts.path.strip("/"), parts.port
    except ValueError as error:
        raise _bad(str(error)) from error
    if scheme not in ("postgresql", "postgres"):
        raise _bad(f"it begins with '{scheme or url[:12]}'")
    if not name:
        raise _bad("it names no database")
    return Place("postgresql" + url[len(scheme) :])


def check(where: Place) -> None:
    """See that the queues can be used, and make what is missing of a file.

    Raises `Damaged`, `Busy`, `Unwritable`, `Unreachable` or `BadConfig`.
    """
    with opened(where):
        return


def inspect(where: Place) -> str:
    """Empty, or what is wrong inside a file that can be opened. Raises as `check` does."""
    with opened(where) as connection:
        if where.shared:
            return ""
        said = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    return "" if said == ["ok"] else "; ".join(said)


def made(where: Place) -> bool:
    """Whether the engine has been here. Raises as `check` does."""
    if where.path and not os.path.exists(where.path):
        return False
    with opened(where) as connection:
        return _exists(where, connection)


def ahead(where: Place, queues: Collection[str] = (), name: str = "") -> Ahead:
    """What there is to do, without starting the engine. Raises as `check` does.

    With `queues` and the `name` of a worker, only what that worker does or could do.
    """
    if where.path and not os.path.exists(where.path):
        return Ahead()
    with opened(where) as connection:
        if not _exists(where, connection):
            return Ahead()
        rows = connection.execute(_AHEAD.format(table=_table(where))).fetchall()
    now = time.time() * 1000
    ready = delayed = 0
    due = 0.0
    for status, queue, worker, moment, count in rows:
        if queues and (worker != name if status == "PENDING" else queue not in queues):
            continue
        if status == "DELAYED" and (moment or 0) > now:
            delayed += count
            due = min(due or moment, moment)
        else:
            ready += count
    return Ahead(ready, delayed, due / 1000)


def states(where: Place, ids: Sequence[str] = ()) -> dict[str, str]:
    """The state of each of the engine's runs, or of those in `ids`, by id. Raises as `check`."""
    if where.path and not os.path.exists(where.path):
        return {}
    with opened(where) as connection:
        if not _exists(where, connection):
            return {}
        mark = "%s" if where.shared else "?"
        only = f" WHERE workflow_uuid IN ({', '.join([mark] * len(ids))})" if ids else ""
        query = f"SELECT workflow_uuid, status FROM {_table(where)}{only}"  # noqa: S608
        return dict(connection.execute(query, tuple(ids)).fetchall())


def running(where: Place, name: str) -> list[str]:
    """The runs that the worker `name` is said to be doing. Raises as `check` does."""
    with opened(where) as connection:
        mark = "%s" if where.shared else "?"
        query = (
            f"SELECT workflow_uuid FROM {_table(where)}"  # noqa: S608
            f" WHERE status = 'PENDING' AND executor_id = {mark}"
        )
        return [row[0] for row in connection.execute(query, (name,)).fetchall()]


_AHEAD = (
    "SELECT status, queue_name, executor_id, delay_until_epoch_ms, count(*) FROM {table}"
    " WHERE status IN ('PENDING', 'ENQUEUED', 'DELAYED') GROUP BY 1, 2, 3, 4"
)


def has_engine() -> bool:
    """Whether the engine is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec("dbos") is not None


def need_engine(what: str) -> None:
    if not has_engine():
        raise MissingExtra("work", what)


def opened(where: Place) -> AbstractContextManager[Any]:
    """A connection to what holds the queues, for a `with` block. Raises as `check` does."""
    return _server(where) if where.shared else _file(where.path)


def _table(where: Place) -> str:
    return f"{SCHEMA}.workflow_status" if where.shared else "workflow_status"


def _exists(where: Place, connection: Any) -> bool:
    """Whether the engine has made its tables."""
    if where.shared:
        row = connection.execute("SELECT to_regclass(%s)", (_table(where),)).fetchone()
        return row is not None and row[0] is not None
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'")
    return found.fetchone() is not None


@contextlib.contextmanager
def _file(path: str) -> Iterator[sqlite3.Connection]:
    """jobs.db, opened so that faults come as our errors with what to do about them."""
    try:
        with contextlib.closing(database.connect(path)) as connection, database.explained(path):
            yield connection
    except Damaged as error:
        raise Damaged(
            f"the queue of jobs cannot be read: {error.message}",
            "mend it, and what was asked for is asked again: tacit doctor --fix",
        ) from error


@contextlib.contextmanager
def _server(where: Place) -> Iterator[Any]:
    need_engine("a shared queue of jobs")
    import psycopg

    try:
        connection = psycopg.connect(where.url, connect_timeout=_CONNECT, autocommit=True)
    except psycopg.ProgrammingError as error:
        raise _bad(_first(error)) from error
    except psycopg.OperationalError as error:
        raise Unreachable(
            f"the queue of jobs at {where.shown} cannot be reached: {_first(error)}",
            "start that server, or unset TACIT_DATABASE_URL to use this machine's own",
        ) from error
    with contextlib.closing(connection):
        try:
            yield connection
        except psycopg.Error as error:
            raise Unwritable(
                f"the queue of jobs at {where.shown} cannot be used: {_first(error)}",
                "check the rights of that user, or unset TACIT_DATABASE_URL",
            ) from error


def _first(error: Exception) -> str:
    """The line that says what it is; servers also say where they looked."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _bad(why: str) -> BadConfig:
    return BadConfig(
        f"TACIT_DATABASE_URL cannot be used: {why}",
        "write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE",
    )
