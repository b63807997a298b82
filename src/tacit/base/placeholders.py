"""What a value is: a secret, or a placeholder, a word, a path, a variable, a piece of a program.

Judges the value alone, never the words beside it; where to look for values is `passwords.py`'s.
"""

import base64
import math
import re

from tacit.base.patterns import Literals, late_pattern

REFERENCE = late_pattern(
    r"(?:process\.env|os\.(?:environ|getenv)|import\.meta|env[.:]|secrets[.:/]|config[.:]"
    r"|settings\.|self\.|this\.|\?|vault[:/]|op://|file:|arn:|https?:|sha\d+[:-]|/|\./|~/|\$"
    r"|[%@#&!][A-Za-z_][\w.:/-]{0,200}%?\Z|%\{|\\[$nrt])",
    re.I,
)
_VARIABLE = late_pattern(
    r"\$(?:[A-Z_][A-Z0-9_]{1,60}(?![a-z])|[a-z_]{3,60}(?![A-Za-z0-9])|[{(])|[{]"
)
ADDRESS = late_pattern(r"0x[0-9a-fA-F]{40}")  # of a coin contract, which people call its token
UUID = late_pattern(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
WORDS = late_pattern(r"[A-Za-z]*[0-9]{0,4}(?:[_.:/\\-][A-Za-z]*[0-9]{0,4})*[!.?]{0,2}")
_SIGN_INSIDE = late_pattern(r"[A-Za-z][!#$%^&*+~?][A-Za-z]")
_ENCODED = late_pattern(
    r"(?=.{8,200}\Z)(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)"
)
SIGN_BETWEEN = late_pattern(r"[A-Za-z0-9][!#$%^*~?][A-Za-z0-9]")
BRACKETS = late_pattern(r"[<>()\[\]{}]")
_MEMBER = late_pattern(r"[A-Za-z_]\w*[#$][\w.-]+|.*\w[\[(].*[\])]|.*\?\.")
LETTER = late_pattern("[A-Za-z]")


def is_strong(value: str) -> bool:
    """Whether nothing but a password looks like `value`: letters, digits and signs mixed."""
    if len(value) < 8 or _MEMBER.fullmatch(value) or not is_password(value) or is_path(value):
        return False
    if classes(value) == 4 and SIGN_BETWEEN.search(value):
        return True
    mixed = value.isalnum() and not value.islower() and not value.isupper()
    return mixed and is_random(value, 12) and not WORDS.fullmatch(value)


def is_password(value: str) -> bool:
    """People make passwords of words: capitals, digits and signs tell, entropy does not."""
    kinds, digits = classes(value), sum(c.isdigit() for c in value)
    if digits == len(value) or is_weak(value) or is_code(value):
        return False
    if not digits:
        return kinds >= 3 and bool(
            _SIGN_INSIDE.search(value) or (len(value) > 8 and _ENCODED.fullmatch(value))
        )
    return kinds >= 3 or (
        len(value) >= 8 and bool(LETTER.search(value)) and not WORDS.fullmatch(value)
    )


_PLACE = late_pattern(
    r"(?:feature|feat|fix|bugfix|hotfix|release|chore|docs?|tests?|refactor|claude|codex|cursor"
    r"|copilot|dependabot|renovate|origin|refs|heads|users?|src|libs?|packages|apps?|home|usr|etc"
    r"|var|opt|tmp|node_modules|[A-Za-z]:[\\/]|\.{1,2}[\\/])[\\/]?[\w@.-]{0,80}(?:[\\/]|$)",
    re.I,
)
_RUN = late_pattern("[A-Za-z0-9]+")
_CAMEL = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def is_path(value: str) -> bool:
    """Whether `value` is a branch or the path of a file: words between slashes."""
    if "/" not in value and "\\" not in value:
        return False
    if _PLACE.match(value):
        return True
    parts = [part for part in re.split(r"[/\\_.:@+=-]", value) if part]
    return all(len(part) <= 8 or len(part) >= 2.5 * len(_CAMEL.findall(part)) for part in parts)


def is_random(value: str, least: int = 16) -> bool:
    """Whether capitals, small letters and digits alternate as they do not in names."""
    if len(value) < least or classes(value) < 2:
        return False
    changes = len(_CAMEL.findall(value)) - len(_RUN.findall(value))
    return changes >= len(value) / 5


def is_jumbled(value: str) -> bool:
    """Whether capitals, small letters and digits take turns as in nothing that has a meaning."""
    size = len(value)
    longest = 2.2 if size < 16 else 2.5 if size < 20 else 2.7 if size < 24 else 3
    kinds = any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value))
    return size >= 12 and all(kinds) and len(_CAMEL.findall(value)) * longest >= size


