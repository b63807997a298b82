"""The engine behind the job queue: DBOS, on jobs.db or on PostgreSQL.

The one module that starts DBOS. A job is one or more attempts, each a DBOS workflow with an id
of its own (`review-3f9c…`, then `review-3f9c….2`). An attempt that is killed is run again by the
next worker; one that is put off queues the next attempt before it ends. Where machines share the
queues, a job that only one of them can do is in a queue of that machine's own from the start:
steps that were taken are not taken again, so what they found must hold for whoever goes on.
Also owns whether a job may begin now, by the day's budget.
What a job does is not known here. Import it late: DBOS takes most of a second.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from contextlib import nullcontext
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec
import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos import error as dbos_error

from tacit.base.clock import until_tomorrow
from tacit.base.display import shorten
from tacit.base.errors import Busy, TacitError, Unwritable
from tacit.base.job import Job, JobResult, controlled_by
from tacit.base.setting_sections import JobSettings, LearnSettings
from tacit.base.settings import load_settings
from tacit.learn import announcements
from tacit.work import job_kinds, jobs_db
from tacit.work.job_kinds import Ticket
from tacit.work.jobs_db import Address, Backlog, make_jobs_db, one_line_of
from tacit.work.presence import Presence, log, machine, own_ticket

_BROKEN = 600.0
_HELD = 300.0
_FARTHEST = 7 * 86_400.0
"""However long a provider asks to wait: DBOS cannot count much farther."""


class Permission(msgspec.Struct, frozen=True):
    """Whether a job may begin: it may if nothing here is set."""

    reason: str = ""
    later: float = 0.0
    """Seconds to wait."""


def may_begin(ticket: "Ticket") -> Permission:
    """Whether this worker may begin it. Whoever does it holds to the limits all the same."""
    try:
        return _may_begin(ticket)
    except TacitError as error:  # settings or a database that somebody will repair
        return Permission(error.message, later=_BROKEN)


def _may_begin(ticket: "Ticket") -> Permission:
    if job_kinds.find_kind(ticket.kind).spends:
        return _budget(load_settings().settings.learn)
    return Permission()


def _budget(learn: LearnSettings) -> Permission:
    from tacit.agent import budget

    refusal = budget.refusal_today(learn)
    if not refusal:
        return Permission()
    return Permission(refusal, later=until_tomorrow() if budget.is_spent(learn) else _HELD)


FORMAT = "1"
"""The version of what is kept for a job. Workers take up only jobs of their own version."""
KILLS = 5
"""How often a job may take the worker down with it, and get nowhere, before it is left alone."""
AGAIN = (60.0, 600.0, 3600.0)
"""Seconds before the next try after a fault that may pass; after these it has failed."""
_LOOK = 1.0
_POLL = 2.0
"""Seconds between looks at a queue for what another process put there. What this process puts there
wakes the engine, and so does the end of a job."""
_SHARED_POLL = 0.25
"""The same for the many small jobs that any machine may take; each look costs a database that
machines share some milliseconds."""
_WORKFLOW = "job"
_OFTEN, _LATELY = 3, 6.0
_ATTEMPTS = 5
"""Attempts of a job that are looked for when it is withdrawn."""
_active: set[str] = set()
_turns: dict[str, threading.Semaphore] = {}
"""Of the kinds of which a worker has more at hand than it does at once: those that may go on."""
_bells: list[Callable[[str], None]] = []
"""Wakes the running engine's look into a queue; empty where none runs."""


def queue_of(kind: str, home: str = "") -> str:
    """The queue for jobs of a kind: everybody's, or that of the one machine that can do it."""
    queue = job_kinds.find_kind(kind).queue
    return f"{queue}@{home}" if home else queue


def queue_for(ticket: Ticket) -> str:
    """The queue that a job belongs in."""
    is_local = job_kinds.find_kind(ticket.kind).local and jobs_db.address().shared
    return queue_of(ticket.kind, ticket.home if is_local else "")


