"""The nouns of this layer: the actor, the files of a skill, the change, and the verdict on it.

An actor is on whose behalf code runs, carried in a ContextVar. There is no default: a thread starts
with an empty context, and a tool that a background agent calls from a pool must not turn into the
user there. A change is what somebody wants, a verdict is the gate's answer to it; both are frozen
structs that survive a trip through JSON, because changes wait in the inbox and in the jobs of other
processes. What an operation does to files is said in `file_edits`, what it does to a skill's folder
in `effect`.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, get_args

import msgspec

from tacit.base.errors import Usage

Actor = Literal["user", "agent", "reviewer", "improver", "curator", "distiller"]
ACTORS: tuple[Actor, ...] = get_args(Actor)
BACKGROUND: frozenset[Actor] = frozenset({"reviewer", "improver", "curator", "distiller"})
"""The actors that nobody watches while they work."""

_acting: ContextVar[Actor | None] = ContextVar("tacit_actor", default=None)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Act as `actor` for a `with` block, here and in what it calls or awaits."""
    if actor not in ACTORS:
        raise Usage(f"'{actor}' is not an actor", f"one of: {', '.join(ACTORS)}")
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def current_actor() -> Actor | None:
    """Who acts, or None where nobody said."""
    return _acting.get()


def acting() -> Actor:
    """Who acts. Raises `Usage` where nobody said: being the user is never assumed."""
    actor = _acting.get()
    if actor is None:
        raise Usage(
            "nobody said who makes this change",
            "pass actor=…, or wrap the call: with acting_as('user'): …",
        )
    return actor


FileKind = Literal["file", "program", "link"]


class File(msgspec.Struct, frozen=True):
    """One file. Of a link, `data` is where it points; it is never followed."""

    data: bytes
    kind: FileKind = "file"


Files = Mapping[str, File]


class Contents(msgspec.Struct, frozen=True):
    """What stands in a skill's folder."""

    files: dict[str, File]
    unversioned: tuple[str, ...] = ()
    """Paths of which no version is kept, e.g. `.git`; see `containment.UNVERSIONED`."""
    shared: tuple[str, ...] = ()
    """Files that have a second name elsewhere (hard links)."""


def files_of(files: Mapping[str, bytes], executable: Collection[str] = ()) -> dict[str, File]:
    """Plain bytes as files; those in `executable` may be run."""
    return {
        path: File(data, "program" if path in executable else "file")
        for path, data in files.items()
    }


def bytes_of(files: Files) -> dict[str, bytes]:
    """The bytes of the regular files; links are left out."""
    return {path: file.data for path, file in files.items() if file.kind != "link"}


def executable_paths(files: Files) -> tuple[str, ...]:
    """The files that may be run."""
    return tuple(path for path, file in files.items() if file.kind == "program")


SKILL_FILE = "SKILL.md"
_CHANGE_ID = re.compile(r"\d{8}-\d{9}-[0-9a-f]{8}")


class Create(msgspec.Struct, frozen=True, tag="create"):
    """A new skill with these files, SKILL.md among them."""

    files: dict[str, bytes]
    executable: tuple[str, ...] = ()
    absorbs: tuple[str, ...] = ()
    """The skills that an umbrella takes in; a curator must name at least two."""


class Edit(msgspec.Struct, frozen=True, tag="edit"):
    """In one file, `old` becomes `new`. `old` must stand there exactly once."""

    old: str
    new: str
    path: str = SKILL_FILE


class Rewrite(msgspec.Struct, frozen=True, tag="rewrite"):
    """The whole skill becomes these files: what an editor or a staged copy came back with."""

    files: dict[str, bytes]
    executable: tuple[str, ...] = ()


class WriteFile(msgspec.Struct, frozen=True, tag="write-file"):
    """A support file gets this content, new or in place of the old. Never SKILL.md."""

    path: str
    data: bytes
    executable: bool = False


class RemoveFile(msgspec.Struct, frozen=True, tag="remove-file"):
    """A support file goes. Never SKILL.md."""

    path: str


class Rename(msgspec.Struct, frozen=True, tag="rename"):
    """The skill gets another name: its folder and its frontmatter."""

    to: str


class Archive(msgspec.Struct, frozen=True, tag="archive"):
    """The folder moves to `.archive`, where no agent looks."""


class Restore(msgspec.Struct, frozen=True, tag="restore"):
    """The folder comes back from `.archive`."""


class Delete(msgspec.Struct, frozen=True, tag="delete"):
    """The folder goes; its history stays."""


class Pin(msgspec.Struct, frozen=True, tag="pin"):
    """From now on nobody but the user changes it."""


class Unpin(msgspec.Struct, frozen=True, tag="unpin"):
    """The usual rules hold again."""


FileOperation = Edit | WriteFile | RemoveFile | Rewrite


class MergeInto(msgspec.Struct, frozen=True, tag="merge-into"):
    """The skill is absorbed: `operations` are made in the skill `into`, this one is archived."""

    into: str
    operations: tuple[FileOperation, ...] = ()