_TURN = late_pattern(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_DIGITS = late_pattern("[0-9]{2}")
_HEX = late_pattern("[0-9a-fA-F-]+")
_ENCODING = late_pattern(
    r"(?:base|sha|utf|md|[rehp]s|oauth|ipv|x|v|ed|aes|rsa|gpt|int|str)[-_]?\d", re.I
)


def is_made_key(value: str, least: int = 16) -> bool:
    """Whether letters and digits alternate as in a key that a program made, not as in a name."""
    if len(value) < least or ADDRESS.fullmatch(value) or is_sample(value):
        return False
    if is_code(value) or is_path(value):
        return False
    turns, digits = len(_TURN.findall(value)), sum(c.isdigit() for c in value)
    if len(value) < 16:
        plain = value.replace("-", "").replace("_", "").isalnum() and not _ENCODING.match(value)
        return (
            plain
            and digits >= 2
            and (turns >= 4 or (bool(_DIGITS.search(value)) and turns >= 2))
            and not WORDS.fullmatch(value)
        )
    mixed = classes(value.replace("-", "").replace("_", "")) >= 3 and is_random(value)
    return digits >= 3 and (mixed or turns >= len(value) / 5) and not WORDS.fullmatch(value)


def is_hexadecimal(value: str) -> bool:
    return bool(_HEX.fullmatch(value))


_FORMATTED = late_pattern(r"%[sd](?![A-Za-z0-9])")


def is_code(value: str) -> bool:
    """`a.b_c`, `x=y&z`, `a->b`: bits of programs, not values."""
    inside = value.rstrip("=")
    return bool(_FORMATTED.search(value)) or any(
        sign in inside for sign in ("->", "::", "&&", "==", "://", "\\u", "._", "().")
    )


# Passwords that stand in every guide: no one is protected by hiding them.
_COMMON = {
    "password", "passwd", "pass", "secret", "admin", "root", "postgres", "mysql", "mongo", "redis",
    "guest", "user", "test", "demo", "changeit", "letmein", "mypassword", "mysecret", "minioadmin",
    "rabbitmq", "hunter2", "qwerty", "s3cret", "s3cr3t", "passw0rd", "p@ssw0rd", "token",
}  # fmt: skip


def is_weak(password: str) -> bool:
    """Whether a password is a placeholder, a variable or one that every guide prints."""
    plain = password.lower().rstrip("0123456789!.")
    if len(password) < 6 or plain in _COMMON or plain.endswith(("password", "_pass", "-pass")):
        return True
    if is_sample(password) or REFERENCE.match(password) or _VARIABLE.search(password):
        return True
    return bool(WORDS.fullmatch(password)) and classes(password) < 3


_SAMPLE_WORDS = (
    "example", "xxxx", "your", "placeholder", "changeme", "change-me", "change_me", "replace",
    "dummy", "sample", "redacted", "insert", "todo", "fake", "mock", "here", "...", "***", "•••",
    "…", "____", "----", "${", "{{", "}}", "$(", "abc123", "12345", "deadbeef", "foobar",
    "a1b2c3", "1a2b3c", "0a1b2c", "test-key", "test_key", "testkey", "my-secret", "my_secret",
    "mysecret", "not-a-real", "notareal", "notasecret", "not-needed",
    # The samples that the providers' own guides print.
    "4ec39hqlyjwdarjttizdp7dc", "4ec39hqlyjwdarjtt1zdp7dc", "sflkxwrjsmekkf2qt4",
    "eyjzdwiioiixmjm0nty3odkw",
)  # fmt: skip
_ROWS = "0123456789012345 987654321098765 abcdefghijklmnopqrstuvwxyz qwertyuiopasdfghjklzxcvbnm"
# Seven in a row of the alphabet or the keyboard; chance makes one in millions of values.
_SAMPLES = Literals((*_SAMPLE_WORDS, *(_ROWS[at : at + 7] for at in range(len(_ROWS) - 6))))
_SLOT = late_pattern(r"\A<|<[a-z_]{3}|<[<%]|<\Z")
_REPEATED = late_pattern(r"(.)\1{5,}")


def is_sample(value: str) -> bool:
    """Whether `value` was written to be replaced: a guide's sample, a row of keys, all one letter.

    Judged by the value alone, so that no word beside a real secret can excuse it.
    """
    # In a long value chance alone writes short words: a sample says so at one of its ends.
    lower = (value if len(value) <= 80 else f"{value[:40]} {value[-24:]}").lower()
    if _SAMPLES.hits(lower.encode(errors="replace")) or ("<" in lower and _SLOT.search(lower)):
        return True
    if len(set(lower)) < min(6, max(3, len(lower) // 3)):
        return True
    repeated = _REPEATED.search(value)
    return repeated is not None and len(repeated[0]) >= max(6, len(value) // 4)


def entropy(value: str) -> float:
    """Bits a character, by the frequency of each character in `value` itself."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in map(value.count, set(value)))


def classes(value: str) -> int:
    """How many of small letters, capitals, digits and signs there are in `value`."""
    return (
        any(c.islower() for c in value)
        + any(c.isupper() for c in value)
        + any(c.isdigit() for c in value)
        + any(not c.isalnum() for c in value)
    )


def is_header_value(scheme: str, value: str) -> bool:
    """Whether `value` is what an authorization header of that scheme brings."""
    if is_sample(value) or (WORDS.fullmatch(value) and not is_random(value)):
        return False
    if scheme.startswith("basic"):
        try:
            plain = base64.b64decode(value, validate=True).decode("utf-8")
        except ValueError:
            return False
        _, colon, password = plain.partition(":")
        return bool(colon) and plain.isprintable() and not is_weak(password)
    return any(c.isdigit() for c in value) and entropy(value) >= 3.2 and not is_path(value)


def is_small_or_a_test(word: str, value: str) -> bool:
    """What follows the bare word `pass` is often a number, an argument or the name of a test."""
    if not (_SMALL.search(value) and _CAPITAL.search(value)):
        return True
    return word.isupper() and bool(WORDS.fullmatch(value))


_SMALL, _CAPITAL = late_pattern("[a-z]"), late_pattern("[A-Z]")


ODD = late_pattern(r"[!$%^&*?~@+]|\d#[A-Za-z]|[a-z]#\d{1,4}[A-Za-z]{2}")
_ANY_LETTER = late_pattern(r"[^\W\d_]")
_NUMBERED = late_pattern(
    r"([^\W\d_]{3,24})(?:[_.-]?\d{2,6}[a-z]?|[#&!]\d{1,6}[a-z]{0,2})"
    r"|([A-Z][a-z]{3,20}(?:[_-][A-Z]?[a-z]{3,20}){0,2})[_-]?\d{1,4}[a-z]?"
)
_LEET = late_pattern(
    r"(?=[^A-Z]{0,40}[A-Z])(?=[^a-z]{0,40}[a-z])[A-Za-z]{1,12}\d[A-Za-z]{1,12}[_-]?\d[A-Za-z0-9_]{0,20}"
    r"|(?:[A-Za-z]{1,6}\d){3,8}[A-Za-z]{0,6}"
)
_BETWEEN = late_pattern(r"([a-z]{4,12})\d{1,4}([a-z]{3,12})")
_THING_NAMES = late_pattern(
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}|@[\w/.-]{1,64}|[\w./@-]{1,64}@[\^~]?[\d.]{1,20}"
    r"|[\w-]{1,20}[+*](?!\d{2,4}[A-Za-z]{3})[\w-]{1,20}|\w{1,2}&\w{1,9}|.{0,30}[%$]\w?"
)
# Words with a number that are the names of things, also where passwords are spoken of.
_THINGS = frozenset(
    re.findall(
        r"\w+",
        "seite kapitel abschnitt pagina página capítulo chapitre страница глава windows python "
        "base sha utf iso version table figure chapter section step sprint level release ubuntu "
        "debian argon bcrypt scrypt http https oauth ipv test tests case user users admin demo "
        "form field page line node java rfc cve issue ticket task story item phase part day "
        "week year room port error code status rule note type key token aes rsa des tls ssl crc "
        "uuid net log file pbkdf hmac chacha blake curve group slot index row column option "
        "question answer lesson month build patch api app apps web mac ios android win office "
        "sql mysql postgres redis ruby php perl rust swift vue react angular next nuxt svelte "
        "spring django rails laravel ldap smtp imap pop ftp sftp ssh vpn dns dhcp ntp bug fix "
        "feat commit passwd password passwort secret login auth session hash salt request "
        "response client server host model gpt claude gemini llama qwen opus hunter qwerty "
        "letmein changeme guest root sonnet haiku top all max min first last about over under "
        "january february march april may june july august september october november december ",
    )
)


def is_made_up(value: str) -> bool:
    """Whether nobody calls a thing so: a word with a number behind it that no thing is known by, or
    letters and digits with a sign that names do not have."""
    digits = sum(c.isdigit() for c in value)
    if not digits or len(value) < 6 or not _ANY_LETTER.search(value):
        return False
    if is_sample(value) or REFERENCE.match(value) or is_code(value) or is_path(value):
        return False
    bare = value.rstrip("!?*#")
    jumbled = is_jumbled(bare)
    if value.count(".") > 1 or (not jumbled and (_THING_NAMES.fullmatch(value) or "=" in value)):
        return False
    if numbered := _NUMBERED.fullmatch(bare):
        return _THINGS.isdisjoint(re.split("[_-]", (numbered[1] or numbered[2]).lower()))
    if between := _BETWEEN.fullmatch(bare):
        return between[1].lower() not in _THINGS and between[2].lower() not in _THINGS
    return not is_weak(value) and bool(jumbled or ODD.search(bare) or _LEET.fullmatch(bare))
