"""What happened to each skill: a commit a change, in a git directory of Tacit's own.

Owns what a commit says (its trailers) and how versions are found. It writes objects freely, as
an object that nothing points to is not there; moving refs is left to the journal, which does it
together with the folders. Never looks at a skill's folder itself.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base.display import one_line
from tacit.base.errors import NotFound, TacitError
from tacit.base.paths import walk_folders
from tacit.changes.change import Actor, File, Files, is_change_id
from tacit.changes.git_store import (
    Objects,
    Refs,
    RefUpdate,
    change_ref,
    pin_ref,
    quote_name,
    skill_ref,
    unquote_name,
)
from tacit.changes.place import Place

VersionKind = Literal[
    "baseline", "hand", "create", "edit", "rename", "renamed", "archive", "restore", "delete",
    "pin", "unpin",
]  # fmt: skip
"""What a commit did to its skill. "hand": what a person did in the folder, past the gate.
A rename is two commits: "renamed" ends the old name, "rename" begins the new one."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit is to say, beside the files."""

    skill: str
    kind: VersionKind
    actor: Actor
    change: str
    state: str
    """After it: `live`, `archived:<folder>` or `gone`."""
    was: str
    """Before it, likewise; `none` where the name had never been."""
    reason: str = ""
    session: str = ""
    evidence: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    approved_by: str = ""
    undoes: str = ""
    partner: str = ""
    """The other skill of a rename or a merge, or what a copy was made from."""
    group: str = ""
    """The changes that it was made together with; see `gate.undo_group`."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One commit, as read back."""

    id: str
    record: Record
    at: datetime
    tree: str
    parents: tuple[str, ...]

    @property
    def parent(self) -> str:
        return self.parents[0] if self.parents else ""


class History:
    """The history of one place."""

    def __init__(self, place: Place, data: str, *, folder: str = "") -> None:
        self.folder = folder or os.path.join(data, "history", f"{place.id}.git")
        self.objects = Objects(self.folder)
        self.refs = Refs(self.objects)

    def is_begun(self) -> bool:
        """Whether anything was ever recorded here, be it readable or not."""
        kept = os.path.join(self.folder, "objects")
        return self.refs.are_there() or any(names for _, _, names in walk_folders(kept))

    def head(self, skill: str) -> Version | None:
        """The latest version of `skill`, or None where it has no history."""
        oid = self.refs.get(skill_ref(skill))
        return self.version(oid) if oid else None

    def version(self, oid: str) -> Version:
        """The version with this full id. Raises `Damaged` where there is none."""
        return _parse(oid, self.objects.read("commit", oid))

    def files(self, version: Version) -> dict[str, File]:
        return self.objects.read_tree(version.tree)

    def is_pinned(self, skill: str) -> bool:
        return bool(self.refs.get(pin_ref(skill)))

    def pinned(self) -> list[str]:
        """The names of the pinned skills."""
        return self._names("refs/pinned")

    def skills(self) -> list[str]:
        """Every skill that has a history here, also those that are gone."""
        return self._names("refs/skills")

    def _names(self, prefix: str) -> list[str]:
        """The skills behind refs; only of a very long name is the commit asked."""
        return [
            self.version(oid).record.skill if "%%" in name else unquote_name(name.rsplit("/", 1)[1])
            for name, oid in self.refs.list(prefix)
        ]

    def log(self, skill: str) -> Iterator[Version]:
        """The versions of `skill`, newest first; behind a rename those of its old name."""
        oid = self.refs.get(skill_ref(skill))
        while oid:
            version = self.version(oid)
            yield version
            oid = version.parent

    def latest(self, most: int) -> list[Version]:
        """The last changes to any skill, newest first."""
        return [self.version(oid) for _, oid in self.refs.list("refs/changes", newest=most)]

    def of_change(self, change: str) -> list[Version]:
        """The commits of one change: one a skill that it touched. Empty where unknown."""
        if not is_change_id(change):
            return []
        return [
            self.version(oid) for _, oid in self.refs.list(f"refs/changes/{change[:6]}/{change}")
        ]

    def knows(self, change: str, skill: str) -> str:
        """The commit that `change` made on `skill`, or an empty string; no process is started."""
        return self.refs.get(change_ref(change, skill)) if is_change_id(change) else ""

    def find_change(self, start: str) -> str:
        """The one change whose id begins with, or ends in, `start`. Raises `NotFound`."""
        if self.of_change(start):
            return start
        ids = {name.split("/")[3] for name, _ in self.refs.list("refs/changes")}
        near = sorted(i for i in ids if i.startswith(start) or i.endswith(start)) if start else []
        if len(near) == 1:
            return near[0]
        hint = f"it could be {' or '.join(near[-3:])}" if near else "see them: tacit log"
        raise NotFound(f"there is no one change '{start}'", hint)

    def of_group(self, group: str) -> list[str]:
        """The changes that were made together under this id, oldest first."""
        if not is_change_id(group):
            return []
        listed = self.refs.list(f"refs/groups/{group[:6]}/{group}")
        return sorted({name.split("/")[4] for name, _ in listed})

    def groups(self) -> list[str]:
        """The ids under which changes were made together, oldest first."""
        return sorted({name.split("/")[3] for name, _ in self.refs.list("refs/groups")})

    def find_version(self, skill: str, start: str) -> Version:
        """The version of `skill` whose id, or whose change's id, begins with `start`."""
        found = [
            version
            for version in self.log(skill)
            if start and (version.id.startswith(start) or version.record.change.startswith(start))
        ]
        if len(found) == 1:
            return found[0]
        hint = f"see them: tacit log {skill}"
        raise NotFound(f"'{skill}' has no one version '{start}'", hint)

    def commit(
        self, record: Record, files: Files, parents: tuple[str, ...], at: datetime
    ) -> Version:
        """Store a version. Nothing points to it yet; see `ref_updates`."""
        self.objects.make()
        tree = self.objects.write_tree(files)
        stamp = f"{int(at.timestamp())} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {oid}" for oid in parents),
            f"author {record.actor} <{record.actor}@tacit.invalid> {stamp}",
            f"committer tacit <tacit@tacit.invalid> {stamp}",
            "",
            _message(record),
        ]
        text = "\n".join(lines).encode("utf-8", "surrogateescape")
        oid = self.objects.write("commit", text)
        return Version(id=oid, record=record, at=at, tree=tree, parents=parents)

    def pack(self) -> None:
        """Put loose objects and refs together, where there is git. Hold the place's lock meanwhile.

        Packs grow by powers of two, so that an object is packed again only a few times ever.
        """
        if self.objects.is_made():
            with suppress(TacitError):  # there may be no git
                self.objects.git("repack", "-d", "--geometric=2", "-q")
            self.refs.pack()