def options(ticket: Ticket, delay: float = 0.0) -> EnqueueOptions:
    """How the engine is asked to queue an attempt."""
    asked: EnqueueOptions = {
        "workflow_name": _WORKFLOW,
        "queue_name": queue_for(ticket),
        "workflow_id": ticket.run,
        "app_version": FORMAT,
        "application_name": "tacit",
    }
    if delay > 0:
        asked["delay_seconds"] = min(delay, _FARTHEST)
    return asked


def client(address: Address) -> DBOSClient:
    """For looking at the queues and changing them without working on them."""
    return DBOSClient(
        system_database_url=address.url,
        dbos_system_schema=jobs_db.SCHEMA,
        serializer=DBOSPortableJSONSerializer(),
        application_name="tacit",
        retry_connection_errors=False,
    )


class Engine:
    """The engine while it works. One in a process; `close` ends it."""

    def __init__(self, address: Address, settings: JobSettings) -> None:
        """Start it, and take up what a killed worker left. Raises as `jobs_db.check` does."""
        if _active:  # of one that was stopped: two at once would do the same job
            raise Busy("a job that was begun before is still running", "wait for it to end")
        make_jobs_db(address)
        jobs_db.check(address)
        self.address = address
        self.presence = Presence(address)
        quieten()
        _bells[:] = [jobs_db.hang_bell(DBOS(config=_config(address, self.presence.name)))]
        DBOS.listen_queues(self._queues())
        try:
            DBOS.launch()
            self._register(settings)
            _ring("")
        except BaseException as error:
            self.close()
            if isinstance(error, Exception) and not isinstance(error, TacitError):
                raise Unwritable(
                    f"the queue of jobs at {address.shown} cannot be used: {one_line_of(error)}",
                    "check the free space and the permissions there; then: tacit doctor",
                ) from error
            raise

    def put(self, ticket: Ticket) -> None:
        """Queue a job. Calling it again changes nothing."""
        enqueue(ticket)

    def backlog(self) -> Backlog:
        """What this worker does, and what waits for it. Raises as `jobs_db.check` does."""
        return jobs_db.backlog(self.address, self._queues(), self.presence.name)

    def unrecorded_runs(self) -> set[str]:
        """The runs that count as being done here and are not: their end could not be written.

        One that is just beginning is among them for a moment.
        """
        return set(jobs_db.runs_of_worker(self.address, self.presence.name)) - _active

    def queue_fault(self) -> str:
        """Why it has not been able to look into the queues for some seconds, if so."""
        lately = [why for at, why in _Log.stuck[-_OFTEN:] if time.monotonic() - at < _LATELY]
        return one_line_of(Exception(lately[-1])) if len(lately) == _OFTEN else ""

    def forget(self, days: int) -> None:
        """Drop the jobs that have been over for `days`."""
        before = datetime.now(UTC) - timedelta(days=days)
        old = DBOS.list_workflows(
            completed_before=before.isoformat(), load_input=False, load_output=False, limit=1000
        )
        if old:
            DBOS.delete_workflows([status.workflow_id for status in old])

    def keep_alive(self) -> None:
        """Stay known as alive, and take over what dead workers left. Call it every few seconds."""
        self.presence.beat()
        for name in self.presence.dead():

            def take(name: str = name) -> None:
                if found := jobs_db.recover_runs_of(name):
                    log(f"took over {found} jobs of {name}, which is gone")

            self.presence.in_place_of(name, take)

    def close(self) -> None:
        """Stop without waiting for jobs that run: whoever starts next takes them up."""
        _Log.muted = True
        DBOS.destroy()
        self.presence.leave()

    def _queues(self) -> list[str]:
        found = []
        for name in job_kinds.kind_names():
            found.append(queue_of(name))
            if self.address.shared:
                found.append(queue_of(name, machine()))
        return list(dict.fromkeys(found))

    def _register(self, settings: JobSettings) -> None:
        for name in job_kinds.kind_names():
            kind = job_kinds.find_kind(name)
            most = kind.per_hour or settings.per_hour
            at_once = kind.at_once or settings.at_once
            # On a shared queue what is at hand here might be what another machine waits for.
            ready = 0 if self.address.shared else kind.ready
            if ready:
                _turns[name] = threading.Semaphore(at_once)
            for home in ("", machine()) if self.address.shared else ("",):
                anybody = self.address.shared and kind.ready and not home
                DBOS.register_queue(
                    queue_of(name, home),
                    worker_concurrency=at_once + ready,
                    limiter={"limit": most, "period": 3600.0} if most > 0 else None,
                    polling_interval_sec=_SHARED_POLL if anybody else _POLL,
                    on_conflict="always_update",
                )


