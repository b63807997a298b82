"""Facts under the gate: the rules for them, who recorded each, and changes that keep or forget one.

The same road as for skills, with stricter rules where facts differ: a fact stands in every prompt,
so it is short, it is one file, it holds no secret whoever wrote it, and what anybody but the user
records is scanned as a machine's work.

Who recorded a fact is read from the history, which the gate alone writes: a fact's file can say
anything of itself, and a clone can bring any file. What the history does not know came past the
gate. In the user's own folder that is the user's hand; in a project it is somebody else's word,
which is scanned before it is recalled and never stands in for a fact of the user's.

Reading the files of facts is left to the skills layer.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from tacit.base import paths
from tacit.base.display import one_line, plain
from tacit.base.errors import Damaged, NotFound, did_you_mean
from tacit.changes.change import (
    BACKGROUND,
    Actor,
    Change,
    Create,
    Delete,
    Files,
    Operation,
    Refusal,
    Rewrite,
    Verdict,
    acting,
    make_change,
)
from tacit.changes.containment import Escape
from tacit.changes.history import History, Version
from tacit.changes.neighbours import Neighbour, Neighbours, content_words
from tacit.changes.place import Place, fact_places
from tacit.changes.policy import Act, Measure, Rules
from tacit.changes.skill_state import SkillState
from tacit.skills.fact import (
    FACT_FILE,
    FACT_KINDS,
    MAX_FACTS,
    Fact,
    FactKind,
    MemoryRoot,
    fact_digest,
    facts_here,
    parse_fact,
    read_facts,
    stated_kind,
)
from tacit.skills.skill import LEARNED_SOURCE, Origin, Problem, Skill
from tacit.skills.skill_file import parse_skill

if TYPE_CHECKING:  # facts are read without it
    from tacit.changes.gate import Gate

MAX_FACT_LENGTH = 400
"""Characters of the one line that a prompt carries."""
MAX_DETAIL_LINES = 60
MAX_FACT_BYTES = 8 * 1024
ALIKE_FACTS = 0.4
"""The part of all telling words of two facts that they must share to be one subject."""
NEARLY_ALL = 0.8
"""From here on two texts are one sentence, and a name alone does not make two facts of it."""
_SHARED = 3

_KEYS = ("name", "description", "metadata")

# For facts of the user's, and for those that a machine recorded. What is not listed is refused.
_TABLE: dict[tuple[Actor, Act], str] = {
    # actor, act               user    learned
    ("user", "create"): "      allow   allow",
    ("user", "edit"): "        allow   allow",
    ("user", "delete"): "      allow   allow",
    ("agent", "create"): "     allow   allow",
    ("agent", "edit"): "       ask     allow",
    ("agent", "delete"): "     ask     ask",
    ("reviewer", "create"): "  refuse  allow",
    ("reviewer", "edit"): "    propose allow",
    ("distiller", "create"): " refuse  allow",
    ("distiller", "edit"): "   propose allow",
}
_VERBS: dict[Act, str] = {"create": "note", "edit": "replace", "delete": "forget"}
_WHOSE: dict[Origin, str] = {
    "user": "a fact of the user's",
    "learned": "a fact that a machine noted",
}


class _FactRules(Rules):
    noun = "fact"
    file = FACT_FILE
    names = (FACT_FILE,)
    list_command = "tacit memory"
    remove_command = "tacit memory forget"
    table = _TABLE
    verbs = _VERBS
    whose = _WHOSE
    consent = "the {actor} may {verb} {whose} ('{name}') only with the user's consent"

    def check_operation(self, operation: Operation) -> Refusal | None:
        if isinstance(operation, Create | Rewrite | Delete):
            return None
        return Refusal(
            "policy",
            "not-for-facts",
            "a fact is noted, replaced as a whole, or forgotten; nothing else is done to it",
            "note it again under the same name to replace it",
        )

    def instead(self, actor: Actor, act: Act, origin: Origin, name: str) -> str:
        if act == "create" and (actor, "create") in _TABLE:
            return f"a fact noted in the background must say 'source: {LEARNED_SOURCE}'"
        return "leave it as it is"

    def check(self, text: str, folder: str) -> list[Problem]:
        """The standard's frontmatter with fewer keys, and a kind."""
        from tacit.skills.open_standard import check_standard

        found = check_standard(text, folder)
        if any(problem.severity == "error" for problem in found):
            return [_with_fact_file(problem) for problem in found]
        read = parse_skill(text, folder)
        others = {
            "allowed-tools": read.allowed_tools,
            "compatibility": read.compatibility,
            "license": read.license,
        }
        used = [key for key, value in others.items() if value]
        problems = [_problem("unknown-key", f"'{key}' is no key of a fact", _ONLY) for key in used]
        if stated_kind(read) is None or not isinstance(read.metadata.get("kind"), str):
            kinds = ", ".join(FACT_KINDS)
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
                MAX_FACT_LENGTH,
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
                MAX_FACT_BYTES,
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

    def neighbours_in(self, root: str) -> Neighbours | None:
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
        if share < ALIKE_FACTS:
            return None
        return Refusal(
            "near-duplicate",
            "near-duplicate",
            f"'{new.name}' is about the same as '{name}': they share {share:.0%} of their words",
            f"replace '{name}' instead (remember it under that name), or say what is different",
            alternatives=(name,),
            overridable=True,
        )

    def scans_as_learned(self, change: Change) -> bool:
        return change.actor != "user"

    def always_refuses(self, rule: str) -> bool:
        return rule.startswith("secret:")


