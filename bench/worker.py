"""What the background costs: the worker, with and without a job, and the commands that look at it.

Part of `scripts/bench` (`--only jobs`, `--only reviews`); alone: `python -m bench.worker [ROUNDS]`.
Everything is a process, beside a bare Python start in the same round. Printed are the time on the
clock and on the processor, the ratio of the latter, what of a worker with a job is the import of
the engine, and how long after the end of a job the next one begins.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.measure import Figure, Shell, Timing, Took, alternate, compare
from bench.runs import BARE, TACIT, Bench, probe

ROUNDS = 10
_JOB = """
import json, os, sys, time
from tacit.base.job import JobResult as Done
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.work import job_kinds as kinds
from tacit.work.worker import work
moments = []
def run(job):
    moments.append(time.perf_counter())
    return Done("nothing")
kinds.register("bench", run, at_once=1, per_hour=-1)
with open_ledger() as ledger:
    ledger.add_jobs([DecidedJob("bench", f"{os.getpid()}-{n}") for n in range(int(sys.argv[1]))])
work(quiet=0.0, idle=0.0)
print(json.dumps([after - before for before, after in zip(moments, moments[1:])]))
"""


def measure_jobs(bench: Bench) -> Iterator[Figure]:
    """The worker and the commands beside a bare start; the time between jobs beside 20 ms."""
    found, gaps = _measured(bench.options.rounds)
    bare = found.pop("python -c pass")
    for name, timing in found.items():
        yield compare("jobs", name, timing, bare, against="bare Python")
    between = statistics.median(gaps)
    yield Figure(
        group="jobs", name="from one job to the next", values=(f"{between * 1000:.1f} ms", "20 ms"),
        ratio=between / 0.020, aim=1.0,
    )  # fmt: skip


_SKILL = """---
name: package-builds
description: How packages are built here. Use before building.
---

1. Read the version first.
2. `VERSION=$(cat VERSION) python3 build.py`
"""


def measure_reviews(bench: Bench) -> Iterator[Figure]:
    """A review and `tacit run` for one word, beside the model; and the engine's share of a review.

    The scripted model on loopback answers at once, in this process, so none of the time is its.
    """
    from tacit.testing import ModelServer, Request, ToolUse

    def model(request: Request) -> ToolUse | str:
        asked = "write_file" in request.tool_names and request.turn == 0
        reviewed = "run_command" not in request.tool_names
        path = {"path": "package-builds/SKILL.md", "content": _SKILL}
        return ToolUse("write_file", path) if asked and reviewed else "Yes."

    rounds = max(bench.options.rounds // 2, 3)
    took: list[Took] = []
    with ModelServer(model, strict=False) as server:
        for number in range(rounds):
            shell = Shell(os.path.join(bench.folder, f"review-{number}"))
            told = shell.ask(probe("review", server.url))
            took.append(Took(told["seconds"], told["cpu"]))
        word = partial(shell.time, [TACIT, "run", "say yes"])
        found = alternate({"bare": partial(shell.time, BARE), "run": word}, rounds)
    review, bare = Timing(tuple(took)), found["bare"]
    outcome = (f"ended as {told['outcome']}",)
    yield compare("reviews", "a review", review, bare, against="bare Python", values=outcome)
    yield compare("reviews", "tacit run, one word", found["run"], bare, against="bare Python")
    jobs, _ = _measured(rounds)
    one, many = (jobs[f"a worker with {number}"].cpu for number in ("one job", "twenty"))
    each = (many - one) / 19
    shown = (f"{each * 1000:.1f} ms of the processor a job", f"{review.cpu:.2f} s a review")
    yield Figure(
        group="reviews", name="the engine's share of a review", values=shown,
        ratio=each / review.cpu, aim=0.05,
    )  # fmt: skip


def _measured(rounds: int) -> tuple[dict[str, Timing], list[float]]:
    python, tacit = sys.executable, str(Path(sys.executable).parent / "tacit")
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "the import of the engine": [python, "-c", "import dbos"],
        "a worker that finds nothing": [python, "-c", _JOB, "0"],
        "a worker with one job": [python, "-c", _JOB, "1"],
        "a worker with twenty": [python, "-c", _JOB, "20"],
        "tacit jobs": [tacit, "jobs"],
        "tacit schedule": [tacit, "schedule"],
    }
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(home, TACIT_WORKER="1")
        found = alternate({n: partial(shell.time, c) for n, c in commands.items()}, rounds)
        gaps = shell.ask([python, "-c", _JOB, "20"])
    return found, gaps


def main() -> int:
    found, gaps = _measured(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    bare = found["python -c pass"].cpu
    for name, timing in found.items():
        print(
            f"{name:<30}{timing.best * 1000:8.0f} ms{timing.cpu * 1000:8.0f} ms of processor"
            f"   ratio {timing.cpu / bare:6.1f}"
        )
    print(f"{'from one job to the next':<30}{statistics.median(gaps) * 1000:8.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
