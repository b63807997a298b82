"""The staging folder of a job: copies of skills go in, changes come out and land through the gate.

The parent's side. The child can write anything into this folder, so what is in it proves nothing:
what a copy was, and of which version, is kept in memory here, and what is read back is read by
handles and without links, as the gate would read it. A change's id is made of the job and what it
changes, so a landing that is repeated after a kill lands nothing a second time.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from typing import Literal

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.errors import NotFound, Unwritable
from tacit.base.paths import make_private
from tacit.changes.change import (
    SKILL_FILE,
    Actor,
    Change,
    Create,
    Edit,
    File,
    FileOperation,
    Refusal,
    RemoveFile,
    Rewrite,
    Verdict,
    WriteFile,
    bytes_of,
    change_time,
    executable_paths,
    is_change_id,
    new_change_id,
)
from tacit.changes.containment import Escape, Folder, read_contents, remove_tree
from tacit.changes.gate import Gate
from tacit.changes.gate_steps import applied_verdict
from tacit.changes.inbox import Proposal
from tacit.changes.journal import OpenPlace
from tacit.learn.background.toolset import SKILLS_FOLDER, put_new


def operations_between(
    old: Mapping[str, File], new: Mapping[str, File]
) -> tuple[FileOperation, ...]:
    """What turns `old` into `new`."""
    found: list[FileOperation] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        if after is None:
            found.append(RemoveFile(path))
        elif before is not None and (edit := _edit(path, before, after)) is not None:
            found.append(edit)
        elif path == SKILL_FILE:  # not text: only the whole skill can be said anew
            return (Rewrite(bytes_of(new), executable_paths(new)),)
        else:
            found.append(WriteFile(path, after.data, executable=after.kind == "program"))
    return tuple(found)


def difference_text(old: Mapping[str, File], new: Mapping[str, File]) -> str:
    """The difference as text, for people, for models and for comparing."""
    parts: list[str] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before is None or after is None:
            parts.append(f"{path} is {'new' if before is None else 'removed'}")
        if before != after:
            parts += unified_diff(_lines(before), _lines(after), path, path, n=1, lineterm="")
    return "\n".join(line.rstrip("\n") for line in parts)


def _edit(path: str, before: File, after: File) -> Edit | None:
    """The one stretch that changed; None where it cannot be said that way."""
    if before.kind != after.kind and path != SKILL_FILE:
        return None
    try:
        one, two = before.data.decode("utf-8"), after.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    mine, theirs = one.splitlines(keepends=True), two.splitlines(keepends=True)
    start, end = _common(mine, theirs)
    first, last = start, len(mine) - end
    while True:
        wanted = "".join(mine[first:last])
        # In a file with Windows line ends, one without any would be taken to mean them.
        plain = "\r\n" not in one or "\r" in wanted
        # Not by counting: where it overlaps itself, the first place is not the only one.
        if wanted and plain and one.find(wanted) == one.rfind(wanted):
            with_ = "".join(theirs[first : len(theirs) - (len(mine) - last)])
            return Edit(wanted, with_, path)
        if first == 0 and last == len(mine):
            return None
        first, last = max(first - 1, 0), min(last + 1, len(mine))


def _common(one: list[str], two: list[str]) -> tuple[int, int]:
    """How many lines they share at the beginning and at the end."""
    most = min(len(one), len(two))
    start = 0
    while start < most and one[start] == two[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == two[-1 - end]:
        end += 1
    return start, end


def _lines(file: File | None) -> list[str]:
    if file is None:
        return []
    return file.data.decode("utf-8", "replace").splitlines(keepends=True)


FOLDERS = (SKILLS_FOLDER, "log", "tmp")
_BEGAN = ".began"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ABANDONED = 2 * 86_400.0
_FORGOTTEN = 60 * 86_400.0


class CopiedSkill(msgspec.Struct, frozen=True):
    """A skill as it was when it was copied in."""

    skill: str
    root: str
    base: str
    files: dict[str, File]


class EditedSkill(msgspec.Struct, frozen=True):
    """One skill that came out other than it went in, or that is new."""

    name: str
    """The name of its staged folder."""
    skill: str
    root: str
    """The skills folder that it is from; empty for a new one."""
    base: str
    """The version that was copied in; empty for a new one."""
    old: dict[str, File]
    new: dict[str, File]

    @property
    def is_new(self) -> bool:
        return not self.base

    def change(
        self,
        job: str,
        actor: Actor,
        reason: str,
        *,
        evidence: Iterable[str] = (),
        session: str = "",
        root: str = "",
        data: str | None = None,
    ) -> Change:
        """The change that puts it before the gate. `root` is where a new skill goes."""
        create = Create(bytes_of(self.new), executable_paths(self.new))
        return Change(
            id=change_id(job, self.skill, data=data),
            skill=self.skill,
            operations=(create,) if self.is_new else operations_between(self.old, self.new),
            actor=actor,
            reason=reason,
            evidence=tuple(evidence),
            session=session,
            root=self.root or root,
            base=self.base,
        )


class SpoiltFolder(msgspec.Struct, frozen=True):
    """A staged folder that cannot be taken: it holds a link, a device, or too much."""

    name: str
    refusal: Refusal


class StagedWork(msgspec.Struct, frozen=True):
    """What an agent has made of the staged skills."""

    edited: tuple[EditedSkill, ...] = ()
    """The skills that are new or other than they were."""
    spoilt: tuple[SpoiltFolder, ...] = ()


class Staging:
    """The folder of one job. Only one process at a time has it."""

    def __init__(self, job: str, path: str) -> None:
        self.job = job
        self.path = path
        self._copied: dict[str, CopiedSkill] = {}

    @classmethod
    def open(cls, job: str, *, data: str | None = None) -> "Staging":
        """An empty staging folder for `job`: what an earlier, killed try left there goes."""
        above = os.path.join(data or paths.folders().data, "staging")
        name = _name(job)
        try:
            make_private(above)
            with Folder.at(above) as folder:
                _sweep(folder)
                remove_tree(folder, name)
                with folder.open(name, make=True) as own:
                    os.fchmod(own.fd, 0o700)
                    for below in FOLDERS:
                        own.open(below, make=True).close()
        except OSError as error:
            raise Unwritable(
                f"cannot make a staging folder in {above}: {error.strerror}",
                "check the free space and the permissions of that folder",
            ) from error
        return cls(job, os.path.join(os.path.realpath(above), name))

    def copy_in(self, gate: Gate, skill: str, root: str = "") -> CopiedSkill:
        """Stage a copy of `skill` as it is now, under the last part of its name.

        Raises `NotFound` where there is none, `Escape` where it cannot be read safely. A skill
        that is staged already stays as it is. Links are left out: no edit can touch them.
        """
        name = skill.rpartition("/")[2]
        opened = gate.open_place(root)
        if (known := self._copied.get(name)) is not None:
            if (known.skill, known.root) == (skill, opened.place.root):
                return known
            raise NotFound(
                f"'{name}' of {known.root} is being changed; '{skill}' of {root} cannot be as well",
                "one after the other",
            )
        now = gate.state_of(skill, root)
        if not now.is_live or now.head is None:
            raise NotFound(f"there is no skill '{skill}' in {opened.place.root}", "see: tacit list")
        files = {p: f for p, f in now.contents.files.items() if f.kind != "link"}
        with self._skills() as staged:
            remove_tree(staged, name)  # a new skill of that name was begun; the real one counts
            with staged.open(name, make=True) as folder:
                for path, file in sorted(files.items()):
                    *parents, last = path.split("/")
                    with folder.descend(parents, make=True) as below:
                        put_new(below, last, file.data, executable=file.kind == "program")
        copied = CopiedSkill(skill, opened.place.root, now.head.id, files)
        self._copied[name] = copied
        return copied

    def copy_anew(self, gate: Gate, name: str) -> None:
        """Stage what was copied in under `name` as it is now; what was made of it goes."""
        old = self._copied.pop(name)
        self.copy_in(gate, old.skill, old.root)

    def clear(self) -> None:
        """Have nothing staged: what was copied in and what was made goes."""
        self._copied.clear()
        with self._skills() as staged:
            for name in staged.names():
                remove_tree(staged, name)

    def copied(self) -> dict[str, CopiedSkill]:
        """What was copied in, by the names of the staged folders."""
        return dict(self._copied)

    def work(self) -> StagedWork:
        """What is staged now and was not before, read once and trusted in nothing."""
        edited: list[EditedSkill] = []
        spoilt: list[SpoiltFolder] = []
        with self._skills() as staged:
            for name in staged.names():
                try:
                    found = self._read_one(staged, name)
                except Escape as escape:
                    spoilt.append(SpoiltFolder(name, escape.refusal))
                    continue
                if found is not None:
                    edited.append(found)
        return StagedWork(tuple(edited), tuple(spoilt))

    def discard(self) -> None:
        """Remove the folder. Idempotent."""
        _remove(self.path)

    def _read_one(self, staged: Folder, name: str) -> EditedSkill | None:
        with staged.open(name) as folder:
            contents = read_contents(folder)
        for path, file in contents.files.items():
            if file.kind == "link" or path in contents.shared:
                raise Escape("special-file", f"{name}/{path} is a link", "write a file instead")
        copied = self._copied.get(name)
        if copied is None:
            return EditedSkill(name, name, "", "", {}, contents.files) if contents.files else None
        if contents.files == copied.files:
            return None
        return EditedSkill(
            name, copied.skill, copied.root, copied.base, copied.files, contents.files
        )

    def _skills(self) -> Folder:
        return Folder.at(os.path.join(self.path, SKILLS_FOLDER))


def clear_staging(job: str, *, data: str | None = None) -> None:
    """Remove what a killed try of `job` left behind, where it is not to be done again."""
    _remove(os.path.join(data or paths.folders().data, "staging", _name(job)))


def change_id(job: str, subject: str, *, number: int = 0, data: str | None = None) -> str:
    """The id of what `job` changes in `subject`: the same each time, so that it lands once.

    An id tells when a change was made. Of a run that has an id of that form itself, that is when
    the run began, and `number` puts its changes in order; of another job, it is when the job first
    asked for an id, which is kept on disk.
    """
    if is_change_id(job):
        began = new_change_id(change_time(job) + timedelta(milliseconds=number + 1))[:-9]
        subject = f"{number}\0{subject}"
    else:
        began = _began(job, data or paths.folders().data)
    text = f"{job}\0{subject}".encode("utf-8", "surrogateescape")
    return f"{began}-{hashlib.sha256(text).hexdigest()[:8]}"


def _began(job: str, data: str) -> str:
    folder = os.path.join(data, "staging", _BEGAN)
    path = os.path.join(folder, hashlib.sha256(job.encode()).hexdigest()[:32])
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        pass
    fresh = f"{path}.{os.getpid()}"
    write_atomic(fresh, new_change_id(datetime.now(UTC)).rpartition("-")[0].encode())
    try:
        os.link(fresh, path)  # the first one stays, whoever comes second
    except FileExistsError:
        pass
    finally:
        os.unlink(fresh)
    with open(path, encoding="ascii") as file:
        return file.read()


def _remove(path: str) -> None:
    above, name = os.path.split(path)
    try:
        with Folder.at(above) as folder:
            remove_tree(folder, name)
    except FileNotFoundError:
        pass


def _name(job: str) -> str:
    """A folder's name for `job`: itself where that is one."""
    if _SAFE.fullmatch(job):
        return job
    return "job-" + hashlib.sha256(job.encode()).hexdigest()[:32]


