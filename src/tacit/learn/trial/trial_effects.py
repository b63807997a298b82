"""What follows from an answer: the standing of a skill, and what is done about it.

A learned skill that harms is taken out of use through the gate, which is announced and can be taken
back; the same version is not taken out twice, so that a person's decision to keep it holds. A
change that waits for a trial (`learn.require_trial`) lands once harm is ruled out, where learned
changes land unasked at all.
"""

from typing import Literal

import msgspec

from tacit.base.errors import TacitError
from tacit.base.setting_sections import Settings
from tacit.changes.change import Archive, Change, Verdict, acting_as, new_change_id
from tacit.changes.gate import Gate
from tacit.changes.place import places_here
from tacit.learn import announcements
from tacit.learn.background.background_gate import (
    WAITS_FOR_TRIAL,
    background_gate,
    current_approval,
)
from tacit.learn.trial.candidate import Candidate
from tacit.learn.trial.interval import Finding, Interval, points
from tacit.skills.standing import standing_of, write_standing


class TrialEffect(msgspec.Struct, frozen=True):
    """What was done, in words and with the change that did it."""

    did: Literal["archived", "accepted", "waits", "nothing"]
    text: str = ""
    change: str = ""


def settle_standing(
    gate: Gate,
    candidate: Candidate,
    finding: Finding,
    shown: Interval,
    how: str,
    settings: Settings,
) -> TrialEffect:
    """Keep the standing that was found of `candidate`, and do what follows.

    `how` says in words what it rests on: a trial of so many pairs, daily use. What is not clear
    leaves the standing as it is.
    """
    before = standing_of(candidate.name, candidate.digest)[0]
    if finding != "unclear":
        write_standing(candidate.name, candidate.digest, finding, f"{points(shown)} {how}")
    if candidate.proposal is not None:
        return _settle_proposal(gate, candidate, shown, settings)
    if finding != "harms" or before == "harms" or not candidate.learned:
        return TrialEffect("nothing")
    return _archive(candidate, f"it harms: {points(shown)} {how}", settings)


def _archive(candidate: Candidate, reason: str, settings: Settings) -> TrialEffect:
    gate = background_gate("curator", places_here(candidate.root), settings)
    with acting_as("curator"):
        change = Change(
            id=new_change_id(gate.clock.now()),
            skill=candidate.skill,
            operations=(Archive(),),
            actor="curator",
            reason=reason,
            root=candidate.root,
        )
        verdict: Verdict = gate.propose(change)
    announcements.announce_change(change, verdict)
    short = verdict.change[-8:]
    if verdict.applied:
        text = f"{candidate.name} is taken out of use; take that back: tacit undo {short}"
        return TrialEffect("archived", text, verdict.change)
    return TrialEffect("waits", f"not taken out of use: {verdict.explain()}", verdict.change)


def _settle_proposal(
    gate: Gate, candidate: Candidate, shown: Interval, settings: Settings
) -> TrialEffect:
    """Let a change land that waited for this, or say how it is answered."""
    proposal = candidate.proposal
    assert proposal is not None
    short = proposal.id[-8:]
    if not shown.harmless:
        return TrialEffect("waits", f"it still waits: tacit inbox {short}", proposal.id)
    waited = proposal.why.reason == WAITS_FOR_TRIAL
    if not waited or current_approval(settings.learn).mode != "auto":
        return TrialEffect("waits", f"accept it: tacit accept {short}", proposal.id)
    try:
        verdict = gate.accept(proposal, setting="learn.approval")
    except TacitError as error:
        return TrialEffect("waits", f"it could not land: {error.message}", proposal.id)
    if not verdict.applied:
        return TrialEffect("waits", f"it could not land: {verdict.explain()}", proposal.id)
    text = f"{candidate.name} is in use now; take that back: tacit undo {verdict.change[-8:]}"
    return TrialEffect("accepted", text, verdict.change)
