"""What the background costs: the worker, with and without a job, and the commands that look at it.

`python -m bench.worker [ROUNDS]`. Everything is a process, beside a bare Python start in the same
round; printed are the best times on the clock and on the processor, and the ratios of the latter.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.measure import Shell, alternate

ROUNDS = 10
_JOB = """
import os, sys
from tacit.base.job import JobResult as Done
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.work import job_kinds as kinds
from tacit.work.worker import work
kinds.register("bench", lambda job: Done("nothing"), per_hour=-1)
with open_ledger() as ledger:
    ledger.add_jobs([DecidedJob("bench", f"{os.getpid()}-{n}") for n in range(int(sys.argv[1]))])
work(quiet=0.0, idle=0.0)
"""


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    python, tacit = sys.executable, str(Path(sys.executable).parent / "tacit")
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "a worker that finds nothing": [python, "-c", _JOB, "0"],
        "a worker with one job": [python, "-c", _JOB, "1"],
        "a worker with twenty": [python, "-c", _JOB, "20"],
        "tacit jobs": [tacit, "jobs"],
        "tacit schedule": [tacit, "schedule"],
    }
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(home, TACIT_WORKER="1")
        found = alternate({n: partial(shell.time, c) for n, c in commands.items()}, rounds)
    bare = found["python -c pass"].cpu
    for name, timing in found.items():
        print(
            f"{name:<30}{timing.best * 1000:8.0f} ms{timing.cpu * 1000:8.0f} ms of processor"
            f"   ratio {timing.cpu / bare:6.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
