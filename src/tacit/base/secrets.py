"""Secrets in text: where they stand, and the text without them.

Owns the search; the formats are in `secret_formats.py`, what has no format in `passwords.py`. What
a find means for a skill is the scan's decision. A `Secret` says where, never what: nothing here
keeps or prints a value, and only a caller of `redact` that brings a dict for the values is told
them.

Time grows with the length of the text, whatever stands in it: the search costs one pass for each
group of literal anchors and a bounded look at each place where one stands.
"""

import base64
import re
import string
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tacit.base.display import plain
from tacit.base.passwords import Span, find_passwords, places, tells_otherwise, words_in
from tacit.base.patterns import late_pattern
from tacit.base.placeholders import classes, entropy, is_password, is_sample, is_weak
from tacit.base.secret_formats import (
    AWS_SECRET,
    BLOCK_BEGIN,
    BLOCK_END,
    ENCODED_BLOCK,
    FORMATS,
    MIN_FORMAT,
    Format,
)

MAX_BLOCK = 32_768
"""A private key block longer than this is cut here; the longest real ones have about 13,000."""


class Secret(NamedTuple):
    """Where a secret stands: its rule, its line (from 1), and text[start:end]."""

    rule: str
    line: int
    start: int
    end: int


class Redacted(NamedTuple):
    """A text without its secrets, and how many of each rule were taken out."""

    text: str
    counts: dict[str, int]


class Signs(NamedTuple):
    """What stands in a text by which it may hold secrets; in a part of it nothing else does."""

    words: frozenset[str]
    """Those beside which passwords stand."""
    rows: tuple[int, ...]
    """The formats, by their places in the table."""


NO_SIGNS = Signs(frozenset(), ())

_MARK_BEGINS = "[redacted: "
_MARK = late_pattern(r"\[redacted: [a-z0-9-]{1,40}\]")


def find(text: str, among: Signs | None = None) -> list[Secret]:
    """The secrets in `text`, in order, none overlapping another. Marks of `redact` are not any.

    `among` are the signs of something that `text` is a part of, where they are known.
    """
    masked = text
    if _MARK_BEGINS in text:
        masked = _MARK.sub(lambda mark: "\x00" * len(mark[0]), text)
    # Small letters at the same offsets, whatever the script: one character each, never two.
    ascii_text = masked if masked.isascii() else masked.encode("ascii", "replace").decode("ascii")
    lower = ascii_text.lower()
    spans = sorted(
        (
            *_formats(masked, lower, among),
            *_blocks(masked),
            *_kept_values(masked),
            *find_passwords(masked, lower, among and among.words),
        ),
        key=lambda span: (span[0], -span[1]),
    )
    found: list[Secret] = []
    line, counted = 1, 0
    for start, end, rule in spans:
        if found and start < found[-1].end:  # what overlaps goes together: no part may be left
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
            continue
        line += text.count("\n", counted, start)
        counted = start
        found.append(Secret(rule, line, start, end))
    return found


def signs_in(text: str, among: Signs | None = None) -> Signs | None:
    """By what `find` could find anything in `text`, or in some of its words; None for most texts.

    `among` are the signs of something that `text` is a part of, where they are known.
    """
    lower = text.lower()
    words = words_in(lower, among and among.words)
    rows = tuple(row for row in _rows(text, lower, among) if _may_match(text, FORMATS[row]))
    if words or rows or _MARK_BEGINS in text or tells_otherwise(text):
        return Signs(words, rows)
    return Signs(words, rows) if any(begins in text for begins in _BLOCK_BEGINS) else None


def clean(text: str) -> str:
    """`text` without secrets and without what steers a terminal."""
    return redact(plain(text)).text


def redact(text: str, values: dict[str, str] | None = None, among: Signs | None = None) -> Redacted:
    """`text` with each secret replaced by `[redacted: rule]`. Can be repeated without harm.

    `values` is told what was taken out, and by which rule: the same may stand elsewhere with
    nothing beside it that tells. `among` is as for `find`.
    """
    counts: dict[str, int] = {}
    # Two secrets glued together may hide each other's borders: look again until nothing is left.
    # Each round leaves less that could be a secret; more than two are rare.
    while secrets := find(text, among):
        parts: list[str] = []
        done = 0
        for secret in secrets:
            parts += (text[done : secret.start], f"[redacted: {secret.rule}]")
            if values is not None:
                values[text[secret.start : secret.end]] = secret.rule
            done = secret.end
            counts[secret.rule] = counts.get(secret.rule, 0) + 1
        text, among = "".join((*parts, text[done:])), None  # what was hidden has given no sign
    return Redacted(text, counts)


