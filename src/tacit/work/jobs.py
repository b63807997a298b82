"""The jobs as a person sees and steers them: list, show, retry and cancel.

Reads and changes the queue from outside; the worker need not run. A job that was decided on and
that no worker has queued yet is one that waits.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.base.errors import NotFound, Refused, Unwritable, Usage
from tacit.base.job import job_id
from tacit.learn.ledger import open_ledger
from tacit.work import job_queue, jobs_db
from tacit.work.job_kinds import Ticket
from tacit.work.jobs_db import EngineRun, State, engine_runs, one_line_of
from tacit.work.presence import is_away, machine, present, wake

if TYPE_CHECKING:
    from dbos import DBOSClient

_LIVE = ("waiting", "queued", "running", "put off")


class Attempt(msgspec.Struct, frozen=True):
    """One try at a job."""

    number: int
    state: State
    outcome: str = ""
    reason: str = ""
    asked: datetime | None = None
    began: datetime | None = None
    ended: datetime | None = None
    due: datetime | None = None
    machine: str = ""
    kills: int = 0
    """How often it was taken up again after its worker was gone."""


class Entry(msgspec.Struct, frozen=True):
    """A job with its attempts, the first one first."""

    id: str
    kind: str
    key: str
    state: State
    outcome: str
    reason: str
    at: datetime | None
    """When it was last heard of."""
    payload: dict[str, Any] = {}
    changes: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    home: str = ""
    """The machine that asked for it."""

    @property
    def live(self) -> bool:
        return self.state in _LIVE


def listing(*, kind: str = "", limit: int = 0) -> list[Entry]:
    """The jobs, the latest first. Without the engine, those that wait for it."""
    found = _waiting()
    place = jobs_db.address()
    if jobs_db.has_engine() and jobs_db.is_made(place):
        found += _entries(place)
    if not place.shared and present() is None:
        found = [_left(entry) for entry in found]
    chosen = [entry for entry in found if kind in ("", entry.kind)]
    chosen.sort(key=lambda entry: entry.at.timestamp() if entry.at else 0.0, reverse=True)
    return chosen[:limit] if limit else chosen


def show(name: str) -> Entry:
    """The job called `name`, or by enough of its id to be sure. Raises `NotFound` and `Usage`."""
    known = listing()
    near = [entry for entry in known if name in (entry.id, entry.key)]
    if not near and len(name) >= 4:
        both = [(entry, entry.id, entry.id.rpartition("-")[2]) for entry in known]
        near = [e for e, whole, end in both if whole.startswith(name) or end.startswith(name)]
    if not near:
        raise NotFound(f"there is no job '{name}'", "see what there is: tacit jobs")
    if len({entry.id for entry in near}) > 1:
        ids = ", ".join(entry.id for entry in near[:6])
        raise Usage(f"several jobs are called '{name}': {ids}", "name it in full")
    return near[0]


def retry(name: str) -> Entry:
    """Have a job done again, or now if it was put off, and see that a worker runs.

    One that waits for another machine, which is away, is taken over by this one.
    """
    entry = show(name)
    if entry.home not in ("", machine()) and entry.live:
        return _take_over(entry)
    if entry.state in ("waiting", "queued", "running"):
        if present() is None:
            wake()
            return entry
        raise Refused(f"{entry.id} is {entry.state} already", "see: tacit jobs show " + entry.id)
    with _client() as client:
        from tacit.work.engine import options, queue_for

        last = entry.attempts[-1]
        run = entry.id if last.number == 1 else f"{entry.id}.{last.number}"
        if entry.state == "put off":
            client.set_workflow_delay(run, delay_seconds=0)
        elif entry.state in ("cancelled", "stuck"):
            client.resume_workflow(run, queue_name=queue_for(_ticket(entry)))
        else:
            ticket = _ticket(entry, last.number + 1)
            client.enqueue(options(ticket), msgspec.json.encode(ticket).decode())
    wake()
    return show(entry.id)


def _take_over(entry: Entry) -> Entry:
    """Have this machine do what another one asked for. Raises `Refused` where that one is there."""
    place = jobs_db.address()
    with _client() as client:
        if not is_away(place, entry.home):
            hint = "it does its own jobs; not at all: tacit jobs cancel " + entry.id
            raise Refused(f"{entry.home}, which asked for {entry.id}, is there", hint)
        from tacit.work.engine import options

        last = entry.attempts[-1].number
        client.cancel_workflow(entry.id if last == 1 else f"{entry.id}.{last}")
        ticket = msgspec.structs.replace(_ticket(entry, last + 1), home=machine())
        client.enqueue(options(ticket), msgspec.json.encode(ticket).decode())
    wake()
    return show(ticket.job)


def _ticket(entry: Entry, attempt: int = 1) -> Ticket:
    own_key = entry.id != job_id(entry.kind, entry.key)
    return Ticket(entry.kind, entry.key, entry.payload, attempt, home=entry.home, own_key=own_key)


def cancel(name: str) -> Entry:
    """Have a job not done, or no further. One that runs is told, and changes nothing more."""
    entry = show(name)
    if not entry.live:
        said = f": {entry.outcome}" if entry.outcome else ""
        raise Refused(f"{entry.id} is over{said}", f"see what came of it: tacit jobs show {name}")
    if entry.state == "waiting":
        with open_ledger() as ledger:
            ledger.close_job(entry.kind, entry.key)
        return msgspec.structs.replace(entry, state="cancelled", reason="cancelled by you")
    with _client() as client:
        last = entry.attempts[-1].number
        client.cancel_workflow(entry.id if last == 1 else f"{entry.id}.{last}")
    with open_ledger() as ledger:
        ledger.close_job(entry.kind, entry.key)
    return show(entry.id)


@contextmanager
def _client() -> "Iterator[DBOSClient]":
    jobs_db.need_engine("the queue of jobs")
    place = jobs_db.address()
    jobs_db.check(place)
    from sqlalchemy.exc import DBAPIError

    from tacit.work.engine import client

    opened = client(place)
    try:
        yield opened
    except DBAPIError as error:
        raise Unwritable(
            f"the queue of jobs at {place.shown} cannot be used: {one_line_of(error)}",
            "see what is wrong: tacit doctor",
        ) from error
    finally:
        opened.destroy()


def _waiting() -> list[Entry]:
    reason = "" if jobs_db.has_engine() else "learning needs more: pip install 'tacit[work]'"
    return [
        Entry(
            job.id,
            job.kind,
            job.key,
            "waiting",
            "",
            reason or "no worker has taken it up yet",
            datetime.fromisoformat(job.at),
            job.payload,
        )
        for job in job_queue.waiting_jobs()
    ]


def _left(entry: Entry) -> Entry:
    """One that counts as running where no worker is."""
    if entry.state != "running":
        return entry
    reason = "its worker is gone; the next one takes it up"
    return msgspec.structs.replace(entry, state="queued", reason=reason)


def _entries(place: jobs_db.Address) -> list[Entry]:
    attempts: dict[str, list[EngineRun]] = defaultdict(list)
    for run in engine_runs(place):
        attempts[run.id.partition(".")[0]].append(run)
    return [_entry(job, found) for job, found in attempts.items()]


def _entry(job: str, found: list[EngineRun]) -> Entry:
    ordered = sorted(found, key=lambda run: run.ticket.attempt)
    attempts = tuple(_attempt(run) for run in ordered)
    ticket, last = ordered[-1].ticket, attempts[-1]
    changes = {change: None for run in ordered for change in run.done.changes}
    before = attempts[-2].reason if last.state in _LIVE and len(attempts) > 1 else ""
    if last.state == "queued" and ticket.home not in ("", machine()):
        before = f"it waits for {ticket.home}, which asked for it; here: tacit jobs retry {job}"
    return Entry(
        job,
        ticket.kind,
        ticket.key,
        last.state,
        last.outcome,
        last.reason or before,
        _moment(ordered[-1].heard),
        ticket.payload,
        tuple(changes),
        attempts,
        ticket.home,
    )


def _attempt(run: EngineRun) -> Attempt:
    state = "failed" if run.done.outcome == "failed" else jobs_db.STATES.get(run.status, "queued")
    reason = run.done.reason
    if state == "stuck":
        reason = f"its worker was gone {run.kills} times while it ran"
    elif state == "cancelled":
        reason = "cancelled by you"
    elif run.error:
        reason = run.error
    return Attempt(
        run.ticket.attempt,
        state,
        run.done.outcome,
        reason,
        _moment(run.asked),
        _moment(run.began),
        _moment(run.ended),
        _moment(run.due) if state == "put off" else None,
        run.worker,
        run.kills,
    )


def _moment(milliseconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
