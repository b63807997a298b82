"""What the user wants, in their own words, over several sessions.

Lasting wishes and remarks that share telling words, what was refused, and what was asked for again
and again, each with its support. The sentences of one session are `traces/wishes.py`'s, what else
sessions show by counting is `findings.py`'s.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import msgspec

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession
from tacit.learn.rates import FEWEST, CountedRun
from tacit.traces.command_purposes import work_class
from tacit.traces.requests import Request
from tacit.traces.wishes import (
    NOT,
    WIDE,
    WIDE_WORDS,
    Wish,
    content_words,
    subject_words,
    telling_words,
)


class Quote(msgspec.Struct, frozen=True):
    """What the user typed, and where."""

    text: str
    session: str
    turn: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that sessions of one project show."""

    project: str
    sessions: tuple[str, ...]
    """The sessions that show this very thing."""


class WishFinding(Finding, frozen=True, kw_only=True):
    """How the user wants things done, in their own words."""

    quotes: tuple[Quote, ...]


class RemarksFinding(Finding, frozen=True, kw_only=True):
    """What the user remarked on how things are made in a project, each once."""

    quotes: tuple[Quote, ...]


class RequestFinding(Finding, frozen=True, kw_only=True):
    """What the user asked for, in a few words, in several sessions."""

    verb: str
    thing: str
    quotes: tuple[Quote, ...]
    of: int
    """Sessions of the project, in all."""


class RefusalFinding(Finding, frozen=True, kw_only=True):
    """Commands of one class that the user refused to have run."""

    purposes: tuple[str, ...]
    quotes: tuple[Quote, ...]
    """What the user typed beside it."""


_ALIKE = 0.34
"""The part of the telling words of the shorter of two wishes that makes them one subject."""
_SHARED = 3


def wish_findings(
    traces: list[CountedSession], found: Sequence[Finding]
) -> Iterator[WishFinding | RemarksFinding]:
    """One finding a subject, over all projects: wishes that share telling words belong together,
    and so do remarks on how things are made that were made once.

    Of a conversation without a folder nobody knows whether it was the user who spoke.
    """
    refusals = [finding for finding in found if isinstance(finding, RefusalFinding)]
    told = {quote.text.casefold() for refusal in refusals for quote in refusal.quotes}
    groups: list[list[tuple[Quote, Wish, str]]] = []
    by_word: dict[str, set[int]] = {}
    for trace in traces:
        for wish in trace.wishes if trace.project else ():
            quote = Quote(clean(wish.text), trace.id, wish.turn)
            if quote.text.casefold() in told:
                continue
            words = [*_content(quote.text), f"“{quote.text.casefold()}”"]
            close = sorted({number for word in words for number in by_word.get(word, ())})
            alike = (n for n in close if any(_alike(quote, q) for q, _, _ in groups[n]))
            if (near := next(alike, len(groups))) == len(groups):
                groups.append([])
            groups[near].append((quote, wish, trace.project))
            for word in words:
                by_word.setdefault(word, set()).add(near)
    order = {"rule": 0, "correction": 1, "manner": 2, "product": 3}
    remarks: dict[str, list[Quote]] = {}
    for group in groups:
        group.sort(key=lambda one: order[one[1].strength])
        quotes = tuple(quote for quote, _, _ in group)
        projects = {project for _, _, project in group}
        project = projects.pop() if len(projects) == 1 else ""
        if group[0][1].strength == "rule" or len(_sessions(quotes)) >= FEWEST:
            yield WishFinding(project=project, sessions=_sessions(quotes), quotes=quotes)
        elif group[0][1].strength != "product":
            remarks.setdefault(project, []).extend(quotes)
    for project, told_once in remarks.items():
        quotes = tuple(told_once)
        if len(_sessions(quotes)) >= FEWEST:
            yield RemarksFinding(project=project, sessions=_sessions(quotes), quotes=quotes)


def _alike(one: Quote, other: Quote) -> bool:
    if one.text.casefold() == other.text.casefold():
        return True
    a, b = _content(one.text), _content(other.text)
    shared = len(a & b)
    if len(min(a, b, key=len)) < _SHARED and not one.text.isascii():  # few words say much
        return shared == min(len(a), len(b)) > 0
    enough = _SHARED - (one.session == other.session)  # what is said next is often about the same
    enough -= (one.session, one.turn) == (other.session, other.turn)
    return shared >= enough and shared >= _ALIKE * min(len(a), len(b)) * (enough / _SHARED)


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    return frozenset(subject_words(text))


_NAMES_NOTHING = re.compile(r"[/.]|^(?:claude|code|codex|agents?)$", re.IGNORECASE)


def naming_words(text: str) -> list[str]:
    """The words of `text` that a name can be made of, in order."""
    if not WIDE.search(text):
        return re.findall(r"(?<!\S)[^\W\d_]+(?!\S)", " ".join(telling_words(text)))
    words = {word[0][:12]: bool(word["other"]) for word in WIDE_WORDS.finditer(text)}
    told = {word: other for word, other in words.items() if not _NAMES_NOTHING.search(word)}
    plain = [word for word, other in told.items() if other]
    return plain if len(plain) > 1 else list(told)


