"""How a skill stands on the disk and in its history, and how it will stand after a change.

An `Action` says how one skill will stand afterwards; most changes are one action, a rename or a
merge are two. `prepare_entry` writes everything that nobody sees yet, commits and staged folders,
and returns the journal entry that makes it true. Which actions a change takes is worked out in
`effect`.
"""

from datetime import datetime, timedelta

import msgspec

from tacit.changes.change import Change, Contents, File, Files, change_time, new_change_id
from tacit.changes.containment import Escape, Folder, open_skill, read_contents
from tacit.changes.git_store import RefUpdate, group_ref, pin_ref, tree_id
from tacit.changes.history import History, Record, Version, VersionKind, ref_updates
from tacit.changes.journal import JournalEntry, Move, OpenPlace
from tacit.changes.stage import ARCHIVE, STAGE, open_hidden, stage
from tacit.skills.skill import Skill
from tacit.skills.skill_file import SKILL_FILE_NAMES, parse_skill

NO_CONTENTS = Contents({})


class SkillState(msgspec.Struct, frozen=True, kw_only=True):
    """How a skill stands now: on the disk and in its history."""

    skill: str
    state: str
    """`live`, `archived:<folder>` or `gone`."""
    contents: Contents = NO_CONTENTS
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


def read_state(root: Folder, history: History, skill: str) -> SkillState:
    """How `skill` stands. Raises `Escape` where its folder is not a plain one."""
    try:
        with open_skill(root, skill) as folder:
            contents, state = read_contents(folder), "live"
    except FileNotFoundError:
        contents, state = NO_CONTENTS, "gone"
    return _state(history, skill, state, contents)


def read_archived(root: Folder, history: History, key: str) -> SkillState | None:
    """How the archived folder `key` stands, or None where there is none."""
    try:
        with root.descend([ARCHIVE, key]) as folder:
            contents = read_contents(folder)
    except FileNotFoundError:
        return None
    return _state(history, live_name(key), f"archived:{key}", contents)


def live_name(key: str) -> str:
    """The skill that an archived folder was: `notes~2` was `notes`. A `%2f` was a `/`."""
    return key.split("~", 1)[0].replace("%2f", "/")


def free_archive_key(root: Folder, skill: str) -> str:
    """A folder name in the archive that is not taken."""
    key, number = skill.replace("/", "%2f"), 1
    with open_hidden(root, ARCHIVE) as folder:
        taken = set(folder.names())
    while (found := key if number == 1 else f"{key}~{number}") in taken:
        number += 1
    return found


def find_archived(root: Folder, history: History, skill: str) -> SkillState | None:
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
    return read_archived(root, history, key)


def skill_of(now: SkillState, names: tuple[str, ...] = SKILL_FILE_NAMES) -> Skill:
    return parse_skill_files(now.contents.files, now.skill, names)


def parse_skill_files(files: Files, skill: str, names: tuple[str, ...] = SKILL_FILE_NAMES) -> Skill:
    """The skill in `files`, whose file goes by one of `names`.

    A SKILL.md that is a link counts as the user's, and is not read.
    """
    name = skill.rsplit("/", 1)[-1]
    for file_name in names:
        file = files.get(file_name)
        if file is not None and file.kind != "link":
            return parse_skill(
                file.data, name, file=file_name if names is SKILL_FILE_NAMES else "SKILL.md"
            )
    return Skill(name=name, description="")


def _state(history: History, skill: str, state: str, contents: Contents) -> SkillState:
    return SkillState(
        skill=skill,
        state=state,
        contents=contents,
        tree=tree_id(contents.files),
        head=history.head(skill),
        pinned=history.is_pinned(skill),
    )


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to one skill: how it stands now, and how it will stand."""

    now: SkillState
    kind: VersionKind
    state: str
    files: dict[str, File] = {}
    partner: str = ""
    copy_from: str = ""
    """Another skill whose unchanged files and unversioned folders come along (a rename)."""
    more_parents: tuple[str, ...] = ()
    """Skills whose commits of the same change are further parents of its commit."""


def rename_actions(
    now: SkillState, target: SkillState, files: dict[str, File]
) -> tuple[Action, Action]:
    """The two that make `now` go by the name of `target`, with these files."""
    away = Action(now=now, kind="renamed", state="gone", partner=target.skill)
    arrive = Action(
        now=target,
        kind="rename",
        state="live",
        files=files,
        partner=now.skill,
        copy_from=now.skill,
        more_parents=(now.skill,),
    )
    return away, arrive


class CommitDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What the commits say beside the change itself."""

    approved_by: str = ""
    undoes: str = ""
    overrides: tuple[str, ...] = ()
    copy_of: str = ""
    """The skills folder that a copy was made from."""


