"""The kinds of jobs: who does each, on which queue, and how many at once.

Who does it is a dotted name, so that knowing the kinds imports none of the code behind them. What
a job is given and hands back is `base/job.py`.
"""

from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from typing import cast

import msgspec

from tacit.base.errors import NotFound
from tacit.base.job import Done, Job

__all__ = ["Done", "Job", "Kind", "Run", "get", "job_id", "names", "register", "runner"]

Run = Callable[[Job], Done]


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


_OURS = (
    Kind("review", "tacit.learn.review.job:run", "review", spends=True),
    Kind("improve", "tacit.learn.improve.job:run", "improve", spends=True),
    Kind("curate", "tacit.learn.curate.job:run", "curate", per_hour=-1),
    Kind("schedule", "tacit.work.schedules.job:run", "schedule", at_once=3, per_hour=-1),
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
) -> None:
    """Make a kind known to this process; before its worker begins. The last one counts."""
    if not isinstance(run, str):
        _functions[kind] = run
        run = f"{run.__module__}:{run.__qualname__}"
    else:
        _functions.pop(kind, None)
    _registered[kind] = Kind(kind, run, queue or kind, at_once, per_hour, spends)


def names() -> tuple[str, ...]:
    return tuple(_known())


def get(kind: str) -> Kind:
    known = _known()
    if kind not in known:
        raise NotFound(f"no job of the kind '{kind}' is known", f"known: {', '.join(known)}")
    return known[kind]


def runner(kind: str) -> Run:
    """The function that does jobs of this kind, imported now."""
    known = get(kind)
    if kind in _functions:
        return _functions[kind]
    module, _, name = known.run.partition(":")
    try:
        return cast("Run", getattr(import_module(module), name))
    except (ModuleNotFoundError, AttributeError) as error:
        raise NotFound(f"nothing here does jobs of the kind '{kind}': {error}") from error


def job_id(kind: str, key: str) -> str:
    """The id of the one job for `kind` and `key`: `review-3f9c0a51b2de`."""
    both = f"{kind}\0{key}".encode("utf-8", "surrogatepass")
    return f"{kind}-{sha256(both).hexdigest()[:12]}"


def _known() -> dict[str, Kind]:
    return {kind.name: kind for kind in _OURS} | _registered
