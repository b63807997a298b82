"""The way of a job into the queue: asked for by a file in a spool, and queued by the worker.

Any process may ask, and is done in a moment, since the engine is not imported for it. The
worker's `JobQueue` starts the engine when there is something to do, queues what was asked for,
and stops it again. A request stays on disk until its job is over, so that it can be queued again
if the database of the queue is lost. What keeps the engine from starting (not installed, a
damaged file, a server that is down) is logged once, and requests wait until it can.
"""

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from tacit import hook
from tacit.base import paths
from tacit.base.errors import MissingExtra, TacitError, Unwritable
from tacit.base.job import job_id
from tacit.base.settings import JobSettings
from tacit.work import jobs_db
from tacit.work.job_kinds import find_kind, kind_names
from tacit.work.presence import log, wake

if TYPE_CHECKING:
    from tacit.work.engine import Engine


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
    find_kind(kind)
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


def waiting_requests() -> list[Request]:
    """The requests that no worker has taken yet, oldest first. Changes nothing."""
    found = (read(path) for path in _files(""))
    # One of a kind that only another version knows stays for that one.
    usable = [r for r in found if r is not None and r.kind in kind_names()]
    return sorted(usable, key=lambda r: (r.at, r.path))


def taken_requests(*, shared: bool = False) -> list[Request]:
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


SOON = 300.0
"""Seconds ahead for which a worker that would go waits for a job that was put off."""
_EVERY = 3.0
"""Seconds between looks at what is over, and at other machines."""
_TRY = 30.0
"""Seconds before the engine is tried again."""


class JobQueue:
    """Takes requests into the queues and sees that they are worked on. One thread."""

    def __init__(self, settings: JobSettings, *, stay: bool = False) -> None:
        self._settings = settings
        self.stays = stay
        """Whether the worker does not go: then it also waits for jobs of other machines."""
        self._engine: Engine | None = None
        self._looked = 0.0
        self._next_try = 0.0
        self._said = ""
        self._lost: set[str] = set()

    @property
    def troubled(self) -> bool:
        """Whether requests cannot be taken up here now, so that nobody should stay for them."""
        return bool(self._said)

    def turn(self) -> bool:
        """Do what is due; whether there is work now or soon, so that the worker should not go."""
        try:
            return self._turn()
        except TacitError as error:
            self._say(error)
        except Exception as error:  # a worker that cannot do jobs still stores sessions
            self._say(TacitError(f"jobs cannot be done: {type(error).__name__}: {error}"[:500]))
        return False

    def rest(self) -> None:
        """Nothing is left to do, but the worker stays: without the engine it costs next to nothing.

        Where others share the queues, it waits for their jobs too.
        """
        if self._engine is not None and not (self.stays and self._engine.address.shared):
            self.close()

    def close(self) -> None:
        """Stop the engine; what it was doing is taken up by the next. Twice is once."""
        engine, self._engine = self._engine, None
        if engine is not None:
            try:
                self._tidy(engine.address)
            except TacitError as error:
                self._say(error)
            engine.close()

    def _turn(self) -> bool:
        now = time.monotonic()
        if self._engine is None:
            if now < self._next_try or not self._is_wanted():
                return False
            self._engine = self._open()
            self._looked = 0.0
            self._said = ""
        waiting = waiting_requests()
        if waiting and self._engine.address.shared:
            jobs_db.check(
                self._engine.address
            )  # the engine itself would wait for a server for ever
        for asked in waiting:
            self._engine.put(asked)
            take(asked, shared=self._engine.address.shared)
        if now - self._looked >= _EVERY:
            self._engine.keep_alive()
            self._tidy(self._engine.address)
            self._look_after(self._engine)
            self._looked = now
        ahead = self._engine.backlog()
        return ahead.ready > 0 or 0 < ahead.next_due < time.time() + SOON

    def _is_wanted(self) -> bool:
        for path in unreadable():
            log(f"{path} is no request: put aside")
            put_aside(path)
        if waiting_requests():
            jobs_db.need_engine("learning from sessions")
            return True
        if not jobs_db.has_engine():
            return False
        place = jobs_db.address()
        if self._looked == 0.0:  # a worker that was killed may have left something
            self._looked = time.monotonic()
            self._tidy(place)
        if (place.shared and self.stays) or waiting_requests():
            return True
        ahead = jobs_db.backlog(place)
        return ahead.ready > 0 or (not self.stays and 0 < ahead.next_due < time.time() + SOON)

    def _open(self) -> "Engine":
        from tacit.learn import announcements
        from tacit.work.engine import Engine

        announcements.listen()
        engine = Engine(jobs_db.address(), self._settings)
        engine.forget(self._settings.keep_days)
        return engine

    def _tidy(self, address: jobs_db.Address) -> None:
        """Drop the requests whose jobs are over; ask again for those that no queue knows."""
        taken = taken_requests(shared=address.shared)
        if not taken:
            return
        known: dict[str, bool] = {}
        for run, state in jobs_db.run_statuses(address).items():
            job = run.partition(".")[0]
            known[job] = known.get(job, False) or state in jobs_db.LIVE_STATUSES
        for asked in taken:
            if asked.job not in known:
                log(f"{asked.job} is in no queue: asked for again")
                ask_again(asked)
            elif not known[asked.job]:
                over(asked.job)

    def _look_after(self, engine: "Engine") -> None:
        """Stop an engine that cannot write: it is started again later, and takes up what it left.

        One whose end could not be written would at once be done again, and again, for as long as
        the disk is full.
        """
        lost = engine.unrecorded_runs()
        again, self._lost = self._lost & lost, lost
        trouble = engine.queue_fault()
        if again or trouble:
            self._engine, self._lost = None, set()
            engine.close()
            what = f"did not take what came of {min(again)}" if again else f"fails: {trouble}"
            raise Unwritable(
                f"the queue at {engine.address.shown} {what}", "check the free space and the server"
            )

    def _say(self, error: TacitError) -> None:
        """Into the log, once for each trouble; that the extra is missing once for all workers."""
        self._next_try = time.monotonic() + _TRY
        text = f"{error.message}{'; ' if error.hint else ''}{error.hint}"
        if text == self._said:
            return
        self._said = text
        if not isinstance(error, MissingExtra) or _is_news("work-is-missing"):
            log(text)


def _is_news(name: str) -> bool:
    """Whether this was never said; from now on it was."""
    try:
        os.close(os.open(os.path.join(paths.folders().data, name), os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True
