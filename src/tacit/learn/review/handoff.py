"""Reviews that are handed over to an agent that the user is talking to.

`tacit learn --handoff` records them in the ledger, where they wait. An agent takes the next one,
reads the message of the short form and answers; what it made is judged and lands as a reviewer's
does, with the session as its witness, whatever else that agent has read. A review is taken under an
id. One that is left for `CLAIM_MINUTES` may be taken by another, under another id, and the first
cannot answer any more. What an answer made is kept with the job before it lands, so that a kill
loses nothing and repeats nothing.
"""

import os
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import locked
from tacit.base.display import one_line, shorten
from tacit.base.errors import NotFound
from tacit.base.job import Job, JobResult, controlled_by
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import acting_as, new_change_id
from tacit.learn.ledger import REVIEW, DecidedJob, Ledger
from tacit.learn.review.review_answer import SENT_BACK
from tacit.learn.review.review_broker import LandingTurn
from tacit.learn.review.review_job import (
    ConversationResult,
    ReviewWork,
    SentBack,
    WantedReview,
    record_review,
    related_findings,
    review,
)
from tacit.learn.review.review_triggers import ReviewCandidate, review_request
from tacit.traces.store import Store, Stored
from tacit.traces.trace import Trace

HANDOFF = "handoff"
"""The kind of these jobs. No queue knows it: they wait for an agent, not for a worker."""
CLAIM_MINUTES = 30
"""Minutes after which a review that was taken and not answered is given to whoever asks."""
_LONGEST_WAIT = 120.0
_TRIES, _STEPS = "tries", "steps"
"""Keys of a job's payload: answers that were sent back, and results of steps that are kept."""


class HandedReview(msgspec.Struct, frozen=True):
    """A review as an agent is given it."""

    id: str
    """Under which it is answered."""
    session: str
    title: str
    prompt: str
    left: int
    """How many more wait."""


class HandoffResult(msgspec.Struct, frozen=True):
    """What came of an answer."""

    session: str
    outcome: str
    """As of any review; `sent back` where it is to be answered once more."""
    reason: str
    changes: tuple[str, ...] = ()
    left: int = 0


def hand_over(store: Store, candidates: Iterable[ReviewCandidate]) -> int:
    """Record a review of each session for an agent; how many wait now."""
    now = datetime.now(UTC)
    jobs = []
    for candidate in candidates:
        session = candidate.stored.id
        key, payload = review_request(session, candidate.decision, new_change_id(now))
        jobs.append(DecidedJob(HANDOFF, key, payload, session))
    ledger = Ledger(store.connection)
    ledger.hand_over(jobs)
    return len(waiting(ledger))


def waiting(ledger: Ledger) -> list[DecidedJob]:
    """The reviews that were handed over and are not answered, the oldest first."""
    return [job for job in ledger.open_jobs() if job.kind == HANDOFF]


def take_next(
    store: Store,
    *,
    is_wanted: Callable[[Stored], bool] = lambda stored: True,
    now: datetime | None = None,
) -> HandedReview | None:
    """Take the next review, which is nobody else's from now on; None where none is free.

    `is_wanted` chooses among them by their sessions. One whose answer was judged before a kill is
    brought to its end first. One that is not wanted any more is closed: its session is gone, or was
    reviewed meanwhile.
    """
    ledger = Ledger(store.connection)
    lapsed = (now or datetime.now(UTC)) - timedelta(minutes=CLAIM_MINUTES)
    for job in ledger.claimable(HANDOFF, lapsed):
        stored = _wanted_session(store, ledger, job)
        if stored is None:
            ledger.close_job(HANDOFF, job.key)
            continue
        claim = secrets.token_hex(4)
        if not is_wanted(stored) or not ledger.claim(job, claim, lapsed):
            continue
        if job.payload.get(_STEPS):
            answer_review(store, claim, "")
        else:
            prompt = _prompt(store, stored, job)
            left = len(waiting(ledger)) - 1
            return HandedReview(claim, stored.id, one_line(stored.head.title), prompt, left)
    return None


