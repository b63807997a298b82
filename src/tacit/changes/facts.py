"""Facts under the gate: who may note, replace and forget them, and what is judged of them.

The same road as for skills, with a stricter gate where facts differ from them: a fact stands in
every prompt, so it is short, it is one file, it holds no secret whoever wrote it, and what anybody
but the user notes is scanned as a machine's work. Making such changes is `remembering.py`'s.
"""

from collections.abc import Iterable

import msgspec

from tacit.base.terminal import one_line, plain
from tacit.changes.actor import Actor
from tacit.changes.change import Change, Create, Delete, Operation, Refusal, Rewrite
from tacit.changes.duplicates import content_words
from tacit.changes.files import Files
from tacit.changes.form import Form
from tacit.changes.limits import Measure
from tacit.changes.neighbours import Neighbour, Neighbours
from tacit.changes.policy import Act, Decision
from tacit.skills import standard
from tacit.skills.memory import FACT_FILE, KINDS, MAX_FACTS, Root, kind_of, read_facts
from tacit.skills.reading import parse_skill
from tacit.skills.skill import LEARNED_SOURCE, Origin, Problem, Skill

MAX_SAYS = 400
"""Characters of the one line that a prompt carries."""
MAX_DETAIL_LINES = 60
MAX_FILE = 8 * 1024
ALIKE = 0.4
"""The part of all telling words of two facts that they must share to be one subject."""
NEARLY_ALL = 0.8
"""From here on two texts are one sentence, and a name alone does not make two facts of it."""
ASKS_FIRST = "asks-first"
"""The rule by which a change waits only for whose the fact is."""
_SHARED = 3

_KEYS = ("name", "description", "metadata")

# By whose the fact is. What is not listed is refused.
_TABLE: dict[tuple[Actor, Act], dict[Origin, Decision]] = {
    ("user", "create"): {"user": "allow", "learned": "allow"},
    ("user", "edit"): {"user": "allow", "learned": "allow"},
    ("user", "delete"): {"user": "allow", "learned": "allow"},
    ("agent", "create"): {"user": "allow", "learned": "allow"},
    ("agent", "edit"): {"user": "ask", "learned": "allow"},
    ("agent", "delete"): {"user": "ask", "learned": "ask"},
    ("reviewer", "create"): {"learned": "allow"},
    ("reviewer", "edit"): {"user": "propose", "learned": "allow"},
}
_VERBS: dict[Act, str] = {"create": "note", "edit": "replace", "delete": "forget"}


