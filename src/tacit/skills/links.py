"""Links to learned skills, for agents that do not read `.agents/skills`.

Most agents read that folder themselves. Claude Code reads only `.claude/skills`, so it gets a
relative link for each learned skill, never a copy, in the user's folder and in trusted projects. A
link is made only where nothing is, recorded, and removed only while it is still as it was made.
When links are made is `work/`'s decision.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import locked, missing_folders, write_atomic
from tacit.base.errors import Unwritable
from tacit.skills.library import Entry, Library
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
    """Where something of the user's has the name."""


def linked_hosts() -> list[str]:
    """The hosts that do not read `.agents/skills` and follow links."""
    return [place.host for place in host_folders() if place.linked]


def link_into(host: str, cwd: str | None = None) -> Linked:
    """Link every learned skill into the host's folders; twice is the same as once."""
    if host not in linked_hosts():
        return Linked()
    with _lock():
        known = set(_load())
        removed = [link for link in known if link.host == host and _drop_dangling(link)]
        known = {link for link in known if link not in removed and _is_as_made(link)}
        known = _pass_on(_remove_empty(removed), known)
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
            if _is_as_made(link):
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


def _pass_on(folders: list[str], links: set[Link]) -> set[Link]:
    """`links`, one of which in each of `folders` now answers for it."""
    found = sorted(links)
    for folder in folders:
        for i, link in enumerate(found):
            if link.path.startswith(folder + os.sep):
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


def _is_as_made(link: Link) -> bool:
    try:
        return os.readlink(link.path) == link.target
    except OSError:
        return False


def _drop_dangling(link: Link) -> bool:
    """Remove a link that leads nowhere; one that the user replaced is theirs now."""
    if not _is_as_made(link) or os.path.exists(link.path):
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