def answer_review(
    store: Store,
    claim: str,
    text: str,
    *,
    by: str = "",
    is_wanted: Callable[[Stored], bool] = lambda stored: True,
) -> HandoffResult:
    """Have an answer judged and land. Raises `NotFound` where `claim` has no review, or one of a
    session that `is_wanted` does not choose."""
    path = os.path.join(paths.folders().data, "handoff.lock")
    with locked(path, seconds=_LONGEST_WAIT, what="the answer to another hand-over"):
        ledger = Ledger(store.connection)
        job = ledger.renew(HANDOFF, claim)
        stored = _wanted_session(store, ledger, job) if job else None
        if job is None or (stored is not None and not is_wanted(stored)):
            raise NotFound(
                f"no review is taken as '{shorten(one_line(claim), 40)}': it was answered already,"
                f" or left for over {CLAIM_MINUTES} minutes and then given to another agent",
                "take the next one: tacit handoff next",
            )
        if stored is None:
            ledger.close_job(HANDOFF, job.key)
            raise NotFound(
                f"{one_line(job.session)} is gone, or was reviewed meanwhile",
                "take the next one: tacit handoff next",
            )
        done = _judge(store, ledger, stored, job, _converse(job, text, by))
        left = len(waiting(ledger))
        return HandoffResult(stored.id, done.outcome, done.reason, done.changes, left)


def drop_all(store: Store) -> int:
    """Close all that wait; how many they were."""
    ledger = Ledger(store.connection)
    jobs = waiting(ledger)
    for job in jobs:
        ledger.close_job(HANDOFF, job.key)
    return len(jobs)


def _converse(job: DecidedJob, text: str, by: str) -> Callable[[ReviewWork], ConversationResult]:
    is_last = int(job.payload.get(_TRIES, 0)) >= SENT_BACK
    model = f"{HANDOFF}:{shorten(one_line(by), 60) or 'agent'}"
    return lambda work: work.take_answer(text, model, is_last=is_last)


def _judge(
    store: Store,
    ledger: Ledger,
    stored: Stored,
    job: DecidedJob,
    converse: Callable[[ReviewWork], ConversationResult],
) -> JobResult:
    trace, wanted, settings = _parts(store, stored, job)
    try:
        with controlled_by(_KeptSteps(ledger, job)):
            done = review(trace, wanted, settings, related_findings(store, stored), converse)
    except SentBack as back:
        tries = int(job.payload.get(_TRIES, 0)) + 1
        ledger.keep_payload(HANDOFF, job.key, job.payload | {_TRIES: tries})
        return JobResult("sent back", str(back))
    result = record_review(store, stored, done, Job(job.id, HANDOFF, job.key, job.payload))
    ledger.close_job(HANDOFF, job.key)
    return result


class _KeptSteps:
    """Keeps the results of a job's steps in the ledger, as the engine does for a queue's."""

    def __init__(self, ledger: Ledger, job: DecidedJob) -> None:
        self._ledger = ledger
        self._job = job
        self._kept: dict[str, Any] = dict(job.payload.get(_STEPS, {}))

    def cancelled(self) -> bool:
        return False

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        if name not in self._kept:
            self._kept[name] = function()
            payload = self._job.payload | {_STEPS: self._kept}
            self._ledger.keep_payload(HANDOFF, self._job.key, payload)
        return self._kept[name]


def _prompt(store: Store, stored: Stored, job: DecidedJob) -> str:
    trace, wanted, settings = _parts(store, stored, job)
    with acting_as("reviewer"):
        work = ReviewWork(trace, wanted, settings, related_findings(store, stored), LandingTurn())
        return "\n\n".join(part.strip() for part in work.short_prompt())


def _parts(store: Store, stored: Stored, job: DecidedJob) -> tuple[Trace, WantedReview, Settings]:
    """The session, what is wanted of it, and the settings that hold in its project."""
    trace = store.whole(stored.id)
    settings = load_settings(trace.project or None).settings
    wanted = WantedReview(
        job=job.id,
        moment="hand",
        skills=bool(job.payload.get("skills", True)),
        facts=bool(job.payload.get("facts", False)) and settings.memory.use,
    )
    return trace, wanted, settings


def _wanted_session(store: Store, ledger: Ledger, job: DecidedJob) -> Stored | None:
    """The session of a review that is still wanted."""
    try:
        stored = store.find(job.session)
    except NotFound:
        return None
    later = [r for r in ledger.of(stored.id) if r.method == REVIEW and r.at > job.at]
    return None if any(r.outcome != "failed" for r in later) else stored
