"""What one session shows by itself: all that counting over several needs of it, in small.

Working it out reads the whole session. The result is kept beside the session in tacit.db, until the
session changes or is forgotten, or the rules of counting change; so learning again reads only what
is new. What several sessions show together is `findings.py`'s.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from itertools import permutations

import msgspec

from tacit.base import database
from tacit.base.display import shorten
from tacit.base.secrets import clean
from tacit.learn import habits, lint_rules, runs, shells
from tacit.learn.habits import SessionChanges, changes_of
from tacit.learn.runs import (
    CountedRun,
    Done,
    counted_runs,
    done_by,
    ended_well,
    is_own_tool,
    lasting_runs,
    path_within,
    runs_by_call,
    without_folders,
)
from tacit.traces import (
    command_line,
    command_purposes,
    copied_turns,
    observations,
    outcomes,
    redaction,
    requests,
    session_rows,
    standing_orders,
    typed_words,
    wishes,
)
from tacit.traces.command_line import joined_commands
from tacit.traces.command_purposes import plain_form, program_of
from tacit.traces.observations import paths_of
from tacit.traces.outcomes import absent_program, call_outcome, uncoloured
from tacit.traces.requests import Request, Said
from tacit.traces.store import Store
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import Head, Trace
from tacit.traces.wishes import Wish


class ToolUse(msgspec.Struct, frozen=True):
    """One way in which a tool of the host failed in a session, and of how many calls."""

    name: str
    error: str
    failed: int
    calls: int


class CountedSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as it is counted over."""

    id: str
    project: str
    repository: str
    started: str
    ended: str
    spoken: bool
    """Whether the user said anything in it."""
    wishes: tuple[Wish, ...]
    requests: tuple[Request, ...]
    said: tuple[Said, ...]
    """What the user typed, sentence by sentence, but for long ones."""
    runs: tuple[CountedRun, ...]
    """What it ran, in order."""
    done: tuple[Done, ...]
    """What was done and worked, in order."""
    changes: SessionChanges
    turns: tuple[tuple[int, frozenset[bytes]], ...]
    """The numbers of its turns, each with what it is known again by."""
    ran: frozenset[str] = frozenset()
    """The programs that were there, by their names."""
    logs: tuple[str, ...] = ()
    """The logs that it looked into."""
    tools: tuple[ToolUse, ...] = ()
    """The tools of the host that failed in it."""
    copied: frozenset[int] = frozenset()
    """Those of them that an earlier session has, and that are not counted here."""


def count_session(trace: Trace, copied: frozenset[int] = frozenset()) -> CountedSession:
    """What a session shows by itself, without the turns that are copies."""
    turns = tuple((turn.number, copied_turns.turn_keys(trace.host, turn)) for turn in trace.turns)
    trace = Trace(trace.head, tuple(turn for turn in trace.turns if turn.number not in copied))
    by_call = runs_by_call(trace)
    words = list(typed_words.typed(trace))
    return CountedSession(
        trace.id,
        trace.project,
        trace.head.repository,
        str(trace.head.started or ""),
        str(trace.head.ended or ""),
        bool(trace.user_words),
        tuple(wishes.wishes(trace, words)),
        tuple(requests.requests(trace, words)),
        tuple(requests.said(trace, words)),
        counted_runs(trace, lasting_runs(trace, by_call)),
        tuple(done for call, runs in by_call for done in done_by(call, runs, trace.project)),
        changes_of(trace, words),
        turns,
        programs_run(trace),
        logs_read(trace),
        tools_failed(trace),
        copied,
    )


def counted_sessions(store: Store, names: Iterable[str]) -> list[CountedSession]:
    """Sessions as they are counted over; those that are new are read whole, and kept so.

    What several hold, since a session was resumed or branched, counts for the first of them. One
    that holds nothing else is left out, and so is one that cannot be counted.
    """
    sessions = {name: _counted(store, name) for name in names}
    known: set[bytes] = set()
    for name, one in sorted(sessions.items(), key=lambda s: (s[1].started, s[1].ended, s[0])):
        copied = frozenset(number for number, keys in one.turns if keys & known)
        known.update(*(keys for _, keys in one.turns))
        if copied != one.copied:
            sessions[name] = _count_anew(store, name, copied)
    return [one for one in sessions.values() if len(one.copied) < len(one.turns)]


def known_sessions(store: Store, names: Iterable[str]) -> list[CountedSession]:
    """Those that were counted before, by the rules of now."""
    kept = (session_rows.counted(store.connection, name, _rules()) for name in names)
    sessions = (_decode(body) for body in kept if body is not None)
    return [one for one in sessions if len(one.copied) < len(one.turns)]


def _counted(store: Store, name: str) -> CountedSession:
    if (kept := session_rows.counted(store.connection, name, _rules())) is not None:
        return _decode(kept)
    return _count_anew(store, name)


