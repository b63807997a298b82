"""Which uses of skills call for a repair, or for a verdict on one, and why others do not.

Asked when a session is in the store. Nothing is begun here: whoever asks turns each due repair
into a job of the kind `improve`, whose key makes sure that it is done once.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tacit.base import paths
from tacit.base.display import shorten
from tacit.base.errors import NotFound, TacitError
from tacit.base.setting_sections import Settings
from tacit.changes.place import places_here
from tacit.learn import use_records
from tacit.learn.background.background_gate import reading_gate
from tacit.learn.improve import probation
from tacit.learn.improve.repairs import Failure, Repairs, counted_failures, outside_cause
from tacit.learn.review.review_triggers import is_background_work
from tacit.learn.skill_runs import SkillRun, runs_of
from tacit.skills.library import Entry, Library, scheduled_entry
from tacit.traces.store import Store
from tacit.traces.trace import Trace

IMPROVE_KIND = "improve"
"""The kind of job, and what its spending is recorded under."""
FRESH = timedelta(days=7)
"""A use that is longer ago is not repaired unasked: an import brings in years of them."""


class DueRepair(msgspec.Struct, frozen=True):
    """A job to be asked for."""

    key: str
    payload: dict[str, Any]
    why: str


class FailedUse(msgspec.Struct, frozen=True):
    """One use of a skill that failed, and the skill as the library has it now."""

    run: SkillRun
    failures: tuple[Failure, ...]
    entry: Entry
    why_not: str = ""
    """Why it is not repaired unasked; empty when it is."""
    never: bool = False
    """Whether that holds also when the user asks for it."""

    @property
    def skill(self) -> str:
        """Its folder below its skills folder, which is how the gate knows it."""
        return self.entry.relative_folder


def due_repairs(store: Store, session: str, settings: Settings) -> tuple[DueRepair, ...]:
    """The jobs that a stored session calls for. Asked twice, the keys are the same."""
    if not settings.improve.use:
        return ()
    trace = store.trace(session)
    if not trace.skills or is_background_work(trace.head):
        return ()
    found = [
        DueRepair(f"{trace.id}#{use.run.turn}:{use.run.skill}", _payload(use.run), _why(use))
        for use in failed_uses(store, trace, settings)
        if not use.why_not
    ]
    return (*found, *_verdicts(store, trace, settings))


def failed_uses(store: Store, trace: Trace, settings: Settings) -> list[FailedUse]:
    """The uses in a session in which a skill failed, one a skill, with why not where so."""
    runs = runs_of(trace, use_records.versions_for(trace.project))
    failed = [(run, some) for run in runs if (some := counted_failures(run, settings.improve))]
    if not failed:  # as in most sessions: the library need not be read
        return []
    library = Library(session_folder(trace.project), settings)
    found: dict[str, FailedUse] = {}
    for run, failures in failed:
        entry = _find(library, run.skill)
        if entry is None:
            continue
        use = _judged(store, FailedUse(run, failures, entry), settings)
        known = found.get(entry.folder)
        if known is None or known.why_not:
            found[entry.folder] = use
    return list(found.values())


def find_failed_use(
    store: Store, session: str, skill: str, settings: Settings, turn: int | None = None
) -> FailedUse:
    """The use of `skill` in a session that is to be repaired: the last that failed, else the last.

    Raises `NotFound`.
    """
    trace = store.trace(session)
    library = Library(session_folder(trace.project), settings)
    entry = _find(library, skill) or library.get(skill)
    names = {skill, entry.name, os.path.basename(entry.folder)}
    runs = [
        run
        for run in runs_of(trace, use_records.versions_for(trace.project))
        if run.skill in names and turn in (None, run.turn)
    ]
    if not runs:
        raise NotFound(f"the skill '{skill}' was not used in {trace.id}", "see: tacit sessions")
    failed = [run for run in runs if counted_failures(run, settings.improve)]
    run = (failed or runs)[-1]
    return _judged(store, FailedUse(run, counted_failures(run, settings.improve), entry), settings)


def _find(library: Library, name: str) -> Entry | None:
    """The skill that a name means; also one that only a schedule runs."""
    return library.find(name) or scheduled_entry(name)


def why_not_counted(run: SkillRun) -> str:
    """Why the failures of a run do not count, where it failed and none does."""
    reasons = [outside_cause(step) for step in run.governed if step.failed]
    if not reasons:
        return "no step failed"
    named = next(filter(None, reasons), "")
    return f"not the skill's doing: {named}" if named else "it was got over at once"


def session_folder(project: str) -> str:
    """The folder from which a session's skills are seen: its project, if that is still there."""
    return paths.existing_folder(project) or paths.user_home()


