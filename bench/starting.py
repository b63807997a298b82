"""How long commands take to start and to list, and what one edit costs."""

import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

from bench.measure import Figure, Shell, Timing, Took, alternate, compare
from bench.pool import Home
from bench.runs import BARE, PYTHON, SIZES, TACIT, Bench, probe

_BARE = "python -c pass"


def measure_start(bench: Bench) -> Iterator[Figure]:
    """The calls that everybody makes, against a bare interpreter."""
    shell = Shell(bench.home(min(100, len(bench.pool.skills))).folder)
    commands = {
        "import tacit": [PYTHON, "-c", "import tacit"],
        "tacit --version": [TACIT, "--version"],
        "tacit --help": [TACIT, "--help"],
        # What the script that pip writes costs before it reaches us.
        "python -c 'import re'": [PYTHON, "-c", "import re"],
    }
    jobs = {name: partial(shell.time, command) for name, command in commands.items()}
    took = alternate({"": partial(shell.time, BARE), **jobs}, bench.options.rounds * 3)
    for name in commands:
        yield compare("start", name, took[name], took[""], against=_BARE)


def measure_list(bench: Bench) -> Iterator[Figure]:
    """`tacit list`, warm, from few skills to many."""
    commands = {
        "tacit list": [TACIT, "list"],
        "python -m tacit list": [PYTHON, "-m", "tacit", "list"],
    }
    for size in SIZES:
        if size > bench.options.largest:
            break
        shell = Shell(bench.home(size).folder)
        shell.time([TACIT, "list"])
        jobs = {name: partial(shell.time, command) for name, command in commands.items()}
        rounds = bench.options.rounds * (3 if size <= 10_000 else 1)
        took = alternate({"": partial(shell.time, BARE), **jobs}, rounds)
        aim = 5.0 if size <= 10_000 else None
        for name in commands:
            label = f"{name}, {size:,} skills"
            yield compare("list", label, took[name], took[""], against=_BARE, aim=aim)


_EVERYDAY = {
    "inbox": 8, "log": 8, "jobs": 8, "memory": 8, "config": 8, "list --json": 8, "doctor": 20,
}  # fmt: skip
_GROWING = ("show {name}", "search {name}", "new {new} -d {text} --body {text}")


def measure_everyday(bench: Bench) -> Iterator[Figure]:
    """The commands that people type all day, and those that have to find one skill among many."""
    few = bench.home(min(100, len(bench.pool.skills)))
    yield from _commands(bench, few, {name: [name] for name in _EVERYDAY})
    for size in (size for size in SIZES if size <= bench.options.largest):
        home = bench.home(size)
        yield from _commands(bench, home, {line.split()[0]: [line] for line in _GROWING})


def _commands(bench: Bench, home: Home, lines: dict[str, list[str]]) -> Iterator[Figure]:
    shell = Shell(home.folder)
    listed = shell.lines([TACIT, "list"])
    named = listed[len(listed) // 2].partition("\t")[0]
    shell.time([TACIT, "search", named], (0, 1))
    shell.ask(probe("open-search"))
    made = count()

    def run(line: str) -> Took:
        text = f"Measures the time of turn {next(made)}. Use it for nothing else."
        words = {"name": named, "new": f"measured-{next(made)}", "text": text}
        return shell.time([TACIT, *(word.format(**words) for word in line.split())], (0, 1, 5, 6))

    jobs = {name: partial(run, line) for name, (line,) in lines.items()}
    rounds = bench.options.rounds if home.count <= 10_000 else 3
    took = alternate({"": partial(shell.time, BARE), **jobs}, rounds)
    for name in lines:
        label = f"tacit {name}, {home.count:,} skills"
        aim = _EVERYDAY.get(name, 8.0 if home.count <= 100 and name != "new" else None)
        yield compare("everyday", label, took[name], took[""], against=_BARE, aim=aim)


def measure_refresh(bench: Bench) -> Iterator[Figure]:
    """What it costs to notice one edit, against noticing none."""
    rounds = max(bench.options.rounds // 2, 3)
    for size in sorted({len(bench.pool.skills), bench.options.largest}):
        home = bench.home(size)
        shell = Shell(home.folder)
        shell.time([TACIT, "list"])
        jobs = {"same": partial(_unchanged, shell, home), "edited": partial(_edited, shell, home)}
        took = alternate(jobs, rounds)
        label = f"index after one edit, {size:,} skills"
        yield compare("refresh", label, took["edited"], took["same"], against="no edit")
    home = bench.home()
    shell = Shell(home.folder)
    shell.ask(probe("open-search"))
    runs = []
    for _ in range(rounds):
        _edit(home)
        runs.append(shell.call(probe("open-search")))
    label = f"search index after one edit, {home.count:,} skills"
    yield compare("refresh", label, Timing(tuple(runs)))


def _edit(home: Home) -> None:
    with open(home.file(home.count // 2), "ab") as file:
        file.write(b"\nOne more line.\n")


def _edited(shell: Shell, home: Home) -> Took:
    _edit(home)
    return shell.call(probe("load"))


def _unchanged(shell: Shell, home: Home) -> Took:
    # What was edited in the last round is not believed for two seconds, and read again till then.
    edited = os.stat(home.file(home.count // 2)).st_mtime
    time.sleep(max(0.0, edited + 2.5 - time.time()))
    shell.call(probe("load"))
    return shell.call(probe("load"))