def _sweep(folder: Folder) -> None:
    """Remove what killed workers left behind long ago."""
    now = time.time()
    for name in folder.names():
        found = folder.status(name)
        if found is not None and name != _BEGAN and now - found.st_mtime > _ABANDONED:
            remove_tree(folder, name)
    try:
        with folder.open(_BEGAN) as began:
            for name in began.names():
                found = began.status(name)
                if found is not None and now - found.st_mtime > _FORGOTTEN:
                    remove_tree(began, name)
    except FileNotFoundError:
        pass


LandedKind = Literal["skill", "fact"]


class LandedChange(msgspec.Struct, frozen=True):
    """One change, and the gate's verdict on it."""

    skill: str
    is_new: bool
    verdict: Verdict
    what: LandedKind = "skill"


def land_changes(
    gate: Gate, changes: Iterable[Change], what: LandedKind = "skill", *, waits: str = ""
) -> list[LandedChange]:
    """Propose each change. Done twice, the second gives what the first did.

    `waits`: why they are to wait in the inbox, where nothing else would keep them from landing.
    """
    landed = []
    for change in changes:
        known = earlier_verdict(gate, change.id, change.skill)
        verdict = known or gate.propose(change, waits=waits)
        landed.append(LandedChange(change.skill, not change.base, verdict, what))
    return landed


