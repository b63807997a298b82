"""Failures that count against a skill, and the record of what was tried to mend them.

A step failed when its host said so. What was clearly not the skill's doing (no network, a full
disk, a call that the user did not allow) does not count, nor does what the agent soon got over.
Owns the table `repairs` in tacit.db: by it the same failure is not examined twice for one version,
a skill is left alone for a while after a repair, and what did harm is not tried again.
"""

import hashlib
import os
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.setting_sections import ImproveSettings
from tacit.changes.neighbours import resemblance, sketch
from tacit.learn.skill_runs import RunStep, SkillRun
from tacit.traces.command_line import simple_commands
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import ToolCall

# What a failed step says when the cause lies around it. Only what leaves no doubt: a refused
# connection may be a server that the skill forgot to start.
_ENVIRONMENT = (
    ("no network", re.compile(
        r"(?i)could ?n[o']t resolve (host|proxy)|name or service not known"
        r"|temporary failure in name resolution|nodename nor servname|network is (unreachable|down)"
        r"|no route to host|getaddrinfo|\b(ENETUNREACH|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)\b"
        r"|dial tcp: lookup|failed to resolve|tls handshake timeout|err_internet_disconnected"
    )),
    ("a service that was not there", re.compile(
        r"(?i)\b429\b.{0,20}too many requests|rate limit(ed)?\b.{0,20}exceeded"
        r"|\b50[234]\b.{0,20}(bad gateway|service unavailable|gateway time-?out)"
    )),
    ("a full disk", re.compile(
        r"(?i)no space left on device|\bENOSPC\b|disk quota exceeded|\bEDQUOT\b"
    )),
    ("no memory", re.compile(
        r"(?i)cannot allocate memory|out of memory|\bENOMEM\b|oom-kill"
    )),
    ("no sandbox for commands", re.compile(r"commands run only in a sandbox, and there is none")),
    ("an interrupt", re.compile(
        r"\[(not run: |stopped while it ran: )?(interrupted|the limit on)|\[interrupted by the user"
        r"|\[no result: the session ended"
    )),
)  # fmt: skip
_RUNNERS = {
    "bash", "sh", "zsh", "python", "python3", "node", "ruby", "perl", "npx", "npm", "pnpm", "yarn",
    "uv", "uvx", "run", "poetry", "cargo", "go", "make", "git", "docker", "exec", "env", "sudo",
}  # fmt: skip
_MOST_READ = 2_000


class Failure(msgspec.Struct, frozen=True):
    """One failed step that counts."""

    step: RunStep
    mark: str
    """The same for the same failure, whatever the numbers and folders in it."""
    cost: int
    """Calls until it was got over; 0 when it never was."""


def counted_failures(run: SkillRun, settings: ImproveSettings) -> tuple[Failure, ...]:
    """The failures for which the skill is to be repaired; none when there are too few."""
    found = []
    for place, step in enumerate(run.governed):
        if not step.failed or outside_cause(step):
            continue
        cost = _cost(run.governed, place)
        short = cost and (not settings.recovered_calls or cost < settings.recovered_calls)
        if not short:
            found.append(Failure(step, failure_key(step), cost))
    return tuple(found) if len(found) >= settings.failures else ()


def outside_cause(step: RunStep) -> str:
    """What around the step made it fail; empty when that is not clear."""
    if step.refused:
        return "the user did not allow it"
    text = f"{step.error}\n{step.result[-_MOST_READ:]}"
    return next((why for why, pattern in _ENVIRONMENT if pattern.search(text)), "")


def failure_key(step: RunStep) -> str:
    """The same for two steps that failed alike."""
    said = _plain(" ".join(step.said.split("\n")[-2:]))
    return hashlib.sha256(f"{step.kind}\0{step_subject(step)}\0{said}".encode()).hexdigest()[:16]


def step_subject(step: RunStep) -> str:
    """What a step is about: the program and script of a command, the file, else the tool."""
    if step.kind == "shell":
        return _program(step_command(step)) or step.tool
    for key in ("path", "file_path", "filePath", "absolute_path", "pattern", "name", "skill"):
        if isinstance(value := step.arguments.get(key), str) and value:
            return os.path.basename(value.rstrip("/"))
    return step.tool


def step_command(step: RunStep) -> str:
    """The command of a shell step; empty for another."""
    if step.kind != "shell":
        return ""
    return command_of(ToolCall("", step.tool, step.kind, step.arguments))


def _cost(steps: tuple[RunStep, ...], place: int) -> int:
    """Calls from the failed step up to the one that did the same and worked; 0 for none."""
    failed = steps[place]
    about = step_subject(failed)
    for later in range(place + 1, len(steps)):
        step = steps[later]
        if not step.failed and step.kind == failed.kind and step_subject(step) == about:
            return later - place
    return 0


def _program(command: str) -> str:
    """The last command's program, and what it runs."""
    commands = [words for words in simple_commands(command) if words[0] not in ("cd", "export")]
    if not commands:
        return ""
    found: list[str] = []
    for word in commands[-1]:
        if word.startswith("-") or "=" in word:
            continue
        name = os.path.basename(word)
        found.append(name)
        if name not in _RUNNERS:
            break
    return " ".join(found)


