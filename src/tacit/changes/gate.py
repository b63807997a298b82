"""The gate: every change passes policy, containment, standard, scan, size, near-duplicate,
approval, apply and commit, in this order.

Owns the order, what happens between the steps, how a judged change lands, and how a group of
changes is taken back together; what each step says is in `gate_steps`. A refusal is a value. What
is raised is trouble with the machine (`Unwritable`, `Busy`, `Damaged`), never a matter of rules.
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from tacit.base import paths, trust
from tacit.base.clock import Clock, SystemClock
from tacit.base.database import DATABASE_FILE
from tacit.base.errors import NotFound, Refused, TacitError
from tacit.base.event_bus import bus
from tacit.changes import git_exclude, undo
from tacit.changes.change import (
    BACKGROUND,
    Actor,
    Applied,
    Change,
    Create,
    Files,
    Preview,
    Proposed,
    Refusal,
    Unfit,
    Verdict,
    bytes_of,
    executable_paths,
    make_change,
    new_change_id,
)
from tacit.changes.containment import Escape, Folder
from tacit.changes.effect import FREE_ARCHIVE, Effect, work_out
from tacit.changes.file_edits import diff_files
from tacit.changes.gate_steps import (
    Approver,
    Consent,
    Judge,
    Judgement,
    Question,
    Scanner,
    always_asks,
    applied_verdict,
    check_author,
    made_to_wait,
    marked_first,
    may_answer,
    may_undo,
    overtaken,
    refused_by_user,
    refused_verdict,
    rejected_before,
    unwritable_place,
)
from tacit.changes.git_store import change_ref, tree_id
from tacit.changes.history import ref_updates
from tacit.changes.inbox import Inbox, Proposal
from tacit.changes.journal import JournalEntry, OpenPlace, Overtaken, carry_out
from tacit.changes.left_out import Apart
from tacit.changes.neighbours import LibraryNeighbours, Neighbours
from tacit.changes.place import Place, places_here
from tacit.changes.policy import rules_of
from tacit.changes.skill_state import (
    Action,
    CommitDetails,
    SkillState,
    commit_unrecorded,
    free_archive_key,
    prepare_entry,
    read_state,
)
from tacit.changes.stage import clean


def land(
    opened: OpenPlace,
    root: Folder,
    change: Change,
    actions: Sequence[Action],
    details: CommitDetails,
    at: datetime,
    apart: Apart | None = None,
) -> str:
    """Make `actions` true, and what was left out of them a proposal; return the id of the new
    version. Raises `Overtaken` or OSError."""
    ready = [_with_key(root, action) for action in actions]
    try:
        entry = prepare_entry(root, opened, change, ready, at, details)
        hides = _hidden_from_git(opened, change, ready)
        own = _claim_own(opened, change, ready)
        name = change_ref(change.id, ready[-1].now.skill)
        version = next(ref.new for ref in entry.refs if ref.name == name)
        if apart is not None:  # its lines are to be put back into this very version
            lines = msgspec.structs.replace(apart.change, base=version)
            apart = msgspec.structs.replace(apart, change=lines)
        carry_out(opened, root, msgspec.structs.replace(entry, hides=hides, apart=apart))
    finally:
        if not opened.journal.holds(change.id):  # else what is on the stage is still needed
            with suppress(OSError, Escape):
                clean(root)
    # It has landed: what follows may fail, and is then found by doctor.
    with suppress(OSError, TacitError):
        for path, digest in own.items():
            trust.settle(opened.data, path, digest)
    for action in ready:
        if action.kind in ("delete", "renamed"):
            with suppress(OSError, TacitError):
                _show_to_git(opened, action.now.skill)
    return version


def record_by_hand(opened: OpenPlace, root: Folder, now: SkillState, at: datetime) -> SkillState:
    """Put what stands in a folder into its history, as the user's, and return its new state."""
    if now.is_recorded:
        return now
    version = commit_unrecorded(opened.history, now, at)
    head = now.head
    refs = ref_updates([version], head.id if head else "")
    entry = JournalEntry(version.record.change, opened.real, now.skill, (), refs)
    carry_out(opened, root, entry)
    return read_state(root, opened.history, now.skill)


