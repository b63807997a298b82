"""What connected agents are told of facts as a session begins, kept in step with the facts.

Written by project into the data folder, so that the hook has one small file to read; see
`base/briefing.py`. Whether an agent is told at all stands in its own settings, by `tacit connect`.
"""

import os

from tacit.agent.instructions import facts_for_agents
from tacit.base import briefing, paths
from tacit.base.errors import TacitError
from tacit.base.settings import load_settings
from tacit.changes.change import Applied
from tacit.skills.fact import MEMORY_FOLDER


def prepare(cwd: str) -> None:
    """Write what is told in the project of `cwd`, and in each other checkout of its repository.

    Never raises: agents are then told what they were told before.
    """
    data, project = paths.folders().data, paths.project_root(cwd)
    try:
        if paths.is_home(project):
            briefing.put(data, briefing.EVERYWHERE, _text(paths.user_home()))
            return
        for checkout in paths.checkouts(project):
            briefing.put(data, checkout, _text(checkout))
    except (TacitError, OSError):
        return


def follow(applied: Applied) -> None:
    """A fact has changed: one of the user's is told everywhere, a project's there."""
    above = applied.place.removesuffix(os.sep + MEMORY_FOLDER)
    if not paths.is_home(above):
        prepare(above)
        return
    prepare(paths.user_home())
    for project in briefing.projects(paths.folders().data):
        if os.path.isdir(project):
            prepare(project)


def _text(cwd: str) -> str:
    return facts_for_agents(cwd, load_settings(cwd).settings.memory)
