"""From sessions to drafts in the inbox, without a model."""

import os
from collections.abc import Iterable

import msgspec

from tacit.changes.actor import Actor, acting_as
from tacit.changes.change import Create, Verdict, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import Place, project_place, user_place
from tacit.learn.counting import findings
from tacit.learn.drafts import Draft, draft
from tacit.learn.ledger import Ledger
from tacit.traces.store import Store, Stored

METHOD = "counting"
_ASKS: tuple[Actor, ...] = ("distiller",)
MOST = 10
"""Drafts that one run proposes; a person is to look at each."""


class Proposed(msgspec.Struct, frozen=True):
    """A draft and what the gate said to it."""

    draft: Draft
    verdict: Verdict | None = None
    """None in a dry run."""


def distil(
    store: Store, ledger: Ledger, chosen: list[Stored], *, dry_run: bool = False
) -> list[Proposed]:
    """Draft what `chosen` show, together with the other sessions of their projects.

    Every session of `chosen` gets a line in the ledger, so that the next run leaves it out.
    """
    projects = {stored.head.project for stored in chosen}
    related = [s for s in store.sessions(limit=10_000) if s.head.project in projects]
    drafts = [draft(finding) for finding in findings(store.trace(s.id) for s in related)]
    new = {stored.id for stored in chosen}
    drafts = [d for d in drafts if new.intersection(d.evidence)][:MOST]
    done = [Proposed(d, None if dry_run else propose(d)) for d in drafts]
    if not dry_run:
        _note(ledger, chosen, done)
    return done


def propose(made: Draft) -> Verdict:
    """Put a draft before the user: it waits in the inbox, whatever the other settings say."""
    place = _place(made.project)
    places = list({p.real: p for p in (place, user_place())}.values())
    gate = Gate(places, always_ask=_ASKS)
    with acting_as("distiller"):
        change = make_change(
            made.name,
            Create({"SKILL.md": made.text.encode()}),
            reason=made.reason,
            evidence=made.evidence,
            root=place.root,
        )
        return gate.propose(change)


def _place(project: str) -> Place:
    """The project's own skills, where the project is still there; else the user's."""
    return project_place(project) if project and os.path.isdir(project) else user_place()


def _note(ledger: Ledger, chosen: Iterable[Stored], done: list[Proposed]) -> None:
    for stored in chosen:
        own = [p for p in done if stored.id in p.draft.evidence and p.verdict is not None]
        waiting = [p for p in own if p.verdict and p.verdict.outcome == "proposed"]
        if waiting:
            names = ", ".join(p.draft.name for p in waiting)
            changes = tuple(p.verdict.change for p in waiting if p.verdict)
            ledger.record(stored, METHOD, "proposed", f"drafts in the inbox: {names}", changes)
        elif own and own[0].verdict is not None:
            ledger.record(stored, METHOD, "refused", own[0].verdict.explain())
        else:
            reason = "no failure was mended, nothing was put right, and nothing recurs"
            ledger.record(stored, METHOD, "nothing", reason)
