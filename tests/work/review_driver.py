"""A real worker that reviews, in a process that dies at the points of a review that are named.

`python review_driver.py FOLDER [POINT...]`, as `job_driver.py`.
"""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.learn.background import broker, child_process
from tacit.learn.review import review_job
from tacit.work import job_queue, worker

FOLDER = Path(sys.argv[1])
POINTS = sys.argv[2:]
atexit.register(gc.freeze)  # as `tacit` itself does


def die(point: str) -> None:
    if point not in POINTS:
        return
    try:
        (FOLDER / f"died {point}").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying(owner: Any, name: str, before: str, after: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        die(before)
        result = real(*given, **named)
        die(after)
        return result

    setattr(owner, name, wrapped)


def main() -> None:
    dying(child_process, "run", "before the conversation", "after the conversation")
    dying(broker.StagedBroker, "finished", "in the conversation", "at its end")
    dying(review_job, "land_changes", "before the landing", "after the landing")
    dying(review_job, "record_review", "before it is recorded", "when it is recorded")
    job_queue._EVERY = 0.5
    job_queue._TRY = 0.5
    worker.work(quiet=0, idle=float(os.environ.get("IDLE", "0")))
    os._exit(0)


main()
