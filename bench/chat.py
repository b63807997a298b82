"""How long until the first frame of `tacit chat`, against a bare Textual app in the same run.

    python bench/chat.py [--runs 9]

Each is started on a terminal of its own, in a fresh home, and timed from its start to the first
output that holds its words; the two take turns, so that a busy machine slows both. The median of
each, and their ratio, are printed. On a quiet machine the frame comes well within half a second;
the ratio is what can be compared between machines.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time

_BARE = """
from textual.app import App
from textual.widgets import Static

class Hello(App):
    def compose(self):
        yield Static("hello-frame")

Hello().run()
"""
_PROGRAMS = {
    "a bare Textual app": ([sys.executable, "-c", _BARE], b"hello-frame"),
    "tacit chat": ([sys.executable, "-m", "tacit", "chat"], b"skills and commands"),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    taken: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    with tempfile.TemporaryDirectory() as home:
        for number in range(runs + 1):
            for name, (command, mark) in _PROGRAMS.items():
                seconds = first_frame(command, mark, home)
                if number:  # the first of each warms the disk's cache
                    taken[name].append(seconds)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in medians.items():
        best = min(taken[name])
        print(f"{name:<20} median {median * 1000:6.0f} ms   best {best * 1000:6.0f} ms")
    bare, chat = medians.values()
    print(f"ratio                {chat / bare:.2f}")
    return 0


def first_frame(command: list[str], mark: bytes, home: str, most: float = 30.0) -> float:
    """Seconds from the start of `command` to the output that holds `mark`."""
    began = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(HOME=home, TERM="xterm-256color", TACIT_HOME=os.path.join(home, "tacit"))
        os.chdir(home)
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    try:
        while mark not in seen:
            if time.monotonic() - began > most:
                raise SystemExit(f"{command[-1]} showed nothing within {most:g} s")
            if select.select([terminal], [], [], 0.5)[0]:
                seen += os.read(terminal, 65536)
        return time.monotonic() - began
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


if __name__ == "__main__":
    sys.exit(main())
