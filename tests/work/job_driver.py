"""A worker with a kind of job of its own, in a process that dies where it is told to.

`python job_driver.py FOLDER [POINT...]`: at each point that is named, once over all runs that share
FOLDER, the process is killed as by `kill -9`. At the point in the variable FULL the disk
becomes full. What the job does is left in FOLDER.
"""

import atexit
import gc
import os
import resource
import signal
import sys
import time
from pathlib import Path

from tacit.base.job import Job, JobResult, cancelled, family, step
from tacit.learn.ledger import Ledger
from tacit.work import engine, job_kinds, job_queue, worker

FOLDER = Path(sys.argv[1])
POINTS = sys.argv[2:]
atexit.register(gc.freeze)  # as `tacit` itself: what ends need not be looked through for garbage


def die(point: str) -> None:
    if point == os.environ.get("FULL"):  # from here on the disk is: no file can grow
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    if point not in POINTS:
        return
    try:
        (FOLDER / f"died {point}").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def note(name: str) -> int:
    """A line for each time that something was done."""
    with open(FOLDER / name, "a") as file:
        file.write(f"{os.getpid()}\n")
    return os.getpid()


def run(job: Job) -> JobResult:
    die("at the beginning")
    step("read", lambda: note(f"{job.key}.read"))
    die("between steps")
    while (FOLDER / f"{job.key}.wait").exists():
        (FOLDER / f"{job.key}.waits").touch()
        if cancelled():
            return JobResult("nothing", "it was cancelled")
        time.sleep(0.02)
    if others := job.payload.get("others"):
        return have_done(others)
    # As the gate does with a change: the same one twice is once.
    (FOLDER / f"{job.key}.change-{job.id}").touch()
    note(f"{job.key}.ran")
    die("after the change")
    if job.payload.get("off") and job.attempt == 1:
        return JobResult("nothing", "not today", later=float(job.payload["off"]))
    if job.payload.get("fault"):
        raise ValueError("a fault of its own")
    return JobResult("created", f"for {job.key}", (f"c-{job.id}",))


def have_done(others: list[str]) -> JobResult:
    """A job that has others done, and ends when they are over."""
    jobs = family()
    assert jobs is not None
    for key in others:
        jobs.queue("review", key, {})
    die("after others are queued")
    while len(over := jobs.results("review", others, 10)) < len(others):
        time.sleep(0.05)
    jobs.withdraw("review", others)
    return JobResult("created", " ".join(sorted(done.reason for done in over.values())))


def dying(module: object, name: str, before: str, after: str) -> None:
    """Have a function of ours die before it begins or when it is done."""
    real = getattr(module, name)

    def wrapped(*given: object, **named: object) -> object:
        die(before)
        result = real(*given, **named)
        die(after)
        return result

    setattr(module, name, wrapped)


def main() -> None:
    die("at the start")
    job_kinds.register("review", run, per_hour=-1)
    job_kinds.register("improve", run, per_hour=1, local=True)
    job_queue._EVERY = 0.5
    dying(engine.Engine, "put", "before it is queued", "when it is queued")
    dying(Ledger, "mark_queued", "before it is marked", "when it is marked")
    dying(engine, "may_begin", "before it may begin", "when it may begin")
    dying(engine, "_over", "before it is over", "when it is over")
    dying(Ledger, "close_job", "before it is closed", "when it is closed")
    if poll := os.environ.get("POLL"):
        engine._POLL = float(poll)
    worker.work(quiet=0, idle=float(os.environ.get("IDLE", "0")))
    os._exit(0)


main()
