"""Asking for a job: a file in the spool, and a worker that is started for it.

Any process may ask, and is done in a moment: the engine is not imported here. The worker takes the
requests into its queues. A file stays, under the job's name, until the job is over: should the
queues be lost, what was asked for is still there.
"""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit import hook
from tacit.base import paths
from tacit.base.errors import Unwritable
from tacit.work.kinds import get, job_id, names

_ENDING = ".request"
# By whether others share the queues: a job in one place is unknown in the other.
_TAKEN = {False: "taken", True: "taken-shared"}


class Request(msgspec.Struct, frozen=True):
    """What was asked for."""

    kind: str
    key: str
    payload: dict[str, Any] = {}
    at: float = 0.0
    """When, in seconds since 1970."""
    delay: float = 0.0
    """Seconds after `at` before which it is not to be begun."""
    path: str = ""
    """The file in the spool; not in it."""

    @property
    def job(self) -> str:
        return job_id(self.kind, self.key)


def request(kind: str, key: str, payload: dict[str, Any], *, delay: float = 0.0) -> None:
    """Ask for the job of `kind` about `key`, to be begun after `delay` seconds.

    It is done once, however often it is asked for. Raises `NotFound` for an unknown kind and
    `Unwritable` where no spool takes it. Where this process was started by a worker, no further
    one is started: that worker looks into the spool by itself.
    """
    get(kind)
    asked = Request(kind, key, payload, time.time(), delay)
    data = paths.folders().data
    for folder in _folders(data):
        try:
            hook.deliver(folder, msgspec.json.encode(asked), _ENDING)
            break
        except OSError as error:
            refused = error
    else:
        raise Unwritable(
            f"cannot ask for the {kind} of {key}: {refused.strerror or refused}",
            f"check the free space and the permissions of {data}",
        )
    wake()


def wake() -> None:
    """See that a worker runs, as a hook does."""
    if not os.environ.get("TACIT_WORKER"):
        command = [sys.executable, "-P", "-m", "tacit", "worker"]
        hook.start_worker(paths.folders().data, command)


def waiting() -> list[Request]:
    """The requests that no worker has taken yet, oldest first. Changes nothing."""
    found = (read(path) for path in _files(""))
    # One of a kind that only another version knows stays for that one.
    usable = [r for r in found if r is not None and r.kind in names()]
    return sorted(usable, key=lambda r: (r.at, r.path))


def taken(*, shared: bool = False) -> list[Request]:
    """The requests whose jobs are in the queues, this machine's or shared ones, and not over."""
    return [r for path in _files(_TAKEN[shared]) if (r := read(path)) is not None]


def take(asked: Request, *, shared: bool = False) -> None:
    """The job is in the queue: keep the request under the job's name. Twice is once."""
    folder = os.path.join(_folders(paths.folders().data)[0], _TAKEN[shared])
    try:
        hook.make_private(folder)
        try:
            os.rename(asked.path, os.path.join(folder, asked.job + _ENDING))
        except OSError:  # from another disk: the queue has it, which must do
            os.unlink(asked.path)
    except FileNotFoundError:
        pass


def drop(asked: Request) -> None:
    """It is not wanted any more. Twice is once."""
    try:
        os.unlink(asked.path)
    except FileNotFoundError:
        pass


def over(job: str) -> None:
    """The job is over: its request is not needed any more. Twice is once."""
    spool = _folders(paths.folders().data)[0]
    for part in _TAKEN.values():
        try:
            os.unlink(os.path.join(spool, part, job + _ENDING))
        except OSError:
            continue


def ask_again(asked: Request) -> None:
    """Put one that was taken back into the spool, since no queue knows its job."""
    folder, name = os.path.split(asked.path)
    try:
        os.rename(asked.path, os.path.join(os.path.dirname(folder), name))
    except FileNotFoundError:
        pass


def put_aside(path: str) -> None:
    """Keep a file that is no request out of the way, for a look."""
    folder = os.path.join(os.path.dirname(path), "unusable")
    try:
        hook.make_private(folder)
        os.rename(path, os.path.join(folder, os.path.basename(path)))
    except OSError:
        pass


def unreadable() -> list[str]:
    """The files in the spool that are no requests."""
    return [path for path in _files("") if read(path) is None and os.path.exists(path)]


def read(path: str) -> Request | None:
    """The request in a file, or None where there is none that could be used."""
    try:
        with open(path, "rb") as file:
            asked = msgspec.json.decode(file.read(), type=Request)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return msgspec.structs.replace(asked, path=path)


def _folders(data: str) -> list[str]:
    """The spools: the one in the data folder, and those for when it takes nothing."""
    grounds = hook.spools(data)[1:]
    return [os.path.join(data, "requests"), *(f"{ground}-requests" for ground in grounds)]


def _files(part: str) -> Iterator[str]:
    for spool in _folders(paths.folders().data):
        folder = os.path.join(spool, part) if part else spool
        try:
            names = os.listdir(folder) if hook.is_private(spool) else []
        except OSError:
            continue
        for name in names:
            if name.endswith(_ENDING) and not name.startswith("."):
                yield os.path.join(folder, name)
