"""The gate of a background agent, which lets changes land unasked as `learn.approval` says.

- `auto`: what passes the gate lands, and the user is told.
- `ask`: it waits in the inbox, and the user is asked about it at the next natural moment: in the
  chat, at the shell's prompt. One command or key answers.
- `propose-only`: it waits in the inbox, and nobody is asked: only the number that waits is shown.
- not set: as `ask` until the user has accepted three learned skills; then they are asked, once,
  whether to go on without asking. Until they answer, each change still waits.

Facts wait as skills do. Archiving is easily undone: it waits only where `ask` or `propose-only` is
set. What the check of origins marks waits in any case. Repairs of a user's own skill wait too,
unless `improve.own` is set. Drafts that were made by counting always wait. With
`learn.require_trial` learned skills wait for a trial, and facts do not. What an actor may do at
all is the gate's policy. No other module of `learn` makes a gate.
"""

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from tacit.base import paths, trust
from tacit.base.clock import Clock, SystemClock
from tacit.base.database import DATABASE_FILE
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import BACKGROUND, Actor, Change, Verdict
from tacit.changes.gate import Gate
from tacit.changes.gate_steps import Scanner
from tacit.changes.inbox import Inbox
from tacit.changes.neighbours import Neighbours, NoNeighbours
from tacit.changes.place import SHARED, Place, places_here, project_place, user_place

Mode = Literal["auto", "ask", "propose-only"]
FIRST_ACCEPTED = 3
"""Learned skills that a user reviews before they are asked whether to go on unasked."""
GO_ON = "tacit config set learn.approval auto"
KEEP_ASKING = "tacit config set learn.approval ask"
WAITS_FOR_TRIAL = "it waits until a trial has shown that it does no harm: tacit trial ID"
"""Why what is learned waits where `learn.require_trial` is set."""
_DRAFTS_ASK: frozenset[Actor] = frozenset({"distiller"})


class Approval(msgspec.Struct, frozen=True):
    """How learned changes are treated now."""

    mode: Mode
    accepted: int = 0
    """Learned skills that the user said yes to so far; counted where nothing is set."""
    question: bool = False
    """Whether the user is to be asked if it may go on by itself."""


def current_approval(learn: LearnSettings, *, data: str = "") -> Approval:
    """What the setting says, and, where there is none, what the user's answers so far say."""
    if learn.approval:
        return Approval(learn.approval)
    data = data or paths.folders().data
    inbox = Inbox(os.path.join(data, DATABASE_FILE), SystemClock())
    accepted = inbox.count("accepted", kind="create", actors=BACKGROUND, below=SHARED)
    return Approval("ask", accepted, question=accepted >= FIRST_ACCEPTED)


def background_gate(
    actor: Actor,
    places: Sequence[Place],
    settings: Settings | None = None,
    *,
    agreed: bool | None = None,
    neighbours: Neighbours | None = None,
    scanner: Scanner | None = None,
    data: str = "",
    clock: Clock | None = None,
) -> Gate:
    """The gate over `places` for an actor in the background, which asks as the user wants it.

    `agreed`: for a plan that was decided on as a whole, by the user (True, which goes on record) or
    by the settings (False). No single change is asked about then, and no settings are needed.
    """
    asks = agreed if agreed is not None else _asks(actor, settings or Settings(), data)
    return Gate(
        places,
        neighbours=neighbours,
        approver=(lambda effect, asks: "yes") if agreed else None,
        always_ask=BACKGROUND if asks else _DRAFTS_ASK,
        scanner=scanner,
        data=data or None,
        clock=clock,
    )


def _asks(actor: Actor, settings: Settings, data: str) -> bool:
    if actor == "distiller":
        return True
    if actor == "curator":  # easily undone: it waits where the user said so
        return settings.learn.approval in ("ask", "propose-only")
    return current_approval(settings.learn, data=data).mode != "auto"


def reading_gate(places: Sequence[Place], *, data: str = "", clock: Clock | None = None) -> Gate:
    """A gate by which skills and their histories are read; through it nothing lands unasked."""
    return Gate(
        places, neighbours=NoNeighbours(), always_ask=BACKGROUND, data=data or None, clock=clock
    )


def new_skill_place(project: str) -> Place:
    """Where a new skill goes: the project that it was learned in, else with the user.

    Trust is not needed for what passes the gate (see `base/trust.py`). A folder that neither has
    the mark of a project nor is trusted is none, and one whose skills lie elsewhere by a link gets
    no skill. Of several checkouts of a repository, the main one: the others come and go.
    """
    if not project:
        return user_place()
    root = paths.project_root(project)
    place = project_place(paths.main_checkout(root))
    is_project = paths.has_mark(root) or trust.is_trusted(root)
    inside = paths.is_inside(place.real, os.path.realpath(place.project or place.root))
    return place if is_project and inside else user_place()


def places_for(project: str) -> list[Place]:
    """The places of a session in `project`, first that of a new skill."""
    every = [new_skill_place(project), user_place(), *places_here(project or None)]
    return list({place.real: place for place in every}.values())


def approval_question(accepted: int) -> str:
    """What the user is asked, once, in one line with both answers."""
    return (
        f"You have accepted {accepted} learned skills. Go on without asking? "
        f"yes: {GO_ON} · no: {KEEP_ASKING}"
    )


_WAITS_FOR = "proposes"
"""The gate's rule by which a change of the user's own skill waits."""


def apply_to_own_skill(gate: Gate, change: Change, verdict: Verdict, settings: Settings) -> Verdict:
    """With `improve.own`, let a proposal happen that waits for no other reason than whose it is."""
    if verdict.outcome != "proposed" or not settings.improve.own:
        return verdict
    if any(ask.rule != _WAITS_FOR for ask in gate.preview(change).asks):
        return verdict
    done = gate.accept(gate.inbox.get(verdict.change), setting="improve.own")
    return done if done.applied else verdict
