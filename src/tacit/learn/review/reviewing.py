"""A review from its beginning to its end: digest, closed room, gate.

Two steps, so that a kill repeats as little as can be. The conversation changes nothing, and gives
the changes that are ready; the landing puts them through the gate, each under an id of its own.
"""

import os
from collections.abc import Callable
from datetime import date

import msgspec

from tacit.agent.limits import Limits
from tacit.base import paths, trust
from tacit.base.errors import TacitError
from tacit.base.job import cancelled, step
from tacit.base.sections import Settings
from tacit.changes.actor import acting_as
from tacit.changes.change import Change, Preview
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.place import Place, fact_places, places_here, project_place, user_place
from tacit.learn.approving import gate_for
from tacit.learn.background import model as background_model
from tacit.learn.background import room
from tacit.learn.background.staging import Staging
from tacit.learn.background.task import Ran, Task
from tacit.learn.counting import Finding
from tacit.learn.digest import Digest, digest
from tacit.learn.pages import pages
from tacit.learn.prompts import prompt
from tacit.learn.provenance.check import Witness
from tacit.learn.provenance.sources import sources
from tacit.learn.review.broker import Reviewer
from tacit.learn.review.facts import Facts, known
from tacit.learn.review.landing import Landed, earlier, land
from tacit.learn.review.marks import Origin
from tacit.learn.review.outcome import Outcome, outcome
from tacit.learn.review.serving import Serving
from tacit.skills.library import Library
from tacit.traces.trace import Trace

