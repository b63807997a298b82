"""A skill cut into phrases, and texts folded into words that can be compared.

A phrase is what a skill says in one sentence, item or line of code. Both sides of a comparison are
folded the same way, so it does not matter that the folding is crude.
"""

import codecs
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources import files as resources
from typing import Any

import msgspec

from tacit.changes.scan.disguise import fold, views
from tacit.changes.scan.reach import is_in_forge, is_widely_known
from tacit.skills import frontmatter
from tacit.skills.fact import FACT_FILE
from tacit.skills.search_index import STEMMED_WORDS, as_utf8

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]{0,200}\x07")
_MIXED = re.compile(r"(?=[a-z0-9@$]{0,23}[a-z])(?=[a-z0-9@$]{0,23}[013457@$])[a-z0-9@$]{2,24}")
_LEET = str.maketrans("013457@$", "oieastas")
_CODED = 20_000
"""Characters up to which a text is also read backwards and by rot13."""
# Words that say nothing about what is asked for.
_STOP = frozenset(
    STEMMED_WORDS.analyze(
        "a an and any are as at be been but by can could did do does each every for from had has "
        "have here how i if in into is it its just may more most my no nor of on once one or our "
        "out so some such than that the their them then there these they this those to too up use "
        "used using was we were what when where which while who will with would you your all also "
        "always never must should only after before first then please"
    )
)


def folded_text(text: str) -> str:
    """`text` folded: one alphabet, small, without colours, digits in words as letters."""
    folded = fold(_ANSI.sub("", text))
    return _MIXED.sub(lambda match: match[0].translate(_LEET), folded)


def readings(text: str) -> Iterator[str]:
    """Every way in which a text that a tool printed can be read."""
    text = _ANSI.sub("", text)
    seen: set[str] = set()
    for view in views(text):
        if view.text not in seen:
            seen.add(view.text)
            yield _MIXED.sub(lambda match: match[0].translate(_LEET), view.text)
    if len(text) <= _CODED:
        folded = folded_text(text)
        yield "\n".join(line[::-1] for line in folded.split("\n"))
        yield codecs.encode(fold(text), "rot13")


# Scripts that are written without spaces, and Hangul, whose words are put together.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf"
    "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)

_PARTS = re.compile(r"[_\-/.:=@]+")
_BEGINNING = 5
"""Letters of a word of another alphabet that are compared: its endings vary."""


def words(text: str) -> list[str]:
    """All the words of folded `text` in order, cut to their stems; pairs of letters where a
    script has no spaces."""
    text = _PARTS.sub(" ", text)
    if text.isascii():
        return STEMMED_WORDS.analyze(text)
    found: list[str] = []
    # Folding takes Hangul apart, into letters that stand in every text.
    for number, part in enumerate(_UNSPACED.split(unicodedata.normalize("NFC", text))):
        if number % 2:
            found += [part[at : at + 2] for at in range(max(1, len(part) - 1))]
        else:
            spaced = STEMMED_WORDS.analyze(as_utf8(part))
            found += [word if word.isascii() else word[:_BEGINNING] for word in spaced]
    return found


def telling(found: Iterable[str]) -> list[str]:
    """Those of `words` that tell something."""
    return [word for word in found if word not in _STOP]


def weight(phrase: Iterable[str]) -> float:
    """How much a set of stems tells: what stands in every other skill tells little."""
    return sum(map(_weight, phrase))


@lru_cache(maxsize=65536)
def _weight(stem: str) -> float:
    often, some = _common()
    if len(stem) == 2 and _UNSPACED.match(stem):
        return 0.3
    return 0.25 if stem in often else 0.5 if stem in some else 1.0


@cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    """The stems of `common.txt`: the very common, then the common."""
    text = files(__package__).joinpath("common.txt").read_text("utf-8")
    _, often, some = re.split(r"^#.*$", text, flags=re.M)
    return frozenset(often.split()), frozenset(some.split())


@lru_cache(maxsize=4096)
def distinct_stems(text: str) -> tuple[str, ...]:
    """The distinct telling stems of a text that was not folded yet, in order."""
    return tuple(dict.fromkeys(telling(words(folded_text(text)))))


