"""The job `curate`: a model is asked about new look-alikes, then the rules archive.

The agent works on copies and says what is to be joined; when it is done, its plan is carried out
on a copy of the library, and what the gate refuses there goes back to it. Then the plan lands, or
waits for the user's word, as the settings say. Each cluster is examined once for the versions that
its skills have. The job consolidates first, then archives by the rules (`curation`).
"""

import msgspec

from tacit.agent.tool import Failed
from tacit.base import paths
from tacit.base.display import shorten
from tacit.base.job import Job, JobResult
from tacit.base.prompts import prompt
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import SKILL_FILE, bytes_of, executable_paths, new_change_id
from tacit.learn.background.background_gate import current_approval, reading_gate
from tacit.learn.background.broker import (
    Assignment,
    Judged,
    RefusedChange,
    StagedBroker,
    describe_end,
    limits_from,
    refuse,
    run_agent,
)
from tacit.learn.background.staging import EditedSkill, StagedWork, Staging
from tacit.learn.background.task import RunReport
from tacit.learn.curate.consolidation import (
    Consolidation,
    ConsolidationResult,
    Umbrella,
    carry_out,
    consolidation_gate,
    rehearse_consolidation,
)
from tacit.learn.curate.curation import CurationReport, curate, exclusive, write_report
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curation_scope import CurationScope, default_scope
from tacit.learn.curate.curation_status import curation_due
from tacit.learn.curate.library_survey import Cluster, SurveyedSkill, clusters, survey
from tacit.learn.review.learned_skill import unfit_name
from tacit.learn.use_records import ensure_use_tables
from tacit.traces.store import Store

_MOST_SHOWN = 24_000
"""Characters of the skills' own text in the first message; the rest is read by a tool."""


class ClusterAnswer(msgspec.Struct, frozen=True):
    """An agent's answer about a cluster."""

    plan: Consolidation | None
    rehearsed: ConsolidationResult | None
    """What the plan came to on a copy."""
    why: str
    """What is to be said about it."""
    later: bool
    """Whether it was not considered, for want of a model, an answer or money."""


def ask_about_cluster(
    scope: CurationScope, settings: Settings, cluster: Cluster, found: list[SurveyedSkill]
) -> ClusterAnswer:
    """Have an agent examine a cluster."""
    work = _ConsolidationWork(scope, cluster)
    assignment = Assignment(
        job=f"consolidate-{cluster.key}",
        kind="curate",
        actor="curator",
        project=next((r.project for p, r in scope.pairs if r.id == cluster.place), ""),
        instructions=prompt("learn", "umbrella"),
        message=lambda staging: _message(cluster, staging, found),
        toolset="tacit.learn.background.toolset:consolidation_tools",
        limits=limits_from(settings.curate, settings),
    )
    report, broker = run_agent(assignment, settings, work.broker, data=scope.data)
    return work.answer(report, broker.refused)


