"""What the user said, as the lines of facts: which of their sentences are quoted, and how.

A fact's line follows from the sentences that stand in it. What was found is `demands.py`'s, what a
draft is made of beside that `drafts.py`'s.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tacit.base.display import counted, one_line, shorten
from tacit.learn.demands import (
    NAMES_NOTHING,
    RefusalFinding,
    RemarksFinding,
    RequestFinding,
    StagesFinding,
    WishFinding,
)
from tacit.learn.refrains import Quote
from tacit.traces.standing_orders import tells_where, worked_command
from tacit.traces.typed_words import (
    FUNCTION_WORDS,
    WIDE,
    WIDE_WORDS,
    content_words,
    sentences,
    subject_words,
    telling_words,
)
from tacit.traces.wishes import is_lasting

HOME = "home"
"""Where somebody works who has no project."""
Spoken = WishFinding | RemarksFinding | RefusalFinding | RequestFinding | StagesFinding
_MOST_QUOTES = 4
_FEW_WORDS = 2
_NAMING = 3
"""Telling words that a sentence needs to give a name."""
_MOST_REMARKS = 20
_SHOWN = 110
"""Characters of a sentence that is quoted beside others."""


def other_quotes(finding: Spoken) -> str:
    """What else was said about it, as a list."""
    told: list[Quote] = []
    if isinstance(finding, WishFinding | RemarksFinding):
        different = list({quote.text.casefold(): quote for quote in finding.quotes}.values())
        told = different[:_MOST_REMARKS]
        if isinstance(finding, WishFinding):
            told = [q for q in different if q.text != finding.quotes[0].text][:_MOST_QUOTES]
    elif isinstance(finding, RequestFinding) and not finding.verb:
        told = [quote for quote in _clearest(finding.quotes) if len(quote.text) > _SHOWN]
    return "\n".join(f"- {_quote(quote, 340)}" for quote in told)


def fact_line(finding: Spoken, where: str) -> tuple[str, str, str]:
    """The name, the line and the reason of a fact."""
    if isinstance(finding, StagesFinding):
        return _stages(finding, where)
    quotes = finding.quotes
    match finding:
        case WishFinding():
            told = [*filter(is_lasting, sentences(quotes[0].text)), quotes[0].text]
            plain = [_sentence_name(sentence) for sentence in told]
            name = "-".join(next((w for w in plain if len(w) >= _NAMING), plain[-1]))
            place = f" in {where}" if finding.project and where != HOME else ""
            name = name if "-" in name else f"{where}-{name}-wish"
            says = f"How the user wants it{place}: {_quote(quotes[0], 340)}"
            if tells_where(quotes[0].text):
                if path := _PLACE.search(quotes[0].text):
                    name = f"{where}-{path[1]}"
                says = f"What the user says of {where}: {_quote(quotes[0], 340)}"
            elif worked_command(quotes[0].text):
                says = f"What the user found to work in {where}: {_quote(quotes[0], 340)}"
            return name, says, "the user said how it is to be done"
        case RemarksFinding():
            said = "; ".join(_quote(quote, 130) for quote in quotes[:2])
            says = (
                f"What the user cares about in {where}, as they put it when they saw work: {said}"
            )
            return f"{where}-remarks", says, "the user remarked on how things are made"
        case RefusalFinding(purposes=purposes):
            often = counted(len(finding.sessions), "session")
            named = " or ".join(f"`{purpose}`" for purpose in purposes[:4])
            says = f"Ask before running {named} in {where}: the user refused it in {often}"
            if quotes:
                said = _quote(max(quotes, key=lambda quote: len(quote.text)), 200)
                says = (
                    f"Do not run {named} in {where}: the user refused it in {often}, saying {said}"
                )
            return f"{where}-no-{purposes[0]}", says, f"the user refused {', '.join(purposes)}"
        case RequestFinding(verb="", of=of):
            clear = _clearest(quotes)
            name = "-".join([where, *_in_common(quotes)[:4]])
            said = "; ".join(_quote(quote, _SHOWN) for quote in clear)
            often = f"{len(finding.sessions)} of {of} sessions"
            by = ", ".join(f"`{purpose}`" for purpose in finding.answered_by)
            by = f" (answered by {by})" if by else ""
            says = f"In {where} the user comes back to this, in {often}{by}: {said}"
            return name, says, "the user asked for the same again and again"
        case RequestFinding(verb="see", thing=thing, of=of):
            said = "; ".join(_quote(quote, 100) for quote in _clearest(quotes))
            often = f"{len(finding.sessions)} of {of} sessions"
            look = "" if _WHOLE_PATH.match(thing) else "; look how it is done there"
            says = f"In {where} the user points to `{thing}`, in {often}{look}: {said}"
            thing = "/".join(thing.rstrip("/").split("/")[-2:])
            return f"{where}-see-{thing}", says, f"the user pointed to {thing}"
        case RequestFinding(verb=verb, thing=thing, of=of):
            asked = f"asked to {verb} {thing}" if verb != "forgotten" else f"had to ask for {thing}"
            reason = f"the user {asked.strip()} in {len(finding.sessions)} of {of}"
            return f"{where}-{verb}-{thing}".strip("-"), _request_line(finding, where), reason


# What is said around a wish, and does not say what it is about.
_AROUND = FUNCTION_WORDS | frozenset(
    re.findall(
        r"\S+",
        "remember memory save note mind forward future reference longer told tell said again"
        " currently everything anything something due",
    )
)
_SHORTEST, _MOST_NAMING = 3, 4
_NEGATED = re.compile(
    r"(?P<no>\b(?:don['’]?t|do\s+not|no)\s+need\b)|(?P<itself>\bnever\b|\bno(?:\s+longer)?\b"
    r"|\b(?:avoid|stop|without|без|ohne|sans|sem|senza)\b)|\b(?:don['’]?t|(?:do|must|should)\s+not)\b|(?P<bare>\bnot\b)",
    re.IGNORECASE,
)


def _sentence_name(sentence: str) -> list[str]:
    """The words that name a wish: of what stands behind a colon, if it tells enough."""
    named = _wish_name(sentence.rpartition(": ")[2])
    return named if len(named) > 1 else _wish_name(sentence)


def _wish_name(text: str) -> list[str]:
    """The words of a wish that name it, with what negates them."""
    words = _naming_words(text)[:_MOST_NAMING]
    if WIDE.search(text):
        return words
    named, at = list[str](), 0
    for word in words:
        found = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE).search(text, at)
        for negated in _NEGATED.finditer(text[at : found.start()] if found else ""):
            said = "no" if negated["no"] else negated["itself"] or (named and negated["bare"])
            named += (said or "do not").casefold().split()
        named.append(word)
        at = found.end() if found else at
    return named


def _naming_words(text: str) -> list[str]:
    """The words of `text` that a name can be made of, in order."""
    if not WIDE.search(text):
        words = re.findall(r"(?<!\S)[^\W\d_]+(?!\S)", " ".join(telling_words(text)))
        return [w for w in words if len(w) >= _SHORTEST and w not in _AROUND] or words
    told = dict.fromkeys(word[0][:12] for word in WIDE_WORDS.finditer(text))
    return [word for word in told if not NAMES_NOTHING.search(word)]


def _in_common(quotes: Sequence[Quote]) -> list[str]:
    """The words for a name that half of the quotes have in common, as the clearest has them."""
    often = Counter(word for quote in quotes for word in {*subject_words(_plain(quote.text))})
    words = _naming_words(_plain(_clearest(quotes)[0].text))
    return [
        word for word in dict.fromkeys(words)
        if any(2 * often[stem] >= len(quotes) for stem in subject_words(word))
    ] or words  # fmt: skip


def _plain(text: str) -> str:
    return _ADDRESS.sub(" ", text).replace("-", " ")


_LOOKED = {"discussion": "discussion", "issue": "issue", "PR": "pull request", "CI": "run of CI"}


def _stages(finding: StagesFinding, where: str) -> tuple[str, str, str]:
    """One sentence a step, in order; two steps that are asked for in one sentence are one."""
    steps: dict[str, int] = {}
    looked = [_LOOKED[thing] for (verb, thing), _ in finding.steps if verb == "look"]
    usual = {key: _usual(quotes)[0].text for key, quotes in finding.steps}
    for (verb, _), quotes in finding.steps:
        typed = {quote.text for quote in quotes}
        fuller = [text for text in usual.values() if text in typed]
        said = _quote(Quote(max(fuller, key=len), "", 0), 80)
        shown = len({quote.session for quote in quotes})
        if verb == "look":
            said = f"look into the {' or '.join(looked)} that is linked"
            shown += steps.get(said, 0)
        steps[said] = max(steps.get(said, 0), shown)
    told = "; ".join(f"{n}. {said} ({often})" for n, (said, often) in enumerate(steps.items(), 1))
    often = f"{len(finding.sessions)} of {finding.of} sessions"
    says = f"How work goes in {where}, each step when the user asks for it, in {often}: {told}"
    return f"{where}-steps", says, "the user asked for the same steps in the same order"


ONLY_WHEN_ASKED = {
    "commit": "Commit", "push": "Push", "merge": "Merge", "deploy": "Deploy", "release": "Release",
    "open-pr": "Open a pull request",
}  # fmt: skip
REQUEST_PHRASES = {
    ("update", "docs"): "update the docs with a change", ("run", "tests"): "run the tests",
    ("run", "lint"): "run the linter", ("add", "tests"): "add tests with a change",
    ("write", "tests"): "write tests with a change", ("create", "branch"): "work on a new branch",
    ("review", "changes"): "review your own changes critically once more",
    ("review", "feedback"): "weigh review feedback before acting on it",
    ("check", "feedback"): "weigh review feedback for what is valid in it",
    ("address", "feedback"): "address review feedback",
    ("update", "changelog"): "update the changelog or release notes with a change",
    ("split", "commits"): "split work into commits by subject",
    ("fold", "commits"): "put what mends or follows a commit into that commit (fixup, amend)",
    ("bump", "version"): "bump the version",
    ("add", "screenshot"): "add a screenshot", ("check", "CI"): "look at CI",
    ("add", "todo"): "note what is put off as a todo",
    ("do", "yourself"): "do yourself what you can, rather than telling the user how",
    ("spawn", "agents"): "have agents of their own look into it or check it",
}  # fmt: skip


def _request_line(finding: RequestFinding, where: str) -> str:
    said = "; ".join(_quote(quote, 120) for quote in _usual(finding.quotes))
    often = f"{len(finding.sessions)} of {finding.of} sessions"
    if finding.verb in ONLY_WHEN_ASKED:
        act = ONLY_WHEN_ASKED[finding.verb]
        return (
            f"{act} when the user says so: in {where} they ask for it themselves,"
            f" in {often} ({said})"
        )
    if finding.verb == "plan":
        return (
            f"Show what you mean to change and wait for the user's word, before changing files in"
            f" {where}: in {often} they said so or read the plan first, e.g. {said}"
        )
    if finding.verb == "forgotten":
        return (
            f"In {where}, {finding.thing} work that is done without being asked: in {often} the"
            f" user had to ask after it, e.g. {said}"
        )
    if finding.verb == "language":
        lasting = [quote for quote in finding.quotes if is_lasting(quote.text)][:1]
        said = "; ".join(_quote(q, 120) for q in dict.fromkeys([*lasting, *_usual(finding.quotes)]))
        tongue = f"In {where}, {finding.thing} is the language that the user asks for"
        return f"{tongue}, in {often}: {said}"
    kept = f"keep {finding.thing} true to the work"
    phrase = REQUEST_PHRASES.get((finding.verb, finding.thing), kept)
    return f"In {where}, {phrase}: the user asked for it in {often}, e.g. {said}"


_CLEAR = 90
"""Characters of a sentence that says one thing."""


def _clearest(quotes: Iterable[Quote], most: int = 3) -> list[Quote]:
    """The quotes that say it best: no questions where there are others, of those that say one
    thing what has most in common with the others."""
    words = {quote.text.casefold(): _words_of(quote.text) for quote in quotes}
    often = Counter(word for own in words.values() for word in own)
    different = {quote.text.casefold().strip(" ."): quote for quote in quotes}

    def unclear(text: str) -> tuple[bool, bool, float]:
        own = words[different[text].text.casefold()]
        common = -sum(often[word] for word in own) / (len(own) or 1)
        asks = text.endswith(("?", "？"))
        return asks, len(text) > _CLEAR or len(own) < _FEW_WORDS, common

    return [different[text] for text in sorted(different, key=unclear)[:most]]


_BRIEF = 120
"""Characters of a sentence that can be quoted whole."""


def _usual(quotes: Iterable[Quote]) -> list[Quote]:
    """What was typed for it about as often as anything, the fullest of it, and what says more."""
    different = {quote.text.casefold().strip(" ."): quote for quote in quotes}
    often = Counter(quote.text.casefold().strip(" .") for quote in quotes)
    brief = [text for text in different if len(text) <= _BRIEF] or list(different)
    most = max(often[text] for text in brief)
    usual = max((text for text in brief if often[text] * 2 > most), key=len)
    if most == 1:
        usual = min(brief, key=lambda text: abs(len(text) - _CLEAR // 2))
    more = max((text for text in brief if text != usual), key=len, default=usual)
    return [different[text] for text in dict.fromkeys((usual, more))]


@lru_cache(maxsize=4096)
def _words_of(text: str) -> frozenset[str]:
    """The words of a quote; the same one is asked about for the name and for the text."""
    return frozenset(content_words(text))


_WHOLE_PATH = re.compile(r"[A-Za-z]:|[/~]")
_PLACE = re.compile(r"(?:~|\.\.)/(?:[^\s/]+/)*([\w.-]*\w)")
_ADDRESS = re.compile(r"(?:\[[^\]]*\]\()?https?://[^\s)]*?((?:/[^\s/)]+){1,2})/?(?=[\s),]|$)\)?")


def _quote(quote: Quote, most: int = 300) -> str:
    """What was typed, on one line; of long addresses the end."""
    text = shorten(_ADDRESS.sub(r"…\1", one_line(quote.text)), most)
    said = f'"{text}"' if '"' not in text else f"“{text}”"
    return f"{said}, of `{shorten(one_line(quote.to), 60)}`" if quote.to else said
