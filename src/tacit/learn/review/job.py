"""The job: one session, reviewed once. What the queue calls, and what it hands back."""

from tacit.base.errors import NotFound
from tacit.base.job import Done, Job
from tacit.base.settings import load
from tacit.learn.counting import Finding, findings
from tacit.learn.distil import distil
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.review.reviewing import Reviewed, Wanted, review
from tacit.traces.hosts import registry
from tacit.traces.store import Store, Stored

OWN = "tacit"
"""Our own chat, among the hosts: its sessions are read while they go on."""
_RELATED = 30
"""Sessions of the same project that are counted over for what recurs."""
_TRIES = 3


def run(job: Job) -> Done:
    """Review the session of `job.payload`. Twice is the same as once, by the job's id."""
    with Store.open() as store:
        stored = _find(store, str(job.payload.get("session", "")))
        trace = store.trace(stored.id)
        model = str(job.payload.get("model", ""))
        flags = {"agent.background": model} if model else {}
        settings = load(trace.project or None, flags).settings
        wanted = Wanted(
            job=job.id,
            moment=str(job.payload.get("moment", "after")),
            skills=bool(job.payload.get("skills", True)),
            facts=bool(job.payload.get("facts", False)) and settings.memory.use,
        )
        done = review(trace, wanted, settings, related(store, stored))
        if done.ran.reason == "refused" and not done.landed and wanted.skills:
            return _without_model(store, stored, done)
        return _record(store, stored, done, job)


def related(store: Store, stored: Stored) -> tuple[Finding, ...]:
    """What counting over the project's latest sessions gives that this one is part of."""
    others = [s for s in store.sessions(limit=200) if s.head.project == stored.head.project]
    chosen = {s.id: s for s in [stored, *others[:_RELATED]]}
    found = findings(store.trace(name) for name in chosen)
    return tuple(f for f in found if stored.id in f.sessions and (f.steps or len(f.sessions) > 1))


def _record(store: Store, stored: Stored, done: Reviewed, job: Job) -> Done:
    """Tell the ledger, and hand back what came of it."""
    result = done.outcome
    Ledger(store.connection).record(stored, REVIEW, result.word, result.reason, result.changes)
    again = result.again if job.attempt < _TRIES or done.ran.reason == "budget" else 0.0
    return Done(result.word, result.reason, result.changes, later=again)


def _without_model(store: Store, stored: Stored, done: Reviewed) -> Done:
    """Where there is no model, what can be drafted by counting; it waits in the inbox.

    Noted is that it was counted over, not that it was reviewed: a model may still look at it.
    """
    drafts = distil(store, Ledger(store.connection), [stored])
    kept = [d for d in drafts if d.verdict is not None and not d.verdict.refused]
    why = done.outcome.reason
    if not kept:
        return Done("nothing", f"counting found nothing to draft; {why}")
    changes = tuple(d.verdict.change for d in kept if d.verdict is not None)
    names = ", ".join(d.draft.name for d in kept)
    return Done("proposed", f"drafts in the inbox, made by counting: {names}; {why}", changes)


def _find(store: Store, name: str) -> Stored:
    """The session, as it stands now: one of our own chat may have gone on since it was stored."""
    host, _, session = name.partition(":")
    if host == OWN:
        reader = registry.get(OWN)
        for source in reader.find():
            if source.path.endswith(f"/{session}.jsonl"):
                store.take_in(reader, source)
    if not name:
        raise NotFound("the job names no session", "see: tacit jobs")
    return store.find(name)
