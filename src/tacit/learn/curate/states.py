"""The rules: when a skill is active, stale or archived. Pure; nothing here knows a disk or a clock.

A skill has an age, in days without use or edit. Ages grow by what passed between two looks at the
library, and no more than `Rules.longest_gap` of it: a clock that jumps by years, or a machine that
slept for months, ages nothing by more than that; a clock that is put back ages nothing. What
happened to a skill is told by what is there now and was not before, never by comparing times.
"""

from typing import Literal

import msgspec

from tacit.base.sections import CurateSettings

State = Literal["active", "stale", "archived"]


class Rules(msgspec.Struct, frozen=True):
    """The thresholds, in days."""

    stale: float = 30.0
    archive: float = 90.0
    longest_gap: float = 14.0

    @staticmethod
    def of(settings: CurateSettings) -> "Rules":
        archive = max(settings.archive_days, settings.stale_days)
        return Rules(settings.stale_days, archive, 2 * settings.every_days)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
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

    state: State = "active"
    idle: float = 0.0


def age(rules: Rules, before: Age | None, seen: Seen, passed: float) -> Age:
    """How a skill stands after a look, `passed` days after the one before.

    `archived` as an answer for a skill that is not in the archive means: put it there.
    """
    if seen.archived:
        return Age("archived", before.idle if before else 0.0)
    if seen.kept or (before is not None and before.state == "archived"):
        return Age()  # brought back from the archive, or not ours to judge: it begins anew
    idle = _idle(rules, before, seen, counted(rules, passed))
    if idle >= rules.archive and before is not None and before.state == "stale":
        return Age("archived", idle)
    return Age("stale" if idle >= rules.stale else "active", idle)


def counted(rules: Rules, passed: float) -> float:
    """How much of the days between two looks counts."""
    return min(max(passed, 0.0), rules.longest_gap)


def _idle(rules: Rules, before: Age | None, seen: Seen, passed: float) -> float:
    days = max(seen.days, 0.0)
    if before is None:
        # Met for the first time: its past may be believed so far that it is stale, not that it
        # goes at once. A new skill has none.
        return min(days, rules.stale)
    if seen.moved:
        return min(days, passed)
    return before.idle + passed