_UNWANTED = re.compile(
    rf"\b(?:{NOT}\s+(?:use|run|call)|not|instead\s+of|rather\s+than)\s+(?:the\s+)?[`'\"]?([\w.+-]+)"
    r"|([\w.+-]*[A-Za-z])[^A-Za-z。]*使わないで|不要(?:再)?用\s*([\w.+-]+)",
    re.IGNORECASE | re.ASCII,
)


def unwanted_programs(text: str) -> set[str]:
    """The programs that a wish may be against: the words behind its `don't use`."""
    return {word for found in _UNWANTED.findall(text) for word in found if word}


def refusal_findings(project: str, traces: list[CountedSession]) -> Iterator[RefusalFinding]:
    """Commands that were refused as such in several sessions, and let run in no more than those.

    Those of one class, such as several ways to test, are one subject.
    """
    found: dict[str, list[tuple[str, Quote]]] = {}
    refused: dict[str, set[str]] = {}
    let: dict[str, set[str]] = {}
    for trace in traces:
        for run in trace.runs:
            if run.outcome.state != "refused":
                let.setdefault(run.purpose, set()).add(trace.id)
        for run in _refused_as_such(trace):
            work = work_class(run.purpose) or run.purpose
            quote = Quote(clean(run.reply), trace.id, run.turn)
            found.setdefault(work, []).append((run.purpose, quote))
            refused.setdefault(run.purpose, set()).add(trace.id)
    for own in found.values():
        kept = [
            purpose for purpose in dict.fromkeys(purpose for purpose, _ in own)
            if len(refused[purpose]) >= max(FEWEST, len(let.get(purpose, ())))
        ]  # fmt: skip
        quotes = tuple(quote for purpose, quote in own if purpose in kept)
        if kept:
            told = tuple(quote for quote in quotes if quote.text)
            yield RefusalFinding(
                project=project, sessions=_sessions(quotes), purposes=tuple(kept), quotes=told
            )


_BANS = re.compile(
    rf"\b{NOT}\b|^\W*no\b|\bnot\s+(?:now|needed|necessary)\b"
    r"|不要|别|別|ないで|しない|하지|\bне\b|\bnicht\b",
    re.IGNORECASE,
)


def _refused_as_such(trace: CountedSession) -> Iterator[CountedRun]:
    """The runs that were refused for what they do: no chain, of which nobody knows what was meant,
    nothing that was let run later on, and nothing refused with words that say how instead, which
    are a wish."""
    together: dict[int, set[str]] = {}
    let: dict[str, int] = {}
    for at, run in enumerate(trace.runs):
        if run.outcome.state == "refused":
            together.setdefault(run.turn, set()).add(run.purpose)
        else:
            let[run.purpose] = at
    for at, run in enumerate(trace.runs):
        alone = run.outcome.state == "refused" and len(together[run.turn]) == 1
        if alone and let.get(run.purpose, -1) < at and (not run.reply or _BANS.search(run.reply)):
            yield run


_LEAST_ACTS = 3
_RARE = 20
"""What is asked for less often than in one of so many sessions is no habit."""
_ACTS = {"commit", "push", "open-pr", "merge", "deploy", "release"}
_KEPT = {
    ("update", "docs"), ("run", "tests"), ("run", "lint"), ("add", "tests"), ("write", "tests"),
    ("review", "changes"), ("review", "feedback"), ("check", "feedback"), ("address", "feedback"),
    ("create", "branch"), ("update", "changelog"), ("bump", "version"),
    ("add", "screenshot"), ("check", "CI"), ("add", "todo"), ("split", "commits"),
    ("spawn", "agents"), ("plan", ""),
}  # fmt: skip
_OFTEN = 3
"""One of so many sessions is often."""
_MANY_MORE = 3
_DONE_BY = {
    "commit": {"git commit"}, "push": {"git push"}, "merge": {"git merge", "gh pr merge"},
    "open-pr": {"gh pr create"},
}  # fmt: skip
"""The commands that do what is asked for."""


def request_findings(project: str, traces: list[CountedSession]) -> list[RequestFinding]:
    known = list(_requests(project, traces))
    return [*known, *_repeated(project, traces, known)]


