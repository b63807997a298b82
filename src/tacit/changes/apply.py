"""Apply and commit: from the actions of a change to folders, refs and git's exclude file.

The caller holds the place's lock and has judged the change. All of it lands, or nothing does.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from tacit.changes import private
from tacit.changes.actor import BACKGROUND
from tacit.changes.case import KEY
from tacit.changes.change import Change
from tacit.changes.contain import Folder
from tacit.changes.history import updates
from tacit.changes.journal import Entry, carry_out
from tacit.changes.plan import Action, Origins, commit_standing, prepare
from tacit.changes.site import Site
from tacit.changes.stage import clean
from tacit.changes.standing import Standing, free_key, look


def land(
    site: Site,
    root: Folder,
    change: Change,
    actions: Sequence[Action],
    origins: Origins,
    at: datetime,
) -> str:
    """Make `actions` true and return the id of the new version. Raises `Overtaken` or OSError."""
    ready = [_with_key(root, action) for action in actions]
    try:
        entry = prepare(root, site, change, ready, at, origins)
        hide_new(site, change, ready)
        carry_out(root, entry, site.journal, site.history)
    finally:
        clean(root)
    for action in ready:
        if action.kind in ("delete", "renamed"):
            _show(site, action.standing.skill)
    return site.history.knows(change.id, ready[-1].standing.skill)


def record(site: Site, root: Folder, standing: Standing, at: datetime) -> Standing:
    """Put what stands in a folder into its history, as the user's, and look again."""
    if standing.is_recorded:
        return standing
    version = commit_standing(site.history, standing, at)
    head = standing.head
    refs = updates([version], head.id if head else "")
    entry = Entry(version.record.change, site.real, standing.skill, (), refs)
    carry_out(root, entry, site.journal, site.history)
    return look(root, site.history, standing.skill)


def hide_new(site: Site, change: Change, actions: Sequence[Action]) -> None:
    """What a machine learned in a project stays out of `git status` from the start, and so do
    facts, whoever noted them: they may be about a person."""
    if site.place.scope != "project":
        return
    for action in actions:
        private_at_first = change.actor in BACKGROUND or site.place.kind == "facts"
        made = action.kind == "create" and private_at_first
        moved = action.kind == "rename" and private.is_hidden(site.place, action.partner)
        if made or moved:
            private.hide(site.place, action.standing.skill, site.data)


def _show(site: Site, skill: str) -> None:
    if site.place.scope == "project":
        private.show(site.place, skill, site.data)


def _with_key(root: Folder, action: Action) -> Action:
    if action.state != KEY:
        return action
    key = free_key(root, action.standing.skill)
    return msgspec.structs.replace(action, state=f"archived:{key}")
