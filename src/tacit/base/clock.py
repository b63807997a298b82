"""The time, behind a Protocol so that tests and schedules bring their own, and moments as people
write and read them: `30d`, `12h`, a date, `3 d ago`.

The grammar of schedules is `work/`'s.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from tacit.base.errors import Usage


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


_AGO = re.compile(r"(\d+)\s*(m|min|h|d|w|mo|y)", re.I)
_UNITS = {"m": 1, "min": 1, "h": 60, "d": 1440, "w": 10080, "mo": 43200, "y": 525600}


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """The moment that `text` means: so long before now, or a date. Raises `Usage`."""
    now = now or datetime.now(UTC)
    if match := _AGO.fullmatch(text.strip()):
        try:
            return now - timedelta(minutes=int(match[1]) * _UNITS[match[2].lower()])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Usage(f"'{text}' is not a time", "write 30d, 12h, or a date: 2026-11-15") from None
    return found if found.tzinfo else found.astimezone()


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in a word or two."""
    if moment is None:
        return "?"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if seconds < 60:
        return "just now"
    for size, unit in (
        (31_536_000, "y"),
        (2_592_000, "mo"),
        (86_400, "d"),
        (3600, "h"),
        (60, "min"),
    ):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def until_tomorrow(now: float | None = None) -> float:
    """Seconds until the day is over here, and a little more."""
    now = time.time() if now is None else now
    day = datetime.fromtimestamp(now)
    midnight = datetime(day.year, day.month, day.day) + timedelta(days=1)
    return max(midnight.timestamp() - now, 0.0) + 60.0
