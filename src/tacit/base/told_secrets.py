"""Secrets that somebody tells in a sentence: passwords as people make them up, PINs and codes,
phrases of words, keys.

Owns the forms of such sentences, in whatever language, and which values nobody would take for the
name of a thing. `passwords.py` knows the words for a password and says where they stand; here is
what may stand a few words away from one. Every quantifier has a bound.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from tacit.base.patterns import late_pattern
from tacit.base.placeholders import (
    REFERENCE,
    UUID,
    classes,
    is_code,
    is_hexadecimal,
    is_made_key,
    is_path,
    is_random,
    is_sample,
    is_weak,
)
from tacit.base.secret_formats import NAMED_KEY

_WORDS = r"(?:[ \t]{1,2}[^\s\d:=<>{}()\[\]|\\/\"`$.;,?!]{1,14},?)"
_MARK = (
    r"(?:,?[ \t]{1,3}(?:[:：=→—–-]{1,2}[ \t]{1,3})?|[ \t\u00a0]?[:：=→][ \t]{0,3}"
    r"|[ \t]?[は는은是为為][ \t]{0,2})[\"'`«「『“„‘(]{0,2}[ \t\u00a0]?"
)
_SAID = (
    r"(?P<s>(?=[^\s\d]{0,60}\d)[!#-&*-+\--:=?-Z\\^_a-z~\u00c0-\u024f]{5,64}+)"
    r"(?=[ \t\u00a0]?[\s\"'`,;)»」』”’]|[^\x00-\u024f]|\Z)"
)
TOLD_AFTER = late_pattern(
    rf"(?P<end>[^\W\d_]{{0,5}}?(?:['’]s)?)(?P<gap>{_WORDS}{{0,6}}?){_MARK}{_SAID}"
)
"""The password is, or will be, so and so."""
TOLD_BEFORE = late_pattern(
    rf"(?<![^\s\"'`«「“„‘(]){_SAID}[ \t\u00a0]?[\"'`»」”’]?[ \t\u00a0]{{1,2}}"
    rf"(?:(?:as|comme|als|como|come|jako|som|как|kao|kot|wie|when|wenn|quand|cuando|for|für|pour"
    rf"|para|per|für|voor|для){_WORDS}{{0,5}}[ \t]{{1,2}}|(?:作为|当作|做|当)[^\s\d]{{0,6}})\Z"
)
"""Take so and so as the password, or where it is asked for."""
_TAKE = late_pattern(
    r"\d\S{0,60}\s{1,2}\S?\s?(?:as|com[eo]|comme|als|jako|som|как|ka?o|wie|for|f[üu]r|pour|p[ae]r|voor|для|作|当|做|when|wenn|quand|cuan)"
)
_DIGIT = late_pattern(r"\d")
_CONNECTS = late_pattern(
    r"(?i:[ \t]{1,2}(?:the|my|our|is|was|now|to|set|got|reset|auf|ist|war|jetzt|lautet|hei(?:ss|ß)t"
    r"|neue?[srn]?|à|a|es|est|era|ahora|nueva|nouveau|maintenant|é|è|ora|nova|nuova|agora|in|em"
    r"|naar|nu|är|er|on|je|jest|teraz|hai|là|este|olan|είναι|היא|הוא|هي|هو|है|это|теперь|new|one"
    r"|és|e|е|є|је|ir|yra|ialah|adalah|da|being|still|got|changed|такой|wifi|'s|’s|است|คือ"
    r"|should|be|it['’]?s|but|i|am|sure|if|asks|enter|type|use|try|c['’]est|d['’]ordine|veranderd"
    r"|for|the|k|till?|server\w{0,3}|databá?\w{0,5}),?){0,6}"
)
# The password of something, or that somebody has there, is: what such a gap begins and ends with.
_OF = late_pattern(
    r"(?i:[ \t]{1,2}(?:for|of|on|to|in|at|from|i|we|you|they|he|she|vom|von|für|auf|am|im|beim|zum"
    r"|zur|de|del|della|dello|dell\S{0,12}|do|da|das|dos|du|des|d['’]\S{1,12}|sur|pour|para|per|van|voor|op"
    r"|till?|på|för|til|do|od|k|ke|na|pro|za|от|для|к|на|до|в|за|wifi|wi-fi|lui|la|a|az|του|της|για"
    r"|של|ל\S{1,9}|untuk|cho|của|such|as|такой|тут|is|ist|est|es|which|that)(?![\w-])[^\n]{0,60})"
)
_IS_LAST = late_pattern(
    r"(?i:(?<!\w)(?:is|was|being|be|still|now|again|(?:set|changed) to|ist|war|lautet"
    r"|hei(?:ss|ß)t|bleibt|es|era|sigue"
    r"|est|était|c['’]est|reste|é|è|era|fica|és|är|var|er|oli|je|jest|był[oa]?|este|е|є|је"
    r"|yra|ir|olan|là|adalah|ialah|είναι|ήταν|היא|הוא|هي|هو|است|है|это|был|คือ|da))\Z"
)
_FOR = late_pattern(r"(?<!\w)(?:for|für|pour|para|per|voor|для)(?!\w)")
_IS_WITHIN = late_pattern(r"(?i: (?:is|are|was|ist|est|es|sta|está) )")
_ENDS = late_pattern(
    r"\s{0,2}(?:[^\w\s-]|\Z|\n|(?:and|in|on|of|when|to|if|here|there|und|et|y)(?!\w))"
)
_STOPS = ".,:;"
_ODD = late_pattern(r"[!$%^&*?~@+]|\d#[A-Za-z]")
_LETTER = late_pattern(r"[^\W\d_]")
_NUMBERED = late_pattern(
    r"([^\W\d_]{3,24})(?:[_.-]?\d{2,6}[a-z]?|[#&!]\d{1,6}[a-z]{0,2})"
    r"|([A-Z][a-z]{3,20}(?:[_-][A-Z]?[a-z]{3,20}){0,2})[_-]?\d[a-z]?"
)
_LEET = late_pattern(
    r"(?=[^A-Z]{0,40}[A-Z])(?=[^a-z]{0,40}[a-z])[A-Za-z]{1,12}\d[A-Za-z]{1,12}[_-]?\d[A-Za-z0-9_]{0,20}"
    r"|(?:[A-Za-z]{1,6}\d){3,8}[A-Za-z]{0,6}"
)
_BETWEEN = late_pattern(r"([a-z]{4,12})\d{1,4}([a-z]{3,12})")
_NAMES = late_pattern(
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}|@[\w/.-]{1,64}|[\w./@-]{1,64}@[\^~]?[\d.]{1,20}"
    r"|[\w-]{1,20}[+*][\w-]{1,20}|\w{1,2}&\w{1,9}|.{0,30}[%$]\w?"
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
    if not digits or len(value) < 6 or not _LETTER.search(value):
        return False
    if is_sample(value) or REFERENCE.match(value) or is_code(value) or is_path(value):
        return False
    if _NAMES.fullmatch(value) or "=" in value or value.count(".") > 1:
        return False
    bare = value.rstrip("!?*")
    if numbered := _NUMBERED.fullmatch(bare):
        return (numbered[1] or numbered[2]).lower() not in _THINGS
    if between := _BETWEEN.fullmatch(bare):
        return between[1].lower() not in _THINGS and between[2].lower() not in _THINGS
    return not is_weak(value) and bool(_ODD.search(bare) or _LEET.fullmatch(bare))


_ENGLISH = frozenset(
    ("passphrase", "password", "passwd", "passcode", "pwd", *("pw", "wifi key", "shared secret"))
)
_COLON = late_pattern(r"[:：=→—–][ \t\u00a0]?[\"'`«「『“„‘(]{0,2}[ \t]?\Z")
ALSO_TOLD = (
    "pw", "ww", "wifi key", "wi-fi key", "wlan key", "network key", "shared secret", "code wifi",
    "clave del wifi", "clave wifi", "parole",
)  # fmt: skip
"""What only a sentence calls a password, or what is too short a word elsewhere."""


def told_passwords(text: str, names: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Values beside the words for a password, which stand from each place to the other."""
    for start, end in names:
        match = TOLD_AFTER.match(text, end) if _DIGIT.search(text, end, end + 120) else None
        if match and is_made_up(value := match["s"].rstrip(_STOPS)):
            sure = _ODD.search(value.rstrip("!?*")) or (match["gap"] == "" and match["end"] == "")
            gap = match["gap"]
            foreign = text[start:end].lower() not in _ENGLISH
            told = (foreign and _IS_LAST.search(gap)) or (
                _OF.match(gap)
                and (
                    not text[start].isascii()
                    or _IS_LAST.search(gap)
                    or (_COLON.search(text, end, match.start("s")) and not _IS_WITHIN.search(gap))
                )
            )
            if sure or told or _CONNECTS.fullmatch(gap):
                yield match.start("s"), match.start("s") + len(value)
        first = max(0, start - 110)
        match = TOLD_BEFORE.search(text, first, start) if _TAKE.search(text, first, start) else None
        if match and (not _FOR.search(match[0]) or _ENDS.match(text, end)):
            value = match["s"].rstrip(_STOPS)
            if is_made_up(value):
                yield match.start("s"), match.start("s") + len(value)


