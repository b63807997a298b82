"""When the library is looked after: every so many days, and only when nobody is at work.

Idle is measured, not assumed: the newest thing that any agent on this machine wrote into one of
its sessions, our own chat among them, must be so long ago. A first run waits for a whole period,
so that nothing is put away the moment Tacit is installed.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime

import msgspec

from tacit.base import database
from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.base.sections import CurateSettings
from tacit.learn.curate.book import Book
from tacit.traces.hosts import registry
from tacit.traces.hosts.host import Host

_DAY, _HOUR = 86_400.0, 3600.0
_AHEAD = 60.0
"""A file's time so far in the future is a clock's that was put back, and tells nothing."""
_SLACK = 30.0


class Due(msgspec.Struct, frozen=True):
    """When the next run is due, and why not before."""

    seconds: float
    """From now; 0 is now."""
    reason: str
    key: str = ""
    """Names the run: the same until it is done."""

    @property
    def now(self) -> bool:
        return self.seconds <= 0 and bool(self.key)


def due(
    settings: CurateSettings,
    *,
    clock: Clock | None = None,
    path: str | None = None,
    hosts: Iterable[Host] | None = None,
) -> Due:
    """Whether the library is to be looked after now. The first question begins the first period."""
    if not settings.use:
        return Due(settings.every_days * _DAY, "it is switched off: curate.use")
    now = (clock or SystemClock()).now()
    try:
        with closing(database.connect(path)) as connection:
            waits, key = _period(Book(connection), settings, now)
    except (TacitError, sqlite3.Error) as error:
        return Due(_HOUR, f"its records cannot be read: {error}")
    if waits > 0:
        return Due(waits, f"the next look is due in {waits / _DAY:.1f} days", key)
    wrote = newest_write(now, hosts)
    quiet = (now.timestamp() - wrote) if wrote is not None else float("inf")
    left = settings.idle_hours * _HOUR - quiet
    if left > 0:
        return Due(left + _SLACK, f"an agent wrote {quiet / 60:.0f} minutes ago", key)
    return Due(0, "", key)


def newest_write(now: datetime, hosts: Iterable[Host] | None = None) -> float | None:
    """When any agent last wrote into a session of its own; None where none ever did."""
    latest = None
    for host in registry.each() if hosts is None else hosts:
        try:
            for source in host.find():
                if source.modified <= now.timestamp() + _AHEAD:
                    latest = max(source.modified, latest or 0.0)
        except (OSError, sqlite3.Error):  # one that cannot be read says nothing
            continue
    return latest


def _period(book: Book, settings: CurateSettings, now: datetime) -> tuple[float, str]:
    """Seconds until the period is over, and the name of the run that follows."""
    every = settings.every_days * _DAY
    last = book.looked()
    if last is None:
        text = book.fact("asked")
        try:
            last = datetime.fromisoformat(text)
        except ValueError:
            book.set_fact("asked", now.isoformat())
            last = now
        key = f"first {last:%Y-%m-%d %H:%M:%S}"
    else:
        key = f"after {last:%Y-%m-%d %H:%M:%S}"
    # A clock that was put back makes nobody wait longer than a period.
    return min(every - (now - last).total_seconds(), every), key