class _ConsolidationWork:
    """One cluster: keeps what is to be joined, and tries it on a copy when the agent is done."""

    def __init__(self, scope: CurationScope, cluster: Cluster) -> None:
        self._scope = scope
        self._cluster = cluster
        self._names = {skill.rpartition("/")[2]: skill for skill in cluster.skills}
        self._joins: dict[str, tuple[tuple[str, ...], str]] = {}
        self._plan: Consolidation | None = None
        self._rehearsed: ConsolidationResult | None = None

    def broker(self, staging: Staging) -> StagedBroker:
        """Stage the cluster's skills; the broker over them."""
        gate = reading_gate(self._scope.places, data=self._scope.data, clock=self._scope.clock)
        for skill in self._cluster.skills:
            staging.copy_in(gate, skill, self._cluster.root)
        return StagedBroker(staging, self.judge, {"join": self.join})

    def join(self, umbrella: str, absorbs: list[str], why: str) -> str:
        """Note what an umbrella is to take in."""
        taken_in = tuple(dict.fromkeys(absorbs))
        unknown = [skill for skill in taken_in if skill not in self._names]
        taken = [s for other, (own, _) in self._joins.items() if other != umbrella for s in own]
        if unknown:
            raise Failed(f"not among the skills you were given: {', '.join(unknown)}")
        if umbrella in taken_in or umbrella in taken:
            raise Failed(f"'{umbrella}' cannot be taken in and take in")
        if twice := sorted(set(taken_in) & {*taken, *self._joins}):
            raise Failed(f"is joined already: {', '.join(twice)}")
        if len(taken_in) < (1 if umbrella in self._names else 2):
            raise Failed("an umbrella takes in at least one other skill, a new one at least two")
        if umbrella not in self._names and (why_unfit := unfit_name(umbrella)):
            raise Failed(f"{why_unfit}; name it for the class of work that it is about")
        self._joins[umbrella] = (taken_in, shorten(" ".join(why.split()), 500))
        return f"'{umbrella}' will take in {', '.join(taken_in)}. Its text is checked at the end."

    def judge(self, work: StagedWork, text: str) -> Judged:
        """Carry the plan out on a copy of the library, where there is one."""
        self._plan = None
        if not self._joins or work.spoilt:
            return Judged()
        try:
            plan = self._make_plan(work)
        except Failed as failed:
            return refuse("the plan", str(failed))
        made = rehearse_consolidation(self._scope, plan)
        if not made.refused:
            self._plan, self._rehearsed = plan, made
        return refuse("the plan", *made.refused)

    def answer(self, report: RunReport, refused: tuple[RefusedChange, ...]) -> ClusterAnswer:
        """The plan, where the agent came to its end and all of it can be done; else why none."""
        if self._plan is not None and report.is_done:
            plan = msgspec.structs.replace(self._plan, model=report.model)
            return ClusterAnswer(plan, self._rehearsed, "", later=False)
        names = ", ".join(self._cluster.skills)
        if not report.is_done:
            why = f"{names}: the look was not finished: {describe_end(report)}"
        elif refused:
            why = f"{names}: what was proposed was refused: {refused[-1].refusal.reason}"
        else:
            why = f"{names}: nothing to join. {shorten(' '.join(report.text.split()), 300)}"
        return ClusterAnswer(None, None, why, report.reason in ("refused", "budget", "error"))

    def _make_plan(self, work: StagedWork) -> Consolidation:
        """The plan that the copies and the joins amount to. Raises `Failed` with what is wrong."""
        edited = {edit.name: edit for edit in work.edited}
        if others := sorted(edited.keys() - self._joins.keys()):
            raise Failed(f"changed, but no umbrella: {', '.join(others)}; call join, or undo it")
        now = self._scope.clock.now()
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
    left = _MOST_SHOWN
    for name, copy in sorted(staging.copied().items()):
        others = sorted(path for path in copy.files if path != SKILL_FILE)
        listed = f"; other files: {', '.join(others)}" if others else ""
        parts.append(f"## {name} (used {uses.get(copy.skill, 0)} times{listed})\n")
        main = copy.files.get(SKILL_FILE)
        text = main.data.decode("utf-8", "replace") if main is not None else ""
        if len(text) <= left:
            left -= len(text)
            parts.append(f"<file>\n{text}\n</file>\n")
        else:
            parts.append("(read it with read_skill)\n")
    return "\n".join(parts)


BY_MODEL = "model"
"""Who made a run, in the records."""


def consolidate(
    scope: CurationScope, settings: Settings, *, dry: bool = False, asked: bool = False
) -> list[CurationReport]:
    """Find skills that are alike and join them; a report for each cluster considered.

    What a kill interrupted is finished first. `dry` lands nothing and remembers nothing. `asked`:
    the user wants it now, whatever the setting says, and for clusters that were considered before
    as well. Raises `Busy` while another curation runs.
    """
    with exclusive(scope) as store:
        ensure_use_tables(store, scope.database)
        records = CurationRecords(store.connection)
        reports = [] if dry else finish_interrupted(scope, store, records)
        if settings.curate.consolidate == "off" and not asked:
            return reports
        found = survey(scope, store.connection)
        fresh = [c for c in clusters(scope, found) if asked or not records.fact(_fact(c))]
        for cluster in fresh[: settings.curate.clusters]:
            asked_about = ask_about_cluster(scope, settings, cluster, found)
            report = _settle(scope, settings, store, asked_about, dry=dry)
            if not dry and not asked_about.later:
                records.set_fact(_fact(cluster), report.id)
            reports.append(report)
        return reports


