"""What a learned text would have a later agent do: its consequences, by kind.

Words can be varied without end, what an order needs to do harm cannot: it runs something from the
network, installs, takes software from elsewhere, handles keys, gives rights, stays, leaves a check
out, sends something, changes a remote or its history, deletes. Each is found by code, in commands
and in the prose of many languages, from the tables in `consequences.toml`. Whether a session shows
the same is for whoever knows the session (`witness`).
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files as resources
from typing import NamedTuple

from tacit.base.patterns import Literals, late_pattern
from tacit.changes.provenance.deeds import Said
from tacit.changes.provenance.phrases import Phrase, phrases
from tacit.changes.scan.disguise import fold, without_invisible

EFFECT_RULE = "effect"
"""The rule's name for what nothing shows: `effect-install`, …"""


class Consequence(NamedTuple):
    """One thing that a phrase would have its reader do."""

    kind: str
    key: str
    """Which one: a host, a package, an option, the check that is left out."""
    clause: str
    """The words that say it."""

    @property
    def what(self) -> str:
        return _table().kinds[self.kind]


class _Row(NamedTuple):
    kind: str
    notions: tuple[str, ...]
    odd: bool
    near: bool
    unless: str


class _Table(NamedTuple):
    kinds: dict[str, str]
    commands: tuple[tuple[str, re.Pattern[str]], ...]
    notions: dict[str, re.Pattern[str]]
    rows: tuple[_Row, ...]
    begun: dict[str, list[str]]
    """The notions that may be named where such a beginning of a word stands."""
    beginnings: Literals

    def near(self, text: str) -> set[str]:
        """The notions that folded text may name: few of them, and the others need no look."""
        found = self.beginnings.words_in(text)
        return {name for beginning in found for name in self.begun[beginning]}


@cache
def _table() -> _Table:
    raw = tomllib.loads(resources(__package__).joinpath("consequences.toml").read_text("utf-8"))
    commands = tuple(
        (kind, late_pattern(pattern)) for kind, found in raw["command"].items() for pattern in found
    )
    notions: dict[str, re.Pattern[str]] = {}
    begun: dict[str, list[str]] = {}
    for name, words in raw["notion"].items():
        notions[name], beginnings = _notion(words)
        for beginning in beginnings:
            begun.setdefault(beginning, []).append(name)
    rows = tuple(
        _Row(
            row["kind"],
            tuple(row["all"]),
            row.get("odd", False),
            row.get("near", False),
            row.get("unless", ""),
        )
        for row in raw["prose"]
    )
    return _Table(raw["kind"], commands, notions, rows, begun, Literals(begun))


def _notion(listed: str) -> tuple[re.Pattern[str], set[str]]:
    """A list of words as one pattern over folded text, and what each of them begins with."""
    parted, other, beginnings = [], [], set()
    for given in listed.split():
        cut = len(given) > _WHOLE + 1 and given.isascii() and given[0] != "="
        word = given.removesuffix("e") if cut else given  # overwrite, overwriting
        parts = [plain_text(part).replace("_", " ") for part in word.removeprefix("=").split("…")]
        beginnings.add(parts[0].partition(" ")[0])
        plain = r"(?:\s+\S+){0,3}\s+".join(map(re.escape, parts)).replace("\\ ", r"\s+")
        if _PARTED.match(plain):
            parted.append(plain + _ending(word))
        else:
            other.append(plain)
    return late_pattern("|".join([r"\b(?:" + "|".join(parted) + ")", *other])), beginnings


def _ending(word: str) -> str:
    """What may follow a word of a list: anything after a beginning, endings after a short one."""
    if word.startswith("="):
        return r"\b"
    if len(word) > _WHOLE or not word.isascii():
        return r"\w*"
    return r"(?:s|es|ed|d|ing|[bdgmnprt](?:ed|ing)|[aeio]|[ai]d[ao]s?|at[aeio])?\b"


_WHOLE = 4
_PARTED = re.compile("[a-z0-9\u0370-\u058f]")
"""Letters of alphabets whose words begin where they seem to: Latin, Greek, Cyrillic, Armenian."""
_ACCENTS = re.compile("[\u0300-\u036f]+")


def plain_text(text: str) -> str:
    """`text` small, visible and without accents, each letter in its own alphabet."""
    visible = without_invisible(text)
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", visible)).casefold()


