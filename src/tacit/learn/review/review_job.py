"""The job `review`: one session, from its digest to what the gate said.

Two steps, so that a kill repeats as little as possible: the conversation changes nothing and gives
the changes that are ready; the landing puts each through the gate under an id of its own. The
outcome is told from what the gate did, not from what the model says. Where there is no model,
drafts are made by counting.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Literal

import msgspec

from tacit.agent import models
from tacit.base import paths
from tacit.base.display import one_line, shorten
from tacit.base.errors import NotFound, TacitError
from tacit.base.job import Job, JobResult, cancelled, step
from tacit.base.prompts import prompt
from tacit.base.secrets import redact
from tacit.base.settings import Settings, load_settings
from tacit.changes.change import Change, Preview, acting_as
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.place import Place, fact_places
from tacit.learn.background.background_gate import background_gate, places_for
from tacit.learn.background.broker import (
    Assignment,
    StagedBroker,
    describe_end,
    limits_from,
    retry_after,
    run_agent,
)
from tacit.learn.background.staging import LandedChange, Staging, land_changes, landed_before
from tacit.learn.background.task import RunReport
from tacit.learn.digest import Digest, digest, pages
from tacit.learn.drafts import draft_sessions
from tacit.learn.findings import Finding, count_findings
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.provenance.witness import Witness, sources
from tacit.learn.review.learned_skill import SkillOrigin
from tacit.learn.review.review_broker import ReviewFacts, ReviewJudge, ReviewService, known_facts
from tacit.skills.library import Library
from tacit.traces.store import Store, Stored
from tacit.traces.trace import OWN_HOST, Trace

OutcomeWord = Literal["created", "edited", "proposed", "applied", "nothing", "refused", "failed"]
_MOST = 600


class ReviewOutcome(msgspec.Struct, frozen=True):
    """The end of a review."""

    word: OutcomeWord
    reason: str
    changes: tuple[str, ...] = ()
    again: float = 0.0
    """Seconds after which it is worth another try; 0 for never."""


def review_outcome(
    report: RunReport, landed: Iterable[LandedChange], refused: Iterable[str] = ()
) -> ReviewOutcome:
    """What a review led to: changes first, then refusals, then why there was nothing."""
    landed = list(landed)
    kept = [one for one in landed if not one.verdict.refused]
    refusals = [
        *refused,
        *(f"{o.skill}: {o.verdict.explain()}" for o in landed if o.verdict.refused),
    ]
    how = describe_end(report)
    if kept:
        changes = tuple(one.verdict.change for one in kept)
        parts = [_phrase(one) for one in kept]
        parts += [f"refused: {text}" for text in refusals]
        return ReviewOutcome(_word(kept), _joined([*parts, how]), changes)
    if report.reason == "budget" and not report.day:
        return ReviewOutcome("failed", report.error, again=retry_after(report))
    if again := retry_after(report):
        return ReviewOutcome(
            "failed", _joined([how, *refusals, "nothing was changed"]), again=again
        )
    if refusals:
        return ReviewOutcome("refused", _joined([*refusals, how]))
    if how:
        return ReviewOutcome("failed", _joined([how, "nothing was changed"]))
    return ReviewOutcome("nothing", _nothing(report.text))


def _word(kept: list[LandedChange]) -> OutcomeWord:
    done = [one for one in kept if one.verdict.applied]
    if not done:
        return "proposed"
    skills = [one for one in done if one.what == "skill"]
    if not skills:
        return "applied"
    return "created" if any(one.is_new for one in skills) else "edited"


def _phrase(one: LandedChange) -> str:
    name = one.skill if one.what == "skill" else f"{one.what} {one.skill}"
    if one.verdict.applied:
        done = ("created", "edited") if one.what == "skill" else ("noted the", "replaced the")
        return f"{done[0] if one.is_new else done[1]} {name}"
    why = f" ({one.verdict.refusal.reason})" if one.verdict.refusal else ""
    return f"{name} waits in the inbox{why}"


def _nothing(text: str) -> str:
    """The reviewer's reason for saving nothing, told as its words: they may claim anything."""
    said = shorten(one_line(redact(text).text), _MOST)
    return f'nothing was changed; the reviewer said: "{said}"' if said else "nothing was changed"


def _joined(parts: Iterable[str]) -> str:
    return shorten("; ".join(part for part in parts if part), 2 * _MOST)


TOOLSET = "tacit.learn.review.review_tools:reviewer_tools"


