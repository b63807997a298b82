"""When something is due: time zones, the four kinds of timing, and the due times of each.

Owns no words: `written_times` reads what people write. All moments are in UTC; a timing is read
in a zone. A wall-clock time that does not exist is the first moment after the gap, and one that
comes twice is the first of the two. Cron that names hours follows the clock on the wall; cron
that runs in every hour follows time that passes, so the hour that comes twice has all its
minutes twice.
"""

import difflib
import heapq
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from tacit.base.errors import MissingExtra, Usage

_WHERE = "/etc/localtime"
_NAMED = "/etc/timezone"


def zone(name: str) -> ZoneInfo:
    """The zone called `name`, as in the tz database. Raises `Usage` with what is near."""
    wanted = name.strip()
    try:
        if not wanted or wanted.startswith(("/", ".")):
            raise ValueError(wanted)
        return ZoneInfo(wanted)
    except (ValueError, OSError, KeyError):  # unknown, a folder of the database, or no database
        raise _unknown(wanted) from None


def local_zone(chosen: str = "") -> str:
    """The name of the zone to use: the one that is set, else the machine's, else UTC.

    Raises `Usage` where the one that is set does not exist.
    """
    if chosen:
        return zone(chosen).key
    for found in (os.environ.get("TZ", "").lstrip(":"), _linked(), _named()):
        if found:
            try:
                return zone(found).key
            except Usage:
                continue
    return "UTC"


def moment(wall: datetime, place: ZoneInfo) -> datetime:
    """The moment, in UTC, at which clocks in `place` show `wall` for the first time.

    Where they never show it, the first moment after it.
    """
    here = wall.replace(tzinfo=place, fold=0)
    found = here.astimezone(UTC)
    if found.astimezone(place).replace(tzinfo=None) == wall:
        return found
    # In a gap. Read with the offset before it, the time lies as far behind the gap's end as it
    # should lie behind its beginning; the offsets on both sides give the end itself.
    before, after = (here.replace(fold=fold).utcoffset() or timedelta(0) for fold in (0, 1))
    low, high = found - (after - before), found
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle.astimezone(place).replace(tzinfo=None) > wall:
            high = middle
        else:
            low = middle
    return high


def wall(at: datetime, place: ZoneInfo) -> datetime:
    """What clocks in `place` show at a moment."""
    return at.astimezone(place).replace(tzinfo=None, fold=0)


def exact_time(at: datetime, place: ZoneInfo) -> str:
    """A moment as people read it, with nothing left open: `Mon 16 Nov 2026 09:00 Europe/Paris`."""
    there = at.astimezone(place)
    seconds = ":%S" if there.second else ""
    offset = there.strftime("%z")
    shown = f"UTC{offset[:3]}:{offset[3:5]}" if offset not in ("+0000", "") else "UTC"
    name = place.key
    tail = name if name == shown else f"{name} ({shown})"
    return f"{there.strftime(f'%a %d %b %Y %H:%M{seconds}')} {tail}"


def _unknown(name: str) -> Usage:
    known = available_timezones()
    lower = {key.casefold(): key for key in known}
    cities = {key.rpartition("/")[2].casefold(): key for key in sorted(known)}
    wanted = name.casefold().replace(" ", "_")
    near = [lower[wanted]] if wanted in lower else []
    near += [cities[wanted]] if wanted in cities else []
    near += [lower[key] for key in difflib.get_close_matches(wanted, lower, 3)]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "e.g. Europe/Paris"
    return Usage(f"there is no time zone '{name}'", hint)


def _linked() -> str:
    """The zone that /etc/localtime points to."""
    try:
        real = os.path.realpath(_WHERE)
    except OSError:
        return ""
    _, mark, name = real.partition("/zoneinfo/")
    return name.removeprefix("posix/").removeprefix("right/") if mark else ""


def _named() -> str:
    try:
        with open(_NAMED, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


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
            return f"once, {exact_time(at, place)}"
        case Interval(seconds=seconds):
            return f"every {span_in_words(seconds)}"
        case Days(every=every, times=times):
            often = "every day" if every == 1 else f"every {every} days"
            return f"{often} at {' and '.join(times)} {place.key}"
        case Cron(expressions=expressions):
            return f"{_cron_in_words(expressions)} ({'; '.join(expressions)}) {place.key}"


def _cron_in_words(expressions: tuple[str, ...]) -> str:
    """Cron in words."""
    simulate, _ = _cronsim()
    each = [simulate(text, datetime(2024, 1, 1)).explain() for text in expressions]
    text = " and ".join(text[:1].lower() + text[1:] for text in each)
    return str(text)


def span_in_words(seconds: float) -> str:
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


def _later(local_times: Iterator[datetime], place: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Wall-clock times as moments later than `after`. Several in a gap are the same moment."""
    last = after
    for shown in local_times:
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
