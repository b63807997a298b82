"""What the user wants, in their own words, over several sessions.

Lasting wishes and remarks that share telling words, what was refused, and what was asked for again
and again, each with its support. The sentences of one session are `traces/wishes.py`'s, what else
sessions show by counting is `findings.py`'s.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations, pairwise

import msgspec

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession
from tacit.learn.rates import FEWEST
from tacit.learn.refrains import Quote, refrains, sessions_of, told_of_all
from tacit.learn.runs import CountedRun
from tacit.learn.worth import Voices
from tacit.traces.command_purposes import work_class
from tacit.traces.requests import Request
from tacit.traces.standing_orders import language_of_work
from tacit.traces.typed_words import WIDE, is_translating, subject_words
from tacit.traces.wishes import NOT, Wish


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that sessions of one project show."""

    project: str
    sessions: tuple[str, ...]
    """The sessions that show this very thing."""
    repository: str = ""
    """The repository that the project is a checkout of, as its latest session says."""


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
    answered_by: tuple[str, ...] = ()
    """The commands with which the agent mostly answered."""


class StagesFinding(Finding, frozen=True, kw_only=True):
    """What the user asks for step by step, in the same order each time."""

    steps: tuple[tuple[tuple[str, str], tuple[Quote, ...]], ...]
    """Verb and object of each step, with what was typed for it."""
    of: int


class RefusalFinding(Finding, frozen=True, kw_only=True):
    """Commands of one class that the user refused to have run."""

    purposes: tuple[str, ...]
    quotes: tuple[Quote, ...]
    """What the user typed beside it."""


_ALIKE = 0.34
"""The part of the telling words of the shorter of two wishes that makes them one subject."""
_SHARED = 3


def wish_findings(
    traces: list[CountedSession], found: Sequence[Finding], voices: Mapping[str, Voices]
) -> Iterator[WishFinding | RemarksFinding]:
    """One finding a subject, over all projects: wishes that share telling words belong together,
    and so do remarks on how things are made that were made once.

    Of a conversation without a folder nobody knows whether it was the user who spoke.
    """
    elsewhere = [
        one for one in found
        if isinstance(one, RefusalFinding) or (isinstance(one, RequestFinding) and not one.verb)
    ]  # fmt: skip
    told = {quote.text.casefold() for one in elsewhere for quote in one.quotes}
    tongues = {
        (one.project, one.thing)
        for one in found if isinstance(one, RequestFinding) and one.verb == "language"
    }  # fmt: skip
    groups: list[list[tuple[Quote, Wish, str]]] = []
    by_word: dict[str, set[int]] = {}
    for trace in traces:
        for wish in _wishes(trace, voices[trace.project]) if trace.project else ():
            quote = Quote(clean(wish.text), trace.id, wish.turn, clean(wish.to))
            spoken = language_of_work(quote.text)
            if quote.text.casefold() in told or (trace.project, spoken) in tongues:
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
        heard = {name: at for at, name in enumerate(sessions_of(quote for quote, _, _ in group))}
        # The later word wins, over sessions.
        group.sort(key=lambda one: (order[one[1].strength], -heard[one[0].session]))
        quotes = tuple(quote for quote, _, _ in group)
        projects = {project for _, _, project in group}
        one = len(projects) == 1 and not any(_EVERYWHERE.search(quote.text) for quote in quotes)
        project = projects.pop() if one else ""
        if group[0][1].strength == "rule" or len(sessions_of(quotes)) >= FEWEST:
            yield WishFinding(project=project, sessions=sessions_of(quotes), quotes=quotes)
        elif group[0][1].strength != "product":
            remarks.setdefault(project, []).extend(quotes)
    for project, told_once in remarks.items():
        quotes = tuple(told_once)
        if len(sessions_of(quotes)) >= FEWEST:
            yield RemarksFinding(project=project, sessions=sessions_of(quotes), quotes=quotes)


def _wishes(trace: CountedSession, voices: Voices) -> Iterator[Wish]:
    """The wishes of a session by their words, and what else the user would say again."""
    yield from trace.wishes
    known = "\n".join(wish.text for wish in trace.wishes)
    for said in voices.kept(trace.id):
        if said.text not in known:
            yield Wish(said.turn, said.text, "rule")


