"""One repair, from the failed use to the gate's answer.

The improver works in the closed room on a copy of the one skill; what it made is judged in
`broker.py`. Done again after a kill, a repair finds what it did: the change has an id of the job's,
which lands once.
"""

import os

import msgspec

from tacit.agent.limits import Limits
from tacit.base.errors import NotFound
from tacit.base.sections import ImproveSettings, Settings
from tacit.changes.actor import acting_as
from tacit.changes.change import Change, Edit, Verdict
from tacit.changes.files import to_bytes
from tacit.changes.gate import Gate
from tacit.changes.place import places_here
from tacit.learn.approving import gate_for
from tacit.learn.background import room
from tacit.learn.background.staging import Copied, Staging, change_id, clear
from tacit.learn.background.task import Task
from tacit.learn.improve.brief import brief
from tacit.learn.improve.broker import Broker, Repaired, announce
from tacit.learn.improve.checking import tools_of
from tacit.learn.improve.own import apply_own
from tacit.learn.improve.repairs import Attempt, Repairs
from tacit.learn.improve.triggers import KIND, Case, where
from tacit.learn.provenance.check import Witness
from tacit.learn.provenance.sources import sources
from tacit.traces.store import Store

_TOOLSET = "tacit.learn.improve.tools:tools"


def repair(store: Store, case: Case, settings: Settings, job: str) -> Repaired:
    """Have the skill of `case` repaired. `job` is the same each time that this is the same work."""
    trace = store.trace(case.run.session)
    witness = Witness(sources(trace))
    gate = gate_for(places_here(where(case.run.project)), settings, scanner=witness)
    repairs = Repairs(store.connection)
    with acting_as("improver"):
        # What stood there before is not held against the repair, wherever it came from.
        witness.knows([to_bytes(gate.look(case.skill, case.entry.root).contents.files)])
        if (done := _done_before(gate, repairs, case, job, settings)) is not None:
            clear(job)
            return done
        earlier = [_answered(gate, known) for known in repairs.of(case.skill, case.entry.root)]
        repairs.begin(_attempt(case, job))
        staging = Staging.open(job)
        try:
            copied = staging.copy_in(gate, case.skill, case.entry.root)
            broker = Broker(gate, staging, copied, case, settings, tools_of(trace), repairs)
            task = _task(staging, copied, broker, earlier, settings.improve)
            ran = room.run(task, broker, settings)
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


def _attempt(case: Case, job: str) -> Attempt:
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
    copied: Copied,
    broker: Broker,
    earlier: list[Attempt],
    settings: ImproveSettings,
) -> Task:
    from importlib.resources import files

    case = broker.case
    prompt = (files("tacit.learn.improve") / "improver.md").read_text(encoding="utf-8")
    name = broker.name
    return Task(
        job=staging.job,
        kind=KIND,
        actor="improver",
        session=case.run.session,
        project=case.run.project if os.path.isdir(case.run.project) else "",
        staging=staging.path,
        instructions=prompt,
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
    gate: Gate, repairs: Repairs, case: Case, job: str, settings: Settings
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
            verdict = apply_own(gate, change, verdict, settings)
        elif proposal.applied_as:
            verdict = Verdict(outcome="applied", change=proposal.applied_as, skill=case.skill)
    announce(change, verdict)
    done = Repaired(
        "repaired" if verdict.applied else "proposed", name, change.reason, verdict.change
    )
    _remember(repairs, job, done)
    return done


def _as_made(id_: str, case: Case, reason: str) -> Change:
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
