"""Noting, replacing and forgetting facts: from what somebody wants kept to a change for the gate.

Used alike by the command line, by the agent's tools and by the review of a session, each as its
own actor. Nothing here decides anything: the gate does.
"""

from collections.abc import Sequence
from datetime import date

import msgspec

from tacit.changes.actor import BACKGROUND, Actor, acting
from tacit.changes.answers import unwritable
from tacit.changes.change import Change, Create, Delete, Operation, Rewrite, Verdict, make_change
from tacit.changes.contain import Escape
from tacit.changes.gate import Gate
from tacit.changes.place import Place
from tacit.changes.standing import Standing
from tacit.skills.memory import FACT_FILE, Fact, Kind, parse_fact
from tacit.skills.skill import LEARNED_SOURCE

_OF_THE_USER: frozenset[Kind] = frozenset({"user", "feedback"})


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that somebody wants kept."""

    name: str
    """The subject; a fact of that name in the same place is replaced."""
    says: str
    kind: Kind
    detail: str = ""
    metadata: dict[str, str] = {}
    """More for the file, e.g. from which sessions and by which model."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What the history is to say of it."""

    reason: str = ""
    session: str = ""
    evidence: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    id: str = ""
    """The change's id, where it must be the same when this is done twice; else a fresh one."""


def place_for(places: Sequence[Place], kind: Kind) -> Place:
    """Where a fact of this kind goes by itself: what is about the user goes with the user."""
    scope = "user" if kind in _OF_THE_USER else "project"
    return next((place for place in places if place.scope == scope), places[-1])


def remember(
    gate: Gate,
    root: str,
    note: Note,
    why: Why | None = None,
    *,
    actor: Actor | None = None,
    today: date | None = None,
) -> Verdict:
    """Note a fact in the place `root`, or replace the one that has its name, through the gate.

    What was replaced stays in the history, with the reason. With the same id in `why`, twice is
    the same as once.
    """
    return gate.propose(noting(gate, root, note, why, actor=actor, today=today))


def noting(
    gate: Gate,
    root: str,
    note: Note,
    why: Why | None = None,
    *,
    actor: Actor | None = None,
    today: date | None = None,
) -> Change:
    """The change that `remember` proposes, for whoever wants to see first what becomes of it."""
    actor = actor or acting()
    standing = _look(gate, root, note.name)
    data = text_of(note, actor, today or date.today()).encode()
    if not standing.is_live:
        return _change(root, note.name, Create({FACT_FILE: data}), actor, why)
    old = standing.contents.files.get(FACT_FILE)
    if old is not None and old.kind != "link" and _same(parse_fact(old.data, note.name), note):
        data = old.data  # so that the gate says that nothing changes, whatever the day
    base = standing.head.id if standing.head else ""
    return _change(root, note.name, Rewrite({FACT_FILE: data}), actor, why, base)


def forget(
    gate: Gate, root: str, name: str, why: Why | None = None, *, actor: Actor | None = None
) -> Verdict:
    """Take a fact away, through the gate. Its history stays, and `tacit undo` brings it back."""
    return gate.propose(_change(root, name, Delete(), actor or acting(), why))


def text_of(note: Note, actor: Actor, today: date) -> str:
    """The FACT.md of a note."""
    import yaml

    metadata: dict[str, str] = {"kind": note.kind}
    if actor in BACKGROUND:
        metadata["source"] = LEARNED_SOURCE
    metadata |= {"noted": today.isoformat(), "by": actor}
    metadata |= {key: " ".join(str(value).split()) for key, value in note.metadata.items()}
    head = {"name": note.name, "description": " ".join(note.says.split()), "metadata": metadata}
    dumped = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100_000)
    detail = note.detail.strip()
    return f"---\n{dumped}---\n" + (f"\n{detail}\n" if detail else "")


def _look(gate: Gate, root: str, name: str) -> Standing:
    try:
        return gate.look(name, root)
    except Escape:  # the gate says why
        return Standing(skill=name, state="gone")
    except OSError as error:
        raise unwritable(gate.site(root), error) from error


def _change(
    root: str, name: str, operation: Operation, actor: Actor, why: Why | None, base: str = ""
) -> Change:
    why = why or Why()
    change = make_change(
        name,
        operation,
        actor=actor,
        reason=why.reason,
        evidence=why.evidence,
        session=why.session,
        root=root,
        base=base,
        overrides=why.overrides,
    )
    return msgspec.structs.replace(change, id=why.id) if why.id else change


def _same(fact: Fact, note: Note) -> bool:
    said = " ".join(note.says.split())
    return (fact.says, fact.kind, fact.detail) == (said, note.kind, note.detail.strip())
