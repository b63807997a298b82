"""What each step of the gate says, from policy to near-duplicate, and what a consent covers.

A step looks at the effect of a change and returns what speaks against it. People who change their
own skills are held to not making things worse; whatever a machine writes has to be right
altogether. The words of the gate's own refusals are here too.
The order of the steps, and what happens between them, is `gate`'s.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from tacit.base.display import shorten
from tacit.base.errors import TacitError, Unwritable
from tacit.changes import policy
from tacit.changes.change import (
    BACKGROUND,
    SKILL_FILE,
    Actor,
    Change,
    Files,
    Refusal,
    Verdict,
    bytes_of,
    current_actor,
    executable_paths,
    is_change_id,
)
from tacit.changes.containment import readings
from tacit.changes.effect import Effect
from tacit.changes.git_store import tree_id
from tacit.changes.inbox import Inbox, Proposal
from tacit.changes.journal import OpenPlace
from tacit.changes.left_out import Apart, set_apart, waits_note
from tacit.changes.neighbours import Neighbours
from tacit.changes.policy import Decision, Rules
from tacit.skills.library import used_by_schedules
from tacit.skills.skill import Problem

if TYPE_CHECKING:  # the scan compiles its tables
    from tacit.changes.scan import Finding, Report


def check_author(change: Change) -> Refusal | None:
    """Refuses a change that claims another author than the actor who runs here."""
    here = current_actor()
    if here is not None and here not in ("user", change.actor):
        reason = f"the {here} cannot make a change as {change.actor}"
        return Refusal("policy", "actor", reason, f"make it as the {here}")
    for name in (change.id, *([change.group] if change.group else [])):
        if not is_change_id(name):
            return Refusal(
                "policy", "change-id", f"{name!r} is not a change's id", "take one from new_id()"
            )
    return None


def may_undo(change: Change, authors: set[Actor], *, approved: bool = False) -> Refusal | None:
    """The user undoes anything, and the agent what the user said yes to; a machine only its own."""
    if change.actor == "user" or (change.actor == "agent" and approved):
        return None
    if change.actor in BACKGROUND and authors == {change.actor}:
        return None
    return Refusal(
        "policy",
        f"{change.actor}-undo",
        f"the {change.actor} may not take back what others did",
        f"ask the user to run: tacit undo, or tacit rollback {change.skill}",
    )


def may_answer(told: Proposal, stored: Proposal, *, by_setting: bool) -> Refusal | None:
    """Whether the proposal `told`, which is `stored` in the inbox, can be accepted here."""
    here = current_actor()
    hint = "see them: tacit inbox --all"
    if stored.state != "waiting":
        reason = f"the proposal {stored.id} was {stored.state} already"
        return Refusal("approval", "answered", reason, hint)
    if told.change != stored.change:
        reason = f"the proposal {stored.id} is not the one that waits under this id"
        return Refusal("approval", "exchanged", reason, hint)
    if here in BACKGROUND and not by_setting:
        return Refusal("approval", "answers", f"the {here} cannot answer for the user", hint)
    return None


def refused_verdict(
    change: Change, refusal: Refusal, offer: Mapping[str, bytes] | None = None
) -> Verdict:
    return Verdict(
        outcome="refused",
        change=change.id,
        skill=change.skill,
        refusal=refusal,
        offer=dict(offer or {}),
    )


def applied_verdict(
    inbox: Inbox, change: str, skill: str, version: str, notes: tuple[str, ...] = ()
) -> Verdict:
    """The verdict on a change that has landed, with what of it still waits."""
    apart = ""
    with suppress(OSError, TacitError):  # it has landed, whatever the inbox can say
        if waits := inbox.lines_of(change):
            apart, notes = waits.id, (waits_note(waits.change), *notes)
    return Verdict(
        outcome="applied", change=change, skill=skill, version=version, notes=notes, apart=apart
    )


def refused_by_user() -> Refusal:
    return Refusal("approval", "said-no", "the user said no", "leave it as it is")


def always_asks(actor: Actor) -> Refusal:
    reason = f"the {actor}'s changes wait for the user's consent, by the settings"
    if actor == "agent":
        reason = "a rule and not a person allowed the call, so the change waits for the user"
    return Refusal("approval", "always-asks", reason, "it waits in the inbox: tacit inbox")


def made_to_wait(reason: str) -> Refusal:
    return Refusal("approval", "waits", reason, "it waits in the inbox: tacit inbox")


def rejected_before(proposal: Proposal) -> Refusal:
    because = f": {proposal.answer}" if proposal.answer else ""
    return Refusal(
        "approval",
        "rejected-before",
        f"the user turned this down on {proposal.decided[:10]}{because}",
        "do not propose it again",
    )


def overtaken(change: Change) -> Refusal:
    return Refusal(
        "apply", "overtaken", f"'{change.skill}' is being changed all the time", "try again"
    )


def unwritable_place(opened: OpenPlace, error: OSError) -> Unwritable:
    return Unwritable(
        f"cannot change {opened.place.root}: {error.strerror or error}",
        "check the free space and the permissions there",
    )


Answer = Literal["yes", "no", "later"]
Approver = Callable[[Effect, tuple[Refusal, ...]], Answer]
"""Asks a person. Called from the thread that proposes, with no lock held; may take its time."""


class Consent(msgspec.Struct, frozen=True):
    """What a person said: to this outcome, or to any where `tree` is empty."""

    answer: Answer | None = None
    tree: str = ""
    waits: str = ""
    """Why it waits for a person although nothing else asks for one."""

    def covers(self, effect: Effect) -> bool:
        return self.answer == "yes" and self.tree in ("", tree_id(effect.new))


class Question(msgspec.Struct, frozen=True):
    """The change stands or falls with a person's answer."""

    effect: Effect
    asks: tuple[Refusal, ...]


