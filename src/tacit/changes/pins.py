"""Which skills the user has pinned, over all places that can be reached.

Apart from `history`, because `tacit catalogue` asks for it in a process that loads next to
nothing: where no change was ever made, a look for one folder answers.
"""

import os

from tacit.base import paths


def pinned_skills(cwd: str | None = None) -> tuple[str, ...]:
    """The names of the pinned skills, by name; no process is started where nothing ever changed."""
    data = paths.folders().data
    if not os.path.isdir(os.path.join(data, "history")):
        return ()
    from tacit.changes.history import History
    from tacit.changes.place import places_here

    names: set[str] = set()
    for place in places_here(cwd):
        history = History(place, data)
        if os.path.isdir(history.folder):
            names.update(folder.rpartition("/")[2] for folder in history.pinned())
    return tuple(sorted(names))
