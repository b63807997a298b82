"""Which worker this is: its log, the name of its machine, and who else is alive on a shared queue.

On one machine a lock file says who is the worker. On PostgreSQL each worker also holds an
advisory lock in the name under which it runs jobs. The server releases it when the worker's
connection ends, by a kill or a cut cable, so whoever can take another's lock knows that it is
dead, and while holding it puts that worker's unfinished jobs back into their queues.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from tacit.base import paths
from tacit.work.jobs_db import SCHEMA, Address

_MOST = 1_000_000


def log_file() -> str:
    return os.path.join(paths.folders().data, "worker.log")


def log(text: str) -> None:
    """Add a line; a log that cannot be written stops nothing."""
    path = log_file()
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(text.split())}\n"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > _MOST:
            os.replace(path, path + ".old")
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
    except OSError:
        return


SOLE_WORKER = "worker"
"""The name of the worker where no other machine shares the queues."""
_PATIENCE = 3.0
"""Seconds for the server to notice that the last worker of this name is gone."""
# A machine that loses its power says no goodbye: the server asks after 10 s of silence.
_ALIVE = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)


def machine() -> str:
    """A name for this machine and data folder that stays the same, e.g. `studio-5f0c81d2`."""
    host = socket.gethostname().split(".")[0][:40] or "machine"
    marks = [host, os.path.realpath(paths.folders().data)]
    with contextlib.suppress(OSError), open("/etc/machine-id", encoding="ascii") as file:
        marks.append(file.read().strip())
    return f"{host}-{sha256('|'.join(marks).encode('utf-8', 'replace')).hexdigest()[:8]}"


class Presence:
    """That this worker is alive, as the others see it. One thread at a time."""

    def __init__(self, where: Address) -> None:
        self._where = where
        self._connection: Any = None
        self.name = SOLE_WORKER if not where.shared else machine()
        if where.shared:
            self._connect()
            self.name = self._claim(self.name)

    def beat(self) -> None:
        """Stay known as alive. A connection that was lost is made again; raises nothing."""
        if not self._where.shared:
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
        if not self._where.shared or self._connection is None:
            return []
        import psycopg

        try:
            rows = self._connection.execute(
                f"SELECT DISTINCT executor_id FROM {SCHEMA}.workflow_status"  # noqa: S608
                " WHERE status = 'PENDING' AND executor_id <> %s",
                (self.name,),
            ).fetchall()
            return [name for (name,) in rows if name and self._is_dead(name)]
        except psycopg.Error:
            return []

    def in_place_of(self, name: str, take: Callable[[], None]) -> bool:
        """Do `take` while nobody else can be, or stand in for, the worker `name`."""
        import psycopg

        try:
            if self._connection is None or not self._try(name):
                return False
            try:
                take()
            finally:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number(name),))
        except psycopg.Error:
            self.leave()
            return False
        return True

    def leave(self) -> None:
        """Be known as gone. Twice is once."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    def _connect(self) -> None:
        import psycopg

        self._connection = psycopg.connect(
            self._where.url, connect_timeout=5, autocommit=True, application_name="tacit worker"
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


def _number(name: str) -> int:
    """The lock of a name: PostgreSQL's are numbers of 64 bits."""
    return int.from_bytes(sha256(f"tacit worker {name}".encode()).digest()[:8], "big", signed=True)
