"""The job `curate`: a model is asked about new look-alikes, then the rules archive.

The agent works on copies and says what is to be joined; when it is done, its plan is carried out
on a copy of the library, and what the gate refuses there goes back to it. Then the plan lands, or
waits for the user's word, as the settings say. Each cluster is examined once for the versions that
its skills have. The job consolidates first, then archives by the rules (`curation`).
"""

import os
from typing import Any

import msgspec

from tacit.agent.budget import Limits
from tacit.agent.tool import Failed, Result
from tacit.base import paths
from tacit.base.atomic_files import locked
from tacit.base.job import Job, JobResult
from tacit.base.prompts import prompt
from tacit.base.settings import Settings, load_settings
from tacit.changes.change import SKILL_FILE, bytes_of, executable_paths, new_change_id
from tacit.changes.gate import Gate
from tacit.learn.background import child_process
from tacit.learn.background.background_gate import current_approval
from tacit.learn.background.staging import EditedSkill, Staging
from tacit.learn.background.task import Ran, Task
from tacit.learn.curate.consolidation import (
    Consolidation,
    ConsolidationResult,
    Umbrella,
    carry_out,
    consolidation_gate,
    rehearse_consolidation,
)
from tacit.learn.curate.curation import WAIT_SECONDS, CurationReport, curate, write_report
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curation_scope import CurationScope, default_scope
from tacit.learn.curate.curation_status import curation_due
from tacit.learn.curate.library_survey import Cluster, SurveyedSkill, clusters, survey
from tacit.learn.use_records import ensure_use_tables
from tacit.traces.store import Store

_TRIES = 3
"""Times that a refusal goes back to the agent."""
_MOST_SHOWN = 24_000
"""Characters of the skills' own text in the first message; the rest is read by a tool."""


class ClusterAnswer(msgspec.Struct, frozen=True):
    """What came of asking about a cluster."""

    plan: Consolidation | None
    rehearsed: ConsolidationResult | None
    """What the plan came to on a copy."""
    why: str
    """What is to be said about it."""
    later: bool
    """Whether it was not looked at, for want of a model, an answer or money."""


def ask_about_cluster(
    world: CurationScope, settings: Settings, cluster: Cluster, found: list[SurveyedSkill]
) -> ClusterAnswer:
    """Have an agent look at a cluster."""
    job = f"consolidate-{cluster.key}"
    staging = Staging.open(job, data=world.data)
    try:
        broker = _ConsolidationBroker(world, cluster, staging)
        task = Task(
            job=job,
            kind="curate",
            actor="curator",
            project=next((r.project for p, r in world.pairs if r.id == cluster.place), ""),
            staging=staging.path,
            instructions=prompt("learn", "umbrella"),
            message=_message(cluster, staging, found),
            toolset="tacit.learn.background.toolset:consolidation_tools",
            limits=Limits(
                turns=settings.curate.turns,
                seconds=settings.curate.seconds,
                tokens=settings.learn.tokens,
                money=settings.learn.money,
                retries=settings.agent.retries,
            ),
        )
        ran = child_process.run(task, broker, settings)
        later = ran.reason in ("refused", "budget", "error")
        return ClusterAnswer(broker.plan(ran), broker.rehearsed, broker.why(ran), later)
    finally:
        staging.discard()


