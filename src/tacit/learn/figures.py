"""How much a skill is used, by whom, and how well each of its versions does. Counted, not guessed.

Uses and views come from the tables of `recording.py`, edits from the history.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from tacit.agent.uses import Use
from tacit.changes.history import Version
from tacit.learn.recording import Viewed

_EDITS = ("create", "edit", "hand", "rename")


class OfVersion(msgspec.Struct, frozen=True):
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
    versions: tuple[OfVersion, ...] = ()
    """The one used last comes first."""


def figures(
    uses: Sequence[Use], views: Iterable[Viewed] = (), log: Iterable[Version] = ()
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


def weekly(uses: Iterable[Use], now: datetime, weeks: int = 26) -> list[int]:
    """Uses in each of the last so many weeks, the oldest first."""
    counts = [0] * weeks
    for use in uses:
        ago = (now - use.at) // timedelta(days=7)
        if 0 <= ago < weeks:
            counts[weeks - 1 - ago] += 1
    return counts


def _versions(uses: Sequence[Use]) -> Iterable[OfVersion]:
    found: dict[str, list[Use]] = {}
    for use in uses:
        found.setdefault(use.digest, []).append(use)
    for digest, own in found.items():
        yield OfVersion(
            digest,
            len(own),
            sum(use.calls for use in own),
            sum(use.failed for use in own),
            own[-1].at,
            own[0].at,
        )
