"""The database of the job queue: jobs.db in the data folder, or a PostgreSQL that machines share.

Owns where it is, opening it with errors that say what to do, making and upgrading the file in
one step, and reading DBOS's own tables. They are read directly because importing DBOS takes most
of a second, which a command or an idle worker must not pay; where the tables are not as they are
known here, DBOS is asked instead. Everything that depends on how DBOS works inside is here: its
tables, what it calls its states, one private call, what its queue threads wait for, and one line of
its log; a test names what an installed DBOS lacks of these. Starting it, and queueing with it, is
left to `engine`.
"""

import contextlib
import os
import sqlite3
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import msgspec

from tacit.base import database, paths
from tacit.base.errors import BadConfig, Damaged, MissingExtra, TacitError, Unwritable
from tacit.base.job import JobResult
from tacit.work.job_kinds import Ticket

State = Literal["waiting", "queued", "running", "put off", "done", "failed", "cancelled", "stuck"]
STATES: dict[str, State] = {
    "ENQUEUED": "queued",
    "PENDING": "running",
    "DELAYED": "put off",
    "SUCCESS": "done",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "stuck",
}
"""What a run is called here, by the engine's own word."""
LIVE_STATUSES = ("PENDING", "ENQUEUED", "DELAYED")
"""What the engine calls a run that is not over."""
POLL_FAILED = "Exception encountered in queue thread"
"""How the engine's log begins to say that it could not look into a queue: it says so nowhere else,
and tries again for ever."""
SCHEMA = "tacit"
"""The schema in PostgreSQL that holds the engine's tables."""
_CONNECT = 5
"""Seconds to wait for a server."""


class Unreachable(Unwritable):
    """The server that holds the queues does not answer."""


class Address(msgspec.Struct, frozen=True):
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
    def name(self) -> str:
        """What the ledger calls it; the file is always the one beside tacit.db."""
        return os.path.basename(self.path) or self.shown

    @property
    def shown(self) -> str:
        """For a person: without the password."""
        if self.path:
            return paths.with_tilde(self.path)
        from urllib.parse import urlsplit, urlunsplit

        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit((parts.scheme, user + host, parts.path, "", ""))


class Backlog(msgspec.Struct, frozen=True):
    """What the queues hold that is not over."""

    ready: int = 0
    """Jobs that run, or could begin now."""
    delayed: int = 0
    next_due: float = 0.0
    """When the first delayed one is due, in seconds since 1970; 0 if there is none."""


def address() -> Address:
    """Where the queues are, by `TACIT_DATABASE_URL`. Raises `BadConfig`."""
    url = os.environ.get("TACIT_DATABASE_URL", "").strip()
    if not url:
        path = os.path.join(paths.folders().data, "jobs.db")
        return Address(f"sqlite:///{path}", path)
    try:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        scheme, name, _ = parts.scheme, parts.path.strip("/"), parts.port
    except ValueError as error:
        raise _bad(str(error)) from error
    if scheme not in ("postgresql", "postgres"):
        raise _bad(f"it begins with '{scheme or url[:12]}'")
    if not name:
        raise _bad("it names no database")
    return Address("postgresql" + url[len(scheme) :])


def check(address: Address) -> None:
    """See that the queues can be used, and make what is missing of a file.

    Raises `Damaged`, `Busy`, `Unwritable`, `Unreachable` or `BadConfig`.
    """
    with opened(address):
        return


def inspect(address: Address) -> str:
    """Empty, or what is wrong inside a file that can be opened. Raises as `check` does."""
    with opened(address) as connection:
        if address.shared:
            return ""
        faults = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    return "" if faults == ["ok"] else "; ".join(faults)


def is_made(address: Address) -> bool:
    """Whether the engine has been here. Raises as `check` does."""
    if address.path and not os.path.exists(address.path):
        return False
    with opened(address) as connection:
        return _exists(address, connection)


def backlog(address: Address, queues: Collection[str] = (), name: str = "") -> Backlog:
    """What there is to do, without starting the engine. Raises as `check` does.

    With `queues` and the `name` of a worker, only what that worker does or could do.
    """
    if address.path and not os.path.exists(address.path):
        return Backlog()
    with opened(address) as connection:
        if not _exists(address, connection):
            return Backlog()
        rows = connection.execute(
            _BACKLOG.format(table=_table(address), live=LIVE_STATUSES)
        ).fetchall()
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
    return Backlog(ready, delayed, due / 1000)


