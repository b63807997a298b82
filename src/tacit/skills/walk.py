"""Finding the skill folders below a root: nested categories, links, loops.

A folder with a SKILL.md is a skill, and nothing below it is looked at: a SKILL.md inside a skill
is a support file. A folder without one is a category, to a depth of four. Links are followed;
each real folder is taken once, so a loop ends and a second way to the same skill is noticed.
"""

import os

from tacit.skills.reading import FILE_NAMES

MAX_DEPTH = 4
# A link can lead to a disk full of folders; a library behind one has fewer categories than this.
_MOST_LINKED = 2000
# Never categories: version control, environments, and whatever begins with a dot.
_PASSED_OVER = {"node_modules", "__pycache__", "venv"}


class Walk:
    """What a walk found, by path relative to the root ('' is the root itself)."""

    __slots__ = ("broken", "categories", "linked", "links", "real", "skills", "twice")

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
        self.twice: dict[str, str] = {}
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
        if through_link and _holds(target, found.real):
            found.twice[path] = target  # what it leads to holds this very folder
            continue
        if target in seen:
            found.twice[path] = target
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


def _holds(folder: str, other: str) -> bool:
    return other == folder or other.startswith(folder.rstrip("/") + "/")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def _skill_file(folder: str) -> str:
    """The name of the skill file in `folder`, or ''. One look in the usual case."""
    if os.path.isfile(f"{folder}/{FILE_NAMES[0]}"):
        return FILE_NAMES[0]
    try:
        names = os.listdir(folder)
    except OSError:
        return ""
    for name in FILE_NAMES:
        if name in names and not os.path.isdir(f"{folder}/{name}"):
            return name
    return ""
