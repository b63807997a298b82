"""Secrets in text: where they stand, and the text without them.

Owns the search; the formats are in `secret_formats.py`, what has no format in `passwords.py`. What
a find means for a skill is the scan's decision. A `Secret` says where, never what: nothing here
keeps or prints a value, and only a caller of `redact` that brings a dict for the values is told
them.

Time grows with the length of the text, whatever stands in it: the search costs one pass for all
literal anchors and a bounded look at each place where one stands.
"""

import base64
import re
import string
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from tacit.base.display import plain
from tacit.base.passwords import (
    LITERALS,
    PIPES,
    TELLS_AS,
    Places,
    Span,
    find_passwords,
    may_be_foreign,
    places,
)
from tacit.base.patterns import Literals, late_pattern
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

V = TypeVar("V")

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


_FIRST = 2_000
"""Bytes of a long text in which there is mostly a sign, where there is any."""
_MARK_BEGINS = "[redacted: "
_MARK = late_pattern(r"\[redacted: [a-z0-9-]{1,40}\]")


def find(text: str) -> list[Secret]:
    """The secrets in `text`, in order, none overlapping another. Marks of `redact` are not any.

    What colours a text is passed over: it stands between a name and its value, and at the borders.
    """
    bare, gone = _bare(text)
    found: list[Secret] = []
    line, counted = 1, 0
    for first, last, rule in _spans(bare):
        start, end = _place(gone, first), _place(gone, last - 1) + 1
        if found and start < found[-1].end:  # what overlaps goes together: no part may be left
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
            continue
        line += text.count("\n", counted, start)
        counted = start
        found.append(Secret(rule, line, start, end))
    return found


_CONTROLS = bytes(c for c in (*range(32), 127) if c not in b"\t\n\r")
_WRITTEN_OUT = (r"u001b[", r"u001B[", r"x1b[", r"x1B[", r"\033[", r"\e[")
"""How what begins a colour is written in programs and in JSON."""
_COLOUR = late_pattern(r"(?:\x1b|\\(?:u001b|x1b|033|e))\[[0-?]{0,40}[ -/]{0,2}[@-~]", re.I)
_COLOUR_IN_JSON = late_pattern(rb"\\{1,2}(?:u001b|x1b|033|e)\[[0-?]{0,40}[ -/]{0,2}[@-~]", re.I)
_IN_DATA = tuple(mark.encode() for mark in _WRITTEN_OUT)
_AS_LINE_ENDS = dict.fromkeys(_CONTROLS, "\n")