def enqueue(ticket: Ticket, delay: float = 0.0) -> None:
    """Queue an attempt from inside the engine's process; the same one is queued once."""
    text = msgspec.json.encode(ticket).decode()
    DBOS.enqueue_workflow_with_options(options(ticket, delay), text)
    if not delay:
        _ring(queue_for(ticket))


def _ring(queue: str) -> None:
    for ring in _bells:
        ring(queue)


def active() -> frozenset[str]:
    """The attempts that are being made in this process."""
    return frozenset(_active)


class _Hold:
    """What a running job is offered (`base.job.JobControl` and `JobFamily`)."""

    def __init__(self, address: Address, run: str) -> None:
        self._address = address
        self._run = run
        self._checked_at = 0.0
        self._cancelled = False
        self._forgiven = False

    def cancelled(self) -> bool:
        if not self._cancelled and time.monotonic() - self._checked_at >= _LOOK:
            self._checked_at = time.monotonic()
            try:
                state = jobs_db.run_statuses(self._address, [self._run]).get(self._run, "")
            except TacitError:  # not known now is not cancelled
                return False
            self._cancelled = state == "CANCELLED"
        return self._cancelled

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        return DBOS.run_step({"name": name}, function)

    def queue(self, kind: str, key: str, payload: dict[str, Any]) -> None:
        if not self._forgiven:  # kills are counted when an attempt begins, so once is enough
            jobs_db.forgive_kills(self._address, self._run)
            self._forgiven = True
        # Outside of this job's context: there, what is queued would be a step, and a job that is
        # taken up again has others to queue.
        Context().run(enqueue, own_ticket(kind, key, payload))

    def results(self, kind: str, keys: Collection[str], most: int) -> dict[str, JobResult]:
        wanted = {own_ticket(kind, key).job: key for key in keys}
        found: dict[str, JobResult] = {}
        while wanted:
            # First the states alone: most are not over, and what was asked is long.
            states = jobs_db.run_statuses(self._address, tuple(wanted))
            over = [run for run, state in states.items() if state not in jobs_db.LIVE_STATUSES]
            runs = jobs_db.engine_runs(self._address, over[:most]) if over else ()
            later: dict[str, str] = {}
            for run in runs:
                key = wanted[run.id]
                if jobs_db.STATES[run.status] == "stuck":  # by kills, which the asking job outlived
                    Context().run(DBOS.resume_workflow, run.id, queue_name=queue_for(run.ticket))
                elif run.done.later > 0:
                    later[f"{run.ticket.job}.{run.ticket.attempt + 1}"] = key
                elif run.status == "SUCCESS":
                    found[key] = run.done
                else:
                    found[key] = JobResult("failed", run.error or run.status.lower())
            wanted = later
        return found

    def withdraw(self, kind: str, keys: Collection[str]) -> None:
        jobs = [own_ticket(kind, key).job for key in keys]
        runs = [f"{job}.{n}" if n > 1 else job for job in jobs for n in range(1, _ATTEMPTS + 1)]
        known = jobs_db.run_statuses(self._address, runs) if runs else {}
        idle = [run for run, status in known.items() if status != "PENDING"]
        if idle:
            Context().run(DBOS.delete_workflows, idle)


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=KILLS - 1)
def _attempt(text: str) -> dict[str, Any]:
    """One attempt at a job."""
    ticket = msgspec.json.decode(text, type=Ticket)
    _active.add(ticket.run)
    try:
        return _try_job(ticket)
    finally:
        _active.discard(ticket.run)


