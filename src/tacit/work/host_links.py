"""Links to learned skills, for agents that do not read them where they lie, kept in step with them.

Most agents read `.agents/skills` themselves. Claude Code reads only `.claude/skills`, so it gets a
relative link for each skill that was learned or made with Tacit, never a copy, in the user's folder
and in projects, and one for the bundled skill by which it does reviews itself. pi and Hermes pass
over a project's folders, so what counts in a project is linked into a folder of ours by the
project's path. Every checkout of a repository gets links to the skills of the others. A link is
made only where nothing is, recorded, and removed when what it leads to counts no more, while it is
still as it was made. Links are brought up to date at connecting, after each change that landed and
after each session. One in a project stays out of `git status`, like the skill that it leads to.
"""

import os
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import locked, missing_folders, write_atomic
from tacit.base.errors import Unwritable
from tacit.base.event_bus import bus
from tacit.base.settings import load_settings
from tacit.changes import git_exclude
from tacit.changes.change import Applied
from tacit.changes.git_store import skill_ref
from tacit.changes.history import History
from tacit.changes.place import SHARED, Place
from tacit.skills.fact import MEMORY_FOLDER
from tacit.skills.library import Entry, Library
from tacit.skills.scopes import BUNDLED_SKILLS
from tacit.traces.host_folders import SHARED_FOLDERS, HostFolders, host_folders


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
    _link_guide(host)
    _keep_private(linked.made, hidden=True)
    _keep_private(linked.removed, hidden=False)
    return linked


def unlink(host: str) -> tuple[str, ...]:
    """Take every link for `host` away, except those that another connected agent needs."""
    others = [other for other in connected_hosts() if other != host]
    needed = {kind for other in others for kind in _kinds(other)}
    gone = tuple(path for kind in _kinds(host) if kind not in needed for path in unlink_from(kind))
    gone += unlink_from(f"{GUIDE}:{host}")
    _keep_private(gone, hidden=False)
    return gone


def listen() -> None:
    """From now on, links follow each change that lands in this process. May be repeated."""
    bus.subscribe_once(Applied, _follow)


def keep_up(cwd: str) -> None:
    """Bring links and briefings up to date in the project of `cwd`. Raises `Unwritable`."""
    from tacit.work import host_briefings

    for host in connected_hosts():
        link(host, cwd)
    host_briefings.prepare(cwd)


def _follow(applied: Applied) -> None:
    """Bring the links up to date, as seen from where the change was made."""
    from tacit.work import host_briefings

    if applied.noun == "fact":
        host_briefings.follow(applied.place.removesuffix(os.sep + MEMORY_FOLDER))
        return
    above = applied.place.removesuffix(os.sep + SHARED)
    if above == applied.place:  # not a folder of ours
        return
    for host in connected_hosts():
        link(host, above)
    if load_settings().settings.learn.holdback:
        host_briefings.follow(above)


def connected_hosts() -> list[str]:
    """The agents that are connected, by the names of their hosts.

    Of those that need no links of their own only such as were connected from here: loading every
    host would take longer than all the rest.
    """
    from tacit.traces import host_registry
    from tacit.traces.connection import load_records

    known = load_records()
    found = []
    for place in host_folders()[1:]:
        if place.linked or place.host in known:
            connector = host_registry.get(place.host).connector()
            if connector is not None and connector.calls():
                found.append(place.host)
    return found


def _keep_private(links: tuple[str, ...], *, hidden: bool) -> None:
    folders = paths.folders()
    for path in links:
        if not _is_users(path) and not paths.is_inside(path, paths.folders().data):
            (git_exclude.hide_link if hidden else git_exclude.show_link)(path, folders.data)


def _is_users(path: str) -> bool:
    """Whether a link lies in the user's own folder for an agent, as `~/.claude/skills`."""
    above = os.path.dirname(os.path.dirname(os.path.dirname(path)))
    return paths.is_home(above)


GUIDE = "learn-from-sessions"
"""The bundled skill by which an agent reviews sessions that are handed over to it."""
_SHOWN = "shown"
"""The links for agents that pass over a project's folders, in place of a host's name."""


def _kinds(host: str) -> list[str]:
    """Whose links `host` needs: its own, those of the folder of ours, or those of `.agents/skills`
    in other checkouts."""
    for place in host_folders():
        if place.host == host:
            return [host if place.linked else _SHOWN if place.apart else SHARED_FOLDERS.host]
    return []


def link_into(host: str, cwd: str | None = None) -> Linked:
    """Link every skill that `host` would not find, whatever git sees of it."""
    linked = [_link_kind(kind, cwd or os.getcwd()) for kind in _kinds(host)]
    return linked[0] if linked else Linked()


