"""What every measure stands on: the pool, homes made from it, and the commands that are timed."""

import os
import sys

import msgspec

from bench.pool import Home, Pool

PYTHON = sys.executable
TACIT = os.path.join(os.path.dirname(PYTHON), "tacit")
HERE = os.path.dirname(os.path.abspath(__file__))
BARE = [PYTHON, "-c", "pass"]
SIZES = (100, 1_000, 10_000, 100_000)


class Options(msgspec.Struct, frozen=True):
    """How thorough to be."""

    rounds: int = 7
    largest: int = SIZES[-1]
    sessions: int = 10_000
    sample: int = 1000
    peers: bool = True


class Bench:
    """A pool, homes made from it, and what could not be compared."""

    def __init__(self, pool: Pool, folder: str, options: Options) -> None:
        self.pool = pool
        self.folder = folder
        self.options = options
        self.missing: list[str] = []
        self._homes: dict[int, Home] = {}

    def home(self, count: int | None = None) -> Home:
        """A home with `count` skills, or the whole pool; made once."""
        count = len(self.pool.skills) if count is None else count
        if count not in self._homes:
            note(f"unpacking {count:,} skills")
            self._homes[count] = Home(os.path.join(self.folder, str(count)), self.pool, count)
        return self._homes[count]


def probe(what: str, *arguments: str) -> list[str]:
    """The command that measures `what` inside a fresh process."""
    return [PYTHON, os.path.join(HERE, "probe.py"), what, *arguments]


def note(text: str) -> None:
    """Say what is going on, beside the table."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
