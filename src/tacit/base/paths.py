"""Tacit's own folders, the project that a folder belongs to, and paths as people write them.

The hook and every command import this first, so it holds plain strings and imports os and sys
only: pathlib alone costs as much as a bare interpreter start.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A folder that holds one of these is the root of a project.
PROJECT_MARKS = (".git", ".hg", ".jj", ".tacit")

SHARED_SKILLS = ".agents/skills"
"""The skill folder that most agents share: in a project, and in the user's home."""

# The variables that are not settings of a section.
RESERVED = ("TACIT_HOME", "TACIT_DATABASE_URL", "TACIT_WORKER", "TACIT_DEBUG", "TACIT_PAGER")


class Folders:
    """Tacit's own folders. `TACIT_HOME` moves all of them."""

    __slots__ = ("cache", "config", "data", "home")

    def __init__(self, home: str, config: str, data: str, cache: str) -> None:
        self.home = home
        self.config = config
        self.data = data
        self.cache = cache

    @property
    def config_file(self) -> str:
        return os.path.join(self.config, "config.toml")


def user_home() -> str:
    return os.path.expanduser("~")


def is_home(folder: str) -> bool:
    """Whether `folder` is the user's home, also when `HOME` names it through a link."""
    home = user_home()
    return folder == home or os.path.realpath(folder) == os.path.realpath(home)


def folders() -> Folders:
    """The folders for this user, by the environment; nothing is created."""
    home = user_home()
    base = os.environ.get("TACIT_HOME")
    if base:
        base = os.path.abspath(os.path.expanduser(base))
        return Folders(
            home,
            os.path.join(base, "config"),
            os.path.join(base, "data"),
            os.path.join(base, "cache"),
        )
    if sys.platform.startswith(
        "linux"
    ):  # what platformdirs answers there, without its 20 ms import
        return Folders(
            home,
            _xdg("XDG_CONFIG_HOME", home, ".config"),
            _xdg("XDG_DATA_HOME", home, ".local/share"),
            _xdg("XDG_CACHE_HOME", home, ".cache"),
        )
    from platformdirs import user_cache_dir, user_config_dir, user_data_dir

    return Folders(
        home,
        user_config_dir("tacit", appauthor=False),
        user_data_dir("tacit", appauthor=False),
        user_cache_dir("tacit", appauthor=False),
    )


def _xdg(variable: str, home: str, default: str) -> str:
    value = os.environ.get(variable, "").strip()
    return os.path.join(value or os.path.join(home, default), "tacit")


def make_private(folder: str) -> None:
    """Make `folder`, unless it is there. Raises OSError.

    What lies above it in a folder of Tacit's own is the user's alone too, whatever is made there
    first: the mode of `os.makedirs` holds for the last folder only.
    """
    own = folders()
    full = os.path.abspath(folder)
    for top in (own.data, own.cache, own.config):
        if is_inside(full, top):
            if not os.path.isdir(full):
                for above in reversed(upwards(full, top)):
                    _make(above)
            status = os.stat(top)
            if status.st_mode & 0o077 and status.st_uid == os.getuid():
                os.chmod(top, 0o700)
    _make(folder)


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except FileExistsError as error:
        leads = f"a link to {os.readlink(folder)}, where none is" if os.path.islink(folder) else ""
        what = f"{folder} is {leads or 'a file'}, and no folder"
        raise NotADirectoryError(error.errno, what) from None


def project_root(start: str) -> str:
    """The project that `start` lies in: the nearest folder above with a mark, else `start` itself.

    The user's home never counts as a project: its skill folders are the user's.
    """
    start = os.path.abspath(start)
    home = user_home()
    homes = (home, os.path.realpath(home))
    here = start
    while True:
        if here in homes:
            return start
        if has_mark(here):
            return here
        parent = os.path.dirname(here)
        if here == parent:
            return start
        here = parent


def has_mark(folder: str) -> bool:
    """Whether something in `folder` says that it is the top of a project."""
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in PROJECT_MARKS)


def checkouts(folder: str) -> list[str]:
    """The real path of `folder`, then the other checkouts of its project's repository, the main
    one first.

    A checkout counts only if it and the repository name each other: a folder that merely says that
    it belongs to a repository, as an unpacked archive may, does not.
    """
    real = os.path.realpath(folder)
    project = project_root(real)
    git = os.path.join(project, ".git")
    if entry := _git_link(project):  # REPOSITORY/worktrees/NAME
        repository, kind = os.path.split(os.path.dirname(entry))
        if kind != "worktrees" or _worktree(entry) != project:
            return [real]
    elif os.path.islink(git):  # it would borrow another's checkouts
        return [real]
    else:
        repository = git
    main, name = os.path.split(repository)
    listed = os.path.join(repository, "worktrees")
    others = [_worktree(os.path.join(listed, name)) for name in _names(listed)]
    every = [main, *others] if name == ".git" else others
    return [real, *(path for path in every if path not in ("", project))]


