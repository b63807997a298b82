"""The parent's side of a review: it serves what the reviewer asks for, and judges what it made.

The library, the gate and the session live here, not in the child. A skill is staged only from
here, and only a learned one. When the reviewer says that it is done, its changes are previewed by
the gate; `broker` tells it what would be refused. A fact is previewed when it is said. Nothing
lands here (`staging`).
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import get_args

from tacit.agent.tool import Failed, Result
from tacit.base import paths
from tacit.base.atomic_files import locked
from tacit.base.display import one_line, shorten, shorten_middle
from tacit.base.errors import Busy, NotFound, Unwritable
from tacit.base.secrets import clean, redact
from tacit.changes.change import SKILL_FILE, Change, File, Refusal, bytes_of
from tacit.changes.containment import open_root, open_skill, read_contents
from tacit.changes.facts import NewFact, Rationale, fact_change, fact_place_for, recallable_facts
from tacit.changes.gate import Gate
from tacit.changes.place import Place
from tacit.changes.provenance.witness import Witness
from tacit.changes.skill_state import skill_of
from tacit.learn.background.broker import Judged, RefusedChange
from tacit.learn.background.staging import EditedSkill, StagedWork, Staging, landing_id
from tacit.learn.digest import Pages
from tacit.learn.review.learned_skill import Signed, SkillOrigin, signings, unfit_name
from tacit.learn.review.review_tools import list_project_folder, read_project_file
from tacit.skills.fact import FactKind
from tacit.skills.library import Entry, Library

MOST_FACTS = 10
"""Facts that one review may keep."""
_KNOWN = 40


class ReviewFacts:
    """The facts of one review."""

    def __init__(self, gate: Gate, places: Sequence[Place], origin: SkillOrigin, job: str) -> None:
        self._gate = gate
        self._places = list(places)
        self._origin = origin
        self._job = job
        self._changes: dict[str, Change] = {}
        self._refused: dict[str, RefusedChange] = {}

    @property
    def refused(self) -> tuple[RefusedChange, ...]:
        """What was refused, and was not kept in other words under the same name."""
        return tuple(why for name, why in self._refused.items() if name not in self._changes)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes.values())

    def clear(self) -> None:
        """Begin anew: nothing was said so far."""
        self._changes.clear()
        self._refused.clear()

    def remember(self, name: str, says: str, kind: str, detail: str = "") -> str:
        """Take one fact, if the gate would. Raises `Failed` with the reason."""
        if kind not in get_args(FactKind):
            raise Failed(f"'{kind}' is no kind of fact; one of: {', '.join(get_args(FactKind))}")
        if len(self._changes) >= MOST_FACTS and name not in self._changes:
            raise Failed(
                f"{MOST_FACTS} facts are enough for one session; keep the ones that matter"
            )
        metadata = {"sessions": self._origin.session, "learned-by": self._origin.model}
        new = NewFact(name=name, says=says, kind=kind, detail=detail, metadata=metadata)  # type: ignore[arg-type]
        change = self._change(new)
        preview = self._gate.preview(change)
        if preview.refusal is not None and preview.refusal.rule == "no-change":
            return f"{preview.refusal.reason}; {preview.refusal.hint}"
        if preview.refusal is not None:
            if preview.refusal.step in ("policy", "scan"):  # not where it is known already
                self._refused[name] = RefusedChange(f"fact {name}", preview.refusal)
            raise Failed(f"refused: {preview.refusal.reason}; {preview.refusal.hint}")
        self._changes[name] = change
        return "it will be kept when you are done"

    def _change(self, new: NewFact) -> Change:
        why = Rationale(
            reason=shorten(clean(new.says), 200),
            session=self._origin.session,
            evidence=(self._origin.session,),
            id=landing_id(self._job, new.name, "fact"),
        )
        root, today = fact_place_for(self._places, new.kind).root, self._origin.today
        return fact_change(self._gate, root, new, why, actor="reviewer", today=today)


def known_facts(project: str) -> str:
    """The facts that there are, for the prompt, so that the same is not noted under two names."""
    found = recallable_facts(project or None)[:_KNOWN]
    if not found:
        return ""
    rows = [f"- {k.fact.name} ({k.fact.kind}): {shorten(clean(k.fact.says), 160)}" for k in found]
    return "\nKnown already:\n\n" + "\n".join(rows)


_FOUND = 6
_SHOWN = 12_000


_NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)


def reading(project: str, witness: Witness) -> dict[str, Callable[..., str | Result]]:
    """What a reviewer reads of the project. It is no session's, so what is taken over from there
    is held against it as against anything that a tool printed."""

    def read_file(path: str, offset: int, limit: int) -> str:
        lines = read_project_file(project, path, offset, limit)
        witness.read(_NUMBERED.sub("", lines))
        return lines

    def ls(path: str) -> str:
        names = list_project_folder(project, path)
        witness.read(names)
        return names

    return {"read_file": read_file, "ls": ls}


class ReviewService:
    """What the parent does for a reviewer. Every refusal is a `Failed` that the model reads."""

    def __init__(
        self, gate: Gate, staging: Staging, library: Library, pages: Pages, root: str
    ) -> None:
        self._gate = gate
        self._staging = staging
        self._library = library
        self._pages = pages
        self._root = root

    def services(self) -> dict[str, Callable[..., str | Result]]:
        """Each by the name that the child asks for it."""
        known = (
            self.read_trace, self.search_skills, self.view_skill, self.begin_skill, self.open_skill
        )  # fmt: skip
        return {function.__name__: function for function in known}

    def read_trace(self, page: int) -> str:
        if not 1 <= page <= len(self._pages):
            raise Failed(f"there are {len(self._pages)} pages, from 1")
        return f"Page {page} of {len(self._pages)}\n{self._pages.texts[page - 1]}"

    def search_skills(self, query: str) -> str:
        hits = self._library.search(query[:2000], _FOUND)
        rows = [
            f"- {hit.entry.name} ({whose(hit.entry)}): {shorten(hit.entry.description, 300)}"
            for hit in hits
            if hit.entry.state == "active"
        ]
        return clean("\n".join(rows)) or "(no skill fits)"

    def view_skill(self, name: str, path: str = SKILL_FILE) -> str:
        entry = self._find(name)
        files = skill_files(entry)
        file = files.get(path) or (files.get(entry.file) if path == SKILL_FILE else None)
        others = ", ".join(sorted(p for p in files if p != path)[:40])
        if file is None:
            raise Failed(f"'{name}' has no file '{path}'; it has: {', '.join(sorted(files)[:40])}")
        text = shorten_middle(clean(file.data.decode("utf-8", "replace")), _SHOWN)
        more = f"\n(other files: {others})" if others else ""
        return f"({whose(entry)})\n{text}{more}"

    def begin_skill(self, name: str) -> str:
        """Whether a new skill of this name may be begun."""
        if why := unfit_name(name):
            raise Failed(f"{why}; name it for the class of work that it is about")
        entry = self._library.find(name)
        if entry is not None:
            instead = "edit it" if entry.origin == "learned" else "leave it as it is"
            raise Failed(f"there is a skill '{entry.name}' already ({whose(entry)}); {instead}")
        if self._gate.state_of(name, self._root).is_live:
            raise Failed(f"there is a folder '{name}' already; choose another name")
        return "free"

    def open_skill(self, name: str) -> str:
        """Stage a copy of a learned skill."""
        entry = self._find(name)
        if os.path.realpath(entry.root) not in self._gate.open_places:
            raise Failed(f"'{entry.name}' lies in {entry.root}, where nothing is changed from here")
        folder = entry.relative_folder
        now = self._gate.state_of(folder, entry.root)
        if not now.is_live or not skill_of(now).learned:
            raise Failed(
                f"'{entry.name}' does not say 'source: auto-skill': it is the user's, and stays as "
                "it is"
            )
        if now.pinned:
            raise Failed(f"'{entry.name}' is pinned: nobody but the user changes it")
        if os.path.basename(folder) != name:
            raise Failed(f"write its path with the folder's name: {os.path.basename(folder)}/…")
        self._staging.copy_in(self._gate, folder, entry.root)
        return "open"

    def _find(self, name: str) -> Entry:
        entry = self._library.find(name) if "/" not in name else None
        if entry is None:
            near = ", ".join(self._library.suggest(name))
            raise NotFound(f"there is no skill '{name}'", f"near: {near}" if near else "search")
        if entry.state == "untrusted":
            raise Failed(f"'{name}' belongs to a project that the user does not trust")
        return entry


def whose(entry: Entry) -> str:
    """Whose a skill is, and so whether it may be changed, for a model."""
    return "learned, may be changed" if entry.origin == "learned" else "the user's, read only"


def skill_files(entry: Entry) -> dict[str, File]:
    """A skill's files, read by handles; links are left out."""
    project = "" if entry.scope != "project" else _above(entry.root)
    with open_root(Place(entry.root, entry.scope, project)) as root:
        folder = os.path.relpath(os.path.realpath(entry.folder), os.path.realpath(entry.root))
        with open_skill(root, folder) as opened:
            found = read_contents(opened).files
    return {path: file for path, file in found.items() if file.kind != "link"}


