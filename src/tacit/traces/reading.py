"""Reading one session: turn by turn in constant memory, or whole, or from where it stopped.

A turn that is not over is given as it stands; the bookmark points to its beginning, so a later
reading gives it again, complete, under the same number. That is why going on is always right: a
reading's turns replace what was kept from their first number on.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.traces.assemble import Assembler
from tacit.traces.hosts.host import Host, Source
from tacit.traces.trace import Head, Trace, Turn


class Bookmark(msgspec.Struct, frozen=True):
    """Where a reading can go on, and what was known at that place."""

    position: int
    number: int
    head: Head
    state: dict[str, Any]
    stamp: str
    """The source as it was; the same again: nothing to read."""
    fingerprint: str
    """What lies before `position`; another: it was replaced, and is read anew."""


class Reading:
    """One session being read. Iterate over it once, for turns; then ask for the rest.

    `first` is the number of the first turn that it gives. `unchanged` says that nothing has
    happened since the bookmark, and then there are no turns.
    """

    def __init__(self, host: Host, source: Source, bookmark: Bookmark | None = None) -> None:
        self.source = source
        self._host = host
        self._stamp = host.stamp(source)  # taken before reading: what comes later is seen later
        self.unchanged = (
            bookmark is not None and bool(self._stamp) and (bookmark.stamp == self._stamp)
        )
        if bookmark is not None and not self.unchanged and not self._same_file(bookmark):
            bookmark = None
        self._start = bookmark.position if bookmark else 0
        self.first = bookmark.number if bookmark else 0
        head = bookmark.head if bookmark else Head(host.name, source=source.path)
        self._bookmark = bookmark
        state = bookmark.state if bookmark else None
        self._into = Assembler(head, self.first, state, self._start)

    @property
    def gone(self) -> bool:
        """Whether there is nothing to read any more."""
        return not self._stamp

    def _same_file(self, bookmark: Bookmark) -> bool:
        found = self._host.fingerprint(self.source, bookmark.position)
        return bool(found) and found == bookmark.fingerprint

    def __iter__(self) -> Iterator[Turn]:
        if self.unchanged:
            return
        into = self._into
        try:
            for _ in self._host.read(self.source, self._start, into):
                if done := into.take():
                    yield from done
        except (OSError, sqlite3.Error):
            into.passed("unreadable")
        mark = into.mark
        yield from into.finish()
        self._bookmark = Bookmark(
            mark.position,
            mark.number,
            mark.head,
            mark.state,
            self._stamp,
            self._host.fingerprint(self.source, mark.position),
        )

    def before(self) -> Iterator[Turn]:
        """The turns before `first`, which an earlier reading gave, read once more."""
        for turn in Reading(self._host, self.source) if self.first else ():
            if turn.number >= self.first:
                return
            yield turn

    @property
    def head(self) -> Head:
        """The session, complete once all turns were given."""
        head = self._into.head()
        if head.session:
            return head
        return msgspec.structs.replace(head, session=_stem(self.source))

    @property
    def bookmark(self) -> Bookmark | None:
        """Where to go on; None until all turns were given."""
        return self._bookmark


def read_trace(host: Host, source: Source) -> Trace:
    """The whole session in memory."""
    reading = Reading(host, source)
    turns = tuple(reading)
    return Trace(reading.head, turns)


def _stem(source: Source) -> str:
    """A name for a session that does not say its own."""
    name = source.path.rstrip("/").rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    return f"{stem}#{source.key}" if source.key else stem
