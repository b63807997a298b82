"""The kinds of jobs: which function does each, on which queue, and how many run at once.

The function is a dotted name, so that knowing the kinds imports none of the code behind them.
Also owns `Ticket`, what the queue keeps for one attempt at a job. What a job is given and hands
back, and its id, are in `base/job.py`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import msgspec

from tacit.base.errors import NotFound
from tacit.base.job import Job, JobResult, job_id

Run = Callable[[Job], JobResult]


class Kind(msgspec.Struct, frozen=True):
    """A kind of job. On one queue it shares the limits with the others there."""

    name: str
    run: str
    """`package.module:function`, a `Run`."""
    queue: str
    at_once: int = 0
    """Jobs that one worker does at a time; 0 takes `jobs.at_once`."""
    per_hour: int = 0
    """Jobs that may begin within an hour; 0 takes `jobs.per_hour`, less than 0 is no limit."""
    spends: bool = False
    """Whether it asks a model, so that the daily budget can put it off."""
    local: bool = False
    """Whether only the machine that asked can do it: it has the session, the project and the
    library that the job is about. Where machines share the queues, it waits for that one."""
    own_keys: bool = False
    """Whether two machines may mean different things by the same key."""
    ready: int = 0
    """Jobs that a worker has at hand besides, so that the next begins the moment one is over: for
    short ones of which there are many, and which hold their own money."""


_INQUIRY = "tacit.learn.inquiry:answer_job"
_OURS = (
    Kind("review", "tacit.learn.review.review_job:run_review", "review", spends=True, local=True),
    Kind(
        "improve", "tacit.learn.improve.repair_job:run_improve", "improve", spends=True, local=True
    ),
    Kind(
        "curate",
        "tacit.learn.curate.curator:run_curation",
        "curate",
        per_hour=-1,
        local=True,
        own_keys=True,
    ),
    Kind(
        "schedule",
        "tacit.work.schedule_runner:run",
        "schedule",
        at_once=3,
        per_hour=-1,
        local=True,
        own_keys=True,
    ),
    # What it asks for is one request each, which holds its own money; any machine can make it.
    Kind(
        "distil",
        "tacit.learn.distil.distillation:run_distil",
        "distil",
        at_once=1,
        per_hour=-1,
        local=True,
        own_keys=True,
    ),
    Kind("analyse", _INQUIRY, "analyse", at_once=20, ready=5, per_hour=-1),
    Kind("merge", _INQUIRY, "merge", at_once=20, ready=5, per_hour=-1),
)
_registered: dict[str, Kind] = {}
_functions: dict[str, Run] = {}


def register(
    kind: str,
    run: str | Run,
    *,
    queue: str = "",
    at_once: int = 0,
    per_hour: int = 0,
    spends: bool = False,
    local: bool = False,
) -> None:
    """Make a kind known to this process; before its worker begins. The last one counts."""
    if not isinstance(run, str):
        _functions[kind] = run
        run = f"{run.__module__}:{run.__qualname__}"
    else:
        _functions.pop(kind, None)
    _registered[kind] = Kind(
        kind, run, queue or kind, at_once=at_once, per_hour=per_hour, spends=spends, local=local
    )


def kind_names() -> tuple[str, ...]:
    return tuple(_known())


def find_kind(kind: str) -> Kind:
    known = _known()
    if kind not in known:
        raise NotFound(f"no job of the kind '{kind}' is known", f"known: {', '.join(known)}")
    return known[kind]


def runner(kind: str) -> Run:
    """The function that does jobs of this kind, imported now."""
    known = find_kind(kind)
    if kind in _functions:
        return _functions[kind]
    module, _, name = known.run.partition(":")
    try:
        return cast("Run", getattr(import_module(module), name))
    except (ModuleNotFoundError, AttributeError) as error:
        raise NotFound(f"nothing here does jobs of the kind '{kind}': {error}") from error


def _known() -> dict[str, Kind]:
    return {kind.name: kind for kind in _OURS} | _registered


class Ticket(msgspec.Struct, frozen=True):
    """What the engine keeps for an attempt."""

    kind: str
    key: str
    payload: dict[str, Any] = {}
    attempt: int = 1
    faults: int = 0
    home: str = ""
    """The machine that asked, where several share the queues."""
    own_key: bool = False
    """Whether another machine may have a job of the same key that is not this one."""

    @property
    def job(self) -> str:
        return job_id(self.kind, f"{self.key}\0{self.home}" if self.own_key else self.key)

    @property
    def run(self) -> str:
        """The id of this attempt."""
        return self.job if self.attempt == 1 else f"{self.job}.{self.attempt}"