_IS = (
    r"(?:[ \t]{1,2}(?i:is|are|ist|lautet|est|es|é|è|er|on|je)[ \t]{1,2}"
    r"|[ \t\u00a0]?[:：=→][ \t]{0,2}|[ \t]?[は는은是][ \t]?)[\"'`]?"
)
CODE = late_pattern(
    r"(?i:(?<![a-zа-я])(?:code )?(?:pin|пин|otp)(?P<long>[- ]?(?:code|kod|код))?"
    r"|(?:door|gate|alarm|safe|unlock|lock) code|passcode|暗証番号|验证码|인증번호)"
    rf"(?:{_WORDS}{{0,5}}?{_IS}|(?P<beside>[ \t]))"
    r"(?P<s>\d{4,8}#?)(?![\w.,-]?\d|[.:/-]\w|[A-Za-z_%])"
    r"(?![ \t]{1,2}(?:bit|byte|char|digit|ms|[kMG]?[BVH]))"
)
GROUPS = late_pattern(
    rf"(?i:(?:backup|recovery|2fa|mfa|verification) code)s?{_WORDS}{{0,2}}?{_IS}"
    r"(?P<s>(?=[a-zA-Z-]{0,20}\d)(?=[\d-]{0,20}[a-zA-Z])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,7})(?![\w-])"
)
PHRASE = late_pattern(
    r"(?i:(?:pass|seed |recovery |secret )phrase|mnemonic)"
    rf"{_WORDS}{{0,3}}?{_IS}"
    r"(?P<s>[a-z]{3,12}(?:[ \t][a-z]{3,12}){3,23})(?=[.\"'`]?[ \t]{0,2}(?:\n|\Z)|[\"'`])"
)
_NO_PHRASE = frozenset(
    re.findall(
        r"\w+",
        "the and for not you your this that with when from asked stored used required never "
        "always only must should can will has have are was too very same wrong missing invalid "
        "empty needed given set read kept into what which who how why any all but does did may "
        "might been being because before after until while then than here there please enter "
        "type use using without ",
    )
)
KEY = late_pattern(
    r"(?i:api[- ]?(?:key|token|secret|schlüssel)|(?:clé|clave|chave|chiave)(?: d[aei])? api"
    r"|client secret|(?:access|secret|bot) token|token de acces{1,2}o"
    rf"|密钥|密鑰)(?:[ \t]\([^()\n]{{1,40}}\))?{_WORDS}{{0,5}}?"
    rf"(?:{_IS}|[ \t](?:heißt|lautet)[ \t])(?P<s>[A-Za-z0-9_~.-]{{10,128}}+)(?=[\s\"'`,;)。，]|\Z)"
)
_TURN = late_pattern(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])")


