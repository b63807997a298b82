"""The job `review`: one session, from its digest to what the gate said.

Two steps, so that a kill repeats as little as possible: the conversation changes nothing and gives
the changes that are ready; the landing puts each through the gate under an id of its own. The
outcome is told from what the gate did, not from what the model says. Where there is no model,
drafts are made by counting.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import date
from typing import Literal

import msgspec

from tacit.agent import models
from tacit.agent.tool import Result
from tacit.base import paths
from tacit.base.display import one_line, shorten
from tacit.base.errors import NotFound, TacitError
from tacit.base.job import Job, JobResult, cancelled, step
from tacit.base.prompts import prompt
from tacit.base.secrets import clean, redact
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import Change, Preview, acting_as, bytes_of
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.place import Place, fact_places
from tacit.changes.provenance.deeds import cut_out, sources
from tacit.changes.provenance.witness import Witness
from tacit.learn.background.background_gate import WAITS_FOR_TRIAL, background_gate, places_for
from tacit.learn.background.broker import (
    LIMITS,
    Assignment,
    StagedBroker,
    describe_end,
    limits_from,
    retry_after,
    run_agent,
)
from tacit.learn.background.staging import LandedChange, Staging, land_changes, landed_before
from tacit.learn.background.task import Call, RunReport
from tacit.learn.counted_session import counted_sessions, subject_keys
from tacit.learn.demands import Finding
from tacit.learn.digest import Digest, digest, pages
from tacit.learn.drafts import draft_sessions
from tacit.learn.findings import count_findings
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.review.learned_skill import SkillOrigin, signings
from tacit.learn.review.review_answer import SENT_BACK, AnswerBroker, related_skills
from tacit.learn.review.review_broker import (
    LandingTurn,
    ReviewFacts,
    ReviewJudge,
    ReviewService,
    known_facts,
    reading,
)
from tacit.skills.library import Library, archive_snapshots, archived_entries
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
    said = {text.partition(":")[0] for text in refusals} | {one.skill for one in kept}
    refusals += [text for name, text in _refused_calls(report.calls) if name not in said]
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


_CHANGING = {"write_file": "path", "edit": "path", "remember": "name"}
"""The reviewer's tools that change something, and the argument that says what."""


def _refused_calls(calls: Iterable[Call]) -> list[tuple[str, str]]:
    """What the reviewer wanted to change, was refused at a tool, and did not get done after that.

    The name of the skill or fact, and the refusal of it.
    """
    found: dict[str, str] = {}
    for call in calls:
        if call.name in _CHANGING:
            name = str(call.arguments.get(_CHANGING[call.name], call.name))
            name = shorten(one_line(name.removeprefix("./").partition("/")[0]), 80)
            found.pop(name, None)
            if call.failed:
                found[name] = f"{name}: {shorten(one_line(redact(call.result).text), 300)}"
    return list(found.items())


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
        lines = f"; {one.verdict.notes[0]}" if one.verdict.apart else ""
        return f"{done[0] if one.is_new else done[1]} {name}{lines}"
    why = f" ({one.verdict.refusal.reason})" if one.verdict.refusal else ""
    return f"{name} waits in the inbox{why}"


def _nothing(text: str) -> str:
    """The reviewer's reason for saving nothing, told as its words: they may claim anything."""
    said = shorten(one_line(redact(text).text), _MOST)
    return f'nothing was changed; the reviewer said: "{said}"' if said else "nothing was changed"


def _joined(parts: Iterable[str]) -> str:
    return shorten("; ".join(part for part in parts if part), 2 * _MOST)


TOOLSET = "tacit.learn.review.review_tools:reviewer_tools"
NO_TOOLSET = "tacit.learn.review.review_tools:no_tools"
_NO_TOOLS = re.compile(r"(?i)\btools?\b|\btool[-_ ]?(?:call|choice|use)")
"""In a server's refusal: it is the tools that it does not take."""