def _requests(project: str, traces: list[CountedSession]) -> Iterator[RequestFinding]:
    """What was asked for in several sessions; a first prompt said twice is one started anew."""
    found: dict[tuple[str, str], list[tuple[Quote, Request]]] = {}
    seen: set[str] = set()
    for trace in traces:
        for request in trace.requests:
            key = (request.verb, request.thing)
            document = request.verb == "update" and "." in request.thing
            if key in _KEPT or request.verb in _ACTS or document:
                quote = Quote(clean(request.text), trace.id, request.turn)
                if request.turn == 0 and request.text in seen:
                    continue
                seen.add(request.text)
                found.setdefault(key, []).append((quote, request))
    for (verb, thing), own in found.items():
        quotes = tuple(quote for quote, _ in own)
        sessions = _sessions(quotes)
        few = len(traces) < (_RARE // 2 if verb in _ACTS else _RARE)
        enough = max(FEWEST if few else _LEAST_ACTS, len(traces) // _RARE)
        if verb == "plan":  # many a plan is let go; only where it is the rule, it is waited for
            enough = max(_LEAST_ACTS, len(traces) // _OFTEN)
        if len(sessions) >= enough and not _done_anyway(verb, quotes, traces):
            yield RequestFinding(
                project=project, sessions=sessions, verb=verb, thing=thing,
                quotes=quotes, of=len(traces),
            )  # fmt: skip


def _done_anyway(verb: str, asked: Sequence[Quote], traces: list[CountedSession]) -> bool:
    """Whether an act was mostly done unasked, in more sessions than it was asked for in or in many
    more turns: then the user does not mind."""
    wanted = _DONE_BY.get(verb, set())
    told = {(quote.session, quote.turn) for quote in asked}
    did = {
        (trace.id, run.turn)
        for trace in traces for run in trace.runs
        if run.purpose in wanted and run.outcome.state == "worked"
    }  # fmt: skip
    unasked = {session for session, _ in did} - set(_sessions(asked))
    return len(unasked) > len(_sessions(asked)) or len(did - told) > _MANY_MORE * len(told)


_SPLIT = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_EIGHTH, _MOSTLY = 8, 2 / 3
_NEAR = 2
"""Telling words from one of a pair to the other: what stands further apart is two things."""
# What every task is about: two of these together say what was to be done, and not how.
_TASKS = frozenset(content_words(
    "add change check ci code continue create detail error explore fail failing file find finding"
    " fix implement investigate issue learn left look pick plan problem project read remove review"
    " run start take task tell test update where work"
))  # fmt: skip


def _repeated(
    project: str, traces: list[CountedSession], known: Sequence[RequestFinding]
) -> Iterator[RequestFinding]:
    """What the user came back to: two telling words that mostly stand together, in sentences of an
    eighth of the sessions. Words of the project's own files say what is built, and not how."""
    told = {quote.text.casefold() for finding in known for quote in finding.quotes}
    told |= {r.text.casefold() for trace in traces for r in trace.requests if r.verb in _ACTS}
    told |= {wish.text.casefold() for trace in traces for wish in trace.wishes}
    paths = {path for trace in traces for path in (*trace.changes.edited, project)}
    own = {word for path in paths for word in content_words(_SPLIT.sub(" ", path))}
    said: list[tuple[Quote, frozenset[str]]] = []
    seen: set[tuple[int, str]] = set()
    traces = [trace for trace in traces if trace.spoken]
    for trace in traces:
        for turn, sentence, words in trace.asked:
            text = clean(sentence)
            if text.casefold() in told or (turn, text) in seen:
                continue
            seen.add((turn, text))  # else a history that was copied
            told |= {text.casefold()} if turn == 0 else set()  # sent anew
            telling = frozenset(word for word in words if not re.search(r"[/.]", word))  # no files
            said.append((Quote(text, trace.id, turn), telling))
    enough = max(_LEAST_ACTS + 1, len(traces) // _EIGHTH)
    by_word: dict[str, set[str]] = {}
    for quote, words in said:
        for word in words:
            by_word.setdefault(word, set()).add(quote.session)
    usual = {word for word, seen in by_word.items() if len(seen) >= enough} - own
    together: dict[tuple[str, str], list[Quote]] = {}
    for quote, words in said:  # of rarer words there is no pair that stands in enough sessions
        order = content_words(quote.text) if len(words & usual) > 1 else []
        for pair in combinations(sorted(words & usual), 2):
            if abs(order.index(pair[0]) - order.index(pair[1])) <= _NEAR:
                together.setdefault(pair, []).append(quote)
    taken: set[str] = set()
    often = {pair: len(_sessions(quotes)) for pair, quotes in together.items()}
    for pair in sorted(together, key=lambda words: (-often[words], words)):
        left = tuple(quote for quote in together[pair] if quote.text not in taken)
        mostly = often[pair] >= _MOSTLY * min(len(by_word[word]) for word in pair)
        begins = all(quote.turn == 0 for quote in left)  # how sessions are begun
        tells = mostly and not begins and not _TASKS.issuperset(pair)
        if tells and len(_sessions(left)) >= enough:
            taken |= {quote.text for quote in left}
            yield RequestFinding(
                project=project, sessions=_sessions(left), verb="", thing="", quotes=left,
                of=len(traces),
            )  # fmt: skip


def _sessions(quotes: Iterable[Quote]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(quote.session for quote in quotes))
