"""Building the index: finding the skill folders below a root and reading each into a row.

The slow half of `index.py`, imported only when something changed. A folder with a SKILL.md is a
skill, and nothing below it is visited: a SKILL.md inside a skill is a support file. A folder
without one is a category, to a depth of four. Links are followed; each real folder is taken once,
so a loop ends and a second way to the same skill is noticed.
"""

import gc
import os
import re

from tacit.base import marshal_cache
from tacit.base.display import one_line
from tacit.base.paths import is_inside
from tacit.skills import index
from tacit.skills.index import Snapshot
from tacit.skills.skill import Skill, problem
from tacit.skills.skill_file import SKILL_FILE_NAMES, parse_skill, read_with_status, skill_digest

MAX_DEPTH = 4
# A link can lead to a disk full of folders; a library behind one has fewer categories than this.
_MOST_LINKED = 2000
# Never categories: version control, environments, and whatever begins with a dot.
_PASSED_OVER = {"node_modules", "__pycache__", "venv"}


class Walk:
    """What a walk found, by path relative to the root ('' is the root itself)."""

    __slots__ = ("broken", "categories", "linked", "links", "real", "repeated", "skills")

    def __init__(self, real: str) -> None:
        self.real = real
        self.linked = 0
        """How many categories were listed behind links."""
        self.skills: dict[str, str] = {}
        """Skill folder -> the name of its file."""
        self.categories: list[str] = []
        """Folders that were listed; when one of them changes, the walk must be done again."""
        self.links: dict[str, str] = {}
        """Skill folder reached through a link -> its real path."""
        self.repeated: dict[str, str] = {}
        """A second way to a folder that was taken already -> that folder's real path."""
        self.broken: list[str] = []
        """Links that lead nowhere."""


def walk(root: str) -> Walk:
    """Walk `root`. Folders that cannot be listed are passed over."""
    real = os.path.realpath(root)
    found = Walk(real)
    _visit(root, "", 0, found, {real}, real, linked=False)
    return found


