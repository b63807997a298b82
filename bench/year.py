"""A year of use in some minutes: what is stored grows, and what commands take stays.

`python -m bench.year [DAYS] [SESSIONS A DAY]`, by default 365 and 50. Sessions are written by way
of the store, changes by way of the gate (one for ten sessions, over up to 300 skills), and the
worker's daily round is done each day. A second home has the first day alone. Printed are size,
files and the time on the processor of each command in both, taken in turns, with the ratio, which
should be at most 2.
"""

import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.measure import Shell, alternate

WORDS = (
    "build", "test", "deploy", "release", "branch", "merge", "fix", "error", "log", "server",
    "client", "file", "path", "index", "query", "schema", "table", "user", "token", "cache",
    "retry", "queue", "worker", "skill", "note", "review", "change",
)  # fmt: skip
COMMANDS = (
    "list", "log", "log skill-1", "sessions", "inbox", "show skill-1", "history skill-1", "cost",
    "jobs", "sessions --since 7d", "doctor",
)  # fmt: skip


def session(number: int, at: datetime, rng: random.Random) -> Any:
    """A session of ten turns with twenty calls, about what a small task takes."""
    from tacit.traces.trace import Head, Text, ToolCall, Trace, Turn

    def words(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    turns = []
    for turn in range(10):
        calls = [
            ToolCall(f"c{turn}-{n}", "Bash", "shell", {"command": words(6)}, words(80))
            for n in range(2)
        ]
        turns.append(Turn(turn, words(25), (Text(words(40)), *calls), at, at))
    head = Head("claude-code", f"{number:08x}-{rng.getrandbits(64):016x}", project="/home/me/work",
                started=at, ended=at, source=f"/home/me/.claude/{number}.jsonl")  # fmt: skip
    return Trace(head, tuple(turns))


def one_change(number: int, at: datetime, rng: random.Random) -> None:
    from tacit.changes.change import Create, Rewrite, make_change
    from tacit.changes.gate import Gate
    from tacit.changes.neighbours import NoNeighbours
    from tacit.changes.place import user_place

    name = f"skill-{number % 300 if number >= 300 else number}"
    body = "\n".join(" ".join(rng.choices(WORDS, k=12)) for _ in range(40))
    text = f"---\nname: {name}\ndescription: What {name} does and when to use it.\n---\n\n{body}\n"
    files = {"SKILL.md": text.encode()}
    operation = Create(files) if number < 300 else Rewrite(files)
    gate = Gate([user_place()], neighbours=NoNeighbours())
    verdict = gate.propose(make_change(name, operation, actor="user"))
    assert verdict.applied, verdict


def live(home: str, days: int, sessions: int) -> None:
    """Let days pass in a home."""
    os.environ |= {"HOME": home, "TACIT_WORKER": "1"}
    os.environ.pop("TACIT_HOME", None)
    os.makedirs(f"{home}/work")
    os.chdir(f"{home}/work")
    from tacit.base.setting_sections import Settings
    from tacit.traces.store import Store
    from tacit.work.housekeeping import keep_house

    began = datetime(2026, 1, 1, 9, tzinfo=UTC)
    rng = random.Random(1)
    for day in range(days):
        at = began + timedelta(days=day)
        with Store.open() as store:
            for n in range(sessions):
                store.write(session(day * sessions + n, at, rng))
        for n in range(sessions // 10):
            one_change(day * (sessions // 10) + n, at, rng)
        keep_house(Settings, now=at.timestamp())
        if day % 30 == 29:
            print(f"day {day + 1}", file=sys.stderr)


def stored(home: str) -> tuple[int, int]:
    """Bytes and files below the data folder."""
    found = [
        os.path.join(here, name)
        for here, _, names in os.walk(f"{home}/.local/share/tacit")
        for name in names
    ]
    return sum(os.path.getsize(path) for path in found), len(found)


def measure(homes: list[str]) -> dict[str, float]:
    """Seconds on the processor of each command in each home, the least of three."""
    tacit = str(Path(sys.executable).parent / "tacit")
    shells = [Shell(home, TACIT_WORKER="1") for home in homes]
    calls = {
        f"{shell.home} {text}": partial(shell.time, [tacit, *text.split()])
        for text in COMMANDS
        for shell in shells
    }
    return {key: timing.cpu for key, timing in alternate(calls, 3).items()}


def main() -> int:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 365
    sessions = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tacit-year-") as folder:
        first, last = homes = [f"{folder}/day", f"{folder}/year"]
        for home, number in ((first, 1), (last, days)):
            process = get_context("spawn").Process(target=live, args=(home, number, sessions))
            process.start()
            process.join()
            assert process.exitcode == 0
        found = measure(homes)
        sizes = [stored(home) for home in homes]
    print(f"| | after 1 day | after {days} days | ratio |\n|---|---|---|---|")
    for name, at, unit in (("size, MB", 0, 1e6), ("files", 1, 1)):
        before, after = (size[at] / unit for size in sizes)
        print(f"| {name} | {before:,.1f} | {after:,.1f} | {after / before:,.1f} |")
    for name in COMMANDS:
        before, after = (found[f"{home} {name}"] * 1e3 for home in homes)
        print(f"| `tacit {name}`, ms | {before:.0f} | {after:.0f} | {after / before:.1f} |")
    print(f"{time.monotonic() - began:,.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
