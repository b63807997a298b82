"""Repairs of skills that the user wrote: they wait in the inbox, unless it is set otherwise."""

from tacit.base.sections import Settings
from tacit.changes.change import Change, Verdict
from tacit.changes.gate import Gate

_WAITS_FOR = "proposes"
"""The gate's rule by which a change of the user's own skill waits."""


def apply_own(gate: Gate, change: Change, verdict: Verdict, settings: Settings) -> Verdict:
    """With `improve.own`, let a proposal happen that waits for no other reason than whose it is."""
    if verdict.outcome != "proposed" or not settings.improve.own:
        return verdict
    if any(ask.rule != _WAITS_FOR for ask in gate.preview(change).asks):
        return verdict
    done = gate.accept(gate.inbox.get(verdict.change))
    return done if done.applied else verdict
