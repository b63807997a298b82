"""The worker's side of the job queue: what was decided is queued, and what is over is closed.

DBOS is the only queue, and only the worker starts it, when there is something to do. What must be
queued follows from the ledger in tacit.db: each job that was decided on is queued once, marked with
the database that has it, and closed when it is over. A job whose database does not know it, since
that was lost or taken back, is queued again; one that is in another database is left alone. What
keeps the engine from starting (not installed, a damaged file, a server that is down) is logged
once, and jobs wait until it can.
"""

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from tacit import hook
from tacit.base import database, paths
from tacit.base.errors import MissingExtra, TacitError, Unwritable
from tacit.base.setting_sections import JobSettings
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.work import jobs_db
from tacit.work.job_kinds import Ticket, kind_names
from tacit.work.presence import Trouble, log, own_ticket

if TYPE_CHECKING:
    from tacit.work.engine import Engine

SOON = 300.0
"""Seconds ahead for which a worker that would exit waits for a job that was put off."""
_EVERY = 3.0
"""Seconds between looks at what is over, and at other machines."""
_TRY = 30.0
"""Seconds before the engine is tried again."""
_LEDGER = 60.0
"""Seconds after which the ledger is read although its file looks unchanged."""


class JobQueue:
    """Queues jobs and sees that they are worked on. One thread."""

    def __init__(self, settings: JobSettings, *, permanent: bool = False) -> None:
        self._settings = settings
        self.permanent = permanent
        """Whether the worker does not exit: then it also waits for jobs of other machines."""
        self._engine: Engine | None = None
        self._checked_at = 0.0
        self._trouble = Trouble(_TRY)
        self._unrecorded: set[str] = set()
        self._ledger_seen: tuple[object, ...] = ()
        self._ledger_read = 0.0
        self._adopted = False

    def has_waiting(self) -> bool:
        """Whether a job waits that could be queued here now, so that a worker should see to it."""
        self._ledger_seen = ()
        try:
            return not self._trouble and bool(self._waiting())
        except TacitError:
            return False

    def put(self, ticket: Ticket) -> bool:
        """Queue a job that is on record elsewhere; whether it is. Calling it again changes nothing.

        False where the queue cannot be used now, which is logged: ask again later.
        """
        if self._engine is None and self._trouble.waits:
            return False
        try:
            engine = self._running()
            self._check(engine)
            engine.put(ticket)
        except Exception as error:
            self._report(error)
            return False
        return True

    def turn(self) -> bool:
        """Do what is due; whether there is work now or soon, so that the worker should not exit."""
        try:
            return self._turn()
        except Exception as error:  # a worker that cannot do jobs still stores sessions
            self._report(error)
        return False

    def rest(self) -> None:
        """Nothing is left to do, but the worker stays: without the engine it costs next to nothing.

        Where others share the queues, it waits for their jobs too.
        """
        if self._engine is not None and not (self.permanent and self._engine.address.shared):
            self.close()

    def close(self) -> None:
        """Stop the engine; the next worker resumes what it was doing. Safe to call again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            try:
                self._settle(engine.address)
            except TacitError as error:
                self._report(error)
            engine.close()

    def _turn(self) -> bool:
        if self._engine is None and (self._trouble.waits or not self._is_wanted()):
            return False
        engine = self._running()
        waiting = self._waiting()
        if waiting:
            self._check(engine)
            with open_ledger() as ledger:
                for job in waiting:
                    engine.put(own_ticket(job.kind, job.key, job.payload))
                    ledger.mark_queued(job.kind, job.key, engine.address.name)
        now = time.monotonic()
        if now - self._checked_at >= _EVERY:
            engine.keep_alive()
            self._settle(engine.address)
            self._look_after(engine)
            self._checked_at = now
        ahead = engine.backlog()
        return ahead.ready > 0 or 0 < ahead.next_due < time.time() + SOON

    def _is_wanted(self) -> bool:
        if not self._adopted:
            adopt_requests()
            self._adopted = True
        if self._waiting():
            return True
        if not jobs_db.has_engine():
            return False
        address = jobs_db.address()
        if self._checked_at == 0.0:  # a worker that was killed may have left something
            self._checked_at = time.monotonic()
            self._settle(address)
        if (address.shared and self.permanent) or self._waiting():
            return True
        ahead = jobs_db.backlog(address)
        return ahead.ready > 0 or (not self.permanent and 0 < ahead.next_due < time.time() + SOON)

    def _waiting(self) -> list[DecidedJob]:
        """The jobs that no queue has. Where tacit.db has not changed, that costs two stats."""
        seen, now = _ledger_stamp(), time.monotonic()
        if not seen or (seen == self._ledger_seen and now - self._ledger_read < _LEDGER):
            return []
        found = waiting_jobs()
        self._ledger_seen, self._ledger_read = () if found else seen, now
        return found

    def _running(self) -> "Engine":
        """The engine, started if need be."""
        if self._engine is None:
            jobs_db.need_engine("learning from sessions")
            from tacit.learn import announcements
            from tacit.work.engine import Engine

            announcements.listen()
            engine = Engine(jobs_db.address(), self._settings)
            engine.forget(self._settings.keep_days)
            self._engine = engine
            self._checked_at = 0.0
            self._trouble.over()
        return self._engine

    def _check(self, engine: "Engine") -> None:
        if engine.address.shared:
            jobs_db.check(engine.address)  # the engine itself would wait for a server for ever

    def _settle(self, address: jobs_db.Address) -> None:
        """Close the jobs that are over; those that their queue does not know wait again."""
        if not _ledger_stamp():
            return
        with open_ledger() as ledger:
            queued = [job for job in ledger.open_jobs() if job.queue == address.name]
            known = jobs_db.live_jobs(address) if queued else {}
            for job in queued:
                if job.id not in known:
                    log(f"{job.id} is in no queue: queued again")
                    ledger.mark_queued(job.kind, job.key, "")
                elif not known[job.id]:
                    ledger.close_job(job.kind, job.key)

    def _look_after(self, engine: "Engine") -> None:
        """Stop an engine that cannot write: it is started again later, and resumes what it left.

        One whose end could not be written would at once be done again, and again, for as long as
        the disk is full.
        """
        unrecorded = engine.unrecorded_runs()
        again, self._unrecorded = self._unrecorded & unrecorded, unrecorded
        fault = engine.queue_fault()
        if again or fault:
            self._engine, self._unrecorded = None, set()
            engine.close()
            what = f"did not take what came of {min(again)}" if again else f"fails: {fault}"
            raise Unwritable(
                f"the queue at {engine.address.shown} {what}", "check the free space and the server"
            )

    def _report(self, error: Exception) -> None:
        """Into the log, once for each trouble; that the extra is missing once for all workers."""
        prefix = "" if isinstance(error, TacitError) else "jobs cannot be done: "
        known = isinstance(error, MissingExtra) and not _is_news("work-is-missing")
        self._trouble.begin(error, prefix, silent=known)


def waiting_jobs() -> list[DecidedJob]:
    """The jobs that were decided on and that no queue has yet, the oldest first.

    One of a kind that only another version knows waits for that version.
    """
    if not _ledger_stamp():
        return []
    with open_ledger() as ledger:
        return [job for job in ledger.open_jobs() if not job.queue and job.kind in kind_names()]


def _ledger_stamp() -> tuple[object, ...]:
    """Changes whenever somebody writes tacit.db; empty where there is none."""
    found: list[object] = []
    for ending in ("", "-wal"):
        try:
            stat = os.stat(database.default_path() + ending)
            found.append((ending, stat.st_mtime_ns, stat.st_size))
        except OSError:
            continue
    return tuple(found)


def _is_news(name: str) -> bool:
    """Whether this was never said; from now on it was."""
    try:
        os.close(os.open(os.path.join(paths.folders().data, name), os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True


class _Request(msgspec.Struct):
    """A file of version 0.1 that asks for a job."""

    kind: str
    key: str
    payload: dict[str, Any]


def adopt_requests() -> None:
    """Take over what version 0.1 kept as files in `requests/`; goes with version 0.3.

    A job that such a file speaks of is queued once, whether or not it was queued before.
    """
    data = paths.folders().data
    spools = [os.path.join(data, "requests")]
    spools += [f"{ground}-requests" for ground in hook.spools(data)[1:]]
    parts = [os.path.join(s, part) for s in spools for part in ("taken", "taken-shared", "")]
    for folder in parts:
        try:
            names = os.listdir(folder) if hook.is_private(folder) else []
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    asked = msgspec.json.decode(file.read(), type=_Request)
            except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue  # a folder, or no request: it stays where it is
            with open_ledger() as ledger:
                session = str(asked.payload.get("session", ""))
                ledger.add_jobs([DecidedJob(asked.kind, asked.key, asked.payload, session)])
            os.unlink(path)
        try:
            os.rmdir(folder)
        except OSError:
            continue
