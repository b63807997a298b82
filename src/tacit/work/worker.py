"""The worker: started by a hook, takes in the sessions that ended, and goes when nothing is left.

One at a time on a machine, by a lock that dies with it. Events stay in the spool until what they
call for is done, so a kill at any moment only means that it is done by the next worker.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from tacit.base import paths
from tacit.base.errors import TacitError
from tacit.base.events import bus
from tacit.base.sections import WorkerSettings
from tacit.base.settings import load
from tacit.traces import events
from tacit.traces.events import QuietSession
from tacit.traces.hosts import registry
from tacit.traces.store import Store
from tacit.work import linking
from tacit.work.intake import SessionStored, find_source
from tacit.work.log import log

_STEP = 1.0
_PATIENCE = 3.0
"""A hook that looks whether a worker runs holds the lock for a moment."""


@contextlib.contextmanager
def sole(patience: float = _PATIENCE) -> Iterator[bool]:
    """Whether this process is the worker; the lock is held for the block."""
    import fcntl

    data = paths.folders().data
    os.makedirs(data, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(data, "worker.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + patience
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
        yield True
    finally:
        os.close(descriptor)


def patience() -> WorkerSettings:
    """How long to wait, as the user set it; settings that cannot be read stop no worker."""
    try:
        return load().settings.worker
    except TacitError as error:
        log(f"the defaults are used: {error.message}")
        return WorkerSettings()


def work(
    *,
    quiet: float = events.QUIET,
    idle: float = WorkerSettings().idle,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Be the worker until nothing is left to do; how many sessions were taken in.

    0 at once where another process is the worker already. What this process starts must not
    report its own sessions, so hooks below it record nothing.
    """
    os.environ["TACIT_WORKER"] = "1"
    linking.listen()
    taken = 0
    while True:
        with sole() as alone:
            if not alone:
                return taken
            events.worker_started()
            taken += _until_idle(quiet, idle, pause)
        if not events.pending():  # else one came while the lock was being let go
            return taken


def _until_idle(quiet: float, idle: float, pause: Callable[[float], None]) -> int:
    events.sweep()
    taken = 0
    last = time.monotonic()
    while True:
        for session in events.due(events.pending(), time.time(), quiet):
            taken += take_up(session)
            last = time.monotonic()
        if not events.pending() and time.monotonic() - last >= idle:
            return taken
        pause(min(_STEP, max(idle, 0.05)))


def take_up(session: QuietSession) -> bool:
    """Store a session that ended; its events are done then. A fault is logged, and not repeated."""
    name = f"{session.host}:{session.session}"
    stored = False
    try:
        source = find_source(session.host, session.session, session.transcript)
        if source is None:
            log(f"{name}: no transcript was found")
        else:
            store = Store.open()
            try:
                written = store.take_in(registry.get(source.host), source)
            finally:
                store.close()
            log(f"{name}: {written.status}, {written.turns} turns")
            stored = written.status in ("new", "grown")
            if written.id:
                bus.publish(SessionStored(written.id, written.status, ended=True))
    except TacitError as error:
        log(f"{name}: {error.message}")
    except Exception as error:  # one broken session must not keep the others waiting
        log(f"{name}: {type(error).__name__}: {error}")
    for event in session.events:
        events.done(event)
    return stored