FACT_RULES = _FactRules()


class FactNeighbours:
    """The other facts of one place, read from it. They are few, and no index is kept of them."""

    def __init__(self, root: str) -> None:
        self._root = root

    def find(self, name: str, root: str = "") -> Neighbour | None:
        return None  # one subject may have a fact in each scope

    def alike(self, skill: Skill) -> list[Skill]:
        return [
            Skill(name=fact.name, description=fact.says, body=fact.detail)
            for fact in read_facts(MemoryRoot(self._root, "user"))
        ]

    def changed(self, root: str, folder: str) -> None:
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


def _with_fact_file(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, file=FACT_FILE)


_PAST_THE_GATE = ("baseline", "hand")
_WORDS: dict[str, str] = {
    "user": "noted by the user",
    "agent": "noted by an agent, with the user",
    "": "came with the project's files",
}


class KnownFact(msgspec.Struct, frozen=True):
    """A fact, and who recorded it; None where that is whoever wrote the project's files."""

    fact: Fact
    recorded_by: Actor | None

    @property
    def provenance(self) -> str:
        """Where it is from, in words for a person or a model."""
        said = _WORDS.get(self.recorded_by or "", "noted by tacit after a session")
        return f"{said}, {self.fact.noted}" if self.fact.noted and self.recorded_by else said


def known_facts(cwd: str | None = None, data: str | None = None) -> list[KnownFact]:
    """Every fact that can be reached from `cwd`, the project's first. Never raises."""
    data = data or paths.folders().data
    histories = {place.root: History(place, data) for place in fact_places(cwd)}
    found = [_known(fact, histories.get(fact.root)) for fact in facts_here(cwd)]
    own = {k.fact.name for k in found if k.fact.scope == "project" and k.recorded_by and _active(k)}
    return [_shadowed(known) if known.fact.name in own else known for known in found]


def find_fact(
    found: list[KnownFact], name: str, otherwise: str, scope: str | None = None
) -> KnownFact:
    """The fact that `name` means, the project's before the user's. Raises `NotFound`."""
    for known in found:
        if known.fact.name == name and scope in (None, known.fact.scope):
            return known
    hint = did_you_mean(name, {known.fact.name for known in found}, otherwise)
    raise NotFound(f"there is no fact '{name}'", hint)


def recallable_facts(cwd: str | None = None, data: str | None = None) -> list[KnownFact]:
    """Those that a model may be told."""
    return [known for known in known_facts(cwd, data) if _active(known)]


def _known(fact: Fact, history: History | None) -> KnownFact:
    try:
        version = _version(fact, history)
    except Damaged:  # tacit doctor says so
        version = None
    if version is not None:
        return KnownFact(fact, version.record.actor)
    if fact.scope == "user":
        return KnownFact(fact, "user")
    if fact.state == "active" and (why := _blocked(fact)):
        fact = msgspec.structs.replace(fact, state="broken", why=why)
    return KnownFact(fact, None)


def _version(fact: Fact, history: History | None) -> Version | None:
    """The version by which `fact` came to say what it says, where the gate made it."""
    if history is None or not os.path.isdir(history.folder):
        return None
    head = history.head(fact.name)
    if head is None or head.record.state != "live":
        return None
    file = history.files(head).get(FACT_FILE)
    if file is None or fact_digest(file.data) != fact.digest:
        return None
    if not head.record.undoes and head.record.kind not in _PAST_THE_GATE:
        return head
    same = [v for v in history.log(fact.name) if v.tree == head.tree and not v.record.undoes]
    made = [v for v in same if v.record.kind not in _PAST_THE_GATE]
    return made[-1] if made else None


def _blocked(fact: Fact) -> str:
    """Why the scan would block a fact that nobody put through the gate, or nothing."""
    from tacit.changes.scan import scan

    text = f"---\nname: {fact.name}\ndescription: {fact.says}\n---\n\n{fact.detail}\n"
    report = scan({FACT_FILE: text.encode("utf-8", "replace")}, learned=True)
    found = next((f for f in report.findings if f.severity == "block"), None)
    return f"it came with the project, and the scan blocks it ({found.rule})" if found else ""


