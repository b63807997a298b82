"""Which uses of skills call for a repair, and which for a verdict on an earlier one.

Asked when a session is in the store. It decides, and says why not; nothing is begun here. Whoever
asks turns each `Due` into a job of the kind `improve`, whose key makes sure that it is done once.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tacit.base import paths
from tacit.base.errors import NotFound, TacitError
from tacit.base.sections import Settings
from tacit.changes.gate import Gate
from tacit.changes.place import places_here
from tacit.learn import probation, recording
from tacit.learn.improve.failing import Failure, counted, environment
from tacit.learn.improve.repairs import Repairs
from tacit.learn.usage import Run, runs_of
from tacit.skills import scheduled
from tacit.skills.library import Entry, Library
from tacit.traces.store import Store
from tacit.traces.trace import Trace

KIND = "improve"
"""The kind of job, and what its spending is booked under."""
FRESH = timedelta(days=7)
"""A use that is longer ago is not looked at by itself: an import brings in years of them."""


class Due(msgspec.Struct, frozen=True):
    """A job to be asked for."""

    key: str
    payload: dict[str, Any]
    why: str


class Case(msgspec.Struct, frozen=True):
    """One use of a skill that failed, and the skill as the library has it now."""

    run: Run
    failures: tuple[Failure, ...]
    entry: Entry
    why_not: str = ""
    """Why it is not looked at by itself; empty when it is."""
    never: bool = False
    """Whether that holds also when the user asks for it."""

    @property
    def skill(self) -> str:
        """Its folder below its skills folder, which is how the gate knows it."""
        return folder_of(self.entry)


def due(store: Store, session: str, settings: Settings) -> tuple[Due, ...]:
    """The jobs that a stored session calls for. Twice is the same as once: the keys are."""
    if not settings.improve.use:
        return ()
    recording.record(store, session)
    trace = store.trace(session)
    if not trace.skills:
        return ()
    found = [
        Due(f"{trace.id}#{case.run.turn}:{case.run.skill}", _payload(case.run), _why(case))
        for case in cases(store, trace, settings)
        if not case.why_not
    ]
    return (*found, *_verdicts(store, trace, settings))


def cases(store: Store, trace: Trace, settings: Settings) -> list[Case]:
    """The uses in a session in which a skill failed, one a skill, with why not where so."""
    cwd = where(trace.project)
    library = Library(cwd, settings)
    found: dict[str, Case] = {}
    for run in runs_of(trace, recording.versions_for(trace.project)):
        failures = counted(run, settings.improve)
        entry = _find(library, run.skill) if failures else None
        if entry is None:
            continue
        case = _judged(store, Case(run, failures, entry), settings)
        known = found.get(entry.folder)
        if known is None or known.why_not:
            found[entry.folder] = case
    return list(found.values())


def find_case(
    store: Store, session: str, skill: str, settings: Settings, turn: int | None = None
) -> Case:
    """The use of `skill` in a session that is to be looked at: the last that failed, else the last.

    Raises `NotFound`.
    """
    trace = store.trace(session)
    library = Library(where(trace.project), settings)
    entry = _find(library, skill) or library.get(skill)
    names = {skill, entry.name, os.path.basename(entry.folder)}
    runs = [
        run
        for run in runs_of(trace, recording.versions_for(trace.project))
        if run.skill in names and turn in (None, run.turn)
    ]
    if not runs:
        raise NotFound(f"the skill '{skill}' was not used in {trace.id}", "see: tacit sessions")
    failed = [run for run in runs if counted(run, settings.improve)]
    run = (failed or runs)[-1]
    return _judged(store, Case(run, counted(run, settings.improve), entry), settings)


def _find(library: Library, name: str) -> Entry | None:
    """The skill that a name means; also one that only a schedule runs."""
    return library.find(name) or scheduled.entry(name)


def aside(run: Run) -> str:
    """Why the failures of a run do not count, where it failed and none does."""
    reasons = [environment(step) for step in run.governed if step.failed]
    if not reasons:
        return "no step failed"
    named = next(filter(None, reasons), "")
    return f"not the skill's doing: {named}" if named else "it was got over at once"


def where(project: str) -> str:
    """The folder from which a session's skills are seen: its project, if that is still there."""
    return project if project and os.path.isdir(project) else paths.user_home()


def folder_of(entry: Entry) -> str:
    """A skill's folder below its skills folder."""
    return os.path.relpath(entry.folder, entry.root)


def _judged(store: Store, case: Case, settings: Settings) -> Case:
    if why := _why_never(case.entry):
        return msgspec.structs.replace(case, why_not=why, never=True)
    return msgspec.structs.replace(case, why_not=_why_not(store, case, settings))


def _why_never(entry: Entry) -> str:
    if entry.origin in ("bundled", "installed"):
        return f"'{entry.name}' is {entry.origin}: it is not the user's to mend"
    if entry.state == "untrusted":
        return f"'{entry.name}' is of a project that is not trusted"
    return f"'{entry.name}' is pinned" if _is_pinned(entry) else ""


def _why_not(store: Store, case: Case, settings: Settings) -> str:
    entry, run = case.entry, case.run
    if run.digest and run.digest != entry.digest:
        return f"'{entry.name}' has been changed since"
    if run.at is not None and datetime.now(UTC) - run.at > FRESH:
        return f"it was used on {run.at:%Y-%m-%d}, which is long ago"
    repairs = Repairs(store.connection)
    known = repairs.looked_at(case.skill, entry.root, run.digest or entry.digest)
    if {failure.mark for failure in case.failures} <= known:
        return "this failure was looked at before, for this version"
    if until := repairs.rests_until(case.skill, entry.root, settings.improve.cooldown_hours):
        return f"it was looked at lately; again from {until:%Y-%m-%d %H:%M} UTC"
    return ""


def _is_pinned(entry: Entry) -> bool:
    try:
        return Gate(places_here(entry.root)).site(entry.root).history.is_pinned(folder_of(entry))
    except TacitError:
        return False


def _verdicts(store: Store, trace: Trace, settings: Settings) -> list[Due]:
    """Repairs on probation whose uses suffice for a verdict now."""
    library = Library(where(trace.project), settings)
    found = []
    for name in trace.skills:
        entry = _find(library, name)
        if entry is None:
            continue
        try:
            watched = probation.look(store.connection, entry.root, folder_of(entry), settings)
        except TacitError:  # a place that cannot be read is the doctor's business
            continue
        if watched is not None and watched.state != "watching":
            key = f"probation:{watched.change}:{watched.new.uses}"
            payload = {"probation": watched.change, "skill": watched.skill, "root": watched.root}
            found.append(Due(key, payload, watched.numbers))
    return found


def _payload(run: Run) -> dict[str, Any]:
    return {"session": run.session, "turn": run.turn, "skill": run.skill}


def _why(case: Case) -> str:
    step = case.failures[0].step
    return f"{case.entry.name}: {step.tool} failed: {step.said[:120]}"
