"""From what a change does to each skill to the commits, the staged folders and the moves.

An `Action` says how one skill will stand afterwards; most changes are one action, a rename or a
merge are two. `prepare` writes everything that nobody sees yet, commits and stage, and returns the
journal entry that makes it true.
"""

from datetime import datetime, timedelta

import msgspec

from tacit.changes.change import Change, new_id, time_of
from tacit.changes.contain import Folder, open_skill, read_contents
from tacit.changes.files import File
from tacit.changes.history import History, Kind, Record, Version, updates
from tacit.changes.journal import Entry, Move
from tacit.changes.refs import RefUpdate, group_ref, pin_ref
from tacit.changes.site import Site
from tacit.changes.stage import ARCHIVE, STAGE, open_hidden, stage
from tacit.changes.standing import Standing


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """How a skill will stand."""

    standing: Standing
    kind: Kind
    state: str
    files: dict[str, File] = {}
    partner: str = ""
    like: str = ""
    """Another skill whose unchanged files and carried folders come along (a rename)."""
    also_after: tuple[str, ...] = ()
    """Further parents of its commit."""


class Origins(msgspec.Struct, frozen=True, kw_only=True):
    """What the commits say beside the change itself."""

    approved_by: str = ""
    undoes: str = ""
    overrides: tuple[str, ...] = ()
    copy_of: str = ""
    """The skills folder that a copy was made from."""


def prepare(
    root: Folder, site: Site, change: Change, actions: list[Action], at: datetime, origins: Origins
) -> Entry:
    """Write the commits and the staged folders of `actions`; nothing is visible yet."""
    moves: list[Move] = []
    refs: list[RefUpdate] = []
    earlier: dict[str, str] = {}
    for number, action in enumerate(actions):
        versions = _commit(site.history, change, action, at, origins, earlier)
        earlier[action.standing.skill] = versions[-1].id
        head = action.standing.head
        refs.extend(updates(versions, head.id if head else ""))
        if change.group:
            name = group_ref(change.group, change.id, action.standing.skill)
            refs.append(RefUpdate(name, versions[-1].id))
        refs.extend(_pins(site.history, action, versions[-1].id))
        moves.extend(_moves(root, change.id, number, action))
    return Entry(change.id, site.real, change.skill, tuple(moves), tuple(refs))


def commit_standing(
    history: History, standing: Standing, at: datetime, change: str = ""
) -> Version:
    """A version of what stands there, past the gate: the baseline, or what was done by hand."""
    head = standing.head
    record = Record(
        skill=standing.skill,
        kind="hand" if head else "baseline",
        actor="user",
        change=change or new_id(at),
        state=standing.state,
        was=head.record.state if head else "none",
        reason="changed by hand" if head else "found in the folder",
    )
    return history.commit(record, standing.contents.files, (head.id,) if head else (), at)


def _commit(
    history: History,
    change: Change,
    action: Action,
    at: datetime,
    origins: Origins,
    earlier: dict[str, str],
) -> list[Version]:
    standing = action.standing
    versions: list[Version] = []
    head = standing.head
    if not standing.is_recorded:
        just_before = min(at, time_of(change.id)) - timedelta(milliseconds=1)
        head = commit_standing(history, standing, at, new_id(just_before))
        versions.append(head)
    record = Record(
        skill=standing.skill,
        kind=action.kind,
        actor=change.actor,
        change=change.id,
        state=action.state,
        was=head.record.state if head else "none",
        reason=change.reason,
        session=change.session,
        evidence=change.evidence,
        overrides=origins.overrides,
        approved_by=origins.approved_by,
        undoes=origins.undoes,
        partner=action.partner or origins.copy_of,
        group=change.group,
    )
    more = tuple(earlier[name] for name in action.also_after if name in earlier)
    parents = ((head.id,) if head else ()) + more
    versions.append(history.commit(record, action.files, parents, at))
    return versions


def _pins(history: History, action: Action, commit: str) -> list[RefUpdate]:
    skill = action.standing.skill
    name = pin_ref(skill)
    now = history.refs.get(name)
    if action.kind == "pin":
        return [RefUpdate(name, commit, now)]
    if action.kind in ("unpin", "delete", "renamed") and now:
        return [RefUpdate(name, "", now)]
    if action.kind == "rename" and history.is_pinned(action.partner):
        return [RefUpdate(name, commit, now)]
    return []


def _moves(root: Folder, change: str, number: int, action: Action) -> list[Move]:
    standing = action.standing
    before, after = standing.state, action.state
    here = f"{STAGE}/{change}/{number}"
    if after == "live" and before == "live":
        if action.files == standing.contents.files:
            return []
        source = _stage(root, change, number, action, standing.skill)
        return [Move("swap", here, standing.skill, source, standing.tree)]
    if after == "live" and before == "gone":
        source = _stage(root, change, number, action, action.like)
        return [Move("move", here, standing.skill, source)]
    leaving = _number(root, standing.slot)
    if after == "gone":
        with open_hidden(root, STAGE) as folder:
            folder.open(change, make=True).close()
        return [Move("move", standing.slot, here, leaving, standing.tree)]
    target = f"{ARCHIVE}/{after.partition(':')[2]}" if after != "live" else standing.skill
    if after != "live":
        open_hidden(root, ARCHIVE).close()
    return [Move("move", standing.slot, target, leaving, standing.tree)]


def _stage(root: Folder, change: str, number: int, action: Action, like: str) -> int:
    """Put the files on the stage; the inode of the folder there."""
    with open_hidden(root, STAGE) as top, top.open(change, make=True) as folder:
        contents = action.standing.contents
        if like:
            with open_skill(root, like) as source:
                if action.like:
                    contents = read_contents(source)
                stage(folder, str(number), action.files, source, contents)
        else:
            stage(folder, str(number), action.files, None, contents)
        found = folder.identity(str(number))
    assert found is not None
    return found[1]


def _number(root: Folder, slot: str) -> int:
    parts = slot.split("/")
    with root.descend(parts[:-1]) as above:
        found = above.identity(parts[-1])
    if found is None:
        raise FileNotFoundError(slot)
    return found[1]