def _link_guide(host: str) -> None:
    """Show `host` how to do reviews, where it follows links; what the user has there stays."""
    place = next((place for place in host_folders() if place.host == host), SHARED_FOLDERS)
    folder, shared = (p.user_folders(paths.user_home())[0] for p in (place, SHARED_FOLDERS))
    if not place.linked or os.path.realpath(folder) == os.path.realpath(shared):
        return
    path = os.path.join(folder, GUIDE)
    guide = os.path.realpath(os.path.join(BUNDLED_SKILLS, GUIDE))
    with _lock():
        known = set(_load())
        moved = {link for link in known if link.path == path and _is_dangling(link)}
        for old in moved:
            os.unlink(old.path)
        if not os.path.lexists(path):
            target = os.path.relpath(guide, os.path.realpath(folder))
            _save(known - moved | {_make(Link(f"{GUIDE}:{host}", path, target))})


def _link_kind(kind: str, cwd: str) -> Linked:
    library = Library(cwd)
    with _lock():
        known = set(_load())
        wanted = dict(_wanted(kind, library))
        removed = [link for link in known if link.host == kind and _drop(link, library, wanted)]
        known = {link for link in known if link not in removed and _is_unchanged(link)}
        known = _hand_over_folders(_remove_empty(removed), known)
        made, in_the_way = [], []
        for path, entry in wanted.items():
            folder = os.path.dirname(path)
            target = os.path.relpath(os.path.realpath(entry.folder), os.path.realpath(folder))
            if not os.path.lexists(path):
                known.add(_make(Link(kind, path, target)))
                made.append(path)
            elif os.path.realpath(path) != os.path.realpath(entry.folder):
                in_the_way.append(path)
        _save(known)
    gone = tuple(sorted(link.path for link in removed if not os.path.lexists(link.path)))
    return Linked(tuple(sorted(made)), gone, tuple(sorted(in_the_way)))


def unlink_from(kind: str) -> tuple[str, ...]:
    """Remove every link of this kind that is still as it was made."""
    with _lock():
        known = _load()
        ours = [link for link in known if link.host == kind]
        gone = []
        for link in ours:
            if _is_unchanged(link):
                os.unlink(link.path)
                gone.append(link.path)
        _remove_empty(ours)
        _save({link for link in known if link.host != kind})
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


def _wanted(kind: str, library: Library) -> Iterator[tuple[str, Entry]]:
    """Where each skill is to be linked. In a name that two skills have, the first wins."""
    place = next((place for place in host_folders() if place.host == kind), SHARED_FOLDERS)
    user = place.user_folders(paths.user_home())[0]
    taken = set()
    for entry in library.entries:
        if entry.host != SHARED_FOLDERS.host or entry.state == "untrusted":
            continue
        if kind != _SHOWN and entry.origin != "learned" and not _was_made_here(entry):
            continue
        for folder in _folders_for(kind, place, user, entry):
            path = os.path.join(folder, os.path.basename(entry.folder))
            # A folder may be linked as a whole already.
            if path not in taken and os.path.realpath(folder) != os.path.realpath(entry.root):
                taken.add(path)
                yield path, entry


def _folders_for(kind: str, place: HostFolders, user: str, entry: Entry) -> list[str]:
    """The folders of one kind in which `entry` is to be found."""
    if entry.scope != "project":
        return [user] if place.linked and entry.scope == "user" else []
    above = entry.root.removesuffix(os.sep + SHARED_FOLDERS.project[0])
    if kind == _SHOWN:
        from tacit.traces.plugin import shown_folder

        return [shown_folder(checkout) for checkout in paths.checkouts(above)]
    others = paths.checkouts(above)[1:]
    every = [above, *others] if place.linked else others
    found = ((checkout, os.path.join(checkout, place.project[0])) for checkout in every)
    # A clone may carry a link that would put its skills among the user's own.
    return [f for top, f in found if paths.is_inside(os.path.realpath(f), os.path.realpath(top))]


def _was_made_here(entry: Entry) -> bool:
    """Whether the gate knows the skill: it was made, accepted or edited with Tacit."""
    history = History(Place(entry.root), paths.folders().data)
    return history.objects.is_made() and bool(history.refs.get(skill_ref(entry.relative_folder)))


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


def _is_dangling(link: Link) -> bool:
    return _is_unchanged(link) and not os.path.exists(link.path)


def _drop(link: Link, library: Library, wanted: Container[str]) -> bool:
    """Remove a link that leads nowhere, or to what this library has and does not want linked.

    One that the user replaced is theirs now.
    """
    if not _is_unchanged(link):
        return False
    real = os.path.realpath(link.path)
    here = any(paths.is_inside(real, os.path.realpath(root.path)) for root in library.roots)
    if os.path.exists(link.path) and (link.path in wanted or not here):
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