def _active(known: KnownFact) -> bool:
    return known.fact.state == "active"


def _shadowed(known: KnownFact) -> KnownFact:
    """A user's fact, where the project has one of the same name that was recorded here."""
    if known.fact.scope == "project" or not _active(known):
        return known
    why = "the project has a fact of that name"
    return KnownFact(
        msgspec.structs.replace(known.fact, state="shadowed", why=why), known.recorded_by
    )


_OF_THE_USER: frozenset[FactKind] = frozenset({"user", "feedback"})


class NewFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that somebody wants kept."""

    name: str
    """The subject; a fact of that name in the same place is replaced."""
    says: str
    kind: FactKind
    detail: str = ""
    metadata: dict[str, str] = {}
    """More for the file, e.g. from which sessions and by which model."""


class Rationale(msgspec.Struct, frozen=True, kw_only=True):
    """What the history is to say of it."""

    reason: str = ""
    session: str = ""
    evidence: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    id: str = ""
    """The change's id, where it must be the same when this is repeated; else a fresh one."""


def fact_place_for(places: Sequence[Place], kind: FactKind) -> Place:
    """Where a fact of this kind goes by itself: what is about the user goes with the user."""
    scope = "user" if kind in _OF_THE_USER else "project"
    return next((place for place in places if place.scope == scope), places[-1])


def remember(
    gate: "Gate",
    root: str,
    fact: NewFact,
    why: Rationale | None = None,
    *,
    actor: Actor | None = None,
    today: date | None = None,
) -> Verdict:
    """Record a fact in the place `root`, or replace the one that has its name, through the gate.

    What was replaced stays in the history, with the reason. With the same id in `why`, this
    can be repeated without harm.
    """
    return gate.propose(fact_change(gate, root, fact, why, actor=actor, today=today))


def fact_change(
    gate: "Gate",
    root: str,
    fact: NewFact,
    why: Rationale | None = None,
    *,
    actor: Actor | None = None,
    today: date | None = None,
) -> Change:
    """The change that `remember` proposes, for whoever wants to see first what becomes of it."""
    actor = actor or acting()
    now = _state(gate, root, fact.name)
    data = fact_text(fact, actor, today or date.today()).encode()
    if not now.is_live:
        return _change(root, fact.name, Create({FACT_FILE: data}), actor, why)
    old = now.contents.files.get(FACT_FILE)
    if old is not None and old.kind != "link" and _same(parse_fact(old.data, fact.name), fact):
        data = old.data  # so that the gate says that nothing changes, whatever the day
    base = now.head.id if now.head else ""
    return _change(root, fact.name, Rewrite({FACT_FILE: data}), actor, why, base)


def forget(
    gate: "Gate", root: str, name: str, why: Rationale | None = None, *, actor: Actor | None = None
) -> Verdict:
    """Take a fact away, through the gate. Its history stays, and `tacit undo` brings it back."""
    return gate.propose(_change(root, name, Delete(), actor or acting(), why))


def fact_text(fact: NewFact, actor: Actor, today: date) -> str:
    """The text of its FACT.md."""
    import yaml

    metadata: dict[str, str] = {"kind": fact.kind}
    if actor in BACKGROUND:
        metadata["source"] = LEARNED_SOURCE
    metadata |= {"noted": today.isoformat(), "by": actor}
    metadata |= {key: " ".join(str(value).split()) for key, value in fact.metadata.items()}
    head = {"name": fact.name, "description": " ".join(fact.says.split()), "metadata": metadata}
    dumped = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100_000)
    detail = fact.detail.strip()
    return f"---\n{dumped}---\n" + (f"\n{detail}\n" if detail else "")


def _state(gate: "Gate", root: str, name: str) -> SkillState:
    try:
        return gate.state_of(name, root)
    except Escape:  # the gate says why
        return SkillState(skill=name, state="gone")
    except OSError as error:
        from tacit.changes.gate_steps import unwritable_place

        raise unwritable_place(gate.open_place(root), error) from error


def _change(
    root: str, name: str, operation: Operation, actor: Actor, why: Rationale | None, base: str = ""
) -> Change:
    why = why or Rationale()
    change = make_change(
        name,
        operation,
        actor=actor,
        reason=why.reason,
        evidence=why.evidence,
        session=why.session,
        root=root,
        base=base,
        overrides=why.overrides,
    )
    return msgspec.structs.replace(change, id=why.id) if why.id else change


def _same(old: Fact, new: NewFact) -> bool:
    said = " ".join(new.says.split())
    return (old.says, old.kind, old.detail) == (said, new.kind, new.detail.strip())