class _Facts:
    noun = "fact"
    file = FACT_FILE
    names: tuple[str, ...] = (FACT_FILE,)
    see = "tacit memory"
    remove = "tacit memory forget"

    def fits(self, operation: Operation) -> Refusal | None:
        if isinstance(operation, Create | Rewrite | Delete):
            return None
        return Refusal(
            "policy",
            "not-for-facts",
            "a fact is noted, replaced as a whole, or forgotten; nothing else is done to it",
            "note it again under the same name to replace it",
        )

    def decide(self, actor: Actor, act: Act, origin: Origin, *, pinned: bool = False) -> Decision:
        if pinned and actor != "user":
            return "refuse"
        return _TABLE.get((actor, act), {}).get(origin, "refuse")

    def refusal(
        self, actor: Actor, act: Act, origin: Origin, name: str, *, pinned: bool
    ) -> Refusal:
        who = "the user" if actor == "user" else f"the {actor}"
        verb = _VERBS.get(act, act)
        hint = "leave it as it is"
        if act == "create" and (actor, "create") in _TABLE:
            hint = f"a fact noted in the background must say 'source: {LEARNED_SOURCE}'"
        whose = "a fact that a machine noted" if origin == "learned" else "a fact of the user's"
        return Refusal(
            "policy", f"{actor}-{act}-{origin}", f"{who} may not {verb} {whose} ('{name}')", hint
        )

    def asked(
        self, actor: Actor, act: Act, origin: Origin, name: str, decision: Decision
    ) -> Refusal:
        whose = "a fact that a machine noted" if origin == "learned" else "a fact of the user's"
        reason = f"the {actor} may {_VERBS[act]} {whose} ('{name}') only with the user's consent"
        rule = ASKS_FIRST if decision == "ask" else "proposes"
        return Refusal("approval", rule, reason, "it waits in the inbox: tacit inbox")

    def check(self, text: str, folder: str) -> list[Problem]:
        """The standard's frontmatter with fewer keys, and a kind."""
        found = standard.check(text, folder)
        if any(problem.severity == "error" for problem in found):
            return [_in_fact(problem) for problem in found]
        read = parse_skill(text, folder)
        others = {
            "allowed-tools": read.allowed_tools,
            "compatibility": read.compatibility,
            "license": read.license,
        }
        used = [key for key, value in others.items() if value]
        problems = [_problem("unknown-key", f"'{key}' is no key of a fact", _ONLY) for key in used]
        if kind_of(read) is None or not isinstance(read.metadata.get("kind"), str):
            kinds = ", ".join(KINDS)
            problems.append(
                _problem("no-kind", "'kind' under 'metadata' is missing", f"one of: {kinds}")
            )
        if "\n" in read.description.strip():
            problems.append(
                _problem("long-description", "the description has two lines", "say it in one")
            )
        if (said := " ".join(read.description.split())) != one_line(read.description):
            marks = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(said)) if plain(c) != c)
            problems.append(
                _problem("control-characters", f"the description has {marks}", "leave that out")
            )
        return problems

    def measure(self, files: Files, skill: Skill) -> tuple[Measure, ...]:
        return (
            Measure(
                "long-fact",
                len(skill.description),
                MAX_SAYS,
                "the fact has {n:,} characters; {most:,} are allowed",
                "say it in one sentence, and put the rest below the head",
            ),
            Measure(
                "long-body",
                skill.body.count("\n") + 1,
                MAX_DETAIL_LINES,
                "the detail has {n:,} lines; {most:,} are allowed",
                "keep what a later session needs; a way of doing things is a skill",
            ),
            Measure(
                "heavy-fact",
                sum(len(file.data) for file in files.values()),
                MAX_FILE,
                "the fact has {n:,} bytes; {most:,} are allowed",
                "keep what a later session needs; a way of doing things is a skill",
            ),
            Measure(
                "many-files",
                len(files),
                1,
                "there are {n:,} files; a fact is one",
                f"put it all in {FACT_FILE}",
            ),
        )

    def around(self, root: str) -> Neighbours | None:
        return FactNeighbours(root)

    def repeats(self, new: Skill, others: Iterable[Skill]) -> Refusal | None:
        known = list(others)
        if len(known) >= MAX_FACTS:
            return Refusal(
                "size",
                "many-facts",
                f"there are {len(known):,} facts already; {MAX_FACTS:,} are kept in one place",
                "replace one that is out of date, or let the user forget some: tacit memory",
            )
        shares = [(_alike(new, other), other.name) for other in known]
        share, name = max(shares, default=(0.0, ""))
        if share < ALIKE:
            return None
        return Refusal(
            "near-duplicate",
            "near-duplicate",
            f"'{new.name}' is about the same as '{name}': they share {share:.0%} of their words",
            f"replace '{name}' instead (remember it under that name), or say what is different",
            alternatives=(name,),
            overridable=True,
        )

    def is_machines(self, change: Change) -> bool:
        return change.actor != "user"

    def never(self, rule: str) -> bool:
        return rule.startswith("secret:")


FACTS: Form = _Facts()


class FactNeighbours:
    """The other facts of one place, read from it. They are few, and no index is kept of them."""

    def __init__(self, root: str) -> None:
        self._root = root

    def find(self, name: str, root: str = "") -> Neighbour | None:
        return None  # one subject may have a fact in each scope

    def alike(self, skill: Skill) -> list[Skill]:
        return [
            Skill(name=fact.name, description=fact.says, body=fact.detail)
            for fact in read_facts(Root(self._root, "user"))
        ]

    def noticed(self, root: str, folder: str) -> None:
        return None


def _alike(new: Skill, other: Skill) -> float:
    """How much of what two facts say is the same, from 0 to 1.

    A fact whose name says what sets it apart (`staging-timeout`) is on a subject of its own. Where
    the texts are the same but for a word, the other's name must do so too (`production-timeout`):
    else the word is what the older fact had wrong, and not another subject.
    """
    if new.description.casefold().split() == other.description.casefold().split():
        return 1.0
    said, theirs = content_words(new.description), content_words(other.description)
    named, other_named = content_words(new.name), content_words(other.name)
    texts = _share(said, theirs)
    is_apart = bool((named & said) - theirs - other_named)
    other_is_apart = bool((other_named & theirs) - said - named)
    if is_apart and (other_is_apart or texts < NEARLY_ALL):
        return 0.0
    return max(texts, _share(said | named, theirs | other_named))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / len(one | other) if shared >= _SHARED else 0.0


_ONLY = f"a fact has: {', '.join(_KEYS)}"


def _problem(code: str, message: str, fix: str) -> Problem:
    return Problem(1, code, "error", message, fix, FACT_FILE)


def _in_fact(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, file=FACT_FILE)
