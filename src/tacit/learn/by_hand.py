"""Looking at sessions now, because a person asked: by the same job that the queue would run.

What a look cost is what was booked for that session meanwhile. The day's budget holds here too.
What is done is done: whoever stops in the middle keeps what came before.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from tacit.agent import spending
from tacit.agent.spending import Spent
from tacit.base.errors import TacitError
from tacit.base.job import Job
from tacit.base.sections import Settings
from tacit.changes.change import new_id
from tacit.learn.batch import Candidate
from tacit.learn.considering import KIND
from tacit.learn.digest import digest
from tacit.learn.estimate import Estimate, estimate
from tacit.learn.review.job import related, run
from tacit.learn.review.reviewing import Wanted, instructions, message, rehearse
from tacit.traces.store import Store

MOMENT = "hand"


class Would(msgspec.Struct, frozen=True):
    """A change that a rehearsal would have made."""

    skill: str
    diff: str
    waits: str
    """Why it would wait for the user; empty where it would land at once."""


class Result(msgspec.Struct, frozen=True):
    """What came of one session."""

    session: str
    outcome: str
    reason: str
    changes: tuple[str, ...] = ()
    spent: Spent = Spent()
    would: tuple[Would, ...] = ()


def estimated(
    store: Store, candidates: Iterable[Candidate], settings: Settings, model: str
) -> Estimate:
    """What looking at `candidates` is likely to cost: what will be sent is made, and counted."""
    sizes, fixed = [], 0
    for candidate in candidates:
        wanted = _wanted("", candidate)
        fixed = len(instructions(wanted, settings.learn.turns))
        sizes.append(len(message(digest(store.trace(candidate.stored.id)), wanted)))
    return estimate(sizes, model, instructions=fixed)


def look(candidate: Candidate, *, model: str = "") -> Result:
    """Look at one session, by the job of the kind `review`. A fault is a result, too."""
    began = datetime.now(UTC)
    session = candidate.stored.id
    key = f"{session}#{new_id(began)}"  # a look by hand is one of its own
    payload = {
        "session": session,
        "moment": MOMENT,
        "skills": candidate.skills,
        "facts": candidate.facts,
        "model": model,
    }
    try:
        done = run(Job(_id(key), KIND, key, payload))
        found = Result(session, done.outcome, done.reason, done.changes)
    except TacitError as error:
        found = Result(session, "failed", error.message)
    return msgspec.structs.replace(found, spent=_spent(session, began))


def rehearsed(candidate: Candidate, store: Store, settings: Settings) -> Result:
    """What a look would do. A model is asked, and paid for; nothing is changed or noted."""
    began = datetime.now(UTC)
    stored = candidate.stored
    wanted = _wanted(_id(f"{stored.id}#{new_id(began)}"), candidate)
    found = related(store, stored)
    done = rehearse(store.trace(stored.id), wanted, settings, found)
    would = tuple(
        Would(change.skill, preview.diff, preview.asks[0].reason if preview.asks else "")
        for change, preview in done.ready
    )
    outcome = "would change" if would else done.outcome.word
    return Result(stored.id, outcome, done.outcome.reason, (), _spent(stored.id, began), would)


def _wanted(job: str, candidate: Candidate) -> Wanted:
    return Wanted(job=job, moment=MOMENT, skills=candidate.skills, facts=candidate.facts)


def _id(key: str) -> str:
    from hashlib import sha256

    return f"{KIND}-{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _spent(session: str, began: datetime) -> Spent:
    try:
        entries = spending.listing(began, kind=KIND, key=session)
    except TacitError:
        return Spent()
    return spending.total(entry.spent for entry in entries)
