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
    ODD,
    REFERENCE,
    UUID,
    classes,
    is_code,
    is_hexadecimal,
    is_jumbled,
    is_made_key,
    is_made_up,
    is_path,
    is_random,
    is_sample,
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

_ENGLISH = frozenset(
    ("passphrase", "password", "passwd", "passcode", "pwd", *("pw", "wifi key", "shared secret"))
)
_COLON = late_pattern(r"[:：=→—–][ \t\u00a0]?[\"'`«「『“„‘(]{0,2}[ \t]?\Z")
ALSO_TOLD = (
    "pw", "ww", "wifi key", "wi-fi key", "wlan key", "network key", "shared secret", "code wifi",
    "clave del wifi", "clave wifi", "parole", "pasword", "passwrod", "passowrd", "passwrd",
    "pssword",
)  # fmt: skip
"""What only a sentence calls a password, or what is too short a word elsewhere."""


def told_passwords(text: str, names: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Values beside the words for a password, which stand from each place to the other."""
    for start, end in names:
        match = TOLD_AFTER.match(text, end) if _DIGIT.search(text, end, end + 120) else None
        if match and is_made_up(value := match["s"].rstrip(_STOPS)):
            sure = ODD.search(value.rstrip("!?*")) or (match["gap"] == "" and match["end"] == "")
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
        match = FIGURES_AFTER.match(text, end)
        if match and not is_sample(match["s"]):
            yield match.span("s")
        first = max(0, start - 110)
        match = FIGURES_BEFORE.search(text, first, start) if not _PART.match(text, end) else None
        if match and not is_sample(match["s"]):
            yield match.span("s")
        match = TOLD_BEFORE.search(text, first, start) if _TAKE.search(text, first, start) else None
        if match and "," in text[match.end("s") : start]:
            continue  # of another thing
        if match and (not _FOR.search(match[0]) or _ENDS.match(text, end)):
            value = match["s"].rstrip(_STOPS)
            if is_made_up(value):
                yield match.start("s"), match.start("s") + len(value)


_IS = (
    r"(?:[ \t]{1,2}(?i:is|are|ist|lautet|est|es|é|è|er|on|je)[ \t]{1,2}"
    r"|[ \t\u00a0]?[:：=→][ \t]{0,2}|[ \t]?[は는은是][ \t]?)[\"'`]?"
)
# Figures alone are a password where it is said outright that they are.
FIGURES_AFTER = late_pattern(
    rf"(?:{_IS}|[ \t]{{1,2}}(?:for|to|of|on|für|von|pour|de|para|для){_WORDS}{{1,4}}?[ \t]{{1,2}}"
    r"(?:is|ist|est|es|é|è)[ \t]{1,2})(?P<s>(?!(?:19|20)\d\d(?!\d))\d{4,12})"
    r"(?=[.,!)\"'`]?(?:\s|\Z))"
    r"(?![ \t]{1,2}(?:bit|byte|char|day|digit|hour|ms|min|of|sec|time|user|year|zeichen))"
)
FIGURES_BEFORE = late_pattern(
    r"(?<![\w.,:#/-])(?P<s>\d{5,12})[ \t]{1,2}(?:is|ist|est|es|é|è)[ \t]{1,2}"
    r"(?:(?:the|my|our|your|das|mein|le|mon|la|mi|a|o|minha|il|mia)[ \t]{1,2})?"
    r"(?:[a-z]{2,14}[ \t]{1,2}){0,2}\Z"
)
_PART = late_pattern(
    r"[ \t-]?(?i:age|count|error|hash|id|iteration|length|limit|policy|reset|ticket)"
)
CODE = late_pattern(
    r"(?i:(?<![a-zа-я])(?:code )?(?:pin|пин|otp)(?P<long>[- ]?(?:code|kod|код))?"
    r"|(?:door|gate|alarm|safe|unlock|lock) code|passcode|暗証番号|验证码|인증번호)"
    rf"(?:{_WORDS}{{0,5}}?{_IS}|(?P<beside>[ \t]))"
    r"(?P<s>\d{4,8}#?)(?![\w.,-]?\d|[.:/-]\w|[A-Za-z_%])"
    r"(?![ \t]{1,2}(?:bit|byte|char|digit|ms|[kMG]?[BVH]))"
)
# A door, an alarm or a message has a code; the code of an error is none.
CODE_OF = late_pattern(
    r"(?P<gap>(?i:2fa)?[^\n\d.;()—]{3,60}?)(?:[ \t]{1,2}|[ \t]?[:：=→—][ \t]?|[是为為は는은])"
    r"[\"'`]?(?P<s>\d{4,8}#?)(?![\w.,-]?\d|[.:/-]\w|[A-Za-z_%])"
    r"(?![ \t]{1,2}(?:bit|byte|char|digit|sec|min|ms|mean|zeichen|[kMG]?[BVH]))"
)
_CODE = late_pattern(
    r"cod(?:e|ice|igo|ul|i)|código|k[oóø]d|kood|код|κωδικ|קוד|رمز|कोड|รหัส|mã|코드|コード|[密号]?[码碼]|pin|keypad"
)
_CODE_KIND = late_pattern(
    r"(?<![a-z])(?:door|gate|alarm|safe|lock|keypad|entr[yée]|verif|one[- ]time|login|sms|2fa|mfa"
    r"|access|security|confirm|porte|portail|digicode|puerta|portão|porta|porton|cancello|allarm|toegang"
    r"|(?:voor)?deur|poort|(?:haus)?tür|zugang|tor(?![a-z])|einmal|bestätig|drzwi|bram|furtk|domofon"
    r"|wery|dve[rř]|vchod|dörr|port|larm|dør|bekreft|bekræft|ovi|hälyt|vahvist|kapu|ajtó|riasz"
    r"|megerős|uș|poart|kapı|giriş|doğrula|vrata|durų|garaje|garagem|acc?es|vérif|auten|freischalt|inlog|garage)"
    r"|двер|домоф|подъез|сейф|сигнал|подтв|підтв|ворот|калит|одноразов|вход|вхід|שער|דלת|אימות|الباب|بوابة"
    r"|تحقق|门禁|门|验证|驗證|確認|認証|玄関|현관|인증|cửa|xác (?:minh|nhận|thực)|दरवाज|ओटीपी|ประตู"
)
_NO_CODE = late_pattern(
    r"(?<![a-z])(?:err|fehler|feil|fejl|virhe|chyb|błęd|hiba|hata|status|http|exit|zip|post(?:al|leit)"
    r"|source|return|country|area|line|port(?![a-z])|response|year)|ошиб|помил|错误|エラー|오류|почт|индекс"
)
_CODE_ENDS = late_pattern(
    rf"(?:{_IS_LAST.pattern}|(?<!\w)(?:jetzt|nun|maintenant|ahora|agora|ora|nu|nå|nyt|teraz|nyní|acum"
    r"|теперь|сейчас|est le|é o|es el|è il|ist die|with|mit|avec|con|com|to|auf|a|à|på|na|naar"
    r"|till|til))\Z"
)


def _is_code_of(match: re.Match[str]) -> bool:
    """`El código de error es 40312` opens no door."""
    if is_sample(match["s"]):
        return False
    gap = match["gap"].lower()
    about = f"{match.string[max(0, match.start() - 24) : match.start()]}{gap}".lower().rpartition(
        "\n"
    )[2]
    sign = match.string[match.end("gap") : match.start("s")].strip()
    told = sign or _CODE_ENDS.search(gap) or not (match[0].isascii() or _IS_WITHIN.search(gap))
    return bool(
        told and _CODE.search(about) and _CODE_KIND.search(about) and not _NO_CODE.search(about)
    )


# What a service sends.
SENT_CODE = late_pattern(
    r"(?<=(?P<s>\d{6}) )(?<!\d{7} )is your (?:[\w-]{1,20} ){0,4}(?:code|otp|pin|passcode)(?!\w)"
)
YOUR_CODE = late_pattern(
    r" code(?: is|:)[ \t](?P<s>\d{4,8})(?=[.,!)]?(?:\s|\Z))(?![ \t]{1,2}[a-z]{3})"
)


def _is_your_code(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 30) : match.start()].lower().rpartition("\n")[2]
    return "your" in before and not is_sample(match["s"]) and not _NO_CODE.search(before)


GROUPS = late_pattern(
    rf"(?i:(?:backup|recovery|2fa|mfa|verification) code)s?,?{_WORDS}{{0,14}}?{_IS}"
    r"(?P<s>(?=[a-zA-Z-]{0,20}\d|[a-z-]{0,20}[b-df-hj-np-tv-xz]{3})(?=[\d-]{0,20}[a-zA-Z])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,7})(?![\w-])"
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


_WITH = late_pattern(
    r"(?i:(?<!\w)(?:with|as|using|are|is|mit|sind|con|son|avec|sont|com|são|sono|met|zijn|med|z|to)"
    r"(?!\w)|:)"
)


def _is_login(match: re.Match[str]) -> bool:
    """`Login works on Firefox-Nightly-121 and Chrome-Beta-122` tells of no password."""
    value = match["s"].rstrip(_STOPS)
    told = not _MADE_OF_WORDS.fullmatch(value) or _WITH.search(match.string, *match.span())
    return bool(told) and is_made_up(value)


def _is_password_of(value: str) -> bool:
    """`admin / Viewer2` are two roles."""
    return sum(c.isdigit() for c in value) > 1 and is_made_up(value)


def _is_pin(match: re.Match[str]) -> bool:
    """`LED_PIN: 2048` is a part of a device."""
    at = match.start()
    if match.string[at - 1 : at] in ("_", "-") and not _OF_WHOM.search(match.string[:at][-12:]):
        return False
    beside = (
        match["beside"] is None
        or match["long"]
        or (
            match[0][:8].lower() == "passcode"
            or (match[0][:3].lower() == "otp" and len(match["s"]) == 6)
        )
    )
    return bool(beside) and not is_sample(match["s"])


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
        CODE_OF, "password", _is_code_of,
        (
            "codice", "codigo", "koden ", "kode ", "kod ", "kodu", "koodi", "codul", "digicode",
            "code de ", "code d'", "code van ", "code vom ", "code zur ", "code zum ", "keypad",
            "alarm", "2fa code", "verification code", "sms code", "login code", "one time code",
            "one-time code", "security code", "access code", "entry code", "confirmation code",
            "zugangscode", "door code", "gate code", "inlogcode", "freischaltcode", "garage code",
        ),
    ),
    (
        CODE_OF, "password", _is_code_of,
        (
            "código", "kód", "код", "türcode", "dørkod", "κωδικός", "קוד", "رمز", "कोड", "รหัส",
            "mã ", "코드", "コード", "验证码", "密码", "番号", "code für ",
        ),
    ),
    (SENT_CODE, "password", lambda _: True, ("is your ",)),
    (YOUR_CODE, "password", _is_your_code, (" code: ", " code is ")),
    (
        GROUPS, "password", lambda _: True,
        ("backup code", "recovery code", "2fa code", "mfa code", "verification code"),
    ),
    (
        PHRASE, "password", _is_phrase,
        ("passphrase", "seed phrase", "recovery phrase", "secret phrase", "mnemonic"),
    ),
    (
        LOGIN, "password", _is_login,
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
    r"(?P<gap>[^\n=;<>{}()\[\]|\\/\"]{0,60}?)(?<![^\s:：→「『“‘`'\"])[\"'`「『“‘]{0,2}"
    r"(?P<s>[A-Za-z0-9_-]{24,128}+)(?=[\s\"'`,;.)」』”]|[^\x00-\x7f]|\Z)"
)
_HANDS = late_pattern(
    r"(?<!\w)(?:here(?:['’]?s| is| are)?|hier|voici|ecco|eis|aqu[ií]|te paso|ti passo|tu masz|use"
    r"|using|usa|utilise|verwende|nimm|my|our|meine?|unsere?|ma|mon|mi|minha|meu|mia|mio|mój)(?!\w)"
    r"|вот|держи|мой|これ|こちら|这是|這是|我的|여기"
)
_KEY_OF = late_pattern(r"(?<![a-z])(?:api|access|bearer|secret)[ -]?\Z|(?<![a-z])api(?![a-z])")
NO_KEY = late_pattern(
    r"publi|públi|öffentl|finger|hash|sha(?!r)|sum(?!\w)|digest|sign|cache|primary|foreign|host|commit|ssh"
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


# In a line of prose with such a word, or with one for a password or a key, a value that nobody
# would call a thing is a secret, wherever it stands.
CUES = (
    "log in", "login", "sign in", "unlock", "crypt", "authenticat", "credential", "sudo", "get in ",
    "zugang", "anmeld", "entsperr", "connecte", "connexion", "accede", "entra ", "zaloguj",
    "passcode", "identifiant", "credenzial", "credencia", "inlog", "wifi",
    "wi-fi", "wlan", "vpn",
)  # fmt: skip
KEY_CUES = (
    "revoke", "rotate", "leak", "authorization", "unauthorized", "401", "secret", "admin", "jeton",
    "bearer ",
)  # fmt: skip
_VALUE = late_pattern(
    r"(?<![^\s\"'`«「『“„‘(（：:,\u0250-\uffff])(?=[^\s\d]{0,40}\d)"
    r"(?P<s>[!#-&*-+\--:=?-Z\\^_a-z~]{9,128}+)"
    r"(?=[ \t\u00a0]?[\s\"'`,;)»」』”’]|[^\x00-\u024f]|\Z)"
)
_NEXT_LINE = late_pattern(
    r"\n{1,2}[ \t]{0,8}(?P<s>(?=[^\s\d]{0,40}\d)"
    r"[!#-&*-+\--:=?-Z\\^_a-z~]{9,64}+)[ \t]{0,8}(?:\n|\Z)"
)
_PLAIN_WORD = late_pattern(
    r"(?<![^\s(\"'“«])[^\W\d_]{1,24}(?:['’-][^\W\d_]{1,12})?(?=[\s,.:;!?)\"'”»]|\Z)"
)
_NO_SPACES = late_pattern("[\u0e00-\u0eff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_NO_PROSE = late_pattern(
    r"[{}<>|\\]|\w\(|\w=|=[ \t]?[\"'(]|\"[ \t]?:|\$\w|&&|%[sdcvf](?!\w)"
    r"|\A[ \t]{0,20}(?://|[#$+@]|- \[)"
)
_find_program = re.compile(r"[{}<|(](?<!\W\()(?<!\A\()").search
"""Of what no line of prose has, that which stands in no value either."""
_ODD_SIGN = late_pattern(r"[!$^&*?~]|\d#[A-Za-z]|[a-z]#\d{1,4}[A-Za-z]{2}")
_PREFIXED = late_pattern(r"[a-z]{2,12}[_-]")
_KIND_OF = late_pattern(
    r"[^A-Za-z0-9]|0x|\d{1,5}-|\d{1,6}[A-Za-z]{0,4}@|\w{1,20}\?\w{1,20}=|.{0,60}%[0-9A-F]{2}"
    r"|.{0,60}(?:\*\*|\.[!?])|[A-Za-z_.-]{1,40}=|.{1,60}(?:-[a-z]{3,9}|@[\w-]{1,40}\.\S{1,60})\Z"
)
_MADE_OF_WORDS = late_pattern(
    r"[A-Z][a-z]{2,20}(?:[_-][A-Za-z][a-z]{2,20}){1,3}[_-]\d{2,4}|[A-Z][a-z]{2,20}\d{2,4}[!#*?]"
)
_OTHER_THING = late_pattern(
    r"(?i:(?<![a-z])(?:publi|públi|öffentl|finger|hash|sha(?![a-z])|digest|signature|cache|primary"
    r"|foreign|host|commit(?!t)|ssh|gpg|object|s3|idempot|site|ids?(?!\w)|name|публич|公開|公开|公钥"
    r"|공개|request|trace|session|version|branch|build|revision|tree|etag|cursor|channel|address"
    r"|video|image|tx|block|deploy|container|volume|nonce|blob|message|workflow|node"
    r"|credential(?!s)|credentials \Z|(?:file|drive|doc|sheet)[ \t]\Z|user ?name)|sum(?!\w))"
)
_SENTENCE_END = late_pattern(r"[.?!;—](?:\s|\Z)|[?!]")
_BESIDE_KEY = late_pattern(
    r"(?i:(?:token|jeton|токен|secret|api[ -]?key|api-schlüssel)"
    r"(?:[ \t](?:is|was|ist|est|es|é|è|to))?[ \t:(\"'`]{1,4}|(?:token|secret|jeton|токен)(?![a-z_])"
    r"[^\n.;?!]{0,40}(?:[ \t](?:is|ist|est|es|é|è)|:)[ \t]"
    r"|(?<!\w)(?:give it|send(?:ing)?|paste|put|enter|pass(?:ing)?|usa|gib|colle)[ \t][\"'`]?)\Z"
)
_HANDED_OVER = late_pattern(
    r"(?i:(?:(?<!\w)(?:with|using|use|type|enter|is(?: \w{2,6})?|key|pass|wants|need|mit"
    r"|du|con|com|avec|tape|met|med|z|с|then|usa|nimm|it['’]s)|[:,—(/])[ \t]{0,2}[\"'`«“„]?)\Z"
)
_SMALL_KEY = late_pattern(r"(?=[a-z]{0,20}\d)(?=\d{0,20}[a-z])[a-z0-9]{24,128}")


def cued_secrets(text: str, cues: Mapping[int, int]) -> Iterator[tuple[int, int, str]]:
    """Values that nobody would call a thing in the lines of prose in which a cue stands: one for a
    key (0), a login (1) or a password (2)."""
    done = level = 0
    for at in sorted(cues):
        if at < done and cues[at] <= level:
            continue
        level = cues[at]
        first = at - 200 if at > 200 else 0
        first = text.rfind("\n", first, at) + 1 or first
        done = text.find("\n", at, at + 240)
        done = min(len(text), at + 240) if done < 0 else done
        line = text[first:done]
        tells = not _find_program(line) and _DIGIT.search(line)
        for match in _VALUE.finditer(text, first, done) if tells else ():
            value = match["s"].rstrip(_STOPS)
            start = match.start("s")
            before, after = text[first:start], text[start + len(value.rstrip("!?")) : done]
            weak = at < start and (level == 2 or (level == 1 and bool(_HANDED_OVER.search(before))))
            if (
                _is_no_name(value, weak, before)
                and not is_sample(match["s"])
                and _is_prose(before, after, 3 if level else 4)
            ):
                yield start, start + len(value), "password" if level else "assigned-secret"
        asked = level and done - first < 160 and (text[done - 1] in "?:" or done - at < 12)
        if asked and (alone := _NEXT_LINE.match(text, done)):
            value = alone["s"].rstrip(_STOPS)
            if _is_no_name(value, True, ""):
                yield alone.start("s"), alone.start("s") + len(value), "password"


def _is_no_name(value: str, weak: bool, before: str) -> bool:
    """Whether nobody would call a thing so; `weak` tells whether it may be made of words."""
    bare = value.rstrip("!?")
    if "/" in value or ":" in value or value.count(".") > 1 or _KIND_OF.match(value):
        return False
    if is_sample(value) or REFERENCE.match(value) or is_code(value):
        return False
    if weak and _MADE_OF_WORDS.fullmatch(value):
        return is_made_up(value)
    if bare.replace("-", "").replace("_", "").isalnum():
        if is_jumbled(bare) and (bare.isalnum() or len(bare) >= 20):
            beside = before[-1:] not in ("(", "（") or _BESIDE_KEY.search(before)
            return bool(beside) and not _PREFIXED.match(bare)
        small = _SMALL_KEY.fullmatch(bare) and _BESIDE_KEY.search(before)
        return bool(small) and is_made_key(bare)
    odd = "." not in bare and (is_jumbled(bare) or _ODD_SIGN.search(bare[1:-1]))
    return classes(value) == 4 and bool(odd) and is_made_up(value)


def _is_prose(before: str, after: str, least: int) -> bool:
    """Whether a line, around a value, is a sentence about no other thing, and no program."""
    before = before.removeprefix("> ")
    if _NO_PROSE.search(before) or _NO_PROSE.search(after):
        return False
    plain = len(_PLAIN_WORD.findall(before)) + len(_PLAIN_WORD.findall(after))
    if plain < least and len(_NO_SPACES.findall(before + after)) < 4:
        return False
    near = _SENTENCE_END.split(before[-24:])[-1], _SENTENCE_END.split(after[:32])[0]
    return not any(map(_OTHER_THING.search, near))


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
