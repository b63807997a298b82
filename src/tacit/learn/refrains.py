"""Refrains: what the user comes back to in session after session, in other words each time.

Sentences that say much the same belong together; which of them are worth keeping is weighed
(`worth.py`). What is asked for by one of the known verbs is counted in `demands.py`, which makes
findings of both.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession
from tacit.learn.worth import KEPT, Voices
from tacit.traces.requests import Said


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


_PASTED = 30
_JOINED = 0.5
"""How near a sentence is to the best of its refrain, at least."""


def refrains(voices: Voices, told: set[str]) -> Iterator[Refrain]:
    """What the user said in several sessions and would say again, in sentences other than those in
    `told`; the best first."""
    chances = voices.chances
    leads: dict[int, list[int]] = {}
    for at in sorted(range(len(chances)), key=lambda at: (-chances[at], at)):
        if _is_rule(*voices.said[at]):
            continue  # is kept by itself
        against = voices.said[at][1].against
        near = {
            lead: alike
            for lead, alike in voices.near[at].items()
            if lead in leads and voices.said[lead][1].against == against
        }
        best = max(near, key=lambda lead: (near[lead], -lead), default=-1)
        if near.get(best, 0.0) >= _JOINED:
            leads[best].append(at)
        elif chances[at] >= KEPT and _may_lead(voices.said[at][1]):
            leads[at] = [at]
    for own in leads.values():
        heard = [voices.said[at] for at in own]
        tasks = {trace.id for trace, said in heard if said.changed}
        quotes = tuple(Quote(clean(said.text), trace.id, said.turn) for trace, said in heard)
        texts = {quote.text.casefold() for quote in quotes}
        pasted = len(texts) == 1 and len(quotes[0].text) > _PASTED
        again = len(sessions_of(quotes))
        if again > 1 and 2 * len(tasks) <= again and texts.isdisjoint(told) and not pasted:
            yield Refrain(quotes, _answers(quotes, voices.traces))


def _is_rule(trace: CountedSession, said: Said) -> bool:
    told = said.text.casefold()
    return any(w.strength == "rule" and told in w.text.casefold() for w in trace.wishes)


def _may_lead(said: Said) -> bool:
    """Whether a sentence tells the agent what to do."""
    return said.asks and not _STATES.search(said.text)


# A sentence in Japanese or Korean that tells how something is.
_STATES = re.compile(
    r"(?:(?<!願い)(?<!思い)(?<!願いし)ます|(?<!たい)(?<!しい)です|ました|でした|습니다|했다)[。.\s]*$"
)


_EVERYBODYS = {"git add", "git commit", "git push", "git fetch"}


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
