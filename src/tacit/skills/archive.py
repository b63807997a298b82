"""Skills that were put away: in `.archive` of a skills folder, where no agent looks.

They belong to no catalogue and to no name; search finds them when it is asked to. A folder there
may bear a number (`notes~2`), when one of its name was archived before.
"""

import os
from typing import TYPE_CHECKING

from tacit.skills import index
from tacit.skills.index import Snapshot
from tacit.skills.scopes import Root

if TYPE_CHECKING:
    from tacit.skills.library import Entry, Library

FOLDER = ".archive"


def snapshots(library: "Library") -> list[tuple[Root, Snapshot]]:
    """What lies in the archives of a library's own folders; not of those that are not trusted."""
    found = []
    for root in library.roots:
        path = os.path.join(root.path, FOLDER)
        if root.trusted and os.path.isdir(path):
            there = Root(path, root.scope, root.host, project=root.project)
            found.append((there, index.load(path, library.cache)))
    return found


def entries(archives: list[tuple[Root, Snapshot]]) -> "list[Entry]":
    """Every archived skill, as the library would list it."""
    from tacit.skills.library import entry_of

    return [
        entry_of(root, row, "archived", os.path.join(root.path, row[index.FOLDER]), ())
        for root, snapshot in archives
        for row in snapshot.rows
    ]


def find(library: "Library", name: str) -> "list[Entry]":
    """The archived skills called `name`, by their own name or their folder's, the newest first."""
    wanted = name.split("~", 1)[0]
    found = [
        entry
        for entry in entries(snapshots(library))
        if name in (entry.name, os.path.basename(entry.folder))
        or wanted == os.path.basename(entry.folder).split("~", 1)[0]
    ]
    return sorted(found, key=lambda entry: (len(entry.folder), entry.folder), reverse=True)
