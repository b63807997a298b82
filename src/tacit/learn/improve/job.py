"""The job `improve`: one repair, or the verdict on one. `triggers.due` says which are due."""

from typing import Any

import msgspec

from tacit.base.errors import NotFound
from tacit.base.job import Done, Job, cancelled
from tacit.base.settings import load
from tacit.learn import probation
from tacit.learn.improve.repair import repair
from tacit.learn.improve.repairs import Repairs
from tacit.learn.improve.triggers import find_case, where
from tacit.traces.store import Store

LATER = 3600.0
"""Seconds until a repair is tried again for which there was no money, or no answer."""
TRIES = 5


class Wanted(msgspec.Struct, frozen=True):
    """The payload of a job."""

    skill: str
    session: str = ""
    turn: int | None = None
    probation: str = ""
    """The repair whose probation is to be ended."""
    root: str = ""


def run(job: Job) -> Done:
    """Do the job. The same job done twice is the same as once."""
    wanted = _wanted(job.payload)
    with Store.open() as store:
        return _judge(store, wanted) if wanted.probation else _repair(store, wanted, job)


def _wanted(payload: dict[str, Any]) -> Wanted:
    return msgspec.convert(payload, Wanted, strict=False)


def _repair(store: Store, wanted: Wanted, job: Job) -> Done:
    try:
        project = store.find(wanted.session).head.project
        settings = load(where(project)).settings
        case = find_case(store, wanted.session, wanted.skill, settings, wanted.turn)
    except NotFound as gone:
        return Done("nothing", f"{gone.message}: it was there when this was asked for")
    if cancelled() or not settings.improve.use:
        return Done("nothing", "repairs were switched off meanwhile")
    known = Repairs(store.connection).get(job.id)
    if case.why_not and known is None:  # once begun, the job itself is what was looked at lately
        return Done("nothing", case.why_not)
    done = repair(store, case, settings, job.id)
    later = LATER if done.later and job.attempt < TRIES else 0.0
    return Done(done.outcome, done.reason, (done.change,) if done.change else (), later)


def _judge(store: Store, wanted: Wanted) -> Done:
    settings = load(wanted.root).settings
    ended = probation.settle(
        store.connection, wanted.root, wanted.skill, wanted.probation, settings
    )
    return Done(ended.outcome, ended.reason, (ended.change,) if ended.change else ())
