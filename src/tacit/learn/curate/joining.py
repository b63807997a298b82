"""Carrying out a consolidation: on a copy to see whether it can be, then for good, all or nothing.

The same code does both. Each change passes the gate; when one is refused, what was made before it
is taken back. After a kill the plan is carried out again: what has landed already lands no second
time.
"""

import os
from collections.abc import Iterable

import msgspec

from tacit.changes.actor import Actor, acting_as
from tacit.changes.change import Archive, Change, Refusal, Verdict, make_change
from tacit.changes.contain import Escape
from tacit.changes.files import programs, to_bytes
from tacit.changes.gate import Gate
from tacit.changes.grouping import members
from tacit.changes.neighbours import LibraryNeighbours, Neighbour, Neighbours
from tacit.changes.undo import already_undone
from tacit.learn.curate import references
from tacit.learn.curate.likeness import PlaceLibrary
from tacit.learn.curate.report import Joined
from tacit.learn.curate.umbrellas import Consolidation, Umbrella, changes_of, renaming
from tacit.learn.curate.world import World, copied
from tacit.skills.reading import read_skill
from tacit.skills.search import Search
from tacit.skills.skill import Skill


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a consolidation."""

    joined: tuple[Joined, ...]
    refused: tuple[str, ...] = ()
    """Why not, in words that the model or the user can act on; empty when all of it landed."""
    kept_as_alias: tuple[str, ...] = ()
    """Skills that still speak of an old name, which goes on meaning the umbrella."""


def rehearse(world: World, plan: Consolidation) -> Made:
    """What `join` would make of the plan: the same, on a copy that is thrown away."""
    with copied(world) as copy:
        made = join(copy, plan, gate_over(copy, plan.place))
    joined = tuple(msgspec.structs.replace(j, outcome="would") for j in made.joined)
    return msgspec.structs.replace(made, joined=joined)


def join(world: World, plan: Consolidation, gate: Gate) -> Made:
    """Make every change of the plan, or none. The same plan twice is the same as once."""
    place = next((p for p, real in world.pairs if real.id == plan.place), None)
    if place is None:
        return _refused(plan, "its skills folder is not there any more")
    root = place.root
    with acting_as("curator"):
        for change in changes_of(plan, root):
            verdict = gate.propose(change)
            if not verdict.applied:
                _take_back(gate, plan)
                return _refused(plan, _said(change, verdict))
        rewritten, aliases = _rename(world, plan, gate, root)
    return Made(
        joined=tuple(
            _joined(plan, umbrella, root, _naming(rewritten, umbrella))
            for umbrella in plan.umbrellas
        ),
        kept_as_alias=aliases,
    )


def gate_over(world: World, place: str, *, agreed: bool = False) -> Gate:
    """The gate for a consolidation in `place` that may land: `agreed`, because the user said yes to
    it, which goes on record; else because the settings let it."""
    project = next((real.project for _, real in world.pairs if real.id == place), "")
    neighbours: Neighbours = LibraryNeighbours(project or os.path.expanduser("~"))
    if world.copy_of:
        neighbours = _OfCopy(world, neighbours)
    asked: tuple[Actor, ...] = ("curator",)
    return Gate(
        world.places,
        neighbours=neighbours,
        approver=lambda case, asks: "yes" if agreed else "later",
        always_ask=asked if agreed else (),
        data=world.data,
        clock=world.clock,
    )


class _OfCopy:
    """The skills of a copy, and around them those that were not copied."""

    def __init__(self, world: World, real: Neighbours) -> None:
        self._world = world
        self._real = real
        self._copied = {os.path.realpath(place.root) for place in world.copy_of}

    def find(self, name: str, root: str = "") -> Neighbour | None:
        library = PlaceLibrary(self._world.places, self._world.cache)
        entry = library.find(name) if "/" not in name else None
        if entry is not None and root in ("", entry.root):
            folder = os.path.relpath(entry.folder, entry.root)
            return Neighbour(entry.name, entry.root, folder, entry.origin)
        found = self._real.find(name)
        outside = found is not None and os.path.realpath(found.root) not in self._copied
        return found if outside and not root else None

    def alike(self, skill: Skill) -> list[Skill]:
        outside = [
            other
            for other in self._real.alike(skill)
            if other.folder is not None
            and os.path.realpath(other.folder.parent) not in self._copied
        ]
        library = PlaceLibrary(self._world.places, self._world.cache)
        text = f"{skill.name} {skill.description}\n{skill.body[:4000]}"
        listed = Search(library).scores(text, 8)
        return [*(read_skill(entry.folder) for _, entry in listed), *outside]

    def noticed(self, root: str, folder: str) -> None:
        return None


def _rename(
    world: World, plan: Consolidation, gate: Gate, root: str
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Let other learned skills speak of the umbrellas; who does, and who keeps the old names."""
    names = {old.rpartition("/")[2]: new.rpartition("/")[2] for old, new in plan.absorbed.items()}
    place = gate.site(root).place
    library = PlaceLibrary([place], world.cache)
    listed = references.candidates(Search(library), names)
    done: dict[str, tuple[str, ...]] = {}
    aliases: list[str] = []
    taking = {umbrella.skill for umbrella in plan.umbrellas}
    for number, folder in enumerate(sorted(listed)):
        skill = os.path.relpath(folder, root)
        if skill in taking:
            continue
        try:
            standing = gate.look(skill, root)
        except Escape:
            continue
        if not standing.is_live or standing.head is None:
            continue
        changed, met = references.renamed(standing.contents.files, names)
        if not changed:
            if _was_renamed(gate, plan, root, skill):
                done[skill] = tuple(names)
            continue
        files = standing.contents.files
        whole = {**to_bytes({p: f for p, f in files.items() if f.kind != "link"}), **changed}
        change = renaming(plan, root, number, skill, whole, standing.head.id)
        change = _keeping_programs(change, programs(files))
        if gate.propose(change).applied:
            done[skill] = met
        else:
            aliases.append(skill)
    return done, tuple(aliases)


