"""`/inbox` and `/undo`: the gate, as it is seen from a conversation. Its modules are read late."""

import os
from typing import TYPE_CHECKING

from tacit.base import database
from tacit.base.clock import SystemClock
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.base.terminal import one_line
from tacit.ui.talk.shown import Shown, table
from tacit.ui.talk.talk import Talk

if TYPE_CHECKING:
    from tacit.changes.change import Verdict
    from tacit.changes.gate import Gate
    from tacit.changes.inbox import Proposal

_MOST = 10


def inbox(talk: Talk, rest: str) -> Shown:
    """What waits; one proposal with its diff; or the answer to one."""
    gate = _gate()
    verb, _, words = rest.partition(" ")
    if verb in ("accept", "reject"):
        return _answer(talk, gate, verb, words.strip())
    if rest:
        return _one(gate, gate.inbox.get(rest))
    waiting = gate.inbox.waiting()
    if not waiting:
        return Shown("The inbox is empty." + _question())
    rows = [
        (f"{p.id[-8:]}  {one_line(p.change.skill)}", one_line(p.change.reason or p.why.reason))
        for p in waiting
    ]
    return Shown(f"{table(rows, 40)}\n\nsee one: /inbox ID{_question()}")


def _one(gate: "Gate", proposal: "Proposal") -> Shown:
    from tacit.ui.cli.inbox import diff_of

    change, short = proposal.change, proposal.id[-8:]
    head = one_line(f"{change.skill}, by {change.actor}: {change.reason or proposal.why.reason}")
    if proposal.state != "waiting":
        return Shown(f"{head}\nanswered: {proposal.state}", diff_of(gate, proposal))
    return Shown(
        f"{head}\n/inbox accept {short} · /inbox reject {short} [why]", diff_of(gate, proposal)
    )


def _answer(talk: Talk, gate: "Gate", verb: str, words: str) -> Shown:
    from tacit.changes.actor import acting_as

    name, _, why = words.partition(" ")
    if not name:
        raise Usage(f"{verb} which?", f"name it: /inbox {verb} ID")
    from tacit.learn import notices, noticing

    proposal = gate.inbox.get(name)
    if proposal.state != "waiting":
        raise Usage(f"{proposal.id[-8:]} was {proposal.state} already", "see what waits: /inbox")
    if verb == "reject":
        gate.reject(proposal, why.strip())
        notices.refresh()
        return Shown(f"Rejected: {one_line(proposal.change.skill)}. It is not proposed again.")
    with acting_as("user"):
        verdict = gate.accept(proposal)
    talk.library.refresh()
    notices.refresh()
    asked = noticing.ask_to_go_on()
    return Shown(told(verdict, "Accepted", "take it back") + (f"\n\n{asked}" if asked else ""))


def undo(talk: Talk, rest: str) -> Shown:
    """The latest changes, or taking one of them back."""
    from tacit.changes.actor import acting_as

    gate = _gate()
    if rest:
        with acting_as("user"):
            try:
                text = told(gate.undo(rest), "Undone", "bring it back")
            except NotFound:
                text = _undo_group(gate, rest)
        talk.library.refresh()
        return Shown(text)
    found = [v for site in gate.sites.values() for v in site.history.latest(_MOST)]
    found.sort(key=lambda version: (version.at, version.record.change), reverse=True)
    if not found:
        return Shown("Nothing has been changed through Tacit yet.")
    rows = [
        (
            f"{v.record.change[-8:]}  {one_line(v.record.skill)}",
            one_line(f"{v.record.kind} by {v.record.actor}: {v.record.reason}").rstrip(": "),
        )
        for v in found[:_MOST]
    ]
    return Shown(f"{table(rows, 40)}\n\ntake one back: /undo ID")


def _undo_group(gate: "Gate", start: str) -> str:
    """Take a whole run of curation back. Raises `NotFound` where `start` names none."""
    from tacit.changes.grouping import find_group, undo_group

    group = find_group(gate, start)
    if not group:
        raise NotFound(f"no change ends with '{start}'", "see the latest: /undo")
    verdicts = undo_group(gate, group, reason="")
    lines = [f"Undone: {sum(verdict.applied for verdict in verdicts)} of {len(verdicts)} changes"]
    lines += [f"{one_line(v.skill)}: {v.explain()}" for v in verdicts if not v.applied]
    return "\n".join(lines)


def _question() -> str:
    """The question whether learned changes may land unasked, where it is open."""
    from tacit.base.settings import load
    from tacit.learn.approving import approval, question

    found = approval(load().settings.learn)
    return f"\n\n{question(found.accepted)}" if found.question else ""


def told(verdict: "Verdict", done: str, back: str) -> str:
    """What became of a change, in a line or two."""
    if verdict.applied:
        return f"{done}: {one_line(verdict.skill)} ({back}: /undo {verdict.change[-8:]})"
    text = verdict.explain()
    if verdict.refusal is not None and verdict.refusal.hint:
        text += f"\n{verdict.refusal.hint}"
    return text


def waiting_count() -> int | None:
    """How many changes wait in the inbox; None where there is no inbox, or none to be read."""
    path = database.default_path()
    if not os.path.exists(path):
        return None
    from tacit.changes.inbox import Inbox

    try:
        return len(Inbox(path, SystemClock()).waiting())
    except TacitError:
        return None


def _gate() -> "Gate":
    from tacit.ui.cli.gating import open_gate

    return open_gate(everywhere=True)[0]
