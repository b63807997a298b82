"""A job as the code that does it sees it: what it is given, what it returns, and what it may ask
of the engine while it runs.

Queues, retries and the worker are `work/`'s; the layers below it that do the work know only these
structs, and nothing here imports the engine. A job may run again after a kill, so whatever it
changes carries an id made of `Job.id`, and can be repeated without harm.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import msgspec

R = TypeVar("R")


class Job(msgspec.Struct, frozen=True):
    """One piece of work in the background."""

    id: str
    """Made of `kind` and `key`; the same for every attempt."""
    kind: str
    key: str
    """What it is about, e.g. a session: `kind` and `key` together are done once."""
    payload: dict[str, Any] = {}
    """What it needs to know; JSON."""
    attempt: int = 1
    """Which try this is, from 1."""


def job_id(kind: str, key: str) -> str:
    """The id of the one job for `kind` and `key`: `review-3f9c0a51b2de`."""
    both = f"{kind}\0{key}".encode("utf-8", "surrogatepass")
    return f"{kind}-{sha256(both).hexdigest()[:12]}"


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job."""

    outcome: str
    """One word or two for a table: created, edited, nothing, refused, failed."""
    reason: str = ""
    changes: tuple[str, ...] = ()
    """The ids of the changes that it made or proposed."""
    later: float = 0.0
    """Seconds after which it is to be tried again, for whatever `reason` says; 0 is never."""
    data: dict[str, Any] = {}
    """What came of it for the job that asked for it; JSON."""


class JobControl(Protocol):
    """What the engine offers to a job while it runs. Called from the job's own thread."""

    def cancelled(self) -> bool:
        """Whether the user cancelled it: it should change nothing more, and end."""
        ...

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        """The result of `function`, which is JSON; after a kill the kept one, not a second run."""
        ...


@runtime_checkable
class JobFamily(Protocol):
    """How a job has other jobs done and learns what came of them. From the job's own thread.

    It holds no handles and waits for nothing: whoever has many jobs done counts them in a table.
    """

    def queue(self, kind: str, key: str, payload: dict[str, Any]) -> None:
        """Have another job done, here or on another machine. Calling it again changes nothing.

        Whoever queues has got somewhere: the kills that it met before do not count against it.
        """
        ...

    def results(self, kind: str, keys: Collection[str], most: int) -> dict[str, JobResult]:
        """Of these jobs the results of those that are over, by key, `most` of them at a time.

        A failed one has a result. One that was left alone because kills interrupted it is taken
        up again: whoever asks has outlived them.
        """
        ...

    def withdraw(self, kind: str, keys: Collection[str]) -> None:
        """Have these jobs not done where they were not begun, and forget those that are over."""
        ...


_control: ContextVar[JobControl | None] = ContextVar("tacit_job", default=None)


@contextmanager
def controlled_by(control: JobControl) -> Iterator[None]:
    """For the block, `cancelled` and `step` speak to `control`."""
    token = _control.set(control)
    try:
        yield
    finally:
        _control.reset(token)


def cancelled() -> bool:
    """Whether the job that runs here was cancelled; False outside of a job."""
    known = _control.get()
    return known is not None and known.cancelled()


def family() -> JobFamily | None:
    """By which the job that runs here has others done; None where nothing can."""
    known = _control.get()
    return known if isinstance(known, JobFamily) else None


def step(name: str, function: Callable[[], R]) -> R:
    """Do `function` once for this job, also over kills, and return its result, which is JSON.

    Only one that was in the middle at a kill runs again. A job must take its steps in the same
    order each time. Outside of a job it is a plain call.
    """
    known = _control.get()
    return function() if known is None else cast("R", known.step(name, function))
