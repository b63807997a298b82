"""The life of one skill: made, used, failed, repaired, rolled back, archived, in order of time.

Joins its history with its uses. What failed in a host's session is read from the stored session
when it is shown, so nothing of a session that was forgotten is left here.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from tacit.agent.uses import Use
from tacit.base.errors import TacitError
from tacit.changes.history import Version
from tacit.learn.probation import Verdict
from tacit.learn.usage import runs_of
from tacit.traces.store import Store

What = Literal[
    "made", "found", "edited", "by hand", "repaired", "kept", "rolled back", "archived",
    "absorbed", "restored", "renamed", "deleted", "pinned", "unpinned", "used", "failed",
]  # fmt: skip

_KINDS: dict[str, What] = {
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


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a skill."""

    at: datetime
    what: What
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
    verdicts: Iterable[Verdict] = (),
) -> list[Event]:
    """All that happened, the oldest first. Uses that went well stand together by day."""
    log = list(log)
    events = [_changed(version) for version in log]
    events += _used(uses, store)
    events += _stayed(log, verdicts)
    return sorted(events, key=lambda event: event.at)


def _changed(version: Version) -> Event:
    record = version.record
    sessions = tuple(filter(None, dict.fromkeys((record.session, *record.evidence))))
    return Event(
        at=version.at,
        what=_what(version),
        by=record.actor,
        detail=_detail(version),
        sessions=sessions,
        change=record.change,
    )


def _stayed(log: list[Version], verdicts: Iterable[Verdict]) -> Iterator[Event]:
    """Repairs that outlived their probation. One that did not is in the history itself."""
    known = {version.record.change for version in log}
    for verdict in verdicts:
        if verdict.state == "kept" and verdict.change in known:
            yield Event(
                at=verdict.at,
                what="kept",
                by="probation",
                detail=verdict.numbers,
                change=verdict.change,
            )


def _what(version: Version) -> What:
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


def _used(uses: Iterable[Use], store: Store | None) -> Iterator[Event]:
    well: dict[tuple[str, str, str], list[Use]] = {}
    told = 0
    for use in uses:
        if not use.failed:
            well.setdefault((f"{use.at:%Y-%m-%d}", use.digest, use.by), []).append(use)
            continue
        error = use.error
        if not error and told < _MOST_ERRORS:
            told += 1
            error = _error(use, store)
        yield _event(use, [use], "failed", error)
    for same in well.values():
        yield _event(same[0], same, "used", "")


def _event(use: Use, same: list[Use], what: What, detail: str) -> Event:
    return Event(
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
        trace = store.trace(use.session)
    except TacitError:
        return ""
    for run in runs_of(trace):
        if run.skill == use.skill and run.at == use.at:
            return next((step.said for step in run.steps[: run.answer] if step.failed), "")
    return ""
