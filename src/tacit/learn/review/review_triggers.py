"""Which sessions are reviewed: after a session, in a chat that goes on, and by `tacit learn`.

What is known of a session is gathered here, decided by the rules, and recorded in the ledger;
whoever hears of the session asks for the job that `review_request` describes. By hand, the newest
sessions that are due come first, and among those the ones that promise most; a session that went
on since its review is due again there, because a person asked.
"""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from tacit.agent.agent_events import Answered
from tacit.base import database, paths
from tacit.base.settings import Settings
from tacit.learn.findings import session_weight
from tacit.learn.ledger import (
    REVIEW,
    ChatFacts,
    Decision,
    Ledger,
    SessionFacts,
    after_session,
    in_chat,
)
from tacit.traces.observations import skills_written
from tacit.traces.store import Store, Stored
from tacit.traces.trace import OWN_HOST, Head

REVIEW_KIND = "review"
"""The kind of job that a look is."""


def decide_after_session(store: Store, session: str, settings: Settings) -> Decision:
    """Decide whether the session, which is over and in the store, is looked at. Recorded."""
    ledger = Ledger(store.connection)
    decision = after_session(_seen(store, ledger, session), settings.learn, settings.memory)
    ledger.decide(store.find(session).id, decision)
    return decision


def decide_in_chat(answered: Answered, settings: Settings) -> Decision:
    """Decide whether a chat is looked at, now that an answer is over. Recorded."""
    spoken = ChatFacts(
        ended=answered.reason, iterations=answered.iterations, messages=answered.user_turns
    )
    decision = in_chat(spoken, settings.learn, settings.memory)
    with database.opened() as connection:
        Ledger(connection).decide(f"{OWN_HOST}:{answered.session}", decision)
    return decision


def review_request(session: str, decision: Decision, part: str = "") -> tuple[str, dict[str, Any]]:
    """The key and the payload of the job for a decision to look.

    A session that is over has one job. A chat has one for each `part`, e.g. its requests so far.
    """
    key = session if decision.moment == "after" else f"{session}#{part}"
    return key, {
        "session": session,
        "moment": decision.moment,
        "skills": decision.skills,
        "facts": decision.facts,
        "weight": decision.weight,
    }


def _seen(store: Store, ledger: Ledger, session: str) -> SessionFacts:
    stored = store.find(session)
    if is_background_work(stored.head):
        return SessionFacts(calls=stored.calls, messages=stored.prompts, background=True)
    skills_at, facts_at = ledger.looked_at(stored.id)
    trace = store.trace(stored.id)
    return SessionFacts(
        calls=stored.calls,
        messages=stored.prompts,
        changed=tuple(skills_written(trace)),
        skills_before=_minute(skills_at),
        facts_before=_minute(facts_at),
        weight=session_weight(trace),
    )


def is_background_work(head: Head) -> bool:
    """Whether a session is work of ours in the background: it runs in the data folder."""
    data = os.path.realpath(paths.folders().data)
    return bool(head.project) and paths.is_inside(os.path.realpath(head.project), data)


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


MOST_SESSIONS = 20
"""Sessions that a run looks at, unless another number is asked for."""


class ReviewCandidate(msgspec.Struct, frozen=True):
    """A session to look at."""

    stored: Stored
    skills: bool
    facts: bool
    weight: int


class ChosenSessions(msgspec.Struct, frozen=True):
    """What a run looks at, in its order."""

    candidates: tuple[ReviewCandidate, ...]
    passed: dict[str, int] = {}
    """How many were passed over, by the reason in a word or two."""
    left: int = 0
    """Sessions that a later run may look at."""


def choose_sessions(
    store: Store,
    sessions: Iterable[Stored],
    settings: Settings,
    *,
    again: bool = False,
    most: int = MOST_SESSIONS,
) -> ChosenSessions:
    """The sessions of a run among `sessions`, which come newest first."""
    ledger = Ledger(store.connection)
    passed: Counter[str] = Counter()
    found: list[ReviewCandidate] = []
    left = 0
    for stored in sessions:
        if not again and not ledger.is_new(stored, REVIEW):
            passed["done before"] += 1
            continue
        if len(found) == most:
            left += _may_be_due(stored, settings)
            continue
        decision = _decide(store, stored, settings)
        if decision.look:
            found.append(ReviewCandidate(stored, decision.skills, decision.facts, decision.weight))
        else:
            passed[decision.word] += 1
    found.sort(key=lambda candidate: -candidate.weight)  # stable: the newest first among equals
    return ChosenSessions(tuple(found), dict(passed), left)


def named_sessions(store: Store, sessions: Iterable[Stored], settings: Settings) -> ChosenSessions:
    """Sessions that a person named: looked at whatever they hold."""
    return ChosenSessions(
        tuple(
            ReviewCandidate(
                stored, True, settings.memory.use, session_weight(store.trace(stored.id))
            )
            for stored in sessions
        )
    )


def _decide(store: Store, stored: Stored, settings: Settings) -> Decision:
    seen = SessionFacts(
        calls=stored.calls, messages=stored.prompts, background=is_background_work(stored.head)
    )
    if _may_be_due(stored, settings):  # only then is it worth reading
        trace = store.trace(stored.id)
        changed = tuple(skills_written(trace))
        seen = msgspec.structs.replace(seen, changed=changed, weight=session_weight(trace))
    return after_session(seen, settings.learn, settings.memory)


def _may_be_due(stored: Stored, settings: Settings) -> bool:
    """What counting alone says, without a look into the session."""
    seen = SessionFacts(
        calls=stored.calls, messages=stored.prompts, background=is_background_work(stored.head)
    )
    return after_session(seen, settings.learn, settings.memory).look
