"""The engine's runs as they are kept: one an attempt at a job, with what it was given and gave.

Read straight from the engine's tables, which takes milliseconds where the engine itself takes most
of a second to import. The tables are the engine's own: where they are not as they are known here,
the engine is asked.
"""

import sqlite3
from typing import Any

import msgspec

from tacit.base.job import Done
from tacit.work import where
from tacit.work.ticket import Ticket

_RUNS = """
SELECT s.workflow_uuid, s.status, s.executor_id, s.recovery_attempts, s.created_at, s.updated_at,
  s.started_at_epoch_ms, s.completed_at, s.delay_until_epoch_ms, s.serialization,
  coalesce(s.inputs, i.inputs), coalesce(s.output, o.output), coalesce(s.error, o.error)
FROM {status} s
LEFT JOIN {input} i ON i.workflow_uuid = s.workflow_uuid
LEFT JOIN {output} o ON o.workflow_uuid = s.workflow_uuid
WHERE s.name = 'job'
"""
_PORTABLE = "portable_json"


class Run(msgspec.Struct, frozen=True):
    """One attempt, in the engine's words; moments in milliseconds since 1970."""

    id: str
    status: str
    ticket: Ticket
    done: Done = Done("")
    error: str = ""
    worker: str = ""
    kills: int = 0
    asked: int | None = None
    heard: int | None = None
    began: int | None = None
    ended: int | None = None
    due: int | None = None


def runs(place: where.Place) -> list[Run]:
    """Every run of the queues; those of another version of Tacit are left out.

    Raises as `where.check` does.
    """
    try:
        with where.opened(place) as connection:
            rows = connection.execute(_query(place)).fetchall()
    except Exception as error:
        if not _unlike(error):
            raise
        return _asked_of_engine(place)
    if any(row[9] != _PORTABLE for row in rows):
        return _asked_of_engine(place)
    found = (_run(tuple(row)) for row in rows)
    return [run for run in found if run is not None]


def _query(place: where.Place) -> str:
    names = ("workflow_status", "workflow_input", "workflow_output")
    status, given, gave = (f"{where.SCHEMA}.{n}" if place.shared else n for n in names)
    return _RUNS.format(status=status, input=given, output=gave)


def _unlike(error: BaseException | None) -> bool:
    """Whether a fault says that a table or a column is not there."""
    while error is not None:
        if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
            return True
        if type(error).__name__ in ("UndefinedTable", "UndefinedColumn"):
            return True
        error = error.__cause__
    return False


def _run(row: tuple[Any, ...]) -> Run | None:
    try:
        ticket = _ticket(msgspec.json.decode(row[10] or b""))
        done = _done(msgspec.json.decode(row[11]) if row[11] else None)
        fault = _fault(msgspec.json.decode(row[12])) if row[12] else ""
    except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
        return None
    kills = max((row[3] or 1) - 1, 0)
    return Run(row[0], row[1], ticket, done, fault, row[2] or "", kills, *row[4:9])


def _asked_of_engine(place: where.Place) -> list[Run]:
    from tacit.work.engine import client

    opened = client(place)
    try:
        found = []
        for status in opened.list_workflows(name="job"):
            try:
                ticket = _ticket(status.input)
            except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
                continue
            found.append(
                Run(
                    status.workflow_id,
                    status.status,
                    ticket,
                    _done(status.output),
                    str(status.error) if status.error is not None else "",
                    status.executor_id or "",
                    max((status.recovery_attempts or 1) - 1, 0),
                    status.created_at,
                    status.updated_at,
                    status.dequeued_at,
                    status.completed_at,
                    status.delay_until_epoch_ms,
                )
            )
        return found
    finally:
        opened.destroy()


def _ticket(given: Any) -> Ticket:
    arguments = given["positionalArgs"] if "positionalArgs" in given else given["args"]
    return msgspec.json.decode(arguments[0], type=Ticket)


def _done(gave: Any) -> Done:
    try:
        return msgspec.convert(gave, Done)
    except msgspec.ValidationError:
        return Done("")


def _fault(kept: Any) -> str:
    """What an error said, as the engine keeps it: a record with its message, or a text."""
    return str(kept.get("message") or kept) if isinstance(kept, dict) else str(kept)