def _above(root: str) -> str:
    """The project of a project's skills folder: two levels up, for every host."""
    return os.path.dirname(os.path.dirname(root))


_REASON = 300
_LONGEST_TURN = 60.0
"""Seconds for which a review waits until another has landed."""
_MOST_CONFLICTS = 2
"""How often a reviewer is sent back because of somebody else's edit."""


class LandingTurn:
    """One review at a time, from the judging of what it made until that has landed.

    Otherwise two that edit the same lines would both pass, and the second could not be told.
    Whoever has waited for long goes on without: the gate merges then, or asks the user.
    """

    def __init__(self) -> None:
        self._held = ExitStack()

    def take(self) -> None:
        self.close()
        path = os.path.join(paths.folders().data, "landing.lock")
        with suppress(Busy, Unwritable):
            self._held.enter_context(locked(path, seconds=_LONGEST_TURN))

    def close(self) -> None:
        """Let the next one go on. Calling it again changes nothing."""
        self._held.close()


class ReviewJudge:
    """Judges a reviewer's staged skills by the gate's preview; nothing lands here.

    What is ready has no origin in it yet: that is written when it lands (`learned_skill.sign`).
    """

    def __init__(
        self,
        gate: Gate,
        staging: Staging,
        witness: Witness,
        origin: SkillOrigin,
        turn: LandingTurn,
    ) -> None:
        self._gate = gate
        self._staging = staging
        self._witness = witness
        self._origin = origin
        self._turn = turn
        self._overtaken: dict[str, Change] = {}
        """Edits of lines that somebody else changed meanwhile."""
        self._conflicts: Counter[str] = Counter()

    def __call__(self, work: StagedWork, text: str) -> Judged:
        """Judge what is staged; while nothing is refused, it stays this review's turn to land."""
        self._turn.take()
        judged = self._judged(work, text)
        if judged.refused:
            self._turn.close()
        return judged

    def _judged(self, work: StagedWork, text: str) -> Judged:
        reason = _reason(text)
        ready: list[Change] = []
        refused: list[RefusedChange] = []
        before, self._overtaken = self._overtaken, {}
        for edited in work.edited:
            change = self._change(edited, reason)
            if found := self._refusal(edited, change):
                refused.append(RefusedChange(edited.name, found))
            else:
                ready.append(change)
        # An edit that was not made again waits in the inbox, beside what was changed meanwhile.
        again = {edited.name for edited in work.edited}
        ready += [change for name, change in before.items() if name not in again]
        return Judged(tuple(ready), tuple(refused))

    def _change(self, edited: EditedSkill, reason: str) -> Change:
        job, session = self._staging.job, self._origin.session
        root = self._gate.open_place().place.root  # where a new skill goes
        return edited.change(
            job, "reviewer", reason, evidence=(session,), session=session, root=root
        )

    def _refusal(self, edited: EditedSkill, change: Change) -> Refusal | None:
        if edited.is_new and (why := unfit_name(edited.skill)):
            return Refusal("policy", "name", why, "name it for the class of work")
        for signed in signings(self._gate, change, self._origin):
            if signed.conflicts:
                return self._overtake(edited, change, signed)
            self._witness.allow(bytes_of(signed.onto))
            refusal = self._gate.preview(signed.change).refusal
            if refusal is None:
                return None
        return refusal

    def _overtake(self, edited: EditedSkill, change: Change, signed: Signed) -> Refusal | None:
        """Have the edit made again on the skill as it is now; after a few times, ask the user."""
        self._conflicts[edited.name] += 1
        if self._conflicts[edited.name] > _MOST_CONFLICTS:
            return None
        self._overtaken[edited.name] = change
        self._staging.copy_anew(self._gate, edited.name)
        where = ", ".join(signed.conflicts)
        when = "meanwhile once more" if self._conflicts[edited.name] > 1 else "meanwhile"
        return Refusal(
            "apply",
            "overtaken",
            f"the lines you edited in {where} were changed {when}",
            "view_skill shows them as they are now; make your edit again, if it is still right",
        )


def _reason(text: str) -> str:
    """The reviewer's last words as the reason that is kept: one line, no secret."""
    return shorten(one_line(redact(text).text), _REASON)