def _formats(text: str, lower: str, among: Signs | None) -> Iterator[Span]:
    """The providers' own formats."""
    for row in (FORMATS[index] for index in _rows(text, lower, among)):
        if not row.anchors:
            yield from _shapes(text, row)
        for anchor in row.anchors:
            yield from _tokens(text, row, anchor)


def _rows(text: str, lower: str, among: Signs | None) -> list[int]:
    """The formats, by their places in the table, of which all signs stand in a text."""
    rows = sorted(set(_rows_about(_long_words(text), lower))) if among is None else among.rows
    about = ((row, FORMATS[row].about) for row in rows)
    return [row for row, words in about if not words or any(word in lower for word in words)]


def _may_match(text: str, row: Format) -> bool:
    """Whether the expression of a format fits anywhere in a text."""
    if not row.anchors:
        return row.pattern.search(text) is not None
    match = row.pattern.match
    return any(match(text, at) for anchor in row.anchors for at in places(text, anchor))


def _long_words(text: str) -> str:
    """The words of a text that are long enough for a secret, a line each."""
    if len(text) < MIN_FORMAT:
        return ""
    return "\n".join([word for word in text.split() if len(word) >= MIN_FORMAT])


def _long_parts(long_words: str) -> str:
    """The parts of words, a line each, that are long enough and may be a token by itself."""
    parts = long_words.encode("ascii", "replace").translate(_APART).decode("ascii")
    return _long_words(parts)


IN_NO_FORMAT = "\"#&'()*,;<>?@[]^`|"
"""Characters that no format has which stands alone, as little as one beyond ASCII."""
_APART = bytes.maketrans(IN_NO_FORMAT.encode(), b" " * len(IN_NO_FORMAT))


def _rows_about(long_words: str, lower: str) -> Iterator[int]:
    """The formats, by their places in the table, of which a sign stands in a text."""
    if long_words:
        begun = _ANCHOR.findall(f"\n{parts}") if (parts := _long_parts(long_words)) else ()
        yield from (row for hit in begun for row in _ROWS_OF[hit])
        yield from (index for anchor, index in _INSIDE if anchor in long_words)
        yield from (index for word, index in _NAMED if word in lower)


def _tokens(text: str, row: Format, anchor: str) -> Iterator[Span]:
    """The tokens of one format, where its anchor stands."""
    pattern = row.pattern
    named = "s" in pattern.groupindex
    for at in places(text, anchor):
        match = pattern.match(text, at)
        if match is None:
            continue
        start, end = match.span("s" if named else 0)
        if not (row.stands_alone or named):  # the token began before its anchor
            start = _begin(text, start)
        body = text[start:end].removeprefix(anchor)
        if is_sample(body) or _JOINED_WORDS.fullmatch(body):
            continue
        yield start, end, row.rule
        if row.rule == "aws-access-key":
            yield from _aws_secrets(text, start, end)


def _shapes(text: str, row: Format) -> Iterator[Span]:
    """The tokens of a format without an anchor: random letters and digits of one length."""
    for match in row.pattern.finditer(text):
        if entropy(match[0]) > 3.6 and any(c.isdigit() for c in match[0]):
            yield *match.span(), row.rule


_JOINED_WORDS = late_pattern(r"[a-z]{1,30}(?:[-_.][a-z]{1,30}){2,60}")