class WantedReview(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reviewed, and for what."""

    job: str
    moment: str = "after"
    """`after` a session, or in a `chat` that goes on."""
    skills: bool = True
    facts: bool = False


class ConversationResult(msgspec.Struct, frozen=True):
    """The result of the conversation, before anything landed. It is kept as JSON with the job."""

    report: RunReport = msgspec.field(name="ran")
    ready: tuple[Change, ...] = ()
    facts: tuple[Change, ...] = ()
    refused: tuple[str, ...] = ()
    before: tuple[LandedChange, ...] = ()
    """What this job did before a kill; then nothing was said again."""


class Reviewed(msgspec.Struct, frozen=True):
    """A review that is over."""

    outcome: ReviewOutcome
    report: RunReport
    landed: tuple[LandedChange, ...] = ()


class Rehearsed(msgspec.Struct, frozen=True):
    """A review of which nothing landed."""

    outcome: ReviewOutcome
    report: RunReport
    ready: tuple[tuple[Change, Preview], ...] = ()


def review(
    trace: Trace, wanted: WantedReview, settings: Settings, findings: tuple[Finding, ...] = ()
) -> Reviewed:
    """Review `trace`. The same job twice changes nothing twice."""
    with acting_as("reviewer"):
        work = _Work(trace, wanted, settings, findings)
        result = _stored_step("converse", work.run_conversation)
        if cancelled():
            return Reviewed(
                ReviewOutcome("failed", "it was cancelled; nothing was changed"), result.report
            )
        landed = [*result.before, *land_changes(work.gate, result.ready)]
        if result.facts:
            landed += land_changes(work.fact_gate, result.facts, "fact")
        return Reviewed(
            review_outcome(result.report, landed, result.refused), result.report, tuple(landed)
        )


def rehearse_review(
    trace: Trace, wanted: WantedReview, settings: Settings, findings: tuple[Finding, ...] = ()
) -> Rehearsed:
    """What `review` would do. The conversation is held, and paid for; nothing lands."""
    with acting_as("reviewer"):
        work = _Work(trace, wanted, settings, findings)
        result = work.run_conversation()
        ready = [(change, work.gate.preview(change)) for change in result.ready]
        ready += [(change, work.fact_gate.preview(change)) for change in result.facts]
        return Rehearsed(
            review_outcome(result.report, (), result.refused), result.report, tuple(ready)
        )


def _stored_step(name: str, function: Callable[[], ConversationResult]) -> ConversationResult:
    """A step of the job, whose result is kept as JSON."""
    made = step(name, lambda: msgspec.json.encode(function()).decode())
    return msgspec.json.decode(made, type=ConversationResult)


class _Work:
    """One review's parts."""

    def __init__(
        self, trace: Trace, wanted: WantedReview, settings: Settings, findings: tuple[Finding, ...]
    ) -> None:
        self.trace = trace
        self.wanted = wanted
        self.settings = settings
        self.findings = findings
        self.project = paths.existing_folder(trace.project)
        self.witness = Witness(sources(trace))
        self.fact_places = fact_places(self.project or paths.user_home())
        self.gate = self._gate(places_for(self.project))
        self.fact_gate = self._gate(self.fact_places)

    def _gate(self, places: Sequence[Place]) -> Gate:
        return background_gate(
            "reviewer",
            places,
            self.settings,
            neighbours=LibraryNeighbours(self.project or None),
            scanner=self.witness,
        )

    def run_conversation(self) -> ConversationResult:
        """Have the conversation, unless history or inbox show that this job had it already."""
        job = self.wanted.job
        if before := [*landed_before(self.gate, job), *landed_before(self.fact_gate, job, "fact")]:
            return ConversationResult(RunReport(reason="done"), before=tuple(before))
        try:
            name = models.require(self.settings.agent, background=True).name
        except TacitError as error:
            return ConversationResult(RunReport(reason="refused", error=error.explain()))
        origin = SkillOrigin(self.trace.id, name, date.today())
        facts = ReviewFacts(self.fact_gate, self.fact_places, self.witness, origin, job)
        report, broker = run_agent(
            self._assignment(), self.settings, lambda staging: self._broker(staging, origin, facts)
        )
        # What was ready when the reviewer was last done is whole, however it ended after that.
        if not broker.finished_once:
            return ConversationResult(report)
        refused = tuple(found.explain() for found in broker.refused)
        return ConversationResult(report, broker.ready, facts.changes, refused)

    def _broker(self, staging: Staging, origin: SkillOrigin, facts: ReviewFacts) -> StagedBroker:
        root = self.gate.open_place().place.root  # where a new skill goes
        library = Library(self.project or root, self.settings)
        services = ReviewService(self.gate, staging, library, pages(self.trace), root).services()
        if self.wanted.facts:
            services["remember"] = facts.remember
        judge = ReviewJudge(self.gate, self.witness, origin, root, self.wanted.job)
        return StagedBroker(staging, judge, services)

    def _assignment(self) -> Assignment:
        wanted, learn = self.wanted, self.settings.learn
        turns = learn.chat_turns if wanted.moment == "chat" else learn.turns
        message = review_message(digest(self.trace, findings=self.findings), wanted)
        return Assignment(
            job=wanted.job,
            kind="review",
            actor="reviewer",
            session=self.trace.id,
            project=self.project,
            instructions=review_instructions(wanted, turns, self.project),
            message=lambda staging: message,
            toolset=TOOLSET,
            data={"skills": wanted.skills, "facts": wanted.facts},
            limits=limits_from(learn, self.settings, turns=turns),
        )


def review_instructions(wanted: WantedReview, turns: int, project: str = "") -> str:
    """The system prompt for what is under review: skills, facts, or both."""
    parts = []
    if wanted.skills:
        parts.append(prompt("learn", "reviewer_skills"))
    if wanted.facts:
        parts.append(prompt("learn", "reviewer_facts", known=known_facts(project)))
    text = "\n".join(part.strip() + "\n" for part in parts)
    return prompt("learn", "reviewer", parts=text.strip(), turns=str(turns))


def review_message(summary: Digest, wanted: WantedReview) -> str:
    """What the reviewer is told first: the digest, and what it is to look for."""
    both = wanted.skills and wanted.facts
    what = "skills and facts" if both else "skills" if wanted.skills else "facts"
    when = (
        "The chat goes on; review it so far" if wanted.moment == "chat" else "Review this session"
    )
    return f"{when}, for {what}.\n\n{summary.text}"


_RELATED = 30
"""Sessions of the same project that are counted over for what recurs."""
_TRIES = 3


def run_review(job: Job) -> JobResult:
    """Review the session of `job.payload`. Idempotent, by the job's id."""
    with Store.open() as store:
        stored = _find(store, str(job.payload.get("session", "")))
        trace = store.trace(stored.id)
        model = str(job.payload.get("model", ""))
        flags = {"agent.background": model} if model else {}
        settings = load_settings(trace.project or None, flags).settings
        wanted = WantedReview(
            job=job.id,
            moment=str(job.payload.get("moment", "after")),
            skills=bool(job.payload.get("skills", True)),
            facts=bool(job.payload.get("facts", False)) and settings.memory.use,
        )
        done = review(trace, wanted, settings, related_findings(store, stored))
        if done.report.reason == "refused" and not done.landed and wanted.skills:
            return _without_model(store, stored, done)
        return _record(store, stored, done, job)


def related_findings(store: Store, stored: Stored) -> tuple[Finding, ...]:
    """What counting over the project's latest sessions gives that this one is part of."""
    others = [s for s in store.sessions(limit=200) if s.head.project == stored.head.project]
    chosen = {s.id: s for s in [stored, *others[:_RELATED]]}
    found = count_findings(store.trace(name) for name in chosen)
    return tuple(f for f in found if stored.id in f.sessions and len(f.sessions) > 1)


def _record(store: Store, stored: Stored, done: Reviewed, job: Job) -> JobResult:
    """Write the outcome into the ledger, and hand it back."""
    result = done.outcome
    Ledger(store.connection).record(stored, REVIEW, result.word, result.reason, result.changes)
    again = result.again if job.attempt < _TRIES or done.report.reason == "budget" else 0.0
    return JobResult(result.word, result.reason, result.changes, later=again)


def _without_model(store: Store, stored: Stored, done: Reviewed) -> JobResult:
    """Where there is no model, what can be drafted by counting; it waits in the inbox.

    The ledger says that it was counted, not that it was reviewed: a model may still review it.
    """
    drafts = draft_sessions(store, Ledger(store.connection), [stored])
    kept = [d for d in drafts if d.verdict is not None and not d.verdict.refused]
    why = done.outcome.reason
    if not kept:
        return JobResult("nothing", f"counting found nothing to draft; {why}")
    changes = tuple(d.verdict.change for d in kept if d.verdict is not None)
    names = ", ".join(d.draft.name for d in kept)
    return JobResult("proposed", f"drafts in the inbox, made by counting: {names}; {why}", changes)


def _find(store: Store, name: str) -> Stored:
    """The session, as it stands now: one of our own chat may have gone on since it was stored."""
    host, _, session = name.partition(":")
    if host == OWN_HOST:
        store.take_in_own(session)
    if not name:
        raise NotFound("the job names no session", "see: tacit jobs")
    return store.find(name)
