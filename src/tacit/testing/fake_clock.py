"""A clock that a test moves by hand."""

from datetime import UTC, datetime, timedelta
from threading import Lock

_START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """Stands still until it is told otherwise. Safe from any thread.

    The wall clock may be set to any moment, also backwards, as a person or a time server does;
    `monotonic` only grows, as on a real machine.
    """

    def __init__(self, start: datetime = _START) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock starts at a moment with a zone; add tzinfo=UTC")
        self._now = start
        self._monotonic = 0.0
        self._lock = Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def advance(self, by: float | timedelta) -> datetime:
        """Let time pass, in seconds or as a timedelta; returns the new moment."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise ValueError("time does not pass backwards; use set() to put the wall clock back")
        with self._lock:
            # Through UTC, so that an hour is an hour also where the zone changes its offset.
            self._now = (self._now.astimezone(UTC) + step).astimezone(self._now.tzinfo)
            self._monotonic += step.total_seconds()
            return self._now

    def set(self, moment: datetime) -> None:
        """Put the wall clock to `moment`. Durations are not touched."""
        if moment.tzinfo is None:
            raise ValueError("a clock is set to a moment with a zone; add tzinfo=UTC")
        with self._lock:
            self._now = moment