def _either(words: Iterable[str]) -> str:
    """An expression for the longest of `words` at a place, by their letters in turn."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = "" in branches and branches.pop("")
    parts = [re.escape(letter) + _either(rest) for letter, rest in branches.items()]
    inner = parts[0] if len(parts) == 1 and not ends else f"(?:{'|'.join(parts)})" if parts else ""
    return f"{inner}?" if ends and inner else inner


def _rows_of(anchors: Iterable[str]) -> dict[str, list[int]]:
    """The formats that begin with an anchor, or with a shorter one that it begins with."""
    begun_by: dict[str, set[int]] = {}
    for index, row in enumerate(FORMATS):
        for anchor in row.anchors if index not in _OTHER_ROWS else ():
            begun_by.setdefault(anchor, set()).add(index)
    return {
        anchor: sorted(
            {i for end in range(len(anchor) + 1) for i in begun_by.get(anchor[:end], ())}
        )
        for anchor in anchors
    }


# Most formats begin with an anchor that one expression finds at the border of a word. Those that
# continue something are looked for by their anchors, and those whose anchors stand everywhere, by
# the words that must be about.
_OTHER_ROWS = frozenset(
    index
    for index, row in enumerate(FORMATS)
    if not row.stands_alone or min(map(len, row.anchors), default=0) < 2
)
_NAMED = [(word, index) for index in _OTHER_ROWS for word in FORMATS[index].about]
_INSIDE = [
    (anchor, index)
    for index in _OTHER_ROWS
    if not FORMATS[index].about
    for anchor in FORMATS[index].anchors
]
_ROWS_OF = _rows_of(
    {anchor for i, row in enumerate(FORMATS) if i not in _OTHER_ROWS for anchor in row.anchors}
)
_BEGIN, _SECOND = ("".join({anchor[at] for anchor in _ROWS_OF}) for at in (0, 1))
_ANCHOR = late_pattern(
    rf"[^A-Za-z0-9_](?:(?<=\\)[nrt])??(?=[{re.escape(_BEGIN)}][{re.escape(_SECOND)}])"
    rf"(?=({_either(_ROWS_OF)}))"
)


def _begin(text: str, at: int) -> int:
    """Where the token that runs up to `at` begins."""
    first = max(0, at - 128)
    before = text[first:at]
    return first + len(before.rstrip(_ALNUM))


_ALNUM = string.ascii_letters + string.digits + "_~"


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """The secret half beside an access key id: 40 characters without a mark of their own."""
    for match in AWS_SECRET.finditer(text, max(0, start - 200), end + 300):
        value = match[0]
        if not is_sample(value) and entropy(value) > 4.2 and classes(value) >= 3:
            yield *match.span(), "aws-secret-key"


_BLOCK_BEGINS = ("LS0tLS1CRUdJTi", "-----BEGIN ")
"""How the block of a private key begins, in base64 and as it is."""


def _blocks(text: str) -> Iterator[Span]:
    """Private keys between BEGIN and END, over lines or with `\\n` written out."""
    done = 0
    encoded, written = _BLOCK_BEGINS
    for at in places(text, encoded):
        match = ENCODED_BLOCK.match(text, at) if at >= done else None
        done = match.end() if match else done
        if match and b"PRIVATE KEY" in base64.b64decode(match[0][:80]):
            yield *match.span(), "private-key"
    if written not in text:
        return
    ends = [match.span() for match in BLOCK_END.finditer(text)]
    starts = [end[0] for end in ends]
    begins = [match.span() for match in BLOCK_BEGIN.finditer(text)]
    for index, (start, body) in enumerate(begins):
        limit = begins[index + 1][0] if index + 1 < len(begins) else len(text)
        limit = min(limit, body + MAX_BLOCK)
        nearest = bisect_left(starts, body)
        if nearest < len(ends) and ends[nearest][0] <= limit:
            stop, end = ends[nearest]
        else:  # cut off: what looks like key material belongs to it
            material = _MATERIAL.match(text, body, limit)
            stop = end = material.end() if material else body
        if _is_key_material(text[body:stop]):
            yield start, end, "private-key"


_KEPT = late_pattern(
    r"^(?:(?P<encoded>data)|stringData):[ \t]{0,8}\n"
    r"(?P<lines>(?:[ \t]{1,12}[^\n]{1,4096}(?:\n|\Z)){1,60})",
    re.M,
)
_KEPT_VALUE = late_pattern(
    r"^[ \t]{1,12}[\w.-]{1,80}:[ \t]{1,8}[\"']?(?P<s>[^\s\"'|>]{6,4096})", re.M
)


def _kept_values(text: str) -> Iterator[Span]:
    """What a Secret of Kubernetes keeps, whatever its names are."""
    done = 0
    for at in places(text, "kind: Secret\n"):
        first = max(text.rfind("\n---", max(0, at - 4096), at), at - 4096, done)
        done = text.find("\n---", at, at + 8192)
        done = min(len(text), at + 8192) if done < 0 else done
        for data in _KEPT.finditer(text, first, done):
            for match in _KEPT_VALUE.finditer(text, *data.span("lines")):
                if _is_kept(match["s"], data["encoded"] is not None):
                    yield *match.span("s"), "assigned-secret"


def _is_kept(value: str, encoded: bool) -> bool:
    if not encoded:
        return is_password(value)
    try:
        plain_value = base64.b64decode(value, validate=True).decode("utf-8")
    except ValueError:
        return False
    return len(plain_value) >= 6 and not is_weak(plain_value)


_BREAK = r"(?:\s|\\[nr]|[>|#*\"',]){1,40}"
_MATERIAL = late_pattern(
    rf"(?:{_BREAK}(?:(?:Proc-Type|DEK-Info|Version): [^\n\\]{{0,99}}|[A-Za-z0-9+/=]{{16,}}))*"
    rf"(?:{_BREAK}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
_LONG_RUN = late_pattern(r"[A-Za-z0-9+/]{40,}|[0-9a-f]{32}")


def _is_key_material(body: str) -> bool:
    """Whether a block holds a key, and not the dots and words of an explanation."""
    return any(not is_sample(run) for run in _LONG_RUN.findall(body.replace("\\n", "\n")))
