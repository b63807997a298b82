"""Which worker this is: its lock and log, its machine's name, and who is alive on a shared queue.

On one machine a lock file says who is the worker, and `wake` starts one where nobody is. On
PostgreSQL each worker also holds an advisory lock in the name under which it runs jobs. The server
releases it when the worker's connection ends, by a kill or a cut cable, so whoever can take
another's lock knows that it is dead, and while holding it puts that worker's unfinished jobs back
into their queues.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from tacit import hook
from tacit.base import paths
from tacit.base.atomic_files import open_private, write_atomic
from tacit.base.display import shorten
from tacit.base.errors import BadConfig, TacitError
from tacit.base.paths import make_private
from tacit.work.job_kinds import Ticket, find_kind
from tacit.work.jobs_db import Address, address, workers_with_runs

_MOST = 1_000_000


def log_file() -> str:
    return os.path.join(paths.folders().data, "worker.log")


def log(text: str) -> None:
    """Add a line; a log that cannot be written stops nothing."""
    path = log_file()
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(text.split())}\n"
    try:
        make_private(os.path.dirname(path))
        if os.path.exists(path) and os.path.getsize(path) > _MOST:
            os.replace(path, path + ".old")
        with open(path, "ab", opener=open_private) as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError:
        return


def describe_fault(error: Exception) -> str:
    """What went wrong, for the log."""
    if isinstance(error, TacitError):
        return error.explain()
    return shorten(f"{type(error).__name__}: {error}", 500)


class Trouble:
    """What keeps a part of the worker from its work: logged once, and tried again after a pause.

    With `most` the pause doubles from one time to the next, until it is that long.
    """

    def __init__(self, pause: float, most: float = 0.0) -> None:
        self._pause = pause
        self._most = max(pause, most)
        self._until = 0.0
        self._text = ""
        self.tries = 0

    def __bool__(self) -> bool:
        return bool(self._text)

    @property
    def waits(self) -> bool:
        """Whether it is too early to try again."""
        return time.monotonic() < self._until

    @property
    def seconds(self) -> float:
        """How long until it is tried again."""
        return max(0.0, self._until - time.monotonic())

    def begin(self, error: Exception, prefix: str = "", *, silent: bool = False) -> None:
        """There is trouble, or still is."""
        self._until = time.monotonic() + min(self._pause * 2**self.tries, self._most)
        self.tries = min(self.tries + 1, 30)
        text = prefix + describe_fault(error)
        if text != self._text and not silent:
            log(text)
        self._text = text

    def over(self) -> None:
        self._text, self._until, self.tries = "", 0.0, 0


_LOCK_WAIT = 3.0
"""Seconds: a hook that looks whether a worker runs holds the lock for a moment."""


class Present(msgspec.Struct, frozen=True):
    """The worker that runs on this machine."""

    pid: int
    since: float
    """Seconds since 1970."""
    permanent: bool = msgspec.field(name="stays")
    """Whether it is the daemon, which does not exit when it is idle."""


@contextlib.contextmanager
def worker_lock(wait: float = _LOCK_WAIT, *, permanent: bool = False) -> Iterator[bool]:
    """Hold the lock of this machine's worker for the block; gives whether it is held."""
    import fcntl

    data = paths.folders().data
    make_private(data)
    descriptor = os.open(os.path.join(data, "worker.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + wait
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    yield False
                    return
                time.sleep(0.05)
        _sign(descriptor, msgspec.json.encode(Present(os.getpid(), time.time(), permanent)))
        try:
            yield True
        finally:
            _sign(descriptor, b"")
    finally:
        os.close(descriptor)


def holds_lock() -> bool:
    """Whether the lock at its place is held by this process: not where the data folder was moved
    away or replaced meanwhile, and another worker has the one that is there now."""
    found = present()
    return found is not None and found.pid == os.getpid()


def present() -> Present | None:
    """The worker that runs here now, if one does."""
    import fcntl

    try:
        descriptor = os.open(os.path.join(paths.folders().data, "worker.lock"), os.O_RDWR)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return msgspec.json.decode(os.read(descriptor, 4096), type=Present)
        return None
    except msgspec.DecodeError:  # it has the lock and is about to say so, or a hook has it
        return None
    finally:
        os.close(descriptor)


def wake() -> None:
    """Start a worker if none runs, as a hook does. One that a worker started starts no other."""
    if not os.environ.get("TACIT_WORKER"):
        command = [sys.executable, "-P", "-m", "tacit", "worker"]
        hook.start_worker(paths.folders().data, command)


def _sign(descriptor: int, text: bytes) -> None:
    """Write into the lock file who holds it; a full disk keeps nobody from working."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text, 0)


_NAME_FILE = "machine"
SOLE_WORKER = "worker"
"""The name of the worker where no other machine shares the queues."""
_PATIENCE = 3.0
"""Seconds for the server to notice that the last worker of this name is gone."""
# A machine that loses its power says no goodbye: the server asks after 10 s of silence.
_ALIVE = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)


def machine() -> str:
    """A name for this data folder, e.g. `studio-5f0c81d2`, by which its jobs find back to it.

    It is kept in the folder, so that jobs which wait for it still do when the computer is renamed.
    """
    path = os.path.join(paths.folders().data, _NAME_FILE)
    with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
        if name := file.read(100).strip():
            return name
    import socket

    host = socket.gethostname().split(".")[0][:40] or "machine"
    parts = [host, os.path.realpath(paths.folders().data)]
    with contextlib.suppress(OSError), open("/etc/machine-id", encoding="ascii") as file:
        parts.append(file.read().strip())
    name = f"{host}-{sha256('|'.join(parts).encode('utf-8', 'replace')).hexdigest()[:8]}"
    with contextlib.suppress(TacitError):
        write_atomic(path, name.encode())
    return name


def own_ticket(kind: str, key: str, payload: dict[str, Any] | None = None) -> Ticket:
    """A job that this machine asks for."""
    plain = Ticket(kind, key, payload or {})
    with contextlib.suppress(BadConfig):  # whoever queues it says so
        if address().shared:
            own_key = find_kind(kind).own_keys
            return msgspec.structs.replace(plain, home=machine(), own_key=own_key)
    return plain


class Presence:
    """That this worker is alive, as the others see it. One thread at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Any = None
        self.name = SOLE_WORKER if not address.shared else machine()
        if address.shared:
            self._connect()
            self.name = self._claim(self.name)

    def beat(self) -> None:
        """Stay known as alive. A connection that was lost is made again; raises nothing."""
        if not self._address.shared:
            return
        import psycopg

        try:
            if self._connection is None:
                self._connect()
                if not self._try(self.name):
                    log(f"another worker took over for {self.name} while the server was away")
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self.leave()

    def dead(self) -> list[str]:
        """The names of others that left running jobs behind and are not there any more."""
        if not self._address.shared or self._connection is None:
            return []
        import psycopg

        try:
            others = workers_with_runs(self._connection)
            return [name for name in others if name != self.name and self._is_dead(name)]
        except psycopg.Error:
            return []

    def in_place_of(self, name: str, take: Callable[[], None]) -> None:
        """Do `take` while nobody else can be, or stand in for, the worker `name`."""
        import psycopg

        try:
            if self._connection is None or not self._try(name):
                return
            try:
                take()
            finally:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number(name),))
        except psycopg.Error:
            self.leave()

    def leave(self) -> None:
        """Be known as gone. Calling it again changes nothing."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    def _connect(self) -> None:
        import psycopg

        self._connection = psycopg.connect(
            self._address.url, connect_timeout=5, autocommit=True, application_name="tacit worker"
        )
        self._connection.execute(_ALIVE)

    def _claim(self, name: str) -> str:
        """Take the lock of `name`; of two machines that are called the same, one gets a number."""
        until = time.monotonic() + _PATIENCE
        while not self._try(name):
            if time.monotonic() > until:
                number = 2
                while not self._try(f"{name}-{number}"):
                    number += 1
                return f"{name}-{number}"
            time.sleep(0.1)
        return name

    def _try(self, name: str) -> bool:
        row = self._connection.execute("SELECT pg_try_advisory_lock(%s)", (_number(name),))
        return bool(row.fetchone()[0])

    def _is_dead(self, name: str) -> bool:
        if not self._try(name):
            return False
        self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number(name),))
        return True


def is_away(address: Address, name: str) -> bool:
    """Whether no worker of the machine `name` is there. Raises `psycopg.Error`."""
    import psycopg

    with psycopg.connect(address.url, connect_timeout=5, autocommit=True) as connection:
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_number(name),)).fetchone()
    return bool(row and row[0])  # the lock went with the connection


def _number(name: str) -> int:
    """The lock of a name: PostgreSQL's are numbers of 64 bits."""
    return int.from_bytes(sha256(f"tacit worker {name}".encode()).digest()[:8], "big", signed=True)
