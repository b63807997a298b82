"""Repairs on probation: the uses after a repair against those before it, and what is done about it.

Steps after the repair are paired with steps before it, and the difference has the interval of a
trial (`learn/trial/interval.py`), so it may be looked at after each use. Where the repair is
clearly worse it is taken back, announced, and remembered so that it is not made again. Which repair
is on probation is read from the history each time: the last version is a repair, and nobody has
touched the skill since. Owns the table `probations`, of verdicts.
"""

import os
import random
import sqlite3
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.display import counted
from tacit.base.errors import Damaged, NotFound
from tacit.base.setting_sections import ImproveSettings, Settings
from tacit.changes.change import Change, Files, Verdict, acting_as
from tacit.changes.gate import Gate
from tacit.changes.history import Version
from tacit.changes.place import places_here
from tacit.changes.skill_state import SkillState
from tacit.learn import announcements, notices
from tacit.learn.background.background_gate import (
    apply_to_own_skill,
    background_gate,
    reading_gate,
)
from tacit.learn.background.staging import change_id, operations_between
from tacit.learn.improve.repairs import Repairs, outside_cause
from tacit.learn.notices import Notice
from tacit.learn.skill_runs import run_of_use
from tacit.learn.trial.interval import Interval, interval_of, points
from tacit.learn.use_records import catch_up
from tacit.skills.skill_file import SKILL_FILE_NAMES, parse_skill, skill_digest
from tacit.traces.skill_uses import Use, uses_of
from tacit.traces.store import Store

ProbationState = Literal["watching", "kept", "worse"]
USES_BEFORE = 10
"""Uses before the repair that are compared with."""

PROBATION_STEPS = (
    """
    CREATE TABLE probations (
      change TEXT PRIMARY KEY, at REAL NOT NULL, skill TEXT NOT NULL, root TEXT NOT NULL,
      state TEXT NOT NULL, numbers TEXT NOT NULL, undone_by TEXT NOT NULL DEFAULT '') STRICT;
    """,
)


class UseCount(msgspec.Struct, frozen=True):
    """Some uses of a version: how many, with how many steps, of which so many failed."""

    uses: int = 0
    calls: int = 0
    failed: int = 0

    @property
    def share(self) -> str:
        return f"({self.failed / self.calls:.0%})" if self.calls else "(no steps)"

    def describe(self) -> str:
        """In words for a person."""
        if not self.uses:
            return "no use yet"
        uses = counted(self.uses, "use")
        return f"{self.failed} of {self.calls} steps failed {self.share} in {uses}"


class Probation(msgspec.Struct, frozen=True):
    """A repair that is watched, and how it does."""

    change: str
    skill: str
    root: str
    old: UseCount
    new: UseCount
    change_in_success: Interval
    """Of the share of steps that succeeded, at the level of `improve.worse`."""
    state: ProbationState

    @property
    def numbers(self) -> str:
        """In words for a person, short enough to be told whole in a notice."""
        old = self.old
        before = f"{old.failed} of {old.calls} {old.share} in {old.uses}" if old.uses else "no use"
        shown = self.change_in_success
        change = f"; {points(shown)}" if shown.count else ""
        return f"{self.new.describe()}, before {before}{change}"


class ProbationVerdict(msgspec.Struct, frozen=True):
    """How a probation ended."""

    change: str
    """The repair."""
    state: ProbationState
    numbers: str
    at: datetime


class ProbationEnd(msgspec.Struct, frozen=True):
    """What was done at the end of a probation."""

    outcome: Literal["kept", "rolled back", "proposed", "refused", "nothing"]
    reason: str
    change: str = ""
    """The change that took the repair back."""


