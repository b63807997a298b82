"""Links to learned skills, for agents that do not read `.agents/skills`, kept in step with it.

Most agents read that folder themselves. Claude Code reads only `.claude/skills`, so it gets a
relative link for each learned skill, never a copy, in the user's folder and in trusted projects. A
link is made only where nothing is, recorded, and removed only while it is still as it was made.
Links are brought up to date at connecting and after each change that landed. One in a project stays
out of `git status`, like the skill that it leads to.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import locked, missing_folders, write_atomic
from tacit.base.errors import Unwritable
from tacit.base.event_bus import bus
from tacit.changes import git_exclude
from tacit.changes.change import Applied
from tacit.changes.place import SHARED
from tacit.skills.library import Entry, Library
from tacit.traces import host_registry
from tacit.traces.host_folders import SHARED_FOLDERS, host_folders


class Link(msgspec.Struct, frozen=True, order=True):
    """A link that was made: where, and what it says."""

    host: str
    path: str
    target: str
    folders: tuple[str, ...] = ()
    """Folders that were made for it, outermost first."""


class Linked(msgspec.Struct, frozen=True):
    """What `link_into` did, by the paths of the links."""

    made: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Links of ours that led nowhere any more."""
    in_the_way: tuple[str, ...] = ()
    """Where something of the user's has the name already."""


def link(host: str, cwd: str | None = None) -> Linked:
    """Link what was learned for `host`, from the user's skills and those of the project of `cwd`.

    Can be repeated without harm.
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
    """From now on, links follow each change that lands in this process. May be repeated."""
    bus.subscribe_once(Applied, _follow)


def _follow(applied: Applied) -> None:
    """Bring the links up to date, as seen from where the change was made."""
    above = applied.place.removesuffix(os.sep + SHARED)
    if above == applied.place:  # not a folder of ours
        return
    for host in linked_hosts():
        connector = host_registry.get(host).connector()
        if connector is not None and connector.calls():
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


def linked_hosts() -> list[str]:
    """The hosts that do not read `.agents/skills` and follow links."""
    return [place.host for place in host_folders() if place.linked]


def link_into(host: str, cwd: str | None = None) -> Linked:
    """Link every learned skill into the host's folders, whatever git sees of it."""
    if host not in linked_hosts():
        return Linked()
    with _lock():
        known = set(_load())
        removed = [link for link in known if link.host == host and _drop_dangling(link)]
        known = {link for link in known if link not in removed and _is_unchanged(link)}
        known = _hand_over_folders(_remove_empty(removed), known)
        made, in_the_way = [], []
        for folder, entry in _wanted(host, cwd or os.getcwd()):
            path = os.path.join(folder, os.path.basename(entry.folder))
            target = os.path.relpath(os.path.realpath(entry.folder), os.path.realpath(folder))
            if not os.path.lexists(path):
                known.add(_make(Link(host, path, target)))
                made.append(path)
            elif os.path.realpath(path) != os.path.realpath(entry.folder):
                in_the_way.append(path)
        _save(known)
    gone = tuple(sorted(link.path for link in removed if not os.path.lexists(link.path)))
    return Linked(tuple(sorted(made)), gone, tuple(sorted(in_the_way)))


def unlink_from(host: str) -> tuple[str, ...]:
    """Remove every link that was made for `host` and is still as it was made."""
    with _lock():
        known = _load()
        ours = [link for link in known if link.host == host]
        gone = []
        for link in ours:
            if _is_unchanged(link):
                os.unlink(link.path)
                gone.append(link.path)
        _remove_empty(ours)
        _save({link for link in known if link.host != host})
    return tuple(sorted(gone))


def _remove_empty(links: list[Link]) -> list[str]:
    """Remove the folders that were made for `links`; those that hold something now stay."""
    stay = []
    for folder in sorted({f for link in links for f in link.folders}, reverse=True):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            stay.append(folder)
    return stay


def _hand_over_folders(folders: list[str], links: set[Link]) -> set[Link]:
    """`links`, where one in each of `folders` now has it among those that go with it."""
    found = sorted(links)
    for folder in folders:
        for i, link in enumerate(found):
            if paths.is_inside(link.path, folder):
                every = tuple(sorted({*link.folders, folder}))
                found[i] = msgspec.structs.replace(link, folders=every)
                break
    return set(found)


def _wanted(host: str, cwd: str) -> Iterator[tuple[str, Entry]]:
    """Each learned skill in a shared folder, and the host's folder beside it."""
    place = next(place for place in host_folders() if place.host == host)
    user = place.user_folders(paths.user_home())[0]
    for entry in Library(cwd).entries:
        if (
            entry.origin != "learned"
            or entry.host != SHARED_FOLDERS.host
            or entry.state == "untrusted"
        ):
            continue
        if entry.scope == "user":
            folder = user
        else:
            above = entry.root.removesuffix(os.sep + SHARED_FOLDERS.project[0])
            folder = os.path.join(above, place.project[0])
        if os.path.realpath(folder) != os.path.realpath(entry.root):  # linked as a whole already
            yield folder, entry


def _make(link: Link) -> Link:
    folder = os.path.dirname(link.path)
    link = msgspec.structs.replace(link, folders=missing_folders(folder))
    try:
        os.makedirs(folder, exist_ok=True)
        os.symlink(link.target, link.path)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unwritable(
            f"cannot make the link {link.path}: {error.strerror}",
            "check the permissions of that folder",
        ) from error
    return link


def _is_unchanged(link: Link) -> bool:
    try:
        return os.readlink(link.path) == link.target
    except OSError:
        return False


def _drop_dangling(link: Link) -> bool:
    """Remove a link that leads nowhere; one that the user replaced is theirs now."""
    if not _is_unchanged(link) or os.path.exists(link.path):
        return False
    os.unlink(link.path)
    return True


def _file() -> str:
    return os.path.join(paths.folders().data, "links.json")


def _load() -> list[Link]:
    try:
        with open(_file(), "rb") as file:
            return msgspec.json.decode(file.read(), type=list[Link])
    except (OSError, msgspec.DecodeError):
        return []


def _save(links: set[Link]) -> None:
    if links or os.path.exists(_file()):
        write_atomic(_file(), msgspec.json.encode(sorted(links)))


def _lock() -> AbstractContextManager[None]:
    return locked(_file() + ".lock", what="the list of links")
