"""The worker's side of jobs: when the engine is started and stopped, and what it is given.

The engine is started when there is something for it to do, and not before. What keeps it from
starting (not installed, a damaged file, a server that is down) is said in the log, once; requests
stay in the spool until it can.
"""

import os
import time
from typing import TYPE_CHECKING

from tacit.base import paths
from tacit.base.errors import MissingExtra, TacitError, Unwritable
from tacit.base.sections import JobSettings
from tacit.work import requests, where
from tacit.work.log import log

if TYPE_CHECKING:
    from tacit.work.engine import Engine

SOON = 300.0
"""Seconds ahead for which a worker that would go waits for a job that was put off."""
_EVERY = 3.0
"""Seconds between looks at what is over, and at other machines."""
_TRY = 30.0
"""Seconds before the engine is tried again."""


class Desk:
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
        if self._engine is not None and not (self.stays and self._engine.place.shared):
            self.close()

    def close(self) -> None:
        """Stop the engine; what it was doing is taken up by the next. Twice is once."""
        engine, self._engine = self._engine, None
        if engine is not None:
            try:
                self._tidy(engine.place)
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
        waiting = requests.waiting()
        if waiting and self._engine.place.shared:
            where.check(self._engine.place)  # the engine itself would wait for a server for ever
        for asked in waiting:
            self._engine.put(asked)
            requests.take(asked, shared=self._engine.place.shared)
        if now - self._looked >= _EVERY:
            self._engine.attend()
            self._tidy(self._engine.place)
            self._look_after(self._engine)
            self._looked = now
        ahead = self._engine.ahead()
        return ahead.ready > 0 or 0 < ahead.due < time.time() + SOON

    def _is_wanted(self) -> bool:
        for path in requests.unreadable():
            log(f"{path} is no request: put aside")
            requests.put_aside(path)
        if requests.waiting():
            where.need_engine("learning from sessions")
            return True
        if not where.has_engine():
            return False
        place = where.place()
        if self._looked == 0.0:  # a worker that was killed may have left something
            self._looked = time.monotonic()
            self._tidy(place)
        if (place.shared and self.stays) or requests.waiting():
            return True
        ahead = where.ahead(place)
        return ahead.ready > 0 or (not self.stays and 0 < ahead.due < time.time() + SOON)

    def _open(self) -> "Engine":
        from tacit.learn import noticing
        from tacit.work.engine import Engine

        noticing.listen()
        engine = Engine(where.place(), self._settings)
        engine.forget(self._settings.keep_days)
        return engine

    def _tidy(self, place: where.Place) -> None:
        """Drop the requests whose jobs are over; ask again for those that no queue knows."""
        taken = requests.taken(shared=place.shared)
        if not taken:
            return
        known: dict[str, bool] = {}
        for run, state in where.states(place).items():
            job = run.partition(".")[0]
            known[job] = known.get(job, False) or state in where.LIVE
        for asked in taken:
            if asked.job not in known:
                log(f"{asked.job} is in no queue: asked for again")
                requests.ask_again(asked)
            elif not known[asked.job]:
                requests.over(asked.job)

    def _look_after(self, engine: "Engine") -> None:
        """Stop an engine that cannot write: it is started again later, and takes up what it left.

        One whose end could not be written would at once be done again, and again, for as long as
        the disk is full.
        """
        lost = engine.lost()
        again, self._lost = self._lost & lost, lost
        trouble = engine.trouble()
        if again or trouble:
            self._engine, self._lost = None, set()
            engine.close()
            what = f"did not take what came of {min(again)}" if again else f"fails: {trouble}"
            raise Unwritable(
                f"the queue at {engine.place.shown} {what}", "check the free space and the server"
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