_CLAUSE = re.compile(
    r"[;:,](?:\s+|(?=[^\x00-\x7f]))|(?<=[^\x00-\x7f])[;:,]|[，、；：()（）؛]|(?<=말고)\s"
    r"|\s(?:but|because|since|although|so that|so|which|while|until|unless|otherwise|aber|weil"
    r"|damit|mais|pero|mas|perche)\s"
)
_HOST = re.compile(r"\b(?:[a-z0-9-]+\.){1,4}[a-z]{2,12}\b")
_SPAN = re.compile(r"`[^`\n]{0,300}`")
_NAMED = re.compile(r"(?<!\w)--?[a-z][\w-]*|[a-z0-9][\w.-]*[/_](?:[\w./-]*[a-z0-9])?/?")
"""Options, paths and names of code: what they are made of says nothing."""
_NEAR = 24
_ASIDE = re.compile(
    r"\b(?:without|ohne|sans|sin|sem|senza|zonder|utan|bez|без)\s+\w+(?:\s+zu\s+\w+)?"
)
_PASSED_OVER = re.compile(
    r"\b(rather than|instead of|anstatt|statt|au lieu de|plutôt que|en lugar de|en vez de|em vez de"
    r"|invece di|in plaats van|вместо)\b[^,;.]{0,80}"
)
"""What is not to be done, but something else in its place."""
_THIS_TIME = re.compile(
    r"\b(?<!from )(?<!of )(?<!with )(?<!de )(?<!da )(?:this session|this time|in the session"
    r"|diesmal|cette fois|esta vez|questa volta|deze keer|tym razem|bu sefer|kali ini|phien nay"
    r"|lan nay)\b|на этот раз|в этой сессии|цього разу|(?<![从從自])[这這本]次(?![起开開以])"
    r"|今回(?!から|以降|より)"
)
"""What was left out in the session itself is told, not ordered; other than from then on."""
_TRAILER = re.compile(r"co-authored-by", re.IGNORECASE)
_SIGNED = re.compile("sign|署名|签名|簽名|서명|firma|assin|unterschr|podpis|подпис|chu ky")
"""Words for a signature: a check where a program makes it, none where it is a line of a commit."""
_DENIALS = (("weak",), ("open_door",), ("expose", "login"))
"""Rows whose own words deny something."""


def of_phrase(phrase: Phrase) -> Iterator[Consequence]:
    """The consequences of one phrase."""
    yield from of_command(phrase.text) if phrase.code else of_prose(phrase.prose)


def of_command(command: str) -> Iterator[Consequence]:
    """The consequences of running a line of code."""
    folded = fold(command)
    for kind, pattern in _table().commands:
        for match in pattern.finditer(folded):
            key = match.groupdict().get("key") or ""
            if not key:
                host = _HOST.search(folded, match.start())
                key = host[0] if host else match[0].split()[0]
            yield Consequence(kind, key.removeprefix("https://").removeprefix("http://"), command)


def touched(text: str) -> frozenset[str]:
    """What a text is about of the things that consequences are made of."""
    plain = plain_text(_SPAN.sub(" ", text))
    table, near = _table(), _table().near(plain)
    return frozenset(n for n in _THINGS if n in near and table.notions[n].search(plain))


def denies(text: str) -> bool:
    """Whether a sentence says that something is not so, or not to be done."""
    return bool(_table().notions["negation"].search(plain_text(_SPAN.sub(" ", text))))


_THINGS = (
    "off", "guard", "web", "module", "source", "secret", "outside", "repo", "power", "later",
    "force", "line", "destroy", "store", "land", "direct", "main_branch", "program", "send", "weak",
    "bar", "tested", "optional",
)  # fmt: skip


def of_prose(text: str) -> Iterator[Consequence]:
    """The consequences of doing what a sentence says, and of running the code in it."""
    text = _PASSED_OVER.sub(r"\1", text.replace("\1", " "))
    text = _SPAN.sub(
        lambda span: span[0].strip("`") if _TRAILER.match(span[0], 1) else span[0], text
    )
    spans = _SPAN.findall(text)
    for clause in _CLAUSE.split(_SPAN.sub("\1", text)):
        inside = [spans.pop(0).strip("`") for _ in range(clause.count("\1"))]
        plain = _NAMED.sub(" ", plain_text(clause.replace("\1", " ")))
        for kind, key in _clause(plain):
            yield Consequence(kind, key, " ".join([plain, *inside]))
        if not _table().notions["negation"].search(plain):
            yield from of_command(clause.replace("\1", " "))
            for code in inside:
                yield from of_command(code)


