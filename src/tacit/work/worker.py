"""The worker: takes in sessions that ended, does the jobs that follow, exits when nothing is left.

Started by a hook. One at a time on a machine, by a lock that dies with it. Events stay in the
spool until what they call for is on record in tacit.db, and a job until it is over, so after a kill
at any moment the next worker does the rest. `tacit daemon` is the same worker, one that does not
exit. `ScheduleTicker` looks at the clock for it: a look costs a stat a schedule, and the code of
schedules is imported only when one is due.
"""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import Busy, TacitError, Unwritable
from tacit.base.settings import Settings, WorkerSettings, load_settings
from tacit.skills.library import SCHEDULE_FILE, scheduled_folder
from tacit.traces import hook_events
from tacit.traces.hook_events import QuietSession
from tacit.traces.store import Store
from tacit.work import host_links, reactions
from tacit.work.housekeeping import keep_house
from tacit.work.intake import find_source, store_session
from tacit.work.job_kinds import Ticket
from tacit.work.job_queue import JobQueue
from tacit.work.presence import Trouble, log, machine, worker_lock

_BUSY = timedelta(seconds=2)
"""Between looks while a run is not over: the next one may wait for it."""
_FARTHEST = timedelta(minutes=5)
"""However far the next due time is: the wall clock may be set."""
_TRASH = timedelta(hours=6)
_TROUBLE = 30.0
"""Seconds before what failed is tried again."""


class ScheduleTicker:
    """Fires schedules while its worker runs. One thread."""

    def __init__(self, put: Callable[[Ticket], bool], clock: Clock | None = None) -> None:
        """`put` queues a job, and says whether it is queued."""
        self._put = put
        self._clock = clock or SystemClock()
        self._seen: tuple[object, ...] = ()
        self._next: datetime | None = None
        self._emptied: datetime | None = None
        self._trouble = Trouble(_TROUBLE)

    def turn(self) -> bool:
        """Do what is due; whether something was begun, so that the worker should not exit."""
        if self._trouble.waits or not os.path.isdir(scheduled_folder()):
            return False
        try:
            return self._turn(self._clock.now())
        except Exception as error:  # a worker that cannot plan still stores sessions
            self._trouble.begin(error, "schedules: ")
        return False

    def _turn(self, now: datetime) -> bool:
        seen = _schedules_stamp()
        if seen == self._seen and self._next is not None and now < self._next:
            return False
        from tacit.work import schedule_runner

        fired = schedule_runner.fire(now, self._send)
        if self._emptied is None or now - self._emptied >= _TRASH:
            self._emptied = now
            schedule_runner.tidy(now)
        latest = now + (_BUSY if fired.busy else _FARTHEST)
        self._seen = seen
        self._next = min(fired.next, latest) if fired.next is not None else latest
        self._trouble.over()
        return fired.begun

    def _send(self, run: str, payload: dict[str, Any]) -> bool:
        return self._put(Ticket("schedule", run, payload, home=machine()))


def _schedules_stamp() -> tuple[object, ...]:
    """Changes whenever a schedule does."""
    found: list[object] = []
    with os.scandir(scheduled_folder()) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        for file in (SCHEDULE_FILE, "SKILL.md"):
            try:
                stat = os.stat(os.path.join(scheduled_folder(), name, file))
                found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append((name, file))
    return tuple(found)


_STEP = 1.0


def settings_or_defaults() -> Settings:
    """The settings as the user has them; ones that cannot be read stop no worker."""
    try:
        return load_settings().settings
    except TacitError as error:
        log(f"the defaults are used: {error.message}")
        return Settings()


def worker_settings() -> WorkerSettings:
    """How long a worker waits, as the user has set it."""
    return settings_or_defaults().worker


def work(
    *,
    quiet: float = hook_events.QUIET,
    idle: float = WorkerSettings().idle,
    pause: Callable[[float], None] = time.sleep,
    permanent: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Be the worker until nothing is left to do; how many sessions were taken in.

    0 at once where another process is the worker already. What this process starts must not
    report its own sessions, so hooks below it record nothing. A `permanent` one waits for the
    other to exit, and exits only when `stop` says so.
    """
    os.environ["TACIT_WORKER"] = "1"
    host_links.listen()
    queue = JobQueue(settings_or_defaults().jobs, permanent=permanent)
    taken = 0
    while not stop():
        with worker_lock(permanent=permanent) as alone:
            if alone:
                hook_events.worker_started()
                taken += _until_idle(queue, quiet, idle, pause, stop)
            elif not permanent:
                return taken
        if not permanent and not hook_events.pending() and not queue.has_waiting():
            return taken
    return taken


def left_running() -> bool:
    """Whether a job runs on in this process that was stopped without waiting for it."""
    engine = sys.modules.get("tacit.work.engine")
    return engine is not None and bool(engine.active())


def _until_idle(
    queue: JobQueue,
    quiet: float,
    idle: float,
    pause: Callable[[float], None],
    stop: Callable[[], bool],
) -> int:
    hook_events.sweep()
    ticker = ScheduleTicker(queue.put)
    troubles: dict[str, Trouble] = defaultdict(lambda: Trouble(_TROUBLE))
    taken = 0
    last = time.monotonic()
    try:
        while not stop():
            for session in hook_events.quiet_sessions(hook_events.pending(), time.time(), quiet):
                taken += _try_session(session, troubles[f"{session.host}:{session.session}"])
                last = time.monotonic()
            if ticker.turn() | queue.turn():
                last = time.monotonic()
            elif not hook_events.pending() and time.monotonic() - last >= idle:
                keep_house(settings_or_defaults())
                worth_staying = reactions.idle(queue.put) or queue.permanent
                if worth_staying:
                    queue.rest()
                elif not queue.turn():
                    break
                last = time.monotonic()
            pause(min(_STEP, max(idle, 0.05)))
        return taken
    finally:
        queue.close()


def _try_session(session: QuietSession, trouble: Trouble) -> bool:
    """Store it, unless that failed a moment ago; after a fault that passes it is tried again."""
    if trouble.waits:
        return False
    try:
        return store_ended_session(session)
    except (Busy, Unwritable) as error:
        trouble.begin(error, f"{session.host}:{session.session} is tried again: ")
        return False


def store_ended_session(session: QuietSession) -> bool:
    """Store a session that ended and decide what follows; then its events are done.

    Raises `Busy` and `Unwritable`, which pass: the events stay for another try. Any other fault is
    logged, and not repeated.
    """
    name = f"{session.host}:{session.session}"
    stored = False
    try:
        source = find_source(session.host, session.session, session.transcript)
        if source is None:
            log(f"{name}: no transcript was found")
        else:
            with Store.open() as store:
                written = store_session(store, source, reactions.session_stored, ended=True)
            log(f"{name}: {written.status}, {written.turns} turns")
            stored = written.status in ("new", "grown")
    except (Busy, Unwritable):
        raise
    except TacitError as error:
        log(f"{name}: {error.message}")
    except Exception as error:  # one broken session must not keep the others waiting
        log(f"{name}: {type(error).__name__}: {error}")
    for event in session.events:
        hook_events.remove(event)
    return stored
