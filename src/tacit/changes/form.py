"""What the things in a place are: skills, or facts.

Everything that makes a change safe (handles, stage, journal, history, locks, inbox, undo) is the
same for both, because both are a folder with one file that must be there. A form says the rest:
what that file is called, which operations there are, who may do what, and what is judged of it.
The gate asks the form of the place that a change is made in, never the change, so that no change
can choose the rules it is judged by.
"""

from collections.abc import Iterable
from typing import Protocol

from tacit.changes import duplicates, limits, policy
from tacit.changes.actor import Actor
from tacit.changes.change import SKILL_FILE, Change, Operation, Refusal
from tacit.changes.files import Files
from tacit.changes.neighbours import Neighbours
from tacit.changes.place import Place
from tacit.changes.policy import Act, Decision
from tacit.skills import standard
from tacit.skills.reading import FILE_NAMES
from tacit.skills.skill import Origin, Problem, Skill


class Form(Protocol):
    """The rules of one kind of thing. Has no state; judges what it is given and touches nothing."""

    noun: str
    file: str
    """The file that each of them must have."""
    names: tuple[str, ...]
    """The names under which that file is read."""
    see: str
    """The command that lists them."""
    remove: str
    """The command that removes one."""

    def fits(self, operation: Operation) -> Refusal | None:
        """Whether there is such an operation here at all."""
        ...

    def decide(
        self, actor: Actor, act: Act, origin: Origin, *, pinned: bool = False
    ) -> Decision: ...

    def refusal(
        self, actor: Actor, act: Act, origin: Origin, name: str, *, pinned: bool
    ) -> Refusal: ...

    def asked(
        self, actor: Actor, act: Act, origin: Origin, name: str, decision: Decision
    ) -> Refusal: ...

    def check(self, text: str, folder: str) -> list[Problem]:
        """What is wrong with the text of the file, to the letter."""
        ...

    def measure(self, files: Files, skill: Skill) -> tuple[limits.Measure, ...]: ...

    def around(self, root: str) -> Neighbours | None:
        """Who knows the others in the place `root`; None leaves that to the library."""
        ...

    def repeats(self, new: Skill, others: Iterable[Skill]) -> Refusal | None:
        """Whether `new` says what one of `others` says."""
        ...

    def is_machines(self, change: Change) -> bool:
        """Whether the scan must treat what `change` writes as a machine's, whatever it says."""
        ...

    def never(self, rule: str) -> bool:
        """Whether what the scan found by `rule` is refused whoever wrote it."""
        ...


class _Skills:
    noun = "skill"
    file = SKILL_FILE
    names: tuple[str, ...] = FILE_NAMES
    see = "tacit list"
    remove = "tacit rm"

    def fits(self, operation: Operation) -> Refusal | None:
        return None

    def decide(self, actor: Actor, act: Act, origin: Origin, *, pinned: bool = False) -> Decision:
        return policy.decide(actor, act, origin, pinned=pinned)

    def refusal(
        self, actor: Actor, act: Act, origin: Origin, name: str, *, pinned: bool
    ) -> Refusal:
        return policy.refusal(actor, act, origin, name, pinned=pinned)

    def asked(
        self, actor: Actor, act: Act, origin: Origin, name: str, decision: Decision
    ) -> Refusal:
        return policy.asked(actor, act, origin, name, decision)

    def check(self, text: str, folder: str) -> list[Problem]:
        return standard.check(text, folder)

    def measure(self, files: Files, skill: Skill) -> tuple[limits.Measure, ...]:
        return limits.measure_skill(files, skill)

    def around(self, root: str) -> Neighbours | None:
        return None

    def repeats(self, new: Skill, others: Iterable[Skill]) -> Refusal | None:
        found = duplicates.nearest(new, others)
        return duplicates.refusal(new, found) if found else None

    def is_machines(self, change: Change) -> bool:
        return False

    def never(self, rule: str) -> bool:
        return False


SKILLS: Form = _Skills()


def form_of(place: Place) -> Form:
    """The form of what lies in `place`."""
    if place.kind == "facts":
        from tacit.changes.facts import FACTS

        return FACTS
    return SKILLS
