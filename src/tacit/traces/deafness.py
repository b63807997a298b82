"""Deafness: an agent whose sessions are no longer understood, as after an update of its files.

Concluded from what stands in the store, and from databases that lack what their readers ask for:
records that no reader knows, results without calls, tool calls or prompts that stop from one
session to the next, files of which nothing was understood. Says which agent, since when, and what
was lost. Reading is the hosts' business, telling the user that of whoever asks.
"""

import os
import sqlite3
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from tacit.base import database
from tacit.base.display import counted
from tacit.base.doctor import Check, Finding
from tacit.base.errors import TacitError
from tacit.traces import host_registry
from tacit.traces.assembler import Bookmark
from tacit.traces.session_rows import MIGRATIONS
from tacit.traces.trace import REASONS, Head

_LATEST = 40
"""Sessions of an agent that are looked at."""
_ALWAYS = ("host-error", "lone-result", "unreadable")
"""What is never passed over in a session that was understood."""
_MANY = ("unknown-record", "bad-record", "not-json")
"""Of these there may be a few in any session."""
_RUN = 4
"""Sessions in a row without a tool call, or a prompt, that are no chance."""
_RUN_AFTER_UPDATE = 2
_BEFORE = 5
"""Sessions before those that must have had some, but one in five."""


class Deafness(msgspec.Struct, frozen=True):
    """An agent that is not understood."""

    host: str
    title: str
    version: str = ""
    """Of the agent, when it was last met."""
    since: datetime | None = None
    sessions: int = 0
    lost: tuple[str, ...] = ()
    """What was lost, each in words."""

    def explain(self) -> str:
        """All of it in a sentence."""
        name = f"{self.title} {self.version}".strip()
        when = f", since {self.since.astimezone():%Y-%m-%d %H:%M}" if self.since else ""
        where = f" in {counted(self.sessions, 'session')}{when}" if self.sessions else ""
        return f"{name} is not understood{where}: {'; '.join(self.lost)}"


class _Met(NamedTuple):
    """What reading one session gave."""

    head: Head
    calls: int
    prompts: int
    turns: int

    def losses(self) -> dict[str, int]:
        """What was passed over in it, if that was more than a trifle."""
        skipped = self.head.skipped
        found = {reason: skipped[reason] for reason in _ALWAYS if reason in skipped}
        many = {reason: skipped[reason] for reason in _MANY if reason in skipped}
        if sum(many.values()) > self.calls + self.turns:
            found |= many
        return found


def find_deafness(connection: sqlite3.Connection | None) -> list[Deafness]:
    """The agents that are not understood as it stands, by name; without a store, by their own
    files alone."""
    found = []
    met = _met(connection) if connection is not None else {}
    for host in host_registry.each():
        sessions = met.get(host.name, [])
        version = sessions[-1].head.version if sessions else ""
        if fault := host.fault():
            found.append(Deafness(host.name, host.title, version, lost=(fault,)))
        elif sessions and (deaf := _from_sessions(host.name, host.title, sessions)):
            found.append(deaf)
    return found


def _from_sessions(host: str, title: str, sessions: list[_Met]) -> Deafness | None:
    """What the latest sessions of an agent say, the oldest first."""
    bad = [one for one in sessions if one.losses()]
    lost = []
    if any(one.losses() for one in sessions[-2:]):
        sums: dict[str, int] = {}
        for one in bad:
            for reason, times in one.losses().items():
                sums[reason] = sums.get(reason, 0) + times
        lost = [f"{times} {REASONS[reason]}" for reason, times in sums.items()]
    else:
        bad = []
    for what, words in (("calls", "tool call"), ("prompts", "message of yours")):
        silent = _silent(sessions, what)
        if silent:
            lost.append(f"not one {words} was read, where the sessions before had some")
            bad = max(bad, silent, key=len)
    if not lost:
        return None
    return Deafness(host, title, bad[-1].head.version, bad[0].head.ended, len(bad), tuple(lost))


def _silent(sessions: list[_Met], what: str) -> list[_Met]:
    """The last sessions, if all at once they hold none of what those before did."""
    # A session of a question and an answer has no calls, a helper's no prompts.
    own = [one for one in sessions if one.turns and not one.head.parent]
    end = len(own)
    while end and not getattr(own[end - 1], what):
        end -= 1
    silent, before = own[end:], own[:end]
    if not silent or len(before) < _BEFORE:
        return []
    updated = silent[0].head.version != before[-1].head.version
    had = sum(bool(getattr(one, what)) for one in before)
    enough = len(silent) >= (_RUN_AFTER_UPDATE if updated else _RUN)
    return silent if enough and had * 5 >= len(before) * 4 else []


def _met(connection: sqlite3.Connection) -> dict[str, list[_Met]]:
    """The latest sessions of each agent, the oldest first, and files that gave none."""
    found: dict[str, list[_Met]] = {}
    for (host,) in connection.execute("SELECT DISTINCT host FROM sessions").fetchall():
        rows = connection.execute(
            "SELECT head, calls, prompts, turns FROM sessions WHERE host = ?"
            " ORDER BY coalesce(ended, stored) DESC LIMIT ?",
            (host, _LATEST),
        )
        found[host] = [
            _Met(msgspec.json.decode(row["head"], type=Head), *tuple(row)[1:]) for row in rows
        ]
    rows = connection.execute(
        "SELECT host, bookmark FROM sources WHERE session_id IS NULL AND bookmark IS NOT NULL"
    )
    for row in rows:
        head = msgspec.json.decode(row["bookmark"], type=Bookmark).head
        if head.skipped:
            found.setdefault(row["host"], []).append(_Met(head, 0, 0, 0))
    for sessions in found.values():
        sessions.sort(key=lambda one: one.head.ended or datetime.min.replace(tzinfo=UTC))
        del sessions[:-_LATEST]
    return found


def check_deafness() -> list[Finding]:
    """What the agents wrote was understood."""
    if not os.path.exists(database.default_path()):
        return _findings(find_deafness(None))
    try:
        with database.opened(("traces", MIGRATIONS)) as connection:
            return _findings(find_deafness(connection))
    except TacitError:  # which another check names
        return []


def _findings(found: list[Deafness]) -> list[Finding]:
    fix = "mend that, or update Tacit; then have what was lost read: tacit import"
    return [Finding("deaf", one.explain(), fix) for one in found]


DEAFNESS_CHECKS: tuple[Check, ...] = (check_deafness,)
