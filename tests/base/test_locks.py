"""Locks between processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.base.errors import Busy, Unwritable
from tacit.base.locks import locked

HOLD = """
import sys, time
from tacit.base.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_held_lock_is_busy_and_a_kill_frees_it(home: Path) -> None:
    """The message says what is held; after a SIGKILL the lock is there for the next."""
    path = home / "new" / "x.lock"
    with holder(path) as process:
        with (
            pytest.raises(Busy, match=r"held the thing for over 0.1 s") as caught,
            locked(str(path), seconds=0.1, what="the thing"),
        ):
            pass
        assert str(path) in caught.value.hint
        process.send_signal(signal.SIGKILL)
        process.wait()
    with locked(str(path), seconds=5):
        pass


def test_waiting_ends_when_the_lock_is_free(home: Path) -> None:
    """A waiter gets the lock as soon as its holder lets go."""
    path = home / "x.lock"
    with holder(path) as process:
        process.terminate()
        start = time.monotonic()
        with locked(str(path), seconds=20):
            assert time.monotonic() - start < 15


def test_an_error_inside_frees_the_lock(home: Path) -> None:
    """What goes wrong in the block is passed on, and the lock let go."""
    path = str(home / "x.lock")
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path, seconds=0.1):
        pass


def test_a_place_without_room_for_a_lock(home: Path) -> None:
    """A file where a folder must be is an error that names the lock."""
    (home / "file").write_text("")
    with pytest.raises(Unwritable, match=r"cannot lock .*x\.lock"), locked(f"{home}/file/x.lock"):
        pass


def test_counting_together(home: Path) -> None:
    """Many processes that read, add one and write under the lock lose no count."""
    (home / "count").write_text("0")
    code = """
import sys
from tacit.base.locks import locked
for _ in range(10):
    with locked(sys.argv[1] + ".lock"):
        n = int(open(sys.argv[1]).read())
        open(sys.argv[1], "w").write(str(n + 1))
"""
    run = [sys.executable, "-W", "ignore", "-c", code, str(home / "count")]
    processes = [subprocess.Popen(run) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert (home / "count").read_text() == "40"
