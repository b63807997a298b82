"""Reading the project, for the reviewer: inside its root by real path, secrets masked.

Resolved once, then reached by handles and without links, so that nothing that changes in between
leads out. Runs in the child, which on Linux can read little else anyway.
"""

import os
import stat

from tacit.agent.masking import is_secret_file, is_secret_path
from tacit.agent.tools.tool import Failed, numbered, text_of
from tacit.base import paths
from tacit.base.paths import is_inside
from tacit.changes.contain import Escape, Folder
from tacit.learn.telling import clean, cut

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 2_000_000
_MOST_NAMES = 300
MOST_TEXT = 12_000
MOST_LINES = 400


def read_text(project: str, path: str, first: int, count: int) -> str:
    """Some lines of a file in `project`, numbered. Raises `Failed`."""
    *parents, name = _parts(project, path)
    try:
        with _root(project) as root, root.descend(parents) as folder:
            found = folder.status(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                raise Failed(f"{path} is a folder; use ls")
            if found is not None and found.st_size > _MOST_BYTES:
                raise Failed(f"{path} has {found.st_size:,} bytes, too many to be read here")
            data, _ = folder.read(name)
    except (Escape, OSError) as error:
        raise _failed(path, error) from None
    lines = clean(text_of(data)).splitlines()
    first = max(first, 1)
    chosen = lines[first - 1 : first - 1 + max(1, min(count, MOST_LINES))]
    if not chosen:
        return f"(nothing there: the file has {len(lines)} lines)" if lines else "(empty)"
    rest = len(lines) - (first - 1 + len(chosen))
    more = f"\n({rest} more lines; go on with offset={first + len(chosen)})" if rest > 0 else ""
    return cut(numbered(chosen, first), MOST_TEXT) + more


def list_names(project: str, path: str) -> str:
    """What lies in a folder of `project`. Raises `Failed`."""
    try:
        with _root(project) as root, root.descend(_parts(project, path)) as folder:
            names = folder.names()
            rows = [_row(folder, name) for name in names[:_MOST_NAMES]]
    except (Escape, OSError) as error:
        raise _failed(path, error) from None
    more = f"\n({len(names) - _MOST_NAMES} more)" if len(names) > _MOST_NAMES else ""
    return clean("\n".join(rows)) + more or "(empty)"


def _row(folder: Folder, name: str) -> str:
    found = folder.status(name)
    if found is None or stat.S_ISLNK(found.st_mode):
        return f"{name} (a link)"
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    return f"{name} (masked)" if is_secret_file(name) else f"{name}  {found.st_size:,}"


def _parts(project: str, path: str) -> list[str]:
    """The way from the project's root to `path`, links resolved. Raises `Failed`."""
    if not project or not os.path.isdir(project):
        raise Failed("the project of this session is not on this machine")
    if "\0" in path:
        raise Failed("a path cannot hold a NUL character")
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    if not is_inside(real, root):
        raise Failed(f"{path} is outside the project")
    if is_secret_path(real, paths.user_home()) or is_secret_path(
        os.path.join(root, path), paths.user_home()
    ):
        raise Failed(f"{path} may hold secrets and is masked")
    relative = os.path.relpath(real, root)
    return [] if relative == "." else relative.split(os.sep)


def _root(project: str) -> Folder:
    root = os.path.realpath(project)
    return Folder(os.open(root, _FOLDER), root)


def _failed(path: str, error: Exception) -> Failed:
    if isinstance(error, FileNotFoundError):
        return Failed(f"there is no {path}")
    why = error.strerror if isinstance(error, OSError) else str(error)
    return Failed(f"cannot read {path}: {why}")
