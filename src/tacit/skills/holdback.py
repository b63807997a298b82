"""Learned skills that are left out of some sessions by lot, so that daily use becomes a trial.

With `learn.holdback` each new session of our own draws for each learned skill that it would have
been offered. The draw is on record with the session, for what was offered as for what was not, and
holds when the session is resumed. A person who asks for a skill by name gets it: the session then
counts on neither side. Sessions of pi and opencode draw in our programs inside those agents, by the
session's id, and tell what they drew when a turn ends. Owns the table `holdbacks`. What the record
says is `learn/trial/`'s.
"""

import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from tacit.base import database
from tacit.base.errors import TacitError
from tacit.skills.library import Library

HOLDBACK_STEPS = (
    """
    CREATE TABLE holdbacks (
      session TEXT PRIMARY KEY, at REAL NOT NULL, offered TEXT NOT NULL, held TEXT NOT NULL) STRICT;
    """,
)


class Holdback(msgspec.Struct, frozen=True):
    """What one session drew: learned skills with the digests of their SKILL.md."""

    session: str = ""
    """As in the store of sessions."""
    offered: dict[str, str] = {}
    held: dict[str, str] = {}


def learned_in(library: Library) -> dict[str, str]:
    """The learned skills that a session in this library would be offered, with their digests."""
    return {
        entry.name: entry.digest
        for entry in library.active()
        if entry.origin == "learned" and entry.model_invocable
    }


def draw(library: Library, share: float, rng: random.Random | None = None) -> Holdback:
    """Draw for each learned skill that a session in this library would be offered."""
    chance, learned = rng or random.SystemRandom(), learned_in(library)
    held = {name for name in learned if share > 0 and chance.random() < share}
    sides = [{n: d for n, d in learned.items() if (n in held) is side} for side in (False, True)]
    return Holdback("", *sides)


def record(session: str, drawn: Holdback) -> bool:
    """Keep what a session drew; whether that could be written. Without it nothing is held back."""
    try:
        with _open() as connection, database.transaction(connection):
            connection.execute(
                "INSERT OR REPLACE INTO holdbacks VALUES (?, ?, ?, ?)",
                (
                    session,
                    datetime.now(UTC).timestamp(),
                    *(msgspec.json.encode(part).decode() for part in (drawn.offered, drawn.held)),
                ),
            )
    except (TacitError, sqlite3.Error):
        return False
    return True


def keep_told(session: str, told: Iterable[Any], *, is_new: bool) -> None:
    """Keep what a session of another agent tells, after each of its turns, that it drew.

    What it does not tell the same each time counts on neither side: the skill changed meanwhile,
    or the share did; nor does one that drew nothing when it was new. What cannot be read is no
    draw.
    """
    for said in told:
        with suppress(msgspec.ValidationError):
            drawn, known = msgspec.convert(said, Holdback), drawn_by(session)
            if known.session:
                sides = ((known.offered, drawn.offered), (known.held, drawn.held))
                drawn = Holdback(session, *(dict(old.items() & new.items()) for old, new in sides))
            if known.session or (is_new and (drawn.offered or drawn.held)):
                record(session, drawn)


def drawn_by(session: str) -> Holdback:
    """What a session drew; nothing where it drew nothing, or that cannot be read."""
    with suppress(TacitError, sqlite3.Error), _open() as connection:
        for found in _read(connection, "WHERE session = ?", (session,)):
            return found
    return Holdback()


def holdbacks(connection: sqlite3.Connection) -> list[Holdback]:
    """What every session drew, the earliest first."""
    database.migrate(connection, "holdbacks", HOLDBACK_STEPS)
    return list(_read(connection, "", ()))


def release(session: str, names: Iterable[str]) -> None:
    """Somebody asked for these skills by name: for them the session is on neither side."""
    known, asked = drawn_by(session), set(names)
    offered, held = (
        {name: digest for name, digest in part.items() if name not in asked}
        for part in (known.offered, known.held)
    )
    record(session, Holdback(session, offered, held))


def _read(
    connection: sqlite3.Connection, where: str, values: tuple[object, ...]
) -> Iterator[Holdback]:
    query = f"SELECT session, offered, held FROM holdbacks {where} ORDER BY at"  # noqa: S608
    for session, *sides in connection.execute(query, values).fetchall():
        yield Holdback(session, *(msgspec.json.decode(part, type=dict[str, str]) for part in sides))


@contextmanager
def _open() -> Iterator[sqlite3.Connection]:
    with database.opened(("holdbacks", HOLDBACK_STEPS), wait=2.0) as connection:
        yield connection
