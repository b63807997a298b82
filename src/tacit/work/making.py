"""jobs.db as the engine needs it: made, and brought up to a newer one, in one step or not at all.

The engine makes its tables one by one. Killed in between, or on a full disk, it would leave a file
that it can never use again. So it does that to a copy, which then takes the place of the file.
"""

import contextlib
import os
import secrets
import sqlite3
import zlib
from importlib.metadata import version

from tacit.base import database
from tacit.base.errors import TacitError, Unwritable
from tacit.work import where
from tacit.work.where import Place


def make(place: Place) -> None:
    """See that the file is there and fits this engine. Only the worker may call it, under its lock.

    Raises as `where.check` does; the file is then what it was.
    """
    if place.shared:
        return
    mark = _mark()
    with where.opened(place) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == mark:
            return
    folder, name = os.path.split(place.path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        with where.opened(place) as connection:
            _copy(connection, temporary)
        _migrate(temporary, mark)
        os.replace(temporary, place.path)
    except TacitError:
        raise
    except Exception as error:
        raise Unwritable(
            f"cannot make {place.path}: {first_line(error)}",
            "check the free space and the permissions there",
        ) from error
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(temporary + ending)


def first_line(error: BaseException) -> str:
    """What an error says, without the statements that the engine's errors carry along."""
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _copy(connection: sqlite3.Connection, path: str) -> None:
    """A copy of all there is, with nothing left in the log of the original."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with contextlib.closing(database.connect(path)) as copy:
        connection.backup(copy)
        # Back in one file, so that moving that file moves all of it.
        copy.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA journal_mode = DELETE")


def _migrate(path: str, mark: int) -> None:
    from dbos import DBOS

    from tacit.work.engine import quieten

    quieten()
    DBOS.migrate(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {mark}")
        connection.commit()


def _mark() -> int:
    """A number for the engine's version, kept in the file."""
    return zlib.crc32(version("dbos").encode()) & 0x7FFFFFFF
