"""What people write for a time: cron, `+5m`, `9:00`, dates, RFC 3339, English and Chinese.

Owns the order in which these are tried, and what is refused: times that are past, incomplete or
ambiguous. Chinese is translated into the English that `english_times` reads. What was understood
is always said back exactly.
"""

import re
import unicodedata
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from tacit.base.errors import Usage
from tacit.work import english_times
from tacit.work.due_times import (
    MACROS,
    Cron,
    Days,
    Interval,
    Once,
    Timing,
    check_cron,
    describe,
    exact_time,
    moment,
    next_times,
    span_in_words,
    zone,
)

_SAME = str.maketrans("點鐘週後時個號兩隔間禮半裡裏", "点钟周后时个号两隔间礼半里里")
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_NUMERAL = "零〇一二三四五六七八九十两"
_WEEK = {"一": "mon", "二": "tue", "三": "wed", "四": "thu", "五": "fri", "六": "sat",
         "日": "sun", "天": "sun", "1": "mon", "2": "tue", "3": "wed", "4": "thu", "5": "fri",
         "6": "sat", "7": "sun"}  # fmt: skip
_DAY = "[一二三四五六日天1-7]"
_DAYS = re.compile(rf"周({_DAY}(?:\s*[、,，和及与/至到-]?\s*(?:周)?{_DAY}(?![点:\d月]))*)")
_PART = "凌晨|清晨|清早|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|晚|早"
_TIME = re.compile(
    rf"({_PART})?\s*(\d{{1,2}})\s*(?:(?:点钟|点|时)\s*(半|整|一刻|三刻|\d{{1,2}}\s*分?)?|:(\d{{2}}))"
)
_UNITS = {"秒": "seconds", "秒钟": "seconds", "分": "minutes", "分钟": "minutes", "小时": "hours",
          "钟头": "hours", "天": "days", "日": "days", "周": "weeks", "月": "months",
          "年": "years"}  # fmt: skip
_UNIT = "秒钟|秒|分钟|分|小时|钟头|天|周|月|年"
_RULES: tuple[tuple[str, str], ...] = (
    (r"每(?:个|一)?(?:工作日|平日)|(?<!每)工作日", " every weekday "),
    (r"每(?:个|一)?(?:周末)|(?<!每)周末", " every weekend "),
    (r"每(?:年)(?:的)?\s*(\d{1,2})月(\d{1,2})[日号]?", r" every year on \1-\2 "),
    (r"每(?:个|一)?月(?:的)?\s*最后一[天日]", " every month on the last day "),
    (r"每(?:个|一)?月(?:的)?\s*(\d{1,2})[日号]", r" every month on the \1 "),
    (r"每(?:隔)?(?:一)?(?:天|日)", " every day "),
    (r"每(?:个)?(?:一)?小时", " every hour "),
    (r"每(?:一)?分钟?", " every minute "),
    (r"大后天", " in 3 days "),
    (r"后天", " the day after tomorrow "),
    (r"明[天日]", " tomorrow "),
    (r"今[天日]", " today "),
    (r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]?", r" \1-\2-\3 "),
    (r"(\d{1,2})月(\d{1,2})[日号]", r" \1-\2 "),
)


def is_chinese(text: str) -> bool:
    return re.search(r"[\u3400-\u9fff]", text) is not None


def translate_chinese(text: str) -> str:
    """`text` in English words. Raises `Usage` where a part has two meanings."""
    told = (
        text.translate(_SAME)
        .replace("星期", "周")
        .replace("礼拜", "周")
        .replace("每晚", "每天晚上")
    )
    told = told.replace("每早", "每天早上").replace("今晚", "今天晚上").replace("明晚", "明天晚上")
    told = told.replace("明早", "明天早上").replace("今早", "今天早上").replace("本周", "这周")
    told = re.sub(r"半个?(?:小时|钟头)", "30分钟", told)
    told = re.sub(r"(?:1|一)个半(?:小时|钟头)", "90分钟", told)
    told = _weekdays(told)
    told = _numbers(told)
    told = re.sub(rf"(\d+)\s*个?\s*({_UNIT})\s*(?:之|以)?后", _after, told)
    told = re.sub(rf"每(?:隔)?\s*(\d+)\s*个?\s*({_UNIT})", _every, told)
    told = re.sub(r"中午(?!\s*\d)", " 12:00 ", told)
    told = re.sub(r"(?:午夜|半夜)(?!\s*\d)", " 00:00 ", told)
    for pattern, words in _RULES:
        told = re.sub(pattern, words, told)
    told = _TIME.sub(_time, told)
    told = re.sub(r"(?<=\d\d:\d\d)\s*[、,，和及与]\s*(?=\d\d:\d\d)", " and ", told)
    return " ".join(re.sub(r"[的在于，。]", " ", told).split())


