"""What one session shows by itself: all that counting over several needs of it, in small.

Working it out reads the whole session. The result is kept beside the session in tacit.db, until the
session changes or is forgotten, or the rules of counting change; so learning again reads only what
is new. What several sessions show together is `findings.py`'s.
"""

import os
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b

import msgspec

from tacit.base import database
from tacit.learn import habits, rates
from tacit.learn.habits import SessionChanges, changes_of
from tacit.learn.rates import CountedRun, Run, counted_runs, lasting_runs, runs_by_call
from tacit.traces import command_purposes, observations, outcomes, redaction, session_rows, wishes
from tacit.traces.observations import paths_of
from tacit.traces.store import Store
from tacit.traces.trace import REFUSED, ToolCall, Trace
from tacit.traces.wishes import Request, Wish


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was done and worked: its key, and the form it had."""

    key: str
    form: str
    tool: bool = False


class CountedSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as it is counted over."""

    id: str
    project: str
    ended: str
    wishes: tuple[Wish, ...]
    requests: tuple[Request, ...]
    asked: tuple[tuple[int, str, frozenset[str]], ...]
    """The short sentences that ask for something: turn, sentence, telling words."""
    runs: tuple[CountedRun, ...]
    """What it ran, in order."""
    done: tuple[Done, ...]
    """What was done and worked, in order."""
    changes: SessionChanges


def count_session(trace: Trace) -> CountedSession:
    """What a session shows by itself."""
    by_call = runs_by_call(trace)
    return CountedSession(
        trace.id,
        trace.project,
        str(trace.head.ended or ""),
        tuple(wishes.wishes(trace)),
        tuple(wishes.requests(trace)),
        tuple(wishes.asked(trace)),
        counted_runs(trace, lasting_runs(trace, by_call)),
        tuple(done for call, runs in by_call for done in done_by(call, runs, trace.project)),
        changes_of(trace),
    )


def counted_sessions(store: Store, names: Iterable[str]) -> Iterator[CountedSession]:
    """Sessions as they are counted over; those that are new are read whole, and kept so."""
    decode = msgspec.msgpack.Decoder(CountedSession).decode
    for name in names:
        if (kept := session_rows.counted(store.connection, name, _rules())) is not None:
            yield decode(kept)
            continue
        with database.transaction(store.connection):  # nobody adds to it meanwhile
            session = count_session(store.whole(name))
            body = msgspec.msgpack.encode(session)
            session_rows.keep_counted(store.connection, name, _rules(), body)
        yield session


@cache
def _rules() -> str:
    """A digest of the code that counts: by other code, another count."""
    digest = blake2b(f"{redaction.VERSION}".encode(), digest_size=12)
    for module in (habits, rates, command_purposes, observations, outcomes, wishes):
        with open(str(module.__file__), "rb") as file:
            digest.update(file.read())
    with open(__file__, "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()


def done_by(call: ToolCall, runs: Iterable[Run], project: str) -> Iterator[Done]:
    """What a call did and that worked; `runs` are its purposes."""
    if call.error == REFUSED or not call.finished:
        return
    if call.kind in ("write", "edit") and not call.failed:
        for path in paths_of(call):
            name = os.path.relpath(path, project) if _inside(path, project) else ""
            if name:
                yield Done(f"edit {name}", name)
    for run in runs:
        if run.outcome.state == "worked":
            yield Done(run.purpose, run.form, call.kind == "other")


def _inside(path: str, project: str) -> bool:
    return bool(project) and path.startswith(project.rstrip("/") + "/")
