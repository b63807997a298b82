"""Facts that the reviewer wants kept: each is tried at the gate when it is said, and lands at the
end with the rest."""

from collections.abc import Sequence
from typing import get_args

from tacit.agent.tools.tool import Failed
from tacit.changes.change import Change
from tacit.changes.gate import Gate
from tacit.changes.memory import recallable
from tacit.changes.place import Place
from tacit.changes.remembering import Note, Why, noting, place_for
from tacit.learn.provenance.check import Witness
from tacit.learn.review.landing import id_of
from tacit.learn.review.marks import Origin
from tacit.learn.telling import clean, cut
from tacit.skills.memory import Kind

MOST = 10
"""Facts that one review may keep."""
_KNOWN = 40


class Facts:
    """The facts of one review."""

    def __init__(
        self, gate: Gate, places: Sequence[Place], witness: Witness, origin: Origin, job: str
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
        if kind not in get_args(Kind):
            raise Failed(f"'{kind}' is no kind of fact; one of: {', '.join(get_args(Kind))}")
        if len(self._changes) >= MOST and name not in self._changes:
            raise Failed(f"{MOST} facts are enough for one session; keep the ones that matter")
        if why := self._witness.heard(f"{says}\n{detail}"):
            raise Failed(why)
        marks = {"sessions": self._origin.session, "learned-by": self._origin.model}
        note = Note(name=name, says=says, kind=kind, detail=detail, metadata=marks)  # type: ignore[arg-type]
        change = self._change(note)
        preview = self._gate.preview(change)
        if preview.refusal is not None:
            raise Failed(f"refused: {preview.refusal.reason}; {preview.refusal.hint}")
        self._changes[name] = change
        return "it will be kept when you are done"

    def _change(self, note: Note) -> Change:
        why = Why(
            reason=cut(clean(note.says), 200),
            session=self._origin.session,
            evidence=(self._origin.session,),
            id=id_of(self._job, note.name, "fact"),
        )
        root, today = place_for(self._places, note.kind).root, self._origin.today
        return noting(self._gate, root, note, why, actor="reviewer", today=today)


def known(project: str) -> str:
    """The facts that there are, for the prompt, so that the same is not noted under two names."""
    found = recallable(project or None)[:_KNOWN]
    if not found:
        return ""
    rows = [f"- {k.fact.name} ({k.fact.kind}): {cut(clean(k.fact.says), 160)}" for k in found]
    return "\nKnown already:\n\n" + "\n".join(rows)
