"""Passwords, and other secrets without a format of their own: the names, options, commands,
headers and sentences beside which they stand.

Owns the search and the patterns of names and sentences; the tables of commands and headers are in
`secret_formats.py`, whether a value is a secret is judged in `placeholders.py`, and `secrets.py`
joins what is found here with the formats. A pattern is tried only where its literal anchor stands,
and every quantifier has a bound.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from tacit.base.patterns import Literals, late_pattern
from tacit.base.placeholders import (
    ADDRESS,
    BRACKETS,
    LETTER,
    REFERENCE,
    SIGN_BETWEEN,
    UUID,
    WORDS,
    classes,
    entropy,
    is_code,
    is_header_value,
    is_made_up,
    is_password,
    is_path,
    is_random,
    is_sample,
    is_small_or_a_test,
    is_strong,
    is_weak,
)
from tacit.base.secret_formats import (
    AUTHORIZATION,
    COMMAND_OPTIONS,
    COMMANDS,
    COOKIE,
    COOKIES,
    CURL_USER,
    ENCODED_PAIR,
    FED,
    GIVEN_PAIR,
    HEADER,
    HEADER_WORDS,
    IN_URL,
    KEY_ENDS,
    PGPASS,
    PIPED,
    READERS,
)
from tacit.base.told_secrets import (
    ALSO_TOLD,
    BEGINNINGS,
    CUES,
    FOREIGN_BEGINNINGS,
    FOREIGN_KEYS,
    KEY_CUES,
    KEYS,
    cued_secrets,
    handed_keys,
    named_keys,
    told_codes,
    told_passwords,
)

Span = tuple[int, int, str]
Places = Mapping[str, list[int]]
"""Where words stand in a text, in order: those that stand there at all."""

# Words for a password, whatever follows them in a name; those with other letters than a to z are
# looked for only in texts that have such letters.
_PASSWORDS = (
    "passphrase", "password", "passwort", "passord", "passwd", "passcode", "kennwort", "contrasena",
    "clave", "senha", "wachtwoord", "haslo", "heslo", "parola", "salasana", "adgangskode", "jelszo",
    "mdp", "pwd", "mot de passe", "mot_de_passe", "kata sandi", "palavra-passe", "contrasenya",
    "lozink", "jelszav", "geslo", "hesl", "parool", "pasahitz", "kata laluan",
)  # fmt: skip
_FOREIGN = (
    "contraseña", "hasło", "hasła", "hasłem", "лозинк", "slaptažod", "lykilorð", "رمز عبور",
    "گذرواژه", "lösenord", "şifre", "parolă", "jelszó", "пароль", "парол", "κωδικός", "סיסמה",
    "كلمة المرور", "كلمة السر", "비번",
    "पासवर्ड", "รหัสผ่าน", "mật khẩu", "密码", "密碼", "口令", "パスワード", "비밀번호",
    "암호",
)  # fmt: skip
_BEYOND_ASCII = (*_FOREIGN, *FOREIGN_KEYS, *FOREIGN_BEGINNINGS)
_FOREIGN_WORDS = Literals(_BEYOND_ASCII)
_LETTERS = "".join(next(c for c in word if not c.isascii()) for word in _BEYOND_ASCII)
_find_foreign_letter = re.compile(f"[{_LETTERS}{_LETTERS.upper()}]").search
"""One of these stands wherever one of those words does."""
_find_letter_beyond = re.compile(
    "[" + re.sub("[A-Z]", "", _LETTERS + _LETTERS.upper()) + "]"
).search
"""The same of those that are not also ASCII in large letters."""
# In lower case, what a name holds; beside these `key`, after one of KEY_KINDS.
_NAMES = frozenset((
    "pass", "pw", "credential", "secret", "token", "kennwort", "contrasena", "clave", "senha",
    "wachtwoord", "haslo", "heslo", "parola", "salasana", "adgangskode", "jelszo", "mdp",
    "kata sandi",
    *_FOREIGN,
))  # fmt: skip
KEY_KINDS = (
    "api", "access", "account", "app", "auth", "client", "encryption", "license", "master",
    "preshared", "private", "secret", "service", "session", "shared", "signing", "admin", "jwt",
    "validation", "decryption", "nonce", "logged_in", "hmac", "fernet", "crypt", "webhook",
)  # fmt: skip
_BEFORE_KEY = (*KEY_KINDS, "?", "&")

# `telling word, rest of the name, closing quote, sign, opening quote, value`, as in a config file,
# code, JSON, YAML, XML, a shell line or a table. The value ends at a quote, a space or a bracket,
# and something that ends values must follow, so that a part of a longer thing is not taken for it.
_WORD = (
    f"(?P<word>(?i:{'|'.join((*_PASSWORDS, *_FOREIGN))}|pass(?![a-z])|pw(?![a-z])"
    "|credential|secret|token|key))"
)
_REST = r"(?P<rest>[A-Za-z0-9_.-]{0,40})"
_SIGN = (
    r"(?::[ \t]{1,4}!{1,2}[\w.:/-]{2,40}[ \t]{1,4}(?=[\"'])"
    r"|[\\\"'`\])}*]{0,6}[ \t]{0,20}(?::=|=>|->|={1,3}|:|：|[|]|→)[ \t]{0,20}"
    r"|[\"']?>(?:\s{0,20}<[Vv]alue>)?(?:<!\[CDATA\[)?"
    r"|[ \t]{0,4}(?:[|]{2}|[?]{2})[ \t]{0,4}(?=[\"'`])"
    r"|[\"'][ \t]{0,4},[ \t]{0,20}(?=[\"'])|\((?=[\"'])|:[ \t]?[|>]-?\n[ \t]{1,40}"
    r"|:[ \t]{0,4}&?[A-Za-z]{1,12}[ \t]{0,4}=[ \t]{0,4}|</\w{1,20}>\s{0,20}<\w{1,20}>"
    r"|\"[ \t]{0,4}\{[^{}]{0,120}?default\s{0,20}=\s{0,4}"
    r"|[\"']?,?\s{1,40}[\"']?[Vv]alue[\"']?\s{0,4}[:=]\s{0,4})"
)
_OPEN = r"(?P<open>[brufN@]{0,2}\\{0,3}[\"'`]{1,3}|[「『“„]|)"
_VALUE = r"(?P<s>(?:base64:)?[^\s\"'`<>()\[\]{},;|\x00]{6,512}+)"
_QUOTED = r"(?:(?<=[\"'`])(?P<q>[^\s\"'`\x00]{6,512}+)(?=[\"'`])"
_END = r"(?=[\s\"'`,;)\]}|<]|\Z)(?P<after>.?)"
ASSIGNED_VALUE = late_pattern(f"{_WORD}{_REST}{_SIGN}{_OPEN}{_QUOTED}|{_VALUE}{_END})")

# The same without a sign: `--password VALUE` on a command line, `login NAME password VALUE`.
OPTION_VALUE = late_pattern(
    rf"{_WORD}{_REST}\s{{1,8}}(?:[057][ \t]{{1,4}})?{_OPEN}{_QUOTED}|{_VALUE}{_END})"
)
# A message in which somebody says that the password is VALUE, in one language or another.
_PRINTABLE = r"(?P<s>[!#-&*-+\--:=?-Z\\^_a-z~]{6,128}+)"
_FOR = (
    r"(?:[ \t](?:for|of|on|to|in|at|from|f[üu]r|auf|am|im|der|des|de|del|do|da|du|sur|pour|para"
    r"|per|van|voor|от|для)(?:[ \t][^\s:=→—]{1,30}){1,5}?|[ \t]\([^()\n]{1,30}\))?"
)
_IS = (
    r"(?:[ \t]{1,4}(?i:is|was|ist|war|lautet|es|est|é|è|este|je|är|er|to|là|है|olan|c['’]est)"
    r"[ \t]{1,4}|[ \t]{0,4}(?:[:=：→]|[—–-][ \t]|是|为|為|は|는|은|,[ \t])[ \t]{0,4})"
)
SAID_VALUE = late_pattern(
    rf"{_WORD}(?P<rest>(?:s|et|en|ul|i)?){_FOR}{_IS}(?P<open>[\"'`「『“„‘]{{0,2}}){_PRINTABLE}"
    r"(?=[\s\"'`,;)\]}|<]|[^\x00-\x7f]|\Z)(?P<after>)"
)
# `credentials: NAME / VALUE`, `log in with NAME / VALUE`.
PAIR = late_pattern(
    r"(?i:cred(?:ential)?s?|log ?in)(?:[ \t](?:are|is|with|as))?:?[ \t]{1,4}[\"'`]?[\w.@-]{2,40}"
    rf"[\"'`]?(?::|[ \t]{{0,2}}/[ \t]{{1,2}})[\"'`]?{_PRINTABLE}(?=[\s\"'`,;)]|\Z)"
)

_BEFORE_OPTION = late_pattern(
    r"(?:^|[\s\"'(])(?:--?|/)[a-z0-9.-]{0,40}$"  # --password X, -storepass X
    r"|(?:^|\s)(?:config|configure) set \S{0,60}$|(?:^|\s)setx [a-z0-9_]{0,40}$"
)
# `use password …`, `login NAME password …`, `set the password to …`: somebody hands it over.
_BEFORE_PASSWORD = late_pattern(
    r"(?:^|[^a-z])(?:use|using|with)(?: (?:the|this|my|our))?(?: [a-z]{1,20})? $"
    r"|(?:^|[^a-z])(?:usa|usando|utilise|avec|mit|con|com|met)(?: [a-z]{1,20} (?:et|y|e|und|en))?"
    r"(?: (?:le|la|el|a|o|il|dem|das|het))? $"
    r"|(?:^|[\s(])(?:login|user|username|account|uid|ssid)(?: is| with|:|=)?\s{1,4}\S{1,60}"
    r"[\s,;/]{1,10}(?:and |with )?$"
    r"|(?:wifi connect|role|with login|encrypted|enable|privilege) [^\n]{0,40}$|(?:^|\s)enable $"
)
_COLUMN = late_pattern(  # `bindpw VALUE`, alone on its line
    r"(?:\A|\n)[ \t]{0,8}[a-z][a-z0-9_.-]{1,30}(?<!proxy_)(?<!cgi_)(?<!grpc_)(?<!two_)(?<!one_)\Z"
)
_CHANGES = late_pattern(r"(?:set|chang|reset|updat)[a-z]{0,4} (?:the |my |our )?(?:[a-z]{1,20} )?$")
_NO_PREFIX = late_pattern(
    r"(?:by|com|tres|sur|over|under|multi|single|one|two|first|second|last|next|render|through)\Z"
)


def find_passwords(text: str, lower: str, where: Places) -> Iterator[Span]:
    """Where values without a format stand; `lower` is `text` in small letters, in ASCII, and
    `where` says where those of `LITERALS` stand in it."""
    if may_be_foreign(text):
        small = _foreign(text)
        words = _FOREIGN_WORDS.places(small.encode(errors="replace"))
        where = {**where, **{word: places(small, word) for word in words}}
    for find in (_named, _keys, _told, _handed, _headers, _commands, _records, _cued):
        for start, end, rule in find(text, lower, where):
            # A quote inside a quoted text is written `\\"`: its backslash is not the value's.
            yield start, end - (text[end - 1 : end + 1] in ('\\"', "\\'")), rule


def places(text: str, word: str) -> list[int]:
    """Where `word` stands in `text`, overlaps left out."""
    found, at = [], text.find(word)
    while at >= 0:
        found.append(at)
        at = text.find(word, at + len(word))
    return found


def may_be_foreign(text: str) -> bool:
    """Whether one of the foreign words may stand in a text; most hold a dash or a tick at most."""
    return not text.isascii() and _find_letter_beyond(text) is not None


def _foreign(text: str) -> str:
    """`text` in small letters, where one of the foreign words may stand in it; else nothing."""
    if text.isascii() or not _find_foreign_letter(text):
        return ""
    small = text.lower()
    return small if len(small) == len(text) else text


def _names(lower: str, where: Places) -> set[int]:
    """Where names that may tell stand."""
    found = {at for word in where.keys() & _NAMES for at in where[word]}
    found |= {at for at in where.get("key", ()) if _is_telling_key(lower[max(0, at - 80) : at])}
    if "mot de passe" in where or "mot_de_passe" in where:
        found |= {at - 7 for at in places(lower, "passe") if at >= 7}
    return found


def _is_telling_key(before: str) -> bool:
    return before.rstrip("_- .:").endswith(_BEFORE_KEY)


def _named(text: str, lower: str, where: Places) -> Iterator[Span]:
    """A value next to a name that tells."""
    names = _names(lower, where)
    yield from _near(text, lower, names, where)
    seen = -1
    for at in sorted(names):
        if at < seen:  # `secret_token = …`: the first word has spoken for the whole name
            continue
        before = lower[max(0, at - 80) : at]
        match = _beside(text, lower, at, before)
        if match is None:
            continue
        start, end = match.span("q" if match.groupdict().get("q") else "s")
        seen = start
        if match.re.pattern == SAID_VALUE.pattern:
            end = start + len(text[start:end].rstrip(".,;:"))
        value = _LINE_END.sub("", text[start:end])
        end = start + len(value)
        if "@" in value and "://" in before.rpartition(" ")[2]:
            continue  # the user of a URL, and the password behind it: see `_headers`
        for_password = _is_password_word(match["word"])
        if _is_telling_value(match, value, for_password, before):
            yield start, end, "password" if for_password else "assigned-secret"


_LINE_END = late_pattern(r"(?:\\{1,3}[nrt]?){1,4}\Z|&&\Z|&[A-Za-z][\w.-]{0,40}=.*\Z")
"""Written out, the backslash of a quote in a quoted text, the next command, or field of a form."""


def _beside(text: str, lower: str, at: int, before: str) -> re.Match[str] | None:
    """The name at `at` with the value that stands beside it."""
    if lower.startswith("key", at) and not _is_telling_key(before):
        return None
    if lower.startswith(("pass", "pw"), at) and not _begins_name(text, at, before):
        return None
    match = ASSIGNED_VALUE.match(text, at) or SAID_VALUE.match(text, at)
    if match is None:
        match = OPTION_VALUE.match(text, at)
        if match is None:
            return None
        quoted = bool(match["open"]) and match["word"].lower() in _PASSWORDS
        handed = _is_password_word(match["word"]) or "enable" in before
        alone = not match["word"].isascii() and _MADE_UP.match(match["s"] or "")
        handed = handed and bool(_BEFORE_PASSWORD.search(before))
        column = (
            _COLUMN.search(before)
            and ":" not in match[0]
            and text[match.end() : match.end() + 1] in ("", "\n")
        )
        if not (quoted or alone or handed or column or _BEFORE_OPTION.search(before)):
            return None
        if "\n" in text[match.start() : match.start("open")] and "login" not in before:
            return None
    elif match.re.pattern == SAID_VALUE.pattern:
        said = text[match.end("word") : match.start("s")].strip().lower()
        if said == "to" and not (
            _CHANGES.search(before) or match["word"].lower().startswith("has")
        ):
            return None
    return match


def _near(text: str, lower: str, names: set[int], where: Places) -> Iterator[Span]:
    """What only a password looks like, a few words after or before the word for one."""
    pairs = {at for word in _ACCOUNTS for at in where.get(word, ())}
    for at in (*names, *pairs):
        match = SPOKEN.match(text, at)
        if match is None:
            continue
        spoken = match["pair"] is None
        yield from _strong_words(text, match.end(), min(len(text), match.end() + 60), spoken)
        if spoken and _AS_THE.search(lower[max(0, at - 16) : at]):
            yield from _strong_words(text, max(0, at - 60), at, spoken)


def _strong_words(text: str, start: int, end: int, spoken: bool) -> Iterator[Span]:
    for match in STRONG.finditer(text, start, end):
        last = match.end()
        if last == end and last < len(text) and not text[last].isspace():
            continue  # cut in the middle
        value = match["s"].rstrip(".,:;*_")
        between = text[start : match.start("s")]
        if "\n" in between or (not spoken and between.strip("\"'`")):
            return
        told = _NOW.search(between) if spoken else _LOGS_IN.match(text, last)
        if _SETTING.match(value) and not told:  # that one is found by its name
            continue
        if is_password(value) if told else is_strong(value):
            yield match.start("s"), match.start("s") + len(value), "password"


def _told(text: str, lower: str, where: Places) -> Iterator[Span]:
    """What somebody tells in a sentence, some words away from the word for it."""
    names = [word for word in where if word in _TOLD]
    named = {(at, at + len(word)) for word in names for at in where[word]}
    alone = ((a, b) for a, b in sorted(named) if b - a > 3 or not lower[a - 1 : a].isalnum())
    yield from ((*span, "password") for span in told_passwords(text, alone))

    yield from told_codes(text, where)


def _cued(text: str, lower: str, where: Places) -> Iterator[Span]:
    """What nobody would call a thing, in a sentence in which a secret is spoken of."""
    cues: dict[int, int] = {}
    for level, some in enumerate(_CUES):
        for word in where.keys() & some:
            cues.update(dict.fromkeys(where[word], level))
    yield from cued_secrets(text, cues)


_CUES = tuple(
    map(frozenset, ((*KEY_CUES, *KEYS, *FOREIGN_KEYS), CUES, (*_PASSWORDS, *ALSO_TOLD, *_FOREIGN)))
)


_TOLD = frozenset((*_PASSWORDS, *_FOREIGN, *ALSO_TOLD))


_SPOKEN = (
    "password", "passwort", "passphrase", "passcode", "passwd", "kennwort", "contrasena", "senha",
    "wachtwoord", "mdp", "mot de passe",
)  # fmt: skip
SPOKEN = late_pattern(
    f"(?i:{'|'.join((*_SPOKEN, *_FOREIGN))})"
    r"|(?i:admin|root)(?P<pair>[ \t]{0,2}/{1,2}[ \t]{0,2}|:)"
)
STRONG = late_pattern(
    r"(?<![^\s\"'`(（：:>「])(?P<s>[!#-&*-+\--:=?-Z\\^_a-z~]{8,64})(?=[\s\"'`,;)」]|\Z)"
)
_AS_THE = late_pattern(r"[^a-z](?:(?:as|is|that's|it's) (?:the|my|our|a)|as) (?:[a-z]{1,10} )?$")
_SETTING = late_pattern(r"[\w.-]{1,40}=")
_NOW = late_pattern(
    r"(?i:(?<!\w)(?:neu|new|now|jetzt|nouveau|nuev[oa]|nov[oa]|nuov[oa]|nowe|nieuw|новый)"
    r"[ \t]?[:=→]|新[:：]|(?<!\w)(?:lautet|c['’]est))[ \t\"'`「]{1,3}\Z"
)
_LOGS_IN = late_pattern(r"[\"'`]?[ \t]{1,3}(?i:einlogg|anmeld|(?:to )?(?:log|sign) ?in)")


def _handed(text: str, lower: str, where: Places) -> Iterator[Span]:
    """A key or a token that somebody hands over, or that is called one of an API."""
    if found := {at for word in where.keys() & _KEYS for at in where[word]}:
        yield from handed_keys(text, _foreign(text) or lower, found)


_KEYS = frozenset((*KEYS, *FOREIGN_KEYS))


def _keys(text: str, lower: str, where: Places) -> Iterator[Span]:
    """A name whose last word means a key, and a value that only a key looks like."""
    found = ((word, at) for word in KEY_ENDS for at in where.get(word, ()))
    yield from named_keys(text, found)


def _begins_name(text: str, at: int, before: str) -> bool:
    """`pass` and `pw` are parts of many words; whole, or after a word that goes with them."""
    if not before or not before[-1].isalpha():
        return True
    if text[at].isupper() and not text[at - 1].isupper():
        return True
    long = text[at : at + 5].lower() not in ("pass", "pw") and re.match(
        "(?i:passw|passp|passc|passo|pwd)", text[at : at + 5]
    )
    return bool(long) or not _NO_PREFIX.search(before)


def _is_password_word(word: str) -> bool:
    return word.lower() not in ("credential", "secret", "token", "key")


_NO_SECRET_NAME = late_pattern(
    r"(?:id|ids|name|names|path|file|files|dir|url|uri|type|types|hash|count|counts|length|len"
    r"|limit|limits|field|fields|expiry|expires|expiration|ttl|age|env|arn|version|regex|pattern"
    r"|policy|manager|store|ref|role|rule|rules|size|usage|budget|s_used|izer|ized|ization|price"
    r"|cost|ratio|per_second|address|format|header|prefix|scope|scopes|class|created|updated|at"
    r"|reset|ed)$"
)


def _is_telling_value(match: re.Match[str], value: str, for_password: bool, before: str) -> bool:
    """Whether the value after a telling name is a secret, not a word, a call or a variable."""
    rest = match["rest"].lower()
    if match["after"] in ("(", "[") or _NO_SECRET_NAME.search(rest.rstrip("_.-")):
        return False
    if is_sample(value) or ADDRESS.fullmatch(value) or is_path(value):
        return False
    if BRACKETS.search(value) and not (len(value) >= 16 and is_strong(value)):
        return False
    joined = match.string[match.end("word") : match.start("s")] == ":"
    if not is_strong(value) and (
        match["word"].lower() == "clave" or (joined and match["word"] == "pw")
    ):
        return False
    if REFERENCE.match(value) and not (value[0] == "/" and len(value) >= 32 and not for_password):
        return False
    quoted = match.string[match.end("word") : match.end("word") + 1] in ('"', "'")
    sign = match.string[match.end("word") : match.start("s")]
    bare = match["word"].lower() in ("pass", "pw", "mdp", "clave") and not (
        quoted
        or before[-1:].isalpha()
        or before.endswith(("_", "-", ".", "@", "/"))
        or (before.endswith((" -passin ", " -passout ", " -pass ")) or sign == "=")
    )
    if for_password:
        # `PASS: TestParse2/case_1` is a test, not a password.
        return (is_password(value) or is_made_up(value)) and not (
            bare and is_small_or_a_test(match["word"], value)
        )
    value = value.removeprefix("base64:")
    digits = sum(c.isdigit() for c in value)
    if UUID.fullmatch(value):
        return True
    if match["word"] == "SECRET" and not rest and before.endswith("_"):
        made_up = is_made_up(value) or is_password(value)
        return made_up and len(re.findall("[-_.]", value)) < 3  # JWT_SECRET=
    if digits == len(value) or is_code(value):
        return False
    if len(value) >= 8 and digits and SIGN_BETWEEN.search(value) and classes(value) >= 3:
        return True
    if WORDS.fullmatch(value) and not is_random(value):
        return False
    return len(value) >= 16 and entropy(value) >= 3.2 and (digits >= 2 or is_random(value))


_MADE_UP = late_pattern(r"(?=[!-~]{8,})(?=\D{0,30}\d\D{0,30}\d)[!-~]+\Z")


_LOGGED_IN = late_pattern(r"sess|sid|auth|token|jwt|login|remember|csrf|xsrf|identity|aspnet", re.I)


def _headers(text: str, lower: str, where: Places) -> Iterator[Span]:
    """Authorization headers, cookies, and passwords in URLs."""
    for word in HEADER_WORDS:
        for at in where.get(word, ()):
            match = HEADER.match(text, at)
            if match and is_header_value(word, match["s"]):
                yield *match.span("s"), "authorization-header"
    for at in where.get("auth", ()):
        match = AUTHORIZATION.match(text, at)
        if match and is_header_value((match["scheme"] or "").lower(), match["s"]):
            yield *match.span("s"), "authorization-header"
        match = GIVEN_PAIR.match(text, at)
        pair = ENCODED_PAIR.match(text, at) if text[at - 1 : at] in ("_", '"') else None
        if match and is_password(match["s"]):
            yield *match.span("s"), "password"
        if pair and is_header_value("basic", pair["s"]):
            yield *pair.span("s"), "password"
    done = 0
    for at in where.get("cookie", ()):
        if at >= done and (match := COOKIES.match(text, at)):
            done = match.end()
            yield from _cookies(match)
    for at in where.get("://", ()):
        match = IN_URL.match(text, at)
        if match and _is_url_password(match):
            yield *match.span("s"), "password-in-url"


def _cookies(jar: re.Match[str]) -> Iterator[Span]:
    for match in COOKIE.finditer(jar["jar"]):
        value = match["s"]
        if is_sample(value) or REFERENCE.match(value) or is_path(value) or value.startswith("GA"):
            continue
        long = 12 if _LOGGED_IN.search(match["name"]) else 24
        random = is_random(value) or (not WORDS.fullmatch(value) and entropy(value) >= 3.0)
        if len(value) >= long and any(c.isdigit() for c in value) and random:
            start = jar.start("jar")
            yield start + match.start("s"), start + match.end("s"), "cookie"


def _is_url_password(match: re.Match[str]) -> bool:
    named = match["user"].startswith(("$", "{", "%")) or "example" in match["host"].lower()
    value = match["s"]
    strange = not is_weak(value) or is_made_up(value) or (len(value) >= 20 and is_random(value))
    return not named and strange


def _commands(text: str, lower: str, where: Places) -> Iterator[Span]:
    """Passwords on the command lines of programs that take them there."""
    for option, programs, pattern in COMMAND_OPTIONS if not _OPTIONS.isdisjoint(where) else ():
        for at in places(text, option) if option.lower() in where else ():
            match = re.compile(pattern).match(text, at)
            line = text[max(0, at - 260) : at].rpartition("\n")[2]
            if match and _is_given(match["s"]) and re.search(programs, line):
                yield *match.span("s"), "password"
    for word in ("-u", "-U", "--user", "--proxy-u") if "curl" in where else ():
        for at in places(text, word):
            match = CURL_USER.match(text, at)
            if match and "curl" in lower[max(0, at - 300) : at] and _is_given(match["s"]):
                yield *match.span("s"), "password"
    for word in where.keys() & COMMANDS:
        match_here = re.compile(COMMANDS[word]).match
        yield from _given(match_here(text, at) for at in where[word])


def _given(matches: Iterable[re.Match[str] | None]) -> Iterator[Span]:
    """The passwords in what a pattern found."""
    for match in matches:
        if match and _is_given(match["s"]):
            yield *match.span("s"), "password"


def _is_given(value: str) -> bool:
    """Whether an argument is a password; without a letter it is a port, or two."""
    strange = not is_weak(value) or is_made_up(value)
    return bool(LETTER.search(value)) and strange and not is_path(value)


def _records(text: str, lower: str, where: Places) -> Iterator[Span]:
    """What is piped into a prompt for a password, pairs of a name and a password, ~/.pgpass."""
    given = [word for word in PIPES if word in where]
    read = given and not where.keys().isdisjoint(_READ_BY)
    if read and any(word in lower for word in READERS):
        for word in given:
            yield from _given(PIPED.match(text, at) for at in places(text, word))
        if "<<<" in given:
            yield from _given(FED.match(text, at) for w in READERS for at in places(text, w))
    for word in _LOGINS:
        for at in where.get(word, ()):
            match = PAIR.match(text, at)
            shown = match and (word == "cred" or not WORDS.fullmatch(match["s"]))
            if match and shown and is_password(match["s"]):
                yield *match.span("s"), "password"
    if ":5432:" in where or ":*:" in where:
        yield from _given(PGPASS.finditer(text))


_ACCOUNTS = ("admin", "root")
_READ_BY = ("sudo", "pass", "kinit", "cryptsetup", "secret", "token", "key")
_LOGINS = ("cred", "log in", "login")
# Each pattern above begins at such a word, in small letters, at such a sign, or at an option.
_OTHER_WORDS = (
    *_ACCOUNTS, *HEADER_WORDS, "auth", "cookie", "curl", "sudo", "kinit", *_LOGINS, *COMMANDS,
    *KEY_ENDS, *KEYS, *_PASSWORDS, *BEGINNINGS, *ALSO_TOLD, *CUES, *KEY_CUES,
)  # fmt: skip
_ALL_WORDS = tuple(
    dict.fromkeys((*(word for word in sorted(_NAMES) if word.isascii()), *_OTHER_WORDS))
)
_SIGNS = ("://", ":5432:", ":*:")
_OPTIONS = frozenset(option.lower() for option, *_ in COMMAND_OPTIONS)
LITERALS = (*_ALL_WORDS, *_SIGNS, *sorted(_OPTIONS))
"""Where none of these stands, nor a foreign letter, there is nothing to find."""
PIPES = ("echo ", "printf ", "yes ", "<<<")
"""Beside one of those these may tell."""
TELLS_AS = {
    **dict.fromkeys(
        ("pin", "otp"),
        late_pattern(
            rb"(?:(?<![a-z])|(?<=\\[bfnrt])|(?<=\\u00[01][a-f]))\w{3}(?:(?![a-z0-9_])|code|kod)",
            re.I,
        ),
    ),
    **dict.fromkeys(_ACCOUNTS, late_pattern(rb"\w{4,5}(?: |\\t){0,2}[/:]")),
    **dict.fromkeys(
        _OPTIONS, late_pattern("|".join(option for option, *_ in COMMAND_OPTIONS).encode())
    ),
}
"""How some of them stand in JSON, where there is something to find."""
