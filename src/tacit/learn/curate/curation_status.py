"""How the library stands between two runs of curation, and when the next run is due.

A run is due every so many days, and only when nobody is at work: the newest thing that any agent
on this machine wrote into one of its sessions must be long enough ago. A first run waits for a
whole period, so that nothing is archived the moment Tacit is installed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec

from tacit.base import database
from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import TacitError
from tacit.base.setting_sections import CurateSettings, Settings
from tacit.changes.history import History
from tacit.learn import use_records
from tacit.learn.curate.curation import CurationReport
from tacit.learn.curate.curation_records import (
    Age,
    AgeRules,
    CurationRecords,
    RecordedSkill,
    SkillState,
    next_age,
)
from tacit.learn.curate.curation_scope import CurationScope
from tacit.learn.curate.library_survey import SurveyedSkill, activity_of, survey
from tacit.learn.skill_timeline import weekly_uses
from tacit.traces import host_registry
from tacit.traces.host import Host
from tacit.traces.skill_uses import uses_of
from tacit.traces.store import Store

_DAY, _HOUR = 86_400.0, 3600.0
_AHEAD = 60.0
"""A file's time so far in the future is a clock's that was put back, and tells nothing."""
_SLACK = 30.0


class CurationDue(msgspec.Struct, frozen=True):
    """When the next run is due, and why not before."""

    seconds: float
    """From now; 0 is now."""
    reason: str
    key: str = ""
    """Names the run: the same until it is done."""

    @property
    def now(self) -> bool:
        return self.seconds <= 0 and bool(self.key)


def curation_due(
    settings: CurateSettings,
    *,
    clock: Clock | None = None,
    path: str | None = None,
    hosts: Iterable[Host] | None = None,
) -> CurationDue:
    """Whether the library is to be curated now. The first question begins the first period."""
    if not settings.use:
        return CurationDue(settings.every_days * _DAY, "it is switched off: curate.use")
    now = (clock or SystemClock()).now()
    try:
        with database.opened(path=path) as connection:
            waits, key = _period(CurationRecords(connection), settings, now)
    except (TacitError, sqlite3.Error) as error:
        return CurationDue(_HOUR, f"its records cannot be read: {error}")
    if waits > 0:
        return CurationDue(waits, f"the next look is due in {waits / _DAY:.1f} days", key)
    wrote = newest_write(now, hosts)
    quiet = (now.timestamp() - wrote) if wrote is not None else float("inf")
    left = settings.idle_hours * _HOUR - quiet
    if left > 0:
        return CurationDue(left + _SLACK, f"an agent wrote {quiet / 60:.0f} minutes ago", key)
    return CurationDue(0, "", key)


def newest_write(now: datetime, hosts: Iterable[Host] | None = None) -> float | None:
    """When any agent last wrote into a session of its own; None where none ever did."""
    latest = None
    for host in host_registry.each() if hosts is None else hosts:
        try:
            for source in host.find():
                if source.modified <= now.timestamp() + _AHEAD:
                    latest = max(source.modified, latest or 0.0)
        except (OSError, sqlite3.Error):  # one that cannot be read says nothing
            continue
    return latest


def _period(records: CurationRecords, settings: CurateSettings, now: datetime) -> tuple[float, str]:
    """Seconds until the period is over, and the name of the run that follows."""
    every = settings.every_days * _DAY
    last = records.last()
    if last is None:
        text = records.fact("asked")
        try:
            last = datetime.fromisoformat(text)
        except ValueError:
            records.set_fact("asked", now.isoformat())
            last = now
        key = f"first {last:%Y-%m-%d %H:%M:%S}"
    else:
        key = f"after {last:%Y-%m-%d %H:%M:%S}"
    # A clock that was put back makes nobody wait longer than a period.
    return min(every - (now - last).total_seconds(), every), key


WEEKS = 26
_SECONDS_A_DAY = 86_400.0


class SkillRow(msgspec.Struct, frozen=True, kw_only=True):
    """One skill."""

    skill: str
    root: str
    state: str
    """As the last run left it; as the next would find it where there was none."""
    kept: str
    """Why it is left alone; empty when it is not."""
    idle: float
    """Days without use or edit, as they count by now."""
    uses: int
    last_use: datetime | None
    weeks: tuple[int, ...]
    """Uses in each of the last 26 weeks, the oldest first."""


class CurationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The library as it ages."""

    last: datetime | None
    """When it was last curated."""
    due_in: float
    """Seconds until it is next."""
    why: str
    """What it waits for."""
    states: dict[str, int]
    kept: dict[str, int]
    weeks: tuple[int, ...]
    """Uses of all skills in each of the last 26 weeks."""
    rows: list[SkillRow]
    runs: list[CurationReport]
    """The last runs, the latest first."""
    waiting: list[CurationReport]
    """Consolidations that wait for the user's word."""


def curation_status(scope: CurationScope, settings: Settings) -> CurationStatus:
    """How every skill stands now. Changes nothing but the records of uses, which are caught up."""
    rules = AgeRules.of(settings.curate)
    now = scope.clock.now()
    with Store.open(scope.database) as store:
        use_records.catch_up(store)
        records = CurationRecords(store.connection)
        recorded, last = records.skills(), records.last()
        passed = (now - last).total_seconds() / _SECONDS_A_DAY if last else 0.0
        histories = {place.root: History(place, scope.data) for place in scope.places}
        all_uses = uses_of(store.connection)
        rows = []
        for found in survey(scope, store.connection):
            known = recorded.get(found.key)
            what = activity_of(found, known, now, histories[found.place.root])
            new = next_age(rules, known.age if known else None, what, passed)
            rows.append(
                SkillRow(
                    skill=found.skill,
                    root=found.place.root,
                    state=_state(found, known, new),
                    kept=found.kept,
                    idle=round(new.idle, 2),
                    uses=found.uses,
                    last_use=found.last_use,
                    weeks=tuple(weekly_uses(found.used, now, WEEKS)),
                )
            )
        runs = [_report(run.report) for run in records.curations("done", most=10)]
        waiting = [_report(run.report) for run in records.curations("waiting")]
    next_time = curation_due(settings.curate, clock=scope.clock, path=scope.database)
    judged = [row for row in rows if not row.kept]
    return CurationStatus(
        last=last,
        due_in=next_time.seconds,
        why=next_time.reason,
        states={s: sum(r.state == s for r in judged) for s in ("active", "stale", "archived")},
        kept=dict(Counter(row.kept for row in rows if row.kept)),
        weeks=tuple(weekly_uses(all_uses, now, WEEKS)),
        rows=rows,
        runs=runs,
        waiting=waiting,
    )


def _state(found: SurveyedSkill, known: RecordedSkill | None, new: Age) -> SkillState:
    """As the last run left it; but of the archive the disk knows better: it may be back."""
    if found.archived:
        return "archived"
    return known.state if known is not None and known.state != "archived" else new.state


def _report(data: bytes) -> CurationReport:
    return msgspec.json.decode(data, type=CurationReport)
