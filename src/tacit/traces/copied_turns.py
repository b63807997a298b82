"""Turns that a session has from another one: agents copy the history as a session is resumed or
branched, and what was said once must not be counted, or learned from, twice.

A turn is known again by its prompt and the ids of its calls; where those tell nothing, by its
prompt and the moment at which it began. The session that began first, and of these the one that
ended first, has it as its own. Where a file names the session that it was copied from (Codex, which
writes other times then), the words decide.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from tacit.traces.session_rows import unpacked
from tacit.traces.store import Store
from tacit.traces.trace import Head, Text, Told, ToolCall, Turn

_TELLING = 12
"""Characters from which a call's id is no mere number."""


class _Part(msgspec.Struct, gc=False):
    id: str = ""


class _Beginning(msgspec.Struct, gc=False):
    """As much of a turn as it is known by."""

    prompt: str = ""
    steps: tuple[_Part, ...] = ()
    started: datetime | None = None


_decode = msgspec.json.Decoder(_Beginning).decode


class CopiedTurns:
    """Knows which turns of a stored session stand in an earlier one of the same agent."""

    def __init__(self, store: Store, head: Head | None = None) -> None:
        """Of all sessions; or of those of one agent in one project, where `head` is of interest.

        Reads the first turn of each, and keeps a few bytes of those that begin alike.
        """
        self._store = store
        seen: dict[bytes, str] = {}
        self._alike: dict[bytes, list[str]] = {}
        for name, key in _beginnings(store.connection, head):
            if key in seen:
                self._alike.setdefault(key, [seen[key]]).append(name)
            else:
                seen[key] = name

    def of(self, head: Head, turns: Iterable[Turn]) -> frozenset[int]:
        """The numbers of the turns that are copies: those at the beginning that another has."""
        turns = list(turns)
        own = [(turn.number, turn_key(head.host, turn)) for turn in turns]
        first = own[0][1] if own else None
        found = set(of_origin(self._store, head, turns))
        for name in self._alike.get(first, ()) if first else ():
            if name == head.id:
                break
            others = (turn_key(head.host, turn) for turn in self._store.turns(name))
            for (number, key), other in zip(own, others, strict=False):
                if key is None or key != other:
                    break
                found.add(number)
        return frozenset(found)


def of_origin(store: Store, head: Head, turns: list[Turn]) -> Iterator[int]:
    """The turns that stand in the session that the file says it was copied from: by their words, as
    a copy has times of its own, and of the last turn perhaps only the beginning."""
    name = f"{head.host}:{head.copied_from}"
    if not head.copied_from or not store.has(name):
        return
    for turn, other in zip(turns, store.turns(name), strict=False):
        own = _words(turn)
        if not own or _words(other)[: len(own)] != own:
            return
        yield turn.number


def _words(turn: Turn) -> list[object]:
    """What was said and done in a turn; whose words the first are is another's in a helper."""
    said: list[object] = [turn.prompt] if turn.prompt else []
    for step in turn.steps:
        if isinstance(step, Text | Told):
            said.append(step.text)
        elif isinstance(step, ToolCall):
            said.append((step.name, step.arguments))
    return said


def turn_key(host: str, turn: Turn | _Beginning) -> bytes | None:
    """What a turn is known again by; None where nothing tells it from another."""
    named: list[str] = [getattr(part, "id", "") for part in turn.steps]
    ids = [name for name in named if len(name) >= _TELLING]
    if not ids and (turn.started is None or not turn.steps):
        return None
    known_by = ids or [turn.started.isoformat() if turn.started else "", *named]
    return _digest([host, turn.prompt, known_by])


def turn_keys(host: str, turn: Turn) -> frozenset[bytes]:
    """What a turn is known again by also where one of the two breaks off sooner: by its prompt and
    the moment, beside its key."""
    moment = [_digest([host, turn.prompt, turn.started])] if turn.prompt and turn.started else []
    key = turn_key(host, turn)
    return frozenset([*moment, key] if key else moment)


def _digest(said: list[object]) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(said), digest_size=12).digest()


def _beginnings(connection: sqlite3.Connection, head: Head | None) -> list[tuple[str, bytes]]:
    """The sessions by what their first turn is known by, the one that it belongs to first."""
    rows = connection.execute(
        """
        SELECT host, session, sessions.started, ended, body
        FROM sessions JOIN turns ON session_id = sessions.id
        WHERE number = 0 AND (:host = '' OR (host = :host AND project = :project))
        """,
        {"host": head.host if head else "", "project": head.project if head else ""},
    )
    found = []
    for row in rows:
        key = turn_key(row["host"], _decode(unpacked(row["body"])))
        if key is not None:
            order = (row["started"] or 0.0, row["ended"] or 0.0, row["session"])
            found.append((order, f"{row['host']}:{row['session']}", key))
    return [(name, key) for _, name, key in sorted(found)]