TOOLSET = "tacit.learn.review.tools:tools"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reviewed, and for what."""

    job: str
    moment: str = "after"
    """`after` a session, or in a `chat` that goes on."""
    skills: bool = True
    facts: bool = False


class Conversed(msgspec.Struct, frozen=True):
    """What the conversation gave."""

    ran: Ran
    ready: tuple[Change, ...] = ()
    facts: tuple[Change, ...] = ()
    refused: tuple[str, ...] = ()
    before: tuple[Landed, ...] = ()
    """What this job did before a kill; then nothing was said again."""


class Reviewed(msgspec.Struct, frozen=True):
    """A review that is over."""

    outcome: Outcome
    ran: Ran
    landed: tuple[Landed, ...] = ()


class Rehearsed(msgspec.Struct, frozen=True):
    """A review of which nothing landed."""

    outcome: Outcome
    ran: Ran
    ready: tuple[tuple[Change, Preview], ...] = ()


def review(
    trace: Trace, wanted: Wanted, settings: Settings, findings: tuple[Finding, ...] = ()
) -> Reviewed:
    """Review `trace`. The same job twice changes nothing twice."""
    with acting_as("reviewer"):
        work = _Work(trace, wanted, settings, findings)
        talked = _kept("converse", work.converse)
        if cancelled():
            return Reviewed(Outcome("failed", "it was cancelled; nothing was changed"), talked.ran)
        landed = [*talked.before, *land(work.gate, talked.ready)]
        if talked.facts:
            landed += land(work.fact_gate, talked.facts, "fact")
        return Reviewed(outcome(talked.ran, landed, talked.refused), talked.ran, tuple(landed))


def rehearse(
    trace: Trace, wanted: Wanted, settings: Settings, findings: tuple[Finding, ...] = ()
) -> Rehearsed:
    """What `review` would do. The conversation is held, and paid for; nothing lands."""
    with acting_as("reviewer"):
        work = _Work(trace, wanted, settings, findings)
        talked = work.converse()
        ready = [(change, work.gate.preview(change)) for change in talked.ready]
        ready += [(change, work.fact_gate.preview(change)) for change in talked.facts]
        return Rehearsed(outcome(talked.ran, (), talked.refused), talked.ran, tuple(ready))


def _kept(name: str, function: Callable[[], Conversed]) -> Conversed:
    """A step of the job, whose result is kept as JSON."""
    made = step(name, lambda: msgspec.json.encode(function()).decode())
    return msgspec.json.decode(made, type=Conversed)


class _Work:
    """One review's parts."""

    def __init__(
        self, trace: Trace, wanted: Wanted, settings: Settings, findings: tuple[Finding, ...]
    ) -> None:
        self.trace = trace
        self.wanted = wanted
        self.settings = settings
        self.findings = findings
        self.project = trace.project if os.path.isdir(trace.project or "") else ""
        self.witness = Witness(sources(trace))
        self.place = target(self.project)
        self.gate: Gate = gate_for(
            _places(self.place, self.project),
            settings,
            neighbours=LibraryNeighbours(self.project or None),
            scanner=self.witness,
        )
        self.fact_places = fact_places(self.project or paths.user_home())
        self.fact_gate: Gate = gate_for(
            self.fact_places,
            settings,
            facts=True,
            neighbours=LibraryNeighbours(self.project or None),
            scanner=self.witness,
        )

    def converse(self) -> Conversed:
        """Have the conversation, unless history or inbox show that this job had it already."""
        job = self.wanted.job
        if before := [*earlier(self.gate, job), *earlier(self.fact_gate, job, "fact")]:
            return Conversed(Ran(reason="done"), before=tuple(before))
        try:
            name = background_model.choose(self.settings.agent).name
        except TacitError as error:
            told = f"{error.message}; {error.hint}"
            return Conversed(Ran(reason="refused", error=told))
        staging = Staging.open(self.wanted.job)
        try:
            origin = Origin(self.trace.id, name, date.today())
            facts = Facts(self.fact_gate, self.fact_places, self.witness, origin, job)
            broker = self._broker(staging, origin, facts)
            ran = room.run(self._task(staging), broker, self.settings)
        finally:
            staging.discard()
        # What was ready when the reviewer was last done is whole, however it ended after that.
        if not broker.finished_once:
            return Conversed(ran)
        refused = tuple(found.explain() for found in broker.refused)
        return Conversed(ran, broker.ready, facts.changes, refused)

    def _broker(self, staging: Staging, origin: Origin, facts: Facts) -> Reviewer:
        library = Library(self.project or self.place.root, self.settings)
        serving = Serving(self.gate, staging, library, pages(self.trace), self.place.root)
        if self.wanted.facts:
            serving.add("remember", facts.remember)
        return Reviewer(
            self.gate, staging, serving, self.witness, origin,
            root=self.place.root, job=self.wanted.job,
        )  # fmt: skip

    def _task(self, staging: Staging) -> Task:
        wanted, learn = self.wanted, self.settings.learn
        turns = learn.chat_turns if wanted.moment == "chat" else learn.turns
        limits = Limits(
            turns, learn.seconds, learn.tokens, learn.money, self.settings.agent.retries
        )
        return Task(
            job=wanted.job,
            kind="review",
            actor="reviewer",
            session=self.trace.id,
            project=self.project,
            staging=staging.path,
            instructions=instructions(wanted, turns, self.project),
            message=message(digest(self.trace, findings=self.findings), wanted),
            toolset=TOOLSET,
            data={"skills": wanted.skills, "facts": wanted.facts},
            limits=limits,
        )


def instructions(wanted: Wanted, turns: int, project: str = "") -> str:
    """The system prompt for what is under review: skills, facts, or both."""
    parts = []
    if wanted.skills:
        parts.append(prompt("reviewer_skills"))
    if wanted.facts:
        parts.append(prompt("reviewer_facts", known=known(project)))
    text = "\n".join(part.strip() + "\n" for part in parts)
    return prompt("reviewer", parts=text.strip(), turns=str(turns))


def message(told: Digest, wanted: Wanted) -> str:
    """What the reviewer is told first: the digest, and what it is to look for."""
    both = wanted.skills and wanted.facts
    what = "skills and facts" if both else "skills" if wanted.skills else "facts"
    when = (
        "The chat goes on; review it so far" if wanted.moment == "chat" else "Review this session"
    )
    return f"{when}, for {what}.\n\n{told.text}"


def target(project: str) -> Place:
    """Where a new skill goes: the project, where the user trusts it, else with the user."""
    if project and trust.is_trusted(project):
        return project_place(project)
    return user_place()


def _places(place: Place, project: str) -> list[Place]:
    every = [place, user_place(), *places_here(project or None)]
    return list({p.real: p for p in every}.values())
