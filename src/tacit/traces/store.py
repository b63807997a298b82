"""Sessions in tacit.db: written once each, redacted first, searched, forgotten for good.

A session is named by its host and its own id; read twice, by whatever way, it counts once. Owns the
transactions, and forgetting: on the user's word, by age, by size. A deleted row leaves its bytes in
free pages, in the full text's old segments and in the log; afterwards the database's files no
longer hold them. What a row holds is left to `session_rows.py`.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Self

import msgspec

from tacit.base import database
from tacit.base.errors import NotFound
from tacit.base.errors import Usage as WrongUse
from tacit.traces import redaction, session_rows, session_search
from tacit.traces.assembler import Reading, repository_folder
from tacit.traces.host import Host, Source
from tacit.traces.hosts.tacit import session_ids, session_path
from tacit.traces.outcomes import Outcome
from tacit.traces.redaction import Redact, sum_counts
from tacit.traces.session_rows import SHORT_ID, SessionRows, Written, turn_of
from tacit.traces.session_search import Sought
from tacit.traces.task_outcomes import task_outcomes
from tacit.traces.trace import OWN_HOST, Head, Trace, Turn


class Stored(msgspec.Struct, frozen=True):
    """A session as a list shows it. Its calls and failures are also those of its helpers."""

    head: Head
    turns: int
    prompts: int
    calls: int
    failures: int
    skills: tuple[str, ...]
    redacted: dict[str, int]
    """Secrets that were taken out, by rule."""
    outcome: Outcome = Outcome()
    """How it ended, with the evidence."""

    @property
    def id(self) -> str:
        return self.head.id


class GoneSession(msgspec.Struct, frozen=True):
    """A session of which only the name is left; what was learned from it stays."""

    id: str
    by_user: bool

    def explain(self) -> str:
        """Why it is not there."""
        why = "it was older, or more, than the settings keep (traces.keep_days, keep_megabytes)"
        why = "you had it forgotten" if self.by_user else why
        return f"the session '{self.id}' is not stored any more: {why}"


class Store:
    """The sessions of this user. One thread at a time; many processes may have one each."""

    def __init__(self, connection: sqlite3.Connection, redact: Redact | None = None) -> None:
        self._connection = connection
        self.writes = database.Writes(connection)
        version = redaction.VERSION if redact is None else 0  # by other rules, or by none
        self._rows = SessionRows(connection, redaction.rules(redact), version)
        database.migrate(connection, "traces", session_rows.MIGRATIONS)

    @classmethod
    def open(cls, path: str | None = None, redact: Redact | None = None) -> "Store":
        """The store in the user's tacit.db, or in the one at `path`; in a `with`, or to be closed.

        One that cannot be used leaves nothing open.
        """
        connection = database.connect(path)
        try:
            return cls(connection, redact)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """For those that keep the store in order, and what belongs to its sessions."""
        return self._connection

    # Writing.

    def take_in(self, host: Host, source: Source) -> Written:
        """Read what is new in `source` and store it, all or nothing. Repeating it adds nothing."""
        reading = Reading(host, source, self._rows.bookmark(source))
        if reading.gone:
            return Written("empty")
        if reading.unchanged:
            return Written("unchanged", self._rows.session_from(source))
        with self.writes.one():
            written = self._write(reading)
            if written.status == "forgotten" and not self._rows.is_forgotten(reading.head):
                return self._write(reading.anew())  # it went on since: taken in whole
            return written

    def take_in_own(self, session: str = "") -> None:
        """Store what is new in the sessions of our own chat, or in one of them."""
        from tacit.traces import host_registry

        own = host_registry.get(OWN_HOST)
        wanted = session_path(session) if session in session_ids() else ""
        for source in own.inside(wanted) if session else own.find():
            self.take_in(own, source)

    def write(self, trace: Trace) -> Written:
        """Store a whole session, in place of what was stored of it."""
        with self.writes.one():
            if self._rows.is_forgotten(trace.head):
                return Written("forgotten", trace.id)
            session, new = self._rows.session(trace.head)
            self._rows.drop_turns(session, 0)
            known = self._rows.known()
            for turn in trace.turns:
                self._rows.add_turn(session, turn, known)
            return self._rows.summed(session, trace.head, new, known)

    def _write(self, reading: Reading) -> Written:
        turns = iter(reading)
        first = next(turns, None)
        if first is None:
            return self._rows.marked(reading, None, Written("empty"))
        if self._rows.is_forgotten(reading.head):
            for _ in turns:  # to the end: then the bookmark is known
                pass
            return self._rows.marked(reading, None, Written("forgotten", reading.head.id))
        session, new = self._rows.session(reading.head)
        known = self._rows.known()

        def add() -> Written:
            for turn in chain((first,), turns):
                self._rows.add_turn(session, turn, known)
            whole = not reading.first
            return self._rows.summed(session, reading.head, new, known, whole=whole)

        if new:
            return self._rows.marked(reading, session, add(), known)
        before = self._one("SELECT source, turns, head FROM sessions WHERE id = ?", session)
        if reading.first and before["source"] != reading.source.path:  # the rest is of another
            return self._write(reading.anew())
        held = self._rows.digest(session, reading.first)
        self._connection.execute("SAVEPOINT before")
        self._rows.drop_turns(session, reading.first)
        if any(taken for _, taken in self._rows.of_turns(session)):
            # Values are kept nowhere: those of the turns before are looked up where they stand.
            known.learn(reading.before())
        written = add()
        elsewhere = before["source"] != reading.source.path and os.path.exists(before["source"])
        same = self._rows.digest(session, reading.first) == held
        # What anybody may have written does not take the place of what an agent keeps.
        claimed = reading.source.handed and not _head(before["head"], "").handed
        if same or (elsewhere and (claimed or written.turns < before["turns"])):
            if elsewhere:
                self._connection.execute("ROLLBACK TO before")
            written = Written("unchanged" if same else "poorer", written.id)
        self._connection.execute("RELEASE before")
        return self._rows.marked(reading, session, written, known)

    def redact_again(self, most: int | None = None) -> bool:
        """Redact the sessions that were stored under fewer rules, `most` of them; whether all are.

        One short transaction a session, and one for the full text: a kill leaves the rest for the
        next time. Each is done once for each version of the rules.
        """
        done = 0
        while done != most and self._rows.outdated() is not None:
            with self.writes.one():  # another process may have been quicker
                if (outdated := self._rows.outdated()) is not None:
                    self._rows.redact_again(outdated)
            done += 1
        if not self._rows.is_merged():
            with self.writes.one():
                self._rows.merge_text()
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._rows.outdated() is None

    def index_again(self, most: int = 500) -> None:
        """Bring the full text of what an earlier version stored up to date, `most` turns at once.

        One short transaction each: a kill leaves the rest for the next time.
        """
        while True:
            with self.writes.one():
                if self._rows.index_again(most) < most:
                    return

    # Asking.

    def sessions(
        self,
        *,
        host: str = "",
        project: str = "",
        since: datetime | None = None,
        skill: str = "",
        limit: int = 100,
        skip: int = 0,
    ) -> list[Stored]:
        """The sessions, the latest first; those below `project` count as its own.

        A helper's session is a part of its parent's, and not listed where that is stored.
        """
        rows = self._connection.execute(
            """
            SELECT * FROM sessions
            WHERE (:host = '' OR host = :host) AND coalesce(ended, stored) >= :since
              AND (parent = '' OR NOT EXISTS (SELECT 1 FROM sessions AS main
                WHERE main.host = sessions.host AND main.session = sessions.parent))
              AND (:project = '' OR project = :project
                OR substr(project, 1, length(:project) + 1) = :project || '/')
              AND (:skill = '' OR EXISTS (SELECT 1 FROM turns, json_each(turns.skills) AS used
                WHERE session_id = sessions.id AND skills != '[]' AND used.value = :skill))
            ORDER BY coalesce(ended, stored) DESC, id DESC LIMIT :limit OFFSET :skip
            """,
            {
                "skill": skill, "host": host, "project": _project(project), "limit": limit,
                "skip": skip, "since": since.timestamp() if since else 0.0,
            },
        )  # fmt: skip
        return [self._stored(row) for row in rows.fetchall()]

    def counts(self) -> dict[str, int]:
        """How many sessions of each host there are."""
        rows = self._connection.execute("SELECT host, count(*) FROM sessions GROUP BY host")
        return {row[0]: row[1] for row in rows.fetchall()}

    def find(self, name: str) -> Stored:
        """The session called `name`: `host:session`, or enough of either end of its own id."""
        rows = self._named(name)
        if len(rows) > 1:
            known = ", ".join(f"{row['host']}:{row['session']}" for row in rows)
            raise WrongUse(f"several sessions are called '{name}': {known}", "name it in full")
        if not rows:
            if gone := self.gone(name):
                raise NotFound(gone.explain(), f"what came of it: tacit why {gone.id}")
            raise NotFound(f"there is no session '{name}'", "see what there is: tacit sessions")
        return self._stored(rows[0])

    def has(self, name: str) -> bool:
        """Whether a session of that full name is stored."""
        host, _, session = name.partition(":")
        query = "SELECT 1 FROM sessions WHERE host = ? AND session = ?"
        return self._connection.execute(query, (host, session)).fetchone() is not None

    def gone(self, name: str) -> GoneSession | None:
        """The session called `name` that was stored once and is not any more, where it is one."""
        host, colon, session = name.partition(":")
        host, session = (host, session) if colon else ("", name)
        end = session if len(session) >= _LEAST else "\0"
        rows = self._connection.execute(
            """
            SELECT host, session, by_user FROM forgotten WHERE (:host = '' OR host = :host)
              AND (session = :session OR substr(session, -length(:end)) = :end)
            ORDER BY session = :session DESC LIMIT 2
            """,
            {"host": host, "session": session, "end": end},
        ).fetchall()
        if not rows or (len(rows) > 1 and rows[0]["session"] != session):
            return None
        row = rows[0]
        return GoneSession(f"{row['host']}:{row['session']}", bool(row["by_user"]))

    def _named(self, name: str) -> list[sqlite3.Row]:
        """The sessions that `name` may mean, a few at most: the exact one, else by an end."""
        host, _, session = name.partition(":")
        given = {"host": host, "session": session, "name": name, "end": name[-SHORT_ID:]}
        rows = self._connection.execute(_EXACT, given).fetchall()
        if not rows and len(name) >= _LEAST:
            by_end = _BY_END if len(name) >= SHORT_ID else _BY_SHORT_END
            for query in (_BY_BEGINNING, by_end):
                rows += self._connection.execute(query, given).fetchall()
        return list({row["id"]: row for row in rows}.values())

    def short_id(self, session: str) -> str:
        """The end of a session's id that no other session shares, for people to read and type."""
        end = session[-SHORT_ID:]
        others = self._connection.execute(
            "SELECT 1 FROM sessions WHERE substr(session, -8) = ? LIMIT 2", (end,)
        )
        return session if len(others.fetchall()) > 1 else end

    def turns(self, name: str) -> Iterator[Turn]:
        """The turns of a session, one by one."""
        head = self.find(name).head
        rows = self._connection.execute(
            """
            SELECT body FROM turns JOIN sessions ON session_id = sessions.id
            WHERE host = ? AND session = ? ORDER BY number
            """,
            (head.host, head.session),
        )
        for row in rows:
            yield turn_of(row["body"])

    def task_outcomes(self, name: str) -> list[Outcome]:
        """How each turn of a session ended, in their order."""
        head = self.find(name).head
        row = self._one(
            "SELECT id FROM sessions WHERE host = ? AND session = ?", head.host, head.session
        )
        return task_outcomes(self._rows.tasks(row["id"]))

    def trace(self, name: str) -> Trace:
        """A session, without what its helpers did."""
        return Trace(self.find(name).head, tuple(self.turns(name)))

    def whole(self, name: str) -> Trace:
        """A session with its helpers' turns, each behind the turn in which the helper began.

        Its own turns keep their numbers; those of helpers have the numbers after them.
        """
        trace = self.trace(name)
        behind: dict[int, list[Turn]] = {}
        number = max((turn.number for turn in trace.turns), default=-1) + 1
        for helper in self.helpers(trace.head):
            turns = tuple(self.turns(helper))
            at = _begun_behind(trace.turns, turns)
            for turn in turns:
                moved = msgspec.structs.replace(turn, number=number, helper=helper)
                behind.setdefault(at, []).append(moved)
                number += 1
        merged = behind.pop(-1, [])
        for at, turn in enumerate(trace.turns):
            merged += [turn, *behind.get(at, ())]
        return Trace(trace.head, tuple(merged))

    def helpers(self, head: Head) -> list[str]:
        """The helpers' sessions of one, theirs included, the earliest first."""
        return [f"{head.host}:{row['session']}" for row in self._family(head.host, head.session)]

    def search(
        self, query: str | Sought, *, project: str = "", limit: int = 20
    ) -> list[session_search.Hit]:
        """The steps in which all words of `query` stand, the best first; or what is sought."""
        sought = query if isinstance(query, Sought) else Sought(query, project=project)
        sought = msgspec.structs.replace(sought, project=_project(sought.project))
        return session_search.find_hits(self._connection, sought, limit)

    def remove(self, names: Iterable[str], *, by_user: bool) -> int:
        """Take sessions out, and remember not to take them in again; how many there were.

        One that the user forgot stays forgotten. One that was only too old comes back when it
        goes on.
        """
        removed = 0
        with self.writes.one():
            for name in names:
                host, _, session = name.partition(":")
                row = self._connection.execute(
                    "SELECT id, head FROM sessions WHERE host = ? AND session = ?", (host, session)
                ).fetchone()
                if row is None:
                    continue
                self._rows.drop_turns(row["id"], 0)
                self._connection.execute(
                    "UPDATE sources SET bookmark = NULL WHERE session_id = ?", (row["id"],)
                )
                self._connection.execute("DELETE FROM sessions WHERE id = ?", (row["id"],))
                self._rows.forget(_head(row["head"], session), by_user=by_user)
                removed += 1
        return removed

    # How it is done.

    def _one(self, query: str, *values: object) -> sqlite3.Row:
        row: sqlite3.Row = self._connection.execute(query, values).fetchone()
        return row

    def _family(self, host: str, session: str) -> list[sqlite3.Row]:
        return self._connection.execute(_FAMILY, {"host": host, "session": session}).fetchall()

    def _stored(self, row: sqlite3.Row) -> Stored:
        of_turns = self._rows.of_turns(row["id"])
        helpers = self._family(row["host"], row["session"])
        return Stored(
            _head(row["head"], row["session"]),
            row["turns"],
            row["prompts"],
            row["calls"] + sum(helper["calls"] for helper in helpers),
            row["failures"] + sum(helper["failures"] for helper in helpers),
            tuple(dict.fromkeys(name for skills, _ in of_turns for name in skills)),
            sum_counts(*(taken for _, taken in of_turns)),
            msgspec.json.decode(row["outcome"], type=Outcome),
        )