def run_statuses(address: Address, ids: Sequence[str] = ()) -> dict[str, str]:
    """The state of each of the engine's runs, or of those in `ids`, by id. Raises as `check`."""
    if address.path and not os.path.exists(address.path):
        return {}
    with opened(address) as connection:
        if not _exists(address, connection):
            return {}
        value = "%s" if address.shared else "?"
        only = f" WHERE workflow_uuid IN ({', '.join([value] * len(ids))})" if ids else ""
        query = f"SELECT workflow_uuid, status FROM {_table(address)}{only}"  # noqa: S608
        return dict(connection.execute(query, tuple(ids)).fetchall())


def forgive_kills(address: Address, run: str) -> None:
    """Count the kills of a run from now on: it has got somewhere since. Raises as `check` does."""
    with opened(address) as connection:
        value = "%s" if address.shared else "?"
        query = (
            f"UPDATE {_table(address)} SET recovery_attempts = 1"  # noqa: S608
            f" WHERE workflow_uuid = {value} AND recovery_attempts > 1"
        )
        connection.execute(query, (run,))


def live_jobs(address: Address) -> dict[str, bool]:
    """Every job that the queues know, and whether it is not over. Raises as `check` does."""
    known: dict[str, bool] = {}
    for run, status in run_statuses(address).items():
        job = run.partition(".")[0]
        known[job] = known.get(job, False) or status in LIVE_STATUSES
    return known


def runs_of_worker(address: Address, name: str) -> list[str]:
    """The runs that the worker `name` is said to be doing. Raises as `check` does."""
    with opened(address) as connection:
        value = "%s" if address.shared else "?"
        query = (
            f"SELECT workflow_uuid FROM {_table(address)}"  # noqa: S608
            f" WHERE status = 'PENDING' AND executor_id = {value}"
        )
        return [row[0] for row in connection.execute(query, (name,)).fetchall()]


def workers_with_runs(connection: Any) -> list[str]:
    """The workers that are said to be doing something on a shared queue, over its connection."""
    rows = connection.execute(
        f"SELECT DISTINCT executor_id FROM {SCHEMA}.workflow_status WHERE status = 'PENDING'"  # noqa: S608
    ).fetchall()
    return [name for (name,) in rows if name]


def recover_runs_of(name: str) -> int:
    """Put the runs that the dead worker `name` left back into their queues; how many they are.

    A private call: in public, DBOS recovers only the runs of its own name, when it is started.
    Needs the engine to be running.
    """
    from dbos import DBOS

    return len(DBOS._recover_pending_workflows([name]))


class QueueBell(threading.Event):
    """The event that the engine's queue threads wait for to be stopped, which also wakes them.

    They look into their queues after each wait, so that without it the next job would begin when
    the wait is over. A ring while a thread looks is heard when it waits again.
    """

    rings: Counter[str]
    """By the name of the thread that is meant."""
    heard: dict[str, int]

    def wait(self, timeout: float | None = None) -> bool:
        name, cond = threading.current_thread().name, self._cond  # type: ignore[attr-defined]
        with cond:
            cond.wait_for(
                lambda: self.is_set() or self.heard.get(name) != self._rung(name), timeout
            )
            self.heard[name] = self._rung(name)
            return self.is_set()

    def ring(self, name: str) -> None:
        with self._cond:  # type: ignore[attr-defined]
            self.rings[name] += 1
            self._cond.notify_all()  # type: ignore[attr-defined]

    def _rung(self, name: str) -> int:
        return self.rings[""] + self.rings[name]


class _StopEvents(list[threading.Event]):
    """The engine's list of the events that stop its threads, that of the queues among them: each
    is made a bell before its thread begins."""

    def append(self, event: threading.Event) -> None:
        event.__class__ = QueueBell
        assert isinstance(event, QueueBell)
        event.rings, event.heard = Counter(), {}
        super().append(event)


def hang_bell(dbos: Any) -> Callable[[str], None]:
    """Have an engine that was not started yet look into a queue whenever a job of it is over, and
    when what is handed back is called with its name; without one, into all."""
    events = dbos.background_thread_stop_events = _StopEvents()
    active = dbos._active_workflows_set
    remove = active._remove

    def ring(queue: str) -> None:
        for event in list(events):
            assert isinstance(event, QueueBell)
            event.ring(queue and f"queue-worker-{queue}")

    def removed(run: str, bucket: tuple[str, str] | None) -> None:
        remove(run, bucket)
        if bucket is not None:
            ring(bucket[0])

    active._remove = removed
    return ring