def prepare_entry(
    root: Folder,
    opened: OpenPlace,
    change: Change,
    actions: list[Action],
    at: datetime,
    details: CommitDetails,
) -> JournalEntry:
    """Write the commits and the staged folders of `actions`; nothing is visible yet."""
    moves: list[Move] = []
    refs: list[RefUpdate] = []
    earlier: dict[str, str] = {}
    for number, action in enumerate(actions):
        versions = _commit(opened.history, change, action, at, details, earlier)
        earlier[action.now.skill] = versions[-1].id
        head = action.now.head
        refs.extend(ref_updates(versions, head.id if head else ""))
        if change.group:
            name = group_ref(change.group, change.id, action.now.skill)
            refs.append(RefUpdate(name, versions[-1].id))
        refs.extend(_pins(opened.history, action, versions[-1].id))
        moves.extend(_moves(root, change.id, number, action))
    return JournalEntry(change.id, opened.real, change.skill, tuple(moves), tuple(refs))


def commit_unrecorded(history: History, now: SkillState, at: datetime, change: str = "") -> Version:
    """A version of what stands there, past the gate: the baseline, or what was done by hand."""
    head = now.head
    record = Record(
        skill=now.skill,
        kind="hand" if head else "baseline",
        actor="user",
        change=change or new_change_id(at),
        state=now.state,
        was=head.record.state if head else "none",
        reason="changed by hand" if head else "found in the folder",
    )
    return history.commit(record, now.contents.files, (head.id,) if head else (), at)


def _commit(
    history: History,
    change: Change,
    action: Action,
    at: datetime,
    details: CommitDetails,
    earlier: dict[str, str],
) -> list[Version]:
    now = action.now
    versions: list[Version] = []
    head = now.head
    if not now.is_recorded:
        just_before = min(at, change_time(change.id)) - timedelta(milliseconds=1)
        head = commit_unrecorded(history, now, at, new_change_id(just_before))
        versions.append(head)
    record = Record(
        skill=now.skill,
        kind=action.kind,
        actor=change.actor,
        change=change.id,
        state=action.state,
        was=head.record.state if head else "none",
        reason=change.reason,
        session=change.session,
        evidence=change.evidence,
        overrides=details.overrides,
        approved_by=details.approved_by,
        undoes=details.undoes,
        partner=action.partner or details.copy_of,
        group=change.group,
    )
    more = tuple(earlier[name] for name in action.more_parents if name in earlier)
    parents = ((head.id,) if head else ()) + more
    versions.append(history.commit(record, action.files, parents, at))
    return versions


def _pins(history: History, action: Action, commit: str) -> list[RefUpdate]:
    skill = action.now.skill
    name = pin_ref(skill)
    pinned = history.refs.get(name)
    if action.kind == "pin":
        return [RefUpdate(name, commit, pinned)]
    if action.kind in ("unpin", "delete", "renamed") and pinned:
        return [RefUpdate(name, "", pinned)]
    if action.kind == "rename" and history.is_pinned(action.partner):
        return [RefUpdate(name, commit, pinned)]
    return []


def _moves(root: Folder, change: str, number: int, action: Action) -> list[Move]:
    now = action.now
    before, after = now.state, action.state
    here = f"{STAGE}/{change}/{number}"
    if after == "live" and before == "live":
        if action.files == now.contents.files:
            return []
        source = _stage(root, change, number, action, now.skill)
        return [Move("swap", here, now.skill, source, now.tree)]
    if after == "live" and before == "gone":
        source = _stage(root, change, number, action, action.copy_from)
        return [Move("move", here, now.skill, source)]
    leaving = _inode(root, now.slot)
    if after == "gone":
        with open_hidden(root, STAGE) as folder:
            folder.open(change, make=True).close()
        return [Move("move", now.slot, here, leaving, now.tree)]
    target = f"{ARCHIVE}/{after.partition(':')[2]}" if after != "live" else now.skill
    if after != "live":
        open_hidden(root, ARCHIVE).close()
    return [Move("move", now.slot, target, leaving, now.tree)]


def _stage(root: Folder, change: str, number: int, action: Action, copy_from: str) -> int:
    """Put the files on the stage; the inode of the folder there."""
    with open_hidden(root, STAGE) as top, top.open(change, make=True) as folder:
        contents = action.now.contents
        if copy_from:
            with open_skill(root, copy_from) as source:
                if action.copy_from:
                    contents = read_contents(source)
                stage(folder, str(number), action.files, source, contents)
        else:
            stage(folder, str(number), action.files, None, contents)
        found = folder.identity(str(number))
    assert found is not None
    return found[1]


def _inode(root: Folder, slot: str) -> int:
    parts = slot.split("/")
    with root.descend(parts[:-1]) as above:
        found = above.identity(parts[-1])
    if found is None:
        raise FileNotFoundError(slot)
    return found[1]
