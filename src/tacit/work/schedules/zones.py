"""Time zones: which one is meant, and what a wall-clock time in it is as a moment.

Owns the two rules for daylight saving: a time that does not exist becomes the first moment after
the gap, and a time that comes twice is the first of the two.
"""

import difflib
import os
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from tacit.base.errors import Usage

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


def exact(at: datetime, place: ZoneInfo) -> str:
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
