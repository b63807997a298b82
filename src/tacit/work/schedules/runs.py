"""The runs of schedules: what was due when, what became of it, and what it said.

Owns the tables `schedule_cursors` and `schedule_runs` in tacit.db. A due time has one row, by its
id, whoever plans it and however often. `planner.py` makes rows, `job.py` fills them.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from tacit.base import database
from tacit.base.errors import NotFound, Usage

State = Literal["waiting", "sent", "running", "ran", "done", "failed", "skipped", "missed"]
LIVE = ("waiting", "sent", "running", "ran")
"""A run that is not over. `ran`: the session is over, its output is being delivered."""
Why = Literal["due", "late", "hand"]

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
)
_MOST_OUTPUT = 200_000
KEPT = timedelta(days=90)
_LATEST = 20
"""Runs of each schedule that are kept whatever their age."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    schedule: str
    due: datetime
    why: Why
    state: State
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
    """Each place for output, and what became of it there."""
    read: bool = False
    """Whether a person has seen its output in the inbox."""
    changed: datetime = datetime.min.replace(tzinfo=UTC)
    """When something was last heard of it."""

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def silent(self) -> bool:
        return is_silent(self.output)


def is_silent(output: str) -> bool:
    """Whether an output is to be delivered nowhere."""
    return output.strip() == "[SILENT]"


def run_id(schedule: str, due: datetime) -> str:
    """The one id of a due time."""
    return f"{schedule}@{due.astimezone(UTC):%Y%m%dT%H%M%SZ}"


@contextmanager
def opened() -> Iterator[sqlite3.Connection]:
    """tacit.db with the tables of schedules. Raises `Damaged`, `Busy`, `Unwritable`, `Newer`."""
    tables = [("schedules", STEPS)]
    with (
        closing(database.connect(tables=tables)) as connection,
        database.explained(database.default_path()),
    ):
        yield connection


@contextmanager
def writing() -> Iterator[sqlite3.Connection]:
    """The same, for a block that lands as a whole or not at all."""
    with opened() as connection, database.transaction(connection):
        yield connection


def cursors(connection: sqlite3.Connection) -> dict[str, tuple[datetime, bool]]:
    """Up to when each schedule has been planned, and whether it was gone when last looked for."""
    rows = connection.execute("SELECT schedule, cursor, gone FROM schedule_cursors")
    return {row[0]: (_moment(row[1]), bool(row[2])) for row in rows}


def move_cursor(
    connection: sqlite3.Connection, schedule: str, cursor: datetime, *, gone: bool = False
) -> None:
    connection.execute(
        "INSERT INTO schedule_cursors (schedule, cursor, gone) VALUES (?, ?, ?)"
        " ON CONFLICT (schedule) DO UPDATE SET cursor = excluded.cursor, gone = excluded.gone",
        (schedule, cursor.timestamp(), gone),
    )


def add(connection: sqlite3.Connection, row: Row, now: datetime) -> bool:
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


def update(connection: sqlite3.Connection, run: str, now: datetime, **values: Any) -> None:
    """Change some columns of a run."""
    values["changed"] = now
    names = ", ".join(f"{name} = ?" for name in values)
    connection.execute(
        f"UPDATE schedule_runs SET {names} WHERE id = ?",  # noqa: S608 - our own names
        (*(_stored(value) for value in values.values()), run),
    )


def of(connection: sqlite3.Connection, run: str) -> Row | None:
    found = connection.execute("SELECT * FROM schedule_runs WHERE id = ?", (run,)).fetchone()
    return _row(found) if found is not None else None


def select(
    connection: sqlite3.Connection, where: str = "1", *values: Any, most: int = 0
) -> list[Row]:
    """The runs for which `where` holds, the latest due first."""
    query = f"SELECT * FROM schedule_runs WHERE {where} ORDER BY due DESC, rowid DESC"  # noqa: S608
    if most:
        query += f" LIMIT {most}"
    return [_row(row) for row in connection.execute(query, values)]


def live(connection: sqlite3.Connection, schedule: str = "") -> list[Row]:
    """The runs that are not over, the earliest due first."""
    marks = ", ".join("?" * len(LIVE))
    where = f"state IN ({marks}) AND ? IN ('', schedule)"
    return select(connection, where, *LIVE, schedule)[::-1]


def history(schedule: str = "", most: int = 50) -> list[Row]:
    """The latest runs of a schedule, or of all."""
    with opened() as connection:
        return select(connection, "? IN ('', schedule)", schedule, most=most)


def find(name: str) -> Row:
    """The run that `name` means: its id, or enough of one end of it. Raises `NotFound`, `Usage`."""
    with opened() as connection:
        exact = of(connection, name)
        if exact is not None:
            return exact
        wanted = name.replace("%", "").replace("_", "")
        near = select(connection, "id LIKE ? OR id LIKE ?", f"{wanted}%", f"%{wanted}")
    if len(near) == 1:
        return near[0]
    if near and len({row.schedule for row in near}) == 1:
        return near[0]  # of one schedule, the latest run
    if near:
        ids = ", ".join(row.id for row in near[:3])
        raise Usage(f"'{name}' could be several runs", f"e.g. {ids}")
    raise NotFound(f"there is no run '{name}'", "see them: tacit schedule history NAME")


def last_of(names: Sequence[str]) -> dict[str, Row]:
    """The latest run of each schedule that was not missed."""
    found: dict[str, Row] = {}
    with opened() as connection:
        for name in names:
            rows = select(connection, "schedule = ? AND state != 'missed'", name, most=1)
            if rows:
                found[name] = rows[0]
    return found


def forget(now: datetime) -> int:
    """Drop runs that have been over for long, but of each schedule the latest; how many."""
    marks = ", ".join("?" * len(LIVE))
    with writing() as connection:
        gone = connection.execute(
            f"DELETE FROM schedule_runs WHERE due < ? AND state NOT IN ({marks}) AND ("  # noqa: S608
            " SELECT count(*) FROM schedule_runs AS later WHERE"
            " later.schedule = schedule_runs.schedule AND later.due > schedule_runs.due) >= ?",
            ((now - KEPT).timestamp(), *LIVE, _LATEST),
        )
        return gone.rowcount


def _row(row: sqlite3.Row) -> Row:
    return Row(
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
    if isinstance(value, str) and len(value) > _MOST_OUTPUT:
        return value[:_MOST_OUTPUT] + "\n[… cut]"
    return value


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
