"""A skill cut into phrases, and texts folded into words that can be compared.

A phrase is what a skill says in one sentence, item or line of code. Both sides of a comparison are
folded the same way, so it does not matter that the folding is crude.
"""

import codecs
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources import files as resources

import msgspec

from tacit.changes.scan.disguise import fold, views
from tacit.skills import frontmatter
from tacit.skills.search_index import STEMMED_WORDS

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]{0,200}\x07")
_MIXED = re.compile(r"(?=[a-z0-9@$]*[a-z])(?=[a-z0-9@$]*[013457@$])[a-z0-9@$]{2,24}")
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


def stems(text: str) -> list[str]:
    """The words of folded `text` that tell something, cut to their stems, in order."""
    return [stem for stem in STEMMED_WORDS.analyze(_PARTS.sub(" ", text)) if stem not in _STOP]


_PARTS = re.compile(r"[_\-/.:=@]+")


def weight(phrase: Iterable[str]) -> float:
    """How much a set of stems tells: what stands in every other skill tells little."""
    often, some = _common()
    return sum(0.25 if stem in often else 0.5 if stem in some else 1.0 for stem in phrase)


@cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    """The stems of `common.txt`: the very common, then the common."""
    text = files(__package__).joinpath("common.txt").read_text("utf-8")
    _, often, some = re.split(r"^#.*$", text, flags=re.M)
    return frozenset(often.split()), frozenset(some.split())


@lru_cache(maxsize=4096)
def distinct_stems(text: str) -> tuple[str, ...]:
    """The distinct telling stems of a text that was not folded yet, in order."""
    return tuple(dict.fromkeys(stems(folded_text(text))))


_FENCE = re.compile(r"^[ \t>]*(```|~~~)")
_END = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`'\"(*_0-9-])")
_MARK = re.compile(r"^[\s>]*(?:[-*+]|\d{1,2}[.)])?\s*(?:\[[ x]\]\s*)?")
_SPAN = re.compile(r"`([^`\n]{2,300})`")
# A command begins with a program or a variable; `panic: …` and `Seq Scan` are things printed.
_PROGRAM = re.compile(r"(?:[a-z0-9_$./~@+-][\w./~@+-]*|[A-Z_]+=\S*)\s")
# What is told of an output is told, not ordered: "it stops with `KeyError`".
_TOLD = re.compile(
    r"\b(?:fail\w*|stop\w*|error\w*|sa(?:y|id|ys|ying)|print\w*|report\w*|show\w*|complain\w*"
    r"|warn\w*|end\w*|raise\w*|answer\w*|see|mean\w*|with|over|about|called|named|otherwise|when)"
    r"\b[^`\"'.]{0,40}$",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:always|never|must|shall|should|ought|only|do not|don'?t|needs? to|has to|have to|be sure"
    r"|make sure|required?|every|each|all|without|instead|exempt|safe to|allowed|may|can be|skip"
    r"|ignore|disable[sd]?|turn(?:ed)? off|switch(?:ed)? off|not needed|no need|needless|whenever"
    r"|before|after|first)\b",
    re.IGNORECASE,
)
# The first word of each clause: "When it hangs, delete the lock".
_CLAUSE = re.compile(r"(?:^|[,:;(]|\band\b|\bthen\b)[\W_]*([A-Za-z]+)")


class Phrase(msgspec.Struct, frozen=True):
    """One thing that a skill says."""

    file: str
    line: int
    text: str
    code: bool = False
    """A line of code, rather than prose."""

    @property
    def prose(self) -> str:
        """Without what it only tells of an output."""
        if self.code:
            return self.text
        return _SPAN.sub(lambda m: "" if _TOLD.search(self.text[: m.start()]) else m[0], self.text)

    def without(self, spans: Collection[str]) -> "Phrase":
        """The same without these pieces of code."""
        text = _SPAN.sub(lambda m: "" if m[1] in spans else m[0], self.text)
        return msgspec.structs.replace(self, text=text)

    @property
    def commands(self) -> tuple[str, ...]:
        """The code in it that a reader would run."""
        if self.code:
            return (self.text,) if _PROGRAM.match(self.text) else ()
        spans = (m for m in _SPAN.finditer(self.text) if not _TOLD.search(self.text[: m.start()]))
        return tuple(m[1] for m in spans if _PROGRAM.match(m[1]))

    @property
    def orders(self) -> bool:
        """Whether it tells its reader to do, leave or permit something."""
        if self.code or _ORDERS.search(self.prose):
            return True
        return any(word.casefold() in _verbs() for word in _CLAUSE.findall(self.prose))


@cache
def _verbs() -> frozenset[str]:
    """The words of `verbs.txt`: most of what begins with a bare verb is an order."""
    return frozenset(resources(__package__).joinpath("verbs.txt").read_text("utf-8").split())


def phrases(files: Mapping[str, bytes]) -> Iterator[Phrase]:
    """What a skill with these files says, in order."""
    for path in sorted(files):
        text = files[path].decode("utf-8", "replace").replace("\r\n", "\n")
        if path == "SKILL.md":
            parts = frontmatter.split(text)
            if parts.head:
                values, _ = frontmatter.parse(parts.head, parts.head_line)
                yield from _prose(path, parts.head_line, str(values.get("description", "")))
            yield from _markdown(path, parts.body, parts.body_line)
        elif path.endswith((".md", ".txt", ".rst")):
            yield from _markdown(path, text, 1)
        else:
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield Phrase(path, number, line.strip(), True)


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
            yield from _prose(path, number, line.strip("#| \t"))
        else:
            if re.match(r"\s*(?:[-*+]|\d{1,2}[.)])\s", line):
                yield from flush()
            if not pending:
                begun = number
            pending.append(_MARK.sub("", line).strip())
    yield from flush()


def _prose(path: str, line: int, text: str) -> Iterator[Phrase]:
    for sentence in _END.split(text):
        if sentence.strip():
            yield Phrase(path, line, sentence.strip())
