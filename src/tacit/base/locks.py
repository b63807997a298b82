"""Locks between processes. A lock dies with its holder, so a kill never leaves one behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.base.errors import Busy, Unwritable


@contextmanager
def locked(path: str, *, seconds: float = 30.0, what: str = "") -> Iterator[None]:
    """Hold the lock file at `path` for a `with` block; raise `Busy` after waiting `seconds`.

    `Unwritable` is raised where there can be no lock file: a read-only folder, a full disk.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=seconds)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
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
        lock.release()