Operation = (
    Create
    | Edit
    | Rewrite
    | WriteFile
    | RemoveFile
    | Rename
    | Archive
    | Restore
    | MergeInto
    | Delete
    | Pin
    | Unpin
)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One proposed set of edits to one skill. All of it lands, or nothing."""

    id: str
    skill: str
    """The skill's folder below `root`; a name that the library knows works too."""
    operations: tuple[Operation, ...]
    actor: Actor
    reason: str = ""
    evidence: tuple[str, ...] = ()
    """Ids of the traces that show why."""
    session: str = ""
    root: str = ""
    """The skills folder; the gate's first place where it is empty."""
    base: str = ""
    """The version that the author started from; later edits are then merged, never overwritten."""
    overrides: tuple[str, ...] = ()
    """Rules that the user sets aside for their own skill, on record."""
    group: str = ""
    """Several changes that belong together and can be taken back together; an id like theirs."""


def make_change(
    skill: str,
    *operations: Operation,
    actor: Actor | None = None,
    reason: str = "",
    evidence: tuple[str, ...] = (),
    session: str = "",
    root: str = "",
    base: str = "",
    overrides: tuple[str, ...] = (),
) -> Change:
    """A change with a fresh id, made by `actor` or by whoever acts (`acting_as`)."""
    return Change(
        id=new_change_id(),
        skill=skill,
        operations=operations,
        actor=actor or acting(),
        reason=reason,
        evidence=evidence,
        session=session,
        root=root,
        base=base,
        overrides=overrides,
    )


def new_change_id(at: datetime | None = None) -> str:
    """An id that sorts by time and that a person can type the beginning of."""
    at = at or datetime.now(UTC)
    return f"{at:%Y%m%d-%H%M%S}{at.microsecond // 1000:03d}-{os.urandom(4).hex()}"


def is_change_id(text: str) -> bool:
    """Whether `text` has the form of a change's id."""
    return _CHANGE_ID.fullmatch(text) is not None


def change_time(change: str) -> datetime:
    """When the change with this id was made."""
    return datetime.strptime(change[:18] + "000", "%Y%m%d-%H%M%S%f").replace(tzinfo=UTC)


Outcome = Literal["applied", "proposed", "refused"]
StepName = Literal[
    "policy", "containment", "standard", "scan", "size", "near-duplicate", "check",
    "approval", "apply",
]  # fmt: skip


class Refusal(msgspec.Struct, frozen=True):
    """Why not: the step, the rule, the cause, and what to do instead."""

    step: StepName
    rule: str
    reason: str
    hint: str = ""
    alternatives: tuple[str, ...] = ()
    """Names of skills to edit instead."""
    overridable: bool = False
    """Whether the user may set this rule aside for their own skill."""
    file: str = ""
    line: int = 0
    text: str = ""
    """The line that is marked, and what stands there without secrets: for a person, not a model."""
    whole: bool = False
    """Whether it speaks against all that the change says, of which the marked line is the first."""
    also: tuple["Refusal", ...] = ()
    """What else a person has to look at."""

    @property
    def marks(self) -> tuple["Refusal", ...]:
        """This and the others that mark a line, in order."""
        return tuple(one for one in (self, *self.also) if one.file)


class Unfit(Exception):
    """A change that cannot be made: the refusal to hand back, and of a conflict the merged text."""

    def __init__(self, refusal: Refusal, offer: dict[str, bytes] | None = None) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.offer = offer or {}


def unfit(rule: str, reason: str, hint: str, alternatives: tuple[str, ...] = ()) -> Unfit:
    """A change that does not fit what stands there now."""
    return Unfit(Refusal("apply", rule, reason, hint, alternatives))


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's answer to a change: applied, proposed or refused, and why."""

    outcome: Outcome
    change: str
    """The change's id; of a proposal, also its id in the inbox."""
    skill: str
    version: str = ""
    """The version that now stands, when applied."""
    refusal: Refusal | None = None
    """Why it was refused, or why it waits for a person."""
    notes: tuple[str, ...] = ()
    apart: str = ""
    """Of an applied change, the proposal by which lines of it wait; the first note says so."""
    offer: dict[str, bytes] = {}
    """Of a conflict: the files as a three-way merge leaves them, conflict marks and all."""

    @property
    def applied(self) -> bool:
        return self.outcome == "applied"

    @property
    def refused(self) -> bool:
        return self.outcome == "refused"

    def explain(self) -> str:
        """One or two sentences for a person or a model."""
        if self.refusal is None:
            return f"{self.outcome}: {self.skill}"
        text = f"{self.outcome} ({self.refusal.rule}): {self.refusal.reason}"
        return f"{text}; {self.refusal.hint}" if self.refusal.hint else text


class Preview(msgspec.Struct, frozen=True):
    """What would become of a change."""

    refusal: Refusal | None = None
    asks: tuple[Refusal, ...] = ()
    """What a person would have to agree to first."""
    notes: tuple[str, ...] = ()
    diff: str = ""
    lines: int = 0
    """How many lines would wait by themselves: then all else is of the change without them."""


class Applied(msgspec.Struct, frozen=True):
    """Event: a change has landed."""

    change: Change
    kind: str
    version: str
    place: str
    """The skills folder's real path."""
    noun: str = "skill"
    """`skill`, or `fact` where a place of facts was changed."""


class Proposed(msgspec.Struct, frozen=True):
    """Event: a change waits for a person."""

    change: Change
    refusal: Refusal
