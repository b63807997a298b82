"""Recurrences in plain English: `every weekday 9:00`, `every 2 hours`, `mondays at noon`.

Owns the grammar; `single.py` has single moments. What it does not know it leaves alone (None); what
it knows to be incomplete, as `every day` without a time, it refuses: a time is never assumed.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tacit.base.errors import Usage
from tacit.work.schedules.recurrence import Cron, Days, Interval, Timing
from tacit.work.schedules.words import (
    NUMBER,
    OF_YEAR,
    ORDINALS,
    UNIT,
    UNITS,
    WEEKDAY,
    clock_time,
    month_and_day,
    number,
    take_times,
    unit,
    weekdays,
)
from tacit.work.schedules.zones import wall

_AGAIN = re.compile(
    r"\b(?:every|each|daily|hourly|weekly|monthly|yearly|annually|weekdays|workdays|weekends"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b"
)
_DAYS = rf"(?:{WEEKDAY})(?:\s*(?:,|and|&|/|-)\s*(?:{WEEKDAY})|\s+(?:{WEEKDAY}))*"
_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)?"
_WINDOW = re.compile(
    r"\b(?:between|from)\s+([\d:]+\s*(?:[ap]m)?)\s*(?:and|to|until|till|-)\s*([\d:]+\s*(?:[ap]m)?)"
)
_STEP = re.compile(
    rf"(?:every|each)\s+(?:({NUMBER}|other|single)\s*)?\b({UNIT})\b(?:\s+on\b)?\s*(.*)"
)
_ON_DAYS = re.compile(rf"(?:on\s+)?(?:every\s+|each\s+|all\s+)?({_DAYS})(?:\s+on)?")
_PAST_HOUR = re.compile(r"(?:at\s+)?:(\d{2})|at\s+(\d{1,2})\s+(?:minutes\s+)?past")
_OF_MONTH = re.compile(
    rf"(?:on\s+)?(?:the\s+)?(?:{_ORDINAL}|(last) day|({'|'.join(ORDINALS)}|last) ({WEEKDAY}))"
    r"(?:\s+day)?(?:\s+of\s+(?:every|each|the|a)\s+month)?"
)
_OF_YEAR = re.compile(OF_YEAR)
_SHORT = {"daily": "every day", "hourly": "every hour", "weekly": "every week",
          "monthly": "every month", "yearly": "every year", "annually": "every year"}  # fmt: skip


def recurs(text: str) -> bool:
    """Whether `text` has a word that only recurrences have."""
    return _AGAIN.search(text) is not None


def recurrence(text: str, now: datetime, place: ZoneInfo) -> Timing | None:
    """What a recurrence in words means; None where `text` is none."""
    if not recurs(text):
        return None
    for short, long in _SHORT.items():
        text = re.sub(rf"\b{short}\b", long, text)
    window = _WINDOW.search(text)
    if window:
        text = " ".join((text[: window.start()] + " " + text[window.end() :]).split())
    past = (
        _PAST_HOUR.search(text) if re.search(r"\b(?:every|each) (?:\d+ )?hours?\b", text) else None
    )
    if past:
        text = " ".join((text[: past.start()] + " " + text[past.end() :]).split())
    times, rest = take_times(text)
    if match := _STEP.fullmatch(rest):
        step = (
            2
            if match[1] == "other"
            else number(match[1] if match[1] not in (None, "single") else "1")
        )
        kind = unit(match[2])
        if step < 1:
            raise Usage(f"'every {step} {kind}s' is never", "take at least 1")
        if kind in ("second", "minute", "hour") and not times:
            minute = int(past[1] or past[2]) if past else 0
            return _often(step, kind, minute, window, match[3], now)
        return _calendar(step, kind, match[3], times, now, place)
    if match := _ON_DAYS.fullmatch(rest):
        return _cron(_needed(times, text), f"* * {_days(match[1])}")
    if (match := re.fullmatch(r"(?:every|each)\s+(.*)", rest)) or "of every month" in rest:
        about = match[1] if match else rest
        if found := _OF_MONTH.fullmatch(about):
            return _monthly(found, 1, _needed(times, text))
        if found := _OF_YEAR.fullmatch(about):
            return _yearly(found, _needed(times, text))
    return None


def _often(
    step: int, kind: str, minute: int, window: re.Match[str] | None, rest: str, now: datetime
) -> Timing:
    """Every few seconds, minutes or hours; within hours and on weekdays where it says so."""
    days = "* * *"
    if rest.strip():
        if not (match := _ON_DAYS.fullmatch(rest.strip())):
            raise Usage(f"'{rest}' is not understood", "e.g. every 15 minutes on weekdays")
        days = f"* * {_days(match[1])}"
    if window is not None:
        return _in_window(step, kind, minute, window, days)
    if kind == "hour" and 24 % step == 0:
        return Cron((f"{minute} {'*' if step == 1 else f'*/{step}'} {days}",))
    if kind != "hour" and 60 % step == 0:
        every = "*" if step == 1 else f"*/{step}"
        return Cron((f"{every} * {days}" if kind == "minute" else f"{every} * * {days}",))
    if days != "* * *" or minute:
        raise Usage(
            f"'every {step} {kind}s' does not divide a day", "take a step that does, or cron"
        )
    return Interval(step * UNITS[kind], now.replace(microsecond=0))


def _in_window(step: int, kind: str, minute: int, window: re.Match[str], days: str) -> Cron:
    low, high = (clock_time(part)[:5] for part in window.groups())
    first, last = int(low[:2]), int(high[:2])
    if low[3:] != "00" or high[3:] != "00" or first >= last or kind == "second":
        raise Usage(
            f"'{window[0]}' is not understood", "name two full hours, e.g. between 9:00 and 17:00"
        )
    if kind == "hour":
        return Cron((f"{minute} {first}-{last}{f'/{step}' if step > 1 else ''} {days}",))
    if 60 % step:
        raise Usage(f"'every {step} minutes' does not divide an hour", "take 5, 10, 15, 20 or 30")
    every = "*" if step == 1 else f"*/{step}"
    return Cron((f"{every} {first}-{last - 1} {days}", f"0 {last} {days}"))


def _calendar(
    step: int, kind: str, rest: str, times: Sequence[str], now: datetime, place: ZoneInfo
) -> Timing | None:
    """Every few days, weeks, months or years, at times of the day."""
    said = f"every {kind}" if step == 1 else f"every {step} {kind}s"
    rest = rest.strip()
    if kind == "day" and not rest:
        clock = _needed(times, said)
        return _cron(clock, "* * *") if step == 1 else Days(step, _first(clock, now, place), clock)
    if kind == "week":
        match = _ON_DAYS.fullmatch(rest)
        if match is None:
            raise Usage(f"'{said}' does not say on which day", f"e.g. {said} on monday at 9:00")
        days = weekdays(match[1])
        if step == 1:
            return _cron(_needed(times, said), f"* * {_days(match[1])}")
        if len(days) > 1:
            raise Usage(f"'{said}' takes one day of the week", "make a schedule for each")
        clock = _needed(times, said)
        return Days(step * 7, _first(clock, now, place, days[0]), clock)
    if kind == "month":
        found = _OF_MONTH.fullmatch(rest)
        if found is None:
            raise Usage(f"'{said}' does not say on which day", f"e.g. {said} on the 1st at 9:00")
        return _monthly(found, step, _needed(times, said))
    if kind == "year" and step == 1:
        if not (found := _OF_YEAR.fullmatch(rest)):
            raise Usage(f"'{said}' does not say on which day", f"e.g. {said} on 1 march at 9:00")
        return _yearly(found, _needed(times, said))
    return None


def _monthly(found: re.Match[str], step: int, times: tuple[str, ...]) -> Cron:
    if 12 % step:
        raise Usage(f"'every {step} months' does not divide a year", "take 1, 2, 3, 4, 6 or 12")
    months = "*" if step == 1 else f"*/{step}"
    if found[1]:
        if not 1 <= int(found[1]) <= 31:
            raise Usage(f"no month has a day {found[1]}", "take 1 to 31, or 'the last day'")
        return _cron(times, f"{int(found[1])} {months} *")
    if found[2]:
        return _cron(times, f"L {months} *")
    days = weekdays(found[4])
    if len(days) != 1:
        raise Usage(f"'{found[0]}' is not one day", "name one day of the week")
    nth = "L" if found[3] == "last" else f"#{ORDINALS[found[3]]}"
    return _cron(times, f"* {months} {(days[0] + 1) % 7}{nth}")


def _yearly(found: re.Match[str], times: tuple[str, ...]) -> Cron:
    number_, day = month_and_day(found)
    try:
        date(2024, number_, day)
    except ValueError:
        raise Usage(f"'{found[0]}' is not a day of the year", "e.g. on 1 march") from None
    return _cron(times, f"{day} {number_} *")


def _cron(times: Sequence[str], days: str) -> Cron:
    """One expression for the times that share a minute and a second."""
    groups: dict[str, list[int]] = {}
    for at in times:
        hour, minute, *second = (int(part) for part in at.split(":"))
        head = f"{second[0]} {minute}" if second else f"{minute}"
        groups.setdefault(head, []).append(hour)
    return Cron(
        tuple(f"{head} {','.join(map(str, hours))} {days}" for head, hours in groups.items())
    )


def _days(text: str) -> str:
    found = weekdays(text)
    if found == list(range(7)):
        return "*"
    if found == list(range(5)):
        return "1-5"
    return ",".join(str((day + 1) % 7) for day in found)


def _needed(times: Sequence[str], said: str) -> tuple[str, ...]:
    if not times:
        raise Usage(f"'{said}' says no time of day", f"add one, e.g.: {said} 9:00")
    return tuple(times)


def _first(
    times: Sequence[str], now: datetime, place: ZoneInfo, weekday: int | None = None
) -> date:
    """The first day on which one of `times` is still to come."""
    here = wall(now, place)
    day = here.date()
    if here.time() >= max(time.fromisoformat(at) for at in times):
        day += timedelta(days=1)
    return day if weekday is None else day + timedelta(days=(weekday - day.weekday()) % 7)
