"""Characters that a person reading a skill cannot see, and those that reorder what they see.

Each has honest uses: joiners in Persian, Hindi and emoji, selectors after emoji, direction marks
in Arabic. Those are let through by what stands beside them; the rest is a finding.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from tacit.changes.scan.characters import (
    BIDI,
    BIDI_CLOSE,
    BIDI_OPEN,
    BIDI_OVERRIDE,
    INVISIBLE_SET,
    SELECTORS,
    TAGS,
    ZERO_WIDTH,
    script,
)

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
    if c in BIDI or c in _MARKS:
        return ""  # judged a line at a time
    if c in SELECTORS:
        return _selector(c, before, after)
    if c not in ZERO_WIDTH:
        return "control-characters"
    if c == "\u200d" and _is_pictorial(before) and _is_pictorial(after):
        return ""
    near = {_script(before), _script(after)}
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
        return "" if _script(before) == "CJK" else "selector-run"
    if before in "0123456789#*" and before:
        return ""
    if before and (
        _is_pictorial(before) or unicodedata.category(before) in ("So", "Sm", "Po", "Ps")
    ):
        return ""
    return (
        "" if _script(before) in ("CJK", "MONGOLIAN", "MYANMAR", "PHAGS-PA") else "stray-selector"
    )


def _script(c: str) -> str:
    if not c:
        return ""
    if c.isalpha():
        return script(c)
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
    if not any(c in text for c in (*BIDI, *_MARKS)):
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
        elif any(c in line for c in _MARKS) and not _has_rtl(line.translate(_NO_MARKS)):
            yield Hidden("direction-mark", start + min(line.find(c) % len(line) for c in _MARKS))
        start += len(line) + 1


_MARKS = "\u200e\u200f\u061c"
_NO_MARKS = dict.fromkeys(map(ord, _MARKS))
