"""The parent's side of a review: it serves what the reviewer asks for, and judges what it made.

The library, the gate and the session live here, not in the child. A skill is staged only from
here, and only a learned one. When the reviewer says that it is done, its changes are previewed by
the gate, and what would be refused goes back to the model with the reason, while rounds remain. A
fact is previewed when it is said. Nothing lands here (`staging`).
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

import msgspec

from tacit.agent.tool import Failed, Result
from tacit.base.display import one_line
from tacit.base.errors import NotFound, TacitError
from tacit.base.secrets import clean, redact
from tacit.changes.change import SKILL_FILE, Change, File, Preview, Refusal, bytes_of
from tacit.changes.containment import Escape, open_root, open_skill, read_contents
from tacit.changes.facts import NewFact, Rationale, fact_change, fact_place_for, recallable_facts
from tacit.changes.gate import Gate
from tacit.changes.place import Place
from tacit.changes.skill_state import skill_of
from tacit.learn.background.staging import EditedSkill, Staging, landing_id
from tacit.learn.digest import Pages, cut
from tacit.learn.provenance.witness import Witness
from tacit.learn.review.learned_skill import SkillOrigin, unfit_name, with_origin
from tacit.skills.fact import FactKind
from tacit.skills.library import Entry, Library

MOST_FACTS = 10
"""Facts that one review may keep."""
_KNOWN = 40


class ReviewFacts:
    """The facts of one review."""

    def __init__(
        self, gate: Gate, places: Sequence[Place], witness: Witness, origin: SkillOrigin, job: str
    ) -> None:
        self._gate = gate
        self._places = list(places)
        self._witness = witness
        self._origin = origin
        self._job = job
        self._changes: dict[str, Change] = {}

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes.values())

    def remember(self, name: str, says: str, kind: str, detail: str = "") -> str:
        """Take one fact, if the gate would. Raises `Failed` with the reason."""
        if kind not in get_args(FactKind):
            raise Failed(f"'{kind}' is no kind of fact; one of: {', '.join(get_args(FactKind))}")
        if len(self._changes) >= MOST_FACTS and name not in self._changes:
            raise Failed(
                f"{MOST_FACTS} facts are enough for one session; keep the ones that matter"
            )
        if why := self._witness.heard(f"{says}\n{detail}"):
            raise Failed(why)
        marks = {"sessions": self._origin.session, "learned-by": self._origin.model}
        note = NewFact(name=name, says=says, kind=kind, detail=detail, metadata=marks)  # type: ignore[arg-type]
        change = self._change(note)
        preview = self._gate.preview(change)
        if preview.refusal is not None:
            raise Failed(f"refused: {preview.refusal.reason}; {preview.refusal.hint}")
        self._changes[name] = change
        return "it will be kept when you are done"

    def _change(self, note: NewFact) -> Change:
        why = Rationale(
            reason=cut(clean(note.says), 200),
            session=self._origin.session,
            evidence=(self._origin.session,),
            id=landing_id(self._job, note.name, "fact"),
        )
        root, today = fact_place_for(self._places, note.kind).root, self._origin.today
        return fact_change(self._gate, root, note, why, actor="reviewer", today=today)


def known_facts(project: str) -> str:
    """The facts that there are, for the prompt, so that the same is not noted under two names."""
    found = recallable_facts(project or None)[:_KNOWN]
    if not found:
        return ""
    rows = [f"- {k.fact.name} ({k.fact.kind}): {cut(clean(k.fact.says), 160)}" for k in found]
    return "\nKnown already:\n\n" + "\n".join(rows)


_FOUND = 6
_SHOWN = 12_000


class ReviewService:
    """Answers what the child asks. Every refusal is a `Failed` that the model reads."""

    def __init__(
        self, gate: Gate, staging: Staging, library: Library, pages: Pages, root: str
    ) -> None:
        self._gate = gate
        self._staging = staging
        self._library = library
        self._pages = pages
        self._root = root
        self._known: dict[str, Callable[..., str]] = {
            "read_trace": self.read_trace,
            "search_skills": self.search_skills,
            "view_skill": self.view_skill,
            "begin_skill": self.begin_skill,
            "open_skill": self.open_skill,
        }

    def add(self, name: str, function: Callable[..., str]) -> None:
        """Serve one thing more."""
        self._known[name] = function

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        function = self._known.get(name)
        if function is None:
            raise Failed(f"nothing here is called '{name}'")
        try:
            return Result(function(**arguments))
        except TypeError as error:  # the arguments do not fit
            raise Failed(f"{name}: {error}") from None
        except TacitError as error:
            raise Failed(error.explain()) from None
        except Escape as escape:
            raise Failed(f"{escape.refusal.reason}; {escape.refusal.hint}") from None

    def read_trace(self, page: int) -> str:
        if not 1 <= page <= len(self._pages):
            raise Failed(f"there are {len(self._pages)} pages, from 1")
        return f"Page {page} of {len(self._pages)}\n{self._pages.texts[page - 1]}"

    def search_skills(self, query: str) -> str:
        hits = self._library.search(query[:2000], _FOUND)
        rows = [
            f"- {hit.entry.name} ({_whose(hit.entry)}): {cut(hit.entry.description, 300)}"
            for hit in hits
            if hit.entry.state == "active"
        ]
        return clean("\n".join(rows)) or "(no skill fits)"

    def view_skill(self, name: str, path: str = SKILL_FILE) -> str:
        entry = self._find(name)
        files = _files(entry)
        file = files.get(path) or (files.get(entry.file) if path == SKILL_FILE else None)
        others = ", ".join(sorted(p for p in files if p != path)[:40])
        if file is None:
            raise Failed(f"'{name}' has no file '{path}'; it has: {', '.join(sorted(files)[:40])}")
        text = cut(clean(file.data.decode("utf-8", "replace")), _SHOWN)
        more = f"\n(other files: {others})" if others else ""
        return f"({_whose(entry)})\n{text}{more}"

    def begin_skill(self, name: str) -> str:
        """Whether a new skill of this name may be begun."""
        if why := unfit_name(name):
            raise Failed(f"{why}; name it for the class of work that it is about")
        entry = self._library.find(name)
        if entry is not None:
            instead = "edit it" if entry.origin == "learned" else "leave it as it is"
            raise Failed(f"there is a skill '{entry.name}' already ({_whose(entry)}); {instead}")
        if self._gate.look(name, self._root).is_live:
            raise Failed(f"there is a folder '{name}' already; choose another name")
        return "free"

    def open_skill(self, name: str) -> str:
        """Put a copy of a learned skill on the desk."""
        entry = self._find(name)
        if os.path.realpath(entry.root) not in self._gate.sites:
            raise Failed(f"'{entry.name}' lies in {entry.root}, where nothing is changed from here")
        folder = os.path.relpath(entry.folder, entry.root)
        standing = self._gate.look(folder, entry.root)
        if not standing.is_live or not skill_of(standing).learned:
            raise Failed(
                f"'{entry.name}' does not say 'source: auto-skill': it is the user's, and stays as "
                "it is"
            )
        if standing.pinned:
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


def _whose(entry: Entry) -> str:
    return "learned, may be changed" if entry.origin == "learned" else "the user's, read only"


def _files(entry: Entry) -> dict[str, File]:
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


REVIEW_ROUNDS = 3
"""How often refusals go back to the model."""
_REASON = 300


class RefusedChange(msgspec.Struct, frozen=True):
    """A change that the gate does not let through as it is."""

    skill: str
    refusal: Refusal

    def explain(self) -> str:
        why = self.refusal
        text = f"{self.skill}: {why.reason}"
        if why.hint:
            text += f"; {why.hint}"
        if why.alternatives:
            text += f" (edit instead: {', '.join(why.alternatives)})"
        return text


class ReviewBroker:
    """One review, as the closed room's broker."""

    def __init__(
        self, gate: Gate, staging: Staging, serving: ReviewService, witness: Witness,
        origin: SkillOrigin, *, root: str, job: str
    ) -> None:  # fmt: skip
        self._gate = gate
        self._staging = staging
        self._serving = serving
        self._witness = witness
        self._origin = origin
        self._root = root
        self._job = job
        self._rounds = 0
        self.ready: tuple[Change, ...] = ()
        """What passed the gate's preview when the reviewer was last done."""
        self.refused: tuple[RefusedChange, ...] = ()
        self.finished_once = False

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        return self._serving.serve(name, arguments)

    def finished(self, text: str) -> str | None:
        self.finished_once = True
        reason = _reason(text)
        ready: list[Change] = []
        refused = [RefusedChange(spoilt.name, spoilt.refusal) for spoilt in self._staging.spoilt()]
        for edited in self._staging.changed():
            change = self._change(edited, reason)
            if found := self._judge(edited, change):
                refused.append(RefusedChange(edited.name, found))
            else:
                ready.append(change)
        again = _wants(ready, refused) == _wants(self.ready, self.refused)
        self.ready, self.refused = tuple(ready), tuple(refused)
        self._rounds += 1
        # Done twice with the same is an answer: it leaves what is refused.
        if refused and not again and self._rounds <= REVIEW_ROUNDS:
            return _told(refused, ready)
        return None

    def _change(self, edited: EditedSkill, reason: str) -> Change:
        made = msgspec.structs.replace(
            edited, new=with_origin(edited.new, edited.old, self._origin)
        )
        return made.change(
            self._job,
            "reviewer",
            reason,
            evidence=(self._origin.session,),
            session=self._origin.session,
            root=self._root,
        )

    def _judge(self, edited: EditedSkill, change: Change) -> Refusal | None:
        if edited.is_new and (why := unfit_name(edited.skill)):
            return Refusal("policy", "name", why, "name it for the class of work")
        self._witness.knows([bytes_of(edited.old)])
        preview: Preview = self._gate.preview(change)
        return preview.refusal


def _wants(ready: Iterable[Change], refused: Iterable[RefusedChange]) -> tuple[object, ...]:
    return (*((change.skill, change.operations) for change in ready), *refused)


def _reason(text: str) -> str:
    """The reviewer's last words as the reason that is kept: one line, no secret."""
    line = one_line(redact(text).text)
    return line if len(line) <= _REASON else line[: _REASON - 1].rstrip() + "…"


def _told(refused: Iterable[RefusedChange], ready: list[Change]) -> str:
    lines = ["Not all of this can be kept. Refused:"]
    lines += [f"- {found.explain()}" for found in refused]
    if ready:
        names = ", ".join(change.skill for change in ready)
        lines.append(f"In order as it is, leave it: {names}.")
    lines.append(
        "Mend what is refused, or leave it: what stays refused is dropped. Then end again."
    )
    return "\n".join(lines)
