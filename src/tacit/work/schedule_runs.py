"""The runs of schedules: planned when due, one row each in tacit.db, with state and output.

Owns the tables `schedule_cursors` and `schedule_runs`, and the rules for due times that were
missed and runs that would overlap. Each due time becomes one row and one job, by an id made of
the schedule and the time: two planners at once, or one that is killed at any instruction, plan
nothing twice. Doing a run is left to `schedule_runner`.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from tacit.base import database
from tacit.base.display import shorten
from tacit.base.errors import NotFound, Usage
from tacit.work.due_times import Once, due_after, exact_time, span_in_words
from tacit.work.schedule_store import Schedule

RunState = Literal["waiting", "sent", "running", "ran", "done", "failed", "skipped", "missed"]
LIVE_STATES: tuple[RunState, ...] = ("waiting", "sent", "running", "ran")
"""A run that is not over. `ran`: the session is over, its output is being delivered."""
RunCause = Literal["due", "late", "hand"]
# From where a run may come into a state. A job may begin before the planner has noted that it is
# sent, is resumed after a kill, and goes back to the queue to be tried again.
_BEFORE: dict[RunState, tuple[RunState, ...]] = {
    "sent": ("waiting", "sent", "running"),
    "running": ("waiting", "sent", "running"),
    "ran": ("running",),
    "done": ("running", "ran"),
    "failed": LIVE_STATES,
    "skipped": ("waiting", "sent", "running"),
}

STEPS = (
    """
    CREATE TABLE schedule_cursors (
      schedule TEXT PRIMARY KEY,
      cursor REAL NOT NULL,
      gone INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE schedule_runs (
      id TEXT PRIMARY KEY,
      schedule TEXT NOT NULL,
      due REAL NOT NULL,
      why TEXT NOT NULL,
      state TEXT NOT NULL,
      attempt INTEGER NOT NULL DEFAULT 0,
      began REAL NOT NULL DEFAULT 0,
      ended REAL NOT NULL DEFAULT 0,
      session TEXT NOT NULL DEFAULT '',
      output TEXT NOT NULL DEFAULT '',
      reason TEXT NOT NULL DEFAULT '',
      refused TEXT NOT NULL DEFAULT '[]',
      delivered TEXT NOT NULL DEFAULT '{}',
      read INTEGER NOT NULL DEFAULT 0,
      changed REAL NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX schedule_runs_of ON schedule_runs (schedule, due);
    CREATE INDEX schedule_runs_state ON schedule_runs (state);
    """,
    """
    ALTER TABLE schedule_cursors ADD COLUMN ahead REAL NOT NULL DEFAULT 0;
    ALTER TABLE schedule_cursors ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
    """,
)
_MOST_OUTPUT = 200_000
KEPT = timedelta(days=90)
_LATEST = 20
"""Runs of each schedule that are kept whatever their age."""


class ScheduleRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    schedule: str
    due: datetime
    why: RunCause
    state: RunState
    attempt: int = 0
    began: datetime | None = None
    ended: datetime | None = None
    session: str = ""
    output: str = ""
    reason: str = ""
    """Why it failed, was skipped or missed."""
    refused: tuple[str, ...] = ()
    """Calls that were refused, as nobody was there to allow them."""
    delivered: dict[str, str] = {}
    """Each place for output, and how the delivery to it ended."""
    read: bool = False
    """Whether a person has seen its output in the inbox."""
    changed: datetime = datetime.min.replace(tzinfo=UTC)
    """When something was last heard of it."""

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def silent(self) -> bool:
        return is_silent(self.output)


def is_silent(output: str) -> bool:
    """Whether an output is to be delivered nowhere."""
    return output.strip() == "[SILENT]"


def run_id(schedule: str, due: datetime, round_: int = 0) -> str:
    """The one id of a due time; a time that comes again, the clock being set back, has another."""
    again = f"-{round_}" if round_ else ""
    return f"{schedule}@{due.astimezone(UTC):%Y%m%dT%H%M%SZ}{again}"


def job_payload(run: ScheduleRun) -> dict[str, Any]:
    """What the job of a run is given."""
    return {"schedule": run.schedule, "due": run.due.timestamp()}


def open_runs() -> AbstractContextManager[sqlite3.Connection]:
    """tacit.db with the tables of schedules. Raises `Damaged`, `Busy`, `Unwritable`, `Newer`."""
    return database.opened(("schedules", STEPS))


@contextmanager
def write_runs() -> Iterator[sqlite3.Connection]:
    """The same, for a block that lands as a whole or not at all."""
    with open_runs() as connection, database.transaction(connection):
        yield connection


class Cursor(msgspec.Struct, frozen=True):
    """Up to when a schedule has been planned."""

    at: datetime
    gone: bool = False
    """Whether the schedule was gone when last looked for."""
    ahead: float = 0.0
    """A `since` from the future, which a clock that was ahead gave it; it does not count."""
    round: int = 0
    """How often the clock was set back behind what was planned."""


def cursors(connection: sqlite3.Connection) -> dict[str, Cursor]:
    """The cursor of each schedule that was ever planned."""
    rows = connection.execute("SELECT schedule, cursor, gone, ahead, round FROM schedule_cursors")
    return {row[0]: Cursor(_moment(row[1]), bool(row[2]), row[3], row[4]) for row in rows}


def move_cursor(connection: sqlite3.Connection, schedule: str, cursor: Cursor) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO schedule_cursors (schedule, cursor, gone, ahead, round)"
        " VALUES (?, ?, ?, ?, ?)",
        (schedule, cursor.at.timestamp(), cursor.gone, cursor.ahead, cursor.round),
    )


def add_run(connection: sqlite3.Connection, row: ScheduleRun, now: datetime) -> bool:
    """Make a row, unless there is one with its id."""
    made = connection.execute(
        "INSERT OR IGNORE INTO schedule_runs (id, schedule, due, why, state, reason, began,"
        " attempt, session, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.id,
            row.schedule,
            row.due.timestamp(),
            row.why,
            row.state,
            row.reason,
            row.began.timestamp() if row.began else 0.0,
            row.attempt,
            row.session,
            now.timestamp(),
        ),
    )
    return bool(made.rowcount)


def update_run(
    connection: sqlite3.Connection, run: str, now: datetime, condition: str = "1", **values: Any
) -> bool:
    """Change some columns of a run, if `condition` holds for it. Its state is left to `advance`."""
    values["changed"] = now
    names = ", ".join(f"{name} = ?" for name in values)
    changed = connection.execute(
        f"UPDATE schedule_runs SET {names} WHERE id = ? AND {condition}",  # noqa: S608 - our own
        (*(_stored(value) for value in values.values()), run),
    )
    return bool(changed.rowcount)


def advance(
    run: ScheduleRun,
    state: RunState,
    *,
    now: datetime | None = None,
    only_from: RunState | None = None,
    **values: Any,
) -> ScheduleRun:
    """Move a run on to `state`, with the values that go with it; the run as it is then.

    The one way from a state to the next. Where the run is over by now, or cannot come to `state`
    from where it is, or is not in `only_from` any more, nothing changes.
    """
    now = now or datetime.now(UTC)
    before = ", ".join(f"'{name}'" for name in ((only_from,) if only_from else _BEFORE[state]))
    values |= {"state": state} | ({} if state in LIVE_STATES else {"ended": now})
    with write_runs() as connection:
        if update_run(connection, run.id, now, f"state IN ({before})", **values):
            return msgspec.structs.replace(run, changed=now, **values)
        return run_by_id(connection, run.id) or run


def run_by_id(connection: sqlite3.Connection, run: str) -> ScheduleRun | None:
    found = connection.execute("SELECT * FROM schedule_runs WHERE id = ?", (run,)).fetchone()
    return _row(found) if found is not None else None


def select_runs(
    connection: sqlite3.Connection, where: str = "1", *values: Any, most: int = 0
) -> list[ScheduleRun]:
    """The runs for which `where` holds, the latest due first."""
    query = f"SELECT * FROM schedule_runs WHERE {where} ORDER BY due DESC, rowid DESC"  # noqa: S608
    if most:
        query += f" LIMIT {most}"
    return [_row(row) for row in connection.execute(query, values)]


def live_runs(connection: sqlite3.Connection, schedule: str = "") -> list[ScheduleRun]:
    """The runs that are not over, the earliest due first."""
    values = ", ".join("?" * len(LIVE_STATES))
    if schedule:  # by the index of its runs; `+` keeps SQLite from walking all that are live
        where = f"schedule = ? AND +state IN ({values})"
        return select_runs(connection, where, schedule, *LIVE_STATES)[::-1]
    return select_runs(connection, f"state IN ({values})", *LIVE_STATES)[::-1]


def run_history(schedule: str = "", most: int = 50) -> list[ScheduleRun]:
    """The latest runs of a schedule, or of all."""
    with open_runs() as connection:
        return select_runs(connection, "? IN ('', schedule)", schedule, most=most)


def find_run(name: str) -> ScheduleRun:
    """The run that `name` means: its id, or enough of one end of it. Raises `NotFound`, `Usage`."""
    with open_runs() as connection:
        exact = run_by_id(connection, name)
        if exact is not None:
            return exact
        wanted = name.replace("%", "").replace("_", "")
        near = select_runs(connection, "id LIKE ? OR id LIKE ?", f"{wanted}%", f"%{wanted}")
    if len(near) == 1:
        return near[0]
    if near and len({row.schedule for row in near}) == 1:
        return near[0]  # of one schedule, the latest run
    if near:
        ids = ", ".join(row.id for row in near[:3])
        raise Usage(f"'{name}' could be several runs", f"e.g. {ids}")
    raise NotFound(f"there is no run '{name}'", "see them: tacit schedule history NAME")


def last_runs(names: Sequence[str]) -> dict[str, ScheduleRun]:
    """The latest run of each schedule that was not missed."""
    found: dict[str, ScheduleRun] = {}
    with open_runs() as connection:
        for name in names:
            rows = select_runs(connection, "schedule = ? AND state != 'missed'", name, most=1)
            if rows:
                found[name] = rows[0]
    return found


def forget_old_runs(now: datetime) -> int:
    """Drop runs that have been over for long, but of each schedule the latest; how many."""
    values = ", ".join("?" * len(LIVE_STATES))
    with open_runs() as connection:
        names = [
            row[0] for row in connection.execute("SELECT DISTINCT schedule FROM schedule_runs")
        ]
        gone = 0
        for name in names:  # a short transaction each: nobody else waits for long
            with database.transaction(connection):
                dropped = connection.execute(
                    "DELETE FROM schedule_runs WHERE schedule = ? AND due < min(?, ("  # noqa: S608
                    " SELECT due FROM schedule_runs WHERE schedule = ?"
                    " ORDER BY due DESC LIMIT 1 OFFSET ?))"
                    f" AND +state NOT IN ({values})",
                    (name, (now - KEPT).timestamp(), name, _LATEST - 1, *LIVE_STATES),
                )
            gone += dropped.rowcount
        return gone


def _row(row: sqlite3.Row) -> ScheduleRun:
    return ScheduleRun(
        id=row["id"],
        schedule=row["schedule"],
        due=_moment(row["due"]),
        why=row["why"],
        state=row["state"],
        attempt=row["attempt"],
        began=_moment(row["began"]) if row["began"] else None,
        ended=_moment(row["ended"]) if row["ended"] else None,
        session=row["session"],
        output=row["output"],
        reason=row["reason"],
        refused=tuple(msgspec.json.decode(row["refused"])),
        delivered=msgspec.json.decode(row["delivered"]),
        read=bool(row["read"]),
        changed=_moment(row["changed"]),
    )


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode()
    if isinstance(value, bool):
        return int(value)
    return shorten(value, _MOST_OUTPUT, "\n[… cut]") if isinstance(value, str) else value


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


GRACE = timedelta(seconds=90)
"""What is no later than this is on time: a worker looks about once a second, but may be busy."""
MOST_CAUGHT_UP = 100
"""Runs that `catch-up = all` makes up for at once; what is older is missed for good."""
_AT_ONCE = 200
"""Schedules that are planned in one transaction."""
_MOST_WALKED = 10_000
_MOST_NOTED = 20
"""Missed runs that get a row of their own."""

Send = Callable[[str, dict[str, Any]], bool]
"""Queues the job of a run, by the run's id and the job's payload; whether a queue has it now. The
same id is queued once, however often it is sent."""


class ScheduleNews(msgspec.Struct, frozen=True):
    """Something about a schedule that the user should know."""

    schedule: str
    key: str
    """The same for what is the same news."""
    text: str


class Planned(msgspec.Struct, frozen=True):
    """The result of one round of planning."""

    sent: tuple[str, ...] = ()
    news: tuple[ScheduleNews, ...] = ()
    next: datetime | None = None
    """When the next run is due, as things are."""


def plan(now: datetime, schedules: list[Schedule], send: Send) -> Planned:
    """Plan every due time up to `now`, and send what may begin."""
    news: list[ScheduleNews] = []
    with open_runs() as connection:
        known = cursors(connection)
        with database.transaction(connection):
            for name in known.keys() - {schedule.name for schedule in schedules}:
                if not known[name].gone:
                    move_cursor(connection, name, msgspec.structs.replace(known[name], gone=True))
        active = [schedule for schedule in schedules if not schedule.binding.paused]
        for first in range(0, len(active), _AT_ONCE):
            with database.transaction(connection):
                for schedule in active[first : first + _AT_ONCE]:
                    news += _plan_one(connection, schedule, known.get(schedule.name), now)
    sent = _dispatch(now, {schedule.name: schedule for schedule in schedules}, send)
    coming = (
        next(due_after(schedule.binding.timing, schedule.binding.place, now), None)
        for schedule in active
    )
    return Planned(tuple(sent), tuple(news), min(filter(None, coming), default=None))


def _plan_one(
    connection: Any, schedule: Schedule, known: Cursor | None, now: datetime
) -> list[ScheduleNews]:
    """Make the rows for what has come since it was last planned; what the user is to be told."""
    cursor, news = _start(schedule, known, now)
    count, dues = _due_since(schedule, cursor.at, now)
    if not dues:
        if cursor != known:
            move_cursor(connection, schedule.name, cursor)
        return news
    chosen, missed = _choose(schedule, dues, now)
    busy = live_runs(connection, schedule.name)
    for due in chosen:
        row = _planned_run(schedule, cursor, due, now, "waiting")
        if busy and row.why == "due" and schedule.binding.overlap == "skip":
            going = f"the run of {exact_time(busy[0].due, schedule.binding.place)} was still going"
            row = msgspec.structs.replace(row, state="skipped", reason=going)
        add_run(connection, row, now)
    for due in missed[-_MOST_NOTED:]:
        row = _planned_run(schedule, cursor, due, now, "missed", "nothing was there to run it")
        add_run(connection, row, now)
    move_cursor(connection, schedule.name, msgspec.structs.replace(cursor, at=dues[-1]))
    if late := [due for due in dues if now - due > GRACE]:
        news.append(_news(schedule, count - len(dues) + len(late), late, len(chosen)))
    return news


def _start(
    schedule: Schedule, known: Cursor | None, now: datetime
) -> tuple[Cursor, list[ScheduleNews]]:
    """From where a schedule is planned; and the news that the clock was set back, if it was.

    One that came back, as by undo, begins anew; so does one whose time was changed. What lies
    ahead of the clock was written while the clock was ahead: waiting for it to come again would
    silence the schedule for as long as that was.
    """
    since = schedule.binding.since
    cursor = known or Cursor(since)
    if cursor.gone:
        return Cursor(now, round=cursor.round), []
    if cursor.ahead != since.timestamp():
        cursor = msgspec.structs.replace(cursor, at=max(cursor.at, since), ahead=0.0)
    if cursor.at - now <= GRACE:
        return cursor, []
    ahead = since.timestamp() if since > now else cursor.ahead
    back = span_in_words((cursor.at - now).total_seconds() // 60 * 60)
    text = f"the clock was set back by at least {back}: {schedule.name} is planned anew from now"
    if isinstance(schedule.binding.timing, Once) and schedule.binding.timing.at <= cursor.at:
        return cursor, []  # it had its one time
    news = ScheduleNews(schedule.name, f"back:{run_id(schedule.name, now)}", text)
    return Cursor(now, ahead=ahead, round=cursor.round + 1), [news]


def _planned_run(
    schedule: Schedule,
    cursor: Cursor,
    due: datetime,
    now: datetime,
    state: RunState,
    reason: str = "",
) -> ScheduleRun:
    return ScheduleRun(
        id=run_id(schedule.name, due, cursor.round),
        schedule=schedule.name,
        due=due,
        why="late" if now - due > GRACE else "due",
        state=state,
        reason=reason,
    )


def _due_since(schedule: Schedule, cursor: datetime, now: datetime) -> tuple[int, list[datetime]]:
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


def _news(schedule: Schedule, count: int, late: list[datetime], chosen: int) -> ScheduleNews:
    place = schedule.binding.place
    first, last = exact_time(late[0], place), exact_time(late[-1], place)
    when = f"was due {last}" if count == 1 else f"was due {count} times from {first} to {last}"
    what = f"{schedule.name} {when} while nothing was there to run it"
    match schedule.binding.catch_up:
        case "none":
            then = "it was not run (catch-up is none)"
        case "all":
            then = "it is run now" if chosen == 1 else f"{chosen} runs are made up for, in turn"
        case _:
            then = "it is run once now"
    return ScheduleNews(schedule.name, f"late:{run_id(schedule.name, late[-1])}", f"{what}; {then}")


def _dispatch(now: datetime, schedules: dict[str, Schedule], send: Send) -> list[str]:
    """Give to the queues what may begin: of each schedule one run at a time, the earliest first.

    The row is marked after the queue has it: a kill in between only means that it is sent again.
    """
    sent: list[str] = []
    with open_runs() as connection:
        busy: set[str] = set()
        wanted: list[ScheduleRun] = []
        for row in live_runs(connection):
            if row.schedule in busy:
                continue
            busy.add(row.schedule)
            if row.state == "waiting":
                wanted.append(row)
    for row in wanted:
        if row.schedule in schedules:
            if send(row.id, job_payload(row)):
                advance(row, "sent", now=now, only_from="waiting")  # it may have begun meanwhile
                sent.append(row.id)
        else:
            advance(row, "skipped", now=now, reason="the schedule was removed, or cannot be read")
    return sent
