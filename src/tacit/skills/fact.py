"""The noun Fact: something that is so, in a few lines of Markdown, beside the skills; and the index
of facts that a prompt carries.

Skills say how, facts say what: who the user is, how they want things done, what a project is, where
something is found. A fact is a folder with a FACT.md, as a skill is one with a SKILL.md, in
`.agents/memory` of a project or a home; the folder's name is its subject, and one subject has one
fact. Reads only, and only plain files in plain folders: a clone may bring anything. Changing facts
is the gate's.

The index is made from the facts whenever it is asked for, and stored nowhere: a file would have to
be merged when two branches or two processes each add a fact, and would be wrong after every edit by
hand.
"""

import hashlib
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec

from tacit.base import paths, trust
from tacit.base.atomic_files import OPEN_FILE, OPEN_FOLDER
from tacit.base.display import one_line, shorten
from tacit.skills.skill import LEARNED_SOURCE, Skill, name_faults

FACT_FILE = "FACT.md"
MEMORY_FOLDER = os.path.join(".agents", "memory")
"""Where facts lie in a project and in a home."""

FactKind = Literal["user", "feedback", "project", "reference"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
KIND_MEANINGS: dict[FactKind, str] = {
    "user": "who the user is: their role, what they know, what they prefer",
    "feedback": "how the user wants work done, and why",
    "project": "what the project is: its parts, its ways, decisions and dates",
    "reference": "where something is found: a system, a document, an address",
}
FactState = Literal["active", "shadowed", "untrusted", "broken"]

MAX_FACT_READ = 64 * 1024
"""Bytes of a FACT.md; a larger one is not read, and the gate lets through far less."""
MAX_FACTS = 1_000
"""Facts of one place; what lies there beyond that is not read."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it stands on the disk."""

    name: str
    """Its subject, and its folder's name."""
    says: str
    """The fact in one line."""
    kind: FactKind = "project"
    detail: str = ""
    """More, where one line is not enough: why it is so, how it is used."""
    scope: Literal["project", "user"] = "user"
    root: str = ""
    learned: bool = False
    """Whether a machine recorded it, by the mark that learned skills have."""
    noted: str = ""
    """The day on which it was recorded, as its file says."""
    metadata: dict[str, str] = {}
    digest: str = ""
    """Of the bytes of its FACT.md."""
    state: FactState = "active"
    why: str = ""
    """Why it is not recalled, where it is not."""

    @property
    def folder(self) -> str:
        return os.path.join(self.root, self.name)


class MemoryRoot(msgspec.Struct, frozen=True):
    """A folder of facts."""

    path: str
    scope: Literal["project", "user"]
    project: str = ""
    trusted: bool = True
    borrowed: bool = False
    """Whether it lies in another checkout of the repository: only what is the user's own counts."""


def memory_roots(cwd: str | None = None) -> list[MemoryRoot]:
    """The project's folder of facts, in each checkout of it, then the user's; not all exist."""
    project = paths.project_root(cwd or os.getcwd())
    found = [MemoryRoot(os.path.join(paths.user_home(), MEMORY_FOLDER), "user")]
    if not paths.is_home(project):
        path = os.path.join(project, MEMORY_FOLDER)
        found.insert(0, MemoryRoot(path, "project", project, trust.is_trusted(project)))
        found[1:1] = [
            MemoryRoot(os.path.join(here, MEMORY_FOLDER), "project", here, False, borrowed=True)
            for here in paths.checkouts(project)[1:]
        ]
    return found


def facts_here(cwd: str | None = None) -> list[Fact]:
    """Every fact that can be reached from `cwd`, the project's first, as the files have it.

    Who recorded them, and which stand for which, is for `changes/facts.py` to say.
    """
    return [fact for root in memory_roots(cwd) for fact in read_facts(root)]


def read_facts(root: MemoryRoot) -> list[Fact]:
    """The facts in one folder, by name. Links, devices and huge files are passed over."""
    real = os.path.realpath(root.path)
    if root.project and not paths.is_inside(real, os.path.realpath(root.project)):
        return []
    try:
        top = os.open(real, OPEN_FOLDER)
    except OSError:
        return []
    try:
        names = sorted(name for name in os.listdir(top) if not name.startswith("."))
        own = {} if root.trusted else trust.own_below(real)
        read = (_read(top, name, root, own) for name in names[:MAX_FACTS])
        return [fact for fact in read if fact and (fact.state != "untrusted" or not root.borrowed)]
    finally:
        os.close(top)


def parse_fact(data: bytes, name: str) -> Fact:
    """The fact that `data` says. Never raises on what stands there."""
    from tacit.skills.skill_file import parse_skill

    return fact_of(parse_skill(data, name), name, fact_digest(data))


def fact_digest(data: bytes) -> str:
    """What tells one text of a FACT.md from another."""
    return hashlib.sha256(data).hexdigest()[:16]


def fact_of(read: Skill, name: str, digest: str = "") -> Fact:
    """A fact from its file, which is read as a skill's is: same frontmatter, same care."""
    metadata = {str(key): one_line(str(value)) for key, value in read.metadata.items()}
    kind = stated_kind(read)
    return Fact(
        name=name,
        says=one_line(read.description).strip(),
        kind=kind or "project",
        detail=read.body.strip(),
        learned=read.source == LEARNED_SOURCE,
        noted=metadata.get("noted", "")[:10],
        metadata=metadata,
        digest=digest,
    )


def stated_kind(read: Skill) -> FactKind | None:
    """The kind that the file states, as other agents write it too; None where it states none."""
    for value in (read.metadata.get("kind"), read.extra.get("kind"), read.extra.get("type")):
        if isinstance(value, str) and value.strip().lower() in FACT_KINDS:
            return value.strip().lower()  # type: ignore[return-value]
    return None


def _read(top: int, name: str, root: MemoryRoot, own: dict[str, set[str]]) -> Fact | None:
    """The fact in the folder `name`; None where there is no FACT.md to speak of."""
    try:
        folder = os.open(name, OPEN_FOLDER, dir_fd=top)
    except OSError:
        return None
    try:
        data = _bytes(folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    fact = parse_fact(data, name) if data is not None else Fact(name=name, says="")
    state, why = _recalled(fact, root, is_large=data is None)
    if state == "untrusted" and trust.is_own(os.path.join(os.path.realpath(root.path), name), own):
        state, why = "active", ""
    return msgspec.structs.replace(fact, scope=root.scope, root=root.path, state=state, why=why)


def _recalled(fact: Fact, root: MemoryRoot, *, is_large: bool) -> tuple[FactState, str]:
    """Whether a fact is recalled, and why not."""
    if is_large:
        return "broken", f"larger than {MAX_FACT_READ // 1024} KB"
    if wrong := name_faults(fact.name):
        return "broken", f"its name {' and '.join(wrong)}"
    if not fact.says:
        return "broken", "it has no description, so it says nothing"
    if not root.trusted:
        return "untrusted", "you have not trusted this project: tacit trust"
    return "active", ""


def _bytes(folder: int) -> bytes | None:
    """What FACT.md holds; None where it is too much. Raises OSError where it is no plain file."""
    descriptor = os.open(FACT_FILE, OPEN_FILE, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        data = file.read(MAX_FACT_READ + 1)
    return data if len(data) <= MAX_FACT_READ else None


MAX_INDEX_LINES = 200
MAX_INDEX_BYTES = 25 * 1024
_LINE = 500
"""Characters of one line; a fact that passed the gate is shorter."""
_MARK_UP = str.maketrans({"<": "‹", ">": "›"})
"""Angle brackets would let a fact end the block that it stands in."""
_HEADS: dict[FactKind, str] = {
    "user": "About the user",
    "feedback": "How the user wants work done",
    "project": "About the project",
    "reference": "Where things are found",
}

Remark = Callable[[Fact], str]
"""What else to say of a fact in its line, e.g. by whom it was recorded; may be empty."""


class FactIndex(msgspec.Struct, frozen=True):
    """The lines, and the facts that are in them."""

    text: str
    shown: tuple[Fact, ...] = ()
    left_out: int = 0


def fact_index(
    facts: Sequence[Fact],
    *,
    lines: int = MAX_INDEX_LINES,
    kilobytes: float = MAX_INDEX_BYTES // 1024,
    about: Remark = lambda fact: "",
    more: str = "recall",
) -> FactIndex:
    """The index of the active ones among `facts`, by kind and name.

    Where not all fit, the newest stay, and a last line says how many are missing. `more` is what
    finds those, and the details. The same facts give the same text.
    """
    active = [fact for fact in facts if fact.state == "active"]
    rows = {id(fact): fact_line(fact, about(fact), more) for fact in active}
    text = _text(active, rows, "")
    if _fits(text, lines, kilobytes * 1024):
        return FactIndex(text, tuple(active))
    newest = sorted(active, key=lambda fact: (fact.noted, fact.name), reverse=True)

    def text_of(count: int) -> str:
        missing = f"({len(active) - count:,} older facts are not shown; {more} finds them)"
        return _text(newest[:count], rows, missing) if count else ""

    counts = range(1, len(active))
    most = bisect_left(
        counts, True, key=lambda count: not _fits(text_of(count), lines, kilobytes * 1024)
    )
    return FactIndex(text_of(most), tuple(newest[:most]), len(active) - most)


def fact_line(fact: Fact, about: str = "", recall: str = "recall") -> str:
    """One fact, as the index has it."""
    said = shorten(one_line(fact.says).translate(_MARK_UP), _LINE)
    tail = f" [{one_line(about).translate(_MARK_UP)}]" if about else ""
    more = f" (more: {recall})" if fact.detail else ""
    return f"- {fact.name}: {said}{more}{tail}"


def _text(kept: Sequence[Fact], rows: dict[int, str], missing: str) -> str:
    parts: list[str] = []
    for kind in FACT_KINDS:
        of_kind = sorted((f for f in kept if f.kind == kind), key=lambda fact: fact.name)
        if of_kind:
            parts.append(f"{_HEADS[kind]}:")
            parts += [rows[id(fact)] for fact in of_kind]
    if missing:
        parts.append(missing)
    return "\n".join(parts)


def _fits(text: str, lines: int, size: float) -> bool:
    return text.count("\n") + 1 <= lines and len(text.encode()) <= size