def _count_anew(store: Store, name: str, copied: frozenset[int] = frozenset()) -> CountedSession:
    with database.transaction(store.connection):  # nobody adds to it meanwhile
        trace = store.whole(name)
        own = [turn for turn in trace.turns if not turn.helper]
        told = set(copied_turns.of_origin(store, trace.head, own))
        new = tuple(turn for turn in trace.turns if turn.number not in told)
        try:
            session = count_session(Trace(trace.head, new), copied)
        except Exception:  # a boundary: whatever a session holds, the others are counted
            session = count_session(Trace(trace.head, ()))
        body = msgspec.msgpack.encode(session)
        session_rows.keep_counted(store.connection, name, _rules(), body)
    return session


_decode = msgspec.msgpack.Decoder(CountedSession).decode


# Where programs that work in many checkouts at once keep them: REPOSITORY/CHECKOUT below it; of
# Codex CHECKOUT/REPOSITORY.
_CHECKOUTS = re.compile(r"(?:^|/)(?:(?<!\.codex/)worktrees|conductor/workspaces)/([^/]+)/[^/]+$")
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


def is_home(folder: str) -> bool:
    """Whether a folder is somebody's home: what is done there is of no project."""
    home = r"(?:[A-Za-z]:)?/(?:home|Users)/[^/]+/?|/root/?"
    return bool(re.fullmatch(home, folder.replace("\\", "/")))


def system_of(folder: str) -> str:
    """The system that a folder is on, by how it is written."""
    drive = re.match(r"[A-Za-z]:|\\\\", folder)
    return "Windows" if drive else "macOS" if folder.startswith("/Users/") else "Linux"


def subject_keys(head: Head) -> set[str]:
    """Sessions that may be of one repository have one of them in common."""
    return {_folder_key(head.project), head.repository or _folder_key(head.project)}


def _folder_key(folder: str) -> str:
    name = repository_name(folder).casefold()
    above = os.path.dirname(folder.replace("\\", "/").rstrip("/"))
    return f"{repository_name(above).casefold()}/{name}" if name in _SAYS_NOTHING else name


def sessions_by_project(sessions: list[CountedSession]) -> dict[str, list[CountedSession]]:
    """The sessions of each project, in their order."""
    found: dict[str, list[CountedSession]] = {}
    for session in sorted(one_project_each(sessions), key=lambda one: (one.ended, one.id)):
        found.setdefault(session.project, []).append(session)
    return found


def one_project_each(sessions: list[CountedSession]) -> list[CountedSession]:
    """The sessions, those of checkouts of one repository under one folder.

    Folders of one name, and those of one repository as the sessions say, are taken for that where
    at most one of them is still there: the others were worktrees, or are on another machine. A
    repository may have moved: what one folder was a checkout of is one.
    """
    sessions = _under_one_folder(
        sessions, {one.project: _folder_key(one.project) for one in sessions}
    )
    named: dict[str, str] = {}
    moved: dict[str, str] = {}
    for one in sessions:
        if one.repository:
            first = named.setdefault(one.project, moved.get(one.repository, one.repository))
            moved.setdefault(one.repository, first)
    return _after_renames(_under_one_folder(sessions, named))


_SAME_FILES, _OWN_FILES = 4, 3
_EVERYWHERE = re.compile(
    r"\.?(?:src|app|apps|lib|libs|tests?|docs?|public|static|assets|components|pages|packages|cmd"
    r"|internal|pkg|config|scripts?|bin|backend|frontend|server|client|web|api|specs?|examples?"
    r"|github|vscode|claude|codex|cursor|specify|agents?|husky|planning|openspec)/",
    re.IGNORECASE,
)
"""Folders that many a project has."""
_NAME_WORD = re.compile(r"[a-z]{4,}")


def _after_renames(sessions: list[CountedSession]) -> list[CountedSession]:
    """The sessions, those of a folder that got another name under the new one: it lay beside it
    until that began, and the same files are in both; its name has a word in common with it, or that
    began on the same day and the files lie where few projects have any."""
    ended: dict[str, str] = {}
    began: dict[str, str] = {}
    files: dict[str, set[str]] = {}
    for one in sorted(sessions, key=lambda one: one.started):
        began.setdefault(one.project, one.started)
        ended[one.project] = max(ended.get(one.project, ""), one.ended)
        deep = {path for path in one.changes.edited if "/" in path}
        files.setdefault(one.project, set()).update(deep)
    meant = {}
    for old, new in permutations(began, 2):
        if os.path.dirname(old) != os.path.dirname(new) or ended[old] >= began[new]:
            continue  # soon, since there may be many projects
        same = files[old] & files[new]
        shared, own = len(same), [path for path in same if not _EVERYWHERE.match(path)]
        words = (set(_NAME_WORD.findall(os.path.basename(name).casefold())) for name in (old, new))
        alike = bool(set.intersection(*words)) and not os.path.isdir(old)
        at_once = ended[old][:10] == began[new][:10] and not os.path.isdir(old)
        enough = shared >= _SAME_FILES and 4 * shared >= min(len(files[old]), len(files[new]))
        if (alike and enough) or (at_once and len(own) >= _OWN_FILES):
            meant[old] = new
    return [_of_project(one, meant.get(one.project, one.project)) for one in sessions]


