"""Refrains: what the user comes back to in session after session, in other words each time.

Sentences belong together that have a word or two neighbouring ones in common; that alone says
little, so the signs of such a group are weighed, as those of a sentence are (`worth.py`).
`WEIGHTS` is printed by `scripts/fit_worth.py`. What is asked for by one of the known verbs is
counted in `demands.py`, which makes findings of both.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from tacit.base.secrets import clean
from tacit.changes.provenance.support import weighed
from tacit.learn.counted_session import CountedSession
from tacit.learn.worth import Voices
from tacit.traces.requests import APPROVAL, Said
from tacit.traces.typed_words import stem


class Quote(msgspec.Struct, frozen=True):
    """What the user typed, and where."""

    text: str
    session: str
    turn: int
    to: str = ""
    """The command that was refused with it."""


def sessions_of(quotes: Iterable[Quote]) -> tuple[str, ...]:
    """The sessions that quotes are from, each once."""
    return tuple(dict.fromkeys(quote.session for quote in quotes))


class Refrain(msgspec.Struct, frozen=True):
    """What the user came back to, and the commands with which the agent mostly answered."""

    quotes: tuple[Quote, ...]
    """The best first."""
    answered_by: tuple[str, ...] = ()


class Returns(NamedTuple):
    """The signs of sentences with a word in common."""

    sessions: float
    """The logarithm of the number of sessions they are from."""
    second: float
    """How much the second best of them is worth."""
    beside: float
    """How many sentences were typed in one go with them, as a part of ten."""
    often: float
    """Sentences a session."""
    varied: float
    """Their other words, as a part of what they would be if none were said twice."""
    asks: float
    """The part of the sentences with that word that ask for something."""
    heard: float
    """The logarithm of the number of sessions of the project."""

    @property
    def chance(self) -> float:
        """From 0, by chance, to 1."""
        return weighed(self, BIAS, WEIGHTS)


BIAS = 4.13
WEIGHTS = Returns(
    sessions=-0.91,
    second=5.11,
    beside=-3.49,
    often=-0.81,
    varied=-4.63,
    asks=0.73,
    heard=-0.38,
)

KEPT = 0.45
_FEWEST, _RARE = 3, 20
_SAME = 0.25
"""The part of the sentences that two groups have in common, from which on they are one."""
_PASTED = 30


def returns(voices: Voices) -> Iterator[tuple[Returns, list[int]]]:
    """The sentences that ask for something with a word or two neighbouring ones in common, by
    their numbers, in groups of several sessions."""
    words = [[w for w in said.words if _tells(w)] for _, said in voices.said]
    groups: defaultdict[object, list[int]] = defaultdict(list)
    for at, own in enumerate(words):
        for term in dict.fromkeys((*own, *pairwise(own))):
            groups[term].append(at)
    sessions = [trace.id for trace, _ in voices.said]
    asks = [_asks(said) for _, said in voices.said]
    heard = len(set(sessions))
    for group in groups.values():
        if len(group) < _FEWEST:
            continue
        asking = [at for at in group if asks[at]]
        from_ = {sessions[at] for at in asking}
        if len(from_) < max(_FEWEST, heard // _RARE):
            continue
        seen = Counter(word for at in asking for word in set(words[at]))
        signs = Returns(
            math.log(len(from_)),
            sorted(voices.chances[at] for at in asking)[-2],
            sum(voices.signs[at].beside for at in asking) / len(asking),
            len(asking) / len(from_),
            len(seen) / seen.total(),
            len(asking) / len(group),
            math.log(heard),
        )
        yield signs, asking


def refrains(voices: Voices, told: set[str]) -> Iterator[Refrain]:
    """What the user said in several sessions and would say again, in sentences other than those in
    `told`; the best first."""
    used: set[int] = set()
    found = sorted(returns(voices), key=lambda one: (-one[0].chance, one[1]))
    for signs, group in found:
        if signs.chance < KEPT or len(used.intersection(group)) >= _SAME * len(group):
            continue
        used.update(group)
        told_best = [voices.said[at] for at in sorted(group, key=lambda at: -voices.chances[at])]
        against = told_best[0][1].against
        heard = [one for one in told_best if one[1].against == against]
        quotes = tuple(
            Quote(clean(said.text), trace.id, said.turn)
            for trace, said in heard
            if said.text.casefold() not in told and not _is_rule(trace, said)
        )
        pasted = len({q.text.casefold() for q in quotes}) == 1 and len(quotes[0].text) > _PASTED
        answers = _answers(quotes, voices.traces)
        if len(sessions_of(quotes)) > 1 and not pasted and (answers or any(map(_says_how, heard))):
            yield Refrain(quotes, answers)


def _says_how(one: tuple[CountedSession, Said]) -> bool:
    """Whether a sentence says more than what is to be done: how one works, or by what."""
    said = one[1]
    return said.together or said.against or bool(said.outside or _NAMES.search(said.text))


# A file, a path or an address, and what all work is made of.
_NAMES = re.compile(
    r"\w\.[a-z]\w{0,4}\b|(?<![\w/])[\w.@~-]*/[\w.-]+|\d+\.\d+\.\d+\.\d+|`"
    r"|(?i:\b(?:answer|branch|browser|comment|commit|doc|memor|message|review|screenshot|skill|subagent|test|komment|kommentar"
    r"|antwort|zweig|réponse|commentaire|respuesta|prueba|rama|resposta|teste|risposta|коммент|коммит|тест|ответ|ветк)\w*)"
    r"|[测測][试試]|注[释釋]|提交|分支|回[答复覆]|テスト|コメント|コミット|回答|테스트|주석|커밋|답변"
)


def _tells(word: str) -> bool:
    return word not in told_of_all() and not APPROVAL.match(word)


@cache
def told_of_all(english: bool = True) -> frozenset[str]:
    """The words that say nothing of what a sentence is about, in many languages; without those that
    say something in English, where that is wanted."""
    from stopwordsiso import langs, stopwords

    words = stopwords(langs()) if english else stopwords(langs() - {"en"}) - stopwords("en")
    return frozenset(stem(word.casefold()) for word in words)


def _is_rule(trace: CountedSession, said: Said) -> bool:
    told = said.text.casefold()
    return any(w.strength == "rule" and told in w.text.casefold() for w in trace.wishes)


def _asks(said: Said) -> bool:
    """Whether a sentence tells the agent what to do."""
    return said.asks and not _STATES.search(said.text)


# A sentence in Japanese or Korean that tells how something is.
_STATES = re.compile(
    r"(?:(?<!願い)(?<!思い)(?<!願いし)ます|(?<!たい)(?<!しい)です|ました|でした|습니다|했다)[。.\s]*$"
)


_EVERYBODYS = {"", "git add", "git commit", "git push", "git fetch"}


def _answers(quotes: Iterable[Quote], traces: Iterable[CountedSession]) -> tuple[str, ...]:
    """The commands that were run in answer in half of the sessions, other than to look."""
    asked = {(quote.session, quote.turn) for quote in quotes}
    ran: dict[str, set[str]] = {}
    for trace in traces:
        for run in trace.runs:
            if (trace.id, run.turn) in asked and run.outcome.state == "worked" and not run.tool:
                ran.setdefault(run.purpose, set()).add(trace.id)
    half = max(2, len({session for session, _ in asked}) / 2)
    ran = {purpose: own for purpose, own in ran.items() if purpose not in _EVERYBODYS}
    often = sorted(ran, key=lambda purpose: (-len(ran[purpose]), purpose))
    return tuple(purpose for purpose in often if len(ran[purpose]) >= half)[:3]