def _plain(text: str) -> str:
    text = re.sub(r"(?:[A-Za-z]:)?(?:[\w.~$-]*/)+", "", text[-500:])
    text = re.sub(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{7,}\b|\d+", "#", text.lower())
    return " ".join(text.split())


RepairOutcome = Literal[
    "begun", "repaired", "proposed", "nothing", "refused", "failed", "put off", "rolled back"
]

REPAIR_STEPS = (
    """
    CREATE TABLE repairs (
      id TEXT PRIMARY KEY,
      at REAL NOT NULL,
      skill TEXT NOT NULL,
      root TEXT NOT NULL,
      session TEXT NOT NULL,
      turn INTEGER NOT NULL,
      digest TEXT NOT NULL,
      marks TEXT NOT NULL,
      outcome TEXT NOT NULL,
      change TEXT NOT NULL DEFAULT '',
      tried TEXT NOT NULL DEFAULT '',
      note TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX repairs_of_skill ON repairs (skill, root, at);
    CREATE INDEX repairs_by_change ON repairs (change);
    """,
)
SAME_REPAIR = 0.8
"""How alike two repairs are, from 0 to 1, that are taken for one."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One repair, done or tried."""

    id: str
    """The job's."""
    skill: str
    """Its folder below `root`."""
    root: str
    session: str = ""
    turn: int = 0
    digest: str = ""
    """Of the version that failed."""
    marks: tuple[str, ...] = ()
    """The failures that it was about."""
    at: datetime = datetime.min.replace(tzinfo=UTC)
    outcome: RepairOutcome = "begun"
    change: str = ""
    tried: str = ""
    """What it did, as a diff."""
    note: str = ""
    """In words: why, what was checked, what could not be."""


class Repairs:
    """The repairs of this user. One thread at a time; many processes may have one each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "repairs", REPAIR_STEPS)

    def begin(self, attempt: Attempt) -> None:
        """Note that a repair begins; the same one again begins anew."""
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO repairs (id, at, skill, root, session, turn, digest, marks,"
                " outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'begun')",
                (
                    attempt.id,
                    datetime.now(UTC).timestamp(),
                    attempt.skill,
                    attempt.root,
                    attempt.session,
                    attempt.turn,
                    attempt.digest,
                    " ".join(attempt.marks),
                ),
            )

    def finish(
        self, id_: str, outcome: RepairOutcome, *, change: str = "", tried: str = "", note: str = ""
    ) -> None:
        """Record how it ended."""
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE repairs SET outcome = ?, change = ?, tried = ?, note = ? WHERE id = ?",
                (outcome, change, tried, note, id_),
            )

    def taken_back(self, change: str, note: str) -> None:
        """A repair turned out to be worse: it is remembered, so that it is not made again.

        `change` is what landed; a repair that the user accepted is known by its proposal.
        """
        with database.transaction(self._connection):
            self._connection.executemany(
                "UPDATE repairs SET outcome = 'rolled back', note = ? WHERE change = ?",
                [(note, known) for known in (change, *self._proposals(change))],
            )

    def _proposals(self, change: str) -> list[str]:
        try:
            rows = self._connection.execute(
                "SELECT id FROM proposals WHERE applied_as = ?", (change,)
            ).fetchall()
        except sqlite3.OperationalError:  # nothing was ever proposed
            return []
        return [row[0] for row in rows]

    def of(self, skill: str, root: str, most: int = 20) -> list[Attempt]:
        """What was tried with a skill, newest first."""
        rows = self._connection.execute(
            "SELECT * FROM repairs WHERE skill = ? AND root = ? ORDER BY at DESC LIMIT ?",
            (skill, root, most),
        ).fetchall()
        return [_attempt(row) for row in rows]

    def in_session(self, session: str) -> list[Attempt]:
        """What was tried because of a session, in order."""
        rows = self._connection.execute(
            "SELECT * FROM repairs WHERE session = ? ORDER BY at", (session,)
        ).fetchall()
        return [_attempt(row) for row in rows]

    def get(self, id_: str) -> Attempt | None:
        row = self._connection.execute("SELECT * FROM repairs WHERE id = ?", (id_,)).fetchone()
        return _attempt(row) if row is not None else None

    def looked_at(self, skill: str, root: str, digest: str) -> set[str]:
        """The failures of this version that a repair was about already."""
        return {
            mark
            for attempt in self.of(skill, root, most=200)
            if attempt.digest == digest and attempt.outcome != "put off"
            for mark in attempt.marks
        }

    def rests_until(self, skill: str, root: str, hours: float) -> datetime | None:
        """Until when the skill is left alone after its last repair; None when it is not."""
        for attempt in self.of(skill, root):
            until = attempt.at + timedelta(hours=hours)
            if attempt.outcome != "put off":
                return until if until > datetime.now(UTC) else None
        return None

    def harmful(self, skill: str, root: str, tried: str) -> Attempt | None:
        """An earlier repair that did the same and was taken back."""
        mine = sketch(tried)
        for attempt in self.of(skill, root, most=200):
            if attempt.outcome != "rolled back":
                continue
            if attempt.tried == tried or resemblance(mine, sketch(attempt.tried)) >= SAME_REPAIR:
                return attempt
        return None


def _attempt(row: sqlite3.Row) -> Attempt:
    return msgspec.convert(dict(row) | {"marks": row["marks"].split()}, Attempt, strict=False)
