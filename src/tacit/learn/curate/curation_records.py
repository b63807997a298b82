"""The rules of ageing, and what curation remembers from one run to the next.

A skill has an age, in days without use or edit. Ages grow by the time between two runs, and by no
more than `Rules.longest_gap` of it: a clock that jumps, or a machine that slept for months, ages
nothing by more than that; a clock that is put back ages nothing. The rules know no disk and no
clock.

Owns the tables `curated`, `curations` and `curation_facts` in tacit.db. A run is written down with
its plan before its first change and closed with its report after the last, so a run that a kill
interrupted is found and finished. All of it can be lost without harm: skills are then met for the
first time.
"""

import sqlite3
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.setting_sections import CurateSettings

SkillState = Literal["active", "stale", "archived"]


class AgeRules(msgspec.Struct, frozen=True):
    """The thresholds, in days."""

    stale: float = 30.0
    archive: float = 90.0
    longest_gap: float = 14.0

    @staticmethod
    def of(settings: CurateSettings) -> "AgeRules":
        archive = max(settings.archive_days, settings.stale_days)
        return AgeRules(settings.stale_days, archive, 2 * settings.every_days)


class SkillActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found of a skill."""

    archived: bool = False
    """It lies in the archive."""
    kept: str = ""
    """Why curation leaves it alone (pinned, scheduled, not learned); empty when it does not."""
    moved: bool = False
    """It was used or edited since the last look."""
    days: float = 0.0
    """Days since its last use or edit, by the clock; believed only within bounds."""


class Age(msgspec.Struct, frozen=True):
    """What is remembered of a skill from one look to the next."""

    state: SkillState = "active"
    idle: float = 0.0


def next_age(rules: AgeRules, before: Age | None, seen: SkillActivity, passed: float) -> Age:
    """The age of a skill at a curation, `passed` days after the one before.

    `archived` as an answer for a skill that is not in the archive means: put it there.
    """
    if seen.archived:
        return Age("archived", before.idle if before else 0.0)
    if seen.kept or (before is not None and before.state == "archived"):
        return Age()  # brought back from the archive, or not ours to judge: it begins anew
    idle = _idle(rules, before, seen, counted_days(rules, passed))
    if idle >= rules.archive and before is not None and before.state == "stale":
        return Age("archived", idle)
    return Age("stale" if idle >= rules.stale else "active", idle)


def counted_days(rules: AgeRules, passed: float) -> float:
    """How much of the days between two curations counts."""
    return min(max(passed, 0.0), rules.longest_gap)


def _idle(rules: AgeRules, before: Age | None, seen: SkillActivity, passed: float) -> float:
    days = max(seen.days, 0.0)
    if before is None:
        # Met for the first time: its past may be believed so far that it is stale, not that it
        # goes at once. A new skill has none.
        return min(days, rules.stale)
    if seen.moved:
        return min(days, passed)
    return before.idle + passed


CURATION_STEPS = (
    """
    CREATE TABLE curated (
      place TEXT NOT NULL,
      skill TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('active', 'stale', 'archived')),
      idle REAL NOT NULL CHECK (idle >= 0),
      uses INTEGER NOT NULL,
      digest TEXT NOT NULL,
      head TEXT NOT NULL,
      since TEXT NOT NULL,
      PRIMARY KEY (place, skill)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE curations (
      id TEXT PRIMARY KEY,
      at TEXT NOT NULL,
      by TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('begun', 'waiting', 'done', 'refused')),
      plan BLOB NOT NULL,
      report BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE curation_facts (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
)


class RecordedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """How a skill stood at the last look."""

    state: SkillState
    idle: float
    uses: int
    digest: str
    head: str
    since: datetime
    """When it got into this state."""

    @property
    def age(self) -> Age:
        return Age(self.state, self.idle)


class Curation(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as it was written down."""

    id: str
    at: datetime
    by: str
    state: str
    plan: bytes
    report: bytes


SkillKey = tuple[str, str]
"""The place's id and the skill's folder in it."""


class CurationRecords:
    """The tables, on a connection that is its caller's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        database.migrate(connection, "curate", CURATION_STEPS)

    # How things stood.

    def skills(self) -> dict[SkillKey, RecordedSkill]:
        """Every skill that was there at the last curation. Raises on rows that make no sense."""
        rows = self._connection.execute("SELECT * FROM curated").fetchall()
        return {
            (row["place"], row["skill"]): msgspec.convert(dict(row), RecordedSkill) for row in rows
        }

    def replace_skills(
        self, all_of_it: dict[SkillKey, RecordedSkill], at: datetime, uses: int
    ) -> None:
        """Replace the records of the curation before."""
        with database.transaction(self._connection):
            self._connection.execute("DELETE FROM curated")
            self._connection.executemany(
                "INSERT INTO curated VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (*key, n.state, n.idle, n.uses, n.digest, n.head, n.since.isoformat())
                    for key, n in all_of_it.items()
                ],
            )
            self._set("looked", at.isoformat())
            # Older versions counted in another way, under the name `uses`.
            self._set("recorded_uses", str(uses))
            self._connection.execute(
                "INSERT OR IGNORE INTO curation_facts VALUES ('first', ?)", (at.isoformat(),)
            )

    def last(self) -> datetime | None:
        """When the library was last curated."""
        return self._moment("looked")

    def first(self) -> datetime | None:
        """When it was curated for the first time."""
        return self._moment("first")

    def uses(self) -> int:
        """How many uses were on record at the last curation. There never are fewer, unless lost."""
        text = self.fact("recorded_uses")
        return int(text) if text.isdecimal() else 0

    def fact(self, name: str) -> str:
        row = self._connection.execute(
            "SELECT value FROM curation_facts WHERE name = ?", (name,)
        ).fetchone()
        return row["value"] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        with database.transaction(self._connection):
            self._set(name, value)

    # What was done.

    def begin(self, run: str, at: datetime, by: str, plan: bytes) -> None:
        self._write(run, at, by, "begun", plan, b"{}")

    def keep_waiting(self, run: str, at: datetime, by: str, plan: bytes, report: bytes) -> None:
        """A run that a person has to agree to first."""
        self._write(run, at, by, "waiting", plan, report)

    def close(self, run: str, report: bytes, state: str = "done") -> None:
        with database.transaction(self._connection):
            self._connection.execute(
                "UPDATE curations SET state = ?, report = ? WHERE id = ?", (state, report, run)
            )

    def curations(self, state: str = "", most: int = 50) -> list[Curation]:
        """The runs, the latest first."""
        rows = self._connection.execute(
            "SELECT * FROM curations WHERE ? IN ('', state) ORDER BY id DESC LIMIT ?", (state, most)
        ).fetchall()
        return [msgspec.convert(dict(row), Curation, strict=False) for row in rows]

    def _write(
        self, run: str, at: datetime, by: str, state: str, plan: bytes, report: bytes
    ) -> None:
        with database.transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO curations VALUES (?, ?, ?, ?, ?, ?)",
                (run, at.isoformat(), by, state, plan, report),
            )

    def _set(self, name: str, value: str) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO curation_facts VALUES (?, ?)", (name, value)
        )

    def _moment(self, name: str) -> datetime | None:
        try:
            found = datetime.fromisoformat(self.fact(name))
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)
