"""How a skill stands: what is on the disk, what its history knows, and whether the two agree."""

import msgspec

from tacit.changes.contain import Escape, Folder, open_skill, read_contents
from tacit.changes.files import Contents, Files
from tacit.changes.history import History, Version
from tacit.changes.objects import tree_id
from tacit.changes.stage import ARCHIVE, open_hidden
from tacit.skills.reading import FILE_NAMES, parse_skill
from tacit.skills.skill import Skill

NOTHING = Contents({})


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a skill stands now: on the disk and in its history."""

    skill: str
    state: str
    """`live`, `archived:<folder>` or `gone`."""
    contents: Contents = NOTHING
    tree: str = ""
    head: Version | None = None
    pinned: bool = False

    @property
    def is_live(self) -> bool:
        return self.state == "live"

    @property
    def slot(self) -> str:
        """Its folder's path below the skills folder."""
        kind, _, key = self.state.partition(":")
        return f"{ARCHIVE}/{key}" if kind == "archived" else self.skill

    @property
    def is_recorded(self) -> bool:
        """Whether the history's last version is what stands on the disk."""
        if self.head is None:
            return self.state == "gone"
        known = self.head.record.state
        if self.state == "gone":  # archived is not live either
            return known != "live"
        return known == self.state and self.head.tree == self.tree


def look(root: Folder, history: History, skill: str) -> Standing:
    """How `skill` stands. Raises `Escape` where its folder is not a plain one."""
    try:
        with open_skill(root, skill) as folder:
            contents, state = read_contents(folder), "live"
    except FileNotFoundError:
        contents, state = NOTHING, "gone"
    return _standing(history, skill, state, contents)


def look_archived(root: Folder, history: History, key: str) -> Standing | None:
    """How the archived folder `key` stands, or None where there is none."""
    try:
        with root.descend([ARCHIVE, key]) as folder:
            contents = read_contents(folder)
    except FileNotFoundError:
        return None
    return _standing(history, live_name(key), f"archived:{key}", contents)


def live_name(key: str) -> str:
    """The skill that an archived folder was: `notes~2` was `notes`. A `%2f` was a `/`."""
    return key.split("~", 1)[0].replace("%2f", "/")


def free_key(root: Folder, skill: str) -> str:
    """A folder name in the archive that is not taken."""
    key, number = skill.replace("/", "%2f"), 1
    with open_hidden(root, ARCHIVE) as folder:
        taken = set(folder.names())
    while (found := key if number == 1 else f"{key}~{number}") in taken:
        number += 1
    return found


def find_archived(root: Folder, history: History, skill: str) -> Standing | None:
    """By name, the one that was archived last; `notes~1` means the first `notes`."""
    try:
        with root.open(ARCHIVE) as folder:
            names = folder.names()
    except (FileNotFoundError, Escape):
        return None
    exact = skill.removesuffix("~1")
    keys = [name for name in names if (name == exact if "~" in skill else live_name(name) == skill)]
    if not keys:
        return None
    key = max(keys, key=lambda name: (len(name), name))
    return look_archived(root, history, key)


def skill_of(standing: Standing, names: tuple[str, ...] = FILE_NAMES) -> Skill:
    return parse_files(standing.contents.files, standing.skill, names)


def parse_files(files: Files, skill: str, names: tuple[str, ...] = FILE_NAMES) -> Skill:
    """The skill in `files`, whose file goes by one of `names`.

    A SKILL.md that is a link counts as the user's, and is not read.
    """
    name = skill.rsplit("/", 1)[-1]
    for file_name in names:
        file = files.get(file_name)
        if file is not None and file.kind != "link":
            return parse_skill(
                file.data, name, file=file_name if names is FILE_NAMES else "SKILL.md"
            )
    return Skill(name=name, description="")


def _standing(history: History, skill: str, state: str, contents: Contents) -> Standing:
    return Standing(
        skill=skill,
        state=state,
        contents=contents,
        tree=tree_id(contents.files),
        head=history.head(skill),
        pinned=history.is_pinned(skill),
    )