def _keeping_programs(change: Change, executable: tuple[str, ...]) -> Change:
    (rewrite,) = change.operations
    kept = msgspec.structs.replace(rewrite, executable=executable)
    return msgspec.structs.replace(change, operations=(kept,))


def _was_renamed(gate: Gate, plan: Consolidation, root: str, skill: str) -> bool:
    """Whether a try that was killed has made the change already."""
    head = gate.site(root).history.head(skill)
    return head is not None and head.record.group == plan.id


def _take_back(gate: Gate, plan: Consolidation) -> None:
    """Undo what landed of a plan that cannot be carried out. Only its own work is touched."""
    for site, change in reversed(members(gate, plan.id)):
        versions = site.history.of_change(change)
        if already_undone(site.history, versions):
            continue
        verdict = gate.undo(change, actor="curator", root=site.place.root)
        if not verdict.applied and versions[-1].record.kind == "create":
            # Deleting is not the curator's to do; what it made and nobody needs is put away.
            skill = versions[-1].record.skill
            archive = make_change(skill, Archive(), reason="not needed", root=site.place.root)
            gate.propose(archive)


def _said(change: Change, verdict: Verdict) -> str:
    refusal = verdict.refusal or Refusal("apply", verdict.outcome, verdict.outcome)
    hint = f" ({refusal.hint})" if refusal.hint else ""
    return f"{change.skill}: {refusal.reason}{hint}"


def _refused(plan: Consolidation, why: str) -> Made:
    joined = (_joined(plan, u, "", (), outcome="refused", note=why) for u in plan.umbrellas)
    return Made(joined=tuple(joined), refused=(why,))


def _naming(rewritten: dict[str, tuple[str, ...]], umbrella: Umbrella) -> tuple[str, ...]:
    """The skills whose text names this umbrella now."""
    own = {name.rpartition("/")[2] for name in umbrella.absorbs}
    return tuple(skill for skill, met in rewritten.items() if own & set(met))


def _joined(
    plan: Consolidation,
    umbrella: Umbrella,
    root: str,
    rewritten: Iterable[str],
    *,
    outcome: str = "done",
    note: str = "",
) -> Joined:
    return Joined(
        umbrella=umbrella.skill,
        root=root,
        absorbed=umbrella.absorbs,
        why=umbrella.why,
        is_new=umbrella.is_new,
        files=umbrella.touched,
        rewritten=tuple(rewritten),
        outcome=outcome,
        note=note,
    )
