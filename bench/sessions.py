"""What stored sessions cost as they grow in number: taking them in, counting over them, finding.

Part of `scripts/bench` (`--only import`, `counting`, `sessions`). Sessions are made up
(`made_sessions.py`). Taking in is the whole road, reading, redaction, full text and all, beside
msgspec decoding the same lines into plain objects; the ratio and the time a session should be the
same at every size. Times are of the processor.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.made_sessions import Words, write_sessions
from bench.measure import Figure, Timing, Took, alternate, compare
from bench.runs import Bench, note

SIZES = (100, 1_000, 10_000, 20_000, 100_000)
_SEED = 7
_LISTED = 60
"""Lines of code in a result, some 5 KB: as long as those of real sessions are on average."""


def measure_import(bench: Bench) -> Iterator[Figure]:
    """Taking sessions in, and taking them in again when nothing is new."""
    _take_in(_home(bench, 1))  # modules are loaded and expressions compiled once, for few or many
    for size, listed in [(size, 0) for size in _sizes(bench)] + [(100, _LISTED), (1_000, _LISTED)]:
        if size > bench.options.sessions:
            continue
        home = _home(bench, size, listed)
        alone = Timing((_took(partial(_decode, home)),))
        taken = Timing((_took(partial(_take_in, home)),))
        again = Timing((_took(partial(_take_in, home)),))
        stored = os.path.getsize(home / "tacit.db") / size
        name = f"{size:,} {'with code in results' if listed else 'sessions'}"
        yield compare(
            "import", name, taken, alone, against="msgspec alone", aim=15,
            values=(_rate(home, size, taken), f"{stored / 1000:,.0f} KB a session stored"),
        )  # fmt: skip
        if not listed:
            yield compare("import", f"{size:,} again", again, alone, against="msgspec alone")


def measure_counting(bench: Bench) -> Iterator[Figure]:
    """Learning by counting over all sessions: the time a session should stay the same, and be
    little for those that were counted before."""
    from tacit.learn.counted_session import counted_sessions
    from tacit.learn.drafts import draft_skills

    for size in _sizes(bench, most=10_000):
        with _store(bench, size) as store:
            every = [stored.id for stored in store.sessions(limit=size)]
            count = lambda: draft_skills(counted_sessions(store, every))  # noqa: B023, E731
            first, again = (Timing((_took(count),)) for _ in range(2))
        yield _counted(f"{size:,} sessions", size, first)
        yield _counted(f"{size:,} again, nothing new", size, again)


def _counted(name: str, size: int, took: Timing) -> Figure:
    each = f"{size / took.cpu:,.0f} sessions a second, {took.cpu / size * 1000:.2f} ms each"
    return Figure(group="counting", name=name, ours=took, values=(each,))


def measure_sessions(bench: Bench) -> Iterator[Figure]:
    """Finding a step, by words that stand in nearly every turn, in some, in few; and a session."""
    from tacit.traces.session_search import Sought

    words = Words(_SEED).all
    limit = Timing((Took(0.015, 0.015),))
    for size in _sizes(bench):
        with _store(bench, size) as store:
            (latest,) = store.sessions(limit=1)
            asked: dict[str, Callable[[], Any]] = {
                "a word of every turn": partial(store.search, words[0]),
                "two frequent words": partial(store.search, f"{words[0]} {words[9]}"),
                "a usual word": partial(store.search, words[300]),
                "a rare word": partial(store.search, words[9_000]),
                "in a project": partial(store.search, words[300], project=latest.head.project),
                "a failed command": partial(store.search, Sought(failed=words[3])),
                "a file": partial(store.search, Sought(file=f"{words[2]}.py")),
                "by its id": partial(store.find, latest.id),
                "the list": partial(store.sessions, limit=30),
            }
            found = alternate({n: partial(_took, c) for n, c in asked.items()}, 5)
        for name, timing in found.items():
            yield compare(
                "sessions", f"{name}, {size:,} sessions", timing, limit, against="15 ms", aim=1.0
            )


def _sizes(bench: Bench, most: int = SIZES[-1]) -> list[int]:
    return [size for size in SIZES if size <= min(most, bench.options.sessions)]


def _home(bench: Bench, size: int, listed: int = 0) -> Path:
    """A home with so many sessions in it, written once."""
    home = Path(bench.folder, f"sessions-{size}-{listed}")
    if not home.exists():
        note(f"writing {size:,} sessions")
        write_sessions(str(home), size, _SEED, listed=listed)
    return home


def _store(bench: Bench, size: int) -> Any:
    from tacit.traces.store import Store

    home = _home(bench, size)
    if not (home / "tacit.db").exists():
        note(f"storing {size:,} sessions")
        _take_in(home)
    return Store.open(str(home / "tacit.db"))


def _files(home: Path) -> list[Path]:
    return sorted(home.rglob("*.jsonl"))


def _decode(home: Path) -> None:
    decode = msgspec.json.Decoder().decode
    for path in _files(home):
        with path.open("rb") as file:
            for line in file:
                decode(line)


def _take_in(home: Path) -> None:
    from tacit.traces import host_registry
    from tacit.traces.store import Store
    from tacit.work.intake import take_in

    host = host_registry.get("claude-code")
    with Store.open(str(home / "tacit.db")) as store:
        found = [source for path in _files(home) for source in host.inside(str(path))]
        take_in(store, found)


def _rate(home: Path, size: int, taken: Timing) -> str:
    megabytes = sum(path.stat().st_size for path in _files(home)) / 1e6
    each = taken.cpu / size * 1000
    return f"{megabytes / taken.cpu:.1f} MB a second, {each:.1f} ms a session"


def _took(call: Callable[[], Any]) -> Took:
    began, cpu = time.perf_counter(), time.process_time()
    call()
    return Took(time.perf_counter() - began, time.process_time() - cpu)