def finish_interrupted(
    scope: CurationScope, store: Store, records: CurationRecords
) -> list[CurationReport]:
    """Carry out again what a kill interrupted."""
    left = [run for run in records.curations("begun") if run.by == BY_MODEL]
    plans = [msgspec.json.decode(run.plan, type=Consolidation) for run in left]
    return [_land(scope, store, plan) for plan in plans]


def accept_consolidation(scope: CurationScope, start: str) -> CurationReport | None:
    """Carry out a plan that waits, with the user's consent; None where there is no such plan."""
    with exclusive(scope) as store:
        records = CurationRecords(store.connection)
        run = next((r for r in records.curations("waiting") if _is(r.id, start)), None)
        if run is None:
            return None
        plan = msgspec.json.decode(run.plan, type=Consolidation)
        plan = msgspec.structs.replace(plan, agreed=True)
        records.begin(plan.id, plan.at, BY_MODEL, msgspec.json.encode(plan))
        return _land(scope, store, plan)


def _is(run: str, start: str) -> bool:
    return len(start) >= 4 and (run.startswith(start) or run.endswith(start))


def _settle(
    scope: CurationScope,
    settings: Settings,
    store: Store,
    asked: ClusterAnswer,
    *,
    dry: bool,
) -> CurationReport:
    """Let a plan land, or wait, or say why there is none."""
    plan, rehearsed, why = asked.plan, asked.rehearsed, asked.why
    if plan is None or rehearsed is None:
        now = scope.clock.now()
        notes = (why,) if why else ()
        return CurationReport(
            id=new_change_id(now), at=now, by=BY_MODEL, dry=dry, notes=notes, later=asked.later
        )
    records = CurationRecords(store.connection)
    waits = (
        settings.curate.consolidate != "auto"
        or current_approval(settings.learn, data=scope.data).mode != "auto"
    )
    if dry or waits:
        report = _report(plan, rehearsed, why, dry=dry)
        if not dry:
            joined = tuple(
                msgspec.structs.replace(j, outcome="waits for you") for j in report.joined
            )
            report = msgspec.structs.replace(report, joined=joined)
            data = msgspec.json.encode(plan)
            records.keep_waiting(plan.id, plan.at, BY_MODEL, data, msgspec.json.encode(report))
        return report
    records.begin(plan.id, plan.at, BY_MODEL, msgspec.json.encode(plan))
    return _land(scope, store, plan)


def _land(scope: CurationScope, store: Store, plan: Consolidation) -> CurationReport:
    made = carry_out(scope, plan, consolidation_gate(scope, plan.place, agreed=plan.agreed))
    report = _report(plan, made, "")
    records = CurationRecords(store.connection)
    if not made.refused:
        # Umbrellas of one plan may be alike; they were just told apart.
        own = {umbrella.skill for umbrella in plan.umbrellas}
        for cluster in clusters(scope, survey(scope, store.connection)):
            if cluster.place == plan.place and own.issuperset(cluster.skills):
                records.set_fact(_fact(cluster), plan.id)
    write_report(scope, report)
    records.close(plan.id, msgspec.json.encode(report), "refused" if made.refused else "done")
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
    scope = default_scope()
    # Before the ages are worked out: that ends the period, and with it this job's reason.
    joined = consolidate(scope, settings)
    report = curate(scope, settings, by="worker")
    reports = [*joined, report]
    summary = "; ".join(dict.fromkeys(r.summary() for r in reports if r.moved or r.joined))
    changes = tuple(change for r in reports for change in (*r.changes, *([r.id] * r.landed)))
    return JobResult("curated" if summary else "nothing", summary or report.summary(), changes)
