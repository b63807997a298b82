"""Times in Chinese, turned into the words of `english.py`: `每天 9 點` becomes `every day 09:00`.

Traditional and simplified writing are the same here. What stays Chinese in the end was not
understood.
"""

import re

from tacit.base.errors import Usage

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


def translated(text: str) -> str:
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
