"""What the commands for schedules share: completion, words for moments and states."""

from datetime import datetime
from zoneinfo import ZoneInfo

import click
from click.shell_completion import CompletionItem

from tacit.work.schedules.runs import Row
from tacit.work.schedules.shelf import Schedule

COLOURS = {"failed": "red", "running": "cyan", "missed": "yellow", "skipped": "yellow"}


def complete_schedule(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The schedules whose name begins with what was typed. A fault must not disturb a prompt."""
    try:
        from tacit.work.schedules.shelf import listing

        found, _ = listing()
    except Exception:
        return []
    return [
        CompletionItem(schedule.name, help=schedule.description[:80])
        for schedule in found
        if schedule.name.startswith(incomplete)
    ][:200]


def complete_run(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The latest runs whose id begins with what was typed."""
    try:
        from tacit.work.schedules.runs import history

        found = history(most=200)
    except Exception:
        return []
    return [
        CompletionItem(row.id, help=row.state) for row in found if row.id.startswith(incomplete)
    ]


def near(at: datetime | None, place: ZoneInfo) -> str:
    """A moment for a table: the day and the time in the schedule's own zone."""
    return f"{at.astimezone(place):%a %d %b %H:%M}" if at is not None else "-"


def state_of(schedule: Schedule, last: Row | None, coming: datetime | None) -> str:
    """What a schedule is doing, in a word or two."""
    if last is not None and last.live:
        return "running" if last.state in ("running", "ran") else "waiting"
    if schedule.binding.paused:
        return "paused"
    if coming is not None:
        return "active"
    return "failed" if last is not None and last.state == "failed" else "over"


def coloured(state: str, width: int = 0) -> str:
    return click.style(f"{state:<{width}}", fg=COLOURS.get(state))