# Who logs in with a name and a password, told side by side.
LOGIN = late_pattern(
    rf"(?i:log ?in|sign ?in|ssh in|melde|zugangsdaten|anmeldedaten|identifiants?|credenci\w{{2,6}}"
    rf"|inloggegevens|inloggen|einloggen|connecte\S{{0,9}}|acced\w{{1,4}}|zaloguj|entrar?"
    rf"|credenziali|dane logowania|basic auth){_WORDS}{{0,6}}?"
    r"[ \t:]{1,3}[\w.@-]{2,30}(?:[ \t](?:and|und|et|y|e|en|och)[ \t]|[ \t]?/[ \t]|:)[\"'`]?"
    rf"{_SAID}"
)

# A name that is only ever logged in with, and the password behind it.
PAIR = late_pattern(
    r"(?<![\w/.@-])(?i:admin|administrator|root|support|backup|operator|guest)[ \t]?/[ \t]"
    rf"[\"'`]?{_SAID}"
)


_OF_WHOM = late_pattern(r"(?i:sim|admin|card|user|account|door|bank|phone|login|unlock|atm)[_-]\Z")


def _is_password_of(value: str) -> bool:
    """`admin / Viewer2` are two roles."""
    return sum(c.isdigit() for c in value) > 1 and is_made_up(value)


