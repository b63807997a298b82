"""Without hooks: following the transcript folders, and noticing ends of sessions by quiet."""

import os
import time
from collections.abc import Callable, Iterator

from tacit.base.errors import MissingExtra
from tacit.traces.hosts import registry
from tacit.traces.hosts.host import Source
from tacit.traces.store import Store
from tacit.work.intake import Taken, sources, take_in


def folders() -> list[str]:
    """The homes of the hosts that are here."""
    return sorted({home for host in registry.each() for home in host.homes()})


def watch(
    store: Store, quiet: float, tell: Callable[[Taken], None], stop: Callable[[], bool]
) -> None:
    """Take in each session that has been quiet for `quiet` seconds, until `stop` says so."""
    seen: dict[tuple[str, str], float] = {}
    started = time.time()
    for _ in _beats(folders(), quiet, stop):
        now = time.time()
        due: list[Source] = []
        for source in sources():
            key = (source.path, source.key)
            fresh = source.modified > seen.get(key, started)
            if fresh and now - source.modified >= quiet:
                seen[key] = source.modified
                due.append(source)
        for taken in take_in(store, due, ended=True):
            tell(taken)


def _beats(watched: list[str], quiet: float, stop: Callable[[], bool]) -> Iterator[None]:
    """A moment to look: soon after a change, and when a quiet time may be over."""
    try:
        from watchfiles import watch as follow
    except ImportError:
        raise MissingExtra("work", "tacit watch") from None
    yield None
    existing = [folder for folder in watched if os.path.isdir(folder)]
    wait = max(int(min(quiet, 5.0) * 1000), 200)
    for _ in follow(*existing, yield_on_timeout=True, rust_timeout=wait, raise_interrupt=True):
        if stop():
            return
        yield None