class WantedReview(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reviewed, and for what."""

    job: str
    moment: str = "after"
    """`after` a session, or in a `chat` that goes on."""
    skills: bool = True
    facts: bool = False
    since: int = 0
    """The first turn that was not looked at before."""


class ConversationResult(msgspec.Struct, frozen=True):
    """The result of the conversation, before anything landed. It is kept as JSON with the job."""

    report: RunReport = msgspec.field(name="ran")
    ready: tuple[Change, ...] = ()
    facts: tuple[Change, ...] = ()
    refused: tuple[str, ...] = ()
    before: tuple[LandedChange, ...] = ()
    """What this job did before a kill; then nothing was said again."""
    unfinished: tuple[Change, ...] = ()
    """What it had made besides when a limit stopped it; the user is asked about it."""
    origin: SkillOrigin | None = None
    """What is written into a skill when it lands."""


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
    trace: Trace,
    wanted: WantedReview,
    settings: Settings,
    findings: tuple[Finding, ...] = (),
    converse: "Callable[[ReviewWork], ConversationResult] | None" = None,
) -> Reviewed:
    """Review `trace`. The same job twice changes nothing twice.

    `converse` has what was made by other means than a model that is asked here.
    """
    with acting_as("reviewer"), closing(LandingTurn()) as turn:
        work = ReviewWork(trace, wanted, settings, findings, turn)
        held = converse or ReviewWork.run_conversation
        result = _stored_step("converse", lambda: held(work))
        if cancelled():
            return Reviewed(
                ReviewOutcome("failed", "it was cancelled; nothing was changed"), result.report
            )
        landed = [*result.before, *work.land(result)]
        return Reviewed(
            review_outcome(result.report, landed, result.refused), result.report, tuple(landed)
        )


def rehearse_review(
    trace: Trace, wanted: WantedReview, settings: Settings, findings: tuple[Finding, ...] = ()
) -> Rehearsed:
    """What `review` would do. The conversation is held, and paid for; nothing lands."""
    with acting_as("reviewer"), closing(LandingTurn()) as turn:
        work = ReviewWork(trace, wanted, settings, findings, turn)
        result = work.run_conversation()
        changes = (*result.ready, *result.unfinished)
        made = [next(work.signings(change, result.origin)) for change in changes]
        ready = [(change, work.gate.preview(change, part=True)) for change in made]
        ready += [(change, work.fact_gate.preview(change)) for change in result.facts]
        return Rehearsed(
            review_outcome(result.report, (), result.refused), result.report, tuple(ready)
        )


def _stored_step(name: str, function: Callable[[], ConversationResult]) -> ConversationResult:
    """A step of the job, whose result is kept as JSON."""
    made = step(name, lambda: msgspec.json.encode(function()).decode())
    return msgspec.json.decode(made, type=ConversationResult)


class SentBack(Exception):
    """An answer that was refused, with what to mend; it may be given once more."""


class ReviewWork:
    """One review's parts."""

    def __init__(
        self,
        trace: Trace,
        wanted: WantedReview,
        settings: Settings,
        findings: tuple[Finding, ...],
        turn: LandingTurn,
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
        self.turn = turn

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
            choice = models.for_learning(self.settings)
        except TacitError as error:
            return ConversationResult(RunReport(reason="refused", error=error.explain()))
        if review_form(self.settings, choice) == "short":
            return self._hold(choice.name, short=True)
        result = self._hold(choice.name, short=False)
        no_tools = result.report.reason == "refused" and _NO_TOOLS.search(result.report.error)
        if no_tools and not self.settings.learn.form:  # a server says what nobody knew of the model
            return self._hold(choice.name, short=True)
        return result

    def take_answer(self, text: str, by: str, *, is_last: bool) -> ConversationResult:
        """What an answer in the short form makes that was given by hand.

        Raises `SentBack` where something is refused and this is not the last answer.
        """
        self.witness.read("", cut_out(self.trace))  # who answers may have been there
        origin = SkillOrigin(self.trace.id, by, date.today())
        facts = ReviewFacts(self.fact_gate, self.fact_places, origin, self.wanted.job)
        staging = Staging.open(self.wanted.job)
        try:
            broker = self._answer_broker(staging, origin, facts, rounds=0 if is_last else SENT_BACK)
            if told := broker.finished(text):
                raise SentBack(told)
        finally:
            staging.discard()
        return self._result(RunReport(reason="done", model=by), broker, facts, origin)

    def short_prompt(self) -> tuple[str, str]:
        """The instructions and the message of the short form."""
        instructions = short_instructions(self.wanted, self.project)
        summary, library = self._digest(), self._library()
        around = self._surroundings()
        if self.wanted.skills:
            found = related_skills(library, self.trace, summary)
            around += f"\n\nSkills that could be meant:\n\n{found}\n"
        return instructions, review_message(summary, self.wanted, around)

    def _hold(self, model: str, *, short: bool) -> ConversationResult:
        """Ask the model, by conversation or once."""
        origin = SkillOrigin(self.trace.id, model, date.today())
        facts = ReviewFacts(self.fact_gate, self.fact_places, origin, self.wanted.job)
        make = self._answer_broker if short else self._broker
        report, broker = run_agent(
            self._short_assignment() if short else self._assignment(),
            self.settings,
            lambda staging: make(staging, origin, facts),
            keep_unfinished=True,
        )
        return self._result(report, broker, facts, origin)

    def _result(
        self, report: RunReport, broker: StagedBroker, facts: ReviewFacts, origin: SkillOrigin
    ) -> ConversationResult:
        if isinstance(broker, AnswerBroker):
            report = msgspec.structs.replace(report, text=broker.said)
        # What was ready when the reviewer was last done is whole, however it ended after that. So
        # is what it made until a limit of its own stopped it; after a fault it is all done again.
        if not broker.finished_once and report.reason not in LIMITS:
            return ConversationResult(report)
        return ConversationResult(
            report,
            broker.ready,
            facts.changes,
            tuple(dict.fromkeys(found.explain() for found in (*broker.refused, *facts.refused))),
            unfinished=broker.unfinished,
            origin=origin,
        )

    def land(self, result: ConversationResult) -> list[LandedChange]:
        """Put what was made through the gate. Done twice, the second gives what the first did."""
        most = self.settings.learn.most_skills
        # What there is already comes first: a skill that is mended is worth more than one more.
        ready = sorted(result.ready, key=lambda change: not change.base)
        more = f"one review changes {most} skills unasked (learn.most_skills)"
        landed = [self._land(change, result.origin) for change in ready[:most]]
        landed += [self._land(change, result.origin, more) for change in ready[most:]]
        landed += [self._land(change, result.origin, _STOPPED) for change in result.unfinished]
        return landed + land_changes(self.fact_gate, result.facts, "fact")

    def signings(self, change: Change, origin: SkillOrigin | None) -> Iterator[Change]:
        """The change as it is to land: with its origin, on what stands there now."""
        if origin is None:  # kept by a version that wrote it in before
            yield change
            return
        for signed in signings(self.gate, change, origin):
            self.witness.allow(bytes_of(signed.onto))
            yield signed.change

    def _land(self, change: Change, origin: SkillOrigin | None, waits: str = "") -> LandedChange:
        if self.settings.learn.require_trial:
            waits = waits or WAITS_FOR_TRIAL
        for signed in self.signings(change, origin):
            (landed,) = land_changes(self.gate, [signed], waits=waits)
            if not landed.verdict.refused:
                break
        return landed

    def _library(self) -> Library:
        return Library(self.project or self.gate.open_place().place.root, self.settings)

    def _services(
        self, staging: Staging, facts: ReviewFacts
    ) -> dict[str, Callable[..., str | Result]]:
        root = self.gate.open_place().place.root  # where a new skill goes
        service = ReviewService(self.gate, staging, self._library(), pages(self.trace), root)
        remember = {"remember": facts.remember} if self.wanted.facts else {}
        return service.services() | remember | reading(self.project, self.witness)

    def _broker(self, staging: Staging, origin: SkillOrigin, facts: ReviewFacts) -> StagedBroker:
        judge = ReviewJudge(self.gate, staging, self.witness, origin, self.turn)
        return StagedBroker(staging, judge, self._services(staging, facts))

    def _answer_broker(
        self, staging: Staging, origin: SkillOrigin, facts: ReviewFacts, rounds: int = SENT_BACK
    ) -> AnswerBroker:
        judge = ReviewJudge(self.gate, staging, self.witness, origin, self.turn)
        services = self._services(staging, facts)
        return AnswerBroker(
            staging, judge, services, facts, skills=self.wanted.skills, rounds=rounds
        )

    def _digest(self) -> Digest:
        since = self.wanted.since
        part = self.trace.since(since) if since else self.trace
        return digest(part, findings=self.findings)

    def _assignment(self) -> Assignment:
        wanted, learn = self.wanted, self.settings.learn
        turns = learn.chat_turns if wanted.moment == "chat" else learn.turns
        message = review_message(self._digest(), wanted, self._surroundings())
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

    def _short_assignment(self) -> Assignment:
        instructions, message = self.short_prompt()
        held = self._assignment()
        return msgspec.structs.replace(
            held,
            instructions=instructions,
            message=lambda staging: message,
            toolset=NO_TOOLSET,
            limits=msgspec.structs.replace(
                held.limits, turns=min(held.limits.turns, 1 + SENT_BACK)
            ),
        )

    def _surroundings(self) -> str:
        """The project, where a new skill goes, and the names that are taken."""
        place = self.gate.open_place().place
        lines = [f"Project: {self.project or 'none'}."]
        if self.wanted.skills:
            whose = (
                "this project's" if place.scope == "project" else "the user's, for every project"
            )
            lines[0] += f" A new skill will be {whose}."
            library = self._library()
            learned = [e.name for e in library.active() if e.origin == "learned"]
            archived = [e.name for e in archived_entries(archive_snapshots(library))]
            lines += _names("Learned skills, yours to change", learned)
            lines += _names("Archived, not to be made again", archived)
        return clean("\n".join(lines))


def _names(label: str, names: Iterable[str]) -> list[str]:
    known = sorted(set(names))
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return [f"{label}: {', '.join(known[:_NAMED]) or 'none'}{more}."]


def review_instructions(wanted: WantedReview, turns: int, project: str = "") -> str:
    """The system prompt for what is under review: skills, facts, or both."""
    return prompt("learn", "reviewer", parts=_parts(wanted, project), turns=str(turns))


def _parts(wanted: WantedReview, project: str) -> str:
    parts = []
    if wanted.skills:
        parts.append(prompt("learn", "reviewer_skills"))
    if wanted.facts:
        parts.append(prompt("learn", "reviewer_facts", known=known_facts(project)))
    return "\n".join(part.strip() + "\n" for part in parts).strip()


_SKILL_KEYS = (
    '"write_file": [{"path": "NAME/SKILL.md", "content": "…"}]',
    '"edit": [{"path": "NAME/SKILL.md", "old": "…", "new": "…"}]',
)
_FACT_KEYS = (
    '"remember": [{"name": "…", "says": "…", "kind": "user|feedback|project|reference"}]',
)


def short_instructions(wanted: WantedReview, project: str = "") -> str:
    """The system prompt of the short form."""
    keys = (*(_SKILL_KEYS if wanted.skills else ()), *(_FACT_KEYS if wanted.facts else ()))
    parts = _parts(wanted, project)
    return prompt("learn", "reviewer_short", parts=parts, keys=",\n     ".join(keys))


def review_form(settings: Settings, choice: models.ModelChoice) -> Literal["conversation", "short"]:
    """How a model is asked: as the settings say, else by whether it calls tools."""
    if settings.learn.form:
        return settings.learn.form
    return "conversation" if models.calls_tools(choice) else "short"


def review_message(summary: Digest, wanted: WantedReview, surroundings: str = "") -> str:
    """What the reviewer is told first: what it is to look for, where it is, and the digest."""
    both = wanted.skills and wanted.facts
    what = "skills and facts" if both else "skills" if wanted.skills else "facts"
    when = (
        "The chat goes on; review it so far" if wanted.moment == "chat" else "Review this session"
    )
    if wanted.since:
        when += f" from turn {wanted.since} on; what came before was looked at already"
    about = f"{surroundings}\n" if surroundings else ""
    return f"{when}, for {what}.\n{about}\n{summary.text}"


_RELATED = 30
"""Sessions of the same project that are counted over for what recurs."""
_TRIES = 3
_NAMED = 100
"""Skills whose names are told; `search_skills` finds the others."""
_STOPPED = "the review was stopped before it was done"


def run_review(job: Job) -> JobResult:
    """Review the session of `job.payload`. Idempotent, by the job's id."""
    with Store.open() as store:
        stored = _find(store, str(job.payload.get("session", "")))
        trace = store.whole(stored.id)
        model = str(job.payload.get("model", ""))
        flags = {"learn.model": model} if model else {}
        settings = load_settings(trace.project or None, flags).settings
        wanted = WantedReview(
            job=job.id,
            moment=str(job.payload.get("moment", "after")),
            skills=bool(job.payload.get("skills", True)),
            facts=bool(job.payload.get("facts", False)) and settings.memory.use,
            since=int(job.payload.get("since", 0)),
        )
        done = review(trace, wanted, settings, related_findings(store, stored))
        if done.report.reason == "refused" and not done.landed and wanted.skills:
            return _without_model(store, stored, done)
        return record_review(store, stored, done, job)


def related_findings(store: Store, stored: Stored) -> tuple[Finding, ...]:
    """What counting over the project's latest sessions gives that this one is part of."""
    subjects = subject_keys(stored.head)
    others = [s for s in store.sessions(limit=200) if subject_keys(s.head) & subjects]
    chosen = {s.id: s for s in [stored, *others[:_RELATED]]}
    found = count_findings(counted_sessions(store, chosen))
    return tuple(f for f in found if stored.id in f.sessions and len(f.sessions) > 1)


def record_review(store: Store, stored: Stored, done: Reviewed, job: Job) -> JobResult:
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