_MOST_SCANNED = 64
"""Scans that a judge remembers."""
_GRAVEST: tuple[Decision, ...] = ("refuse", "copy", "propose", "ask", "allow")


class Scanner(Protocol):
    """Looks for secrets, hidden characters, steering and powers in a skill's files.

    It says the same of the same files, and is asked once. One that may come to another answer has
    a number `generation`, which changes with it.
    """

    def __call__(
        self, files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()
    ) -> "Report": ...


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of the judging steps."""

    refusal: Refusal | None = None
    decision: Decision = "allow"
    asks: tuple[Refusal, ...] = ()
    """What a person has to agree to first."""
    notes: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()
    """Rules that the user set aside and that would have refused."""
    apart: Apart | None = None
    """Lines that wait by themselves: then all else is of the change without them."""


Check = Callable[[Effect], Sequence[Refusal]]
"""A check of one's own: what speaks against a change, by its effect. It is not to raise."""

_registered: list[Check] = []


def register_check(check: Check) -> Check:
    """Have every gate of this process ask `check` too, after its own steps. A decorator."""
    _registered.append(check)
    return check


class Judge:
    """Puts the effect of a change through the judging steps, in order."""

    def __init__(
        self,
        neighbours: Neighbours,
        scanner: Scanner | None = None,
        as_learned: Collection[Actor] = (),
    ) -> None:
        """`as_learned`: actors whose work is judged as learned, whatever it says of itself."""
        self._neighbours = neighbours
        self._as_learned = frozenset(as_learned) | BACKGROUND
        self._scanned: dict[tuple[str, bool, int], Collection[Finding]] = {}
        self._scanner = scanner

    def judge(self, effect: Effect, *, is_copy: bool = False) -> Judgement:
        """What the steps before the approval say. `is_copy`: it is meant to repeat a skill."""
        around = effect.rules.neighbours_in(effect.change.root) or self._neighbours
        decision, refusal, asks = judge_policy(effect, around)
        if refusal is not None:
            return Judgement(refusal=refusal, decision=decision)
        if effect.merged is not None and effect.merged.conflicts:
            return Judgement(refusal=conflict(effect), decision=decision)
        notes: list[str] = []
        overridden: list[str] = []
        steps: list[Callable[[], Sequence[Refusal]]] = [
            lambda: judge_containment(effect),
            lambda: judge_standard(effect),
            lambda: self._judge_scan(effect, asks, notes),
            lambda: self._judge_consequences(effect, around, asks),
            lambda: judge_size(effect),
            lambda: [] if is_copy else judge_duplicate(effect, around),
            *(partial(check, effect) for check in _registered),
        ]
        for step in steps:
            for found in step():
                if not _is_overridden(effect, found, overridden):
                    return Judgement(refusal=found, decision=decision, notes=tuple(notes))
        return Judgement(
            decision=decision,
            asks=tuple(ask for ask in asks if not _is_overridden(effect, ask, overridden)),
            notes=tuple(notes),
            overridden=tuple(dict.fromkeys(overridden)),
        )

    def judge_part(self, effect: Effect, judgement: Judgement) -> tuple[Effect, Judgement] | None:
        """What can land of a change that waits for some lines alone; None where it waits whole."""
        return set_apart(effect, judgement, self.judge, self._scanner)

    def _judge_scan(self, effect: Effect, asks: list[Refusal], notes: list[str]) -> list[Refusal]:
        skill = effect.after or effect.restored
        if skill is None:
            return []
        files = effect.new if effect.after is not None else effect.actions[0].files
        learned = (
            skill.learned
            or effect.change.actor in self._as_learned
            or effect.rules.scans_as_learned(effect.change)
        )
        known = set()
        if effect.after is not None and _is_own_change(effect):
            known = {_finding_key(found) for found in self._scan(effect.old, learned=learned)}
        refusals: list[Refusal] = []
        for found in self._scan(files, learned=learned):
            refusal = _scan_refusal(effect, found)
            if effect.rules.always_refuses(found.rule):
                refusals.append(msgspec.structs.replace(refusal, overridable=False))
                continue
            if _finding_key(found) in known or found.severity == "note":
                notes.append(refusal.reason)
                continue
            (refusals if found.severity == "block" else asks).append(refusal)
        return refusals

    def _judge_consequences(
        self, effect: Effect, around: Neighbours, asks: list[Refusal]
    ) -> list[Refusal]:
        """What a text made without a session behind it would newly have a later agent do. Where
        there is a session, the scanner knows it and has said so; drafts wait anyway."""
        knows_session = getattr(self._scanner, "shows", None) is not None
        if effect.after is None or knows_session or effect.change.actor in _SHOWN_ELSEWHERE:
            return []
        from tacit.changes.provenance.consequences import EFFECT_RULE, consequences

        known = {
            (found.kind, found.key)
            for files in _earlier_files(effect, around)
            for _, found in consequences(files)
        }
        for phrase, found in consequences(bytes_of(effect.new)):
            if (found.kind, found.key) not in known:
                rule, why = f"{EFFECT_RULE}-{found.kind}", f"it {found.what}, which is new"
                asks.append(_marked(phrase.file, phrase.line, rule, why, phrase.text))
        return []

    def _scan(self, files: Files, *, learned: bool) -> "Collection[Finding]":
        if self._scanner is None:
            from tacit.changes.scan import scan

            self._scanner = scan
        # A change is judged several times on its way: previewed, proposed, again under the lock.
        # The scan is the dear part and depends on nothing but this; the rest is asked each time.
        key = (tree_id(files), learned, getattr(self._scanner, "generation", 0))
        if key not in self._scanned:
            if len(self._scanned) >= _MOST_SCANNED:
                self._scanned.clear()
            runs = executable_paths(files)
            found = self._scanner(bytes_of(files), learned=learned, executable=runs).findings
            self._scanned[key] = found
        return self._scanned[key]


