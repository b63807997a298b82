"""The worker: takes in sessions that ended, does the jobs that follow, exits when nothing is left.

Started by a hook. One at a time on a machine, by a lock that dies with it. Events stay in the
spool until what they call for is on record in tacit.db, or has failed for good and the log says
so, and a job until it is over, so after a kill at any moment the next worker does the rest. Now and
then it looks for sessions that no event spoke of, as when an agent was killed. `tacit daemon` is
the same worker, one that does not exit. `ScheduleTicker` looks at the clock for it: a look costs a
stat a schedule, and the code of schedules is imported only when one is due.
"""

import os
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import NotFound, TacitError
from tacit.base.setting_sections import Settings, WorkerSettings
from tacit.base.settings import load_settings
from tacit.skills.holdback import keep_told
from tacit.skills.library import SCHEDULE_FILE, scheduled_folder
from tacit.traces import hook_events, host_registry
from tacit.traces.hook_events import QuietSession
from tacit.traces.store import Store
from tacit.work import host_links, reactions
from tacit.work.housekeeping import keep_house
from tacit.work.intake import NEWS, find_source, missing_session, store_session
from tacit.work.job_kinds import Ticket
from tacit.work.job_queue import JobQueue
from tacit.work.presence import Trouble, describe_fault, holds_lock, log, own_ticket, worker_lock
from tacit.work.reactions import MissedSessions

_BUSY = timedelta(seconds=2)
"""Between looks while a run is not over: the next one may wait for it."""
_FARTHEST = timedelta(minutes=5)
"""However far the next due time is: the wall clock may be set."""
_TRASH = timedelta(hours=6)
_TROUBLE = 30.0
"""Seconds before what failed is tried again; for a session, twice as long each time."""
_LONGEST = 3600.0
_PATIENCE = 120.0
"""Seconds for which a worker with nothing else to do waits to try again; the next one tries too."""
_NEVER_CAME = 3600.0
"""Seconds after which a transcript that is not there does not come any more."""
_TRIES = 3
"""Times that a session is tried that fails for a cause which nobody foresaw."""
_LOOK = 300.0
"""Seconds between two looks for sessions that no event spoke of."""


class ScheduleTicker:
    """Fires schedules while its worker runs. One thread."""

    def __init__(self, put: Callable[[Ticket], bool], clock: Clock | None = None) -> None:
        """`put` queues a job, and says whether it is queued."""
        self._put = put
        self._clock = clock or SystemClock()
        self._seen: tuple[object, ...] = ()
        self._next: datetime | None = None
        self._looked: datetime | None = None
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
        if self._looked is not None and now < self._looked:
            self._next = self._emptied = None  # the clock was set back: look again
        if seen == self._seen and self._next is not None and now < self._next:
            return False
        self._looked = now
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
        return self._put(own_ticket("schedule", run, payload))


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
    intake = _Intake(quiet)
    taken = 0
    while not stop():
        with worker_lock(permanent=permanent) as alone:
            if alone:
                hook_events.worker_started()
                taken += _until_idle(queue, intake, idle, pause, stop)
            elif not permanent:
                return taken
        if not permanent and not intake.has_more() and not queue.has_waiting():
            return taken
    return taken


def left_running() -> bool:
    """Whether a job runs on in this process that was stopped without waiting for it."""
    engine = sys.modules.get("tacit.work.engine")
    return engine is not None and bool(engine.active())


def _until_idle(
    queue: JobQueue,
    intake: "_Intake",
    idle: float,
    pause: Callable[[float], None],
    stop: Callable[[], bool],
) -> int:
    hook_events.sweep()
    ticker = ScheduleTicker(queue.put)
    taken = 0
    last = time.monotonic()
    try:
        while not stop() and holds_lock():
            if stored := intake.turn():
                taken += stored
                last = time.monotonic()
            if ticker.turn() | queue.turn():
                last = time.monotonic()
            elif not intake.has_more() and time.monotonic() - last >= idle:
                keep_house(settings_or_defaults)
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


class _Intake:
    """Takes in the sessions that are over: those that events spoke of, and those that none did."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._troubles: dict[str, Trouble] = defaultdict(lambda: Trouble(_TROUBLE, _LONGEST))
        self._missed = MissedSessions()
        self._looked = -_LOOK
        self._looking = Trouble(_TROUBLE, _LONGEST)

    def turn(self) -> int:
        """Take in what is ready; how many sessions were stored."""
        found = hook_events.quiet_sessions(hook_events.pending(), time.time(), self._quiet)
        taken = sum(self._try_session(session) for session in found)
        if (taken or time.monotonic() - self._looked >= _LOOK) and not self._looking.waits:
            taken += self._look()
        return taken

    def _look(self) -> int:
        """Find what no event spoke of, and say whether what was read was understood."""
        try:
            found = self._missed.take_in(self._quiet)
            reactions.tell_deafness()
            self._looked = time.monotonic()
            self._looking.over()
            return found
        except Exception as error:  # a worker that cannot look still hears what it is told
            self._looking.begin(error, "looking for sessions: ")
            return 0

    def has_more(self) -> bool:
        """Whether there are events that are worth waiting for."""
        waiting = {event.session for event in hook_events.pending()}
        return any(self._troubles[name].seconds <= _PATIENCE for name in waiting)

    def _try_session(self, session: QuietSession) -> bool:
        """Store it, unless that failed a moment ago; what may pass is tried again, ever later."""
        trouble, name = self._troubles[session.session], f"{session.host}:{session.session}"
        if trouble.waits:
            return False
        try:
            stored = store_ended_session(session)
        except Exception as error:  # one broken session must not keep the others waiting
            if not _failed_for_good(error, session, trouble):
                trouble.begin(error, f"{name} is tried again: ")
                return False
            log(f"{name}: given up: {describe_fault(error)}")
            _remove_events(session)
            stored = False
        del self._troubles[session.session]
        return stored


def _failed_for_good(error: Exception, session: QuietSession, trouble: Trouble) -> bool:
    """Whether another try is of no use.

    A lock, a full disk or a damaged database pass, or are mended, and a transcript may come late.
    """
    if isinstance(error, NotFound):
        return abs(time.time() - session.last) > _NEVER_CAME
    if isinstance(error, TacitError | OSError | sqlite3.Error):
        return False
    return trouble.tries + 1 >= _TRIES


def store_ended_session(session: QuietSession) -> bool:
    """Store a session that ended and decide what follows; then its events are done.

    Raises whatever keeps it from that: the events stay then. `NotFound` says that the session
    itself is not there.
    """
    source = find_source(session.host, session.session, session.transcript)
    with Store.open() as store:
        if source is None or not host_registry.get(source.host).stamp(source):
            raise missing_session(session.host)
        name = f"{session.host}:{session.session}"
        if told := [event.drawn for event in session.events if event.drawn]:
            keep_told(name, told, is_new=not store.has(name))
        written = store_session(store, source, reactions.session_stored, ended=True)
    log(f"{name}: {written.status}, {written.turns} turns")
    _remove_events(session)
    return written.status in NEWS


def _remove_events(session: QuietSession) -> None:
    for event in session.events:
        hook_events.remove(event)