def _visit(
    root: str, at: str, depth: int, found: Walk, seen: set[str], real: str, *, linked: bool
) -> None:
    found.categories.append(at)
    try:
        # Real folders before links, so that a link never takes the place of what it points to.
        entries = sorted(
            os.scandir(os.path.join(root, at)), key=lambda entry: (entry.is_symlink(), entry.name)
        )
    except OSError:
        return
    for entry in entries:
        name = entry.name
        if name.startswith(".") or name in _PASSED_OVER:
            continue
        path = f"{at}/{name}" if at else name
        through_link = entry.is_symlink()
        if not _is_folder(entry):
            if through_link and not os.path.exists(entry.path):
                found.broken.append(path)
            continue
        target = os.path.realpath(entry.path) if through_link else f"{real}/{name}"
        if through_link and is_inside(found.real, target):
            found.repeated[path] = target  # what it leads to holds this very folder
            continue
        if target in seen:
            found.repeated[path] = target
            continue
        seen.add(target)
        file = _skill_file(entry.path)
        if file:
            found.skills[path] = file
            if linked or through_link:
                found.links[path] = target
        elif depth < MAX_DEPTH and (found.linked < _MOST_LINKED or not (linked or through_link)):
            found.linked += linked or through_link
            _visit(root, path, depth + 1, found, seen, target, linked=linked or through_link)
        else:
            found.categories.append(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def _skill_file(folder: str) -> str:
    """The name of the skill file in `folder`, or ''. One look in the usual case."""
    if os.path.isfile(f"{folder}/{SKILL_FILE_NAMES[0]}"):
        return SKILL_FILE_NAMES[0]
    try:
        names = os.listdir(folder)
    except OSError:
        return ""
    for name in SKILL_FILE_NAMES:
        if name in names and not os.path.isdir(f"{folder}/{name}"):
            return name
    return ""


def build(root: str, known: Snapshot | None = None) -> Snapshot:
    """Walk `root`; rows of `known` whose file did not change are taken over."""
    started_ns = index.now()
    found = walk(root)
    before = {row[index.FOLDER]: row for row in known.rows} if known else {}
    rows = []
    collected = gc.isenabled()
    gc.disable()  # all that is made here is kept, and looking through it again takes a tenth
    try:
        for folder, file in found.skills.items():
            real = found.links.get(folder, "")
            row = before.get(folder)
            if row is None or not _still_holds(root, row, file, real):
                row = read_row(root, folder, file, real, started_ns)
            rows.append(row)
        rows.sort(key=_order)
    finally:
        if collected:
            gc.enable()
    categories = []
    # Where the file has an unusual name, one with the usual name may appear beside it.
    unusual = [folder for folder, file in found.skills.items() if file != SKILL_FILE_NAMES[0]]
    for folder in [*found.categories, *unusual]:
        try:
            status = os.stat(os.path.join(root, folder))
        except OSError:
            continue
        categories.append((folder, marshal_cache.trusted_stamp(status, started_ns)))
    return Snapshot(root, rows, categories, found.repeated, found.broken)


def _order(row: index.Row) -> tuple[str, bool, int, list[tuple[bool, int, str]]]:
    """By name; and who wins a name: a folder that bears it, then the less deep, then by path.

    Numbers in paths count as numbers, so that `skill-2` comes before `skill-10`.
    """
    folder, name = row[index.FOLDER], row[index.NAME]
    parts = re.split(r"(\d+)", folder)
    natural = [(p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts if p]
    return (name, folder.rpartition("/")[2] != name, folder.count("/"), natural)


def refresh(known: Snapshot, stale: list[int]) -> Snapshot:
    """`known` with the rows numbered in `stale` read again."""
    started_ns = index.now()
    rows = list(known.rows)
    renamed = False
    for number in stale:
        before = rows[number]
        folder, file, real = (before[i] for i in (index.FOLDER, index.FILE, index.REAL))
        if real:
            real = os.path.realpath(os.path.join(known.root, folder))
        rows[number] = read_row(known.root, folder, file, real, started_ns)
        renamed = renamed or rows[number][index.NAME] != before[index.NAME]
    if renamed:  # of what the order goes by, nothing else can have changed
        rows.sort(key=_order)
    return Snapshot(known.root, rows, known.categories, known.repeated, known.broken)


def read_row(root: str, folder: str, file: str, real: str, started_ns: int) -> "index.Row":
    """The row of one skill; an unreadable file gives a row that says so."""
    path = os.path.join(root, folder, file)
    name = os.path.basename(folder)
    stamp = (0, 0, 0, 0)
    digest = ""
    try:
        try:
            data, status = read_with_status(path, os.O_NOFOLLOW)
        except OSError:
            if os.path.islink(path):  # what counts is where it is read from
                real = os.path.dirname(os.path.realpath(path))
            # What cannot be read has a stamp too, and is tried again when that has changed.
            stamp = marshal_cache.trusted_stamp(os.stat(path), started_ns)
            data, status = read_with_status(path)
        stamp = marshal_cache.trusted_stamp(status, started_ns)
        digest = skill_digest(data)
        skill = parse_skill(data, name, file=file, size=status.st_size, only_grades=True)
    except OSError as error:
        why = error.strerror or type(error).__name__
        skill = Skill(name=name, description="", problems=(problem("unreadable", 1, why=why),))
    flags = (index.NO_MODEL if skill.disable_model_invocation else 0) | (
        0 if skill.user_invocable else index.NO_USER
    )
    return (
        folder,
        file,
        one_line(skill.name),
        one_line(skill.description),
        one_line(skill.source),
        flags,
        skill.paths,
        real,
        one_line(skill.version),
        skill.worst or "",
        stamp,
        digest,
    )


def _still_holds(root: str, row: "index.Row", file: str, real: str) -> bool:
    if row[index.FILE] != file or row[index.REAL] != real:
        return False
    try:
        status = os.stat(os.path.join(root, row[index.FOLDER], file))
    except OSError:
        return False
    return bool(marshal_cache.stamp(status) == row[index.STAMP])