def current_probation(
    connection: sqlite3.Connection, root: str, skill: str, settings: Settings
) -> Probation | None:
    """How the repair of `skill` does that is on probation; None when none is."""
    gate = reading_gate(places_here(root))
    head = gate.open_place(root).history.head(skill)
    if head is None or not _is_repair(head) or _verdict(connection, head.record.change):
        return None  # the usual case, and the disk is not read for it
    now = gate.state_of(skill, root)
    if now.head is None or now.head.id != head.id or not now.is_live:
        return None  # a person has touched it since
    history = gate.open_place(root).history
    before = history.version(head.parent) if head.parent else None
    if before is None:
        return None
    mine, theirs = (_digest(history.files(version)) for version in (head, before))
    names = _names(now)
    store = Store(connection)
    catch_up(store)
    uses = uses_of(connection, names)
    new = [use for use in uses if use.at >= head.at and use.digest in (mine, "")]
    old = [use for use in uses if use.digest == theirs and use not in new]
    watched = [_fair(store, use) for use in new[-settings.improve.probation_uses :]]
    before_it = [_fair(store, use) for use in old[:USES_BEFORE]]
    return judge_probation(head.record.change, skill, root, before_it, watched, settings.improve)


def judge_probation(
    change: str, skill: str, root: str, old: list[Use], new: list[Use], settings: ImproveSettings
) -> Probation:
    """Compare uses, both newest first, as often as one likes."""
    watched = new[::-1][: settings.probation_uses]
    earlier = old[:USES_BEFORE]
    rng = random.Random(change)  # noqa: S311 - which step is paired with which, the same each time
    pairs = zip(_steps(watched, rng), _steps(earlier, rng), strict=False)
    shown = interval_of((ours - theirs for ours, theirs in pairs), settings.worse)
    enough = len(watched) >= settings.probation_uses
    worse = shown.finding() == "harms"
    state: ProbationState = "worse" if worse else "kept" if enough else "watching"
    return Probation(change, skill, root, _count(earlier), _count(watched), shown, state)


def _steps(uses: list[Use], rng: random.Random) -> list[int]:
    """The steps of each use, 1 for success; in which order they came in it, nobody noted."""
    found: list[int] = []
    for use in uses:
        own = [0] * use.failed + [1] * (use.calls - use.failed)
        rng.shuffle(own)
        found += own
    return found


def settle_probation(
    connection: sqlite3.Connection, root: str, skill: str, change: str, settings: Settings
) -> ProbationEnd:
    """End the probation of `change` if it can be ended. Done again after a kill, it goes on.

    Raises `Damaged` where the version that would be given up is not in the history: then nothing
    is taken back.
    """
    gate = background_gate("improver", places_here(root), settings)
    with acting_as("improver"):
        now = gate.state_of(skill, root)
        head = now.head
        if head is not None and head.record.undoes == change and head.record.actor == "improver":
            return _end_probation(connection, head, change, root)  # a kill came between the two
        watched = current_probation(connection, root, skill, settings)
        if watched is None or watched.change != change or watched.state == "watching":
            return ProbationEnd("nothing", "the probation is over, or goes on")
        if watched.state == "kept":
            _keep(connection, watched)
            return ProbationEnd("kept", watched.numbers)
        check_copy(gate, root, now)
        return _take_back(connection, gate, watched, now, settings)


def check_copy(gate: Gate, root: str, now: SkillState) -> Version:
    """The version in the history that holds what stands now. Raises `Damaged` where none does."""
    head = now.head
    files = gate.open_place(root).history.files(head) if head is not None else {}
    if head is None or files != now.contents.files:
        raise Damaged(
            f"'{now.skill}' is not in the history as it stands, so nothing is taken back",
            "see: tacit doctor",
        )
    return head


def _take_back(
    connection: sqlite3.Connection,
    gate: Gate,
    watched: Probation,
    now: SkillState,
    settings: Settings,
) -> ProbationEnd:
    reason = f"worse: {watched.numbers}"
    verdict = gate.undo(watched.change, actor="improver", root=watched.root, reason=reason)
    if verdict.refused:
        return _propose_back(connection, gate, watched, now, settings)
    head = gate.state_of(watched.skill, watched.root).head
    assert head is not None
    return _end_probation(connection, head, watched.change, watched.root)


