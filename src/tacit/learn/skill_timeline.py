"""One skill over time: how much it is used, how well each version does, what happened.

Joins its history with its uses; figures are counted, not guessed. What failed is read from the
stored session when it is shown, so nothing of a session that was forgotten is left here.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from tacit.base.errors import TacitError
from tacit.changes.history import Version
from tacit.learn.improve.probation import ProbationVerdict
from tacit.learn.skill_runs import run_of_use
from tacit.traces.skill_uses import RecordedViews, SkillReport, Use
from tacit.traces.store import Store

_EDITS = ("create", "edit", "hand", "rename")


class VersionFigures(msgspec.Struct, frozen=True):
    """How one version did."""

    digest: str
    """Of its SKILL.md; empty where it is not known which version was used."""
    uses: int
    calls: int
    """Calls in the answers in which it was loaded."""
    failed: int
    first: datetime
    last: datetime


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one skill."""

    uses: int = 0
    by_people: int = 0
    by_models: int = 0
    seen_by_people: int = 0
    seen_by_models: int = 0
    edits: int = 0
    calls: int = 0
    failed: int = 0
    last_use: datetime | None = None
    hosts: tuple[str, ...] = ()
    versions: tuple[VersionFigures, ...] = ()
    """The one used last comes first."""


def figures(
    uses: Sequence[Use], views: Iterable[RecordedViews] = (), log: Iterable[Version] = ()
) -> Figures:
    """The figures of a skill, given its uses (newest first), its views and its history."""
    views = tuple(views)
    return Figures(
        uses=len(uses),
        by_people=sum(use.by == "user" for use in uses),
        by_models=sum(use.by == "model" for use in uses),
        seen_by_people=sum(view.times for view in views if view.by == "user"),
        seen_by_models=sum(view.times for view in views if view.by == "model"),
        edits=sum(version.record.kind in _EDITS for version in log),
        calls=sum(use.calls for use in uses),
        failed=sum(use.failed for use in uses),
        last_use=uses[0].at if uses else None,
        hosts=tuple(dict.fromkeys(use.session.partition(":")[0] for use in uses)),
        versions=tuple(_versions(uses)),
    )


def weekly_uses(uses: Iterable[Use], now: datetime, weeks: int = 26) -> list[int]:
    """Uses in each of the last so many weeks, the oldest first."""
    counts = [0] * weeks
    for use in uses:
        ago = (now - use.at) // timedelta(days=7)
        if 0 <= ago < weeks:
            counts[weeks - 1 - ago] += 1
    return counts


def _versions(uses: Sequence[Use]) -> Iterable[VersionFigures]:
    found: dict[str, list[Use]] = {}
    for use in uses:
        found.setdefault(use.digest, []).append(use)
    for digest, own in found.items():
        yield VersionFigures(
            digest,
            len(own),
            sum(use.calls for use in own),
            sum(use.failed for use in own),
            own[-1].at,
            own[0].at,
        )


EventKind = Literal[
    "made", "found", "edited", "by hand", "repaired", "kept", "rolled back", "archived",
    "absorbed", "restored", "renamed", "deleted", "pinned", "unpinned", "used", "failed",
    "reported",
]  # fmt: skip

_KINDS: dict[str, EventKind] = {
    "create": "made",
    "baseline": "found",
    "edit": "edited",
    "hand": "by hand",
    "archive": "archived",
    "restore": "restored",
    "rename": "renamed",
    "renamed": "renamed",
    "delete": "deleted",
    "pin": "pinned",
    "unpin": "unpinned",
}
_MOST_ERRORS = 20
"""Sessions that are opened to say what failed in them."""


class SkillEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a skill."""

    at: datetime
    what: EventKind
    by: str
    detail: str = ""
    sessions: tuple[str, ...] = ()
    """Each can be shown: `tacit session ID`."""
    change: str = ""
    """Can be taken back: `tacit undo ID`."""
    digest: str = ""
    times: int = 1
    calls: int = 0
    failed: int = 0


def timeline(
    log: Iterable[Version],
    uses: Iterable[Use],
    store: Store | None,
    verdicts: Iterable[ProbationVerdict] = (),
    reports: Iterable[SkillReport] = (),
) -> list[SkillEvent]:
    """All that happened, the oldest first. Uses that went well stand together by day."""
    log = list(log)
    events = [_changed(version) for version in reversed(log)]  # of one second, too, as they came
    events += _used(uses, store)
    events += _stayed(log, verdicts)
    events += (_reported(report) for report in reports)
    return sorted(events, key=lambda event: event.at)


def _changed(version: Version) -> SkillEvent:
    record = version.record
    sessions = tuple(filter(None, dict.fromkeys((record.session, *record.evidence))))
    return SkillEvent(
        at=version.at,
        what=_what(version),
        by=record.actor,
        detail=_detail(version),
        sessions=sessions,
        change=record.change,
    )


def _stayed(log: list[Version], verdicts: Iterable[ProbationVerdict]) -> Iterator[SkillEvent]:
    """Repairs that outlived their probation. One that did not is in the history itself."""
    known = {version.record.change for version in log}
    for verdict in verdicts:
        if verdict.state == "kept" and verdict.change in known:
            yield SkillEvent(
                at=verdict.at,
                what="kept",
                by="probation",
                detail=verdict.numbers,
                change=verdict.change,
            )


def _reported(report: SkillReport) -> SkillEvent:
    """What a client said of it over MCP, which is its own claim."""
    how = "it worked" if report.worked else "it failed"
    detail = f"{how}: {report.said}" if report.said else how
    return SkillEvent(
        at=report.at, what="reported", by=report.client, detail=detail, digest=report.digest
    )


def _what(version: Version) -> EventKind:
    record = version.record
    if record.undoes or record.reason.startswith("back to "):
        return "rolled back"
    if record.kind == "edit" and record.actor == "improver":
        return "repaired"
    if record.kind == "archive" and record.partner:
        return "absorbed"
    return _KINDS[record.kind]


def _detail(version: Version) -> str:
    record = version.record
    parts = [record.reason]
    if record.undoes:
        parts.append(f"takes back {record.undoes[-8:]}")
    if record.kind == "archive" and record.partner:
        parts.append(f"part of '{record.partner}' now")
    elif record.kind in ("rename", "renamed"):
        parts.append(f"{'from' if record.kind == 'rename' else 'to'} '{record.partner}'")
    return "; ".join(part for part in parts if part)


def _used(uses: Iterable[Use], store: Store | None) -> Iterator[SkillEvent]:
    well: dict[tuple[str, str, str], list[Use]] = {}
    opened = 0
    for use in uses:
        if not use.failed:
            well.setdefault((f"{use.at:%Y-%m-%d}", use.digest, use.by), []).append(use)
            continue
        opened += 1
        error = _error(use, store) if opened <= _MOST_ERRORS else ""
        yield _event(use, [use], "failed", error)
    for same in well.values():
        yield _event(same[0], same, "used", "")


def _event(use: Use, same: list[Use], what: EventKind, detail: str) -> SkillEvent:
    return SkillEvent(
        at=use.at,
        what=what,
        by="you" if use.by == "user" else "a model",
        detail=detail,
        sessions=tuple(dict.fromkeys(one.session for one in same)),
        digest=use.digest,
        times=len(same),
        calls=sum(one.calls for one in same),
        failed=sum(one.failed for one in same),
    )


def _error(use: Use, store: Store | None) -> str:
    """What failed first, from the stored session; empty when that is gone."""
    if store is None:
        return ""
    try:
        run = run_of_use(store.trace(use.session), use)
    except TacitError:
        return ""
    return next((s.said for s in run.steps[: run.answer] if s.failed), "") if run else ""
