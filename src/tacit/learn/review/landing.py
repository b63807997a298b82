"""What a review made ready, through the gate; and what a job did already, before a kill.

A change's id is made of the job and the skill, so a landing that is done again lands nothing twice.
"""

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from tacit.base.errors import NotFound
from tacit.changes.change import Change, Verdict
from tacit.changes.gate import Gate
from tacit.changes.inbox import Proposal
from tacit.learn.background.staging import change_id

What = Literal["skill", "fact"]


class Landed(msgspec.Struct, frozen=True):
    """One change, and what became of it."""

    skill: str
    is_new: bool
    verdict: Verdict
    what: What = "skill"


def land(gate: Gate, changes: Iterable[Change], what: What = "skill") -> list[Landed]:
    """Propose each change. Done twice, the second gives what the first did."""
    landed = []
    for change in changes:
        verdict = _waiting(gate, change.id) or gate.propose(change)
        landed.append(Landed(change.skill, not change.base, verdict, what))
    return landed


def id_of(job: str, name: str, what: What = "skill") -> str:
    """The id of what `job` changes in a skill or a fact."""
    return change_id(job, name if what == "skill" else f"{what}:{name}")


def earlier(gate: Gate, job: str, what: What = "skill") -> list[Landed]:
    """What `job` has changed or proposed so far, by the histories and the inbox."""
    found: dict[str, Landed] = {}
    for proposal in gate.inbox.all(1000):
        change = proposal.change
        if proposal.id == id_of(job, change.skill, what) and _is_of(gate, change.root):
            found[proposal.id] = Landed(change.skill, not change.base, _proposed(proposal), what)
    for site in gate.sites.values():
        if not os.path.isdir(site.history.folder):
            continue
        for version in site.history.latest(1000):
            record = version.record
            if record.change == id_of(job, record.skill, what):
                verdict = Verdict(
                    outcome="applied", change=record.change, skill=record.skill, version=version.id
                )
                is_new = record.kind == "create"
                found[record.change] = Landed(record.skill, is_new, verdict, what)
    return list(found.values())


def _is_of(gate: Gate, root: str) -> bool:
    return os.path.realpath(root) in gate.sites


def _waiting(gate: Gate, change: str) -> Verdict | None:
    """The verdict of a change that was put into the inbox before, whatever was answered since."""
    try:
        return _proposed(gate.inbox.get(change))
    except NotFound:
        return None


def _proposed(proposal: Proposal) -> Verdict:
    return Verdict(
        outcome="proposed", change=proposal.id, skill=proposal.change.skill, refusal=proposal.why
    )
