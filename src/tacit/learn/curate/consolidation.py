"""A consolidation: which skills are joined in which umbrella, and the changes that make it so.

The plan holds everything that is needed to make the changes again after a kill, or later when the
user agrees. It is carried out on a copy first, to see whether it can be, then for good, all or
nothing: when the gate refuses one change, those before it are undone. Other learned skills that
name a joined skill get the umbrella's name, where the text clearly means a skill.
"""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from tacit.changes.change import (
    Archive,
    Change,
    Create,
    File,
    FileOperation,
    MergeInto,
    Operation,
    Refusal,
    Rewrite,
    Verdict,
    acting_as,
    make_change,
)
from tacit.changes.change_groups import group_members
from tacit.changes.containment import Escape
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours, Neighbour, Neighbours
from tacit.changes.skill_state import SkillState
from tacit.changes.undo import already_undone
from tacit.learn.background.background_gate import background_gate
from tacit.learn.background.staging import change_id, operations_between
from tacit.learn.curate.curation import JoinedSkills
from tacit.learn.curate.curation_scope import CurationScope, copied_scope
from tacit.learn.curate.library_survey import place_library
from tacit.skills.skill import Skill
from tacit.skills.skill_file import read_skill
from tacit.skills.skill_search import Search


class Umbrella(msgspec.Struct, frozen=True, kw_only=True):
    """One skill that takes in others."""

    skill: str
    """Its folder; of a new one, its name."""
    is_new: bool
    absorbs: tuple[str, ...]
    """The folders of the skills that it takes in."""
    why: str
    files: dict[str, bytes] = {}
    """What it will hold; of one that was there, empty when nothing in it changes."""
    executable: tuple[str, ...] = ()
    base: str = ""
    """The version that was read."""
    touched: tuple[str, ...] = ()
    """The files that are new in it or changed."""


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """Several umbrellas in one place, made and taken back together."""

    id: str
    """The group of all its changes."""
    at: datetime
    place: str
    """The id of the place."""
    umbrellas: tuple[Umbrella, ...]
    model: str = ""
    key: str = ""
    """The cluster that it came from."""
    agreed: bool = False
    """The user said yes to it."""

    @property
    def absorbed(self) -> dict[str, str]:
        """Each skill that is taken in, and what takes it in."""
        return {name: umbrella.skill for umbrella in self.umbrellas for name in umbrella.absorbs}


def changes_of(plan: Consolidation, root: str) -> list[Change]:
    """The changes that make the umbrellas and archive what they take in, in their order."""
    found: list[Change] = []
    for umbrella in plan.umbrellas:
        if umbrella.is_new:
            operation = Create(umbrella.files, umbrella.executable, umbrella.absorbs)
            found.append(_change(plan, root, len(found), umbrella.skill, umbrella.why, operation))
        elif umbrella.files:
            rewrite = Rewrite(umbrella.files, umbrella.executable)
            change = _change(plan, root, len(found), umbrella.skill, umbrella.why, rewrite)
            found.append(msgspec.structs.replace(change, base=umbrella.base))
        for name in umbrella.absorbs:
            merge = MergeInto(umbrella.skill)
            why = f"part of '{umbrella.skill}' now: {umbrella.why}"
            found.append(_change(plan, root, len(found), name, why, merge))
    return found


def reference_change(
    plan: Consolidation,
    root: str,
    number: int,
    state: SkillState,
    operations: tuple[FileOperation, ...],
) -> Change:
    """The change that lets another skill speak of the umbrellas by their names."""
    named = ", ".join(f"'{new}'" for new in dict.fromkeys(plan.absorbed.values()))
    change = _change(plan, root, 500 + number, state.skill, f"it names {named} now", *operations)
    return msgspec.structs.replace(change, base=state.head.id if state.head else "")


