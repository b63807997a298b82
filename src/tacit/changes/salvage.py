"""Makes a damaged history again from what can still be read of it.

Every version whose commit and files are readable is written into a new git directory, in its order
and under its change's id; what cannot be read is counted. Files that the history lost are taken
from the skill's folder where they still stand there. The damaged directory is put aside, and
nothing in it is deleted.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from tacit.base.display import counted
from tacit.base.doctor import clear_folder, remove_path
from tacit.base.errors import Damaged, TacitError
from tacit.changes.change import File
from tacit.changes.containment import Escape, open_root
from tacit.changes.git_store import (
    RefUpdate,
    group_ref,
    pin_ref,
    skill_ref,
    tree_id,
    unquote_name,
)
from tacit.changes.history import History, Version, ref_updates
from tacit.changes.journal import OpenPlace, swap_names
from tacit.changes.skill_state import read_state

_ENDS = {"unpin", "delete", "renamed"}
"""After these a skill is not pinned."""


def salvage(opened: OpenPlace) -> str:
    """Put a new history in the place of a damaged one; what became of it, for a person."""
    with opened.lock():
        old = opened.history
        new = History(opened.place, opened.data, folder=f"{old.folder}.new")
        remove_path(new.folder)
        _index_packs(old)
        new.objects.make()
        kept, lost = _Salvage(opened, old, new).run()
        aside = f"{old.folder}.damaged-{int(time.time())}"
        _exchange(old.folder, new.folder)
        os.rename(new.folder, aside)
        opened.history = History(opened.place, opened.data)
    lines = [f"{counted(kept, 'version')} kept"]
    for skill, number in sorted(lost.items()):
        lines.append(f"{counted(number, 'version')} of '{skill}' lost")
    return f"{'; '.join(lines)}; the damaged history lies in {aside}"


def lost_skills(opened: OpenPlace, dangling: list[str]) -> list[str]:
    """The skills that stand in their folder and have commits, but no ref leads to them.

    A commit of a change that was taken back says nothing of another's folder of that name.
    """
    found = set()
    for oid in dangling:
        with suppress(Damaged, OSError):
            version = opened.history.version(oid)
            skill = version.record.skill
            if opened.history.refs.get(skill_ref(skill)):
                continue
            for name, file in opened.history.files(version).items():
                with open(os.path.join(opened.real, skill, name), "rb") as standing:
                    if file.kind == "file" and standing.read() == file.data:
                        found.add(skill)
                        break
    return sorted(found)


def _index_packs(history: History) -> None:
    """Let git make the index of each pack whose own is lost; without one it cannot be read."""
    folder = os.path.join(history.folder, "objects", "pack")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        index = os.path.join(folder, name[:-5] + ".idx")
        if name.endswith(".pack"):
            clear_folder(index)
            with suppress(OSError, TacitError):  # there may be no git
                made = history.objects.git("index-pack", "-o", f"{index}.new", f"{folder}/{name}")
                if made.returncode == 0:
                    os.replace(f"{index}.new", index)


def _exchange(path: str, other: str) -> None:
    """Let two names in one folder change places, in one step where the system can."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        names = os.path.basename(path), os.path.basename(other)
        if not swap_names(folder, names[0], folder, names[1]):
            os.rename(path, f"{path}.swap")
            os.rename(other, path)
            os.rename(f"{path}.swap", other)
    finally:
        os.close(folder)


