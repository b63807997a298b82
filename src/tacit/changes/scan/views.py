"""A text as it may be read: folded, and with one layer of disguise undone.

The scan looks at every view, so that writing an order in full-width letters, letter by letter,
backwards or in base64 gains nothing. One layer only: what unfolds into another riddle is for a
person to judge, and `steering.py` gives points for asking the reader to decode something.
"""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from tacit.changes.scan.characters import TAGS, fold, without_invisible

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
    found = [View(plain, "", 1)]
    found.extend(
        view for view in (*_whole(seen, plain), *_blobs(text, seen)) if _LURES.search(view.text)
    )
    return found


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
    """`i g n o r e   a l l` as `ignore all`: one sign parts letters, more part words."""
    words = re.split(r"[ ._*-]{2,3}", run)
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
            yield View(fold(plain), "hexadecimal", seen.count("\n", 0, match.start()) + 1)
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
        line = text.count("\n", 0, match.start()) + 1
        plain = "".join(chr(ord(c) - 0xE0000) for c in match[0])
        yield View(fold(plain), "invisible characters", line)
        return
    for match in _SELECTOR_RUN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
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
