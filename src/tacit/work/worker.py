"""The worker: takes in sessions that ended, does the jobs that follow, exits when nothing is left.

Started by a hook. One at a time on a machine, by a lock that dies with it. Events stay in the
spool until what they call for is done or in a queue that survives, so after a kill at any moment
the next worker does the rest. `tacit daemon` is the same worker, one that does not exit.
`ScheduleTicker` looks at the clock for it: a look costs a stat a schedule, and the code of
schedules is imported only when one is due.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.base.event_bus import bus
from tacit.base.settings import Settings, WorkerSettings, load_settings
from tacit.skills.library import SCHEDULE_FILE, scheduled_folder
from tacit.traces import hook_events, host_registry
from tacit.traces.hook_events import QuietSession
from tacit.traces.store import Store
from tacit.work import host_links, job_queue, reactions
from tacit.work.intake import SessionStored, find_source
from tacit.work.job_queue import JobQueue
from tacit.work.presence import log, worker_lock

_BUSY = timedelta(seconds=2)
"""Between looks while a run is not over: the next one may wait for it."""
_FARTHEST = timedelta(minutes=5)
"""However far the next due time is: the wall clock may be set."""
_TRASH = timedelta(hours=6)
_TROUBLE = 30.0


class ScheduleTicker:
    """Fires schedules while its worker runs. One thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._seen: tuple[object, ...] = ()
        self._next: datetime | None = None
        self._emptied: datetime | None = None
        self._quiet_until = 0.0
        self._said = ""

    def turn(self) -> bool:
        """Do what is due; whether something was begun, so that the worker should not go."""
        if time.monotonic() < self._quiet_until or not os.path.isdir(scheduled_folder()):
            return False
        try:
            return self._turn(self._clock.now())
        except TacitError as error:
            self._say(f"schedules: {error.message}{'; ' if error.hint else ''}{error.hint}")
        except Exception as error:  # a worker that cannot plan still stores sessions
            self._say(f"schedules: {type(error).__name__}: {error}")
        self._quiet_until = time.monotonic() + _TROUBLE
        return False

    def _turn(self, now: datetime) -> bool:
        seen = _schedules_stamp()
        if seen == self._seen and self._next is not None and now < self._next:
            return False
        from tacit.work import schedule_runner

        fired = schedule_runner.fire(now)
        if self._emptied is None or now - self._emptied >= _TRASH:
            self._emptied = now
            schedule_runner.tidy(now)
        latest = now + (_BUSY if fired.busy else _FARTHEST)
        self._seen = seen
        self._next = min(fired.next, latest) if fired.next is not None else latest
        self._said = ""
        return fired.begun

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            log(text)


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
    stay: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Be the worker until nothing is left to do; how many sessions were taken in.

    0 at once where another process is the worker already. What this process starts must not
    report its own sessions, so hooks below it record nothing. With `stay` it waits for the other
    to go, and goes only when `stop` says so.
    """
    os.environ["TACIT_WORKER"] = "1"
    host_links.listen()
    reactions.listen()
    desk = JobQueue(settings_or_defaults().jobs, stay=stay)
    taken = 0
    while not stop():
        with worker_lock(permanent=stay) as alone:
            if alone:
                hook_events.worker_started()
                taken += _until_idle(desk, quiet, idle, pause, stop)
            elif not stay:
                return taken
        came_late = hook_events.pending() or (job_queue.waiting_requests() and not desk.troubled)
        if not stay and not came_late:
            return taken
    return taken


def left_running() -> bool:
    """Whether a job runs on in this process that was stopped without waiting for it."""
    engine = sys.modules.get("tacit.work.engine")
    return engine is not None and bool(engine.active())


def _until_idle(
    desk: JobQueue,
    quiet: float,
    idle: float,
    pause: Callable[[float], None],
    stop: Callable[[], bool],
) -> int:
    hook_events.sweep()
    ticking = ScheduleTicker()
    taken = 0
    last = time.monotonic()
    try:
        while not stop():
            for session in hook_events.quiet_sessions(hook_events.pending(), time.time(), quiet):
                taken += take_up(session)
                last = time.monotonic()
            if ticking.turn() | desk.turn():
                last = time.monotonic()
            elif not hook_events.pending() and time.monotonic() - last >= idle:
                worth_staying = reactions.idle() or desk.stays
                if worth_staying:
                    desk.rest()
                elif not desk.turn():
                    break
                last = time.monotonic()
            pause(min(_STEP, max(idle, 0.05)))
        return taken
    finally:
        desk.close()


def take_up(session: QuietSession) -> bool:
    """Store a session that ended; its events are done then. A fault is logged, and not repeated."""
    name = f"{session.host}:{session.session}"
    stored = False
    try:
        source = find_source(session.host, session.session, session.transcript)
        if source is None:
            log(f"{name}: no transcript was found")
        else:
            with Store.open() as store:
                written = store.take_in(host_registry.get(source.host), source)
            log(f"{name}: {written.status}, {written.turns} turns")
            stored = written.status in ("new", "grown")
            if written.id:
                _tell(SessionStored(written.id, written.status, ended=True))
    except TacitError as error:
        log(f"{name}: {error.message}")
    except Exception as error:  # one broken session must not keep the others waiting
        log(f"{name}: {type(error).__name__}: {error}")
    for event in session.events:
        hook_events.remove(event)
    return stored


def _tell(stored: SessionStored) -> None:
    """Publish it; what a listener could not do is no fault of the session's, but is said."""
    bus.publish(stored)
    for event, error in bus.errors:
        if event is stored:
            log(f"{stored.id}: what follows was not asked for: {error or type(error).__name__}")
