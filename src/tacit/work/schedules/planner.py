"""Planning: which due times have come, which of them are run, and giving those to the queues.

Owns the rules for what was missed and for runs that would overlap. Each due time becomes one row
and one job, by an id made of the schedule and the time: two planners at once, or one that is killed
at any instruction and started again, plan nothing twice. What a run does is `job.py`'s.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tacit.work.schedules import runs
from tacit.work.schedules.recurrence import due_after
from tacit.work.schedules.runs import Row, State, run_id
from tacit.work.schedules.shelf import Schedule
from tacit.work.schedules.zones import exact

GRACE = timedelta(seconds=90)
"""What is no later than this is on time: a worker looks about once a second, but may be busy."""
MOST_CAUGHT_UP = 100
"""Runs that `catch-up = all` makes up for at once; what is older is missed for good."""
_MOST_WALKED = 10_000
_MOST_NOTED = 20
"""Missed runs that get a row of their own."""

Send = Callable[[str, dict[str, Any]], None]
"""Gives a run to the queues by its id; the same id twice is once."""


class Told(msgspec.Struct, frozen=True):
    """Something about a schedule that the user should know."""

    schedule: str
    key: str
    """The same for what is the same news."""
    text: str


class Planned(msgspec.Struct, frozen=True):
    """What one look came to."""

    sent: tuple[str, ...] = ()
    told: tuple[Told, ...] = ()
    next: datetime | None = None
    """When the next run is due, as things are."""


def plan(now: datetime, schedules: list[Schedule], send: Send) -> Planned:
    """Plan every due time up to `now`, and send what may begin."""
    told: list[Told] = []
    with runs.writing() as connection:
        known = runs.cursors(connection)
        here = {schedule.name for schedule in schedules}
        for name, (cursor, gone) in known.items():
            if name not in here and not gone:
                runs.move_cursor(connection, name, cursor, gone=True)
        coming: list[datetime] = []
        for schedule in schedules:
            cursor, gone = known.get(schedule.name, (schedule.binding.since, False))
            # One that came back, as by undo, begins anew; so does one whose time was changed.
            cursor = now if gone else max(cursor, schedule.binding.since)
            if schedule.binding.paused:
                continue
            news = _plan_one(connection, schedule, cursor, now)
            told += news
            nearest = next(due_after(schedule.binding.timing, schedule.binding.place, now), None)
            coming += [nearest] if nearest is not None else []
    sent = _dispatch(now, {schedule.name: schedule for schedule in schedules}, send)
    return Planned(tuple(sent), tuple(told), min(coming, default=None))


def _plan_one(connection: Any, schedule: Schedule, cursor: datetime, now: datetime) -> list[Told]:
    """Make the rows for what has come since `cursor`; what the user is to be told."""
    count, dues = _come(schedule, cursor, now)
    if not dues:
        if cursor == now or runs.cursors(connection).get(schedule.name) is None:
            runs.move_cursor(connection, schedule.name, cursor)
        return []
    chosen, missed = _choose(schedule, dues, now)
    busy = runs.live(connection, schedule.name)
    for due in chosen:
        row = _row(schedule, due, now, "waiting")
        if busy and row.why == "due" and schedule.binding.overlap == "skip":
            going = exact(busy[0].due, schedule.binding.place)
            row = _row(schedule, due, now, "skipped", f"the run of {going} was still going")
        runs.add(connection, row, now)
    for due in missed[-_MOST_NOTED:]:
        row = _row(schedule, due, now, "missed", "nothing was there to run it")
        runs.add(connection, row, now)
    runs.move_cursor(connection, schedule.name, dues[-1])
    late = [due for due in dues if now - due > GRACE]
    if not late:
        return []
    return [_news(schedule, count - len(dues) + len(late), late, len(chosen))]


def _row(schedule: Schedule, due: datetime, now: datetime, state: State, reason: str = "") -> Row:
    return Row(
        id=run_id(schedule.name, due),
        schedule=schedule.name,
        due=due,
        why="late" if now - due > GRACE else "due",
        state=state,
        reason=reason,
    )


def _come(schedule: Schedule, cursor: datetime, now: datetime) -> tuple[int, list[datetime]]:
    """How many due times have come, and the latest of them."""
    latest: deque[datetime] = deque(maxlen=MOST_CAUGHT_UP)
    count = 0
    binding = schedule.binding
    start = cursor
    while True:
        for due in due_after(binding.timing, binding.place, start):
            if due > now:
                return count, list(latest)
            latest.append(due)
            count += 1
            if count % _MOST_WALKED == 0 and now - due > timedelta(hours=1):
                start = now - timedelta(hours=1)  # every second for weeks: nobody counts these
                break
        else:
            return count, list(latest)


def _choose(
    schedule: Schedule, dues: list[datetime], now: datetime
) -> tuple[list[datetime], list[datetime]]:
    """Which of the due times are run, and which are not."""
    timely = [due for due in dues if now - due <= GRACE]
    match schedule.binding.catch_up:
        case "all":
            chosen = dues
        case "none":
            chosen = timely
        case _:
            chosen = timely or dues[-1:]
    return chosen, [due for due in dues if due not in set(chosen)]


def _news(schedule: Schedule, count: int, late: list[datetime], chosen: int) -> Told:
    place = schedule.binding.place
    first, last = exact(late[0], place), exact(late[-1], place)
    when = f"was due {last}" if count == 1 else f"was due {count} times from {first} to {last}"
    what = f"{schedule.name} {when} while nothing was there to run it"
    match schedule.binding.catch_up:
        case "none":
            then = "it was not run (catch-up is none)"
        case "all":
            then = "it is run now" if chosen == 1 else f"{chosen} runs are made up for, in turn"
        case _:
            then = "it is run once now"
    return Told(schedule.name, f"late:{run_id(schedule.name, late[-1])}", f"{what}; {then}")


def _dispatch(now: datetime, schedules: dict[str, Schedule], send: Send) -> list[str]:
    """Give to the queues what may begin: of each schedule one run at a time, the earliest first.

    The row is marked after the queue has it: a kill in between only means that it is sent again.
    """
    with runs.opened() as connection:
        busy: set[str] = set()
        wanted: list[Row] = []
        for row in runs.live(connection):
            if row.schedule in busy:
                continue
            busy.add(row.schedule)
            if row.state == "waiting":
                wanted.append(row)
    for row in wanted:
        if row.schedule in schedules:
            send(row.id, {"schedule": row.schedule, "due": row.due.timestamp()})
        with runs.writing() as connection:
            if row.schedule in schedules:
                runs.update(connection, row.id, now, state="sent")
            else:
                reason = "the schedule was removed, or cannot be read"
                runs.update(connection, row.id, now, state="skipped", reason=reason, ended=now)
    return [row.id for row in wanted if row.schedule in schedules]