_LEAST = 4
"""Characters of an end of an id that name a session."""
_EXACT = """
  SELECT * FROM sessions WHERE host = :host AND session = :session
  UNION SELECT * FROM sessions WHERE session = :name LIMIT 6
"""
_BY_BEGINNING = """
  SELECT * FROM sessions WHERE session >= :name AND session < :name || char(1114111) LIMIT 6
"""
_BY_END = """
  SELECT * FROM sessions
  WHERE substr(session, -8) = :end AND substr(session, -length(:name)) = :name LIMIT 6
"""
_BY_SHORT_END = """
  SELECT * FROM sessions WHERE substr(session, -length(:name)) = :name LIMIT 6
"""
# Helpers may have helpers; what names itself in a circle is met once.
_FAMILY = """
  WITH RECURSIVE part (id, host, session) AS (
    SELECT id, host, session FROM sessions WHERE host = :host AND session = :session
    UNION
    SELECT s.id, s.host, s.session FROM sessions s JOIN part
      ON s.host = part.host AND s.parent = part.session AND s.parent != ''
  )
  SELECT s.session, s.calls, s.failures FROM sessions s JOIN part USING (id)
  WHERE s.session != :session ORDER BY s.started, s.id
"""


def _begun_behind(own: tuple[Turn, ...], helper: tuple[Turn, ...]) -> int:
    """The place of the turn in which a helper began, by the clock; the last where nobody knows."""
    if not helper or (began := helper[0].started) is None:
        return len(own) - 1
    places = [at for at, turn in enumerate(own) if turn.started and turn.started <= began]
    return places[-1] if places else -1