def _hidden_from_git(
    opened: OpenPlace, change: Change, actions: Sequence[Action]
) -> tuple[str, ...]:
    """What a machine learned in a project stays out of `git status` from the start, and so do
    facts, whoever recorded them: they may be about a person."""
    if opened.place.scope != "project":
        return ()
    private_at_first = change.actor in BACKGROUND or opened.place.kind == "facts"
    return tuple(
        action.now.skill
        for action in actions
        if (action.kind == "create" and private_at_first)
        or (action.kind == "rename" and git_exclude.is_hidden(opened.place, action.partner))
    )


def _claim_own(opened: OpenPlace, change: Change, actions: Sequence[Action]) -> dict[str, str]:
    """Note what will be the user's own in a project that may not be trusted; see `base/trust.py`.

    That is what is made here, and what is made of what was theirs. A change of what came with the
    clone, or was changed since past the gate, does not make it theirs. By the path of each folder
    that is left or filled: the digest of what will lie there, empty where that is not theirs.
    """
    if opened.place.scope != "project":
        return {}
    known = {(digest, path): mark for mark, digest, path in trust.own_lines(opened.data)}

    def digest(files: Files) -> str:
        return trust.files_digest((path, file.kind, file.data) for path, file in files.items())

    def path_of(slot: str) -> str:
        return f"{opened.real}/{slot}"

    def is_own(now: SkillState) -> bool:
        return known.get((digest(now.contents.files), path_of(now.slot))) == trust.OWN

    made = any(isinstance(operation, Create) for operation in change.operations)
    theirs = {action.now.skill for action in actions if is_own(action.now)}
    claims: dict[str, str] = {}
    for action in actions:
        new, here = digest(action.files), path_of(action.now.slot)
        there = path_of(msgspec.structs.replace(action.now, state=action.state).slot)
        claims.setdefault(here, "")
        own = (
            (made and action.kind == "create" and action.now.state == "gone")
            or action.now.skill in theirs
            or action.copy_from in theirs
            or (new, there) in known  # an undo brings an own version back
        )
        if own and action.state != "gone":
            trust.claim(opened.data, there, new)
            claims[there] = new
    return claims


def _show_to_git(opened: OpenPlace, skill: str) -> None:
    if opened.place.scope == "project":
        git_exclude.show(opened.place, skill, opened.data)


def _with_key(root: Folder, action: Action) -> Action:
    if action.state != FREE_ARCHIVE:
        return action
    key = free_archive_key(root, action.now.skill)
    return msgspec.structs.replace(action, state=f"archived:{key}")


T = TypeVar("T")
ATTEMPTS = 20
"""How often a change is begun again because somebody edited the folder meanwhile."""


