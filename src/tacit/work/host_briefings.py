"""What connected agents are told as a session begins, kept in step with facts and learned skills.

Facts, and, with `learn.holdback`, the learned skills for which a session draws lots. Written by
project into the data folder, so that the hook has small files to read; see `base/briefing.py`.
Whether an agent is told facts at all stands in its own settings, by `tacit connect`.
"""

import os

import msgspec

from tacit.agent.instructions import facts_for_agents
from tacit.base import briefing, paths
from tacit.base.errors import TacitError
from tacit.base.settings import load_settings


def prepare(cwd: str) -> None:
    """Write what is told in the project of `cwd`, and in each other checkout of its repository.

    Never raises: agents are then told what they were told before.
    """
    data, project = paths.folders().data, paths.project_root(cwd)
    try:
        if paths.is_home(project):
            _put(data, briefing.EVERYWHERE, paths.user_home())
            return
        for checkout in paths.checkouts(project):
            _put(data, checkout, checkout)
    except (TacitError, OSError):
        return


def follow(above: str) -> None:
    """Something changed in the folder `above`: what is the user's counts everywhere, a project's
    there."""
    if not paths.is_home(above):
        prepare(above)
        return
    prepare(paths.user_home())
    for project in briefing.projects(paths.folders().data):
        if os.path.isdir(project):
            prepare(project)


def _put(data: str, project: str, cwd: str) -> None:
    settings = load_settings(cwd).settings
    briefing.put(data, project, facts_for_agents(cwd, settings.memory))
    lots = ""
    if share := settings.learn.holdback:
        from tacit.skills.holdback import learned_in
        from tacit.skills.library import Library

        known = {"share": share, "skills": learned_in(Library(cwd, settings))}
        lots = msgspec.json.encode(known).decode()
    if lots != briefing.read(data, cwd, briefing.LOTS):
        briefing.put(data, project, lots, briefing.LOTS)
