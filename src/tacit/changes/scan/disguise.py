"""Disguised text: characters that cannot be seen or look like others, and encodings, read plain.

Three things: the tables of such characters, and text with them undone (`fold`); where they stand
without an honest use (`find_hidden`), such as joiners in Persian and emoji or direction marks in
Arabic; and every way in which a text may be read once one layer of disguise is off (`views`), so
that writing an order in full-width letters, letter by letter, backwards or in base64 gains nothing.
One layer only: what unfolds into another riddle is for a person to judge, and `steering` gives
points for asking the reader to decode something.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

# Characters without ink of their own that can split words or carry data.
ZERO_WIDTH = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u200c\u200d"
    "\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u2065\u206a\u206b\u206c\u206d\u206e\u206f\u3164"
    "\ufeff\uffa0\ufff9\ufffa\ufffb"
) | {chr(c) for c in range(0x1D173, 0x1D17B)}
BIDI_OVERRIDE = frozenset("\u202d\u202e")
BIDI_OPEN = frozenset("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")
BIDI_CLOSE = frozenset("\u202c\u2069")
BIDI = BIDI_OPEN | BIDI_CLOSE
SELECTORS = frozenset(chr(c) for c in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
TAGS = frozenset(chr(c) for c in range(0xE0000, 0xE0080))

INVISIBLE = ZERO_WIDTH | BIDI | SELECTORS | TAGS

# Letters of other alphabets that print like a Latin one. NFKD has already undone widths, styles
# and accents when this is used.
_LOOK_ALIKES = {
    "a": "аɑαᴀꭺ", "b": "ьЬʙВвᏏ", "c": "сϲᴄⅽⲥ", "d": "ԁᴅⅾꓒ", "e": "еєҽᴇℯэ", "f": "ꞙϝꜰ",
    "g": "ɡɢԍց", "h": "һհнʜᏂ", "i": "іıɩιɪӏᎥ", "j": "јϳᴊյ", "k": "кκᴋĸҝ", "l": "ⅼʟΙӀ|Ꮮ",
    "m": "мᴍⅿʍ", "n": "пոɴηᥒ", "o": "оοσօᴏᴑ๐০", "p": "рρᴘҏ", "q": "ԛզգ", "r": "гʀᴦɼ",
    "s": "ѕꜱʂ", "t": "тτᴛՄ", "u": "υսᴜʋцџ", "v": "νѵᴠⅴ", "w": "ԝшωᴡա", "x": "хχⅹ×",
    "y": "уүγʏყ", "z": "ᴢʐᴣ", "A": "АΑ", "B": "Β", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "І",
    "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ",
    "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ",
}  # fmt: skip
LOOK_ALIKE = {
    ord(other): latin for latin, others in _LOOK_ALIKES.items() for other in others if other != "|"
}
# Letters in black circles and boxes, and those that flags are spelled with: NFKD leaves them.
for _first in (0x1F150, 0x1F170, 0x1F1E6):
    LOOK_ALIKE.update({_first + i: chr(ord("a") + i) for i in range(26)})


def _ranges(characters: Iterable[str]) -> str:
    """`characters` as the inside of a set in a pattern."""
    codes = sorted(map(ord, characters))
    parts: list[list[int]] = []
    for code in codes:
        if parts and code == parts[-1][1] + 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parts)


INVISIBLE_SET = _ranges(INVISIBLE)
_INVISIBLE = re.compile(f"[{INVISIBLE_SET}]+")
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_ALIKE = re.compile(f"[{_ranges(map(chr, LOOK_ALIKE))}]")


def without_invisible(text: str) -> str:
    """`text` as it prints; lines stay where they are."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def fold(text: str) -> str:
    """`text` as a reader takes it: visible, unaccented, small, Latin where letters look Latin.

    Line ends stay, so that a line in the answer is the line in the file.
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", without_invisible(text))
    plain = _ACCENTS.sub("", plain)
    return _ALIKE.sub(lambda match: LOOK_ALIKE[ord(match[0])], plain).casefold()


def alphabet(c: str) -> str:
    """The alphabet of the letter `c` by the first word of its name: LATIN, CYRILLIC, ARABIC…"""
    return unicodedata.name(c, "").partition(" ")[0] if c.isalpha() else ""


def is_disguised(word: str) -> bool:
    """Whether `word` mixes Latin letters with look-alikes of another alphabet."""
    if word.isascii():
        return False
    scripts = {alphabet(c) for c in word if c.isalpha()}
    if "LATIN" not in scripts or not scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}:
        return False
    foreign = [c for c in word if c.isalpha() and alphabet(c) not in ("LATIN", "")]
    if len(foreign) == 1 and scripts & {"GREEK"} and len(word) > 2:
        return False  # one Greek letter among Latin ones is how science writes names
    return all(ord(c) in LOOK_ALIKE for c in foreign)


_FOREIGN_WORD = re.compile(r"[^\W\d_]{0,40}[\u0370-\u058f\u13a0-\u13ff][^\W\d_]{0,40}")


def disguised_words(text: str) -> list[int]:
    """Where words mix Latin letters with look-alikes; formulas are short and left out."""
    if text.isascii():
        return []
    return [
        match.start()
        for match in _FOREIGN_WORD.finditer(text)
        if len(match[0]) >= 4 and is_disguised(match[0])
    ]


# The three flags that Unicode spells with tag characters: England, Scotland, Wales.
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_ANY = re.compile(f"[{INVISIBLE_SET}\x00-\x08\x0b\x0e-\x1f\x7f]")

# Alphabets whose spelling needs joiners, or whose words are parted without ink.
_JOINING = {
    "ARABIC", "SYRIAC", "MANDAIC", "NKO", "MONGOLIAN", "PHAGS-PA", "DEVANAGARI", "BENGALI",
    "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA",
    "THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER", "BALINESE", "JAVANESE", "HEBREW",
}  # fmt: skip
_UNPARTED = {"THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "CJK", "HIRAGANA", "KATAKANA"}


class Hidden(NamedTuple):
    """Where something is hidden, and of which kind."""

    kind: str
    start: int


def find_hidden(text: str) -> list[Hidden]:
    """What is hidden in `text`, in order; nothing for honest uses."""
    if text.isascii() and not _CONTROL.search(text):
        return []
    flags = {at for flag in _FLAG.finditer(text) for at in range(*flag.span())}
    found = [
        Hidden(kind, match.start())
        for match in _ANY.finditer(text, 1 if text[:1] == "\ufeff" else 0)
        if match.start() not in flags and (kind := _kind(text, match.start()))
    ]
    return [*found, *_bidi(text)]


_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")


def _kind(text: str, at: int) -> str:
    c = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if c in TAGS:
        return "tag-characters"
    if c in BIDI or c in _DIRECTION_MARKS:
        return ""  # judged a line at a time
    if c in SELECTORS:
        return _selector(c, before, after)
    if c not in ZERO_WIDTH:
        return "control-characters"
    if c == "\u200d" and _is_pictorial(before) and _is_pictorial(after):
        return ""
    near = {_alphabet_or_mark(before), _alphabet_or_mark(after)}
    if c in "\u200c\u200d\u180e\u180b\u180c\u180d\u180f\u17b4\u17b5" and near & _JOINING:
        return ""
    if c in "\u200b\u2060\ufeff" and near & _UNPARTED:
        return ""
    if c in "\u115f\u1160\u3164\uffa0" and "HANGUL" in near:
        return ""
    if c == "\u00ad" and before.isalpha() and after.isalpha():
        return "soft-hyphen"
    return "zero-width"


def _selector(c: str, before: str, after: str) -> str:
    """A selector is honest once, after something that has variants."""
    if before in SELECTORS or after in SELECTORS:
        return "selector-run"
    if c >= "\U000e0100":
        return "" if _alphabet_or_mark(before) == "CJK" else "selector-run"
    if before in "0123456789#*" and before:
        return ""
    if before and (
        _is_pictorial(before) or unicodedata.category(before) in ("So", "Sm", "Po", "Ps")
    ):
        return ""
    return (
        ""
        if _alphabet_or_mark(before) in ("CJK", "MONGOLIAN", "MYANMAR", "PHAGS-PA")
        else "stray-selector"
    )


def _alphabet_or_mark(c: str) -> str:
    if not c:
        return ""
    if c.isalpha():
        return alphabet(c)
    # Vowel signs and viramas are marks, not letters, and belong to their alphabet all the same.
    return unicodedata.name(c, "").partition(" ")[0] if unicodedata.category(c)[0] == "M" else ""


def _is_pictorial(c: str) -> bool:
    """Emoji and their parts: symbols, skin tones, the selector that asks for colour."""
    return bool(c) and (
        c == "\ufe0f"
        or unicodedata.category(c) in ("So", "Sk")
        or "\U0001f000" <= c <= "\U0001faff"
    )


def _has_rtl(line: str) -> bool:
    return any(unicodedata.bidirectional(c) in ("R", "AL") for c in line)


def _bidi(text: str) -> Iterator[Hidden]:
    """Lines whose order is forced, or whose embeddings do not close or have nothing to embed."""
    if not any(c in text for c in (*BIDI, *_DIRECTION_MARKS)):
        return
    start = 0
    for line in text.split("\n"):
        marks = [i for i, c in enumerate(line) if c in BIDI]
        if marks:
            opened = sum(c in BIDI_OPEN for c in line)
            closed = sum(c in BIDI_CLOSE for c in line)
            forced = any(c in BIDI_OVERRIDE for c in line)
            if forced or opened != closed or not _has_rtl(line):
                yield Hidden("reordered-text", start + marks[0])
        elif any(c in line for c in _DIRECTION_MARKS) and not _has_rtl(
            line.translate(_NO_DIRECTION_MARKS)
        ):
            yield Hidden(
                "direction-mark", start + min(line.find(c) % len(line) for c in _DIRECTION_MARKS)
            )
        start += len(line) + 1


_DIRECTION_MARKS = "\u200e\u200f\u061c"
_NO_DIRECTION_MARKS = dict.fromkeys(map(ord, _DIRECTION_MARKS))


def line_of(text: str, at: int) -> int:
    """The number of the line that the character `at` stands on."""
    return text.count("\n", 0, at) + 1


MAX_BLOBS = 400


class View(NamedTuple):
    """One reading: its text, how it came about (nothing for the plain one), its first line."""

    text: str
    how: str
    line: int

    def line_at(self, at: int) -> int:
        """The line of the file for an offset in this view."""
        return self.line if self.how in _BLOBS else self.line + self.text.count("\n", 0, at)


_BLOBS = {"base64", "hexadecimal", "percent-encoded", "invisible characters"}

# Words that orders to an agent are made of; without one, an undone disguise is not worth a look.
_LURES = re.compile(
    r"ignore|disregard|forget|previous|instruct|system|prompt|secret|user|upload|send|curl|bash"
    r"|execute|token|credential|approv|\brun\b|\.env\b"
)


def views(text: str) -> list[View]:
    """Every reading of `text`; the plain one first."""
    seen = without_invisible(text)
    plain = fold(text)
    whole = [view for view in _whole(seen, plain) if _LURES.search(view.text)]
    return [View(plain, "", 1), *whole, *_blobs(text, seen)]


def _whole(seen: str, plain: str) -> Iterator[View]:
    """The whole text read in another way; lines stay where they are."""
    if "&#" in seen:
        yield View(fold(html.unescape(seen)), "HTML entities", 1)
    if "\\u00" in plain or "\\x" in plain:
        unescaped = _ESCAPE.sub(lambda m: chr(int(m[1], 16)).replace("\n", " "), seen)
        yield View(fold(unescaped), "escapes", 1)
    if "rot13" in plain or "rot-13" in plain or "rot 13" in plain:
        yield View(codecs.encode(plain, "rot13"), "rot13", 1)
    if "backward" in plain or "reverse" in plain:
        yield View("\n".join(line[::-1] for line in plain.split("\n")), "backwards", 1)
    if any(_LURES.search(_unleet(word)) for word in _LEET_WORD.findall(plain)):
        yield View(_LEET_WORD.sub(lambda m: _unleet(m[0]), plain), "digits for letters", 1)
    if _SPACED.search(plain):
        joined = _SPACED.sub(lambda m: _join(m[0]), plain)
        if _LURES.search(" ".join(_join(run) for run in _SPACED.findall(plain))):
            yield View(joined, "letter by letter", 1)


_ESCAPE = re.compile(r"\\(?:u00|x)([0-7][0-9a-fA-F])")
_LEET = str.maketrans("013457@$!", "oieasTasi".lower())
_LEET_WORD = re.compile(
    r"(?<![\w@$])(?=[a-z0-9@$]{0,12}[a-z])[a-z@$]{0,12}[013457@$][a-z013457@$]{2,20}(?![\w])"
)
_SPACED = re.compile(r"(?<![a-z0-9])[a-z](?:[ ._*-]{1,3}[a-z](?![a-z0-9])){3,200}")


def _unleet(word: str) -> str:
    return word.translate(_LEET)


def _join(run: str) -> str:
    """`i g n o r e   a l l` and `i-g-n-o-r-e a-l-l` as `ignore all`."""
    words = re.split(r" +" if re.search(r"[a-z][._*-][a-z]", run) else r" {2,3}", run)
    return " ".join(re.sub(r"[ ._*-]", "", word) for word in words)


def _blobs(text: str, seen: str) -> Iterator[View]:
    """Stretches that decode to text, each with the line it stands on."""
    count = 0
    line, counted = 1, 0
    whole: list[str] = []
    for match in _LONG_WORD.finditer(seen):
        for how, plain in _decoded(match[0]):
            count += 1
            if count > MAX_BLOBS:
                return
            line += seen.count("\n", counted, match.start())
            counted = match.start()
            whole.append(plain)
            yield View(fold(plain), how, line)
    if len(whole) > 1:  # an encoded text that was wrapped decodes line by line
        yield View(fold("".join(whole)), "base64", line)
    for match in _SPACED_HEX.finditer(seen):
        if plain := _as_text(_from_hex(match[0])):
            yield View(fold(plain), "hexadecimal", line_of(seen, match.start()))
    if not text.isascii():
        yield from _smuggled(text)


_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=%.~-]{24,20000}")
_SPACED_HEX = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}[ :,]{1,2}){15,4000}[0-9a-fA-F]{2}")
_HEX = re.compile(r"[0-9a-fA-F]{32,20000}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,20000}")


def _decoded(word: str) -> Iterator[tuple[str, str]]:
    """What `word`, or its longest part, may stand for."""
    if word.count("%") >= 3 and (plain := _as_text(unquote(word, errors="replace").encode())):
        yield "percent-encoded", plain
    for match in _HEX.finditer(word):
        if plain := _as_text(_from_hex(match[0])):
            yield "hexadecimal", plain
    for match in _BASE64.finditer(word):
        if plain := _as_text(_from_base64(match[0])):
            yield "base64", plain


def _smuggled(text: str) -> Iterator[View]:
    """ASCII written in tag characters, or as bytes in variation selectors."""
    for match in _TAG_RUN.finditer(text):
        line = line_of(text, match.start())
        plain = "".join(chr(ord(c) - 0xE0000) for c in match[0])
        yield View(fold(plain), "invisible characters", line)
        return
    for match in _SELECTOR_RUN.finditer(text):
        line = line_of(text, match.start())
        data = bytes(ord(c) - 0xFE00 if c < "\ufe10" else ord(c) - 0xE0100 + 16 for c in match[0])
        yield View(fold(data.decode("utf-8", "replace")), "invisible characters", line)
        return


_TAG_RUN = re.compile("[" + min(TAGS) + "-" + max(TAGS) + "]{4,20000}")
_SELECTOR_RUN = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,20000}")


def _from_base64(blob: str) -> bytes:
    blob = blob.translate(_URL_SAFE)
    blob = blob[: len(blob) - (len(blob) % 4 == 1)]
    try:
        return base64.b64decode(blob + "=" * (-len(blob) % 4))
    except (binascii.Error, ValueError):
        return b""


def _from_hex(blob: str) -> bytes:
    digits = re.sub(r"[^0-9a-fA-F]", "", blob)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


_URL_SAFE = str.maketrans("-_", "+/")


def _as_text(data: bytes) -> str:
    """`data` as text if a person could read it, else nothing."""
    if len(data) < 12:
        return ""
    try:
        plain = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    readable = sum(c.isprintable() or c in "\n\t\r" for c in plain)
    return plain.replace("\n", " ") if readable >= 0.95 * len(plain) else ""