class Gate:
    """The one road into the skills of some places. Any number of processes may use it at once."""

    def __init__(
        self,
        places: Sequence[Place] | None = None,
        *,
        neighbours: Neighbours | None = None,
        approver: Approver | None = None,
        always_ask: Collection[Actor] = (),
        scanner: Scanner | None = None,
        data: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.data = data or paths.folders().data
        self.clock = clock or SystemClock()
        self.open_places: dict[str, OpenPlace] = {}
        for place in places if places is not None else places_here():
            if (real := place.real) not in self.open_places:
                self.open_places[real] = OpenPlace(place, self.data)
        self.neighbours = neighbours if neighbours is not None else LibraryNeighbours()
        self.inbox = Inbox(os.path.join(self.data, DATABASE_FILE), self.clock)
        self._judge = Judge(self.neighbours, scanner, always_ask)
        self._approver = approver
        self._always_ask = frozenset(always_ask)

    def propose(self, change: Change, *, waits: str = "") -> Verdict:
        """Put `change` through every step. With the same id again, what landed is the answer.

        `waits`: why it is to wait in the inbox although nothing else would keep it from landing.
        """
        if refusal := check_author(change):
            return refused_verdict(change, refusal)
        opened, change = self._locate(change)
        return self._run(opened, change, Consent(waits=waits))

    def preview(self, change: Change, *, part: bool = False) -> Preview:
        """What `propose` would do, and the diff; nothing is changed and nobody is asked. `part`: of
        what would land of it, where nothing but some lines would wait."""
        if refusal := check_author(change):
            return Preview(refusal=refusal)
        opened, change = self._locate(change)
        if refusal := undo.taken_back(opened.history, change):
            return Preview(refusal=refusal)
        try:
            with opened.writing() if opened.exists() else opened.empty_stand_in() as root:
                effect = work_out(opened.place, root, opened.history, change)
                judgement = self._judge.judge(effect)
                if part:
                    effect, judgement = self._judged(effect, Consent())
        except Unfit as unfit:
            return Preview(refusal=unfit.refusal)
        asks, lines = judgement.asks, judgement.apart.number if judgement.apart else 0
        if change.actor in self._always_ask:
            asks = (*asks, always_asks(change.actor))
        diff = diff_files(effect.old, effect.new)
        return Preview(judgement.refusal, asks, judgement.notes, diff, lines)

    def accept(self, proposal: Proposal, *, setting: str = "") -> Verdict:
        """Apply what waits in the inbox, as its author and with the user's consent.

        It is judged again, against what stands there now. The proposal stays when it is refused.
        A machine answers for nobody, unless by a `setting` of the user's that says so.
        """
        refusal = may_answer(proposal, self.inbox.get(proposal.id), by_setting=bool(setting))
        history = self.open_place(proposal.change.root).history
        if refusal := refusal or undo.taken_back(history, proposal.change):
            return refused_verdict(proposal.change, refusal)
        # The change gets an id of its own, so that the log has it where it landed in time. The
        # id is recorded first: after a kill the same one is used, and nothing lands twice.
        applied_as = self.inbox.begin(proposal, new_change_id(self.clock.now()))
        change = msgspec.structs.replace(proposal.change, id=applied_as)
        verdict = self._run(self.open_place(change.root), change, Consent("yes"))
        if not verdict.applied:
            return verdict
        try:
            self.inbox.close(proposal, "accepted")
        except TacitError as error:  # it has landed all the same, and `waiting` will see that
            note = f"the inbox could not be told ({error.message}); it is when it is next opened"
            return msgspec.structs.replace(verdict, notes=(*verdict.notes, note))
        return verdict

    def waiting(self) -> list[Proposal]:
        """What waits in the inbox. What was accepted and has landed, without its answer having been
        written down, is closed now."""
        landed = {one.id: one for one in self.inbox.begun() if self._has_landed(one)}
        for proposal in landed.values():
            with suppress(TacitError):
                self.inbox.close(proposal, "accepted")
        return [p for p in self.inbox.waiting() if p.id not in landed]

    def _has_landed(self, proposal: Proposal) -> bool:
        opened = self.open_places.get(os.path.realpath(proposal.change.root))
        try:
            return bool(opened and opened.history.knows(proposal.applied_as, proposal.change.skill))
        except (TacitError, OSError):
            return False

    def reject(self, proposal: Proposal, reason: str = "") -> None:
        """Turn a proposal down; the same idea is not proposed again. Raises `Refused` where it was
        answered already."""
        landed = bool(proposal.applied_as) and self._has_landed(proposal)
        if not self.inbox.close(proposal, "accepted" if landed else "rejected", reason) or landed:
            raise Refused(f"{proposal.id} was answered already", "see: tacit inbox --all")

    def undo(
        self,
        change: str,
        *,
        actor: Actor | None = None,
        root: str = "",
        reason: str = "",
        approved: bool = False,
    ) -> Verdict:
        """Take a change back, keeping what came after it. Of an undone change, bring it back.

        `approved`: a person said yes to this very call, which the agent needs.
        """
        opened = self._open_place_of(change, root)
        change = opened.history.find_change(change)
        versions = opened.history.of_change(change)
        if again := undo.already_undone(opened.history, versions):
            change, versions = again, opened.history.of_change(again)
        skill = versions[-1].record.skill
        new = make_change(skill, actor=actor, reason=reason or f"undo {change}")
        authors = {version.record.actor for version in versions}
        if refusal := check_author(new) or may_undo(new, authors, approved=approved):
            return refused_verdict(new, refusal)

        def actions(folder: Folder) -> list[Action]:
            return undo.undo_actions(folder, opened.history, versions, rules_of(opened.place))

        by = "user" if approved else ""
        return self._take_back(opened, new, actions, CommitDetails(undoes=change, approved_by=by))

    def rollback(
        self,
        skill: str,
        version: str = "",
        *,
        actor: Actor | None = None,
        root: str = "",
        approved: bool = False,
    ) -> Verdict:
        """Make one skill what it was in `version`: by default, before its last change."""
        opened = self.open_place(root)
        if version:
            wanted = opened.history.find_version(skill, version)
        else:
            head = opened.history.head(skill)
            if head is None or not head.parent:
                raise NotFound(f"'{skill}' has no earlier version", f"see: tacit log {skill}")
            wanted = opened.history.version(head.parent)
        reason = f"back to {wanted.id[:12]}"
        new = make_change(skill, actor=actor, reason=reason, root=opened.place.root)
        if refusal := check_author(new) or may_undo(new, set(), approved=approved):
            return refused_verdict(new, refusal)

        def actions(folder: Folder) -> list[Action]:
            return [undo.rollback_action(folder, opened.history, skill, wanted)]

        by = "user" if approved else ""
        return self._take_back(opened, new, actions, CommitDetails(approved_by=by))

    def state_of(self, skill: str, root: str = "") -> SkillState:
        """How `skill` stands, hand edits recorded, so that `.head.id` is a base for a change."""
        opened = self.open_place(root)
        if not opened.exists():
            return SkillState(skill=skill, state="gone", head=opened.history.head(skill))
        with opened.writing() as folder:
            now = read_state(folder, opened.history, skill)
            return record_by_hand(opened, folder, now, self.clock.now())

    def share(self, skill: str, root: str = "") -> bool:
        """Let git see a learned skill of a project; False where it was not hidden."""
        opened = self.open_place(root)
        return git_exclude.show(opened.place, skill, opened.data)

    def open_place(self, root: str = "") -> OpenPlace:
        """The place with this skills folder, by default the first. Raises `NotFound`."""
        if not root:
            return next(iter(self.open_places.values()))
        found = self.open_places.get(os.path.realpath(root))
        if found is None:
            known = ", ".join(opened.place.root for opened in self.open_places.values())
            raise NotFound(f"{root} is not a skills folder that is known here", f"known: {known}")
        return found

    def _run(
        self, opened: OpenPlace, change: Change, consent: Consent, *, copy_of: str = ""
    ) -> Verdict:
        for _ in range(ATTEMPTS):
            outcome = self._retried(
                opened, change, partial(self._attempt, opened, change, consent, copy_of)
            )
            if isinstance(outcome, Verdict):
                return outcome
            if isinstance(outcome, Effect):
                return self._copy(outcome)
            assert self._approver is not None
            answer = self._approver(outcome.effect, outcome.asks)
            if answer == "no":
                return refused_verdict(change, refused_by_user())
            consent = Consent(answer, tree_id(outcome.effect.new))
        return refused_verdict(change, overtaken(change))

    def _retried(self, opened: OpenPlace, change: Change, attempt: Callable[[], T]) -> T | Verdict:
        """What `attempt` returns, begun again where somebody edited the folder meanwhile."""
        for _ in range(ATTEMPTS):
            try:
                return attempt()
            except Overtaken:
                continue
            except Unfit as unfit:
                return refused_verdict(change, unfit.refusal, unfit.offer)
            except OSError as error:
                raise unwritable_place(opened, error) from error
        return refused_verdict(change, overtaken(change))

    def _attempt(
        self, opened: OpenPlace, change: Change, consent: Consent, copy_of: str
    ) -> Verdict | Question | Effect:
        if not opened.exists():  # judged first, so that a refusal leaves no empty folders behind
            with opened.empty_stand_in() as nothing:
                effect, judgement, held = self._judge_effect(
                    opened, nothing, change, consent, copy_of
                )
            if held is not None:
                return held
        with opened.writing() as root:
            if version := opened.history.knows(change.id, change.skill):
                return applied_verdict(self.inbox, change.id, change.skill, version)
            effect, judgement, held = self._judge_effect(opened, root, change, consent, copy_of)
            if held is not None:
                return held
            details = CommitDetails(
                approved_by="user" if consent.covers(effect) else "",
                overrides=judgement.overridden,
                copy_of=copy_of,
            )
            apart = judgement.apart
            if apart is not None and self.inbox.rejected_like(apart.change):
                apart = None  # the user said no to these lines
            version = land(opened, root, change, effect.actions, details, self.clock.now(), apart)
        self._announce(opened, change, effect.actions, version)
        return applied_verdict(self.inbox, change.id, change.skill, version, judgement.notes)

    def _judge_effect(
        self, opened: OpenPlace, root: Folder, change: Change, consent: Consent, copy_of: str
    ) -> tuple[Effect, Judgement, Verdict | Question | Effect | None]:
        """The steps up to the approval; the last value is what keeps the change from landing."""
        effect = work_out(opened.place, root, opened.history, change)
        effect, judgement = self._judged(effect, consent, is_copy=bool(copy_of))
        if judgement.refusal is not None:
            held = self._refuse(opened, root, effect, judgement.refusal, consent)
            return effect, judgement, held
        if judgement.decision == "copy":
            return effect, judgement, effect
        return effect, judgement, self._approve(opened, root, effect, judgement, consent)

    def _judged(
        self, effect: Effect, consent: Consent, *, is_copy: bool = False
    ) -> tuple[Effect, Judgement]:
        """The judgement on a change; where nothing but some lines of what a machine learned keep
        it from landing unasked, on the change without them."""
        judgement, actor = self._judge.judge(effect, is_copy=is_copy), effect.change.actor
        unasked = actor in BACKGROUND and actor not in self._always_ask and not consent.waits
        if judgement.refusal is not None or not (unasked and consent.answer is None):
            return effect, judgement
        return self._judge.judge_part(effect, judgement) or (effect, judgement)

    def _refuse(
        self, opened: OpenPlace, root: Folder, effect: Effect, refusal: Refusal, consent: Consent
    ) -> Verdict:
        """A refusal; of a machine's conflict, a question for a person who was not asked yet."""
        offer = (
            bytes_of(effect.merged.files) if effect.merged and refusal.rule == "conflict" else {}
        )
        if offer and effect.change.actor != "user" and consent.answer is None:
            verdict = self._put_in_inbox(opened, root, effect, refusal)
            return msgspec.structs.replace(verdict, offer=offer)
        return refused_verdict(effect.change, refusal, offer)

    def _approve(
        self,
        opened: OpenPlace,
        root: Folder,
        effect: Effect,
        judgement: Judgement,
        consent: Consent,
    ) -> Verdict | Question | None:
        """None when the change may land now."""
        change, asks = effect.change, judgement.asks
        if consent.covers(effect):
            return None
        if change.actor == "user":
            return refused_verdict(change, asks[0]) if asks else None
        if found := self.inbox.rejected_like(change):
            return refused_verdict(change, rejected_before(found))
        if change.actor in self._always_ask:
            asks = (*asks, always_asks(change.actor))
        if consent.waits:
            asks = (*asks, made_to_wait(consent.waits))
        if not asks:
            return None
        can_ask = change.actor == "agent" or change.actor in self._always_ask
        if can_ask and self._approver is not None and consent.answer != "later":
            return Question(effect, asks)
        return self._put_in_inbox(opened, root, effect, marked_first(asks))

    def _put_in_inbox(
        self, opened: OpenPlace, root: Folder, effect: Effect, why: Refusal
    ) -> Verdict:
        """Let the change wait, with the version it was made on, so that it can be merged later."""
        change = effect.change
        now = effect.actions[0].now
        if effect.before is not None and not change.base and now.is_live:
            now = record_by_hand(opened, root, now, self.clock.now())
            base = now.head.id if now.head else ""
            if len(effect.actions) == 1:
                change = msgspec.structs.replace(change, base=base)
        proposal = self.inbox.add(change, why)
        if proposal.id == change.id:
            bus.publish(Proposed(change, why))
        return Verdict(outcome="proposed", change=proposal.id, skill=change.skill, refusal=why)

    def _copy(self, effect: Effect) -> Verdict:
        """Somebody else's skill was to be edited: the user gets a copy of their own instead."""
        change = effect.change
        target = next((s for s in self.open_places.values() if s.place.scope == "user"), None)
        if target is None:
            refusal = Refusal(
                "policy", "no-own-place", "there is no place of the user's for a copy", ""
            )
            return refused_verdict(change, refusal)
        create = Create(bytes_of(effect.new), executable_paths(effect.new))
        copy = msgspec.structs.replace(
            change,
            skill=change.skill.rsplit("/", 1)[-1],
            root=target.place.root,
            operations=(create,),
            base="",
        )
        return self._run(target, copy, Consent(), copy_of=change.root)

    def _take_back(
        self,
        opened: OpenPlace,
        change: Change,
        actions: Callable[[Folder], list[Action]],
        details: CommitDetails,
    ) -> Verdict:
        def attempt() -> Verdict:
            with opened.writing() as root:
                wanted = actions(root)
                undo.check_undo(opened.place, change, wanted)
                version = land(opened, root, change, wanted, details, self.clock.now())
            self._announce(opened, change, wanted, version)
            return applied_verdict(self.inbox, change.id, change.skill, version)

        return self._retried(opened, change, attempt)

    def _announce(
        self, opened: OpenPlace, change: Change, actions: Sequence[Action], version: str
    ) -> None:
        noun = rules_of(opened.place).noun
        for action in actions if noun == "skill" else ():
            with suppress(OSError, TacitError):
                self.neighbours.changed(opened.place.root, action.now.skill)
        bus.publish(Applied(change, actions[-1].kind, version, opened.real, noun))

    def _locate(self, change: Change) -> tuple[OpenPlace, Change]:
        """The place of a change, and the change with its skill's folder filled in.

        A skill may go by a name that is not its folder's: both find it. Without a `root`, a skill
        that is not in the first place is looked for where the library has it.
        """
        opened = self.open_place(change.root)
        skill = change.skill
        is_new = bool(change.operations) and isinstance(change.operations[0], Create)
        if not is_new and not os.path.lexists(os.path.join(opened.real, skill)):
            found = self.neighbours.find(skill, change.root)
            if found is not None and os.path.realpath(found.root) in self.open_places:
                opened, skill = self.open_place(found.root), found.folder
        return opened, msgspec.structs.replace(change, root=opened.place.root, skill=skill)

    def _open_place_of(self, change: str, root: str) -> OpenPlace:
        if root:
            return self.open_place(root)
        for opened in self.open_places.values():
            try:
                opened.history.find_change(change)
            except NotFound:
                continue
            return opened
        raise NotFound(f"there is no one change '{change}'", "see them: tacit log")
