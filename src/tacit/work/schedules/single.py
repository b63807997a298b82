"""Single moments in plain English: `tomorrow at noon`, `in 2 hours`, `25 december 8am`.

What it does not know it leaves alone (None); what lacks a time of day it refuses. A time of day
alone is the next one: tomorrow's where today's is past.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tacit.base.errors import Usage
from tacit.work.schedules.recurrence import Once
from tacit.work.schedules.words import (
    NUMBER,
    OF_YEAR,
    UNIT,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    month_and_day,
    number,
    take_times,
    unit,
    weekdays,
)
from tacit.work.schedules.zones import moment, wall

_SPAN = (
    rf"(half an hour|an hour and a half"
    rf"|(?:(?<![a-z]){NUMBER}\s*{UNIT}(?![a-z])(?:\s*(?:,|and)?\s*)?)+)"
)
_RELATIVE = re.compile(rf"in\s+{_SPAN}(?:\s*(?:from now|later))?")
_RELATIVE_LATE = re.compile(rf"{_SPAN}\s*(?:from now|later|after now)")
_SPAN_ALONE = re.compile(_SPAN)
_RELATIVE_PART = re.compile(rf"(?<![a-z])({NUMBER})\s*({UNIT})(?![a-z])")
_EVENING = re.compile(r"\b(?:tonight|evening|night|afternoon)\b")
_NEXT = re.compile(rf"(?:on\s+)?(?:(next|this|coming)\s+)?({WEEKDAY})(?:\s+(next|this) week)?")
_ISO = re.compile(r"(?:on\s+)?(\d{4})-(\d{1,2})-(\d{1,2})(?:t)?")
_DATED = re.compile(rf"{OF_YEAR}(?:[\s,]+(?P<year>\d{{4}}))?")


def once(text: str, now: datetime, place: ZoneInfo) -> Once | None:
    """What a single moment in words means; None where `text` is none that is known here."""
    if match := _RELATIVE.fullmatch(text) or _RELATIVE_LATE.fullmatch(text):
        return Once(_later(match[1], now, place))
    if _SPAN_ALONE.fullmatch(text):
        raise Usage(f"'{text}' can be a time or a span", f"write: in {text}; or a time as 18:00")
    times, rest = take_times(text)
    if len(times) == 1 and _EVENING.search(rest) and "01" <= times[0] < "12" and "am" not in text:
        times = [
            f"{int(times[0][:2]) + 12}{times[0][2:]}"
        ]  # nobody's evening is at 8 in the morning
    if len(times) == 1 and not rest:
        return Once(_next_clock(times[0], now, place))
    day = _day(rest, times, now, place)
    if day is None:
        return None
    if not times:
        raise Usage(f"'{text}' says no time of day", f"add one: {text} 9:00")
    if len(times) > 1:
        raise Usage(f"'{text}' names several times", "make one schedule for each, or say every …")
    return Once(moment(datetime.combine(day, time.fromisoformat(times[0])), place))


def _next_clock(at: str, now: datetime, place: ZoneInfo) -> datetime:
    """A time of day alone: today, or tomorrow where it is past."""
    today, clock = wall(now, place).date(), time.fromisoformat(at)
    found = moment(datetime.combine(today, clock), place)
    if found > now:
        return found
    return moment(datetime.combine(today + timedelta(days=1), clock), place)


def _later(text: str, now: datetime, place: ZoneInfo) -> datetime:
    """So long after now: hours and less as time that passes, days by the calendar."""
    fixed = {"half an hour": "30 minutes", "an hour and a half": "90 minutes"}
    seconds, days, months = 0, 0, 0
    for count, name in _RELATIVE_PART.findall(fixed.get(text, text)):
        kind = unit(name)
        if kind in ("day", "week"):
            days += number(count) * (7 if kind == "week" else 1)
        elif kind in ("month", "year"):
            months += number(count) * (12 if kind == "year" else 1)
        else:
            seconds += number(count) * UNITS[kind]
    try:
        shown = wall(now, place) + timedelta(days=days)
        if months:
            shown = _plus_months(shown, months)
        base = moment(shown, place) if days or months else now
        return (base + timedelta(seconds=seconds)).replace(microsecond=0)
    except (OverflowError, ValueError):
        raise Usage(f"'{text}' is too far away", "name a nearer time") from None


def _plus_months(shown: datetime, months: int) -> datetime:
    import calendar

    total = shown.year * 12 + shown.month - 1 + months
    year, index = divmod(total, 12)
    last = calendar.monthrange(year, index + 1)[1]
    return shown.replace(year=year, month=index + 1, day=min(shown.day, last))


def _day(rest: str, times: Sequence[str], now: datetime, place: ZoneInfo) -> date | None:
    """The day that the words beside a time of day mean."""
    today = wall(now, place).date()
    if rest in ("today", "tonight", "this evening", "this afternoon", "this morning"):
        return today
    if rest in ("tomorrow", "tmr", "tomorrow morning", "tomorrow evening", "tomorrow night",
                "tomorrow afternoon"):  # fmt: skip
        return today + timedelta(days=1)
    if rest in ("the day after tomorrow", "day after tomorrow", "overmorrow"):
        return today + timedelta(days=2)
    if match := re.fullmatch(rf"in\s+({NUMBER})\s+(days?|weeks?)", rest):
        return today + timedelta(days=number(match[1]) * (7 if match[2].startswith("w") else 1))
    if match := _NEXT.fullmatch(rest):
        return _weekday(match, times, now, place)
    try:
        if match := _ISO.fullmatch(rest):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := _DATED.fullmatch(rest):
            return _dated(match, today)
    except ValueError:
        raise Usage(f"there is no day '{rest}'", "write it as 2026-12-24") from None
    return None


def _weekday(
    match: re.Match[str], times: Sequence[str], now: datetime, place: ZoneInfo
) -> date | None:
    days = weekdays(match[2])
    if len(days) != 1 or (match[2].endswith("s") and match[2][:-1] not in WEEKDAYS):
        return None
    here = wall(now, place)
    today = here.date()
    monday = today - timedelta(days=today.weekday())
    if match[3]:
        return monday + timedelta(days=days[0] + (7 if match[3] == "next" else 0))
    ahead = (days[0] - today.weekday()) % 7
    if ahead == 0 and (
        match[1] == "next" or not times or here.time() >= time.fromisoformat(times[0])
    ):
        ahead = 7
    return today + timedelta(days=ahead)


def _dated(match: re.Match[str], today: date) -> date:
    month, day = month_and_day(match)
    if match["year"]:
        return date(int(match["year"]), month, day)
    this = date(today.year, month, day)
    return this if this >= today else date(today.year + 1, month, day)
