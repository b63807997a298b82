"""A reference for cron that anybody can check: every minute of a span, walked in its zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

MINUTE = timedelta(minutes=1)


class Fields(msgspec.Struct, frozen=True):
    """Cron as sets; None is a star."""

    minutes: frozenset[int] | None
    hours: frozenset[int] | None
    days: frozenset[int] | None
    months: frozenset[int] | None
    weekdays: frozenset[int] | None
    """Sunday is 0."""

    @property
    def text(self) -> str:
        parts = (self.minutes, self.hours, self.days, self.months, self.weekdays)
        return " ".join("*" if p is None else ",".join(map(str, sorted(p))) for p in parts)

    def fits(self, wall: datetime) -> bool:
        """Whether clocks that show `wall` show a time that is meant."""
        if self.minutes is not None and wall.minute not in self.minutes:
            return False
        if self.hours is not None and wall.hour not in self.hours:
            return False
        if self.months is not None and wall.month not in self.months:
            return False
        by_day = self.days is None or wall.day in self.days
        by_weekday = self.weekdays is None or (wall.weekday() + 1) % 7 in self.weekdays
        if self.days is not None and self.weekdays is not None:
            return by_day or by_weekday
        return by_day and by_weekday


def walked(fields: Fields, zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """The due times after `start`, up to and with `end`."""
    at = start.astimezone(UTC).replace(second=0, microsecond=0)
    shown = at.astimezone(zone).replace(tzinfo=None)
    latest = shown  # the latest time that clocks have shown so far
    while (at := at + MINUTE) <= end:
        shown = at.astimezone(zone).replace(tzinfo=None)
        if fields.hours is None:  # by time that passes
            due = fields.fits(shown)
        elif shown <= latest:  # clocks were put back: it was shown before
            due = False
        else:
            due = False
            while latest < shown:  # several minutes at once where clocks were put forward
                latest += MINUTE
                due = due or fields.fits(latest)
        latest = max(latest, shown)
        if due:
            yield at