def content_stems(text: str) -> tuple[str, ...]:
    """As `distinct_stems`, without the little words of the language that it is in."""
    spoken = languages(text, 2) - {"en"}
    little = {stem for name in spoken for stem in _little(name)}
    return tuple(stem for stem in distinct_stems(text) if stem not in little)


@cache
def _little(language: str) -> frozenset[str]:
    return frozenset(words(" ".join(_speech().get(language, ()))))


_FENCE = re.compile(r"^[ \t>]*(```|~~~)")
_END = re.compile(r"(?<=[.!?;])\s+(?=[^\Wa-z]|[`'\"(*_0-9-])|(?<=[。！？；।])\s*")
_MARK = re.compile(r"^[\s>]*(?:(?:[-*+]|\d{1,2}[.)])\s+)?(?:\[[ x]\]\s*)?")
_SPAN = re.compile(r"`([^`\n]{2,300})`")
# A command begins with a program or a variable; `panic: …` and `Seq Scan` are things printed.
_PROGRAM = re.compile(r"(?:[a-z0-9_$./~@+-][\w./~@+-]*|[A-Z_]+=\S*)\s")
# What no sentence has: an option, a pipe, a path to a program.
_SHELL = re.compile(r"(?:^|\s)-{1,2}[A-Za-z]|[|&]{1,2}\s|\$[({A-Z]|^\S*/\S+\s|^[A-Z_]+=\S")
# What is told of an output is told, not ordered: "it stops with `KeyError`", "`E0554` means that".
_TOLD = re.compile(
    r"\b(?:fail\w*|stop\w*|error\w*|sa(?:y|id|ys|ying)|print\w*|report\w*|show\w*|complain\w*"
    r"|warn\w*|raise\w*|answer\w*|mean\w*|sign|message|output|exit\w*|throw\w*|see\w?s|end\w*)"
    r"\b[^`\"'.]{0,40}$",
    re.IGNORECASE,
)
# A message in quotes: what fails with 'connection refused', or anything that reads as an error.
_QUOTE = re.compile(
    r"(\b(?:fail\w*|stop\w*|end\w*|exit\w*|print\w*|report\w*|sa(?:y|id|ys)|complain\w*) "
    r"(?:with |that )?)"
    r"(?:'[^'\n]{4,120}'|\"[^\"\n]{4,120}\"|“[^”\n]{4,120}”)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?<!\w)'[^\n]{3,120}?[^\s']'(?![\w':])|\"[^\"\n]{4,120}\"|“[^”\n]{4,120}”|「[^」\n]{4,120}」"
)
_MESSAGE = re.compile(
    r"\w*(?:error|exception)\b|(?<![./@-])\b(?:fail(?:ed|ure)|fatal|cannot|can'?t|could(?: not|n't)"
    r"|unable|denied|refused|forbidden|unauthori[sz]ed|invalid|unexpected|unrecogni[sz]ed|timed out"
    r"|no such|no matches|not (?:found|permitted|allowed|supported)|is blocked|exceeded"
    r"|aborted|panic)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"^[^`.]{0,12}?(?:\bmeans?\b|\bsays?\b|\bis (?:the|a) (?:sign|error|message)|\bcomes from|:\s)",
    re.IGNORECASE,
)
_ALONE = re.compile(r"\s*(?:$|[.;,:])")
_DIRECTS = re.compile(
    r"\b(?:run|runs|execute|use|call|with|by|via|type|enter|start|try|do|then|first|see|when)\s*$",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:always|never|must|shall|should|ought|only|do not|don'?t|needs? to|has to|have to|be sure"
    r"|make sure|required?|every|each|all|without|instead|exempt|safe to|allowed|may|can be|skip"
    r"|ignore|disable[sd]?|turn(?:ed)? off|switch(?:ed)? off|not needed|no need|needless|whenever"
    r"|before|after|first)\b",
    re.IGNORECASE,
)
# The first word of each clause: "When it hangs, please delete the lock".
_CLAUSE = re.compile(
    r"(?:^|[,:;(]|\band\b|\bthen\b)[\W_]*(?:(?:please|just|simply|kindly|better)\s+)?"
    r"([A-Za-z]+)(?!:\w)\b",
    re.IGNORECASE,
)


_WHEN = re.compile(
    r"(?:(?:use|useful|read|load)\s+(?:this\s+|it\s+|the skill\s+)?(?:when|whenever|if|once|before"
    r"|after|during|on|in)\b|used (?:for|when)\b|how\b|where\b|why\b|usar (?:quando|cuando)\b"
    r"|(?:verwenden|nutzen),? wenn\b|(?:à )?utiliser (?:quand|lorsqu)|usare quando\b|dùng khi\b"
    r"|использовать,? когда\b)[^,;:]*$|[^,，;；:：。]{2,60}时使用。?$",
    re.IGNORECASE,
)


_LOOKS = re.compile(
    r"(?:(?:if|when|where|once)\b[^,;:]{0,120},\s)?"
    r"(?:check|compare|confirm|inspect|look|make sure|measure|read|see|verify|watch)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"[A-Z][a-z]+ing\b[^,;:]*")


class Phrase(msgspec.Struct, frozen=True):
    """One thing that a skill says."""

    file: str
    line: int
    text: str
    code: bool = False
    """A line of code, rather than prose."""
    heading: bool = False

    @property
    def prose(self) -> str:
        """Without what it only quotes from an output, and without addresses."""
        if self.code:
            return self.text
        return _unquoted(_SPAN.sub(lambda m: " " if self._is_quoted(m) else m[0], self.text))

    @property
    def commands(self) -> tuple[str, ...]:
        """The code in it that a reader would run."""
        if self.code:
            return (self.text,) if _PROGRAM.match(self.text) else ()
        spans = (m for m in _SPAN.finditer(self.text) if not self._is_quoted(m))
        return tuple(m[1] for m in spans if self._is_command(m))

    def _is_quoted(self, span: re.Match[str]) -> bool:
        """Whether a piece of code is told of: an error message, what something prints."""
        if _SHELL.search(span[1]):
            return False
        before, after = self.text[: span.start()], self.text[span.end() :]
        told = _TOLD.search(before) or _TELLS.match(after)
        return bool(told or (_is_message(span[1]) and not _DIRECTS.search(before)))

    def _is_command(self, span: re.Match[str]) -> bool:
        if not _PROGRAM.match(span[1]):
            return False
        if _SHELL.search(span[1]) or _DIRECTS.search(self.text[: span.start()]):
            return True
        alone = span.start() == 0 and _ALONE.match(self.text[span.end() :]) is not None
        return alone and not _is_sentence(span[1])

    @property
    def without_code(self) -> str:
        """The words around the code in it."""
        return "" if self.code else _unquoted(_SPAN.sub(" ", self.text))

    @property
    def says_when(self) -> bool:
        """Whether it only says when something is of use, or what it is about."""
        return _WHEN.match(self.text) is not None

    @property
    def says_about(self) -> bool:
        """Whether it only names a subject: "Finding slow queries in Postgres"."""
        return bool(_SUBJECT.fullmatch(self.text)) and not _ORDERS.search(self.text)

    @property
    def names(self) -> bool:
        """Whether it only says what something is for or about, be it what stands below it."""
        introduces = self.heading or self.text.endswith((":", "："))
        return introduces or self.says_when or self.says_about

    @property
    def looks(self) -> bool:
        """Whether all that it asks for is to look at something."""
        return _LOOKS.match(self.text) is not None

    @property
    def orders(self) -> bool:
        """Whether it tells its reader to do, leave or permit something."""
        if self.code or _ORDERS.search(self.prose):
            return True
        return any(word.casefold() in _verbs() for word in _CLAUSE.findall(self.prose))


def _unquoted(text: str) -> str:
    """`text` without the messages that it quotes."""
    text = _QUOTE.sub(r"\1 ", text)
    return _QUOTED.sub(lambda m: " " if _is_message(m[0]) else m[0], text)


def _is_message(quoted: str) -> bool:
    """Whether it reads as what a program says went wrong, and asks for nothing."""
    return bool(_MESSAGE.search(quoted)) and not _ORDERS.search(quoted)


def _is_sentence(text: str) -> bool:
    """Whether it reads as words rather than as a program and what it is given."""
    found = STEMMED_WORDS.analyze(text)
    return len(found) > 2 and sum(word in _STOP for word in found) > 0


@cache
def _verbs() -> frozenset[str]:
    """The words of `verbs.txt`: most of what begins with a bare verb is an order."""
    return frozenset(resources(__package__).joinpath("verbs.txt").read_text("utf-8").split())


def phrases(files: Mapping[str, bytes]) -> Iterator[Phrase]:
    """What a skill with these files says, in order."""
    for path in sorted(files):
        text = files[path].decode("utf-8", "replace").replace("\r\n", "\n")
        if path in ("SKILL.md", FACT_FILE):
            parts = frontmatter.split(text)
            if parts.head:
                values, _ = frontmatter.parse(parts.head, parts.head_line)
                for key, text in _field_texts(values):
                    yield from _prose(path, _line_of(parts.head, key, text, parts.head_line), text)
            yield from _markdown(path, parts.body, parts.body_line)
        elif path.endswith((".md", ".txt", ".rst")):
            yield from _markdown(path, text, 1)
        else:
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield Phrase(path, number, line.strip(), True)


_WORD = r"[^\W\d_]{1,30}(?:['’-][^\W\d_]{1,30}){0,3}"
# Words in a row, however they are parted; of scripts without spaces, letters.
_IN_A_ROW = re.compile(
    rf"(?<![\w./=-]){_WORD}(?:[\s,;\"'`()—–]{{1,3}}{_WORD}(?![\w/=]|\.\w)){{3}}|{_UNSPACED.pattern[1:-2]}{{6}}"
)
_CODE_LINE = re.compile(r"[{}]\s*$|\);\s*$|\w\(\"")
# The columns of a table are cut too.
_CUT = re.compile(r"\n|\t|[ ]{3,}|(?<=[.!?;。！？；।])\s+|(?<=[。！？；।])")