def _clause(clause: str) -> Iterator[tuple[str, str]]:
    table = _table()
    near = table.near(clause)
    found: dict[str, list[re.Match[str]]] = {}

    def matches(name: str) -> list[re.Match[str]]:
        if name not in found:
            found[name] = list(table.notions[name].finditer(clause)) if name in near else []
        return found[name]

    for row in table.rows:
        if not near.issuperset(row.notions) or not all(map(matches, row.notions)):
            continue
        named = [matches(name) for name in row.notions]
        if not _are_apart(named) or (row.unless and matches(row.unless)):
            continue
        if row.near:
            pairs = ((a, b) for a in matches(row.notions[0]) for b in matches(row.notions[1]))
            hit = next((b for a, b in pairs if _is_near(a, b)), None)
            if hit is None or matches("off") or len(matches("negation")) == 2:
                continue
            if _THIS_TIME.search(clause):
                continue
            yield row.kind, hit[0][:4]
            continue
        own = [match for matched in named for match in matched]
        negations = sum(not any(_holds(one, it) for one in own) for it in matches("negation"))
        if row.odd and negations % 2:
            continue
        if not row.odd and negations and row.notions not in _DENIALS:
            aside = _ASIDE.sub(" ", clause)  # "and runs it without waiting"
            if any(not table.notions[name].search(aside) for name in row.notions):
                continue
            if table.notions["negation"].search(aside):
                continue
        last = matches(row.notions[-1])[0][0]
        host = _HOST.search(clause)
        yield row.kind, last[:4] if row.kind == "check" or not host else host[0]


def _holds(outer: re.Match[str], inner: re.Match[str]) -> bool:
    return outer.start() <= inner.start() and inner.end() <= outer.end()


def _are_apart(named: Sequence[Sequence[re.Match[str]]], *before: re.Match[str]) -> bool:
    """Whether each of these is named, no two of them by the same single word."""
    if not named:
        return True
    return any(
        _are_apart(named[1:], *before, match)
        for match in named[0]
        if not any(match.span() == other.span() and " " not in other[0] for other in before)
    )


_MEANS_ANOTHER = re.compile(
    r"\s*(?:it|this|that|them|these|those|which)\b|\s\w.*\sby\s"
    r"|.*\b(?:red|failing|failed|broken|flaky|rote[mnrs]?|rouge|rojas?|fallid[ao]s?|rosso|rossi)\s*$"
    r"|.*\b(?:date|e-?mail|page|number|datum|fecha|data|numero)\s(?:of|de|da|del|di|der)\s*$"
)
"""What stands between a denial and a check that stays: "never release with a red test"."""
_PART_OF_A_WORD = re.compile("不[安具足正一明便整満良備]")
_NAMES_ANOTHER = re.compile(
    r"\w*\s(?:accounts?|clusters?|data|databases?|directory|environments?|errors?|failures?|findings?"
    r"|folders?|hosts?|instances?|machines?|nodes?|servers?|users?|warnings?)\b"
)
"""What makes a check's word the name of something else: a login node, a test database."""


def _is_near(denial: re.Match[str], thing: re.Match[str]) -> bool:
    """Whether a denial is about the thing. In Latin letters it stands before it, but for a verb
    ("is not run")."""
    gap = thing.start() - denial.end()
    if gap >= 0 and _MEANS_ANOTHER.match(denial.string[denial.end() : thing.start()]):
        return False
    if _NAMES_ANOTHER.match(denial.string, thing.end()):
        return False
    if _PART_OF_A_WORD.match(denial.string, denial.start()):
        return False
    if _SIGNED.match(thing[0]) and _TRAILER.search(denial.string):
        return False
    if denial[0] == "without" and thing[0].startswith("warning"):
        return False  # a demand, not a check that is left out
    if thing[0].isascii() and " " not in denial[0]:
        return 0 <= gap <= _NEAR
    return -_NEAR - len(thing[0]) - len(denial[0]) <= gap <= _NEAR


def consequences(files: Mapping[str, bytes]) -> list[tuple[Phrase, Consequence]]:
    """All that the files of a skill would have a later agent do, in order."""
    return [(phrase, found) for phrase in phrases(files) for found in of_phrase(phrase)]


def shown_by(done: Iterable[Said]) -> set[tuple[str, str]]:
    """The kinds and keys of what was done or said by the user; notes show nothing."""
    shown: set[tuple[str, str]] = set()
    lines = (
        (line, said.by == "edit")
        for said in done
        if said.by != "note"
        for line in said.text.split("\n")
    )
    for line, edited in dict.fromkeys(lines):
        shown |= {(found.kind, found.key) for found in of_command(line)}
        if not edited:  # the words of a command say what it does: `gh cache delete`
            shown |= {(found.kind, found.key) for found in of_prose(line)}
    return shown
