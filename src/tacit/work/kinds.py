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


_KINDS: dict[str, Kind] = {}
_FUNCTIONS: dict[str, Run] = {}


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
        _FUNCTIONS[kind] = run
        run = f"{run.__module__}:{run.__qualname__}"
    else:
        _FUNCTIONS.pop(kind, None)
    _KINDS[kind] = Kind(kind, run, queue or kind, at_once, per_hour, spends)


def names() -> tuple[str, ...]:
    return tuple(_KINDS)


def get(kind: str) -> Kind:
    try:
        return _KINDS[kind]
    except KeyError:
        raise NotFound(
            f"no job of the kind '{kind}' is known", f"known: {', '.join(_KINDS)}"
        ) from None


def runner(kind: str) -> Run:
    """The function that does jobs of this kind, imported now."""
    known = get(kind)
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind]
    module, _, name = known.run.partition(":")
    try:
        return cast("Run", getattr(import_module(module), name))
    except (ModuleNotFoundError, AttributeError) as error:
        raise NotFound(f"nothing here does jobs of the kind '{kind}': {error}") from error


def job_id(kind: str, key: str) -> str:
    """The id of the one job for `kind` and `key`: `review-3f9c0a51b2de`."""
    both = f"{kind}\0{key}".encode("utf-8", "surrogatepass")
    return f"{kind}-{sha256(both).hexdigest()[:12]}"


register("review", "tacit.learn.review.job:run", spends=True)
register("improve", "tacit.learn.improve.job:run", spends=True)
register("curate", "tacit.learn.curate.job:run", per_hour=-1)
register("schedule", "tacit.work.schedules.job:run", at_once=3, per_hour=-1)
