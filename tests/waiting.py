"""Waiting and counting, so that no test depends on how fast the machine is, or how busy."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

LONG = 120.0
"""Seconds after which something will not happen any more, on however slow a machine."""
FOREVER = 3600.0
"""Seconds that nobody waits for: who would have to has not noticed that it may go on."""


def until(condition: Callable[[], T], what: str = "it", *, every: float = 0.02) -> T:
    """Wait for a condition to hold; what it gave."""
    end = time.monotonic() + LONG
    while not (held := condition()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(every)
    return held


def calls(work: Callable[[], object]) -> int:
    """How many functions are called for some work: its size, the same on every machine."""
    count = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