def _of_project(session: CountedSession, project: str) -> CountedSession:
    same = session.project == project
    return session if same else msgspec.structs.replace(session, project=project)


def _under_one_folder(sessions: list[CountedSession], keys: dict[str, str]) -> list[CountedSession]:
    """The sessions; where folders have one key, under the one that is there, or has most."""
    often = Counter(session.project for session in sessions)
    alike: dict[str, list[str]] = {}
    for folder, _ in often.most_common():
        alike.setdefault(keys.get(folder, folder), []).append(folder)
    meant: dict[str, str] = {}
    for folders in alike.values():
        there = [folder for folder in folders if os.path.isdir(folder)]
        if len(there) <= 1:
            meant |= dict.fromkeys(folders, (there or folders)[0])
    return [_of_project(one, meant.get(one.project, one.project)) for one in sessions]


_COUNTING = (
    habits, lint_rules, runs, shells, command_line, command_purposes, copied_turns, observations,
    outcomes, requests, standing_orders, typed_words, wishes,
)  # fmt: skip


@cache
def _rules() -> str:
    """A digest of the code that counts: by other code, another count."""
    digest = blake2b(f"{redaction.VERSION}".encode(), digest_size=12)
    for module in _COUNTING:
        with open(str(module.__file__), "rb") as file:
            digest.update(file.read())
    with open(__file__, "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()


def programs_run(trace: Trace) -> frozenset[str]:
    """The programs that a session ran and that were there, those too that only look around."""
    shell = (call for call in trace.each_call() if call.kind == "shell")
    well = (call for call in shell if call.finished and not call.failed)
    plain = (call for call in well if not re.search(r"\bPATH=", command_of(call)))
    there = (call for call in plain if not absent_program(uncoloured(call.result)))
    lines = (ended_well(joined_commands(command_of(call))) for call in there)
    parts = (part.words for line in lines for part in line)
    names = (name for words in parts for name in (words[0], program_of(words)) if name in words)
    return frozenset(name for name in names if re.fullmatch(r"[\w.+-]{1,30}", name))


_TOO_LARGE = re.compile(r"exceeds (?:the )?maximum|too large")
_SAID_FIRST = 5
"""Lines of what a tool said that tell what is wrong."""


def tools_failed(trace: Trace) -> tuple[ToolUse, ...]:
    """How the host's own tools failed, by what they said, and by the file where one is too large to
    read; of the shell what it ran is counted."""
    calls: Counter[str] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for call in trace.each_call():
        if call.kind == "shell" or is_own_tool(call):
            continue
        name = call.name
        if call.failed and call.kind == "read" and _TOO_LARGE.search(call.result[:400]):
            name = " ".join([name, *(path_within(p, trace.project) or p for p in paths_of(call))])
        calls[name] += 1
        if call.failed and call_outcome(call).state == "failed":
            lines = re.sub(r"</?tool_use_error>", "", call.result[:2000]).split("\n")
            said = [without_folders(line.strip(), trace.project) for line in lines if line.strip()]
            failed[name, shorten("\n".join(said[:_SAID_FIRST]), 300)] += 1
    return tuple(
        ToolUse(name, clean(error), count, calls[name]) for (name, error), count in failed.items()
    )


_LOG = re.compile(r"(?!/tmp/)(?!.*\d{4})[\w./~-]+\.log")  # none of a day or of one customer
_SHOWS_LOG = re.compile(
    r"(?:(?:docker|podman)(?: compose)?|docker-compose|kubectl|pm2|heroku|fly|vercel) logs (?!-)\S+"
    r"|journalctl -u \S+"
)


def logs_read(trace: Trace) -> tuple[str, ...]:
    """The logs that a session looked into: files, or what shows those of a service."""
    found: dict[str, None] = {}
    for call in trace.each_call():
        if call.kind == "read" and call.finished and not call.failed:
            named = (path_within(path, trace.project) for path in paths_of(call))
            found |= dict.fromkeys(path for path in named if _LOG.fullmatch(path))
        elif call.kind == "shell" and call.finished and not call.failed:
            for part in joined_commands(command_of(call)):
                words = plain_form(part.words, trace.project).split()
                found |= dict.fromkeys(word for word in words[1:] if _LOG.fullmatch(word))
                if shown := _SHOWS_LOG.match(" ".join(words)):
                    found[shown[0]] = None
    return tuple(clean(name) for name in found)
