"""`/inbox` and `/undo`: what they need of the gate, which an installation may lack."""

import os
from importlib import import_module
from typing import Any

from tacit.base import paths
from tacit.base.clock import SystemClock
from tacit.base.errors import NotFound, TacitError
from tacit.base.terminal import one_line
from tacit.ui.talk.shown import Shown, table
from tacit.ui.talk.talk import Talk


def inbox(talk: Talk, rest: str) -> Shown:
    """What waits; one proposal with its diff; or the answer to one."""
    gate, _ = _gating("the inbox").open_gate(talk.library)
    verb, _, name = rest.partition(" ")
    if verb in ("accept", "reject") and name:
        return _answer(gate, verb, name.strip())
    if rest:
        return _one(gate, gate.inbox.get(rest))
    waiting = gate.inbox.waiting()
    if not waiting:
        return Shown("The inbox is empty.")
    rows = [
        (f"{p.id[-8:]}  {one_line(p.change.skill)}", one_line(p.change.reason or p.why.reason))
        for p in waiting
    ]
    return Shown(f"{table(rows, 40)}\n\nsee one: /inbox ID")


def _one(gate: Any, proposal: Any) -> Shown:
    change, short = proposal.change, proposal.id[-8:]
    head = one_line(f"{change.skill}, by {change.actor}: {change.reason or proposal.why.reason}")
    diff = str(import_module("tacit.ui.cli.inbox").diff_of(gate, proposal))
    return Shown(f"{head}\n/inbox accept {short} · /inbox reject {short}", diff)


def _answer(gate: Any, verb: str, name: str) -> Shown:
    proposal = gate.inbox.get(name)
    if verb == "reject":
        gate.reject(proposal, "")
        return Shown(f"Rejected: {one_line(proposal.change.skill)}")
    with import_module("tacit.changes.actor").acting_as("user"):
        verdict = gate.accept(proposal)
    return Shown(_verdict(verdict, "Accepted"))


def undo(talk: Talk, rest: str) -> Shown:
    """The latest changes, or taking one of them back."""
    gate, _ = _gating("undo").open_gate(talk.library)
    if rest:
        with import_module("tacit.changes.actor").acting_as("user"):
            verdict = gate.undo(rest)
        talk.library.refresh()
        return Shown(_verdict(verdict, "Undone"))
    found = [v for site in gate.sites.values() for v in site.history.latest(10)]
    found.sort(key=lambda version: (version.at, version.record.change), reverse=True)
    if not found:
        return Shown("Nothing has been changed through Tacit yet.")
    rows = [
        (
            f"{v.record.change[-8:]}  {one_line(v.record.skill)}",
            one_line(f"{v.record.kind} by {v.record.actor}: {v.record.reason}"),
        )
        for v in found[:10]
    ]
    return Shown(f"{table(rows, 40)}\n\ntake one back: /undo ID")


def _verdict(verdict: Any, done: str) -> str:
    if verdict.applied:
        return f"{done}: {one_line(verdict.skill)} (take it back: /undo {verdict.change[-8:]})"
    return str(verdict.explain())


def waiting_count() -> int | None:
    """How many changes wait in the inbox; None where there is no inbox, or none to be read."""
    path = os.path.join(paths.folders().data, "tacit.db")
    if not os.path.exists(path):
        return None
    try:
        found = import_module("tacit.changes.inbox").Inbox(path, SystemClock()).waiting()
    except (ImportError, TacitError):
        return None
    return len(found)


def _gating(what: str) -> Any:
    try:
        return import_module("tacit.ui.cli.gating")
    except ImportError:
        raise NotFound(f"{what} is not available in this installation", "update tacit") from None
