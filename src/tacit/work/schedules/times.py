"""What people write for a time: cron, `+5m`, `9:00`, dates, RFC 3339, words in two languages.

Owns the order in which these are tried and what is refused: times that are past, incomplete or
ambiguous. A time of day is never assumed; what was understood is always said back exactly.
"""

import re
import unicodedata
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from tacit.base.errors import Usage
from tacit.work.schedules import chinese, english, single
from tacit.work.schedules.recurrence import (
    MACROS,
    Cron,
    Once,
    Timing,
    check_cron,
    describe,
    next_times,
)
from tacit.work.schedules.zones import exact, moment, zone

_HINT = "e.g. every weekday 9:00, every 2 hours, tomorrow 9am, +30m, 2026-12-24 18:00, 0 9 * * 1-5"
_CRON = re.compile(
    r"(?:cron:?\s+)?([\d*][\d*/,#a-z-]*(?:\s+[\d*?][\d*/,#lwa-z-]*|\s+[a-z*][\w,#*/-]*){4,5})", re.I
)
_PLUS = re.compile(r"\+\s*((?:\d+\s*(?:s|m|min|h|d|w)\s*)+)", re.I)
_STAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?z|\s?[+-]\d{2}:?\d{2})", re.I
)
_SLASHED = re.compile(r"\b(\d{1,2})[/.](\d{1,2})[/.](\d{2,4})\b")
_VAGUE = re.compile(
    r"\b(?:every|each|this|in the|tomorrow|next|at)?\s*"
    r"(?:morning|afternoon|evening|night|soon|later|sometime|whenever|regularly|often)s?\b"
)
_LONGEST = 200


class Understood(msgspec.Struct, frozen=True):
    """What a text means, and how it is said back."""

    text: str
    timing: Timing
    zone: str
    says: str
    """The timing in words."""
    next: tuple[datetime, ...]
    """The next few due times, in UTC."""

    def shown(self) -> list[str]:
        """The next times as exact local times with their zone."""
        place = zone(self.zone)
        return [exact(at, place) for at in self.next]


def understand(text: str, now: datetime, zone_name: str, *, most: int = 3) -> Understood:
    """What `text` means at the moment `now` in a zone. Raises `Usage` with what is wrong."""
    said, zone_name = _with_zone(_plain(text), zone_name)
    place = zone(zone_name)
    timing = _read(said, text.strip(), now.astimezone(UTC), place)
    coming = next_times(timing, place, now, most)
    if not coming:
        if isinstance(timing, Once):
            raise Usage(
                f"'{text.strip()}' is in the past: {exact(timing.at, place)}",
                "name a time that is still to come",
            )
        raise Usage(f"'{text.strip()}' never comes", _HINT)
    return Understood(text.strip(), timing, zone_name, describe(timing, place), tuple(coming))


def _plain(text: str) -> str:
    said = unicodedata.normalize("NFKC", text)
    return " ".join(said.split()).strip(" .!;。！；,").casefold()


def _with_zone(said: str, given: str) -> tuple[str, str]:
    """A zone at the end of the text counts over the one that is given."""
    head, _, last = said.rpartition(" ")
    if head and (re.fullmatch(r"[a-z_]+/[a-z_+\-/0-9]+", last) or last in ("utc", "gmt")):
        if last in ("utc", "gmt"):
            return head, "UTC"
        from zoneinfo import available_timezones

        found = next((name for name in available_timezones() if name.casefold() == last), "")
        return head, zone(found or last).key
    return said, given


def _read(said: str, original: str, now: datetime, place: ZoneInfo) -> Timing:
    if not said:
        raise Usage("no time was given", _HINT)
    if len(said) > _LONGEST:
        raise Usage("the time is too long to be one", _HINT)
    if said in MACROS:
        return Cron((check_cron(said),))
    if match := _CRON.fullmatch(said):
        return Cron((check_cron(match[1]),))
    if "*" in said:  # meant as cron; what is wrong with it is said
        return Cron((check_cron(said.removeprefix("cron ")),))
    if match := _PLUS.fullmatch(said):
        return _must(single.once(_spelled(match[1]), now, place), original)
    if _STAMP.fullmatch(said):
        return Once(_stamp(original))
    if chinese.is_chinese(said):
        try:
            said = chinese.translated(said)
            return _in_words(said, original, now, place)
        except Usage as error:
            raise Usage(f"'{original}': {error.message}", error.hint) from None
    return _in_words(said, original, now, place)


def _in_words(said: str, original: str, now: datetime, place: ZoneInfo) -> Timing:
    timing = english.recurrence(said, now, place) or single.once(said, now, place)
    if timing is not None:
        return _checked(timing)
    return _by_dateparser(said, original, now, place)


def _checked(timing: Timing) -> Timing:
    if isinstance(timing, Cron):
        return Cron(tuple(check_cron(expression) for expression in timing.expressions))
    return timing


def _must(found: Once | None, original: str) -> Once:
    if found is None:
        raise Usage(f"'{original}' is not understood", _HINT)
    return found


def _spelled(plus: str) -> str:
    parts = re.findall(r"(\d+)\s*(min|s|m|h|d|w)", plus, re.I)
    names = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days",
             "w": "weeks"}  # fmt: skip
    return "in " + " ".join(f"{count} {names[name.lower()]}" for count, name in parts)


def _stamp(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.upper().replace(" Z", "Z")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Usage(f"'{text}' is not a moment", "e.g. 2026-12-24T18:00:00+01:00") from None


def _by_dateparser(said: str, original: str, now: datetime, place: ZoneInfo) -> Timing:
    """What is left: other ways to write a date. Nothing is filled in that was not said."""
    if english.recurs(said):
        raise Usage(f"'{original}' is not understood as a recurrence", _HINT)
    if _VAGUE.search(said) and not re.search(r"\d", said):
        raise Usage(f"'{original}' is no exact time", _HINT)
    if (match := _SLASHED.search(said)) and int(match[1]) <= 12 and int(match[2]) <= 12:
        raise Usage(f"'{match[0]}' can be two days", "write the date as 2026-12-24")
    found, has_time = _parse_date(said, now, place)
    if found is None:
        raise Usage(f"'{original}' is not understood as a time", _HINT)
    if not has_time:
        raise Usage(f"'{original}' says no time of day", f"add one: {original} 9:00")
    return Once(moment(found.replace(tzinfo=None, microsecond=0), place))


def _parse_date(said: str, now: datetime, place: ZoneInfo) -> tuple[datetime | None, bool]:
    try:
        from dateparser.date import DateDataParser  # type: ignore[import-untyped]
    except ImportError:
        return None, False
    import warnings

    options = {
        "PREFER_DATES_FROM": "future",
        "RELATIVE_BASE": now.astimezone(place).replace(tzinfo=None),
        "RETURN_TIME_AS_PERIOD": True,
        "STRICT_PARSING": False,
        "REQUIRE_PARTS": ["day", "month"],
        "TIMEZONE": place.key,
        "TO_TIMEZONE": place.key,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own use of the standard library
        found = DateDataParser(languages=["en", "zh", "zh-Hant"], settings=options).get_date_data(
            said
        )
    return found.date_obj, found.period == "time"