def _bare(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` without what colours it, its other control characters as ends of lines; and, by the
    places in it where something went, how much went up to there."""
    data = text.encode("ascii", "replace")
    plainly = len(data.translate(None, _CONTROLS)) == len(data)
    if plainly and not any(mark in text for mark in _WRITTEN_OUT):
        return text, []
    parts, gone, at, away = [], [], 0, 0
    for colour in _COLOUR.finditer(text):
        parts.append(text[at : colour.start()])
        at, away = colour.end(), away + len(colour[0])
        gone.append((at - away, away))
    return "".join((*parts, text[at:])).translate(_AS_LINE_ENDS), gone


def _place(gone: list[tuple[int, int]], at: int) -> int:
    """Where in a text stands what stands at `at` in what is left of it."""
    before = bisect_left(gone, (at + 1,))
    return at + (gone[before - 1][1] if before else 0)


def _spans(text: str) -> list[Span]:
    """Where secrets stand, sorted; they may overlap."""
    masked = text
    if _MARK_BEGINS in text:
        masked = _MARK.sub(lambda mark: "\x00" * len(mark[0]), text)
    # Small letters at the same offsets, whatever the script: one character each, never two.
    ascii_text = masked.encode("ascii", "replace")
    small = ascii_text.lower()
    where = _LITERALS.places(small)
    if not where and not may_be_foreign(masked):
        return []  # as most texts
    lower = small.decode("ascii")
    other = not where.keys() <= _TELL_NO_PASSWORD or not masked.isascii()
    return sorted(
        (
            *_formats(masked, ascii_text, lower, where),
            *(() if _BLOCKS.isdisjoint(where) else _blocks(masked)),
            *_kept_values(masked),
            *(find_passwords(masked, lower, where) if other else ()),
        ),
        key=lambda span: (span[0], -span[1]),
    )


def may_hold(data: bytes) -> bool:
    """Whether `find` could find anything in one of the texts in `data`, which is JSON; or in one
    behind the name that it has there, as `name=text`."""
    if any(mark in data for mark in _IN_DATA):
        data = _COLOUR_IN_JSON.sub(b"", data)
    small = data.lower()
    for part in (small[:_FIRST], small) if len(small) > 2 * _FIRST else (small,):
        for which, at, _ in _IN_JSON.hits(part):
            if _is_sign(_IN_JSON.words[which], data, at):
                return True
    return not data.isascii() and may_be_foreign(data.decode())


def _is_sign(word: str, data: bytes, at: int) -> bool:
    """Whether the word that stands in JSON at `at` is as it has to be there."""
    if word in _ONLY_BEGIN:
        return bool(_rows_begun(data, _BEGUN[word], (at,)))
    if word in _ONLY_ABOUT:
        return any(_may_begin(data, FORMATS[row]) for row in _ABOUT[word])
    shown = TELLS_AS.get(word)
    return shown is None or shown.match(data, at) is not None


def clean(text: str) -> str:
    """`text` without secrets and without what steers a terminal."""
    return plain(redact(text).text)


def redact(text: str, values: dict[str, str] | None = None) -> Redacted:
    """`text` with each secret replaced by `[redacted: rule]`. Can be repeated without harm.

    `values` is told what was taken out, and by which rule: the same may stand elsewhere with
    nothing beside it that tells.
    """
    counts: dict[str, int] = {}
    # Two secrets glued together may hide each other's borders: look again until nothing is left.
    # Each round leaves less that could be a secret; more than two are rare.
    while secrets := find(text):
        parts: list[str] = []
        done = 0
        for secret in secrets:
            parts += (text[done : secret.start], f"[redacted: {secret.rule}]")
            if values is not None:
                values[text[secret.start : secret.end]] = secret.rule
            done = secret.end
            counts[secret.rule] = counts.get(secret.rule, 0) + 1
        text = "".join((*parts, text[done:]))
    return Redacted(text, counts)


def _formats(text: str, ascii_text: bytes, lower: str, where: Places) -> Iterator[Span]:
    """The providers' own formats."""
    for row in (FORMATS[index] for index in sorted(_rows(text, ascii_text, where))):
        if row.about and not any(word in lower for word in row.about):
            continue
        if not row.anchors:
            yield from _shapes(text, row)
        for anchor in row.anchors:
            yield from _tokens(text, row, anchor)


def _rows(text: str, ascii_text: bytes, where: Places) -> set[int]:
    """The formats, by their places in the table, of which a sign stands in a text."""
    found: set[int] = set()
    for word in where.keys() & _BEGUN.keys():
        found |= _rows_begun(ascii_text, _BEGUN[word], where[word])
    about = {row for word in where.keys() & _ABOUT.keys() for row in _ABOUT[word]}
    found |= {row for row in about if _may_begin(ascii_text, FORMATS[row])}
    told = where.keys() & _TOLD_BY.keys()
    if told and (long_words := _long_words(text)):
        found |= {row for word in told for sign, row in _TOLD_BY[word] if sign in long_words}
    return found


def _rows_begun(data: bytes, begun: Iterable[tuple[bytes, int]], at: Iterable[int]) -> set[int]:
    """The formats that may begin at some place in `data`: with which anchor each does is given."""
    long = [place for place in at if _LONG.match(data, place)]
    return {row for anchor, row in begun for place in long if data.startswith(anchor, place)}


def _may_begin(data: bytes, row: Format) -> bool:
    """Whether a token of a format that stands alone may begin anywhere in `data`."""
    anchors = (anchor.encode() for anchor in row.anchors)
    return any(
        _LONG.match(data, match.start())
        for anchor in anchors
        if anchor in data
        for match in re.finditer(re.escape(anchor), data)
    )


def _long_words(text: str) -> str:
    """The words of a text that are long enough for a secret, a line each."""
    return "\n".join([word for word in text.split() if len(word) >= MIN_FORMAT])


IN_NO_FORMAT = "\"#&'()*,;<>?@[\\]^`|"
"""Characters that no format has which stands alone, as little as one beyond ASCII."""
_LONG = late_pattern(
    rb"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrt])|(?<=\\u00[01][0-9A-Fa-f]))[^\s\x80-\xff%s]{%d}"
    % (re.escape(IN_NO_FORMAT).encode(), MIN_FORMAT)
)
"""So long is a token at least, from the border of a word on, in JSON too."""


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


def _by_sign(signs: Iterable[tuple[str, V]]) -> dict[str, list[V]]:
    """What each sign, in small letters, stands for."""
    found: dict[str, list[V]] = {}
    for sign, meant in signs:
        found.setdefault(sign.lower(), []).append(meant)
    return found


# Most formats begin with an anchor, at the border of a word. Those that are not telling alone are
# looked for by what must be about, and those that continue something by anchors in long words.
_ALONE = [(i, row) for i, row in enumerate(FORMATS) if row.stands_alone and row.anchors]
_BEGUN = _by_sign((a, (a.encode(), i)) for i, row in _ALONE if not row.about for a in row.anchors)
_ABOUT = _by_sign((word, i) for i, row in _ALONE for word in row.about)
_TOLD_BY = _by_sign(
    (sign, ("" if row.about else sign, i))
    for i, row in enumerate(FORMATS)
    if not row.stands_alone or not row.anchors
    for sign in row.about or row.anchors
)


def _holds_equals(row: int) -> bool:
    return "=" in re.sub(r"\(\?<?=", "", FORMATS[row].expression)


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
_BLOCKS = frozenset(begins.lower() for begins in _BLOCK_BEGINS)
_SIGNS = (*LITERALS, *_TOLD_BY, *sorted(_BLOCKS))
_LITERALS = Literals((*PIPES, *_SIGNS, *_ABOUT, *_BEGUN))
# A name and its value may make one token, if that may hold the sign between them.
_ONLY_ABOUT = frozenset(
    word for word, rows in _ABOUT.items() if not any(map(_holds_equals, rows))
).difference(_SIGNS, _BEGUN)
_ONLY_BEGIN = frozenset(
    word for word, rows in _BEGUN.items() if not any(_holds_equals(row) for _, row in rows)
).difference(_SIGNS, _ABOUT)
_TELL_NO_PASSWORD = _ONLY_BEGIN.union(PIPES)
_IN_JSON = Literals(
    part
    for word in _LITERALS.words[len(PIPES) :]
    for escaped in [word.replace("\\", r"\\").replace('"', r"\"")]
    for part in (escaped, escaped.replace("=", '":"'))
)


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
