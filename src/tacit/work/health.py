"""What `tacit doctor` asks of work: whether the queue of jobs is whole and can be reached."""

import os
import time
from collections.abc import Callable

from tacit.base.errors import BadConfig, Damaged, TacitError
from tacit.base.health import Check, Finding
from tacit.work import requests, where


def check_jobs() -> list[Finding]:
    """jobs.db is whole, or the server that stands for it answers."""
    try:
        place = where.place()
    except BadConfig as error:
        return [Finding("jobs", error.message, error.hint)]
    if place.path and not os.path.exists(place.path):
        return []
    try:
        said = where.inspect(place)
    except Damaged as error:
        said = error.message
    except TacitError as error:
        return [Finding("jobs", error.message, error.hint)]
    if not said:
        return []
    aside = f"{place.path}.damaged-{int(time.time())}"
    fix = (
        f"put it aside as {os.path.basename(aside)} and begin a new one; jobs that were not over"
        " are asked for again, the list of those that were is lost"
    )
    return [Finding("jobs", f"{place.path} is damaged: {said}", fix, _begin_anew(place, aside))]


def check_requests() -> list[Finding]:
    """Every file in the spool of requests is one, and there is something here that takes them."""
    findings = [
        Finding("requests", f"{path} is no request", "put it aside", _put_aside(path))
        for path in requests.unreadable()
    ]
    waiting = len(requests.waiting())
    if waiting and not where.has_engine():
        jobs = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
        what = f"{jobs}, and nothing is installed that does them"
        findings.append(Finding("requests", what, "pip install 'tacit[work]'"))
    return findings


CHECKS: tuple[Check, ...] = (check_jobs, check_requests)


def _begin_anew(place: where.Place, aside: str) -> Callable[[], None]:
    def mend() -> None:
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(place.path + ending):
                os.replace(place.path + ending, aside + ending)
        for asked in requests.taken():
            requests.ask_again(asked)

    return mend


def _put_aside(path: str) -> Callable[[], None]:
    return lambda: requests.put_aside(path)