def _is_pin(match: re.Match[str]) -> bool:
    """`LED_PIN: 2048` is a part of a device."""
    at = match.start()
    if match.string[at - 1 : at] in ("_", "-") and not _OF_WHOM.search(match.string[:at][-12:]):
        return False
    return (match["beside"] is None or bool(match["long"])) and not is_sample(match["s"])


def _is_phrase(match: re.Match[str]) -> bool:
    """Wallets have phrases of 12 to 24 words, three more each time."""
    words = match["s"].split()
    return _NO_PHRASE.isdisjoint(words) and (
        match[0][:4].lower() == "pass" or len(words) in (12, 15, 18, 21, 24)
    )


# A form of sentence, the words at which it begins, in small letters, and what is no such secret.
_Form = tuple[re.Pattern[str], str, Callable[[re.Match[str]], bool], tuple[str, ...]]
_FORMS: tuple[_Form, ...] = (
    (
        CODE, "password", _is_pin,
        (
            "pin", "otp", "code pin", "passcode", "door code", "gate code", "alarm code",
            "safe code", "lock code",
        ),
    ),
    (CODE, "password", _is_pin, ("пин", "暗証番号", "验证码", "인증번호")),
    (
        GROUPS, "password", lambda _: True,
        ("backup code", "recovery code", "2fa code", "mfa code", "verification code"),
    ),
    (
        PHRASE, "password", _is_phrase,
        ("passphrase", "seed phrase", "recovery phrase", "secret phrase", "mnemonic"),
    ),
    (
        LOGIN, "password", lambda match: is_made_up(match["s"].rstrip(_STOPS)),
        (
            "log in", "login", "sign in", "ssh in", "melde ", "zugangsdaten", "anmeldedaten",
            "inloggegevens", "credenziali", "dane logowania", "identifiant", "credenc",
            "basic auth", "inloggen", "einloggen", "connecte", "accede", "accedi", "zaloguj",
            "entrar ", "entra ",
        ),
    ),
    (
        PAIR, "password", lambda match: _is_password_of(match["s"].rstrip(_STOPS)),
        (
            "admin /", "root /", "support /", "backup /", "administrator /", "operator /",
            "guest /", "admin/ ", "root/ ",
        ),
    ),
    (
        KEY, "assigned-secret", lambda match: _is_key(match["s"].rstrip(_STOPS)),
        (
            "api key", "api-key", "api token", "api secret", "api-sch", "clave api", "clave de api",
            "chave da api", "chave de api", "chave api", "chiave api", "client secret",
            "access token", "secret token", "bot token", "token de acces", "密钥", "密鑰",
            "clé api", "api-schlüssel", "api schlüssel",
        ),
    ),
)  # fmt: skip
BEGINNINGS = tuple(word for form in _FORMS for word in form[3] if word.isascii())
FOREIGN_BEGINNINGS = tuple(word for form in _FORMS for word in form[3] if not word.isascii())
_BEGIN = frozenset((*BEGINNINGS, *FOREIGN_BEGINNINGS))


def told_codes(text: str, where: Mapping[str, list[int]]) -> Iterator[tuple[int, int, str]]:
    """PINs, one-time codes, phrases of words, logins and keys, each with the rule that finds it;
    `where` says where words stand."""
    for pattern, rule, is_secret, begins in _FORMS if not _BEGIN.isdisjoint(where) else ():
        places = [at for word in begins if word in where for at in where[word]]
        for match in (pattern.match(text, at) for at in places):
            if match and is_secret(match):
                start = match.start("s")
                yield start, start + len(match["s"].rstrip(_STOPS)), rule


def _is_key(value: str) -> bool:
    if is_sample(value) or UUID.fullmatch(value) or is_path(value) or is_code(value):
        return False
    return (
        len(value) >= 10 and sum(c.isdigit() for c in value) >= 3 and len(_TURN.findall(value)) >= 4
    )


