"""How text becomes the words that search compares; the same for skills and for queries.

Words are lower-cased runs of letters and digits, so `snake_case`, `kebab-case` and `dotted.names`
fall apart by themselves. Parts of camelCase are added beside the whole. Chinese, Japanese and
Korean are written without spaces: their runs become pairs of characters.
"""

import re
from collections import Counter
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_CAMEL = re.compile(r"\b(?=[A-Za-z0-9]*[a-z][A-Z])[A-Za-z0-9]{4,40}\b")
_CAMEL_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]{2,}|[A-Z]{2,}|[0-9]+")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.S | re.M)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)", re.M)
# Words that say nothing about what a skill is for.
_STOP = (
    "a an and are as at be but by can for from has have how i if in into is it its may more no not "
    "of on or s so such t than that the their them then there these this to use used user users "
    "using was we what when where which will with you your skill skills"
)
_LONGEST = 60


def _analyzer(stem: bool) -> TextAnalyzer:
    chain = TextAnalyzerBuilder(Tokenizer.simple())
    chain = chain.filter(Filter.remove_long(_LONGEST)).filter(Filter.lowercase())
    return (chain.filter(Filter.stemmer("english")) if stem else chain).build()


EXACT = _analyzer(stem=False)
"""Words as they are."""
STEMMED = _analyzer(stem=True)
"""English words cut to their stems."""


def speakable(text: str) -> str:
    """`text` without what stands for bytes that are not UTF-8, as in the names of some files."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def fold(text: str, *, singles: bool = False) -> str:
    """`text` with its CJK runs broken into pairs; with `singles`, into characters as well."""
    if text.isascii():
        return text
    return _CJK_RUN.sub(_pairs_and_singles if singles else _pairs, text)


def with_parts(text: str) -> str:
    """`text`, and after it the parts of its camelCase words."""
    parts = [" ".join(_CAMEL_PART.findall(word)) for word in _CAMEL.findall(text)]
    return f"{text} {' '.join(parts)}" if parts else text


def headings(body: str) -> str:
    """The Markdown headings of `body`, a line each; what looks like one in code does not count."""
    if "#" not in body:
        return ""
    if "```" in body or "~~~" in body:
        body = _FENCE.sub("", body)
    return "\n".join(_HEADING.findall(body))


def without_stops(counts: "Counter[str]", *, stemmed: bool = False) -> "Counter[str]":
    """`counts` less the words that say nothing; unless there are no others.

    In a large library such words weigh next to nothing anyway. In a small one they would decide.
    """
    stop = _stop_stems() if stemmed else _stop_words()
    kept = Counter({word: count for word, count in counts.items() if word not in stop})
    return kept or counts


def telling_stems(text: str) -> list[str]:
    """The distinct stems of `text` that are not stop words, in order."""
    stop = _stop_stems()
    return [stem for stem in dict.fromkeys(STEMMED.analyze(text)) if stem not in stop]


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_STOP.split())


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(STEMMED.analyze(_STOP))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join([run[i : i + 2] for i in range(len(run) - 1)]) + " "


def _pairs_and_singles(match: re.Match[str]) -> str:
    return _pairs(match) + " ".join(match[0]) + " "