_BACKLOG = (
    "SELECT status, queue_name, executor_id, delay_until_epoch_ms, count(*) FROM {table}"
    " WHERE status IN {live} GROUP BY 1, 2, 3, 4"
)


def has_engine() -> bool:
    """Whether the engine is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec("dbos") is not None


def need_engine(what: str) -> None:
    if not has_engine():
        raise MissingExtra("work", what)


def opened(address: Address) -> AbstractContextManager[Any]:
    """A connection to what holds the queues, for a `with` block. Raises as `check` does."""
    return _server(address) if address.shared else _file(address.path)


def _table(address: Address) -> str:
    return f"{SCHEMA}.workflow_status" if address.shared else "workflow_status"


def _exists(address: Address, connection: Any) -> bool:
    """Whether the engine has made its tables."""
    if address.shared:
        row = connection.execute("SELECT to_regclass(%s)", (_table(address),)).fetchone()
        return row is not None and row[0] is not None
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'")
    return found.fetchone() is not None


@contextlib.contextmanager
def _file(path: str) -> Iterator[sqlite3.Connection]:
    """jobs.db, opened so that faults come as our errors with what to do about them."""
    try:
        with (
            contextlib.closing(database.connect(path)) as connection,
            database.explain_errors(path),
        ):
            yield connection
    except Damaged as error:
        raise Damaged(
            f"the queue of jobs cannot be read: {error.message}",
            "mend it, and jobs that were not over are queued again: tacit doctor --fix",
        ) from error


@contextlib.contextmanager
def _server(address: Address) -> Iterator[Any]:
    need_engine("a shared queue of jobs")
    import psycopg

    what = f"the queue of jobs at {address.shown} cannot be"
    try:
        connection = psycopg.connect(address.url, connect_timeout=_CONNECT, autocommit=True)
    except psycopg.ProgrammingError as error:
        raise _bad(one_line_of(error, last=True)) from error
    except psycopg.OperationalError as error:
        raise Unreachable(
            f"{what} reached: {one_line_of(error, last=True)}",
            "start that server, or unset TACIT_DATABASE_URL to use this machine's own",
        ) from error
    with contextlib.closing(connection):
        try:
            yield connection
        except psycopg.Error as error:
            raise Unwritable(
                f"{what} used: {one_line_of(error, last=True)}",
                "check the rights of that user, or unset TACIT_DATABASE_URL",
            ) from error


def _bad(why: str) -> BadConfig:
    return BadConfig(
        f"TACIT_DATABASE_URL cannot be used: {why}",
        "write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE",
    )


def make_jobs_db(address: Address) -> None:
    """See that the file is there and fits this engine. Only the worker may call it, under its lock.

    Raises as `check` does; the file is then what it was.
    """
    if address.shared:
        return
    version = _engine_version()
    with opened(address) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == version:
            return
    folder, name = os.path.split(address.path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    try:
        with opened(address) as connection:
            _copy(connection, temporary)
        _migrate(temporary, version)
        os.replace(temporary, address.path)
    except TacitError:
        raise
    except Exception as error:
        raise Unwritable(
            f"cannot make {address.path}: {one_line_of(error)}",
            "check the free space and the permissions there",
        ) from error
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(temporary + ending)


def one_line_of(error: BaseException, *, last: bool = False) -> str:
    """The line in which an error says what it is: the engine's carry statements after it, and
    servers say before it where they looked (`last`)."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[-1 if last else 0].strip() if lines else type(error).__name__


def _copy(connection: sqlite3.Connection, path: str) -> None:
    """A copy of all there is, with nothing left in the log of the original."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with contextlib.closing(database.connect(path)) as copy:
        connection.backup(copy)
        # Back in one file, so that moving that file moves all of it.
        copy.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA journal_mode = DELETE")


def _migrate(path: str, version: int) -> None:
    from dbos import DBOS

    from tacit.work.engine import quieten

    quieten()
    DBOS.migrate(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()


def _engine_version() -> int:
    """A number for the engine's version, kept in the file."""
    from importlib.metadata import version  # sixty modules, and only the worker needs it

    return zlib.crc32(version("dbos").encode()) & 0x7FFFFFFF


