"""The rules of a place: who may do what, how large a thing may be, and what else is judged of it.

Who may do what is a table: actor by act by the skill's origin. Whether a skill is pinned comes
before the table; whether a name is taken comes after it, in the gate. `Rules` are those of one kind
of thing: the rules of skills are here; those of facts, where they differ, are in `facts`.
Everything that makes a change safe (handles, stage, journal, history, locks, inbox, undo) is the
same for both. The gate asks the rules of the place that a change is made in, never the change, so
that no change can choose the rules it is judged by.
"""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from tacit.base.display import estimate_tokens
from tacit.changes import neighbours
from tacit.changes.change import (
    SKILL_FILE,
    Actor,
    Change,
    Files,
    Operation,
    Refusal,
)
from tacit.changes.neighbours import Neighbours
from tacit.changes.place import Place
from tacit.skills.skill import Origin, Problem, Skill
from tacit.skills.skill_file import MAX_BODY_LINES, MAX_DESCRIPTION, SKILL_FILE_NAMES

MAX_BODY_TOKENS = 5_000
MAX_SKILL_BYTES = 1024 * 1024
MAX_SKILL_FILES = 50


class Measure(NamedTuple):
    """One thing that is counted: what it is called, how much there is, and how much may be."""

    rule: str
    n: int
    most: int
    text: str
    """The words for too much of it, with `n` and `most` to fill in."""
    hint: str


Measuring = Callable[[Files, Skill], tuple[Measure, ...]]


def measure_skill(files: Files, skill: Skill) -> tuple[Measure, ...]:
    return (
        Measure(
            "long-body",
            skill.body.count("\n") + 1,
            MAX_BODY_LINES,
            "the body has {n:,} lines; {most:,} are allowed",
            _MOVE,
        ),
        Measure(
            "heavy-body",
            estimate_tokens(skill.body),
            MAX_BODY_TOKENS,
            "the body has about {n:,} tokens (an estimate); {most:,} are allowed",
            _MOVE,
        ),
        Measure(
            "heavy-skill",
            sum(len(file.data) for file in files.values()),
            MAX_SKILL_BYTES,
            "the skill has {n:,} bytes; {most:,} are allowed",
            "leave out what can be fetched or made when it is needed",
        ),
        Measure(
            "many-files",
            len(files),
            MAX_SKILL_FILES,
            "the skill has {n:,} files; {most:,} are allowed",
            "put related files together, or make two skills",
        ),
        Measure(
            "long-description",
            len(skill.description),
            MAX_DESCRIPTION,
            "the description has {n:,} characters; {most:,} are allowed",
            "say what it does and when to use it, and move the rest to the body",
        ),
    )


def check_size(files: Files, skill: Skill, measure: Measuring = measure_skill) -> list[Refusal]:
    """What is over a limit, one refusal each."""
    return [
        Refusal("size", found.rule, _too_much(found), found.hint, overridable=True)
        for found in measure(files, skill)
        if found.n > found.most
    ]


def sizes(files: Files, skill: Skill, measure: Measuring = measure_skill) -> dict[str, int]:
    """The same measures by rule, to tell whether a change made one worse."""
    return {found.rule: found.n for found in measure(files, skill)}


def _too_much(found: Measure) -> str:
    return found.text.format(n=found.n, most=found.most)


_MOVE = "move detail to files under references/ and name them in the body"


Act = Literal["create", "edit", "rename", "archive", "restore", "merge", "delete", "pin"]
Decision = Literal["allow", "ask", "propose", "copy", "refuse"]
"""allow: at once. ask: after a person said yes. propose: to the inbox. copy: in their own scope."""

ASKS_FIRST = "asks-first"
"""The rule by which a change waits only for whose the thing is."""
ORIGINS: tuple[Origin, ...] = ("user", "learned", "bundled", "installed", "scheduled")

# For each origin in the order above. What is not listed is refused.
_TABLE: dict[tuple[Actor, Act], str] = {
    # actor, act               user    learned bundled installed scheduled
    ("user", "create"): "      allow   allow   refuse  refuse    allow  ",
    ("user", "edit"): "        allow   allow   copy    copy      allow  ",
    ("user", "rename"): "      allow   allow   refuse  refuse    allow  ",
    ("user", "archive"): "     allow   allow   refuse  allow     allow  ",
    ("user", "restore"): "     allow   allow   refuse  allow     allow  ",
    ("user", "merge"): "       allow   allow   refuse  allow     allow  ",
    ("user", "delete"): "      allow   allow   refuse  allow     allow  ",
    ("user", "pin"): "         allow   allow   refuse  allow     allow  ",
    ("agent", "create"): "     allow   allow   refuse  refuse    allow  ",
    ("agent", "edit"): "       ask     allow   copy    copy      ask    ",
    ("agent", "rename"): "     ask     ask     refuse  refuse    ask    ",
    ("agent", "archive"): "    ask     ask     refuse  ask       ask    ",
    ("agent", "restore"): "    ask     ask     refuse  ask       ask    ",
    ("agent", "merge"): "      ask     ask     refuse  ask       ask    ",
    ("agent", "delete"): "     ask     ask     refuse  ask       ask    ",
    ("reviewer", "create"): "  refuse  allow   refuse  refuse    refuse ",
    ("reviewer", "edit"): "    refuse  allow   refuse  refuse    refuse ",
    ("improver", "edit"): "    propose allow   refuse  refuse    propose",
    ("curator", "create"): "   refuse  allow   refuse  refuse    refuse ",
    ("curator", "edit"): "     refuse  allow   refuse  refuse    refuse ",
    ("curator", "archive"): "  refuse  allow   refuse  refuse    refuse ",
    ("curator", "restore"): "  refuse  allow   refuse  refuse    refuse ",
    ("curator", "merge"): "    refuse  allow   refuse  refuse    refuse ",
    ("distiller", "create"): " refuse  allow   refuse  refuse    refuse ",
    ("distiller", "edit"): "   propose allow   refuse  refuse    propose",
}

