"""Deciding about one session: what is known of it is gathered, and what was decided is recorded.

The rules are `triggers.py`'s. Whoever hears that a session ended or an answer is over calls one of
these, and asks for the job where the decision says so; `wanted` says which.
"""

import os
from contextlib import closing
from typing import Any

from tacit.agent.answered import Answered
from tacit.base import database, paths
from tacit.base.sections import Settings
from tacit.learn.ledger import Ledger
from tacit.learn.signals import weight
from tacit.learn.triggers import Decision, Seen, Spoken, after_session, in_chat
from tacit.traces.skill_writes import skills_written
from tacit.traces.store import Store
from tacit.traces.trace import Head

KIND = "review"
"""The kind of job that a look is."""
HOST = "tacit"
"""Our own chat, among the hosts."""


def consider(store: Store, session: str, settings: Settings) -> Decision:
    """Decide whether the session, which is over and in the store, is looked at. Recorded."""
    ledger = Ledger(store.connection)
    decision = after_session(_seen(store, ledger, session), settings.learn, settings.memory)
    ledger.decide(store.find(session).id, decision)
    return decision


def consider_chat(answered: Answered, settings: Settings) -> Decision:
    """Decide whether a chat is looked at, now that an answer is over. Recorded."""
    spoken = Spoken(
        ended=answered.reason, iterations=answered.iterations, messages=answered.user_turns
    )
    decision = in_chat(spoken, settings.learn, settings.memory)
    with closing(database.connect()) as connection:
        Ledger(connection).decide(f"{HOST}:{answered.session}", decision)
    return decision


def wanted(session: str, decision: Decision, part: str = "") -> tuple[str, dict[str, Any]]:
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


def _seen(store: Store, ledger: Ledger, session: str) -> Seen:
    stored = store.find(session)
    if is_own(stored.head):
        return Seen(calls=stored.calls, messages=stored.prompts, background=True)
    skills_at, facts_at = ledger.looked_at(stored.id)
    trace = store.trace(stored.id)
    return Seen(
        calls=stored.calls,
        messages=stored.prompts,
        changed=tuple(skills_written(trace)),
        skills_before=_minute(skills_at),
        facts_before=_minute(facts_at),
        weight=weight(trace),
    )


def is_own(head: Head) -> bool:
    """Whether a session is work of ours in the background: it runs in the data folder."""
    data = os.path.realpath(paths.folders().data)
    project = os.path.realpath(head.project) if head.project else ""
    return project == data or project.startswith(data + os.sep)


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