def _weekdays(text: str) -> str:
    """`每周一、三` and `下周一`, before the numerals in them are taken for numbers."""

    def named(match: re.Match[str]) -> str:
        letters = re.findall(_DAY, match[1])
        if len(letters) == 2 and re.search("[至到-]", match[1]):
            return f"{_WEEK[letters[0]]}-{_WEEK[letters[1]]}"
        return ",".join(_WEEK[letter] for letter in letters)

    told = _DAYS.sub(lambda match: f"周<{named(match)}>", text)
    told = re.sub(r"下(?:个)?周<([^>]*)>", r" \1 next week ", told)
    told = re.sub(r"这(?:个)?周<([^>]*)>", r" \1 this week ", told)
    told = re.sub(r"每(?:个)?周<([^>]*)>", r" every \1 ", told)
    return re.sub(r"周<([^>]*)>", r" \1 ", told)


def _numbers(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = match[0]
        if "十" not in found:
            return "".join(str(_DIGITS[letter]) for letter in found)
        tens, _, ones = found.partition("十")
        if len(tens) > 1 or len(ones) > 1 or "十" in ones:
            raise Usage(f"'{found}' is no number", "write it in digits, e.g. 25")
        return str((_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0))

    # `一刻` and `一天` in fixed phrases keep their numeral.
    return re.sub(rf"(?<!最后)[{_NUMERAL}]+(?!刻)", value, text)


def _time(match: re.Match[str]) -> str:
    part, hour = match[1] or "", int(match[2])
    past = match[4] or (match[3] or "").strip().removesuffix("分").strip()
    minute = {"": 0, "半": 30, "整": 0, "一刻": 15, "三刻": 45}.get(past)
    minute = int(past) if minute is None else minute
    late = part in ("下午", "傍晚", "晚上", "夜里", "晚")
    if (late and hour < 12) or (part == "中午" and hour < 3):
        hour += 12
    elif hour == 12 and part in ("晚上", "夜里", "晚"):
        raise Usage(f"'{match[0].strip()}' can be two days", "write 00:00 with the day it begins")
    elif hour == 12 and part in ("凌晨",):
        hour = 0
    return f" {hour:02d}:{minute:02d} "


def _after(match: re.Match[str]) -> str:
    return f" in {match[1]} {_UNITS[match[2]]} "


def _every(match: re.Match[str]) -> str:
    return f" every {match[1]} {_UNITS[match[2]]} "


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
_MINUTE, _DAY_SECONDS = 60, 86_400


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
        return [exact_time(at, place) for at in self.next]

    @property
    def warning(self) -> str:
        """What a person may not have meant: runs that come faster than they can be made."""
        gap = (self.next[1] - self.next[0]).total_seconds() if len(self.next) > 1 else _MINUTE
        if gap >= _MINUTE:
            return ""
        return f"that is {int(_DAY_SECONDS // gap):,} runs a day, and each asks a model"


def understand(text: str, now: datetime, zone_name: str, *, most: int = 3) -> Understood:
    """What `text` means at the moment `now` in a zone. Raises `Usage` with what is wrong."""
    said, zone_name = _with_zone(_plain(text), zone_name)
    place = zone(zone_name)
    timing = _read(said, text.strip(), now.astimezone(UTC), place)
    coming = next_times(timing, place, now, most)
    if not coming:
        if isinstance(timing, Once):
            raise Usage(
                f"'{text.strip()}' is in the past: {exact_time(timing.at, place)}",
                "name a time that is still to come",
            )
        raise Usage(f"'{text.strip()}' never comes", _HINT)
    return Understood(text.strip(), timing, zone_name, describe(timing, place), tuple(coming))


_NUMBER_WORDS: dict[int, str] = {
    0: "zero midnight mitternacht minuit medianoche mezzanotte 午夜 半夜 자정",
    1: "one eins ein eine un une uno una um uma een 한",
    2: "two other zwei deux dos due dois duas twee 두",
    3: "three drei trois tres tre três drie 세", 4: "four vier quatre cuatro quattro quatro 네",
    5: "five fünf cinq cinco cinque vijf 다섯", 6: "six sechs seis sei zes 여섯",
    7: "seven sieben sept siete sette sete zeven 일곱", 8: "eight acht huit ocho otto oito 여덟",
    9: "nine neun neuf nueve nove negen 아홉", 10: "ten zehn dix diez dieci dez tien 열",
    11: "eleven elf onze once undici 열한",
    12: "twelve zwölf douze doce dodici doze twaalf noon midday mittag midi mediodía mezzogiorno"
        " 中午 正午 정오 열두",
    15: "fifteen quarter viertel quart cuarto quarto quinze quince 刻",
    20: "twenty zwanzig vingt veinte venti vinte",
    30: "thirty half dreißig halb halbe trente demie treinta media trenta mezza meia 半 반",
    45: "quarter viertel quart cuarto quarto 刻",
}  # fmt: skip
_UNITS_SAID = re.compile(
    "every|each|hour|minut|second|dail|week|month|year|每|天|时|時|毎|jede|täglich|stünd|chaque"
    "|tou[ts]|cada|ogni|elke|매|마다"
)


def numbers_in(text: str) -> set[int]:
    """The numbers that a text names, in digits or in words."""
    said = unicodedata.normalize("NFKC", text).casefold()
    found = {int(digits) for digits in re.findall(r"\d{1,9}", said)}
    for numeral in re.findall(rf"[{_NUMERAL}]+", said):
        try:
            found.add(int(_numbers(numeral)))
        except Usage:
            continue
    words = set(re.findall(r"[^\W\d_]+", said))
    for number, names in _NUMBER_WORDS.items():
        if any(n in words or (n > "\u2e80" and n in said) for n in names.split()):
            found.add(number)
    return found


def stands_in(found: Understood, words: str) -> bool:
    """Whether the time that was understood can have been named in `words`, and is not invented.

    Days are not asked for: `tomorrow` may come back as a date. Clock times, steps and spans are
    numbers, and a number that nobody said was made up.
    """
    said, named = numbers_in(words), numbers_in(found.text)
    hours = said | ({hour - 1 for hour in said} if said & {15, 30, 45} else set())
    hours |= {hour % 12 for hour in hours} | {hour + 12 for hour in hours}
    if named - {0, 1} and named <= said | hours | {0, 1}:
        return True
    clock, others = _clock_hours(found), _other_numbers(found)
    if named == {1} or (not clock and not others - {0, 1}):  # in a minute, every hour
        return _UNITS_SAID.search(words.casefold()) is not None
    return clock <= hours and others <= said | {0, 1}


def _clock_hours(found: Understood) -> set[int]:
    """The hours of the day that a timing names."""
    match found.timing:
        case Once(at=at):
            return {at.astimezone(zone(found.zone)).hour}
        case Days(times=times):
            return {int(text[:2]) for text in times}
        case Cron(expressions=expressions):
            return {int(n) for text in expressions for n in re.findall(r"\d+", text.split()[-4])}
    return set()


def _other_numbers(found: Understood) -> set[int]:
    """The minutes and steps that a timing names."""
    match found.timing:
        case Once(at=at):
            return {at.astimezone(zone(found.zone)).minute}
        case Days(times=times, every=every):
            return {int(text[3:5]) for text in times} | {every}
        case Cron(expressions=expressions):
            heads = [" ".join(text.split()[:-4]) for text in expressions]
            return {int(n) for head in heads for n in re.findall(r"\d+", head)}
        case Interval(seconds=seconds):
            return {int(n) for n in re.findall(r"\d+", span_in_words(seconds))}


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
        return _must(english_times.read_moment(_spelled(match[1]), now, place), original)
    if _STAMP.fullmatch(said):
        return Once(_stamp(original))
    if is_chinese(said):
        try:
            said = translate_chinese(said)
            return _in_words(said, original, now, place)
        except Usage as error:
            raise Usage(f"'{original}': {error.message}", error.hint) from None
    return _in_words(said, original, now, place)


def _in_words(said: str, original: str, now: datetime, place: ZoneInfo) -> Timing:
    timing = english_times.read_recurrence(said, now, place) or english_times.read_moment(
        said, now, place
    )
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
    if english_times.recurs(said):
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
