"""Secrets in text: where they stand, and the text without them.

Owns the search, and what counts as a placeholder rather than a secret; the formats are in
`secret_formats.py`. What a find means for a skill is the scan's decision. A `Secret` says where,
never what: nothing here keeps or prints a value, and only a caller of `redact` that brings a dict
for the values is told them.

Time grows with the length of the text, whatever stands in it: the search costs one pass for each
literal anchor and a bounded look at each place where one stands.
"""

import math
import re
import string
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from tacit.base.display import plain
from tacit.base.secret_formats import (
    ASSIGNED_VALUE,
    AWS_SECRET,
    BLOCK_BEGIN,
    BLOCK_END,
    COMMAND_PASSWORDS,
    CURL_USER,
    FORMATS,
    HEADER,
    HEADER_WORDS,
    IN_URL,
    KEY_KINDS,
    MIN_FORMAT,
    OPTION_VALUE,
    SAID_VALUE,
    TELLING_NAMES,
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


_MARK = re.compile(r"\[redacted: [a-z0-9-]{1,40}\]")
_Span = tuple[int, int, str]


def find(text: str) -> list[Secret]:
    """The secrets in `text`, in order, none overlapping another. Marks of `redact` are not any."""
    masked = _MARK.sub(lambda mark: "\x00" * len(mark[0]), text)
    # Small letters at the same offsets, whatever the script: one character each, never two.
    lower = masked.encode("ascii", "replace").decode("ascii").lower()
    spans = sorted(
        (
            *_formats(masked, lower),
            *_blocks(masked),
            *_assigned(masked, lower),
            *_headers(masked, lower),
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


def clean(text: str) -> str:
    """`text` without secrets and without what steers a terminal."""
    return redact(plain(text)).text


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


def _places(text: str, word: str) -> Iterator[int]:
    """Where `word` stands in `text`, overlaps left out."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _formats(text: str, lower: str) -> Iterator[_Span]:
    """The providers' own formats."""
    long_words = "\n".join(word for word in text.split() if len(word) >= MIN_FORMAT)
    for rule, anchors, pattern, about, anchor_inside in FORMATS:
        hits = [anchor for anchor in anchors if anchor in long_words]
        if not hits or (about and not any(word in lower for word in about)):
            continue
        for anchor in hits:
            for at in _places(text, anchor):
                match = pattern.match(text, at)
                if match is None:
                    continue
                start, end = match.span("s" if "s" in pattern.groupindex else 0)
                if anchor_inside:  # the token began before its anchor
                    start = _begin(text, start)
                if is_sample(text[start:end].removeprefix(anchor)):
                    continue
                yield start, end, rule
                if rule == "aws-access-key":
                    yield from _aws_secrets(text, start, end)


def _begin(text: str, at: int) -> int:
    """Where the token that runs up to `at` begins."""
    first = max(0, at - 64)
    before = text[first:at]
    return first + len(before.rstrip(_ALNUM))


_ALNUM = string.ascii_letters + string.digits + "_~"


def _aws_secrets(text: str, start: int, end: int) -> Iterator[_Span]:
    """The secret half beside an access key id: 40 characters without a mark of their own."""
    for match in AWS_SECRET.finditer(text, max(0, start - 200), end + 300):
        value = match[0]
        if not is_sample(value) and _entropy(value) > 4.2 and _classes(value) >= 3:
            yield *match.span(), "aws-secret-key"


def _blocks(text: str) -> Iterator[_Span]:
    """Private keys between BEGIN and END, over lines or with `\\n` written out."""
    if "-----BEGIN " not in text:
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


_BREAK = r"(?:\s|\\[nr]|[>|#*\"',]){1,40}"
_MATERIAL = re.compile(
    rf"(?:{_BREAK}(?:(?:Proc-Type|DEK-Info|Version): [^\n\\]{{0,99}}|[A-Za-z0-9+/=]{{16,}}))*"
    rf"(?:{_BREAK}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
_LONG_RUN = re.compile(r"[A-Za-z0-9+/]{40,}")


def _is_key_material(body: str) -> bool:
    """Whether a block holds a key, and not the dots and words of an explanation."""
    return any(not is_sample(run) for run in _LONG_RUN.findall(body.replace("\\n", "\n")))


def _assigned(text: str, lower: str) -> Iterator[_Span]:
    """A value with the entropy of a secret next to a name that tells."""
    seen = -1
    for at in sorted({at for word in TELLING_NAMES for at in _places(lower, word)}):
        if at < seen:  # `secret_token = …`: the first word has spoken for the whole name
            continue
        before = lower[max(0, at - 80) : at]
        if lower.startswith("key", at) and not before.rstrip("_- ").endswith(KEY_KINDS):
            continue
        match = ASSIGNED_VALUE.match(text, at) or SAID_VALUE.match(text, at)
        is_password = lower.startswith(("pass", "pwd"), at)
        if match is None and (
            _OPTION_NAME.search(before) or (is_password and _USED.search(before))
        ):
            match = OPTION_VALUE.match(text, at)
        if match is None:
            continue
        seen = match.start("s")
        if "@" in match["s"] and "://" in before.rpartition(" ")[2]:
            continue  # the user of a URL, and the password behind it: see `_headers`
        if _is_telling_value(match):
            yield *match.span("s"), "password" if is_password else "assigned-secret"


_OPTION_NAME = re.compile(r"(?:^|\s)--[a-z0-9-]{0,40}$")
# `use password …`, `log in with the admin password …`: somebody hands it over.
_USED = re.compile(r"(?:^|[^a-z])(?:use|using|with)(?: (?:the|this|my|our))?(?: [a-z]{1,20})? $")
_NO_SECRET_NAME = re.compile(
    r"(?:id|ids|name|names|path|file|files|dir|url|uri|type|types|hash|count|counts|length|len"
    r"|limit|limits|field|fields|expiry|expires|expiration|ttl|age|env|arn|version|regex|pattern"
    r"|policy|manager|store|ref|role|rule|rules|size|usage|budget|s_used|izer|ized|ization|price"
    r"|cost|ratio|per_second|address|format|header|prefix|scope|scopes|class|created|updated|at)$"
)
_REFERENCE = re.compile(
    r"(?:process\.env|os\.(?:environ|getenv)|import\.meta|env[.:]|secrets[.:/]|config[.:]"
    r"|settings\.|self\.|this\.|vault[:/]|op://|file:|arn:|https?:|sha\d+[:-]|/|\./|~/|\$|%|@|#|&|!"
    r"|\\[$nrt])",
    re.I,
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")  # of a coin contract, which people call its token
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_WORDS = re.compile(r"[A-Za-z]*[0-9]{0,4}(?:[_.:/\\-][A-Za-z]*[0-9]{0,4})*[!.?]{0,2}")


def _is_telling_value(match: re.Match[str]) -> bool:
    """Whether the value after a telling name is a secret, not a word, a call or a variable."""
    value, rest = match["s"], match["rest"].lower()
    if match["after"] in ("(", "[") or _NO_SECRET_NAME.search(rest.rstrip("_.-")):
        return False
    if _REFERENCE.match(value) or is_sample(value) or _ADDRESS.fullmatch(value):
        return False
    digits = sum(c.isdigit() for c in value)
    if not digits or digits == len(value):
        return False
    if match["word"].lower().startswith(("pass", "pwd")):
        # People make passwords of words: capitals, digits and signs tell, entropy does not.
        return _classes(value) >= 3 and not _is_weak(value) and not _is_code(value)
    if _UUID.fullmatch(value):
        return True
    if _WORDS.fullmatch(value) or _is_code(value):
        return False
    return len(value) >= 16 and digits >= 2 and _entropy(value) >= 3.2


def _is_code(value: str) -> bool:
    """`a.b_c`, `x=y&z`, `a->b`: bits of programs, not values."""
    return any(sign in value for sign in ("->", "::", "&&", "==", "://", "\\u", "._", "()."))


def _headers(text: str, lower: str) -> Iterator[_Span]:
    """Authorization headers, passwords in URLs and on the command lines of some programs."""
    for word in HEADER_WORDS:
        for at in _places(lower, word):
            match = HEADER.match(text, at)
            if match and _is_header_value(word, match["s"]):
                yield *match.span("s"), "authorization-header"
    for at in _places(text, "://"):
        match = IN_URL.match(text, at)
        if match and _is_url_password(match):
            yield *match.span("s"), "password-in-url"
    for word in ("-u", "--user"):
        for at in _places(text, word):
            match = CURL_USER.match(text, at)
            if match and "curl" in lower[max(0, at - 300) : at] and not _is_weak(match["s"]):
                yield *match.span("s"), "password"
    for program, pattern in COMMAND_PASSWORDS.items():
        for at in _places(text, program):
            match = pattern.match(text, at)
            # Without a letter it is a port, or two.
            if match and _LETTER.search(match["s"]) and not _is_weak(match["s"]):
                yield *match.span("s"), "password"


_LETTER = re.compile("[A-Za-z]")


def _is_header_value(word: str, value: str) -> bool:
    if is_sample(value) or _WORDS.fullmatch(value):
        return False
    if word.startswith("basic"):
        import base64

        try:
            plain = base64.b64decode(value, validate=True).decode("utf-8")
        except ValueError:
            return False
        _, colon, password = plain.partition(":")
        return bool(colon) and plain.isprintable() and not _is_weak(password)
    return any(c.isdigit() for c in value) and _entropy(value) >= 3.2


def _is_url_password(match: re.Match[str]) -> bool:
    if match["user"].startswith(("$", "{", "%")) or "example" in match["host"].lower():
        return False
    return not _is_weak(match["s"])


# Passwords that stand in every guide: no one is protected by hiding them.
_COMMON = {
    "password", "passwd", "pass", "secret", "admin", "root", "postgres", "mysql", "mongo", "redis",
    "guest", "user", "test", "demo", "changeit", "letmein", "mypassword", "mysecret", "minioadmin",
    "rabbitmq", "hunter2", "qwerty", "s3cret", "s3cr3t", "passw0rd", "p@ssw0rd", "token",
}  # fmt: skip


def _is_weak(password: str) -> bool:
    """Whether a password is a placeholder, a variable or one that every guide prints."""
    plain = password.lower().rstrip("0123456789!.")
    if len(password) < 6 or plain in _COMMON or plain.endswith(("password", "_pass", "-pass")):
        return True
    if is_sample(password) or _REFERENCE.match(password) or "$" in password or "{" in password:
        return True
    return bool(_WORDS.fullmatch(password)) and _classes(password) < 3


_SAMPLE_WORDS = (
    "example", "xxxx", "your", "placeholder", "changeme", "change-me", "change_me", "replace",
    "dummy", "sample", "redacted", "insert", "todo", "fake", "mock", "here", "...", "***", "•••",
    "…", "____", "----", "${", "{{", "}}", "$(", "<", "abc123", "12345", "deadbeef", "foobar",
    "a1b2c3", "1a2b3c", "0a1b2c", "test-key", "test_key", "testkey", "my-secret", "my_secret",
    "mysecret", "not-a-real", "notareal", "notasecret", "not-needed",
    # The samples that the providers' own guides print.
    "4ec39hqlyjwdarjttizdp7dc", "4ec39hqlyjwdarjtt1zdp7dc", "sflkxwrjsmekkf2qt4",
    "eyjzdwiioiixmjm0nty3odkw",
)  # fmt: skip
_ROWS = "0123456789012345 987654321098765 abcdefghijklmnopqrstuvwxyz qwertyuiopasdfghjklzxcvbnm"
_REPEATED = re.compile(r"(.)\1{5,}")


def is_sample(value: str) -> bool:
    """Whether `value` was written to be replaced: a guide's sample, a row of keys, all one letter.

    Judged by the value alone, so that no word beside a real secret can excuse it.
    """
    # In a long value chance alone writes short words: a sample says so at one of its ends.
    lower = (value if len(value) <= 80 else f"{value[:40]} {value[-24:]}").lower()
    if any(word in lower for word in _SAMPLE_WORDS):
        return True
    if len(set(lower)) < min(6, max(3, len(lower) // 3)):
        return True
    repeated = _REPEATED.search(value)
    if repeated and len(repeated[0]) >= max(6, len(value) // 4):
        return True
    # Six in a row of the alphabet or the keyboard; chance makes one in millions of values.
    return any(lower[i : i + 7] in _ROWS for i in range(len(lower) - 6))


def _entropy(value: str) -> float:
    """Bits a character, by the frequency of each character in `value` itself."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in map(value.count, set(value)))


def _classes(value: str) -> int:
    """How many of small letters, capitals, digits and signs there are in `value`."""
    return (
        any(c.islower() for c in value)
        + any(c.isupper() for c in value)
        + any(c.isdigit() for c in value)
        + any(not c.isalnum() for c in value)
    )
