"""From what happened to what is to be done: events become requests for jobs.

What warrants a look is decided by the layers that look (`learn/`); here they are asked, and only
here is it known that the answer is a job. Their code is imported when an event comes, not before.
"""

from collections.abc import Callable

from tacit.base.events import bus
from tacit.work.intake import SessionStored

_listening: list[Callable[[], None]] = []


def listen() -> None:
    """From now on, what happens in this process becomes requests. Twice is once."""
    if not _listening:
        _listening.append(bus.subscribe(SessionStored, _stored))


def idle() -> None:
    """The worker has nothing to do: the time for what can wait."""


def _stored(stored: SessionStored) -> None:
    """A session is in the store."""