def _project(folder: str) -> str:
    """A project as sessions name it."""
    return repository_folder(folder.rstrip("/")) if folder else ""


def _head(data: bytes, session: str) -> Head:
    """A stored head, under the name by which its session is known."""
    return msgspec.structs.replace(msgspec.json.decode(data, type=Head), session=session)


class Forgotten(msgspec.Struct, frozen=True):
    """What was forgotten."""

    sessions: int = 0
    freed: int = 0
    """Bytes that the database's files are smaller by."""
    in_log: bool = False
    """Another process was reading, so the log could not be emptied yet; it will be when it ends."""


def forget_sessions(
    store: Store, *, session: str = "", project: str = "", before: datetime | None = None
) -> Forgotten:
    """Forget one session, those of a project and the folders below it, or those that ended before.

    Exactly one is given. Forgotten sessions are not taken in again, whatever their files say.
    Tacit's own session files are deleted; other hosts' files are not ours to touch.
    """
    if sum((bool(session), bool(project), before is not None)) != 1:
        raise WrongUse("say one thing to forget: a session, a project, or a time", "")
    if session:
        found = store.find(session)
        names = [found.id, *store.helpers(found.head)]
    elif project:
        names = _names_where(store, _BELOW, _project(project) or "/")
    else:
        assert before is not None
        names = _names_where(store, _BEFORE, before.timestamp())
    return _remove_for_good(store, names, by_user=True)


