"""When something is due: the four kinds of timing, and the due times of each.

Owns no words: `times.py` reads what people write. All moments are in UTC; a timing is read in a
zone. Cron that names hours is about what clocks show: a time that does not exist moves to the next
that does, a time that comes twice counts once. Cron that runs in every hour is about time that
passes: the hour that comes twice has all its minutes twice, and the missing one has none.
"""

import heapq
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tacit.base.errors import MissingExtra, Usage
from tacit.work.schedules.zones import exact, moment, wall

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Whenever one of these expressions of 5 or 6 fields says so."""

    expressions: tuple[str, ...]


class Interval(msgspec.Struct, frozen=True, tag="interval"):
    """Every so many seconds of time that passes, counted from `start`, which is not due itself."""

    seconds: int
    start: datetime


class Days(msgspec.Struct, frozen=True, tag="days"):
    """Every so many days, counted from `first`, at these times of the day (`HH:MM`)."""

    every: int
    first: date
    times: tuple[str, ...]


class Once(msgspec.Struct, frozen=True, tag="once"):
    """One moment."""

    at: datetime


Timing = Cron | Interval | Days | Once


def due_after(timing: Timing, place: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The due times later than `after`, in order, each once. It may go on for ever."""
    match timing:
        case Once(at=at):
            if at > after:
                yield at
        case Interval(seconds=seconds, start=start):
            passed = max(int((after - start).total_seconds() // seconds), 0)
            for number in _counting(passed + 1):
                if (at := start + timedelta(seconds=number * seconds)) > after:
                    yield at
        case Days():
            yield from _later(_days(timing, place, after), place, after)
        case Cron(expressions=expressions):
            each = [_cron(expression, place, after) for expression in expressions]
            last = after
            for at in heapq.merge(*each):
                if at > last:
                    yield at
                    last = at


def next_times(timing: Timing, place: ZoneInfo, after: datetime, most: int = 3) -> list[datetime]:
    """The next few due times."""
    return [at for at, _ in zip(due_after(timing, place, after), range(most), strict=False)]


def check_cron(expression: str) -> str:
    """The expression in its plain form. Raises `Usage` where it is wrong, or never comes true."""
    plain = " ".join(MACROS.get(expression.strip().lower(), expression).split())
    simulate, error = _cronsim()
    try:
        found = next(iter(simulate(plain, datetime(2024, 1, 1))), None)
    except (error, ValueError) as wrong:
        raise Usage(
            f"the cron expression '{plain}' is wrong: {str(wrong).lower()}",
            "five fields: minute hour day month weekday, e.g. 0 9 * * 1-5; or six with seconds",
        ) from None
    if found is None:
        raise Usage(f"the cron expression '{plain}' never comes true", "check its day and month")
    return plain


def describe(timing: Timing, place: ZoneInfo) -> str:
    """What the timing is, for people; the due times say the rest."""
    match timing:
        case Once(at=at):
            return f"once, {exact(at, place)}"
        case Interval(seconds=seconds):
            return f"every {length(seconds)}"
        case Days(every=every, times=times):
            often = "every day" if every == 1 else f"every {every} days"
            return f"{often} at {' and '.join(times)} {place.key}"
        case Cron(expressions=expressions):
            return f"{_told(expressions)} ({'; '.join(expressions)}) {place.key}"


def _told(expressions: tuple[str, ...]) -> str:
    """Cron in words."""
    simulate, _ = _cronsim()
    each = [simulate(text, datetime(2024, 1, 1)).explain() for text in expressions]
    told = " and ".join(text[:1].lower() + text[1:] for text in each)
    return str(told)


def length(seconds: float) -> str:
    """A span of time in words: `90 minutes`, `2 hours`."""
    whole = int(seconds)
    for size, unit in ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}{'s' if whole != size else ''}"
    return f"{whole} second{'s' if whole != 1 else ''}"


def _cron(expression: str, place: ZoneInfo, after: datetime) -> Iterator[datetime]:
    simulate, _ = _cronsim()
    fields = expression.split()
    start = after.astimezone(UTC).replace(microsecond=0)
    if fields[-4] in ("*", "*/1", "0-23"):
        yield from _passing(simulate, expression, place, start)
        return
    yield from _later(simulate(expression, wall(start, place)), place, after)


def _passing(
    simulate: Any, expression: str, place: ZoneInfo, after: datetime
) -> Iterator[datetime]:
    """Cron by time that passes: as if clocks were never changed, begun anew at each change.

    (cronsim's own walk through a zone jumps over a change of half an hour.)
    """
    last, offset = after, _offset(after, place)
    while True:
        shown_last = (last + offset).replace(tzinfo=None)
        for shown in simulate(expression, shown_last):
            at = (shown - offset).replace(tzinfo=UTC)
            if _offset(at, place) != offset:
                change = _change(last, at, place)
                last, offset = change - timedelta(seconds=1), _offset(change, place)
                break
            yield at
            last = at
        else:
            return


def _change(low: datetime, high: datetime, place: ZoneInfo) -> datetime:
    """The first moment with another offset than `low` has; `high` has another one."""
    offset = _offset(low, place)
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if _offset(middle, place) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(at: datetime, place: ZoneInfo) -> timedelta:
    return at.astimezone(place).utcoffset() or timedelta(0)


def _days(timing: Days, place: ZoneInfo, after: datetime) -> Iterator[datetime]:
    today = wall(after, place).date()
    # One turn early: where a whole day is missing, yesterday's times are still to come.
    passed = max((today - timing.first).days // timing.every - 1, 0)
    clock = sorted(time.fromisoformat(text) for text in timing.times)
    for number in _counting(passed):
        day = timing.first + timedelta(days=number * timing.every)
        yield from (datetime.combine(day, at) for at in clock)


def _later(walls: Iterator[datetime], place: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Wall-clock times as moments later than `after`. Several in a gap are the same moment."""
    last = after
    for shown in walls:
        at = moment(shown, place)
        if at > last:
            yield at
            last = at


def _counting(start: int) -> Iterator[int]:
    number = start
    while True:
        yield number
        number += 1


def _cronsim() -> tuple[Any, type[Exception]]:
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise MissingExtra("work", "a schedule by cron") from None
    return CronSim, CronSimError