_SHOWN_ELSEWHERE: frozenset[Actor] = frozenset({"user", "agent", "distiller"})
"""Actors whose changes a person has seen, or sees in any case."""


def _earlier_files(effect: Effect, around: Neighbours) -> Iterator[Mapping[str, bytes]]:
    """What stood in the skills that a change edits or takes in."""
    for action in effect.actions:
        yield bytes_of(action.now.contents.files)
    for name in effect.absorbs:
        if (found := around.find(name)) is not None:
            try:
                with open(os.path.join(found.root, found.folder, SKILL_FILE), "rb") as file:
                    yield {SKILL_FILE: file.read(policy.MAX_SKILL_BYTES)}
            except OSError:
                continue


def _scan_refusal(effect: Effect, found: "Finding") -> Refusal:
    """A finding as a refusal, with the line that it is about."""
    file = effect.new.get(found.file)
    lines = file.data.decode("utf-8", "replace").split("\n") if file is not None else []
    text = lines[found.line - 1].strip() if 0 < found.line <= len(lines) else ""
    marked = _marked(found.file, found.line, found.rule, found.message, text)
    return msgspec.structs.replace(
        marked, hint=found.fix, overridable=found.overridable, whole=found.whole
    )


def _marked(file: str, line: int, rule: str, why: str, text: str) -> Refusal:
    from tacit.base.secrets import redact

    where, shown = f"{file}, line {line}: {why}", shorten(redact(text).text, 300)
    return Refusal("scan", rule, where, file=file, line=line, text=shown)