def prune_sessions(
    store: Store, *, older: timedelta | None = None, most: int | None = None
) -> Forgotten:
    """Drop sessions that ended longer ago than `older`, then the oldest until `most` bytes fit."""
    done = Forgotten()
    if older is not None:
        limit = datetime.now(UTC) - older
        done = _remove_for_good(
            store, _names_where(store, _BEFORE, limit.timestamp()), by_user=False
        )
    for _ in range(8):  # each round comes nearer: what a session takes is known only in sum
        if most is None or (used := _bytes_used(store)) <= most:
            break
        names = _oldest(store, 1.0 - most / used)
        if not names:
            break
        more = _remove_for_good(store, names, by_user=False)
        done = Forgotten(done.sessions + more.sessions, done.freed + more.freed, more.in_log)
    return done


_BELOW = """
  SELECT host || ':' || session FROM sessions
  WHERE project = :value OR substr(project, 1, length(:value) + 1) = :value || '/'
"""
_BEFORE = "SELECT host || ':' || session FROM sessions WHERE coalesce(ended, stored) < :value"


def _names_where(store: Store, query: str, value: object) -> list[str]:
    return [row[0] for row in store.connection.execute(query, {"value": value})]


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


def _remove_for_good(store: Store, names: list[str], *, by_user: bool) -> Forgotten:
    if not names:
        return Forgotten()
    before = _bytes_used(store)
    own = [name for name in names if name.startswith(f"{OWN_HOST}:")]
    received = _received_files(store, names)
    removed = store.remove(names, by_user=by_user)
    if by_user:
        for name in own:
            _delete_own_file(name.partition(":")[2])
    _delete_saved(names)
    for path in received:
        with suppress(FileNotFoundError):
            os.unlink(path)
    in_log = _scrub(store)
    return Forgotten(removed, max(0, before - _bytes_used(store)), in_log)


