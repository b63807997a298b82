"""The gate: every change passes policy, containment, standard, scan, size, near-duplicate,
approval, apply and commit, in this order.

Owns the order and what happens between the steps; what each step says is in `judging.py`, how a
change lands is in `apply.py`. A refusal is a value. What is raised is trouble with the machine
(`Unwritable`, `Busy`, `Damaged`), never a matter of rules.
"""

import os
from collections.abc import Callable, Collection, Sequence

import msgspec

from tacit.base import paths
from tacit.base.clock import Clock, SystemClock
from tacit.base.database import FILE_NAME
from tacit.base.errors import NotFound
from tacit.base.events import bus
from tacit.changes import private, undo
from tacit.changes.actor import Actor
from tacit.changes.answers import (
    applied,
    check_author,
    may_undo,
    overtaken,
    refused,
    rejected_before,
    said_no,
    set_to_ask,
    unwritable,
)
from tacit.changes.apply import land, record
from tacit.changes.approval import Approver, Consent, Question
from tacit.changes.case import Case, build
from tacit.changes.change import (
    Applied,
    Change,
    Create,
    Preview,
    Proposed,
    Refusal,
    Verdict,
    make_change,
    new_id,
)
from tacit.changes.contain import Escape, Folder
from tacit.changes.diff import diff
from tacit.changes.edits import Unfit
from tacit.changes.files import programs, to_bytes
from tacit.changes.form import form_of
from tacit.changes.inbox import Inbox, Proposal
from tacit.changes.journal import Overtaken
from tacit.changes.judging import Judge, Judgement, Scanner
from tacit.changes.neighbours import LibraryNeighbours, Neighbours
from tacit.changes.objects import tree_id
from tacit.changes.place import Place, places_here
from tacit.changes.plan import Action, Origins
from tacit.changes.site import Site
from tacit.changes.standing import Standing, look

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
        self.sites: dict[str, Site] = {}
        for place in places if places is not None else places_here():
            self.sites.setdefault(place.real, Site(place, self.data))
        self.neighbours = neighbours if neighbours is not None else LibraryNeighbours()
        self.inbox = Inbox(os.path.join(self.data, FILE_NAME), self.clock)
        self._judge = Judge(self.neighbours, scanner)
        self._approver = approver
        self._always_ask = frozenset(always_ask)

    def propose(self, change: Change) -> Verdict:
        """Put `change` through every step. The same id twice is the same as once."""
        if refusal := check_author(change):
            return refused(change, refusal)
        site, change = self._locate(change)
        return self._run(site, change, Consent())

    def preview(self, change: Change) -> Preview:
        """What `propose` would do, and the diff; nothing is changed and nobody is asked."""
        if refusal := check_author(change):
            return Preview(refusal=refusal)
        site, change = self._locate(change)
        try:
            with site.writing() if site.is_made() else site.imagined() as root:
                case = build(site.place, root, site.history, change)
                judgement = self._judge.judge(case)
        except (Unfit, Escape) as unfit:
            return Preview(refusal=unfit.refusal)
        asks = judgement.asks
        if change.actor in self._always_ask:
            asks = (*asks, set_to_ask(change.actor))
        return Preview(judgement.refusal, asks, judgement.notes, diff(case.old, case.new))

    def accept(self, proposal: Proposal) -> Verdict:
        """Apply what waits in the inbox, as its author and with the user's consent.

        It is judged again, against what stands there now. The proposal stays when it is refused.
        """
        if proposal.state != "waiting":
            reason = f"the proposal {proposal.id} was {proposal.state} already"
            refusal = Refusal("approval", "answered", reason, "see them: tacit inbox --all")
            return refused(proposal.change, refusal)
        # The change gets an id of its own, so that the log has it where it landed in time. The
        # id is noted first: after a kill the same one is used, and nothing lands twice.
        applied_as = self.inbox.begin(proposal, new_id(self.clock.now()))
        change = msgspec.structs.replace(proposal.change, id=applied_as)
        verdict = self._run(self.site(change.root), change, Consent("yes"))
        if verdict.applied:
            self.inbox.close(proposal, "accepted")
        return verdict

    def reject(self, proposal: Proposal, reason: str = "") -> None:
        """Turn a proposal down; the same idea is not proposed again."""
        self.inbox.close(proposal, "rejected", reason)

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
        site = self._site_of(change, root)
        change = site.history.find_change(change)
        versions = site.history.of_change(change)
        if again := undo.already_undone(site.history, versions):
            change, versions = again, site.history.of_change(again)
        skill = versions[-1].record.skill
        new = make_change(skill, actor=actor, reason=reason or f"undo {change}")
        authors = {version.record.actor for version in versions}
        if refusal := check_author(new) or may_undo(new, authors, approved=approved):
            return refused(new, refusal)

        def actions(folder: Folder) -> list[Action]:
            return undo.undo_actions(folder, site.history, versions, form_of(site.place))

        by = "user" if approved else ""
        return self._take_back(site, new, actions, Origins(undoes=change, approved_by=by))

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
        site = self.site(root)
        if version:
            wanted = site.history.find_version(skill, version)
        else:
            head = site.history.head(skill)
            if head is None or not head.parent:
                raise NotFound(f"'{skill}' has no earlier version", f"see: tacit log {skill}")
            wanted = site.history.version(head.parent)
        reason = f"back to {wanted.id[:12]}"
        new = make_change(skill, actor=actor, reason=reason, root=site.place.root)
        if refusal := check_author(new) or may_undo(new, set(), approved=approved):
            return refused(new, refusal)

        def actions(folder: Folder) -> list[Action]:
            return [undo.rollback_action(folder, site.history, skill, wanted)]

        by = "user" if approved else ""
        return self._take_back(site, new, actions, Origins(approved_by=by))

    def look(self, skill: str, root: str = "") -> Standing:
        """How `skill` stands, hand edits recorded, so that `.head.id` is a base for a change."""
        site = self.site(root)
        if not site.is_made():
            return Standing(skill=skill, state="gone", head=site.history.head(skill))
        with site.writing() as folder:
            standing = look(folder, site.history, skill)
            return record(site, folder, standing, self.clock.now())

    def share(self, skill: str, root: str = "") -> bool:
        """Let git see a learned skill of a project; False where it was not hidden."""
        site = self.site(root)
        return private.show(site.place, skill, site.data)

    def site(self, root: str = "") -> Site:
        """The place with this skills folder, by default the first. Raises `NotFound`."""
        if not root:
            return next(iter(self.sites.values()))
        found = self.sites.get(os.path.realpath(root))
        if found is None:
            known = ", ".join(site.place.root for site in self.sites.values())
            raise NotFound(f"{root} is not a skills folder that is known here", f"known: {known}")
        return found

    def _run(self, site: Site, change: Change, consent: Consent, *, copy_of: str = "") -> Verdict:
        for _ in range(ATTEMPTS):
            try:
                outcome = self._attempt(site, change, consent, copy_of)
            except Overtaken:
                continue
            except (Unfit, Escape) as unfit:
                return refused(change, unfit.refusal)
            except OSError as error:
                raise unwritable(site, error) from error
            if isinstance(outcome, Verdict):
                return outcome
            if isinstance(outcome, Case):
                return self._copy(outcome)
            assert self._approver is not None
            answer = self._approver(outcome.case, outcome.asks)
            if answer == "no":
                return refused(change, said_no())
            consent = Consent(answer, tree_id(outcome.case.new))
        return refused(change, overtaken(change))

    def _attempt(
        self, site: Site, change: Change, consent: Consent, copy_of: str
    ) -> Verdict | Question | Case:
        if not site.is_made():  # judged first, so that a refusal leaves no empty folders behind
            with site.imagined() as nothing:
                case, judgement, held = self._consider(site, nothing, change, consent, copy_of)
            if held is not None:
                return held
        with site.writing() as root:
            if version := site.history.knows(change.id, change.skill):
                return applied(change, version)
            case, judgement, held = self._consider(site, root, change, consent, copy_of)
            if held is not None:
                return held
            origins = Origins(
                approved_by="user" if consent.covers(case) else "",
                overrides=judgement.overridden,
                copy_of=copy_of,
            )
            version = land(site, root, change, case.actions, origins, self.clock.now())
        self._announce(site, change, case.actions, version)
        return applied(change, version, judgement.notes)

    def _consider(
        self, site: Site, root: Folder, change: Change, consent: Consent, copy_of: str
    ) -> tuple[Case, Judgement, Verdict | Question | Case | None]:
        """The steps up to the approval; the last value is what keeps the change from landing."""
        case = build(site.place, root, site.history, change)
        judgement = self._judge.judge(case, is_copy=bool(copy_of))
        if judgement.refusal is not None:
            held = self._refuse(site, root, case, judgement.refusal, consent)
            return case, judgement, held
        if judgement.decision == "copy":
            return case, judgement, case
        return case, judgement, self._approve(site, root, case, judgement, consent)

    def _refuse(
        self, site: Site, root: Folder, case: Case, refusal: Refusal, consent: Consent
    ) -> Verdict:
        """A refusal; of a machine's conflict, a question for a person who was not asked yet."""
        offer = to_bytes(case.merged.files) if case.merged and refusal.rule == "conflict" else {}
        if offer and case.change.actor != "user" and consent.answer is None:
            verdict = self._put_in_inbox(site, root, case, refusal)
            return msgspec.structs.replace(verdict, offer=offer)
        return msgspec.structs.replace(refused(case.change, refusal), offer=offer)

    def _approve(
        self, site: Site, root: Folder, case: Case, judgement: Judgement, consent: Consent
    ) -> Verdict | Question | None:
        """None when the change may land now."""
        change, asks = case.change, judgement.asks
        if consent.covers(case):
            return None
        if change.actor == "user":
            return refused(change, asks[0]) if asks else None
        if found := self.inbox.rejected_like(change):
            return refused(change, rejected_before(found))
        if change.actor in self._always_ask:
            asks = (*asks, set_to_ask(change.actor))
        if not asks:
            return None
        can_ask = change.actor == "agent" or change.actor in self._always_ask
        if can_ask and self._approver is not None and consent.answer != "later":
            return Question(case, asks)
        return self._put_in_inbox(site, root, case, asks[0])

    def _put_in_inbox(self, site: Site, root: Folder, case: Case, why: Refusal) -> Verdict:
        """Let the change wait, with the version it was made on, so that it can be merged later."""
        change = case.change
        standing = case.actions[0].standing
        if case.before is not None and not change.base and standing.is_live:
            standing = record(site, root, standing, self.clock.now())
            base = standing.head.id if standing.head else ""
            if len(case.actions) == 1:
                change = msgspec.structs.replace(change, base=base)
        proposal = self.inbox.add(change, why)
        if proposal.id == change.id:
            bus.publish(Proposed(change, why))
        return Verdict(outcome="proposed", change=proposal.id, skill=change.skill, refusal=why)

    def _copy(self, case: Case) -> Verdict:
        """Somebody else's skill was to be edited: the user gets a copy of their own instead."""
        change = case.change
        target = next((s for s in self.sites.values() if s.place.scope == "user"), None)
        if target is None:
            refusal = Refusal(
                "policy", "no-own-place", "there is no place of the user's for a copy", ""
            )
            return refused(change, refusal)
        create = Create(to_bytes(case.new), programs(case.new))
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
        site: Site,
        change: Change,
        actions: Callable[[Folder], list[Action]],
        origins: Origins,
    ) -> Verdict:
        for _ in range(ATTEMPTS):
            try:
                with site.writing() as root:
                    wanted = actions(root)
                    undo.check_policy(site.place, change, wanted)
                    version = land(site, root, change, wanted, origins, self.clock.now())
            except Overtaken:
                continue
            except undo.Conflict as found:
                verdict = refused(change, found.refusal)
                return msgspec.structs.replace(verdict, offer=found.offer)
            except (Unfit, Escape) as unfit:
                return refused(change, unfit.refusal)
            except OSError as error:
                raise unwritable(site, error) from error
            self._announce(site, change, wanted, version)
            return applied(change, version)
        return refused(change, overtaken(change))

    def _announce(
        self, site: Site, change: Change, actions: Sequence[Action], version: str
    ) -> None:
        noun = form_of(site.place).noun
        for action in actions if noun == "skill" else ():
            self.neighbours.noticed(site.place.root, action.standing.skill)
        bus.publish(Applied(change, actions[-1].kind, version, site.real, noun))

    def _locate(self, change: Change) -> tuple[Site, Change]:
        """The place of a change, and the change with its skill's folder filled in.

        A skill may go by a name that is not its folder's: both find it. Without a `root`, a skill
        that is not in the first place is looked for where the library has it.
        """
        site = self.site(change.root)
        skill = change.skill
        is_new = bool(change.operations) and isinstance(change.operations[0], Create)
        if not is_new and not os.path.lexists(os.path.join(site.real, skill)):
            found = self.neighbours.find(skill, change.root)
            if found is not None and os.path.realpath(found.root) in self.sites:
                site, skill = self.site(found.root), found.folder
        return site, msgspec.structs.replace(change, root=site.place.root, skill=skill)

    def _site_of(self, change: str, root: str) -> Site:
        if root:
            return self.site(root)
        for site in self.sites.values():
            try:
                site.history.find_change(change)
            except NotFound:
                continue
            return site
        raise NotFound(f"there is no one change '{change}'", "see them: tacit log")