def earlier_verdict(gate: Gate, change: str, skill: str) -> Verdict | None:
    """The verdict on the change with this id; None where it was never put before the gate.

    One that was put into the inbox counts as proposed, whatever was answered since.
    """
    for opened in gate.open_places.values():
        _settle(opened)
        if version := opened.history.knows(change, skill):
            return applied_verdict(gate.inbox, change, skill, version)
    try:
        proposal = gate.inbox.get(change)
    except NotFound:
        return None
    return _proposed(proposal)


def _settle(opened: OpenPlace) -> None:
    """Finish or take back what a kill interrupted: until then a change can be known by one of its
    refs while the others, or the lines of it that are to wait, are missing."""
    folder = opened.journal.folder
    names = os.listdir(folder) if os.path.isdir(folder) else []
    if any(name.endswith(".json") for name in names):
        opened.recover()


def landing_id(job: str, name: str, what: LandedKind = "skill") -> str:
    """The id of what `job` changes in a skill or a fact."""
    return change_id(job, name if what == "skill" else f"{what}:{name}")


def landed_before(gate: Gate, job: str, what: LandedKind = "skill") -> list[LandedChange]:
    """What `job` has changed or proposed so far, by the histories and the inbox.

    For jobs that do not know beforehand what they change: looks through what is recent there.
    """
    found: dict[str, LandedChange] = {}
    for proposal in gate.inbox.all(1000):
        change = proposal.change
        is_here = os.path.realpath(change.root) in gate.open_places
        if proposal.id == landing_id(job, change.skill, what) and is_here:
            verdict = _proposed(proposal)
            found[proposal.id] = LandedChange(change.skill, not change.base, verdict, what)
    for opened in gate.open_places.values():
        if not os.path.isdir(opened.history.folder):
            continue
        _settle(opened)
        for version in opened.history.latest(1000):
            record = version.record
            if record.change == landing_id(job, record.skill, what):
                verdict = applied_verdict(gate.inbox, record.change, record.skill, version.id)
                is_new = record.kind == "create"
                found[record.change] = LandedChange(record.skill, is_new, verdict, what)
    return list(found.values())


def _proposed(proposal: Proposal) -> Verdict:
    return Verdict(
        outcome="proposed", change=proposal.id, skill=proposal.change.skill, refusal=proposal.why
    )
