"""The job `improve`: one repair, from the failed use to the gate's answer, or the verdict on one.

Repeated after a kill, a repair finds what it did: the change has an id made of the job, which
lands once. What calls for a repair is in `repair_triggers`.
"""

import os
from typing import Any

import msgspec

from tacit.agent.budget import Limits
from tacit.base.errors import NotFound
from tacit.base.job import Job, JobResult, cancelled
from tacit.base.prompts import prompt
from tacit.base.settings import ImproveSettings, Settings, load_settings
from tacit.changes.change import Change, Edit, Verdict, acting_as, bytes_of
from tacit.changes.gate import Gate
from tacit.changes.place import places_here
from tacit.learn.background import child_process
from tacit.learn.background.background_gate import apply_to_own_skill, background_gate
from tacit.learn.background.staging import CopiedSkill, Staging, change_id, clear_staging
from tacit.learn.background.task import Task
from tacit.learn.improve import probation
from tacit.learn.improve.repair_broker import RepairBroker, Repaired, announce_repair, brief
from tacit.learn.improve.repair_triggers import (
    IMPROVE_KIND,
    FailedUse,
    find_failed_use,
    session_folder,
)
from tacit.learn.improve.repairs import Attempt, Repairs
from tacit.learn.improve.verification import tools_in
from tacit.learn.provenance.witness import Witness, sources
from tacit.traces.store import Store

_TOOLSET = "tacit.learn.background.toolset:repair_tools"


def repair(store: Store, case: FailedUse, settings: Settings, job: str) -> Repaired:
    """Have the skill of `case` repaired. `job` is the same each time that this is the same work."""
    trace = store.trace(case.run.session)
    witness = Witness(sources(trace))
    gate = background_gate(places_here(session_folder(case.run.project)), settings, scanner=witness)
    repairs = Repairs(store.connection)
    with acting_as("improver"):
        # What stood there before is not held against the repair, wherever it came from.
        witness.knows([bytes_of(gate.look(case.skill, case.entry.root).contents.files)])
        if (done := _done_before(gate, repairs, case, job, settings)) is not None:
            clear_staging(job)
            return done
        earlier = [_answered(gate, known) for known in repairs.of(case.skill, case.entry.root)]
        repairs.begin(_attempt(case, job))
        staging = Staging.open(job)
        try:
            copied = staging.copy_in(gate, case.skill, case.entry.root)
            broker = RepairBroker(gate, staging, copied, case, settings, tools_in(trace), repairs)
            task = _task(staging, copied, broker, earlier, settings.improve)
            ran = child_process.run(task, broker, settings)
            result = broker.result(ran)
        finally:
            staging.discard()
        _remember(repairs, job, result)
        return result


def _answered(gate: Gate, attempt: Attempt) -> Attempt:
    """An earlier repair, with what the user said to it where they turned it down."""
    if attempt.outcome != "proposed":
        return attempt
    try:
        proposal = gate.inbox.get(attempt.change)
    except NotFound:
        return attempt
    if proposal.state != "rejected":
        return attempt
    because = f": {proposal.answer}" if proposal.answer else ""
    return msgspec.structs.replace(attempt, note=f"the user turned it down{because}")


def _attempt(case: FailedUse, job: str) -> Attempt:
    return Attempt(
        id=job,
        skill=case.skill,
        root=case.entry.root,
        session=case.run.session,
        turn=case.run.turn,
        digest=case.run.digest or case.entry.digest,
        marks=tuple(dict.fromkeys(failure.mark for failure in case.failures)),
    )


def _task(
    staging: Staging,
    copied: CopiedSkill,
    broker: RepairBroker,
    earlier: list[Attempt],
    settings: ImproveSettings,
) -> Task:
    case = broker.case
    name = broker.name
    return Task(
        job=staging.job,
        kind=IMPROVE_KIND,
        actor="improver",
        session=case.run.session,
        project=case.run.project if os.path.isdir(case.run.project) else "",
        staging=staging.path,
        instructions=prompt("learn", "improver"),
        message=brief(name, copied.files, case.run, case.failures, earlier, broker.tools),
        toolset=_TOOLSET,
        data={"skill": name, "commands": broker.bench is not None},
        limits=Limits(
            turns=settings.turns,
            seconds=settings.seconds,
            tokens=settings.tokens,
            money=settings.money,
        ),
    )


