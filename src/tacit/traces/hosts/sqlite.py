"""The ground that hosts with an SQLite database stand on: sessions are found and read by id.

A session that changed is read anew: rows are updated in place, so there is no place to go on from.
"""

import os
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tacit.base.paths import user_home
from tacit.traces.databases import open_foreign
from tacit.traces.hosts import places
from tacit.traces.hosts.host import Hooks, Source, walk

if TYPE_CHECKING:
    from tacit.traces.assemble import Assembler
    from tacit.traces.hosts.places import Place


class SqliteHost:
    """A subclass names the file and the query for its sessions, and reads one from a connection."""

    name: str
    title: str
    tested = True
    hooks = Hooks()
    file: ClassVar[str]
    """Where the database lies, below the user's home."""
    listing: ClassVar[str]
    """A query for the id and the time of change, in seconds, of every session, by time."""
    version: ClassVar[str]
    """A query for texts that change when the session `?` does."""

    @property
    def place(self) -> "Place | None":
        return next((place for place in places.PLACES if place.host == self.name), None)

    def rows(
        self, connection: sqlite3.Connection, session: str, into: "Assembler"
    ) -> Iterator[None]:
        """Tell `into` what the session's rows say; yield after each message."""
        raise NotImplementedError

    def homes(self) -> list[str]:
        home = os.path.dirname(self._file())
        return [home] if os.path.isdir(home) else []

    def find(self) -> Iterator[Source]:
        if os.path.isfile(self._file()):
            yield from self._listed(self._file())

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            wanted = os.path.basename(self.file)
            found = [file for file in walk(path) if os.path.basename(file) == wanted]
        else:
            found = [path]
        for file in found:
            if _is_sqlite(file):
                yield from self._listed(file)

    def stamp(self, source: Source) -> str:
        try:
            with open_foreign(source.path, _ignore) as connection:
                found = connection.execute(self.version, {"session": source.key}).fetchone()
                return "" if found is None else ":".join(str(value) for value in found)
        except (OSError, sqlite3.Error):
            return ""

    def fingerprint(self, source: Source, position: int) -> str:
        return ""

    def read(self, source: Source, start: int, into: "Assembler") -> Iterator[None]:
        with open_foreign(source.path, into.passed) as connection:
            try:
                yield from self.rows(connection, source.key, into)
            except (IndexError, KeyError, TypeError, ValueError):  # a column that is not there
                into.passed("host-error")

    def _file(self) -> str:
        return places.moved(self.file, user_home())

    def _listed(self, path: str) -> Iterator[Source]:
        try:
            with open_foreign(path, _ignore) as connection:
                found = connection.execute(self.listing).fetchall()
        except (OSError, sqlite3.Error):
            return
        for session, changed in found:
            if isinstance(session, str):
                modified = float(changed) if isinstance(changed, int | float) else 0.0
                yield Source(self.name, path, session, 0, modified)


def _is_sqlite(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def _ignore(reason: str) -> None:
    """Nothing is counted while looking for sessions."""