def marked_first(asks: Sequence[Refusal]) -> Refusal:
    """Why a change waits: first what marks a line, with all the others behind it."""
    ordered = sorted(asks, key=lambda ask: not ask.file)
    return msgspec.structs.replace(ordered[0], also=tuple(ordered[1:]))


def judge_policy(
    effect: Effect, neighbours: Neighbours
) -> tuple[Decision, Refusal | None, list[Refusal]]:
    """The gravest decision over all the skills that are touched (a "refuse" never gets here),
    what speaks against the change beside the table, and what a person has to agree to."""
    actor = effect.change.actor
    worst: Decision = "allow"
    asks: list[Refusal] = []
    for touch in effect.touches:
        decision = effect.rules.decide(actor, touch.act, touch.origin, pinned=touch.pinned)
        if decision in ("ask", "propose"):
            asks.append(
                effect.rules.consent_needed(actor, touch.act, touch.origin, touch.skill, decision)
            )
        worst = min(worst, decision, key=_GRAVEST.index)
    return worst, _check_schedules(effect) or _background_rules(effect, neighbours), asks


def _check_schedules(effect: Effect) -> Refusal | None:
    """A skill that a schedule runs is not archived, merged, renamed or deleted by a machine."""
    if effect.change.actor == "user":
        return None
    for touch in effect.touches:
        if touch.act not in ("archive", "merge", "delete", "rename"):
            continue
        name = touch.skill.rsplit("/", 1)[-1]
        if found := used_by_schedules(name):
            return Refusal(
                "policy",
                "scheduled",
                f"'{name}' is run by the schedule {' and '.join(found)}",
                f"leave it, or have the user change that first: tacit schedule edit {found[0]}",
            )
    return None


def _background_rules(effect: Effect, neighbours: Neighbours) -> Refusal | None:
    """What the table cannot say: of names, marks and umbrellas."""
    actor, after, name = effect.change.actor, effect.after, effect.change.skill
    if actor not in BACKGROUND or after is None:
        return None
    if effect.before is None:
        taken = next(filter(None, map(neighbours.find, (name, *readings(name)))), None)
        if taken is not None:
            return Refusal(
                "policy",
                "exists",
                f"there is already a {effect.rules.noun} '{taken.name}', in {taken.root}",
                f"edit '{taken.name}' instead" if taken.origin == "learned" else "leave it",
                (taken.name,),
            )
        if actor == "curator":
            return _check_umbrella(effect, neighbours)
    elif effect.before.learned and not after.learned:
        return Refusal(
            "policy",
            "mark-removed",
            "the edit takes out 'source: auto-skill', which says that the"
            f" {effect.rules.noun} was learned",
            "leave that line in",
        )
    return None


def _check_umbrella(effect: Effect, neighbours: Neighbours) -> Refusal | None:
    known = [neighbours.find(name) for name in effect.absorbs]
    learned = {found.name for found in known if found and found.origin == "learned"}
    if len(learned) >= 2:
        return None
    return Refusal(
        "policy",
        "umbrella",
        "the curator makes a skill only as an umbrella over at least two learned ones",
        "name them in 'absorbs', or edit a learned skill instead",
    )


