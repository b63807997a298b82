"""The parent's side of a review: what the reviewer asks for, and what comes of its being done.

When it says that it is done, what lies on the desk is put before the gate as a preview. What the
gate would refuse goes back to the model with the reason, while rounds and requests remain. Nothing
lands here: what is ready is handed on when the conversation is over (`landing.py`).
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from tacit.agent.tools.tool import Result
from tacit.base.secrets import redact
from tacit.base.terminal import one_line
from tacit.changes.change import Change, Preview, Refusal
from tacit.changes.files import to_bytes
from tacit.changes.gate import Gate
from tacit.learn.background.staging import Edited, Staging
from tacit.learn.provenance.check import Witness
from tacit.learn.review.marks import Origin, marked
from tacit.learn.review.names import unfit_name
from tacit.learn.review.serving import Serving

ROUNDS = 3
"""How often refusals go back to the model."""
_REASON = 300


class Refused(msgspec.Struct, frozen=True):
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


class Reviewer:
    """One review, as the closed room's broker."""

    def __init__(
        self, gate: Gate, staging: Staging, serving: Serving, witness: Witness, origin: Origin,
        *, root: str, job: str
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
        self.refused: tuple[Refused, ...] = ()
        self.finished_once = False

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        return self._serving.serve(name, arguments)

    def finished(self, text: str) -> str | None:
        self.finished_once = True
        reason = _reason(text)
        ready: list[Change] = []
        refused = [Refused(spoilt.name, spoilt.refusal) for spoilt in self._staging.spoilt()]
        for edited in self._staging.changed():
            change = self._change(edited, reason)
            if found := self._judge(edited, change):
                refused.append(Refused(edited.name, found))
            else:
                ready.append(change)
        again = _wants(ready, refused) == _wants(self.ready, self.refused)
        self.ready, self.refused = tuple(ready), tuple(refused)
        self._rounds += 1
        # Done twice with the same is an answer: it leaves what is refused.
        if refused and not again and self._rounds <= ROUNDS:
            return _told(refused, ready)
        return None

    def _change(self, edited: Edited, reason: str) -> Change:
        made = msgspec.structs.replace(edited, new=marked(edited.new, edited.old, self._origin))
        return made.change(
            self._job,
            "reviewer",
            reason,
            evidence=(self._origin.session,),
            session=self._origin.session,
            root=self._root,
        )

    def _judge(self, edited: Edited, change: Change) -> Refusal | None:
        if edited.is_new and (why := unfit_name(edited.skill)):
            return Refusal("policy", "name", why, "name it for the class of work")
        self._witness.knows([to_bytes(edited.old)])
        preview: Preview = self._gate.preview(change)
        return preview.refusal


def _wants(ready: Iterable[Change], refused: Iterable[Refused]) -> tuple[object, ...]:
    return (*((change.skill, change.operations) for change in ready), *refused)


def _reason(text: str) -> str:
    """The reviewer's last words as the reason that is kept: one line, no secret."""
    line = one_line(redact(text).text)
    return line if len(line) <= _REASON else line[: _REASON - 1].rstrip() + "…"


def _told(refused: Iterable[Refused], ready: list[Change]) -> str:
    lines = ["Not all of this can be kept. Refused:"]
    lines += [f"- {found.explain()}" for found in refused]
    if ready:
        names = ", ".join(change.skill for change in ready)
        lines.append(f"In order as it is, leave it: {names}.")
    lines.append(
        "Mend what is refused, or leave it: what stays refused is dropped. Then end again."
    )
    return "\n".join(lines)
