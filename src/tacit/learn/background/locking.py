"""Closing the room: a process gives up all rights but those that its task needs.

The child does it to itself before it speaks with a model. What would hold on this machine is found
by doing it, in a process of its own that does nothing else (`tried`), because a kernel may know the
calls and refuse them still. `python -m tacit.learn.background.locking FOLDER` is that process.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import msgspec

from tacit.agent import grouping, landlock
from tacit.base.errors import Refused
from tacit.learn.background.task import Walls

_SECONDS = 20
_PARTS = (
    ("writes", "write only into its own folder"),
    ("reads", "read only the project and the library"),
    ("network", "connect only to the model's port"),
    ("group", "leave no process behind"),
)


def lock(folder: str, read: Iterable[str], ports: tuple[int, ...]) -> Walls:
    """Keep this process to `folder` for writing. Raises `Refused` when that goes wrong."""
    group = grouping.stay_in_group()
    held = landlock.restrict(
        landlock.Rules(write=(folder, os.devnull), read=tuple(read), ports=ports)
    )
    why_not = held.why_not
    if not group:
        why_not = "; ".join(filter(None, (why_not, "a process can leave its group")))
    return Walls(held.writes, held.reads, held.network, group, why_not)


def tried() -> Walls:
    """What holds on this machine, by closing an empty room and looking."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", __name__, folder]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
            return msgspec.json.decode(done.stdout, type=Walls)
        except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
            return Walls(why_not="it could not be tried")


def told(walls: Walls) -> str:
    """In a line for a person: what an agent in the background can do, and what nothing hinders."""
    held = [words for name, words in _PARTS if getattr(walls, name)]
    if not held:
        return f"nothing but its tools keeps it in: {walls.why_not}"
    can = f"{', '.join(held[:-1])} and {held[-1]}" if len(held) > 1 else held[0]
    return f"it can {can}" + (f"; {walls.why_not}" if walls.why_not else "")


def main(folder: str) -> None:
    try:
        walls = lock(folder, (), ())
    except Refused as refused:
        walls = Walls(why_not=refused.message)
    os.write(1, msgspec.json.encode(walls))


if __name__ == "__main__":
    main(sys.argv[1])