def ref_updates(versions: list[Version], old: str) -> tuple[RefUpdate, ...]:
    """The moves that make a chain of versions of one skill, oldest first, its history."""
    last = versions[-1]
    return (
        *(RefUpdate(change_ref(v.record.change, v.record.skill), v.id) for v in versions),
        RefUpdate(skill_ref(last.record.skill), last.id, old),
    )


_TRAILERS = (
    ("Skill", "skill"), ("Kind", "kind"), ("Actor", "actor"), ("Change", "change"),
    ("State", "state"), ("Was", "was"), ("Reason", "reason"), ("Session", "session"),
    ("Evidence", "evidence"), ("Override", "overrides"), ("Approved-By", "approved_by"),
    ("Undoes", "undoes"), ("Partner", "partner"), ("Group", "group"),
)  # fmt: skip
_ENCODED = ("skill", "state", "was", "partner")
_LISTS = ("evidence", "overrides")


def _message(record: Record) -> str:
    """Subject, the reason in full, then a paragraph of trailers, which nothing above can forge."""
    repaired = record.actor == "improver" and record.kind == "edit" and not record.undoes
    subject = one_line(f"{'improve' if repaired else record.kind} {record.skill}")
    trailers = []
    for trailer, field in _TRAILERS:
        value = getattr(record, field)
        if field in _ENCODED and value:
            head, colon, tail = value.rpartition(":") if field in ("state", "was") else ("", "", "")
            value = f"{head}{colon}{quote_name(tail)}" if colon else quote_name(value)
        elif field in _LISTS:
            value = ", ".join(one_line(part).replace(",", " ") for part in value)
        if value:
            trailers.append(f"Tacit-{trailer}: {one_line(value)}")
    body = record.reason.strip()
    parts = [subject, *([body] if body else []), "\n".join(trailers)]
    return "\n\n".join(parts) + "\n"


def _parse(oid: str, data: bytes) -> Version:
    """A commit, read. One whose bytes make no sense was damaged: a checksum covers each object."""
    head, _, message = data.decode("utf-8", "surrogateescape").partition("\n\n")
    tree, parents, seconds = "", [], 0
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        if key == "tree":
            tree = value
        elif key == "parent":
            parents.append(value)
        elif key == "committer":
            seconds = int(value.split(" ")[-2])
    return Version(
        id=oid,
        record=_parse_record(message),
        at=datetime.fromtimestamp(seconds, UTC),
        tree=tree,
        parents=tuple(parents),
    )


def _parse_record(message: str) -> Record:
    paragraphs = message.rstrip("\n").split("\n\n")
    found = dict(
        line.removeprefix("Tacit-").split(": ", 1)
        for line in paragraphs[-1].split("\n")
        if line.startswith("Tacit-") and ": " in line
    )
    values: dict[str, object] = {}
    for trailer, field in _TRAILERS:
        text = found.get(trailer, "")
        if field in _LISTS:
            values[field] = tuple(part for part in text.split(", ") if part)
        else:
            values[field] = unquote_name(text) if field in _ENCODED else text
    if len(paragraphs) > 2:
        values["reason"] = "\n\n".join(paragraphs[1:-1])
    return Record(**values)  # type: ignore[arg-type]