def main_checkout(project: str) -> str:
    """The main checkout of the repository that `project` is a checkout of; else `project`.

    What is private to a project is kept there: the others come and go.
    """
    others = checkouts(project)[1:] if os.path.isfile(os.path.join(project, ".git")) else []
    return next((path for path in others if os.path.isdir(os.path.join(path, ".git"))), project)


def _worktree(entry: str) -> str:
    """The checkout of an entry in a repository, if that names the entry too; else empty."""
    found = _first_line(os.path.join(entry, "gitdir"))
    path = os.path.realpath(os.path.dirname(os.path.join(entry, found))) if found else ""
    return path if path and _git_link(path) == os.path.realpath(entry) else ""


def _git_link(project: str) -> str:
    """Where the `.git` file of `project` leads; empty where it is a folder, or not there."""
    found = _first_line(os.path.join(project, ".git")).partition("gitdir: ")[2]
    return os.path.realpath(os.path.join(project, found)) if found else ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).rstrip("\n")
    except OSError:
        return ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def upwards(start: str, root: str) -> list[str]:
    """The folders from `start` up to and with `root`, nearest first."""
    found = []
    here = os.path.abspath(start)
    while True:
        found.append(here)
        parent = os.path.dirname(here)
        if here in (root, parent):
            return found
        here = parent


def config_files(cwd: str) -> list[str]:
    """The configuration files that exist and could apply in `cwd`, the user's first."""
    wanted = (folders().config_file, os.path.join(project_root(cwd), ".tacit", "config.toml"))
    return [path for path in wanted if os.path.isfile(path)]


def config_variables() -> list[str]:
    """The names of the TACIT_ variables that set something."""
    return sorted(name for name in os.environ if name.startswith("TACIT_") and name not in RESERVED)


def existing_folder(path: str | None) -> str:
    """`path`, where a folder is there; else empty. A session's project may be gone since."""
    return path if path and os.path.isdir(path) else ""


def walk_folders(
    top: str, onerror: "Callable[[OSError], None] | None" = None
) -> "Iterator[tuple[str, list[str], list[str]]]":
    """As `os.walk` from the top, at any depth: that of Python 3.11 ends with the stack, and a clone
    may hold folders enough for it."""
    waiting = [top]
    while waiting:
        here = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    (folders if entry.is_dir() else names).append(entry.name)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        yield here, folders, names
        below = (os.path.join(here, name) for name in reversed(folders))
        waiting += [path for path in below if not os.path.islink(path)]


def find_program(name: str) -> str:
    """The path of a program that is started outside of any sandbox; empty where there is none."""
    import shutil

    return shutil.which(name, path=search_path()) or ""


def search_path() -> str:
    """The PATH without its relative parts, and without folders that lie in a project, such as the
    `bin` of its virtual environment: what stands there came with a clone, or an agent wrote it."""
    try:
        here = project_root(os.path.realpath(os.getcwd()))
    except OSError:  # it is gone
        here = ""
    listed = os.environ.get("PATH", os.defpath)
    asked = (listed, here, user_home())
    if asked not in _searched:
        parts = (part for part in listed.split(os.pathsep) if os.path.isabs(part))
        _searched[asked] = os.pathsep.join(part for part in parts if not _is_work(part, here))
    return _searched[asked]


_searched: dict[tuple[str, str, str], str] = {}


def _is_work(folder: str, here: str) -> bool:
    """Whether a folder lies in the project `here`, or in another one below the home. What is hidden
    there is a program's own, as `~/.nvm`, though many of these are clones."""
    real, home = os.path.realpath(folder), os.path.realpath(user_home())
    if here and is_inside(real, here) and not any(is_inside(p, here) for p in (home, "/usr/bin")):
        return True
    hidden = os.path.relpath(real, home).startswith(".")  # or outside
    return not hidden and has_mark(project_root(real))


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it; both real."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def with_tilde(path: str) -> str:
    """`path` as a person would write it: `~` for home."""
    home = user_home()
    if is_inside(path, home):
        return "~" + path[len(home.rstrip(os.sep)) :]
    return path