def _judged(store: Store, use: FailedUse, settings: Settings) -> FailedUse:
    if why := _why_never(use.entry):
        return msgspec.structs.replace(use, why_not=why, never=True)
    return msgspec.structs.replace(use, why_not=_why_not(store, use, settings))


def _why_never(entry: Entry) -> str:
    if entry.origin in ("bundled", "installed"):
        return f"'{entry.name}' is {entry.origin}: it is not the user's to mend"
    if entry.state == "untrusted":
        return f"'{entry.name}' is of a project that is not trusted"
    return f"'{entry.name}' is pinned" if _is_pinned(entry) else ""


def _why_not(store: Store, use: FailedUse, settings: Settings) -> str:
    entry, run = use.entry, use.run
    if run.digest and run.digest != entry.digest:
        return f"'{entry.name}' has been changed since"
    if run.at is not None and datetime.now(UTC) - run.at > FRESH:
        return f"it was used on {run.at:%Y-%m-%d}, which is long ago"
    repairs = Repairs(store.connection)
    known = repairs.looked_at(use.skill, entry.root, run.digest or entry.digest)
    if {failure.mark for failure in use.failures} <= known:
        return "this failure was looked at before, for this version"
    if until := repairs.rests_until(use.skill, entry.root, settings.improve.cooldown_hours):
        return f"it was looked at lately; again from {until:%Y-%m-%d %H:%M} UTC"
    return ""


def _is_pinned(entry: Entry) -> bool:
    try:
        gate = reading_gate(places_here(entry.root))
        return gate.open_place(entry.root).history.is_pinned(entry.relative_folder)
    except TacitError:
        return False


def _verdicts(store: Store, trace: Trace, settings: Settings) -> list[DueRepair]:
    """Repairs on probation whose uses suffice for a verdict now."""
    library = Library(session_folder(trace.project), settings)
    found = []
    for name in trace.skills:
        entry = _find(library, name)
        if entry is None:
            continue
        try:
            watched = probation.current_probation(
                store.connection, entry.root, entry.relative_folder, settings
            )
        except TacitError:  # a place that cannot be read is the doctor's business
            continue
        if watched is not None and watched.state != "watching":
            key = f"probation:{watched.change}:{watched.new.uses}"
            payload = {"probation": watched.change, "skill": watched.skill, "root": watched.root}
            found.append(DueRepair(key, payload, watched.numbers))
    return found


def _payload(run: SkillRun) -> dict[str, Any]:
    return {"session": run.session, "turn": run.turn, "skill": run.skill}


def _why(use: FailedUse) -> str:
    step = use.failures[0].step
    return f"{use.entry.name}: {step.tool} failed: {shorten(step.said, 120)}"


class RepairAccount(msgspec.Struct, frozen=True):
    """One skill that failed in the session."""

    skill: str
    outcome: str
    """That of the repair; `not looked at` where there was none."""
    reason: str
    change: str = ""
    at: datetime | None = None


def repair_accounts(store: Store, session: str, settings: Settings) -> list[RepairAccount]:
    """The repairs that a session led to, and why its other failures led to none."""
    found = [
        RepairAccount(
            os.path.basename(tried.skill), tried.outcome, tried.note, tried.change, tried.at
        )
        for tried in Repairs(store.connection).in_session(session)
    ]
    trace = store.trace(session)
    looked_at = {account.skill for account in found}
    judged = {use.run.skill: use for use in failed_uses(store, trace, settings)}
    for run in runs_of(trace, use_records.versions_for(trace.project)):
        if run.skill in looked_at or not any(step.failed for step in run.governed):
            continue
        looked_at.add(run.skill)
        use = judged.get(run.skill)
        why = use.why_not or "it waits for its turn" if use is not None else why_not_counted(run)
        found.append(RepairAccount(run.skill, "not looked at", why, at=run.at or datetime.now(UTC)))
    return found
