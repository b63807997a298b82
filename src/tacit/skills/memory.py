"""The noun Fact: something that is so, in a few lines of Markdown, beside the skills.

Skills say how, facts say what: who the user is, how they want things done, what a project is,
where something is found. A fact is a folder with a FACT.md, as a skill is one with a SKILL.md, in
`.agents/memory` of a project or a home; the folder's name is its subject, and one subject has one
fact. Reads only, and only plain files in plain folders: a clone may bring anything. Changing facts
is left to the gate, choosing which go into a prompt to `memory_index.py`.
"""

import hashlib
import os
import stat
from typing import Literal, get_args

import msgspec

from tacit.base import paths, trust
from tacit.base.terminal import one_line
from tacit.skills import naming
from tacit.skills.skill import LEARNED_SOURCE, Skill

FACT_FILE = "FACT.md"
MEMORY = os.path.join(".agents", "memory")
"""Where facts lie in a project and in a home."""

Kind = Literal["user", "feedback", "project", "reference"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ABOUT: dict[Kind, str] = {
    "user": "who the user is: their role, what they know, what they prefer",
    "feedback": "how the user wants work done, and why",
    "project": "what the project is: its parts, its ways, decisions and dates",
    "reference": "where something is found: a system, a document, an address",
}
State = Literal["active", "shadowed", "untrusted", "broken"]

MAX_BYTES = 64 * 1024
MAX_FACTS = 1_000
"""Facts of one place; what lies there beyond that is not read."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it stands on the disk."""

    name: str
    """Its subject, and its folder's name."""
    says: str
    """The fact in one line."""
    kind: Kind = "project"
    detail: str = ""
    """More, where one line is not enough: why it is so, how it is used."""
    scope: Literal["project", "user"] = "user"
    root: str = ""
    learned: bool = False
    """Whether a machine noted it, by the mark that learned skills have."""
    noted: str = ""
    """The day on which it was noted, as its file says."""
    metadata: dict[str, str] = {}
    digest: str = ""
    """Of the bytes of its FACT.md."""
    state: State = "active"
    why: str = ""
    """Why it is not recalled, where it is not."""

    @property
    def folder(self) -> str:
        return os.path.join(self.root, self.name)


class Root(msgspec.Struct, frozen=True):
    """A folder of facts."""

    path: str
    scope: Literal["project", "user"]
    project: str = ""
    trusted: bool = True


def memory_roots(cwd: str | None = None) -> list[Root]:
    """The project's folder of facts, then the user's, whether they exist or not."""
    project = paths.project_root(cwd or os.getcwd())
    found = [Root(os.path.join(paths.user_home(), MEMORY), "user")]
    if not paths.is_home(project):
        path = os.path.join(project, MEMORY)
        found.insert(0, Root(path, "project", project, trust.is_trusted(project)))
    return found


def facts_here(cwd: str | None = None) -> list[Fact]:
    """Every fact that can be reached from `cwd`, the project's first, as the files have it.

    Who noted them, and which stand for which, is for `changes/memory.py` to say.
    """
    return [fact for root in memory_roots(cwd) for fact in read_facts(root)]


def read_facts(root: Root) -> list[Fact]:
    """The facts in one folder, by name. Links, devices and huge files are passed over."""
    real = os.path.realpath(root.path)
    if root.project and not paths.is_inside(real, os.path.realpath(root.project)):
        return []
    try:
        top = os.open(real, _FOLDER)
    except OSError:
        return []
    try:
        names = sorted(name for name in os.listdir(top) if not name.startswith("."))
        read = (_read(top, name, root) for name in names[:MAX_FACTS])
        return [fact for fact in read if fact is not None]
    finally:
        os.close(top)


def parse_fact(data: bytes, name: str) -> Fact:
    """The fact that `data` says. Never raises on what stands there."""
    from tacit.skills.reading import parse_skill

    return fact_of(parse_skill(data, name), name, hashlib.sha256(data).hexdigest()[:16])


def fact_of(read: Skill, name: str, digest: str = "") -> Fact:
    """A fact from its file, which is read as a skill's is: same frontmatter, same care."""
    metadata = {str(key): one_line(str(value)) for key, value in read.metadata.items()}
    kind = kind_of(read)
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


def kind_of(read: Skill) -> Kind | None:
    """The kind that the file states, as other agents write it too; None where it states none."""
    for value in (read.metadata.get("kind"), read.extra.get("kind"), read.extra.get("type")):
        if isinstance(value, str) and value.strip().lower() in KINDS:
            return value.strip().lower()  # type: ignore[return-value]
    return None


def _read(top: int, name: str, root: Root) -> Fact | None:
    """The fact in the folder `name`; None where there is no FACT.md to speak of."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=top)
    except OSError:
        return None
    try:
        data = _bytes(folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    if data is None:
        shown = Fact(name=name, says="", scope=root.scope, root=root.path)
        return _not_recalled(shown, "broken", f"larger than {MAX_BYTES // 1024} KB")
    fact = parse_fact(data, name)
    fact = msgspec.structs.replace(fact, scope=root.scope, root=root.path)
    if wrong := naming.faults(name):
        return _not_recalled(fact, "broken", f"its name {' and '.join(wrong)}")
    if not fact.says:
        return _not_recalled(fact, "broken", "it has no description, so it says nothing")
    if not root.trusted:
        return _not_recalled(fact, "untrusted", "you have not trusted this project: tacit trust")
    return fact


def _bytes(folder: int) -> bytes | None:
    """What FACT.md holds; None where it is too much. Raises OSError where it is no plain file."""
    descriptor = os.open(FACT_FILE, _FILE, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        data = file.read(MAX_BYTES + 1)
    return data if len(data) <= MAX_BYTES else None


def _not_recalled(fact: Fact, state: State, why: str) -> Fact:
    return msgspec.structs.replace(fact, state=state, why=why)