def _change(
    plan: Consolidation, root: str, number: int, skill: str, why: str, *operations: Operation
) -> Change:
    return Change(
        id=change_id(plan.id, skill, number=number),
        skill=skill,
        operations=operations,
        actor="curator",
        reason=why,
        root=root,
        group=plan.id,
    )


_TEXT = (".md", ".txt")
_MOST_CANDIDATES = 50
"""Skills that are opened for one name; the index says which."""
# What stands before the name and after it.
_WAYS = (
    (r"`/?", r"`"),
    (r"(?:^|(?<=[\s(\"'“]))/", r"(?![\w/-])"),
    (r"run_skill\([^)\n]{0,40}[\"']", r"[\"']"),
    (r"(?:skills?|\.\.)/", r"/"),
    (r"\[\[", r"\]\]"),
    (r"(?<![\w-])skill:? ", r"(?![\w-])"),
    (r"(?<![\w/-])", r" skill(?![\w-])"),
)


def reference_candidates(search: Search, names: Iterable[str]) -> set[str]:
    """The folders of skills that may name one of `names`, by the index."""
    return {entry.folder for name in names for _, entry in search.scores(name, _MOST_CANDIDATES)}


def renamed_references(
    files: Mapping[str, File], names: Mapping[str, str]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files that change when skills get the names that `names` says; which were named."""
    changed: dict[str, bytes] = {}
    met: dict[str, None] = {}
    for path, file in files.items():
        if file.kind == "link" or not path.lower().endswith(_TEXT):
            continue
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        new = text
        for old, instead in names.items():
            before = new
            for pattern in _patterns(old):
                new = pattern.sub(rf"\g<1>{instead}\g<2>", new)
            if new != before:
                met[old] = None
        if new != text:
            changed[path] = new.encode("utf-8")
    return changed, tuple(met)


def _patterns(name: str) -> "list[re.Pattern[str]]":
    word = re.escape(name)
    return [re.compile(f"({a}){word}({b})", re.MULTILINE) for a, b in _WAYS]


class ConsolidationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a consolidation."""

    joined: tuple[JoinedSkills, ...]
    refused: tuple[str, ...] = ()
    """Why not, in words that the model or the user can act on; empty when all of it landed."""
    kept_as_alias: tuple[str, ...] = ()
    """Skills that still speak of an old name, which goes on meaning the umbrella."""


def rehearse_consolidation(scope: CurationScope, plan: Consolidation) -> ConsolidationResult:
    """What `join` would make of the plan: the same, on a copy that is thrown away."""
    with copied_scope(scope) as copy:
        made = carry_out(copy, plan, consolidation_gate(copy, plan.place))
    joined = tuple(msgspec.structs.replace(j, outcome="would") for j in made.joined)
    return msgspec.structs.replace(made, joined=joined)


def carry_out(scope: CurationScope, plan: Consolidation, gate: Gate) -> ConsolidationResult:
    """Make every change of the plan, or none. Idempotent."""
    place = next((p for p, real in scope.pairs if real.id == plan.place), None)
    if place is None:
        return _refused(plan, "its skills folder is not there any more")
    root = place.root
    with acting_as("curator"):
        for change in changes_of(plan, root):
            verdict = gate.propose(change)
            if not verdict.applied:
                _take_back(gate, plan)
                return _refused(plan, _why_refused(change, verdict))
        rewritten, aliases = _rename(scope, plan, gate, root)
    return ConsolidationResult(
        joined=tuple(
            _joined(plan, umbrella, root, _naming(rewritten, umbrella))
            for umbrella in plan.umbrellas
        ),
        kept_as_alias=aliases,
    )


def consolidation_gate(scope: CurationScope, place: str, *, agreed: bool = False) -> Gate:
    """The gate for a consolidation in `place` that may land: `agreed`, because the user said yes to
    it, which goes on record; else because the settings let it."""
    project = next((real.project for _, real in scope.pairs if real.id == place), "")
    neighbours: Neighbours = LibraryNeighbours(project or os.path.expanduser("~"))
    if scope.copy_of:
        neighbours = _OfCopy(scope, neighbours)
    return background_gate(
        "curator",
        scope.places,
        agreed=agreed,
        neighbours=neighbours,
        data=scope.data,
        clock=scope.clock,
    )


class _OfCopy:
    """The skills of a copy, and around them those that were not copied."""

    def __init__(self, scope: CurationScope, real: Neighbours) -> None:
        self._scope = scope
        self._real = real
        self._copied = {os.path.realpath(place.root) for place in scope.copy_of}

    def find(self, name: str, root: str = "") -> Neighbour | None:
        library = place_library(self._scope.places, self._scope.cache)
        entry = library.find(name) if "/" not in name else None
        if entry is not None and root in ("", entry.root):
            folder = entry.relative_folder
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
        library = place_library(self._scope.places, self._scope.cache)
        text = f"{skill.name} {skill.description}\n{skill.body[:4000]}"
        listed = Search(library).scores(text, 8)
        return [*(read_skill(entry.folder) for _, entry in listed), *outside]

    def changed(self, root: str, folder: str) -> None:
        return None


def _rename(
    scope: CurationScope, plan: Consolidation, gate: Gate, root: str
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Let other learned skills speak of the umbrellas; who does, and who keeps the old names."""
    names = {old.rpartition("/")[2]: new.rpartition("/")[2] for old, new in plan.absorbed.items()}
    place = gate.open_place(root).place
    library = place_library([place], scope.cache)
    listed = reference_candidates(Search(library), names)
    done: dict[str, tuple[str, ...]] = {}
    aliases: list[str] = []
    taking = {umbrella.skill for umbrella in plan.umbrellas}
    for number, folder in enumerate(sorted(listed)):
        skill = os.path.relpath(folder, root)
        if skill in taking:
            continue
        try:
            now = gate.state_of(skill, root)
        except Escape:
            continue
        if not now.is_live or now.head is None:
            continue
        changed, met = renamed_references(now.contents.files, names)
        if not changed:
            if _was_renamed(gate, plan, root, skill):
                done[skill] = tuple(names)
            continue
        files = now.contents.files
        new = files | {path: File(data, files[path].kind) for path, data in changed.items()}
        change = reference_change(plan, root, number, now, operations_between(files, new))
        if gate.propose(change).applied:
            done[skill] = met
        else:
            aliases.append(skill)
    return done, tuple(aliases)


def _was_renamed(gate: Gate, plan: Consolidation, root: str, skill: str) -> bool:
    """Whether a try that was killed has made the change already."""
    head = gate.open_place(root).history.head(skill)
    return head is not None and head.record.group == plan.id


def _take_back(gate: Gate, plan: Consolidation) -> None:
    """Undo what landed of a plan that cannot be carried out. Only its own work is touched."""
    for opened, change in reversed(group_members(gate, plan.id)):
        versions = opened.history.of_change(change)
        if already_undone(opened.history, versions):
            continue
        verdict = gate.undo(change, actor="curator", root=opened.place.root)
        if not verdict.applied and versions[-1].record.kind == "create":
            # Deleting is not the curator's to do; what it made and nobody needs is archived.
            skill = versions[-1].record.skill
            archive = make_change(skill, Archive(), reason="not needed", root=opened.place.root)
            gate.propose(archive)


def _why_refused(change: Change, verdict: Verdict) -> str:
    refusal = verdict.refusal or Refusal("apply", verdict.outcome, verdict.outcome)
    hint = f" ({refusal.hint})" if refusal.hint else ""
    return f"{change.skill}: {refusal.reason}{hint}"


def _refused(plan: Consolidation, why: str) -> ConsolidationResult:
    joined = (_joined(plan, u, "", (), outcome="refused", note=why) for u in plan.umbrellas)
    return ConsolidationResult(joined=tuple(joined), refused=(why,))


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
) -> JoinedSkills:
    return JoinedSkills(
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
