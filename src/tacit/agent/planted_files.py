"""What a command made where it may make nothing, found after it has ended and taken away again.

Nothing can be mounted where nothing is, so a path that did not exist is watched instead: skill
folders, git's hooks and settings, files that other agents and editors obey, a repository that would
run programs, and links that were exchanged. What was moved there from elsewhere in the project, as
it was, stays. What is taken away lies in the session's own folder.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress

from tacit.agent.off_limits import CommandRules, Guards, is_obeyed_path, parents_of
from tacit.agent.project_survey import (
    repository_folders,
    runs_by_itself,
    survey,
)
from tacit.base.atomic_files import CREATE_FILE, OPEN_FILE
from tacit.base.errors import Refused
from tacit.base.paths import is_inside, walk_folders
from tacit.changes.containment import Escape, Folder, remove_tree

# In a git directory below the top; git itself makes none of these in daily work.
_NEVER_MADE = ("hooks", "config", "config.worktree", "commondir", "gitdir")


class Watch:
    """The project before a command; `take_away` looks again after it."""

    def __init__(self, rules: CommandRules, guards: Guards) -> None:
        self._rules = rules
        self._own = os.path.join(rules.project, ".git")
        watched = (*guards.firm, self._own)
        self._missing = [path for path in watched if not os.path.lexists(path)]
        self._before = guards.found
        self._obeyed = set(guards.found.obeyed)
        self._links = {link: os.readlink(link) for link in self._links_to(guards.names)}
        places = (*self._before.obeyed, *self._before.repositories)
        real = {os.path.realpath(path) for path in places if os.path.exists(path)}
        self._known = {_identity(path) for path in real.union(places, map(_hop, places))}
        self._mounted = {path: _identity(os.path.dirname(path)) for path in real}
        self._absent = [
            f"{folder}/{name}"
            for place in self._before.repositories
            for folder in repository_folders(place)
            for name in _NEVER_MADE
            if is_inside(folder, rules.project) and not os.path.lexists(f"{folder}/{name}")
        ]

    def take_away(self) -> tuple[str, ...]:
        """Move out what may not be there; the names of what was moved, below the project.

        Raises `Refused` for what stays in spite of that; all the rest is moved before.
        """
        if self._rules.read_only_project:
            return ()
        self._open_up()
        taken: list[str] = []
        stays: dict[str, str] = {}
        for path in self._exchanged():
            self._try(path, lambda path: taken.append(self._take(path)), stays)
        for path in self._links:
            self._try(path, self._put_back, stays)
        for path in sorted(self._appeared()):
            self._try(path, lambda path: taken.append(self._take(path)), stays)
        for path, why in stays.items():
            raise Refused(
                f"{path} was made by the command, may not be there and cannot be moved out: {why}",
                "look at it, and remove it or give yourself the right to",
            )
        return tuple(taken)

    def _try(self, path: str, act: Callable[[str], None], stays: dict[str, str]) -> None:
        try:
            act(path)
        except FileNotFoundError:  # a command of another session was there first
            pass
        except OSError as error:
            stays[path] = error.strerror or str(error)
        except Escape as escape:
            stays[path] = escape.refusal.reason

    def _put_back(self, link: str) -> None:
        above = os.path.dirname(link)
        if not os.path.lexists(link) and os.path.isdir(above) and self._is_ours(above):
            with self._folder(above) as folder:
                os.symlink(self._links[link], os.path.basename(link), dir_fd=folder.fd)

    def _open_up(self) -> None:
        """Open the folders that the command closed; what was closed before, it never saw."""
        tried = set(self._before.closed)
        while closed := set(survey(self._rules.project).closed) - tried:
            tried |= closed
            for path in closed:
                with suppress(OSError, Escape):  # another's, or gone
                    self._folder(path).close()

    def _folder(self, path: str) -> Folder:
        """The folder at `path`, by its real place in the project, open to its owner. A command of
        another session may exchange folders meanwhile: the handle stays what was looked at."""
        below = os.path.relpath(os.path.realpath(path), self._rules.project)
        mode = stat.S_IMODE(os.stat(self._rules.project).st_mode)
        if mode & 0o700 != 0o700:
            with suppress(PermissionError):  # another's
                os.chmod(self._rules.project, mode | 0o700)
        with Folder.at(self._rules.project) as top:
            return top.descend([] if below == os.curdir else below.split(os.sep), freely=True)

    def _appeared(self) -> Iterator[str]:
        """What is new at a guarded place. A folder comes with all that lies in it."""
        now = survey(self._rules.project, self._rules.working_folders)
        new = [path for path in now.repositories if _identity(path) not in self._known]
        for path in filter(runs_by_itself, new):
            # A folder that is laid out like a repository may hold all the user's work.
            yield path if os.path.basename(path) == ".git" else f"{path}/HEAD"
        harmless = self._own if self._own in new and not runs_by_itself(self._own) else ""
        for path in (*self._missing, *self._absent):
            if os.path.lexists(path) and not (harmless and is_inside(path, harmless)):
                yield path
        for path in now.obeyed:
            there = path in self._obeyed
            real = os.path.realpath(path) if there else path  # of a new link, the link itself
            if there and self._mounted.get(real) == _identity(os.path.dirname(real)):
                continue  # mounted, so that only somebody outside can have changed it
            if not is_inside(real, self._rules.project):
                real = _hop(path)
            if _identity(real) in self._known or not is_inside(real, self._rules.project):
                continue
            yield from (real if taken == path else taken for taken in self._not_allowed(path))

    def _not_allowed(self, path: str) -> Iterator[str]:
        """`path`, or where the user allows a file in that folder, all other files in it."""
        if not is_obeyed_path(path, self._rules):
            return
        allowed = (os.path.join(self._rules.project, name) for name in self._rules.allow_write)
        if not any(is_inside(each, path) for each in allowed):
            yield path
            return
        for here, _, names in walk_folders(path):
            files = (os.path.join(here, name) for name in names)
            yield from (file for file in files if is_obeyed_path(file, self._rules))

    def _exchanged(self) -> list[str]:
        """Links on the way to what is guarded that are another file or lead elsewhere now."""
        return [
            path
            for path, target in self._links.items()
            if os.path.lexists(path) and not (os.path.islink(path) and os.readlink(path) == target)
        ]

    def _links_to(self, names: list[str]) -> Iterator[str]:
        for name in (*names, self._own):
            for path in (*parents_of(name, self._rules.project), name):
                if os.path.islink(path):
                    yield path
        for path in self._obeyed:
            if os.path.islink(path) and is_obeyed_path(path, self._rules):
                yield path

    def _is_ours(self, folder: str) -> bool:
        return is_inside(os.path.realpath(folder), self._rules.project)

    def _take(self, path: str) -> str:
        """Move `path` out, or the link above it by which it lies outside the project."""
        ways = parents_of(path, self._rules.project)
        path = next((above for above in ways if not self._is_ours(above)), path)
        name = os.path.basename(path)
        with self._folder(os.path.dirname(path)) as folder:
            if folder.status(name) is None:
                raise FileNotFoundError
            with suppress(OSError, Escape, RecursionError):
                self._keep(folder, name)
            remove_tree(folder, name)  # what could not be kept
        return os.path.relpath(path, self._rules.project)

    def _keep(self, folder: Folder, name: str) -> None:
        """Move what `name` is into the session's own folder, which the command may have closed."""
        os.chmod(self._rules.temporary, 0o700)
        # A folder that a command made may lead anywhere, so each goes into a new one.
        bin_ = tempfile.mkdtemp(prefix="taken-away-", dir=self._rules.temporary)
        with Folder.at(bin_) as target:
            with suppress(Escape):
                folder.open(name, freely=True).close()  # else it could not be moved
            try:
                os.rename(name, name, src_dir_fd=folder.fd, dst_dir_fd=target.fd)
            except OSError:  # another disk
                _copy(folder, name, target)