_EVERYWHERE = re.compile(
    r"\b(?:across|for|in)\s+(?:all|every|any)\s+(?:of\s+)?(?:my\s+|your\s+|the\s+)?projects?\b"
    r"|\ballen\s+projekten\b|\btous\s+(?:les|mes)\s+projets\b|\btod[oa]s\s+(?:los|mis|os|meus)\s+pro[jy]e[ck]?tos\b"
    r"|\bвсех\s+(?:моих\s+)?проект|所有(?:的)?[项項專]目|[全す]べてのプロジェクト|모든\s*프로젝트",
    re.IGNORECASE,
)


def _alike(one: Quote, other: Quote) -> bool:
    if one.text.casefold() == other.text.casefold():
        return True
    a, b = _content(one.text), _content(other.text)
    shared = len(a & b)
    if (spoken := language_of_work(one.text)) and spoken == language_of_work(other.text):
        return True
    if one.session != other.session and _phrases(one.text) & _phrases(other.text):
        return True
    if len(min(a, b, key=len)) < _SHARED:  # few words say much
        return shared == min(len(a), len(b)) > (0 if not one.text.isascii() else 1)
    enough = _SHARED - (one.session == other.session)  # what is said next is often about the same
    enough -= (one.session, one.turn) == (other.session, other.turn)
    return shared >= enough and shared >= _ALIKE * min(len(a), len(b)) * (enough / _SHARED)


_BRIEF, _TELLING = 14, 5
"""Words of a wish that is about one thing, and letters of a word that says which."""


# What is said of any work, in words that are long enough to tell of some.
_ANY_WORK = (
    "commit commits message review reviews reviewer branch branches comment comments changelog"
    " documentation agent agents subagent skill skills linter ticket tickets release worktree"
    " description discussion feedback checks thread report readme kommentar kommentare zweig"
    " branche commentaire commentaires comentario comentarios pruebas revisión revisão comentário"
    " commento commenti revisione коммит коммиты тесты ревью ветка комментарий комментарии address"
    " alread already appropriate build change changes check clear complete concern config consider"
    " context continue correct create critical current delete design detail different error"
    " everything exist existing explore folder follow following given implement implementation"
    " investigate latest learn local medium number order point points previous problem proceed"
    " project provide question related relevant remote remove request response result results"
    " right script second section separate similar single specific start support third understand"
    " upcoming update version"
)  # fmt: skip


@cache
def _of_any_work() -> frozenset[str]:
    return frozenset(word for one in _ANY_WORK.split() for word in subject_words(one))


@lru_cache(maxsize=4096)
def _phrases(text: str) -> frozenset[tuple[str, str]]:
    """The telling words of a brief wish that stand together, such as `backward compatibility`, but
    for those that are said of any work."""
    words = subject_words(text.replace("-", " "))
    if len(words) > _BRIEF or WIDE.search(text):
        return frozenset()
    telling = [
        len(w) >= _TELLING and w not in _of_any_work() and not NAMES_NOTHING.search(w)
        for w in words
    ]
    return frozenset(
        (one, other)
        for at, (one, other) in enumerate(pairwise(words)) if telling[at] and telling[at + 1]
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    words = frozenset(subject_words(text))
    return words - told_of_all(english=False) if not WIDE.search(text) else words


NAMES_NOTHING = re.compile(r"[/.]|^(?:claude|code|codex|agents?)$", re.IGNORECASE)
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
                project=project, sessions=sessions_of(quotes), purposes=tuple(kept), quotes=told
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
    ("spawn", "agents"), ("plan", ""), ("fold", "commits"), ("forgotten", "commit"),
    ("forgotten", "push"), ("do", "yourself"),
}  # fmt: skip
_TENTH, _SIXTH = 10, 6
_MANY_MORE = 3
_DONE_BY = {
    "commit": {"git commit"}, "push": {"git push"}, "merge": {"git merge", "gh pr merge"},
    "open-pr": {"gh pr create"},
}  # fmt: skip
"""The commands that do what is asked for."""


def request_findings(
    project: str, traces: list[CountedSession], voices: Voices
) -> list[RequestFinding | StagesFinding]:
    """What the user asked for again and again, each in one place."""
    stages = list(_stages(project, traces))
    steps = {key for stage in stages for key, _ in stage.steps}
    known = [one for one in _requests(project, traces) if (one.verb, one.thing) not in steps]
    left = (one.thing for one in known if one.verb == "forgotten")
    forgotten = {act for thing in left for act in thing.split(" and ")}
    known = [one for one in known if one.verb not in forgotten]
    known += _outside(project, traces)
    told = {quote.text.casefold() for one in known for quote in one.quotes}
    told |= {quote.text.casefold() for stage in stages for _, own in stage.steps for quote in own}
    speaking = sum(1 for trace in traces if trace.spoken)
    known += [
        RequestFinding(
            project=project, sessions=sessions_of(one.quotes), verb="", thing="",
            quotes=one.quotes, of=speaking, answered_by=one.answered_by,
        )
        for one in refrains(voices, told)
    ]  # fmt: skip
    return [*stages, *known]


