"""The event bus: how a lower layer tells a higher one that something happened, without importing
it.

An event is an instance of any class; a listener hears that class and its subclasses. Listeners run
in the publisher's thread, in the order in which they subscribed. A listener that raises disturbs
neither the publisher nor the other listeners: the bus keeps the last hundred errors in `errors`
for `tacit doctor` and the tests.
"""

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

E = TypeVar("E")


class Bus:
    """A place to publish events and to listen for them. Safe from any thread."""

    def __init__(self) -> None:
        self._listeners: list[tuple[type[Any], Callable[[Any], None]]] = []
        self._lock = Lock()
        self.errors: deque[tuple[object, Exception]] = deque(maxlen=100)

    def subscribe(self, kind: type[E], listener: Callable[[E], None]) -> Callable[[], None]:
        """Call `listener` with each event of `kind`; returns what ends the subscription."""
        row = (kind, listener)
        with self._lock:
            self._listeners.append(row)

        def unsubscribe() -> None:
            with self._lock:
                # By identity: the same listener may have subscribed twice.
                self._listeners = [known for known in self._listeners if known is not row]

        return unsubscribe

    def subscribe_once(self, kind: type[E], listener: Callable[[E], None]) -> bool:
        """Subscribe for as long as the process lives; whether it had not been done before."""
        row = (kind, listener)
        with self._lock:
            if row in self._listeners:
                return False
            self._listeners.append(row)
            return True

    def publish(self, event: object) -> None:
        with self._lock:
            listeners = [hear for kind, hear in self._listeners if isinstance(event, kind)]
        for hear in listeners:
            try:
                hear(event)
            except Exception as error:
                self.errors.append((event, error))

    @contextmanager
    def listening(self, kind: type[E], listener: Callable[[E], None]) -> "Iterator[None]":
        """Listen for the length of a `with` block."""
        end = self.subscribe(kind, listener)
        try:
            yield
        finally:
            end()

    @contextmanager
    def apart(self) -> "Iterator[None]":
        """For a `with` block the bus is as in a new process, and afterwards as it was before.

        For tests that share a process: nobody listens at first, and nothing has failed.
        """
        with self._lock:
            before = self._listeners, self.errors
            self._listeners, self.errors = [], deque(maxlen=100)
        try:
            yield
        finally:
            with self._lock:
                self._listeners, self.errors = before


bus = Bus()
"""The process's own bus."""
