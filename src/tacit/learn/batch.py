"""Which sessions a run by hand looks at, and in which order.

The newest that are due come first, as many as a run takes; among those, the ones that promise most
are looked at first, so that whoever stops early has the best of it. What is due is decided by the
same rules as after a session (`triggers.py`), but a session that went on since it was looked at is
due again: a person asked.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from tacit.base.sections import Settings
from tacit.learn.considering import is_own
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.signals import weight
from tacit.learn.triggers import Decision, Seen, after_session
from tacit.traces.skill_writes import skills_written
from tacit.traces.store import Store, Stored

MOST = 20
"""Sessions that a run looks at, unless another number is asked for."""


class Candidate(msgspec.Struct, frozen=True):
    """A session to look at."""

    stored: Stored
    skills: bool
    facts: bool
    weight: int


class Chosen(msgspec.Struct, frozen=True):
    """What a run looks at, in its order."""

    candidates: tuple[Candidate, ...]
    passed: dict[str, int] = {}
    """How many were passed over, by the reason in a word or two."""
    left: int = 0
    """Sessions that a later run may look at."""


def choose(
    store: Store,
    sessions: Iterable[Stored],
    settings: Settings,
    *,
    again: bool = False,
    most: int = MOST,
) -> Chosen:
    """The sessions of a run among `sessions`, which come newest first."""
    ledger = Ledger(store.connection)
    passed: Counter[str] = Counter()
    found: list[Candidate] = []
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
            found.append(Candidate(stored, decision.skills, decision.facts, decision.weight))
        else:
            passed[decision.word] += 1
    found.sort(key=lambda candidate: -candidate.weight)  # stable: the newest first among equals
    return Chosen(tuple(found), dict(passed), left)


def named(store: Store, sessions: Iterable[Stored], settings: Settings) -> Chosen:
    """Sessions that a person named: looked at whatever they hold."""
    return Chosen(
        tuple(
            Candidate(stored, True, settings.memory.use, weight(store.trace(stored.id)))
            for stored in sessions
        )
    )


def _decide(store: Store, stored: Stored, settings: Settings) -> Decision:
    seen = Seen(calls=stored.calls, messages=stored.prompts, background=is_own(stored.head))
    if _may_be_due(stored, settings):  # only then is it worth reading
        trace = store.trace(stored.id)
        changed = tuple(skills_written(trace))
        seen = msgspec.structs.replace(seen, changed=changed, weight=weight(trace))
    return after_session(seen, settings.learn, settings.memory)


def _may_be_due(stored: Stored, settings: Settings) -> bool:
    """What counting alone says, without a look into the session."""
    seen = Seen(calls=stored.calls, messages=stored.prompts, background=is_own(stored.head))
    return after_session(seen, settings.learn, settings.memory).look
