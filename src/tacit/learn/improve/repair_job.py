"""The job `improve`: one repair, from the failed use to the gate's answer, or the verdict on one.

Repeated after a kill, a repair finds what it did: the change has an id made of the job, which
lands once. What calls for a repair is in `repair_triggers`.
"""

from typing import Any

import msgspec

from tacit.base.errors import NotFound
from tacit.base.job import Job, JobResult, cancelled
from tacit.base.paths import existing_folder
from tacit.base.prompts import prompt
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import Change, Edit, Verdict, acting_as, bytes_of
from tacit.changes.gate import Gate
from tacit.changes.place import places_here
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import Witness
from tacit.learn.background.background_gate import apply_to_own_skill, background_gate
from tacit.learn.background.broker import Assignment, limits_from, retry_after, run_agent
from tacit.learn.background.staging import Staging, change_id, clear_staging, earlier_verdict
from tacit.learn.improve import probation
from tacit.learn.improve.repair_broker import Repaired, RepairWork, announce_repair, brief
from tacit.learn.improve.repair_triggers import (
    IMPROVE_KIND,
    FailedUse,
    find_failed_use,
    session_folder,
)
from tacit.learn.improve.repairs import Attempt, Repairs
from tacit.learn.improve.verification import tools_in
from tacit.traces.store import Store

_TOOLSET = "tacit.learn.background.toolset:repair_tools"


def repair(store: Store, use: FailedUse, settings: Settings, job: str) -> Repaired:
    """Have the skill of `use` repaired. `job` is the same each time that this is the same work."""
    trace = store.trace(use.run.session)
    witness = Witness(sources(trace))
    places = places_here(session_folder(use.run.project))
    gate = background_gate("improver", places, settings, scanner=witness)
    repairs = Repairs(store.connection)
    with acting_as("improver"):
        # What stood there before is not held against the repair, wherever it came from.
        witness.allow(bytes_of(gate.state_of(use.skill, use.entry.root).contents.files))
        if (done := _done_before(gate, repairs, use, job, settings)) is not None:
            clear_staging(job)
            return done
        earlier = [_answered(gate, known) for known in repairs.of(use.skill, use.entry.root)]
        repairs.begin(_attempt(use, job))
        work = RepairWork(gate, use, settings, tools_in(trace), repairs, job)
        report, broker = run_agent(_assignment(work, earlier, settings, job), settings, work.broker)
        result = work.result(report, broker.refused)
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


def _attempt(use: FailedUse, job: str) -> Attempt:
    return Attempt(
        id=job,
        skill=use.skill,
        root=use.entry.root,
        session=use.run.session,
        turn=use.run.turn,
        digest=use.run.digest or use.entry.digest,
        marks=tuple(dict.fromkeys(failure.mark for failure in use.failures)),
    )


def _assignment(
    work: RepairWork, earlier: list[Attempt], settings: Settings, job: str
) -> Assignment:
    use, name = work.use, work.name

    def message(staging: Staging) -> str:
        files = staging.copied()[name].files
        return brief(name, files, use.run, use.failures, earlier, work.tools)

    return Assignment(
        job=job,
        kind=IMPROVE_KIND,
        actor="improver",
        session=use.run.session,
        project=existing_folder(use.run.project),
        instructions=prompt("learn", "improver"),
        message=message,
        toolset=_TOOLSET,
        data={"skill": name, "commands": work.bench is not None},
        limits=limits_from(settings.improve, settings),
    )


def _done_before(
    gate: Gate, repairs: Repairs, use: FailedUse, job: str, settings: Settings
) -> Repaired | None:
    """What an earlier try of the same job did, when it was killed after its change landed."""
    name, root = use.entry.name, use.entry.root
    known = repairs.get(job)
    if known is not None and known.outcome not in ("begun", "put off"):
        return Repaired(known.outcome, name, known.note, known.change)
    verdict = earlier_verdict(gate, change_id(job, use.skill), use.skill)
    if verdict is None:
        return None
    if verdict.applied:
        record = gate.open_place(root).history.version(verdict.version).record
        change = _as_made(verdict.change, use, record.reason)
    else:
        proposal = gate.inbox.get(verdict.change)
        change = proposal.change
        if proposal.state == "waiting":
            verdict = apply_to_own_skill(gate, change, verdict, settings)
        elif proposal.applied_as:
            verdict = Verdict(outcome="applied", change=proposal.applied_as, skill=use.skill)
    announce_repair(change, verdict)
    done = Repaired(
        "repaired" if verdict.applied else "proposed", name, change.reason, verdict.change
    )
    _remember(repairs, job, done)
    return done


def _as_made(id_: str, use: FailedUse, reason: str) -> Change:
    """The change as far as a notice needs it."""
    return Change(
        id=id_,
        skill=use.skill,
        operations=(Edit("", ""),),
        actor="improver",
        reason=reason,
        session=use.run.session,
        root=use.entry.root,
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


MOST_TRIES = 5
"""How often a repair is begun for which there was no money, or no answer."""


class WantedRepair(msgspec.Struct, frozen=True):
    """The payload of a job."""

    skill: str
    session: str = ""
    turn: int | None = None
    probation: str = ""
    """The repair whose probation is to be ended."""
    root: str = ""


def run_improve(job: Job) -> JobResult:
    """Do the job. Idempotent, by the job's id."""
    wanted = _wanted(job.payload)
    with Store.open() as store:
        return _judge(store, wanted) if wanted.probation else _repair(store, wanted, job)


def _wanted(payload: dict[str, Any]) -> WantedRepair:
    return msgspec.convert(payload, WantedRepair, strict=False)


def _repair(store: Store, wanted: WantedRepair, job: Job) -> JobResult:
    try:
        project = store.find(wanted.session).head.project
        settings = load_settings(session_folder(project)).settings
        use = find_failed_use(store, wanted.session, wanted.skill, settings, wanted.turn)
    except NotFound as gone:
        return JobResult("nothing", f"{gone.message}: it was there when this was asked for")
    if cancelled() or not settings.improve.use:
        return JobResult("nothing", "repairs were switched off meanwhile")
    known = Repairs(store.connection).get(job.id)
    if use.why_not and known is None:  # once begun, the job itself is the recent attempt
        return JobResult("nothing", use.why_not)
    done = repair(store, use, settings, job.id)
    later = 0.0
    if done.outcome == "put off" and done.ran is not None and job.attempt < MOST_TRIES:
        later = retry_after(done.ran)
    return JobResult(done.outcome, done.reason, (done.change,) if done.change else (), later)


def _judge(store: Store, wanted: WantedRepair) -> JobResult:
    settings = load_settings(wanted.root).settings
    ended = probation.settle_probation(
        store.connection, wanted.root, wanted.skill, wanted.probation, settings
    )
    return JobResult(ended.outcome, ended.reason, (ended.change,) if ended.change else ())
