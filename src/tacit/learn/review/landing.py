"""What a review made ready, through the gate; and what a job did already, before a kill.

A change's id is made of the job and the skill, so a landing that is done again lands nothing twice.
"""

import os
from collections.abc import Iterable

import msgspec

from tacit.base.errors import NotFound
from tacit.changes.change import Change, Verdict
from tacit.changes.gate import Gate
from tacit.learn.background.staging import change_id


class Landed(msgspec.Struct, frozen=True):
    """One change, and what became of it."""

    skill: str
    is_new: bool
    verdict: Verdict
    what: str = "skill"


def land(gate: Gate, changes: Iterable[Change]) -> list[Landed]:
    """Propose each change. Done twice, the second gives what the first did."""
    landed = []
    for change in changes:
        verdict = _waiting(gate, change.id) or gate.propose(change)
        landed.append(Landed(change.skill, not change.base, verdict))
    return landed


def earlier(gate: Gate, job: str, *, data: str | None = None) -> list[Landed]:
    """What `job` has changed or proposed so far, by the histories and the inbox."""
    found: dict[str, Landed] = {}
    prefix = change_id(job, "", data=data).rpartition("-")[0]
    for proposal in gate.inbox.all(1000):
        change = proposal.change
        if proposal.id.startswith(prefix) and proposal.id == change_id(
            job, change.skill, data=data
        ):
            verdict = Verdict(
                outcome="proposed", change=proposal.id, skill=change.skill, refusal=proposal.why
            )
            found[proposal.id] = Landed(change.skill, not change.base, verdict)
    for site in gate.sites.values():
        if not os.path.isdir(site.history.folder):
            continue
        for version in site.history.latest(1000):
            record = version.record
            if record.change == change_id(job, record.skill, data=data):
                verdict = Verdict(
                    outcome="applied", change=record.change, skill=record.skill, version=version.id
                )
                found[record.change] = Landed(record.skill, record.kind == "create", verdict)
    return list(found.values())


def _waiting(gate: Gate, change: str) -> Verdict | None:
    """The verdict of a change that was put into the inbox before, whatever was answered since."""
    try:
        proposal = gate.inbox.get(change)
    except NotFound:
        return None
    return Verdict(
        outcome="proposed", change=proposal.id, skill=proposal.change.skill, refusal=proposal.why
    )
