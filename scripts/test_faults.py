"""Faults of every kind against the real code, and one table of what came of them.

Kills before each system call and at random, errors of each system call, damage to each file in each
way, and the tests of other parts that need the same: the clock, PostgreSQL, models that misbehave.
A driver stops at its first failure, so a number other than 0 says that there is at least one. The
table is written into docs/faults.md. `--quick` takes a sample; names choose sections.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "faults.md"
CHANGES = ROOT / "tests" / "changes"
SCENARIOS = (
    "create-first", "learn", "edit", "edit-turns", "rename", "archive", "restore", "merge",
    "delete", "pin", "undo", "fact-create", "fact-replace", "fact-forget",
)  # fmt: skip
KINDS = ("lost", "doubled", "stuck", "unmended")
# What a driver says when it fails, by the words in it.
_WORDS = {
    "lost": ("torn", "lost", "reported", "disagree"),
    "doubled": ("times", "doubled"),
    "stuck": ("stuck", "did not work", "failed in the child"),
}
SUITES: dict[str, tuple[str, ...]] = {
    "jobs killed": (
        "tests/work/test_review_kill.py",
        "tests/learn/test_repair_kills.py",
        "tests/work/test_lost_runs.py",
        "tests/work/test_engine.py",
    ),
    "clock": ("tests/base/test_clock.py", "tests/work/test_schedule_runs.py"),
    "PostgreSQL": ("tests/work/test_postgres.py",),
    "models": (
        "tests/agent/test_model_client.py",
        "tests/learn/test_background_model.py",
        "tests/learn/test_child_process.py",
    ),
}
"""Sections that are tests elsewhere: what pytest is given. Add a path, or a section, here."""


class Row(NamedTuple):
    """What came of one section."""

    section: str
    trials: int
    wrong: Counter[str]
    seconds: float
    skipped: int = 0


def run_driver(program: Path, *arguments: str) -> dict[str, Any]:
    """What a driver counted; of one that failed, `wrong` says why."""
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("TACIT_")},
    )
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    return {"points": 1, "wrong": [done.stderr.strip().splitlines()[-1]]}


def kind_of(text: str) -> str:
    """Which column a failure counts in."""
    for kind, words in _WORDS.items():
        if any(re.search(rf"\b{word}\b", text) for word in words):
            return kind
    return "unmended"


def over_scenarios(program: str, every: int, *more: str) -> tuple[int, list[str]]:
    trials, wrong = 0, []
    for scenario in SCENARIOS:
        with folder() as here:
            found = run_driver(CHANGES / program, scenario, f"{here}/run", str(every), *more)
        trials += found["points"]
        wrong += [f"{scenario}: {text}" for text in found.get("wrong", [])]
        print(f"  {scenario}: {found}", file=sys.stderr)
    return trials, wrong


def folder() -> "tempfile.TemporaryDirectory[str]":
    """In memory where it can be: thousands of writes are forced to the disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    return tempfile.TemporaryDirectory(
        prefix="tacit-faults-", dir=memory, ignore_cleanup_errors=True
    )


def random_kills(rounds: int) -> tuple[int, list[str]]:
    with folder() as here:
        seed = str(int(time.time()))
        found = run_driver(CHANGES / "random_kill_driver.py", f"{here}/run", str(rounds), seed)
    return found["points"], found.get("wrong", [])


def corruption(every: int) -> tuple[int, list[str]]:
    sessions = ROOT / "tests" / "fixtures" / "transcripts" / "claude" / "home"
    program = ROOT / "tests" / "work" / "corruption_driver.py"
    with folder() as here:
        found = run_driver(program, f"{here}/run", str(every), str(sessions))
    return found.get("trials", 1), found.get("wrong", [])


def sections(quick: bool) -> dict[str, Callable[[], tuple[int, list[str]]]]:
    """The sections with drivers of their own."""
    n = 12 if quick else 1
    return {
        "killed before a call": lambda: over_scenarios("kill_driver.py", n * 2),
        "killed, then git clean": lambda: over_scenarios("kill_driver.py", n * 2, "swept"),
        "killed at random": lambda: random_kills(20 if quick else 400),
        "a call fails": lambda: over_scenarios("errno_driver.py", n * 2 + 1, "once"),
        "the disk dies": lambda: over_scenarios("errno_driver.py", n * 2 + 1, "on"),
        "files damaged": lambda: corruption(n * 2 if quick else 2),
    }


def suite(name: str) -> Row:
    """Tests of another part; a failed one counts by what it says."""
    began = time.monotonic()
    with folder() as here:
        report = Path(here) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *SUITES[name]]
        full = {**os.environ, "TACIT_TEST_FULL": "1"}
        subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr, env=full)
        counted = ET.parse(report).getroot().find("testsuite")  # noqa: S314
    assert counted is not None
    wrong = Counter(
        kind_of(found.get("message", ""))
        for kind in ("failure", "error")
        for found in counted.iter(kind)
    )
    skipped = int(counted.get("skipped", 0))
    trials = int(counted.get("tests", 0)) - skipped
    return Row(name, trials, wrong, time.monotonic() - began, skipped)


def section(name: str, run: Callable[[], tuple[int, list[str]]]) -> Row:
    began = time.monotonic()
    trials, wrong = run()
    for text in wrong:
        print(f"{name}: {text}", file=sys.stderr)
    return Row(name, trials, Counter(map(kind_of, wrong)), time.monotonic() - began)


def table(rows: list[Row]) -> str:
    lines = [
        f"| | trials | {' | '.join(KINDS)} | skipped | seconds |",
        "|---|" + "---|" * (len(KINDS) + 3),
    ]
    for row in rows:
        wrong = " | ".join(str(row.wrong[kind]) for kind in KINDS)
        lines.append(
            f"| {row.section} | {row.trials:,} | {wrong} | {row.skipped} | {row.seconds:,.0f} |"
        )
    return "\n".join(lines)


def write_page(rows: list[Row]) -> None:
    """Put the table between its marks on the page."""
    on = f"{time.strftime('%Y-%m-%d', time.gmtime())}, Python {platform.python_version()}"
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- test-faults -->", "<!-- end -->"
    head, _, rest = text.partition(begin)
    tail = rest.partition(end)[2]
    middle = f"{begin}\n{on}, {platform.system()}:\n\n{table(rows)}\n{end}"
    PAGE.write_text(f"{head}{middle}{tail}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample, a few minutes")
    parser.add_argument("--list", action="store_true", help="the names of the sections")
    parser.add_argument("names", nargs="*", help="sections, by the beginning of their names")
    asked = parser.parse_args()
    known = sections(asked.quick)
    if asked.list:
        print("\n".join((*known, *SUITES)))
        return 0
    chosen = [
        name
        for name in (*known, *SUITES)
        if not asked.names or any(name.startswith(start) for start in asked.names)
    ]
    rows = []
    for name in chosen:
        print(name, file=sys.stderr)
        rows.append(section(name, known[name]) if name in known else suite(name))
    print(table(rows))
    if not asked.names and not asked.quick:
        write_page(rows)
    return 1 if any(row.wrong.total() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
