"""What one session shows by itself: all that counting over several needs of it, in small.

Working it out reads the whole session. The result is kept beside the session in tacit.db, until the
session changes or is forgotten, or the rules of counting change; so learning again reads only what
is new. What several sessions show together is `findings.py`'s.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b

import msgspec

from tacit.base import database
from tacit.learn import habits, rates
from tacit.learn.habits import SessionChanges, changes_of
from tacit.learn.rates import CountedRun, Done, counted_runs, done_by, lasting_runs, runs_by_call
from tacit.traces import (
    command_purposes,
    observations,
    outcomes,
    redaction,
    requests,
    session_rows,
    wishes,
)
from tacit.traces.requests import Request
from tacit.traces.store import Store
from tacit.traces.trace import Trace
from tacit.traces.wishes import Wish


class CountedSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as it is counted over."""

    id: str
    project: str
    ended: str
    spoken: bool
    """Whether the user said anything in it."""
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
        bool(trace.user_words),
        tuple(wishes.wishes(trace)),
        tuple(requests.requests(trace)),
        tuple(requests.asked(trace)),
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


# Where programs that work in many checkouts at once keep them: REPOSITORY/CHECKOUT below it.
_CHECKOUTS = re.compile(r"(?:^|/)(?:worktrees|conductor/workspaces)/([^/]+)/[^/]+$")
_SAYS_NOTHING = frozenset({
    "api", "app", "backend", "client", "code", "demo", "docs", "frontend", "main", "master",
    "project", "repo", "server", "site", "src", "test", "web", "website", "workspace",
})  # fmt: skip
"""What many a project's folder is called."""


def repository_name(folder: str) -> str:
    """What the repository is called that `folder` is a checkout of."""
    path = folder.replace("\\", "/").rstrip("/")
    kept = _CHECKOUTS.search(path)
    return kept[1] if kept else path.rpartition("/")[2]


def subject_key(folder: str) -> str:
    """Equal for folders that may be checkouts of one repository."""
    name = repository_name(folder).casefold()
    above = os.path.dirname(folder.replace("\\", "/").rstrip("/"))
    return f"{repository_name(above).casefold()}/{name}" if name in _SAYS_NOTHING else name


def one_project_each(sessions: list[CountedSession]) -> list[CountedSession]:
    """The sessions, those of checkouts of one repository under one folder.

    Folders of one name are taken for that where at most one of them is still there: the others
    were worktrees, or are on another machine.
    """
    often = Counter(session.project for session in sessions)
    alike: dict[str, list[str]] = {}
    for folder, _ in often.most_common():
        alike.setdefault(subject_key(folder), []).append(folder)
    meant: dict[str, str] = {}
    for folders in alike.values():
        there = [folder for folder in folders if os.path.isdir(folder)]
        if len(there) <= 1:
            meant |= dict.fromkeys(folders, (there or folders)[0])
    return [
        session if (project := meant.get(session.project, session.project)) == session.project
        else msgspec.structs.replace(session, project=project)
        for session in sessions
    ]  # fmt: skip


@cache
def _rules() -> str:
    """A digest of the code that counts: by other code, another count."""
    digest = blake2b(f"{redaction.VERSION}".encode(), digest_size=12)
    for module in (habits, rates, command_purposes, observations, outcomes, requests, wishes):
        with open(str(module.__file__), "rb") as file:
            digest.update(file.read())
    with open(__file__, "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()