# Words for a key; what stands behind them is judged more strictly.
KEYS = ("key", "token", "chave", "chiave", "clave", "klucz", "sleutel")
FOREIGN_KEYS = (
    "schlüssel", "clé", "ключ", "токен", "キー", "トークン", "키", "토큰", "密钥", "密鑰", "金鑰",
    "令牌", "anahtarı", "مفتاح", "कुंजी",
)  # fmt: skip
# Somebody hands over a key: its value stands a few words behind the word for one.
HANDED_KEY = late_pattern(
    rf"(?i:{'|'.join((*KEYS, *FOREIGN_KEYS))})s?(?![A-Za-z_])"
    r"(?P<gap>[^\n=;<>{}()\[\]|\\/\"]{0,40}?)(?<![^\s:：→「『“‘`'\"])[\"'`「『“‘]{0,2}"
    r"(?P<s>[A-Za-z0-9_-]{24,128}+)(?=[\s\"'`,;.)」』”]|[^\x00-\x7f]|\Z)"
)
_HANDS = late_pattern(
    r"(?<!\w)(?:here(?:['’]?s| is| are)?|hier|voici|ecco|eis|aqu[ií]|te paso|ti passo|tu masz|use"
    r"|using|usa|utilise|verwende|nimm|my|our|meine?|unsere?|ma|mon|mi|minha|meu|mia|mio|mój)(?!\w)"
    r"|вот|держи|мой|これ|こちら|这是|這是|我的|여기"
)
_KEY_OF = late_pattern(r"(?<![a-z])(?:api|access|bearer|secret)[ -]?\Z|(?<![a-z])api(?![a-z])")
NO_KEY = late_pattern(
    r"publi|públi|öffentl|finger|hash|sha|sum(?!\w)|digest|sign|cache|primary|foreign|host|commit|ssh"
    r"|gpg|object|s3|sort|partition|idempot|site|ids?(?!\w)|name|doc|публич|公開|公开|公钥|공개"
)


def handed_keys(text: str, small: str, found: Iterable[int]) -> Iterator[tuple[int, int, str]]:
    """A key or a token that somebody hands over, or that is called one of an API; `found` is where
    a word for one stands."""
    for match in filter(None, (HANDED_KEY.match(text, at) for at in found)):
        value, at = match["s"], match.start()
        before = small[max(0, at - 30) : at].rpartition("\n")[2]
        about, gap = f"{before}|{match['gap'].lower()}", match["gap"].rstrip()
        if NO_KEY.search(about) or is_sample(value) or value.startswith("AAAA"):
            continue
        if before[-1:].isascii() and before[-1:].isalpha() and not before.endswith("api"):
            continue  # the end of another word
        handed = _HANDS.search(about)
        mixed = classes(value.replace("-", "").replace("_", "")) == 3 and is_random(value, 24)
        given = gap.endswith((":", "：", "→", " is"))
        of_api = _KEY_OF.search(before) or _KEY_OF.search(match["gap"].lower())
        hexadecimal = (handed or of_api) and _HEX.fullmatch(value) and given
        if (mixed and (handed or of_api or given)) or hexadecimal:
            yield *match.span("s"), "assigned-secret"


_HEX = late_pattern("[0-9a-f]{32,128}")


_NAME_BEFORE = late_pattern(r"[A-Za-z0-9_.-]{1,40}\Z")
_NO_NAME = late_pattern(
    "file|image|media|message|page|next|cursor|query|row|storage|event|dedup|lookup|item|trace|user"
)
_SECRET_KEY = late_pattern(r"(?:secret|encrypt\w{0,5})[_.-]?\Z")


def named_keys(text: str, found: Iterable[tuple[str, int]]) -> Iterator[tuple[int, int, str]]:
    """Values of names whose last word, at a place that `found` says, means a key: short ones and
    made-up ones where nothing else is called so."""
    for word, at in found:
        match = NAMED_KEY.match(text, at)
        if match is None or REFERENCE.match(value := match["s"]):
            continue
        before = _NAME_BEFORE.search(text, max(0, at - 40), at)
        name = before[0] if before else ""
        if match["option"] and not name.startswith("-"):
            continue
        joined = name[-1:] in ("_", "-", ".") or (name[-1:].islower() and text[at].isupper())
        name = name.lower()
        if NO_KEY.search(name) or _NO_NAME.search(name):
            continue
        if joined or name in ("api", "auth"):
            secret = word == "secret" or (word == "key" and _SECRET_KEY.search(name))
            sure = secret or word == "token" or name.strip("-_.").endswith("api")
            least = 8 if sure else {"salt": 12, "cookie": 24}.get(word, 16)
            made = (sure or not is_hexadecimal(value)) and is_made_key(value, least)
            made = made or bool(secret and is_made_up(value) and value.count(".") == 0)
        else:  # alone, as in JSON or YAML
            least = 10 if word in ("token", "secret") else 16 if word == "salt" else 999
            alone = not name and text[at - 1 : at] in ("", " ", "\n", "\t", '"', "'", "=")
            made = alone and is_made_key(value, least) and len(_TURN.findall(value)) >= 4
        if made:
            yield *match.span("s"), "assigned-secret"
