"""The staging folder of a job: copies of skills go in, what was made of them comes out.

The parent's side. The child can write anything into this folder, so what is in it proves nothing:
what a copy was, and of which version, is kept here in memory, and what is read back passes by
handles and without links, as the gate would read it. Nothing here changes a skill.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from tacit.base import paths
from tacit.base.errors import NotFound, Unwritable
from tacit.base.files import write_atomic
from tacit.changes.actor import Actor
from tacit.changes.change import Change, Create, Refusal, Rewrite, new_id
from tacit.changes.contain import Escape, Folder, read_contents, remove_tree
from tacit.changes.files import File, programs, to_bytes
from tacit.changes.gate import Gate
from tacit.learn.background.desk import SKILLS, put_new

FOLDERS = (SKILLS, "log", "tmp")
_BEGAN = ".began"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ABANDONED = 2 * 86_400.0
_FORGOTTEN = 60 * 86_400.0


class Copied(msgspec.Struct, frozen=True):
    """A skill as it was when it was copied in."""

    skill: str
    root: str
    base: str
    files: dict[str, File]


class Edited(msgspec.Struct, frozen=True):
    """One skill that came out other than it went in, or that is new."""

    name: str
    """Its name on the desk."""
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
        files, runs = to_bytes(self.new), programs(self.new)
        operation = Create(files, runs) if self.is_new else Rewrite(files, runs)
        return Change(
            id=change_id(job, self.skill, data=data),
            skill=self.skill,
            operations=(operation,),
            actor=actor,
            reason=reason,
            evidence=tuple(evidence),
            session=session,
            root=self.root or root,
            base=self.base,
        )


class Spoilt(msgspec.Struct, frozen=True):
    """A folder on the desk that cannot be taken: it holds a link, a device, or too much."""

    name: str
    refusal: Refusal


class Staging:
    """The folder of one job. Only one process at a time has it."""

    def __init__(self, job: str, path: str) -> None:
        self.job = job
        self.path = path
        self._copied: dict[str, Copied] = {}

    @classmethod
    def open(cls, job: str, *, data: str | None = None) -> "Staging":
        """An empty staging folder for `job`: what an earlier, killed try left there goes."""
        above = os.path.join(data or paths.folders().data, "staging")
        name = _name(job)
        try:
            os.makedirs(above, mode=0o700, exist_ok=True)
            with Folder(os.open(above, _OPEN), above) as folder:
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

    def copy_in(self, gate: Gate, skill: str, root: str = "") -> Copied:
        """Put a copy of `skill`, as it stands now, on the desk, under the last part of its name.

        Raises `NotFound` where it does not stand, `Escape` where it cannot be read safely. A skill
        that is here already stays as it is. Links are left out: no edit can touch them.
        """
        name = skill.rpartition("/")[2]
        site = gate.site(root)
        if (known := self._copied.get(name)) is not None:
            if (known.skill, known.root) == (skill, site.place.root):
                return known
            raise NotFound(
                f"'{name}' of {known.root} is being changed; '{skill}' of {root} cannot be as well",
                "one after the other",
            )
        standing = gate.look(skill, root)
        if not standing.is_live or standing.head is None:
            raise NotFound(f"there is no skill '{skill}' in {site.place.root}", "see: tacit list")
        files = {p: f for p, f in standing.contents.files.items() if f.kind != "link"}
        with self._desk() as desk:
            remove_tree(desk, name)  # a new skill of that name was begun; the real one counts
            with desk.open(name, make=True) as folder:
                for path, file in sorted(files.items()):
                    *parents, last = path.split("/")
                    with folder.descend(parents, make=True) as below:
                        put_new(below, last, file.data, executable=file.kind == "program")
        copied = Copied(skill, site.place.root, standing.head.id, files)
        self._copied[name] = copied
        return copied

    def copied(self) -> dict[str, Copied]:
        """What was copied in, by its name on the desk."""
        return dict(self._copied)

    def changed(self) -> list[Edited]:
        """The skills that are new or other than they were. What is `spoilt` is left out."""
        return [found for found in self._read() if isinstance(found, Edited)]

    def spoilt(self) -> list[Spoilt]:
        """What lies on the desk and cannot be taken from it."""
        return [found for found in self._read() if isinstance(found, Spoilt)]

    def discard(self) -> None:
        """Remove the folder. Twice is the same as once."""
        _remove(self.path)

    def _read(self) -> list[Edited | Spoilt]:
        found: list[Edited | Spoilt] = []
        with self._desk() as desk:
            for name in desk.names():
                try:
                    edited = self._read_one(desk, name)
                except Escape as escape:
                    found.append(Spoilt(name, escape.refusal))
                    continue
                if edited is not None:
                    found.append(edited)
        return found

    def _read_one(self, desk: Folder, name: str) -> Edited | None:
        with desk.open(name) as folder:
            contents = read_contents(folder)
        for path, file in contents.files.items():
            if file.kind == "link" or path in contents.shared:
                raise Escape("special-file", f"{name}/{path} is a link", "write a file instead")
        copied = self._copied.get(name)
        if copied is None:
            return Edited(name, name, "", "", {}, contents.files) if contents.files else None
        if contents.files == copied.files:
            return None
        return Edited(name, copied.skill, copied.root, copied.base, copied.files, contents.files)

    def _desk(self) -> Folder:
        path = os.path.join(self.path, SKILLS)
        return Folder(os.open(path, _OPEN), path)


def clear(job: str, *, data: str | None = None) -> None:
    """Remove what a killed try of `job` left behind, where it is not to be done again."""
    _remove(os.path.join(data or paths.folders().data, "staging", _name(job)))


def change_id(job: str, skill: str, *, data: str | None = None) -> str:
    """The id of what `job` changes in `skill`: the same each time, so that it lands once.

    An id tells when a change was made; that is when the job first asked for one, kept on disk.
    """
    ending = hashlib.sha256(f"{job}\0{skill}".encode()).hexdigest()[:8]
    return f"{_began(job, data or paths.folders().data)}-{ending}"


def _began(job: str, data: str) -> str:
    folder = os.path.join(data, "staging", _BEGAN)
    path = os.path.join(folder, hashlib.sha256(job.encode()).hexdigest()[:32])
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        pass
    fresh = f"{path}.{os.getpid()}"
    write_atomic(fresh, new_id(datetime.now(UTC)).rpartition("-")[0].encode())
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
        with Folder(os.open(above, _OPEN), above) as folder:
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