def _copy(folder: Folder, name: str, target: Folder) -> None:
    """Copy `name` and what is below it, links as they are; pipes and the like are left out."""
    status = folder.status(name)
    kind = stat.S_IFMT(status.st_mode) if status else 0
    if kind == stat.S_IFLNK:
        os.symlink(os.readlink(name, dir_fd=folder.fd), name, dir_fd=target.fd)
    elif kind == stat.S_IFDIR:
        with folder.open(name, freely=True) as here, target.open(name, make=True) as there:
            for child in here.names():
                _copy(here, child, there)
    elif kind == stat.S_IFREG:
        with (
            open(os.open(name, OPEN_FILE, dir_fd=folder.fd), "rb") as source,
            open(os.open(name, CREATE_FILE, 0o600, dir_fd=target.fd), "wb") as copy,
        ):
            shutil.copyfileobj(source, copy)


def _hop(path: str) -> str:
    """Where a link leads first, which may be another link; any other path as it is."""
    if not os.path.islink(path):
        return path
    return os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def _identity(path: str) -> tuple[object, ...]:
    """What tells a file or folder from another, wherever it is moved to; a link by its target."""
    try:
        status = os.lstat(path)
        if os.path.islink(path):
            target = os.path.realpath(path)
            held = os.stat(target) if os.path.exists(target) else None
            return os.readlink(path), held and (held.st_ino, held.st_size, held.st_mtime_ns)
    except OSError:
        return ()
    if os.path.isdir(path):
        return status.st_dev, status.st_ino
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
