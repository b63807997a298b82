"""One place with everything that belongs to it: its lock, its journal, its history.

Whoever takes the lock first settles what a kill interrupted, so that nobody ever works on a
half-made change.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.base.locks import locked
from tacit.changes.contain import Folder, open_root
from tacit.changes.history import History
from tacit.changes.journal import Journal, recover
from tacit.changes.place import Place

LOCK_SECONDS = 120.0


class Site:
    """A place, as the gate works on it. `data` is Tacit's data folder."""

    def __init__(self, place: Place, data: str) -> None:
        self.place = place
        self.real = place.real
        self.data = data
        self.id = place.id
        self.history = History(place, data)
        self.journal = Journal(os.path.join(data, "journal", self.id))
        self._lock = os.path.join(data, "locks", f"{self.id}.lock")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the place against every other process."""
        with locked(self._lock, seconds=LOCK_SECONDS, what=f"the skills in {self.place.root}"):
            yield

    @contextmanager
    def writing(self) -> Iterator[Folder]:
        """The skills folder, made if need be, locked, with nothing left over from before."""
        with self.lock(), open_root(self.place, make=True) as root:
            recover(root, self.journal, self.history)
            yield root

    @contextmanager
    def imagined(self) -> Iterator[Folder]:
        """An empty folder in place of a skills folder that is not there yet: to judge by."""
        with (
            tempfile.TemporaryDirectory(prefix="tacit-") as folder,
            open_root(Place(folder)) as root,
        ):
            yield root

    def is_made(self) -> bool:
        """Whether the skills folder is there. Raises `Escape` where the way to it leads astray."""
        try:
            with open_root(self.place):
                return True
        except FileNotFoundError:
            return False

    def recover(self) -> list[str]:
        """Settle what a kill interrupted; the ids of the changes that were finished."""
        with self.lock():
            if not self.journal.entries() and not os.path.isdir(self.real):
                return []
            with open_root(self.place, make=True) as root:
                return recover(root, self.journal, self.history)
