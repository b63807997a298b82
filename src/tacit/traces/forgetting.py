"""Forgetting sessions for good: on the user's word, by age, by size.

A deleted row leaves its bytes in free pages, in the full text's old segments and in the log.
Owns getting rid of those as well: afterwards the database's files no longer hold them.
"""

import os
import time
from datetime import UTC, datetime, timedelta

import msgspec

from tacit.base import database
from tacit.base.errors import Usage as WrongUse
from tacit.base.paths import folders
from tacit.traces.store import Store


class Forgotten(msgspec.Struct, frozen=True):
    """What was forgotten."""

    sessions: int = 0
    freed: int = 0
    """Bytes that the database's files are smaller by."""
    in_log: bool = False
    """Another process was reading, so the log could not be emptied yet; it will be when it ends."""


def forget(
    store: Store, *, session: str = "", project: str = "", before: datetime | None = None
) -> Forgotten:
    """Forget one session, those of a project and the folders below it, or those that ended before.

    Exactly one is given. Forgotten sessions are not taken in again, whatever their files say.
    Tacit's own session files are deleted; other hosts' files are not ours to touch.
    """
    if sum((bool(session), bool(project), before is not None)) != 1:
        raise WrongUse("say one thing to forget: a session, a project, or a time", "")
    if session:
        names = [store.find(session).id]
    elif project:
        names = _names(store, _BELOW, project.rstrip("/") or "/")
    else:
        assert before is not None
        names = _names(store, _BEFORE, before.timestamp())
    return _out(store, names, by_user=True)


def prune(store: Store, *, older: timedelta | None = None, most: int | None = None) -> Forgotten:
    """Drop sessions that ended longer ago than `older`, then the oldest until `most` bytes fit."""
    done = Forgotten()
    if older is not None:
        limit = datetime.now(UTC) - older
        done = _out(store, _names(store, _BEFORE, limit.timestamp()), by_user=False)
    for _ in range(8):  # each round comes nearer: what a session takes is known only in sum
        if most is None or (used := _used(store)) <= most:
            break
        names = _oldest(store, 1.0 - most / used)
        if not names:
            break
        more = _out(store, names, by_user=False)
        done = Forgotten(done.sessions + more.sessions, done.freed + more.freed, more.in_log)
    return done


_BELOW = """
  SELECT host || ':' || session FROM sessions
  WHERE project = ?1 OR substr(project, 1, length(?1) + 1) = ?1 || '/'
"""
_BEFORE = "SELECT host || ':' || session FROM sessions WHERE coalesce(ended, stored) < ?"


def _names(store: Store, query: str, value: object) -> list[str]:
    return [row[0] for row in store.connection.execute(query, (value,))]


def _oldest(store: Store, share: float) -> list[str]:
    """The oldest sessions that together make up at least `share` of what is stored."""
    rows = store.connection.execute(
        """
        SELECT host || ':' || session, (SELECT coalesce(sum(length(body)), 0) FROM turns
          WHERE session_id = sessions.id)
        FROM sessions ORDER BY coalesce(ended, stored)
        """
    ).fetchall()
    wanted, names = share * sum(size for _, size in rows), []
    for name, size in rows:
        names.append(name)
        wanted -= size
        if wanted <= 0:
            break
    return names


def _out(store: Store, names: list[str], *, by_user: bool) -> Forgotten:
    if not names:
        return Forgotten()
    before = _used(store)
    own = [name for name in names if name.startswith("tacit:")]
    removed = store.remove(names, by_user=by_user)
    if by_user:
        for name in own:
            _delete_own(name.partition(":")[2])
    in_log = _scrub(store)
    return Forgotten(removed, max(0, before - _used(store)), in_log)


def _delete_own(session: str) -> None:
    """Delete Tacit's own record of a session. The name came from a file: it must stay a name."""
    if session and os.path.basename(session) == session:
        try:
            os.unlink(os.path.join(folders().data, "sessions", f"{session}.jsonl"))
        except FileNotFoundError:
            pass


def _scrub(store: Store) -> bool:
    """Leave no byte of what was deleted; whether the log could not be emptied yet."""
    connection = store.connection
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    with database.explained(path):
        connection.execute("INSERT INTO turns_text (turns_text) VALUES ('optimize')")
        connection.execute("VACUUM")
        for _ in range(20):
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return False
            time.sleep(0.1)
    return True


def _used(store: Store) -> int:
    """Bytes that the database takes, its log included."""
    path = store.connection.execute("PRAGMA database_list").fetchone()[2]
    return sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))
