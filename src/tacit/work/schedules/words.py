"""The pieces that times in words are made of: times of day, weekdays, months, units, numbers.

`english.py` puts them together; Chinese is first turned into these words by `chinese.py`.
"""

import re

from tacit.base.errors import Usage

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


def take_times(text: str) -> tuple[list[str], str]:
    """The times of day in `text` as `HH:MM` or `HH:MM:SS`, and what is left of it."""
    times: list[str] = []

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
