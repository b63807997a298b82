"""From what happened to what is to be done: events become requests for jobs.

What warrants a look is decided by the layers that look (`learn/`); here they are asked, and only
here is it known that the answer is a job. Their code is imported when an event comes, not before.
"""

import os
import time
from collections.abc import Callable
from contextlib import closing

from tacit.base import paths
from tacit.base.errors import TacitError
from tacit.base.events import bus
from tacit.base.settings import load
from tacit.changes.place import SHARED
from tacit.work import requests
from tacit.work.intake import SessionStored
from tacit.work.log import log

_ASK = 60.0
"""Seconds between two looks at whether the library is to be looked after."""
_STAY = 1800.0
"""Seconds, beside the idle time that curation waits for, that a worker stays for it."""
_next_ask = 0.0
_stays = False

_listening: list[Callable[[], None]] = []


def listen() -> None:
    """From now on, what happens in this process becomes requests. Twice is once."""
    if not _listening:
        _listening.append(bus.subscribe(SessionStored, _stored))


def idle() -> bool:
    """The worker has nothing to do: the time for what can wait. Whether it should not go yet.

    Once a period the library is looked after, when no agent has written for a while. Nobody would
    start a worker then, so the last one of the day stays for that moment.
    """
    global _next_ask, _stays  # noqa: PLW0603
    if time.monotonic() >= _next_ask:
        _next_ask = time.monotonic() + _ASK
        try:
            _stays = _curation()
        except TacitError as error:
            log(f"the library is not looked after: {error.message}")
            _stays = False
    return _stays


def _curation() -> bool:
    if not os.path.isdir(os.path.join(paths.user_home(), SHARED)):
        return False  # nothing was ever learned
    from tacit.learn.curate.when import due

    settings = load(paths.user_home()).settings.curate
    when = due(settings)
    if when.now:
        requests.request("curate", when.key, {})
        return False
    return bool(when.key) and when.seconds <= settings.idle_hours * 3600 + _STAY


def _stored(stored: SessionStored) -> None:
    """A session is in the store: what it did with skills is counted."""
    from tacit.learn.recording import record
    from tacit.traces.store import Store

    if stored.status in ("new", "grown"):
        with closing(Store.open()) as store:
            record(store, stored.id)
