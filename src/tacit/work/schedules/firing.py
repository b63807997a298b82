"""Firing: planning on the real shelf and queues, telling the user, ending runs that were lost.

What `ticking.py` does when the moment has come. It is imported then, and not before: a worker on a
machine without schedules does not pay for it.
"""

import os
from datetime import datetime, timedelta

import msgspec

from tacit.base.settings import load
from tacit.work import requests, where
from tacit.work.kinds import job_id
from tacit.work.log import log
from tacit.work.schedules import delivering, runs, shelf
from tacit.work.schedules.binding import login
from tacit.work.schedules.job import HAND
from tacit.work.schedules.planner import plan
from tacit.work.schedules.runs import Row

_SETTLE = 60.0
"""Seconds after which a run that nothing was heard of is looked for in the queues."""


class Fired(msgspec.Struct, frozen=True):
    """What one look came to."""

    begun: bool
    busy: bool
    """Whether a run is not over."""
    next: datetime | None


def fire(now: datetime) -> Fired:
    """Plan what is due, and tell what there is to tell. Raises `TacitError`."""
    good, bad = shelf.listing()
    me = login()
    mine = [schedule for schedule in good if schedule.binding.owner in ("", me)]
    planned = plan(now, mine, _send)
    for told in planned.told:
        log(told.text)
        delivering.tell(told.key, told.text)
    for broken in bad:
        delivering.tell(f"broken:{broken.name}", f"{broken.why} · {broken.hint}")
    with runs.opened() as connection:
        live = runs.live(connection)
    settle(live, now)
    return Fired(bool(planned.sent), bool(live), planned.next)


def tidy(now: datetime) -> None:
    """Delete what has lain in the trash for long enough, and the record of old runs."""
    runs.forget(now)
    for name in shelf.empty_trash(now, load().settings.schedule.trash_days):
        log(f"schedules: {name} is out of the trash")


def _send(run: str, about: dict[str, object]) -> None:
    requests.request("schedule", run, about)


def settle(live: list[Row], now: datetime) -> None:
    """End the runs that nobody works on any more: their process is gone, their job is over."""
    for row in live:
        if row.why == "hand" and row.state == "running" and not _is_alive(row.reason):
            _end(row, "the run by hand was stopped", now)
    old = now - timedelta(seconds=_SETTLE)
    silent = [r for r in live if r.state in ("sent", "running", "ran") and r.why != "hand"]
    silent = [row for row in silent if row.changed < old]
    if not silent:
        return
    asked = {request.job for request in (*requests.waiting(), *requests.taken())}
    known = {
        run.partition(".")[0]
        for run, state in where.states(where.place()).items()
        if state in where.LIVE
    }
    for row in silent:
        if job_id("schedule", row.id) not in asked | known:
            _end(row, "its job ended without a result; see: tacit jobs", now)


def _end(row: Row, reason: str, now: datetime) -> None:
    with runs.writing() as connection:
        runs.update(connection, row.id, now, state="failed", reason=reason, ended=now)
    if row.why != "hand":
        delivering.tell(row.id, f"{row.schedule} failed: {reason}")


def _is_alive(reason: str) -> bool:
    try:
        os.kill(int(reason.removeprefix(HAND)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