class _ConsolidationBroker:
    """The parent's side: keeps what is to be joined, and rehearses it when the agent is done."""

    def __init__(self, world: CurationScope, cluster: Cluster, staging: Staging) -> None:
        self._world = world
        self._cluster = cluster
        self._staging = staging
        self._gate = Gate(world.places, data=world.data, clock=world.clock)
        self._names = {skill.rpartition("/")[2]: skill for skill in cluster.skills}
        self._joins: dict[str, tuple[tuple[str, ...], str]] = {}
        self._made: Consolidation | None = None
        self._refusals: list[str] = []
        self.rehearsed: ConsolidationResult | None = None
        for skill in cluster.skills:
            staging.copy_in(self._gate, skill, cluster.root)

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        if name != "join":
            raise Failed(f"there is nothing like '{name}' here")
        umbrella = str(arguments.get("umbrella", ""))
        absorbs = tuple(dict.fromkeys(map(str, arguments.get("absorbs") or ())))
        unknown = [skill for skill in absorbs if skill not in self._names]
        taken = [s for other, (own, _) in self._joins.items() if other != umbrella for s in own]
        if unknown:
            raise Failed(f"not among the skills you were given: {', '.join(unknown)}")
        if umbrella in absorbs or umbrella in taken:
            raise Failed(f"'{umbrella}' cannot be taken in and take in")
        if twice := sorted(set(absorbs) & set(taken) | set(absorbs) & set(self._joins)):
            raise Failed(f"is joined already: {', '.join(twice)}")
        if len(absorbs) < (1 if umbrella in self._names else 2):
            raise Failed("an umbrella takes in at least one other skill, a new one at least two")
        self._joins[umbrella] = (absorbs, " ".join(str(arguments.get("why", "")).split())[:500])
        return Result(
            f"'{umbrella}' will take in {', '.join(absorbs)}. Its text is checked at the end."
        )

    def finished(self, text: str) -> str | None:
        if not self._joins:
            return None
        try:
            plan = self._plan()
        except Failed as failed:
            return self._again(str(failed))
        made = rehearse_consolidation(self._world, plan)
        if made.refused:
            return self._again("; ".join(made.refused))
        self._made, self.rehearsed = plan, made
        return None

    def plan(self, ran: Ran) -> Consolidation | None:
        """What came of it, where the agent came to its end and all of it can be done."""
        if self._made is None or not ran.is_done:
            return None
        return msgspec.structs.replace(self._made, model=ran.model)

    def why(self, ran: Ran) -> str:
        """What is to be said of a run that made no plan."""
        if self._made is not None and ran.is_done:
            return ""
        names = ", ".join(self._cluster.skills)
        if ran.reason != "done":
            return f"{names}: the look was not finished: {ran.error or ran.reason}"
        if self._refusals:
            return f"{names}: what was proposed was refused: {self._refusals[-1]}"
        return f"{names}: nothing to join. {' '.join(ran.text.split())[:300]}"

    def _again(self, refusal: str) -> str | None:
        self._refusals.append(refusal)
        if len(self._refusals) > _TRIES:
            return None
        return f"This cannot be done as it stands: {refusal}\nMend it, then end again."

    def _plan(self) -> Consolidation:
        """The plan that the copies and the joins amount to. Raises `Failed` with what is wrong."""
        if spoilt := self._staging.spoilt():
            raise Failed(f"'{spoilt[0].name}': {spoilt[0].refusal.reason}")
        edited = {edit.name: edit for edit in self._staging.changed()}
        if others := sorted(edited.keys() - self._joins.keys()):
            raise Failed(f"changed, but no umbrella: {', '.join(others)}; call join, or undo it")
        now = self._world.clock.now()
        umbrellas = [
            self._umbrella(name, absorbs, why, edited.get(name))
            for name, (absorbs, why) in self._joins.items()
        ]
        return Consolidation(
            id=new_change_id(now),
            at=now,
            place=self._cluster.place,
            umbrellas=tuple(umbrellas),
            key=self._cluster.key,
        )

    def _umbrella(
        self, name: str, absorbs: tuple[str, ...], why: str, edit: EditedSkill | None
    ) -> Umbrella:
        if edit is None and name not in self._names:
            raise Failed(f"the umbrella '{name}' was not written")
        new = edit.new if edit is not None else {}
        old = edit.old if edit is not None else {}
        return Umbrella(
            skill=self._names.get(name, name),
            is_new=name not in self._names,
            absorbs=tuple(self._names[skill] for skill in absorbs),
            why=why or "they are much alike",
            files=bytes_of(new),
            executable=executable_paths(new),
            base=edit.base if edit is not None else "",
            touched=tuple(sorted(p for p, file in new.items() if old.get(p) != file)),
        )


def _message(cluster: Cluster, staging: Staging, found: list[SurveyedSkill]) -> str:
    """The skills that are alike: their names, their use, and as much of their text as fits."""
    uses = {f.skill: f.uses for f in found if f.key[0] == cluster.place}
    parts = [f"These {len(cluster.skills)} skills are much alike:\n"]
    room_left = _MOST_SHOWN
    for name, copy in sorted(staging.copied().items()):
        others = sorted(path for path in copy.files if path != SKILL_FILE)
        listed = f"; other files: {', '.join(others)}" if others else ""
        parts.append(f"## {name} (used {uses.get(copy.skill, 0)} times{listed})\n")
        main = copy.files.get(SKILL_FILE)
        text = main.data.decode("utf-8", "replace") if main is not None else ""
        if len(text) <= room_left:
            room_left -= len(text)
            parts.append(f"<file>\n{text}\n</file>\n")
        else:
            parts.append("(read it with read_skill)\n")
    return "\n".join(parts)


BY_MODEL = "model"
"""Who made a run, in the book."""


def consolidate(
    world: CurationScope, settings: Settings, *, dry: bool = False, asked: bool = False
) -> list[CurationReport]:
    """Look for look-alikes and join them; a report for each cluster that was looked at.

    What a kill interrupted is finished first. `dry` lands nothing and remembers nothing. `asked`:
    the user wants it now, whatever the setting says, and for clusters that were looked at before
    as well. Raises `Busy` while another curation runs.
    """
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        Store.open(world.database) as store,
    ):
        ensure_use_tables(store, world.database)
        book = CurationRecords(store.connection)
        reports = [] if dry else finish_interrupted(world, store, book)
        if settings.curate.consolidate == "off" and not asked:
            return reports
        found = survey(world, store.connection)
        fresh = [c for c in clusters(world, found) if asked or not book.fact(_fact(c))]
        for cluster in fresh[: settings.curate.clusters]:
            asked_about = ask_about_cluster(world, settings, cluster, found)
            report = _settle(world, settings, store, asked_about, dry=dry)
            if not dry and not asked_about.later:
                book.set_fact(_fact(cluster), report.id)
            reports.append(report)
        return reports