_VERBS: dict[Act, str] = {
    "create": "make",
    "edit": "edit",
    "rename": "rename",
    "archive": "archive",
    "restore": "restore",
    "merge": "merge away",
    "delete": "delete",
    "pin": "pin or unpin",
}

_WHOSE: dict[Origin, str] = {
    "user": "the user's own skill",
    "learned": "a learned skill",
    "bundled": "a skill that ships with tacit",
    "installed": "an installed skill",
    "scheduled": "a scheduled skill",
}


def _instead(actor: Actor, act: Act, origin: Origin, skill: str) -> str:
    if act == "create" and origin != "learned" and actor not in ("user", "agent"):
        return (
            "a skill made in the background must say 'source: auto-skill' under 'metadata:'"
            if (actor, "create") in _TABLE
            else "edit a learned skill instead"
        )
    if act == "create":
        return "edit an existing learned skill instead" if actor == "improver" else ""
    if origin == "bundled":
        return f"make a copy in your own scope by editing it: tacit edit {skill}"
    if origin == "installed" and act == "rename":
        return "edit it, which makes a copy of your own, and rename that"
    if act == "delete":
        return "the curator archives instead" if actor == "curator" else "leave it as it is"
    if act == "pin":
        return f"only the user does: tacit pin {skill}"
    if origin in ("user", "scheduled") and act == "edit":
        return (
            f"the user can opt in with 'source: auto-skill' under 'metadata:' in '{skill}'; "
            "until then put what was learned into a learned skill"
        )
    return "leave it as it is"


class Rules:
    """The rules of one kind of thing: those of skills, which the kinds that differ override.

    Has no state; judges what it is given and touches nothing.
    """

    noun = "skill"
    file = SKILL_FILE
    """The file that each of them must have."""
    names: tuple[str, ...] = SKILL_FILE_NAMES
    """The names under which that file is read."""
    list_command = "tacit list"
    remove_command = "tacit rm"
    table = _TABLE
    verbs = _VERBS
    whose = _WHOSE
    consent = "the {actor} may {verb} {whose} only with the user's consent"

    def check_operation(self, operation: Operation) -> Refusal | None:
        """Whether there is such an operation here at all."""
        return None

    def decide(self, actor: Actor, act: Act, origin: Origin, *, pinned: bool = False) -> Decision:
        """What the table says of `actor` doing `act` to something of this `origin`."""
        if pinned and actor != "user":
            return "refuse"
        row = self.table.get((actor, act), "").split()
        return dict(zip(ORIGINS, row, strict=False)).get(origin, "refuse")  # type: ignore[return-value]

    def refusal(
        self, actor: Actor, act: Act, origin: Origin, name: str, *, pinned: bool
    ) -> Refusal:
        """The words for a "refuse"."""
        if pinned and actor != "user":
            return Refusal(
                "policy",
                "pinned",
                f"'{name}' is pinned: nobody but the user changes it",
                "leave it as it is, or ask the user to run: tacit unpin " + name,
            )
        who = "the user" if actor == "user" else f"the {actor}"
        return Refusal(
            "policy",
            f"{actor}-{act}-{origin}",
            f"{who} may not {self.verbs.get(act, act)} {self.whose[origin]} ('{name}')",
            self.instead(actor, act, origin, name),
        )

    def instead(self, actor: Actor, act: Act, origin: Origin, name: str) -> str:
        """What to do instead of something that is refused."""
        return _instead(actor, act, origin, name)

    def consent_needed(
        self, actor: Actor, act: Act, origin: Origin, name: str, decision: Decision
    ) -> Refusal:
        """Why a change waits for a person."""
        reason = self.consent.format(
            actor=actor, verb=self.verbs[act], whose=self.whose[origin], name=name
        )
        rule = ASKS_FIRST if decision == "ask" else "proposes"
        return Refusal("approval", rule, reason, "it waits in the inbox: tacit inbox")

    def check(self, text: str, folder: str) -> list[Problem]:
        """What is wrong with the text of the file, to the letter."""
        from tacit.skills.open_standard import check_standard

        return check_standard(text, folder)

    def measure(self, files: Files, skill: Skill) -> tuple[Measure, ...]:
        return measure_skill(files, skill)

    def neighbours_in(self, root: str) -> Neighbours | None:
        """Who knows the others in the place `root`; None leaves that to the library."""
        return None

    def repeats(self, new: Skill, others: Iterable[Skill]) -> Refusal | None:
        """Whether `new` says what one of `others` says."""
        found = neighbours.nearest_duplicate(new, others)
        return neighbours.duplicate_refusal(new, found) if found else None

    def scans_as_learned(self, change: Change) -> bool:
        """Whether the scan must treat what `change` writes as a machine's, whatever it says."""
        return False

    def always_refuses(self, rule: str) -> bool:
        """Whether what the scan found by `rule` is refused whoever wrote it."""
        return False


SKILL_RULES = Rules()


def rules_of(place: Place) -> Rules:
    """The rules for what lies in `place`."""
    if place.kind == "facts":
        from tacit.changes.facts import FACT_RULES

        return FACT_RULES
    return SKILL_RULES
