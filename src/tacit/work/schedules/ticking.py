"""The worker's side of schedules: looking at the clock, and at runs that came to no end.

One look costs a stat a schedule; the database is opened only when something is due, or a run is
not over. What keeps it from planning is said in the log, once, and nothing is lost by it: a due
time that was not planned is planned at the next look.
"""

import os
import time
from datetime import datetime, timedelta

from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.skills.scheduled import BINDING, folder
from tacit.work.log import log

_BUSY = timedelta(seconds=2)
"""Between looks while a run is not over: the next one may wait for it."""
_FARTHEST = timedelta(minutes=5)
"""However far the next due time is: the wall clock may be set."""
_TRASH = timedelta(hours=6)
_TROUBLE = 30.0


class Ticking:
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
        if time.monotonic() < self._quiet_until or not os.path.isdir(folder()):
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
        seen = _signature()
        if seen == self._seen and self._next is not None and now < self._next:
            return False
        from tacit.work.schedules import firing

        fired = firing.fire(now)
        if self._emptied is None or now - self._emptied >= _TRASH:
            self._emptied = now
            firing.tidy(now)
        latest = now + (_BUSY if fired.busy else _FARTHEST)
        self._seen = seen
        self._next = min(fired.next, latest) if fired.next is not None else latest
        self._said = ""
        return fired.begun

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            log(text)


def _signature() -> tuple[object, ...]:
    """Changes whenever a schedule does."""
    found: list[object] = []
    with os.scandir(folder()) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        for file in (BINDING, "SKILL.md"):
            try:
                stat = os.stat(os.path.join(folder(), name, file))
                found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append((name, file))
    return tuple(found)