def _propose_back(
    connection: sqlite3.Connection,
    gate: Gate,
    watched: Probation,
    now: SkillState,
    settings: Settings,
) -> ProbationEnd:
    """Of the user's own skill nothing is taken back unasked, unless repairs are applied unasked."""
    history = gate.open_place(watched.root).history
    assert now.head is not None
    before = history.files(history.version(now.head.parent))
    reason = f"take the repair back; {watched.numbers}"
    change = Change(
        id=change_id(f"probation-{watched.change}", watched.change),
        skill=watched.skill,
        operations=operations_between(now.contents.files, before),
        actor="improver",
        reason=reason,
        root=watched.root,
        base=now.head.id,
    )
    verdict = apply_to_own_skill(gate, change, gate.propose(change), settings)
    _keep(connection, watched, verdict.change)
    Repairs(connection).taken_back(watched.change, f"worse: {watched.numbers}")
    if verdict.applied:
        _announce(watched.skill, watched.root, verdict.change, reason)
        return ProbationEnd("rolled back", reason, verdict.change)
    announcements.announce_change(change, verdict)
    return ProbationEnd(
        "proposed" if verdict.outcome == "proposed" else "refused", _explained(verdict, reason)
    )


def _end_probation(
    connection: sqlite3.Connection, head: Version, change: str, root: str
) -> ProbationEnd:
    """Remember and announce that a repair was taken back; idempotent."""
    record = head.record
    _write(connection, (change, record.skill, root, "worse", record.reason, record.change))
    Repairs(connection).taken_back(change, record.reason)
    _announce(record.skill, root, record.change, record.reason)
    return ProbationEnd("rolled back", record.reason, record.change)


def _keep(connection: sqlite3.Connection, watched: Probation, undone_by: str = "") -> None:
    row = (watched.change, watched.skill, watched.root, watched.state, watched.numbers, undone_by)
    _write(connection, row)


def _write(connection: sqlite3.Connection, row: tuple[str, ...]) -> None:
    database.migrate(connection, "probations", PROBATION_STEPS)
    with database.transaction(connection):
        connection.execute(
            "INSERT OR IGNORE INTO probations (change, skill, root, state, numbers, undone_by, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row, datetime.now(UTC).timestamp()),
        )


def probation_verdicts(connection: sqlite3.Connection, skill: str) -> list[ProbationVerdict]:
    """How the probations of a skill ended, the last first."""
    database.migrate(connection, "probations", PROBATION_STEPS)
    rows = connection.execute(
        "SELECT change, state, numbers, at FROM probations WHERE skill = ? ORDER BY at DESC",
        (skill,),
    ).fetchall()
    return [
        ProbationVerdict(row[0], row[1], row[2], datetime.fromtimestamp(row[3], UTC))
        for row in rows
    ]


def _verdict(connection: sqlite3.Connection, change: str) -> bool:
    database.migrate(connection, "probations", PROBATION_STEPS)
    row = connection.execute("SELECT 1 FROM probations WHERE change = ?", (change,)).fetchone()
    return row is not None


def _is_repair(version: Version) -> bool:
    record = version.record
    # A repair names the session that shows why; what takes one back does not.
    by_repair = record.actor == "improver" and bool(record.evidence)
    return by_repair and record.kind == "edit" and not record.undoes


def _names(now: SkillState) -> tuple[str, ...]:
    folder = os.path.basename(now.skill)
    for name in SKILL_FILE_NAMES:
        if (file := now.contents.files.get(name)) is not None:
            return tuple(dict.fromkeys((folder, parse_skill(file.data, folder).name)))
    return (folder,)


def _digest(files: Files) -> str:
    return next((skill_digest(files[name].data) for name in SKILL_FILE_NAMES if name in files), "")


def _fair(store: Store, use: Use) -> Use:
    """The use without the steps that failed by no fault of the skill: they count on neither side.

    They are known by the stored session; where that is gone, all of them count.
    """
    if not use.failed:
        return use
    try:
        run = run_of_use(store.trace(use.session), use)
    except NotFound:
        return use
    if run is None:
        return use
    around = sum(step.failed and bool(outside_cause(step)) for step in run.steps[: run.answer])
    spared = min(around, use.failed)
    return msgspec.structs.replace(use, calls=use.calls - spared, failed=use.failed - spared)


def _count(uses: list[Use]) -> UseCount:
    return UseCount(len(uses), sum(use.calls for use in uses), sum(use.failed for use in uses))


def _announce(skill: str, root: str, change: str, why: str) -> None:
    notices.announce(Notice(kind="rolled-back", skill=skill, change=change, root=root, why=why))


def _explained(verdict: Verdict, reason: str) -> str:
    return f"{reason}; {verdict.explain()}"