class _Salvage:
    def __init__(self, opened: OpenPlace, old: History, new: History) -> None:
        self.opened, self.old, self.new = opened, old, new
        self.commits = dict(_commits(old))
        self.named = dict(_readable_refs(old, "refs/changes"))
        self.by_name = set(self.named.values())
        self.named_skills = {v.record.skill for v in self.commits.values() if v.id in self.by_name}
        self.lost: dict[str, int] = {}
        self.passed_over: set[str] = set()
        self.written: dict[str, Version] = {}

    def run(self) -> tuple[int, dict[str, int]]:
        """How many versions were kept, and how many were lost of each skill."""
        for skill in self._skills():
            tip = self._tip(skill)
            if tip is None:
                self.lost.setdefault(skill, 0)  # its changes are counted below
                continue
            last = self._write(tip)
            if last is not None:
                self.new.refs.force((RefUpdate(skill_ref(skill), last.id),))
                self._pin(skill, last)
        for name, oid in self.named.items():
            if oid not in self.commits:
                self._lose(unquote_name(name.rsplit("/", 1)[1]))
        return len(self.written), {skill: number or 1 for skill, number in self.lost.items()}

    def _skills(self) -> list[str]:
        """The skills that had a history, by what refs there are, else by the commits."""
        names = {v.record.skill for v in self.commits.values() if self._counts(v)}
        for name in (*self.old.refs.broken(), *dict(_readable_refs(self.old, "refs/skills"))):
            if name.startswith("refs/skills/") and "%%" not in name:
                names.add(unquote_name(name.rsplit("/", 1)[1]))
        return sorted(names)

    def _counts(self, version: Version) -> bool:
        """Whether a commit belongs to the history: a change that was taken back left one too.

        One that a change's ref names does, and one that is what stands in the folder.
        """
        skill = version.record.skill
        if version.id in self.by_name or not self.by_name:
            return True
        if skill in self.named_skills:
            return version.tree == tree_id(self._standing(skill))
        return os.path.isdir(os.path.join(self.opened.real, skill))

    def _tip(self, skill: str) -> Version | None:
        """The last version of a skill: by its ref, else the one that stands in its folder, else
        the newest that no other was made from."""
        with suppress(Damaged):
            if (oid := self.old.refs.get(skill_ref(skill))) in self.commits:
                return self.commits[oid]
        mine = [v for v in self.commits.values() if v.record.skill == skill and self._counts(v)]
        parents = {parent for version in mine for parent in version.parents}
        tips = [version for version in mine if version.id not in parents] or mine
        standing = tree_id(self._standing(skill))
        return max(
            tips,
            key=lambda v: (v.tree == standing, v.record.change),
            default=None,
        )

    def _write(self, tip: Version) -> Version | None:
        """Write a version and all that it was made from, oldest first; the last that was whole."""
        waiting = [tip]
        while waiting:
            version = waiting[-1]
            if version.id in self.written or version.id in self.passed_over:
                waiting.pop()
                continue
            before = self._before(version)
            missing = [
                v for v in before if v.id not in self.written and v.id not in self.passed_over
            ]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            self._write_one(version, before)
        return self._whole(tip)

    def _write_one(self, version: Version, before: list[Version]) -> None:
        try:
            files = self.old.files(version)
        except Damaged:
            files = self._standing(version.record.skill)
            if tree_id(files) != version.tree:
                self._lose(version.record.skill)
                self.passed_over.add(version.id)  # what came after it follows its parent
                return
        whole = [found for one in before if (found := self._whole(one)) is not None]
        parents = tuple(dict.fromkeys(one.id for one in whole))
        made = self.new.commit(version.record, files, parents, version.at)
        self.written[version.id] = made
        refs = ref_updates([made], "")[:-1]
        record = version.record
        if record.group:
            refs += (RefUpdate(group_ref(record.group, record.change, record.skill), made.id),)
        self.new.refs.force(refs)

    def _whole(self, version: Version) -> Version | None:
        """What was written of a version, or of the nearest before it that was whole."""
        seen: list[Version] = [version]
        while seen:
            one = seen.pop()
            if one.id in self.written:
                return self.written[one.id]
            seen.extend(self._before(one)[:1])
        return None

    def _before(self, version: Version) -> list[Version]:
        """What a version was made from; where that cannot be read, the newest that is older."""
        found = [self.commits[oid] for oid in version.parents if oid in self.commits]
        if found or not version.parents:
            return found
        older = [
            v
            for v in self.commits.values()
            if v.record.skill == version.record.skill
            and v.record.change < version.record.change
            and self._counts(v)
        ]
        return [max(older, key=lambda v: v.record.change)] if older else []

    def _pin(self, skill: str, last: Version) -> None:
        kinds = (version.record.kind for version in self.new.log(skill))
        latest = next((kind for kind in kinds if kind == "pin" or kind in _ENDS), "")
        if latest == "pin":
            self.new.refs.force((RefUpdate(pin_ref(skill), last.id),))

    def _standing(self, skill: str) -> dict[str, File]:
        """What stands in the skill's folder now."""
        try:
            with open_root(self.opened.place) as root:
                return dict(read_state(root, self.new, skill).contents.files)
        except (OSError, Escape):
            return {}

    def _lose(self, skill: str) -> None:
        self.lost[skill] = self.lost.get(skill, 0) + 1


def _commits(history: History) -> Iterator[tuple[str, Version]]:
    """Every commit that can be read."""
    for oid in history.objects.ids():
        with suppress(Damaged, ValueError, msgspec.MsgspecError):
            version = history.version(oid)
            if version.record.skill and version.record.change:
                yield oid, version


def _readable_refs(history: History, prefix: str) -> Iterator[tuple[str, str]]:
    broken = set(history.refs.broken())
    for name in history.refs.names(prefix):
        if name not in broken:
            yield name, history.refs.get(name)