def _received_files(store: Store, names: list[str]) -> list[str]:
    """The files, of those sessions, that agents sent to the daemon: they are nobody else's."""
    from tacit.traces.hosts.otel import received_folder

    wanted, folder = {name for name in names if name.startswith("otel:")}, received_folder()
    rows = store.connection.execute("SELECT session, source FROM sessions WHERE host = 'otel'")
    found = [row["source"] for row in rows if f"otel:{row['session']}" in wanted] if wanted else []
    return [path for path in found if os.path.dirname(path) == folder]


def _delete_own_file(session: str) -> None:
    """Delete Tacit's own record of a session. The name came from a file: it must stay a name."""
    if session and os.path.basename(session) == session:
        with suppress(FileNotFoundError):
            os.unlink(session_path(session))


def _delete_saved(names: list[str]) -> None:
    """Delete the trajectories that `traces.save` wrote of sessions that are gone."""
    from tacit.traces.trajectory_forms import FORMS, saved_path

    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(saved_path(name, FORMS["atif"]))


def _scrub(store: Store) -> bool:
    """Leave no byte of what was deleted; whether the log could not be emptied yet."""
    connection = store.connection
    path = database.path_of(connection)
    with database.explain_errors(path):
        connection.execute("INSERT INTO turns_text (turns_text) VALUES ('optimize')")
        connection.execute("VACUUM")
        for _ in range(20):
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return False
            time.sleep(0.1)
    return True


def _bytes_used(store: Store) -> int:
    """Bytes that the database takes, its log included."""
    path = database.path_of(store.connection)
    return sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))
