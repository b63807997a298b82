"""The time, behind a Protocol so that tests and schedules can bring their own."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time. Any thread may ask, at any moment."""

    def now(self) -> datetime:
        """The present moment, with a zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for measuring durations."""
        ...


class SystemClock:
    """The machine's own clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
