"""Which characters are invisible or look like others: the tables, and text with both undone.

Owns the Unicode facts. `hidden.py` judges where they stand; `views.py` reads through them.
"""

import re
import unicodedata
from collections.abc import Iterable

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
_MARKS = re.compile(
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
    plain = _MARKS.sub("", plain)
    return _ALIKE.sub(lambda match: LOOK_ALIKE[ord(match[0])], plain).casefold()


def script(c: str) -> str:
    """The alphabet of the letter `c` by the first word of its name: LATIN, CYRILLIC, ARABIC…"""
    return unicodedata.name(c, "").partition(" ")[0] if c.isalpha() else ""


def is_disguised(word: str) -> bool:
    """Whether `word` mixes Latin letters with look-alikes of another alphabet."""
    if word.isascii():
        return False
    scripts = {script(c) for c in word if c.isalpha()}
    if "LATIN" not in scripts or not scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}:
        return False
    foreign = [c for c in word if c.isalpha() and script(c) not in ("LATIN", "")]
    return all(ord(c) in LOOK_ALIKE for c in foreign)