def finish_interrupted(
    world: CurationScope, store: Store, book: CurationRecords
) -> list[CurationReport]:
    """Carry out again what a kill interrupted."""
    left = [run for run in book.curations("begun") if run.by == BY_MODEL]
    plans = [msgspec.json.decode(run.plan, type=Consolidation) for run in left]
    return [_land(world, store, plan) for plan in plans]


def accept_consolidation(world: CurationScope, start: str) -> CurationReport | None:
    """Carry out a plan that waits, with the user's consent; None where there is no such plan."""
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        Store.open(world.database) as store,
    ):
        book = CurationRecords(store.connection)
        run = next((r for r in book.curations("waiting") if _is(r.id, start)), None)
        if run is None:
            return None
        plan = msgspec.json.decode(run.plan, type=Consolidation)
        plan = msgspec.structs.replace(plan, agreed=True)
        book.begin(plan.id, plan.at, BY_MODEL, msgspec.json.encode(plan))
        return _land(world, store, plan)


def _is(run: str, start: str) -> bool:
    return len(start) >= 4 and (run.startswith(start) or run.endswith(start))


def _settle(
    world: CurationScope,
    settings: Settings,
    store: Store,
    asked: ClusterAnswer,
    *,
    dry: bool,
) -> CurationReport:
    """Let a plan land, or wait, or say why there is none."""
    plan, rehearsed, why = asked.plan, asked.rehearsed, asked.why
    if plan is None or rehearsed is None:
        now = world.clock.now()
        notes = (why,) if why else ()
        return CurationReport(
            id=new_change_id(now), at=now, by=BY_MODEL, dry=dry, notes=notes, later=asked.later
        )
    book = CurationRecords(store.connection)
    waits = (
        settings.curate.consolidate != "auto"
        or "curator" in current_approval(settings.learn, data=world.data).asks
    )
    if dry or waits:
        report = _report(plan, rehearsed, why, dry=dry)
        if not dry:
            joined = tuple(
                msgspec.structs.replace(j, outcome="waits for you") for j in report.joined
            )
            report = msgspec.structs.replace(report, joined=joined)
            data = msgspec.json.encode(plan)
            book.keep_waiting(plan.id, plan.at, BY_MODEL, data, msgspec.json.encode(report))
        return report
    book.begin(plan.id, plan.at, BY_MODEL, msgspec.json.encode(plan))
    return _land(world, store, plan)


def _land(world: CurationScope, store: Store, plan: Consolidation) -> CurationReport:
    made = carry_out(world, plan, consolidation_gate(world, plan.place, agreed=plan.agreed))
    report = _report(plan, made, "")
    book = CurationRecords(store.connection)
    if not made.refused:
        # Umbrellas of one plan may be alike; they were just told apart.
        own = {umbrella.skill for umbrella in plan.umbrellas}
        for cluster in clusters(world, survey(world, store.connection)):
            if cluster.place == plan.place and own.issuperset(cluster.skills):
                book.set_fact(_fact(cluster), plan.id)
    write_report(world, report)
    book.close(plan.id, msgspec.json.encode(report), "refused" if made.refused else "done")
    return report


def _report(
    plan: Consolidation, made: ConsolidationResult, why: str, *, dry: bool = False
) -> CurationReport:
    notes = [why] if why else []
    notes += [
        f"'{skill}' keeps the old name, which goes on working" for skill in made.kept_as_alias
    ]
    return CurationReport(
        id=plan.id,
        at=plan.at,
        by=BY_MODEL,
        dry=dry,
        joined=made.joined,
        notes=tuple(notes),
    )


def _fact(cluster: Cluster) -> str:
    return f"cluster {cluster.key}"


def run_curation(job: Job) -> JobResult:
    """Do the run that `job.key` names, or say when to come back."""
    settings = load_settings(paths.user_home()).settings
    when = curation_due(settings.curate)
    if when.key != job.key:
        return JobResult("nothing", "it was done meanwhile" if when.key else when.reason)
    if not when.now:
        return JobResult("put off", when.reason, later=max(when.seconds, 1.0))
    world = default_scope()
    # Before the look at the ages: that one ends the period, and with it this job's reason.
    joined = consolidate(world, settings)
    report = curate(world, settings, by="worker")
    reports = [*joined, report]
    said = "; ".join(dict.fromkeys(r.summary() for r in reports if r.moved or r.joined))
    changes = tuple(change for r in reports for change in (*r.changes, *([r.id] * r.landed)))
    return JobResult("curated" if said else "nothing", said or report.summary(), changes)