def _try_job(ticket: Ticket) -> dict[str, Any]:
    """Do the job, or put it off. Everything that may differ the next time is a step."""
    allowed = Permission()
    if not job_kinds.find_kind(ticket.kind).ready:  # of those there are many: a step is a write
        allowed = msgspec.convert(
            DBOS.run_step({"name": "may begin"}, lambda: msgspec.to_builtins(may_begin(ticket))),
            Permission,
        )
    if allowed.later:
        _queue_next(ticket, delay=allowed.later)
        return _over(ticket, JobResult("put off", allowed.reason, later=allowed.later))
    done = _run_job(ticket)
    faulty = done.outcome == "fault"
    if faulty and ticket.faults >= len(AGAIN):
        done = JobResult("failed", done.reason)
    elif faulty:
        done = msgspec.structs.replace(done, outcome="put off", later=AGAIN[ticket.faults])
    if done.later > 0:
        _queue_next(ticket, delay=done.later, fault=faulty)
    return _over(ticket, done)


def _run_job(ticket: Ticket) -> JobResult:
    """Have it done by whoever does this kind. What goes wrong becomes an answer with its reason."""
    job = Job(ticket.job, ticket.kind, ticket.key, ticket.payload, ticket.attempt)
    hold = _Hold(jobs_db.address(), ticket.run)
    try:
        with _turns.get(ticket.kind, nullcontext()), controlled_by(hold):
            log(f"{ticket.run}: begins, {ticket.kind} of {ticket.key}")
            return job_kinds.runner(ticket.kind)(job)
    except dbos_error.DBOSException:
        raise
    except (Busy, Unwritable) as error:  # these pass
        return JobResult("fault", error.message)
    except TacitError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return JobResult("failed", error.message + hint)
    except Exception as error:
        return JobResult("fault", f"{type(error).__name__}: {error}")


def _queue_next(ticket: Ticket, *, delay: float, fault: bool = False) -> None:
    after = msgspec.structs.replace(
        ticket, attempt=ticket.attempt + 1, faults=ticket.faults + fault
    )
    enqueue(after, delay)


def _over(ticket: Ticket, done: JobResult) -> dict[str, Any]:
    log(f"{ticket.run}: {done.outcome}{', ' if done.reason else ''}{done.reason}")
    if done.outcome == "failed" and not done.later:
        announcements.announce_failed_job(
            Job(ticket.job, ticket.kind, ticket.key, ticket.payload), done.reason
        )
    built = msgspec.to_builtins(done)
    assert isinstance(built, dict)
    return built


def _config(address: Address, name: str) -> DBOSConfig:
    return {
        "name": "tacit",
        "system_database_url": address.url,
        "dbos_system_schema": jobs_db.SCHEMA,
        "serializer": DBOSPortableJSONSerializer(),
        "application_version": FORMAT,
        "executor_id": name,
        "log_level": "WARNING",
        "sys_db_pool_size": 6,
        "use_listen_notify": False,
        "scheduler_polling_interval_sec": 3600.0,
    }


class _Log(logging.Handler):
    """The engine's own warnings, in the worker's log."""

    muted = False
    """Whether it has been stopped: what a job that runs on then meets is no news."""
    stuck: ClassVar[list[tuple[float, str]]] = []
    """What kept it from looking into a queue; it looks again and again."""

    def emit(self, record: logging.LogRecord) -> None:
        if self.muted:
            return
        if record.getMessage().startswith(jobs_db.POLL_FAILED):
            self.stuck.append((time.monotonic(), record.getMessage().partition(": ")[2]))
            return
        error = record.exc_info[1] if record.exc_info else None
        log(f"engine: {shorten(record.getMessage(), 500)} {one_line_of(error) if error else ''}")


def _tell_time(connection: Any, _record: object) -> None:
    """Give a connection to SQLite the form of `unixepoch` that the engine calls.

    The engine takes it to be there by the version of Python, but it came with SQLite 3.42; a
    Python that uses the system's library may have an older one, where it is NULL.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, lambda how: time.time() // 0.001 / 1000)


if sqlite3.sqlite_version_info < (3, 42):
    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", _tell_time)


def quieten() -> None:
    """Have the engine's warnings in the worker's log, and nothing of it on a terminal."""
    _Log.muted = False
    _Log.stuck.clear()
    engine = logging.getLogger("dbos")
    if not any(isinstance(handler, _Log) for handler in engine.handlers):
        engine.handlers = [_Log()]  # one that is there keeps it off the terminal
        engine.propagate = False