def _requests(project: str, traces: list[CountedSession]) -> Iterator[RequestFinding]:
    """What was asked for in several sessions; a first prompt said twice is one started anew."""
    found: dict[tuple[str, str], list[tuple[Quote, Request]]] = {}
    seen: set[str] = set()
    for trace in traces:
        for request in trace.requests:
            key = (request.verb, request.thing)
            document = request.verb == "update" and "." in request.thing
            if key in _KEPT or request.verb in {*_ACTS, "language"} or document:
                quote = Quote(clean(request.text), trace.id, request.turn)
                if request.turn == 0 and request.text in seen:
                    continue
                seen.add(request.text)
                found.setdefault(key, []).append((quote, request))
    if ("forgotten", "commit") in found and ("forgotten", "push") in found:  # it is one
        left = found.pop(("forgotten", "commit")) + found.pop(("forgotten", "push"))
        found["forgotten", "commit and push"] = left
    for (verb, thing), own in found.items():
        quotes = tuple(quote for quote, _ in own)
        sessions = sessions_of(quotes)
        few = len(traces) < (_RARE // 2 if verb in _ACTS else _RARE)
        enough = max(FEWEST if few else _LEAST_ACTS, len(traces) // _RARE)
        if verb in ("plan", "fold"):  # done now and then by everybody; only where it is the rule
            enough = max(_LEAST_ACTS, len(traces) // _TENTH)
        enough = FEWEST if verb in ("forgotten", "do", "language") else enough
        enough = max(enough, math.ceil(len(traces) / _SIXTH)) if verb in _ACTS else enough
        if verb == "language" and (
            all(is_translating(quote.text) for quote in quotes)
            or _among_others(thing, found)
            or len(sessions) <= len(_told_to_use(thing, traces))
        ):
            continue  # texts were translated, what is built speaks several, or it is a rule
        if len(sessions) >= enough and not _done_anyway(verb, quotes, traces):
            yield RequestFinding(
                project=project, sessions=sessions, verb=verb, thing=thing,
                quotes=quotes, of=len(traces),
            )  # fmt: skip


_ACT = r"(commit|push|merge|deploy|release)\w*"
_RESERVED = re.compile(
    rf"\b(?:{NOT}\s+{_ACT}|let\s+me\s+{_ACT}|i(?:['’]?ll|\s+will)\s+{_ACT}|{_ACT}\b.{{0,20}}\bmyself)",
    re.IGNORECASE,
)


def reserved_acts(told: Iterable[str]) -> set[str]:
    """The acts that the user keeps to themselves, or does not want."""
    acts = (_RESERVED.findall(text) for text in told)
    kept = {act.casefold() for every in acts for one in every for act in one if act}
    return kept | ({"commit", "push"} if kept & {"commit", "push"} else set())


def _told_to_use(tongue: str, traces: list[CountedSession]) -> list[str]:
    """The sessions with a rule to work in `tongue`."""
    return [t.id for t in traces if any(language_of_work(w.text) == tongue for w in t.wishes)]


def _among_others(tongue: str, found: dict[tuple[str, str], list[tuple[Quote, Request]]]) -> bool:
    """Whether another language is asked for half as often as `tongue`, or more."""
    often = {
        thing: len(sessions_of(quote for quote, _ in own))
        for (verb, thing), own in found.items() if verb == "language"
    }  # fmt: skip
    return any(2 * n >= often[tongue] for thing, n in often.items() if thing != tongue)


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
    unasked = {session for session, _ in did} - set(sessions_of(asked))
    return len(unasked) > len(sessions_of(asked)) or len(did - told) > _MANY_MORE * len(told)


def _outside(project: str, traces: list[CountedSession]) -> Iterator[RequestFinding]:
    """Repositories and folders beside the project that the user points to in several sessions."""
    own = {project.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()}
    own |= {trace.repository.rpartition("/")[2].casefold() for trace in traces}
    by_name: dict[str, list[tuple[Quote, str]]] = {}
    for trace in traces:
        for said in trace.said:
            for name in said.outside:
                quote = Quote(clean(said.text), trace.id, said.turn)
                whole = name.startswith(("/", "~")) or ":" in name
                last = name.rstrip("/") if whole else name.rstrip("/").rpartition("/")[2]
                by_name.setdefault(last.casefold(), []).append((quote, name))
    speaking = sum(1 for trace in traces if trace.spoken)
    told: list[str] = []
    often = {name: len(sessions_of(q for q, _ in own)) for name, own in by_name.items()}
    for name in sorted(by_name, key=lambda name: (-often[name], -name.count("/"), name)):
        pointed = by_name[name]
        quotes = tuple(quote for quote, _ in pointed)
        within = (n.startswith(f"{name}/") or name.startswith(f"{n}/") for n in told)
        if name in own or any(within):
            continue
        if often[name] >= max(_LEAST_ACTS, speaking // _RARE):
            told.append(name)
            said_mostly = Counter(written for _, written in pointed).most_common(1)[0][0]
            yield RequestFinding(
                project=project, sessions=sessions_of(quotes), verb="see", thing=said_mostly,
                quotes=quotes, of=speaking,
            )  # fmt: skip


_MOST_STEPS = 4
_USUALLY = 4 / 5


def _stages(project: str, traces: list[CountedSession]) -> Iterator[StagesFinding]:
    """The steps that the user asks for one after the other, in the same order in several sessions.

    What one looks at and mends is everybody's way; there have to be two steps beside that.
    """
    orders: list[list[tuple[str, str]]] = []
    quotes: dict[tuple[str, str], list[Quote]] = {}
    for trace in traces:
        asked = sorted(trace.requests, key=lambda request: request.turn)
        keys = [(r.verb, r.thing) for r in asked if (r.verb, r.thing) in _STEPS]
        orders.append(list(dict.fromkeys(keys)))
        for request in asked:
            quote = Quote(clean(request.text), trace.id, request.turn)
            quotes.setdefault((request.verb, request.thing), []).append(quote)
    spoken = sum(1 for trace in traces if trace.spoken)
    enough = max(FEWEST if spoken < _RARE // 2 else _LEAST_ACTS, spoken // _RARE)
    chain = _chain(orders, enough)
    if len(chain) < _FEWEST_STEPS or _EVERYBODYS.issuperset(verb for verb, _ in chain):
        return
    begins = Counter(order[0] for order in orders if order and set(order) & set(chain))
    chain[:0] = [key for key, seen in begins.items() if key[0] == "look" and seen >= enough]
    if _asked_as_one([quotes[key] for key in chain]):
        return
    shown = [
        trace for trace, order in zip(traces, orders, strict=True)
        if len(set(chain) & set(order)) >= _FEWEST_STEPS
    ]  # fmt: skip
    yield StagesFinding(
        project=project,
        sessions=tuple(trace.id for trace in shown),
        steps=tuple((key, tuple(quotes[key])) for key in chain),
        of=spoken,
    )


def _asked_as_one(steps: list[list[Quote]]) -> bool:
    """Whether all steps are asked for in the same sentences: then it is one request."""
    typed = [{quote.text.casefold() for quote in step} for step in steps]
    return len(set.intersection(*typed)) * 2 >= min(map(len, typed))


_FEWEST_STEPS = 2
_EVERYBODYS = {*_ACTS, "create"}
_STEPS = {
    ("look", "discussion"), ("look", "issue"), ("look", "CI"), ("look", "PR"), ("open-pr", ""),
    ("reply", "discussion"), ("reply", "issue"), ("reply", "feedback"), ("address", "feedback"),
    ("merge", ""), ("release", ""), ("deploy", ""), ("create", "branch"), ("update", "docs"),
    ("update", "changelog"), ("run", "tests"), ("commit", ""), ("push", ""), ("plan", ""),
    ("check", "CI"), ("review", "changes"), ("spawn", "agents"), ("bump", "version"),
}  # fmt: skip


def _chain(orders: list[list[tuple[str, str]]], enough: int) -> list[tuple[str, str]]:
    """The steps that mostly follow each other, in their order, those of most sessions first
    chosen."""
    often = Counter(key for order in orders for key in order if key[0] != "look")
    before: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()
    for order in orders:
        before.update(combinations(order, 2))
    chain: list[tuple[str, str]] = []
    for key, seen in often.most_common():
        if seen < enough or len(chain) == _MOST_STEPS:
            break
        place = sum(1 for other in chain if before[other, key] > before[key, other])
        fits = all(
            max(before[other, key], before[key, other])
            >= max(enough, _USUALLY * (before[other, key] + before[key, other]))
            and (before[other, key] > before[key, other]) == (at < place)
            for at, other in enumerate(chain)
        )  # fmt: skip
        if fits:
            chain.insert(place, key)
    return chain
