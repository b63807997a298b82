"""Files that several processes share: replaced in one step, and guarded by locks.

`write_atomic` leaves the old file or the new one, never a part of either. `locked` holds a lock
file; the lock ends with its holder, so a killed process leaves none behind. A `TemporaryFolder`
goes with whoever made it; what a killed process leaves of those, `drop_abandoned` removes.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tacit.base.errors import Busy, Unwritable
from tacit.base.paths import make_private

TEMPORARY_NAME = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
"""The names of files that are being written."""

# For files in folders that others may write: never through a link, and no waiting on a pipe.
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_plain(path: str, flags: int = 0) -> int:
    """An opener for `open`, for a file that somebody else made: no link is followed at its end, and
    nothing waits for whoever holds the other end of a pipe."""
    return os.open(path, OPEN_FILE)


def open_private(path: str, flags: int) -> int:
    """An opener for `open`, for a file of our own: what is made is the user's alone."""
    return os.open(path, flags, 0o600)


def write_atomic(path: str, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Replace the file at `path` with `data` in one step.

    A reader sees the old bytes or the new ones. `durable` also forces them to the disk before and
    after the rename; a cache that can be rebuilt does without. Each writer uses a temporary name
    of its own, so many may write at once and the last one wins.
    """
    folder = os.path.dirname(path) or "."
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.urandom(6).hex()}.tmp")
    try:
        make_private(folder)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
        if durable:
            sync_folder(folder)
    except OSError as error:
        _unlink_quietly(temporary)
        raise Unwritable(
            f"cannot write {path}: {error.strerror or error}",
            "check the free space and the permissions of that folder",
        ) from error
    except BaseException:
        _unlink_quietly(temporary)
        raise


def sync_folder(folder: str) -> None:
    """Force the names in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; the system may take it in parts."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _unlink_quietly(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


@contextmanager
def locked(path: str, *, seconds: float = 30.0, what: str = "") -> Iterator[None]:
    """Hold the lock file at `path` for a `with` block; raise `Busy` after waiting `seconds`.

    `Unwritable` is raised where there can be no lock file: a read-only folder, a full disk.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=seconds, mode=0o600)
    try:
        make_private(os.path.dirname(path))
        lock.acquire()
    except Timeout:
        raise Busy(
            f"another tacit process has held {what or path} for over {seconds:g} s",
            f"wait for it to end, or see who holds it: fuser {path}",
        ) from None
    except OSError as error:
        raise Unwritable(
            f"cannot lock {path}: {error.strerror or error}",
            "check the free space and the permissions of that folder",
        ) from error
    try:
        yield
    finally:
        with suppress(
            OSError
        ):  # what was done is done; the lock ends with the process at the latest
            lock.release()


_ABANDONED_NAME = re.compile(r"tacit-(?:[a-z-]+-)?[a-z0-9_]{8}\.tmp")
_UNLOCKED = 60.0
"""Seconds within which whoever makes a folder has locked it."""


class TemporaryFolder:
    """A folder of this user's alone: in a `with`, until `close`, or while this object is there.

    Its lock says that it is in use, to us and to what tidies up /tmp on most systems.
    """

    def __init__(self, kind: str = "") -> None:
        import tempfile
        import weakref

        while True:  # a clock that is wrong makes it look abandoned before it is locked
            made = tempfile.mkdtemp(".tmp", f"tacit-{kind}-" if kind else "tacit-")
            with suppress(FileNotFoundError):
                lock = os.open(made, OPEN_FOLDER)
                if _take(lock) and os.path.isdir(made):
                    break
                os.close(lock)
        self.path = os.path.realpath(made)
        self.close = weakref.finalize(self, _let_go, self.path, lock, os.getpid())

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *raised: object) -> None:
        self.close()


def _take(folder: int) -> bool:
    """Lock an open folder, if nobody has."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _let_go(path: str, lock: int, maker: int) -> None:
    if os.getpid() == maker:  # not one that was forked off
        with suppress(OSError):
            remove_entry(path)
        os.close(lock)


def remove_entry(name: str, folder: int | None = None) -> None:
    """Remove `name`, in an open `folder`, and what is below it at any depth, whatever whoever
    filled it took the right to; links are not followed. Nothing there is fine. Raises OSError."""
    if _unlinked(name, folder):
        return
    top = open_freely(name, folder)
    try:
        while names := os.listdir(top):
            for each in names:
                _remove_flat(each, top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=folder)


def _remove_flat(name: str, top: int) -> None:
    """Remove `name`; the folders in it are put beside it, so that handles and stack are enough."""
    if _unlinked(name, top):
        return
    here = open_freely(name, top)
    try:
        for each in os.listdir(here):
            if not _unlinked(each, here):
                os.close(open_freely(each, here))  # else it could not be moved
                os.rename(each, os.urandom(8).hex(), src_dir_fd=here, dst_dir_fd=top)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=top)


def _unlinked(name: str, folder: int | None) -> bool:
    """Whether `name` is gone now; it is not where it is a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):  # macOS says the latter of folders
        return False
    return True


def open_freely(name: str, folder: int | None = None) -> int:
    """The folder `name`, in an open `folder`, never through a link. Its owner may do everything
    with it from now on, whatever its permissions were. Raises OSError."""
    try:
        found = os.open(name, OPEN_FOLDER, dir_fd=folder)
    except PermissionError:
        _unlock(name, folder)
        found = os.open(name, OPEN_FOLDER, dir_fd=folder)
    mode = os.fstat(found).st_mode & 0o7777
    if mode & 0o700 != 0o700:
        os.fchmod(found, mode | 0o700)
    return found


def _unlock(name: str, folder: int | None) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{handle}", os.fstat(handle).st_mode & 0o7777 | 0o700)
    finally:
        os.close(handle)


def drop_abandoned(now: float) -> None:
    """Remove the temporary folders of processes that were killed: a key may stand in them."""
    import tempfile

    above = tempfile.gettempdir()
    for name in filter(_ABANDONED_NAME.fullmatch, os.listdir(above)):
        with suppress(OSError):
            folder = open_freely(os.path.join(above, name))
            try:
                status = os.fstat(folder)
                old = abs(now - status.st_mtime) > _UNLOCKED
                if status.st_uid == os.getuid() and old and _take(folder):
                    remove_entry(os.path.join(above, name))
            finally:
                os.close(folder)


def missing_folders(folder: str) -> tuple[str, ...]:
    """What has to be made so that `folder` exists, outermost first."""
    found = []
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(found))


def kept_token(path: str) -> str:
    """The secret word in the file at `path`, for this user alone; made when first asked for."""
    try:
        with open(path, encoding="ascii") as file:
            if known := file.read(200).strip():
                return known
    except (FileNotFoundError, ValueError):
        pass
    import secrets

    made = secrets.token_urlsafe(32)
    write_atomic(path, made.encode() + b"\n", mode=0o600)
    return made