def _done_before(
    gate: Gate, repairs: Repairs, case: FailedUse, job: str, settings: Settings
) -> Repaired | None:
    """What an earlier try of the same job did, when it was killed after its change landed."""
    id_ = change_id(job, case.skill)
    name, root = case.entry.name, case.entry.root
    known = repairs.get(job)
    if known is not None and known.outcome not in ("begun", "put off"):
        return Repaired(known.outcome, name, known.note, known.change)
    history = gate.site(root).history
    if version := history.knows(id_, case.skill):
        record = history.version(version).record
        change = _as_made(id_, case, record.reason)
        verdict = Verdict(outcome="applied", change=id_, skill=case.skill, version=version)
    else:
        try:
            proposal = gate.inbox.get(id_)
        except NotFound:
            return None
        change = proposal.change
        verdict = Verdict(outcome="proposed", change=id_, skill=case.skill)
        if proposal.state == "waiting":
            verdict = apply_to_own_skill(gate, change, verdict, settings)
        elif proposal.applied_as:
            verdict = Verdict(outcome="applied", change=proposal.applied_as, skill=case.skill)
    announce_repair(change, verdict)
    done = Repaired(
        "repaired" if verdict.applied else "proposed", name, change.reason, verdict.change
    )
    _remember(repairs, job, done)
    return done


def _as_made(id_: str, case: FailedUse, reason: str) -> Change:
    """The change as far as a notice needs it."""
    return Change(
        id=id_,
        skill=case.skill,
        operations=(Edit("", ""),),
        actor="improver",
        reason=reason,
        session=case.run.session,
        root=case.entry.root,
    )


def _remember(repairs: Repairs, job: str, result: Repaired) -> None:
    verified = f" Verified: {'; '.join(result.verified)}." if result.verified else ""
    unsure = f" Not verified: {'; '.join(result.open)}." if result.open else ""
    repairs.finish(
        job,
        result.outcome,
        change=result.change,
        tried=result.diff,
        note=f"{result.reason}{verified}{unsure}",
    )


RETRY_SECONDS = 3600.0
"""Seconds until a repair is tried again for which there was no money, or no answer."""
MOST_TRIES = 5


class WantedRepair(msgspec.Struct, frozen=True):
    """The payload of a job."""

    skill: str
    session: str = ""
    turn: int | None = None
    probation: str = ""
    """The repair whose probation is to be ended."""
    root: str = ""


def run_improve(job: Job) -> JobResult:
    """Do the job. The same job done twice is the same as once."""
    wanted = _wanted(job.payload)
    with Store.open() as store:
        return _judge(store, wanted) if wanted.probation else _repair(store, wanted, job)


def _wanted(payload: dict[str, Any]) -> WantedRepair:
    return msgspec.convert(payload, WantedRepair, strict=False)


def _repair(store: Store, wanted: WantedRepair, job: Job) -> JobResult:
    try:
        project = store.find(wanted.session).head.project
        settings = load_settings(session_folder(project)).settings
        case = find_failed_use(store, wanted.session, wanted.skill, settings, wanted.turn)
    except NotFound as gone:
        return JobResult("nothing", f"{gone.message}: it was there when this was asked for")
    if cancelled() or not settings.improve.use:
        return JobResult("nothing", "repairs were switched off meanwhile")
    known = Repairs(store.connection).get(job.id)
    if case.why_not and known is None:  # once begun, the job itself is what was looked at lately
        return JobResult("nothing", case.why_not)
    done = repair(store, case, settings, job.id)
    later = RETRY_SECONDS if done.later and job.attempt < MOST_TRIES else 0.0
    return JobResult(done.outcome, done.reason, (done.change,) if done.change else (), later)


def _judge(store: Store, wanted: WantedRepair) -> JobResult:
    settings = load_settings(wanted.root).settings
    ended = probation.settle_probation(
        store.connection, wanted.root, wanted.skill, wanted.probation, settings
    )
    return JobResult(ended.outcome, ended.reason, (ended.change,) if ended.change else ())