def sentences(text: str) -> Iterator[str]:
    """What reads as somebody's words in an output, however they are disguised there, sentence by
    sentence: not its code, its tables and its names."""
    text = _ANSI.sub("", text)
    for way in (text, *(view.text for view in views(text)[1:])):
        for sentence in _CUT.split(way):
            if _IN_A_ROW.search(sentence) and not _CODE_LINE.search(sentence):
                yield sentence.lstrip(_EDGES).rstrip()


_REPORT = re.compile(
    r"\W{0,3}(?:\d{1,4}[-:/.]\d\d\S*\s|(?=[a-f]{0,11}\d)[0-9a-f]{7,12}\s|[✓✗✔✘×●›]|[EWID]\s+\S+:"
    r"|\S+:\d+(?::\d+)?:)"
)


def is_report(sentence: str) -> bool:
    """Whether it begins as the lines do that programs write: of a log, with a place in a file, of a
    test, a commit with its title."""
    return bool(_REPORT.match(sentence))


_EDGES = " \t#>*-+|/0123456789.):\"'`"


def _field_texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a head with its key, however deep, but for names."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != "name":
                yield from _field_texts(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _field_texts(inner, key)


def _line_of(head: str, key: str, text: str, first: int) -> int:
    """Where a field stands; its text may be written with other quotes than it is read."""
    found = (head.find(mark) for mark in (text.split("\n", maxsplit=1)[0][:40], f"{key}:"))
    at = next((at for at in found if at >= 0), 0)
    return first + head.count("\n", 0, at)


def _markdown(path: str, text: str, first: int) -> Iterator[Phrase]:
    """Paragraphs and items by sentences, code line by line."""
    fenced = False
    pending: list[str] = []
    begun = first

    def flush() -> Iterator[Phrase]:
        if pending:
            yield from _prose(path, begun, " ".join(pending))
            pending.clear()

    for number, line in enumerate(text.split("\n"), first):
        if _FENCE.match(line):
            yield from flush()
            fenced = not fenced
        elif fenced or (line.startswith(("    ", "\t")) and not pending):
            if line.strip():
                yield Phrase(path, number, line.strip(), True)
        elif not line.strip() or line.lstrip().startswith(("#", "|")):
            yield from flush()
            heading = line.lstrip().startswith("#")
            yield from _prose(path, number, line.strip("#| \t"), heading)
        else:
            if re.match(r"\s*(?:[-*+]|\d{1,2}[.)])\s", line):
                yield from flush()
            if not pending:
                begun = number
            pending.append(_MARK.sub("", line).strip())
    yield from flush()


def _prose(path: str, line: int, text: str, heading: bool = False) -> Iterator[Phrase]:
    begun = ""
    for part in _END.split(text):
        begun = f"{begun} {part}".strip()
        if begun.count("`") % 2 == 0 or "`" not in text.partition(begun)[2]:  # not inside code
            yield from [Phrase(path, line, begun, heading=heading)] if begun else []
            begun = ""


_SCRIPTS = re.compile(
    "(?P<cyrillic>[\u0400-\u04ff])|(?P<greek>[\u0370-\u03ff])|(?P<arabic>[\u0600-\u06ff])"
    "|(?P<hebrew>[\u0590-\u05ff])|(?P<indic>[\u0900-\u0dff])|(?P<thai>[\u0e00-\u0eff])"
    "|(?P<kana>[\u3040-\u30ff])|(?P<hangul>[\uac00-\ud7af])|(?P<han>[\u3400-\u9fff])"
)
_LEAST_LETTERS = 6
_LATIN_WORD = re.compile(r"[a-z']{2,}")


@cache
def _speech() -> dict[str, frozenset[str]]:
    table = tomllib.loads(resources(__package__).joinpath("speech.toml").read_text("utf-8"))
    return {language: frozenset(listed.split()) for language, listed in table.items()}


def languages(text: str, least: int = 3) -> set[str]:
    """The languages that `text` may be in, by its scripts and its little words, of which there
    must be so many; several where they are hard to tell apart, none where it says too little."""
    counts = Counter(str(match.lastgroup) for match in _SCRIPTS.finditer(text))
    found = {name for name, n in counts.items() if n >= _LEAST_LETTERS}
    if counts["kana"] and found & {"kana", "han"}:  # Japanese, be it mostly in Chinese letters
        found = found - {"han"} | {"kana"}
    little = _LATIN_WORD.findall(fold(text)) if not found else []
    votes = {name: sum(word in listed for word in little) for name, listed in _speech().items()}
    best = max(votes.values())
    if best >= least:
        found |= {name for name, n in votes.items() if n >= max(1, best - 1)}
        found |= {"en"} if votes["en"] * 2 >= best else set()
    return found


def is_english(text: str) -> bool:
    """Whether `text` may be in English, by its little words."""
    found = languages(text, 2) or languages(text, 1)
    return not found or "en" in found


ATTRIBUTION = re.compile(
    r"\b(?:the |its |their )?(?:user|owner|maintainer)s? (?:does not |did not |has |had )?"
    r"(?:want|ask|wish|said|says|insist|prefer|request|like|agree|decid|expect)\w*\b"
    r"|\bas (?:asked|agreed|requested|wished)\b",
    re.IGNORECASE,
)
"""Words that say whose wish something is; they are about nothing."""
ADDRESS = re.compile(
    r"\bhttps?://[^\s`'\"<>)\]]+|\b[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b"
    r"|\b(?:[a-z0-9-]+\.){1,4}(?:com|net|org|io|dev|app|invalid|example|test|info|biz|co|me|sh(?=/)|ru|cn"
    r"|de|fr|uk|xyz|top|site|online|cloud|ai)\b(?:/[^\s`'\"<>)\]]*)?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?<![\w-])(?:--[A-Za-z]|-[A-Za-z]{5})[\w.-]+(?:=[^\s`'\",;]+)?")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]{3,}=[^\s`'\",;]+")
_SETTING = re.compile(r"\b[a-z][a-z_.]{3,40}\s?=\s?(?:off|on|true|false|none|0|1|yes|no)\b")
_VERSION = re.compile(r"(?:@[\w-]+/)?\b[a-zA-Z][\w.-]+(?:==|@)v?\d[\w.]*|[\w./-]+@latest\b")
_SAMPLES = re.compile(
    r"(?:https?://)?(?:[\w.-]*\bexample\.(?:com|org|net)|localhost|127\.0\.0\.1|0\.0\.0\.0)\b"
)


_PRIVATE = re.compile(r"(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.[\d./]+")


def is_outside(token: str) -> bool:
    """Whether it is an address, and none of a private network."""
    return bool(ADDRESS.search(token)) and not _PRIVATE.fullmatch(token)


def acting_tokens(text: str) -> set[str]:
    """The parts of `text` that act, as they stand there."""
    addresses = {match[0].rstrip(".,;:") for match in ADDRESS.finditer(text)}
    found = {a for a in addresses if not (_SAMPLES.match(a) or is_widely_known(a.lower()))}
    # Whoever is known for a forge is not whoever keeps a repository there.
    found |= {a for a in addresses if is_in_forge(a.lower())}
    # `--help` and `--output` are everybody's; `--ignore-integrity` is not.
    options = {match[0].rstrip(".,;:").partition("=<")[0] for match in _OPTION.finditer(text)}
    found |= {
        option for option in options if "=" in option or weight(distinct_stems(option)) >= 1.0
    }
    for pattern in (_VARIABLE, _SETTING, _VERSION):
        found |= {match[0].rstrip(".,;:") for match in pattern.finditer(text)}
    return found


_LEARN = (
    r"(?:save|store|keep|remember|record|retain|adopt|learn|persist|memori[sz]e|write down|note)"
)
_KEEP = (
    rf"(?:{_LEARN}|saving|stored|kept|learned|learnt|add|create|write|copy|put|draft|make|belongs?"
    r"|permanent|durable|lasting|standard|going forward|from now on|next time|future)"
)
_AGENTS = (
    r"(?:ai|llms?|language models?|agents?|assistants?|copilots?|chatbots?|helpers|automation"
    r"|automated \w+|reviewers?)"
)
_SKILL = r"(?:skills?|skill\.md|skill (?:library|store))"
_ONE_SKILL = r"(?:\w+\s)?skill\b(?! (?:directory|folder))"
_AS = r"\b(?:as|a|an|the|this|your|in|into|for)\b"
# An outright request. Where a tool prints one, a person looks at what is near it. Who says that he
# remembers something asks for nothing, nor does the name of a file, or who lays out folders.
_OUTRIGHT = (
    rf"\b(?<!\bi ){_LEARN}\b[^.\n]{{0,30}}{_AS}[^.\n]{{0,20}}\b{_SKILL}\b",
    rf"\b(?:create|write|add|put|make)\b[^.\n]{{0,12}}\b(?:a|the|this|your|following)\s{_ONE_SKILL}",
    rf"\b{_AGENTS}\b[^.\n]{{0,40}}\b(?:should|must|shall|please|to)\b[^.\n]{{0,30}}\b{_LEARN}\b",
    r"\b(?:agent|x|learned)[-_.](?:agent[-_.])?(?:skill|memory|step|remedy|rule)\b(?![-\w/]*\.\w)",
    r"\bmerke?n? (?:dir|sie sich)|speicher\w{0,4} [^.\n]{0,30}(?:skill|fahigkeit)",
    r"\benregistre\w{0,3} [^.\n]{0,20}competence",
    r"\b(?:guarda|recuerda)\w{0,2} [^.\n]{0,30}habilidad",
    r"сохрани\w{0,3} навык|запомни",
    "(?:保存为|记住)[^。\n]{0,10}技能|スキルとして|기술로 저장",
)
# What such requests are made of; alone it only makes the words around it suspect.
_HINTS = (
    *_OUTRIGHT,
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\b{_SKILL}\b",
    rf"\b{_SKILL}\b[^.\n]{{0,40}}\b{_KEEP}\b",
    rf"\b{_AGENTS}\b[^.\n]{{0,60}}\b(?:should|must|shall|please|{_KEEP})\b",
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\bfor (?:later|future|good|every|all)\b",
    r"\bskill\s*(?::|=>|->|draft|named|'|`)",
    r"\b(?:ki-)?agenten\b|\bagents? ?:|\bcompetence\b|\bhabilidad\b|навык|агент",
    "技能|智能体|スキル|覚え",
)


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # The texts are folded, so letters of other alphabets are folded here too.
    folded = ("".join(c if c.isascii() else fold(c) for c in pattern) for pattern in patterns)
    return re.compile("|".join(f"(?:{pattern})" for pattern in folded))


ASKS_TO_BE_LEARNED, HINTS_AT_LEARNING = _compiled(_OUTRIGHT), _compiled(_HINTS)
"""In folded text: an outright request to learn something, and what such requests are made of."""
