"""Keeping an agent's links to learned skills up to date with the library.

`skills/links.py` makes and removes links; this module decides when: at connecting, and after
each change that landed. A link in a project stays out of `git status`, like the skill that it
leads to.
"""

import os

from tacit.base import paths
from tacit.base.event_bus import bus
from tacit.changes import git_exclude
from tacit.changes.change import Applied
from tacit.changes.place import SHARED
from tacit.skills.links import LINKED_HOSTS, Linked, link_into, unlink_from
from tacit.traces.connection import CONNECTORS


def link(host: str, cwd: str | None = None) -> Linked:
    """Link what was learned for `host`, from the user's skills and those of the project of `cwd`.

    Calling it again changes nothing.
    """
    linked = link_into(host, cwd)
    _keep_private(linked.made, hidden=True)
    _keep_private(linked.removed, hidden=False)
    return linked


def unlink(host: str) -> tuple[str, ...]:
    """Take every link for `host` away."""
    gone = unlink_from(host)
    _keep_private(gone, hidden=False)
    return gone


def listen() -> None:
    """From now on, links follow each change that lands in this process. Safe to call again."""
    bus.subscribe_once(Applied, _follow)


def _follow(applied: Applied) -> None:
    """Look at the links again, as seen from where the change was made."""
    above = applied.place.removesuffix(os.sep + SHARED)
    if above == applied.place:  # not a folder of ours
        return
    for host in LINKED_HOSTS:
        if CONNECTORS[host].calls():
            link(host, above)


def _keep_private(links: tuple[str, ...], *, hidden: bool) -> None:
    folders = paths.folders()
    for path in links:
        if not _is_users(path):
            (git_exclude.hide_link if hidden else git_exclude.show_link)(path, folders.data)


def _is_users(path: str) -> bool:
    """Whether a link lies in the user's own folder for an agent, as `~/.claude/skills`."""
    above = os.path.dirname(os.path.dirname(os.path.dirname(path)))
    return paths.is_home(above)
