"""Times in plain English: `every weekday 9:00`, `mondays at noon`, `tomorrow 9am`, `in 2 hours`.

Owns the grammar, for recurrences and for single moments. It returns None for what it does not
know, and refuses what it knows to be incomplete, such as `every day` without a time: a time of
day is never assumed. A time of day alone is the next one, tomorrow's where today's is past.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tacit.base.errors import Usage
from tacit.work.due_times import Cron, Days, Interval, Once, Timing, moment, wall

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}

WEEKDAY = (
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?s?"
    r"|weekdays?|workdays?|working days?|business days?|weekends?"
)
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|years?|[smhdw])"
NUMBER = (
    r"(?:\d+|(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty"
    r"|thirty)\b)"
)
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
OF_YEAR = (
    rf"(?:on\s+)?(?:the\s+)?(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<m1>{MONTH})"
    rf"|(?P<m2>{MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?|(?P<m3>\d{{1,2}})-(?P<d3>\d{{1,2}}))"
)
"""A day without its year: `25 december`, `dec 25th`, `12-25`."""
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}

_HALF = r"\s*(?:[ap]\.?m\b\.?)"
# A time that can be nothing else; a bare hour counts only after "at".
_SURE = (
    rf"(?:\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:{_HALF})?|\d{{1,2}}{_HALF}|\d{{1,2}}\s*o'?\s?clock"
    r"|noon|midday|midnight)"
)
_LOOSE = rf"(?:{_SURE}|\d{{1,2}}(?![\d:/.-]))"
_JOIN = r"\s*(?:,|and|&)\s*(?:at\s+)?"
_AT = re.compile(rf"(?:\bat\b|@)\s*({_LOOSE}(?:{_JOIN}{_LOOSE})*)(?=\s|$|,)")
_BARE = re.compile(rf"(?<![\d:+-])({_SURE}(?:{_JOIN}{_SURE})*)(?=\s|$|,)")
_PART = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*([ap])?")
_HOURS = {name: value for name, value in _NUMBERS.items() if value <= 12 and len(name) > 2} | {
    "eleven": 11
}
_HOUR = rf"({'|'.join(_HOURS)}|\d{{1,2}})"
_PAST = {"half past": ":30", "quarter past": ":15", "a quarter past": ":15"}
# Hours in words, where nothing but an hour can be meant.
_HOUR_IN_WORDS = re.compile(
    rf"\b(?:at\s+)?(half past|(?:a )?quarter past|at)\s+{_HOUR}\b(?:\s+(thirty|fifteen))?"
    rf"|\b({'|'.join(_HOURS)})(?=\s*(?:[ap]\.?m\b|o'?\s?clock))"
)
_NAMED = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}


def number(text: str) -> int:
    """`2`, `two`, `a`. `text` must fit `NUMBER`."""
    return int(text) if text.isdigit() else _NUMBERS[text]


def unit(text: str) -> str:
    """The unit in its plain form: `mins` is `minute`."""
    for name in ("second", "minute", "hour", "day", "week", "month", "year"):
        if text.rstrip("s") == name or (len(text) <= 4 and name.startswith(text[:2])):
            return name
    return {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}.get(
        text[:1], {"hr": "hour", "wk": "week"}.get(text.rstrip("s"), "")
    )


def month_and_day(found: re.Match[str]) -> tuple[int, int]:
    """What a match of `OF_YEAR` names."""
    name = found["m1"] or found["m2"]
    month = MONTHS.index(name[:3]) + 1 if name else int(found["m3"])
    return month, int(found["d1"] or found["d2"] or found["d3"])


def weekdays(text: str) -> list[int]:
    """The days that a list names, Monday as 0: `mon, wed and fri`, `mon-fri`, `weekdays`."""
    found: set[int] = set()
    for part in re.split(r"\s*(?:,|and|&|/)\s*|\s+", text.strip()):
        if not part or part in ("day", "days"):
            continue
        if part in ("weekday", "weekdays", "workday", "workdays", "working", "business"):
            found.update(range(5))
        elif part.startswith("weekend"):
            found.update((5, 6))
        elif "-" in part:
            low, high = (WEEKDAYS.index(end.strip()[:3]) for end in part.split("-", 1))
            found.update(
                range(low, high + 1) if low <= high else [*range(low, 7), *range(high + 1)]
            )
        else:
            found.add(WEEKDAYS.index(part[:3]))
    return sorted(found)


def _hours_as_digits(text: str) -> str:
    """`at nine` as `at 9`, `half past nine` as `at 9:30`."""

    def digits(match: re.Match[str]) -> str:
        if match[4]:
            return str(_HOURS[match[4]])
        minutes = _PAST.get(match[1], f":{_NUMBERS[match[3]]}" if match[3] else "")
        return f"at {_HOURS.get(match[2], match[2])}{minutes}"

    return _HOUR_IN_WORDS.sub(digits, text)


def take_times(text: str) -> tuple[list[str], str]:
    """The times of day in `text` as `HH:MM` or `HH:MM:SS`, and what is left of it."""
    times: list[str] = []
    text = _hours_as_digits(text)

    def take(match: re.Match[str]) -> str:
        times.extend(
            clock_time(part) for part in re.split(r",|\band\b|&", match[1]) if part.strip()
        )
        return " "

    rest = _BARE.sub(take, _AT.sub(take, text))
    return sorted(set(times)), " ".join(rest.split()).strip(" ,")


def clock_time(text: str) -> str:
    """A time of day as `HH:MM`, with seconds only where there are some. Raises `Usage`."""
    shown = text.strip().removeprefix("at ").strip()
    if shown in _NAMED:
        return _NAMED[shown]
    match = _PART.match(shown)
    if match is None:
        raise Usage(f"'{text}' is not a time of day", "write it as 9:00, 21:30 or 9am")
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= 12:
            raise Usage(f"'{shown}' is not a time of day", "write it as 21:30 or 9:30 pm")
        hour = hour % 12 + (12 if match[4] == "p" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise Usage(f"'{shown}' is not a time of day", "hours go from 0 to 23, minutes to 59")
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")


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


def read_recurrence(text: str, now: datetime, place: ZoneInfo) -> Timing | None:
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


def read_moment(text: str, now: datetime, place: ZoneInfo) -> Once | None:
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