_RUNS = """
SELECT s.workflow_uuid, s.status, s.executor_id, s.recovery_attempts, s.created_at, s.updated_at,
  s.started_at_epoch_ms, s.completed_at, s.delay_until_epoch_ms, s.serialization,
  coalesce(s.inputs, i.inputs), coalesce(s.output, o.output), coalesce(s.error, o.error)
FROM {status} s
LEFT JOIN {input} i ON i.workflow_uuid = s.workflow_uuid
LEFT JOIN {output} o ON o.workflow_uuid = s.workflow_uuid
WHERE s.name = 'job'
"""
_PORTABLE = "portable_json"


class EngineRun(msgspec.Struct, frozen=True):
    """One attempt, in the engine's words; moments in milliseconds since 1970."""

    id: str
    status: str
    ticket: Ticket
    done: JobResult = JobResult("")
    error: str = ""
    worker: str = ""
    kills: int = 0
    asked: int | None = None
    heard: int | None = None
    began: int | None = None
    ended: int | None = None
    due: int | None = None


def engine_runs(address: Address, ids: Sequence[str] = ()) -> list[EngineRun]:
    """Every run of the queues, or those in `ids`; those of another version of Tacit are left out.

    Raises as `check` does.
    """
    value = "%s" if address.shared else "?"
    only = f" AND s.workflow_uuid IN ({', '.join([value] * len(ids))})" if ids else ""
    try:
        with opened(address) as connection:
            rows = connection.execute(_query(address) + only, tuple(ids)).fetchall()
    except Exception as error:
        if not _unlike(error):
            raise
        return _asked_of_engine(address, ids)
    if any(row[9] != _PORTABLE for row in rows):
        return _asked_of_engine(address, ids)
    found = (_engine_run(tuple(row)) for row in rows)
    return [run for run in found if run is not None]


def _query(address: Address) -> str:
    names = ("workflow_status", "workflow_input", "workflow_output")
    status, given, gave = (f"{SCHEMA}.{n}" if address.shared else n for n in names)
    return _RUNS.format(status=status, input=given, output=gave)


def _unlike(error: BaseException | None) -> bool:
    """Whether a fault says that a table or a column is not there."""
    while error is not None:
        if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
            return True
        if type(error).__name__ in ("UndefinedTable", "UndefinedColumn"):
            return True
        error = error.__cause__
    return False


def _engine_run(row: tuple[Any, ...]) -> EngineRun | None:
    try:
        ticket = _ticket(msgspec.json.decode(row[10] or b""))
        done = _done(msgspec.json.decode(row[11]) if row[11] else None)
        fault = _fault(msgspec.json.decode(row[12])) if row[12] else ""
    except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
        return None
    kills = max((row[3] or 1) - 1, 0)
    return EngineRun(row[0], row[1], ticket, done, fault, row[2] or "", kills, *row[4:9])


def _asked_of_engine(address: Address, ids: Sequence[str] = ()) -> list[EngineRun]:
    from tacit.work.engine import client

    opened = client(address)
    try:
        found = []
        for status in opened.list_workflows(name="job", workflow_ids=list(ids) or None):
            try:
                ticket = _ticket(status.input)
            except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
                continue
            found.append(
                EngineRun(
                    status.workflow_id,
                    status.status,
                    ticket,
                    _done(status.output),
                    str(status.error) if status.error is not None else "",
                    status.executor_id or "",
                    max((status.recovery_attempts or 1) - 1, 0),
                    status.created_at,
                    status.updated_at,
                    status.dequeued_at,
                    status.completed_at,
                    status.delay_until_epoch_ms,
                )
            )
        return found
    finally:
        opened.destroy()


def _ticket(given: Any) -> Ticket:
    arguments = given["positionalArgs"] if "positionalArgs" in given else given["args"]
    return msgspec.json.decode(arguments[0], type=Ticket)


def _done(gave: Any) -> JobResult:
    try:
        return msgspec.convert(gave, JobResult)
    except msgspec.ValidationError:
        return JobResult("")


def _fault(kept: Any) -> str:
    """What an error said, as the engine keeps it: a record with its message, or a text."""
    return str(kept.get("message") or kept) if isinstance(kept, dict) else str(kept)
