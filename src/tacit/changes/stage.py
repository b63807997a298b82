"""Where a skill's next version is put together before it takes its place.

The stage lies inside the skills folder, so that it is on the same filesystem and a rename is all
it takes. Readers pass over folders whose name begins with a dot, and git is told to as well.
What does not change is linked, not copied: it keeps its permissions and dates, and a large folder
costs no more than its number of files.
"""

import errno
import os
import stat

from tacit.changes.change import Contents, File, Files
from tacit.changes.containment import Folder, remove_tree
from tacit.skills.library import ARCHIVE_FOLDER

STAGE = ".tacit-stage"
ARCHIVE = ARCHIVE_FOLDER
_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES)


def open_hidden(root: Folder, name: str) -> Folder:
    """The folder `name` in `root`, made if need be, that git passes over."""
    folder = root.open(name, make=True)
    if folder.status(".gitignore") is None:
        try:
            folder.write_new(".gitignore", b"*\n", 0o644 & (0o600 | folder.openness), durable=False)
        except FileExistsError:
            pass
    return folder


def clean(root: Folder) -> None:
    """Remove the stage and all that is on it. Only under the place's lock."""
    if root.status(STAGE) is not None:
        remove_tree(root, STAGE)


def stage(
    folder: Folder, name: str, files: Files, source: Folder | None, contents: Contents
) -> None:
    """Put `files` into a new folder `name`; they are on the disk for certain when this returns.

    `source` is the folder that they change, and `contents` what was read there: files that are
    the same are linked from it, and what no version is kept of comes along.
    """
    folder.make(name)
    with folder.open(name) as top:
        writer = _Writer(top, source, contents)
        try:
            for path in sorted(files):
                writer.put(path, files[path])
            for path in contents.unversioned:
                writer.bring_unversioned(path)
        finally:
            writer.close()
        top.sync()


class _Writer:
    """Writes below one folder; handles of the folders on the way are kept until the end."""

    def __init__(self, top: Folder, source: Folder | None, contents: Contents) -> None:
        self._top = top
        self._source = source
        self._contents = contents
        self._open: dict[str, Folder] = {}

    def close(self) -> None:
        for path in sorted(self._open, reverse=True):
            self._open[path].sync()
            self._open[path].close()

    def put(self, path: str, file: File) -> None:
        parent, _, name = path.rpartition("/")
        folder = self._folder(parent)
        before = self._contents.files.get(path)
        if file.kind == "link":
            os.symlink(os.fsdecode(file.data), name, dir_fd=folder.fd)
            return
        if self._source is not None and before == file and self._link(parent, name, folder):
            return
        folder.write_new(name, file.data, self._mode(parent, name, file))

    def bring_unversioned(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        if self._source is not None:
            with self._source.descend(parent.split("/") if parent else []) as source:
                _bring_unread(source, name, self._folder(parent))

    def _folder(self, path: str) -> Folder:
        if not path:
            return self._top
        if path not in self._open:
            parent, _, name = path.rpartition("/")
            self._open[path] = self._folder(parent).open(name, make=True)
        return self._open[path]

    def _link(self, parent: str, name: str, folder: Folder) -> bool:
        assert self._source is not None
        with self._source.descend(parent.split("/") if parent else []) as source:
            return _link(source, name, folder)

    def _mode(self, parent: str, name: str, file: File) -> int:
        """The permissions that the file had, else the usual ones; a program may be run."""
        mode = 0o600 | (0o066 & ~_umask() & self._top.openness)
        if self._source is not None and f"{parent}/{name}".lstrip("/") in self._contents.files:
            with self._source.descend(parent.split("/") if parent else []) as source:
                found = source.status(name)
            if found is not None and stat.S_ISREG(found.st_mode):
                mode = stat.S_IMODE(found.st_mode) & 0o777
        runs = (mode & 0o444) >> 2
        return mode | runs if file.kind == "program" else mode & ~0o111


def _link(source: Folder, name: str, folder: Folder) -> bool:
    try:
        os.link(name, name, src_dir_fd=source.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINKS or isinstance(error, FileNotFoundError):
            return False
        raise
    return True


def _bring_unread(source: Folder, name: str, folder: Folder) -> None:
    """Bring `name` along unread: folders anew, files linked, links as they are."""
    found = source.status(name)
    if found is None:
        return
    if stat.S_ISDIR(found.st_mode):
        with source.open(name) as below, folder.open(name, make=True) as new:
            for child in below.names():
                _bring_unread(below, child, new)
            os.fchmod(new.fd, stat.S_IMODE(found.st_mode))
    elif stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source.fd), name, dir_fd=folder.fd)
    elif stat.S_ISREG(found.st_mode) and not _link(source, name, folder):
        folder.write_new(name, source.read(name)[0], stat.S_IMODE(found.st_mode))


def _umask() -> int:
    """The process's mask. It cannot be asked for without being set, so it is asked for once."""
    global _mask  # noqa: PLW0603
    if _mask is None:
        _mask = os.umask(0o077)
        os.umask(_mask)
    return _mask


_mask: int | None = None