def judge_containment(effect: Effect) -> list[Refusal]:
    """Paths were checked as the effect was worked out; here, what lies in the folder already."""
    if effect.unversioned:
        return [
            Refusal(
                "containment",
                "unversioned",
                f"no version is kept of {', '.join(effect.unversioned)}:"
                " an undo would not bring it back",
                "archive the skill instead, or remove that folder first",
                overridable=True,
            )
        ]
    if effect.change.actor == "user" or not effect.shared:
        return []
    return [
        Refusal(
            "containment",
            "hard-link",
            f"'{effect.shared[0]}' has a second name elsewhere on the disk (a hard link)",
            "replace it by a copy: the user can, by saving the file anew",
        )
    ]


def judge_standard(effect: Effect) -> list[Refusal]:
    """The open standard to the letter; for people, only what they made worse."""
    if effect.after is None:
        return []
    name = effect.actions[-1].now.skill if effect.before is None else effect.after.name
    folder = _edited_folder(effect) or name
    rules = effect.rules
    file = effect.new.get(rules.file)
    if file is None or file.kind == "link":
        return [] if _is_own_change(effect) else [_no_file(rules)]
    found = rules.check(file.data.decode("utf-8", "replace"), folder)
    if any(problem.code == "not-utf8" for problem in effect.after.problems):
        found += [problem for problem in effect.after.problems if problem.code == "not-utf8"]
    known: set[tuple[str, str]] = set()
    before = effect.old.get(rules.file)
    if _is_own_change(effect) and before is not None:
        text = before.data.decode("utf-8", "replace")
        known = {(p.code, p.message) for p in rules.check(text, folder)}
    return [
        _standard_refusal(problem, rules)
        for problem in found
        if problem.severity == "error" and (problem.code, problem.message) not in known
    ]


def judge_size(effect: Effect) -> list[Refusal]:
    if effect.after is None:
        return []
    over = policy.check_size(effect.new, effect.after, effect.rules.measure)
    if over and _is_own_change(effect) and effect.before is not None:
        was = policy.sizes(effect.old, effect.before, effect.rules.measure)
        now = policy.sizes(effect.new, effect.after, effect.rules.measure)
        over = [found for found in over if now[found.rule] > was[found.rule]]
    return over


def judge_duplicate(effect: Effect, neighbours: Neighbours) -> list[Refusal]:
    if effect.after is None or effect.before is not None:
        return []
    names = {effect.after.name, *effect.absorbs}
    others = [skill for skill in neighbours.alike(effect.after) if skill.name not in names]
    found = effect.rules.repeats(effect.after, others)
    return [found] if found else []


def conflict(effect: Effect) -> Refusal:
    assert effect.merged is not None
    return Refusal(
        "apply",
        "conflict",
        "it changes lines that were changed meanwhile, in " + ", ".join(effect.merged.conflicts),
        f"read the {effect.rules.noun} again and make the change on that",
        (effect.change.skill,),
    )


def _is_own_change(effect: Effect) -> bool:
    """Whether a person changes what is theirs: then old faults are not held against the change."""
    learned = effect.before is not None and effect.before.learned
    return effect.change.actor in ("user", "agent") and not (
        learned and effect.change.actor == "agent"
    )


def _is_overridden(effect: Effect, found: Refusal, overridden: list[str]) -> bool:
    """Whether the user lets this pass in a skill of their own; a learned one stays under every
    rule. What was set aside is recorded."""
    learned = effect.after is not None and effect.after.learned
    if effect.change.actor != "user" or learned or not found.overridable:
        return False
    if found.rule not in effect.change.overrides:
        return False
    overridden.append(found.rule)
    return True


def _edited_folder(effect: Effect) -> str:
    """The name of the folder whose SKILL.md is judged."""
    for action in effect.actions:
        if action.state == "live" and action.files == effect.new:
            return action.now.skill.rsplit("/", 1)[-1]
    return ""


def _finding_key(found: "Finding") -> tuple[str, str, str]:
    return (found.rule, found.file, found.message)


def _standard_refusal(problem: Problem, rules: Rules) -> Refusal:
    return Refusal(
        "standard",
        problem.code,
        f"{rules.file}, line {problem.line}: {problem.message}",
        problem.fix,
        overridable=problem.code in ("unknown-key", "name-differs", "name-form"),
    )


def _no_file(rules: Rules) -> Refusal:
    return Refusal(
        "standard",
        f"no-{rules.noun}-file",
        f"there is no {rules.file}",
        f"a {rules.noun} needs one",
    )
