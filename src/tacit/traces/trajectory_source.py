"""Where trajectories come from: the stored sessions that fit, each with its helpers and labels.

Owns the choice among stored sessions and what is looked up for each: its outcome, the versions of
the skills that it loaded, the turns that are copies, what its model was given. Sessions that were
stored with their secrets are redacted here; nothing leaves that was not.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

import msgspec

from tacit.base.errors import NotFound
from tacit.traces import host_registry, redaction
from tacit.traces.assembler import repository_folder
from tacit.traces.copied_turns import CopiedTurns
from tacit.traces.host import Source
from tacit.traces.redaction import redacted_data, sum_counts
from tacit.traces.session_rows import packed, unpacked
from tacit.traces.skill_uses import prepare_use_tables
from tacit.traces.store import Store
from tacit.traces.trace import Given, Head, Trace, Turn
from tacit.traces.trajectory import LoadedSkill, Notes, Trajectory, trajectory_of


class Choice(msgspec.Struct, frozen=True):
    """Which sessions are wanted; an empty field asks for nothing."""

    host: str = ""
    project: str = ""
    since: datetime | None = None
    skill: str = ""
    outcome: str = ""


def chosen_sessions(store: Store, choice: Choice) -> list[str]:
    """The names of all sessions that fit, the earliest first; helpers go with their parents."""
    project = repository_folder(choice.project.rstrip("/")) if choice.project else ""
    rows = store.connection.execute(
        """
        SELECT host || ':' || session FROM sessions
        WHERE (:host = '' OR host = :host) AND coalesce(ended, stored) >= :since
          AND (parent = '' OR NOT EXISTS (SELECT 1 FROM sessions AS main
            WHERE main.host = sessions.host AND main.session = sessions.parent))
          AND (:project = '' OR project = :project
            OR substr(project, 1, length(:project) + 1) = :project || '/')
          AND (:outcome = '' OR coalesce(json_extract(outcome, '$.state'), 'unclear') = :outcome)
          AND (:skill = '' OR EXISTS (SELECT 1 FROM turns, json_each(turns.skills) AS used
            WHERE session_id = sessions.id AND used.value = :skill))
        ORDER BY started, ended, session
        """,
        {
            "host": choice.host,
            "project": project,
            "since": choice.since.timestamp() if choice.since else 0.0,
            "skill": choice.skill,
            "outcome": choice.outcome,
        },
    )
    return [row[0] for row in rows]


class TrajectorySource:
    """Makes trajectories of stored sessions, one at a time; counts the secrets taken out."""

    def __init__(self, store: Store, copies: CopiedTurns) -> None:
        self._store = store
        self._copies = copies
        prepare_use_tables(store.connection)

    def load(self, name: str) -> tuple[Trajectory, dict[str, int]]:
        """A session with its helpers; and how many secrets were taken out of it, by rule.

        Raises `NotFound`, and what the database raises.
        """
        head = self._store.find(name).head
        parts = {name: self._store.find(name).head for name in self._store.helpers(head)}
        counts: dict[str, int] = {}
        return self._trajectory(head, parts.values(), counts, {head.session}), counts

    def _trajectory(
        self, head: Head, parts: Iterable[Head], counts: dict[str, int], above: set[str]
    ) -> Trajectory:
        parts = list(parts)
        below = [one for one in parts if one.parent == head.session and one.session not in above]
        helpers = [
            self._trajectory(one, parts, counts, above | {one.session}) for one in below
        ]  # in a circle each is met once
        stored = self._store.find(head.id)
        turns = tuple(self._store.turns(head.id))
        given = self._given(head)
        taken = stored.redacted
        if not self._is_redacted(head):
            turns, more = _redacted_turns(turns)
            taken = sum_counts(taken, more)
        for rule, times in taken.items():
            counts[rule] = counts.get(rule, 0) + times
        notes = Notes(
            stored.outcome,
            self._store.task_outcomes(head.id),
            self._skills(head.id),
            self._copies.of(head, turns),
            given,
        )
        return trajectory_of(Trace(stored.head, turns), notes, helpers)

    def _skills(self, session: str) -> tuple[LoadedSkill, ...]:
        rows = self._store.connection.execute(
            "SELECT skill, digest, turn, by FROM uses WHERE session = ? AND turn >= 0"
            " ORDER BY turn, skill",
            (session,),
        )
        return tuple(LoadedSkill(*row) for row in rows)

    def _given(self, head: Head) -> Given:
        """What the model was given: as it was kept, or as the agent's file says that is there."""
        named = (head.host, head.session)
        kept = self._store.connection.execute(
            "SELECT body FROM given JOIN sessions ON id = session_id"
            " WHERE host = ? AND session = ?",
            named,
        ).fetchone()
        if kept is not None:
            return _redacted_given(msgspec.json.decode(unpacked(kept["body"]), type=Given))
        row = self._store.connection.execute(
            "SELECT sources.host, path, key FROM sources JOIN sessions ON sessions.id = session_id"
            " WHERE sessions.host = ? AND session = ? AND path = sessions.source",
            named,
        ).fetchone()
        try:
            found = host_registry.get(row["host"]).given(Source(*row)) if row else Given()
        except (NotFound, OSError, sqlite3.Error):
            return Given()
        return _redacted_given(found)

    def _is_redacted(self, head: Head) -> bool:
        row = self._store.connection.execute(
            "SELECT rules FROM sessions WHERE host = ? AND session = ?", (head.host, head.session)
        ).fetchone()
        return row is not None and abs(row["rules"]) >= redaction.VERSION


def keep_given(store: Store, source: Source, session: str) -> None:
    """Keep what the model was given in a session that was handed in: its file need not stay."""
    try:
        found = host_registry.get(source.host).given(source)
    except (OSError, sqlite3.Error):
        return
    if found != Given():
        head = store.find(session).head
        _write_given(store, found, head.host, head.session)


def redact_given(store: Store) -> None:
    """Redact what was kept of that under fewer rules than there are today."""
    rows = store.connection.execute(
        "SELECT host, session, body FROM given JOIN sessions ON id = session_id"
        " WHERE given.rules < ?",
        (redaction.VERSION,),
    ).fetchall()
    for row in rows:
        found = msgspec.json.decode(unpacked(row["body"]), type=Given)
        _write_given(store, found, row["host"], row["session"])


def _write_given(store: Store, given: Given, host: str, session: str) -> None:
    body = packed(_redacted_given(given))
    with store.writes.one():
        store.connection.execute(
            "INSERT OR REPLACE INTO given"
            " SELECT id, ?, ? FROM sessions WHERE host = ? AND session = ?",
            (redaction.VERSION, body, host, session),
        )


def _redacted_given(given: Given) -> Given:
    known = redaction.Known(redaction.rules())
    return Given(known(given.system)[0], tuple(redacted_data(list(given.tools), known)))


def _redacted_turns(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], dict[str, int]]:
    """`turns` without secrets, also where only a later one tells that it is one."""
    known = redaction.Known(redaction.rules())
    once = [known.redacted_turn(turn) for turn in turns]
    twice = [known.struck(turn) for turn, _ in once]
    return tuple(turn for turn, _ in twice), sum_counts(*(n for _, n in (*once, *twice)))
