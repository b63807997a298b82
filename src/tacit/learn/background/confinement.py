"""What keeps a background agent in: the limits of its process.

The child gives up all rights but those that its task needs before it speaks with a model (`lock`).
What holds on this machine is found by doing that in a process of its own (`probe_confinement`),
because a kernel may know the calls and still refuse them: `python -m
tacit.learn.background.confinement FOLDER`.
"""

import os
import sys
from collections.abc import Iterable

import msgspec

from tacit.agent import process_rights
from tacit.base.atomic_files import TemporaryFolder
from tacit.base.errors import Refused

_SECONDS = 20
_PARTS = (
    ("writes", "write only into its own folder"),
    ("reads", "read only the project and the library"),
    ("network", "connect only to the model's port"),
    ("group", "start no program, leave no process behind"),
)


class Confinement(msgspec.Struct, frozen=True):
    """What the child's process was kept from doing; away from Linux, nothing but its tools."""

    writes: bool = False
    """It could write nothing but its staging folder."""
    reads: bool = False
    """It could read nothing but the project, the library and what Python needs."""
    network: bool = False
    """It could connect to no port but the model's."""
    group: bool = False
    """No process that it started could get away."""
    why_not: str = ""


def lock(folder: str, read: Iterable[str], ports: tuple[int, ...]) -> Confinement:
    """Keep this process to `folder` for writing. Raises `Refused` when that goes wrong."""
    group = process_rights.filter_calls()
    held = process_rights.restrict(
        process_rights.Rights(write=(folder, os.devnull), read=tuple(read), ports=ports)
    )
    why_not = held.why_not
    if not group:
        why_not = "; ".join(
            filter(None, (why_not, "a process can leave its group and open any socket"))
        )
    return Confinement(held.writes, held.reads, held.network, group, why_not)


def probe_confinement() -> Confinement:
    """What holds on this machine, found by confining a process and looking."""
    import subprocess

    with TemporaryFolder() as folder:
        command = [sys.executable, "-P", "-m", __name__, folder]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
            return msgspec.json.decode(done.stdout, type=Confinement)
        except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
            return Confinement(why_not="it could not be tried")


def describe_confinement(confinement: Confinement) -> str:
    """In a line for a person: what an agent in the background can do, and what nothing hinders."""
    held = [words for name, words in _PARTS if getattr(confinement, name)]
    if not held:
        return f"nothing but its tools keeps it in: {confinement.why_not}"
    can = f"{', '.join(held[:-1])} and {held[-1]}" if len(held) > 1 else held[0]
    return f"it can {can}" + (f"; {confinement.why_not}" if confinement.why_not else "")


def main(folder: str) -> None:
    try:
        confinement = lock(folder, (), ())
    except Refused as refused:
        confinement = Confinement(why_not=refused.message)
    os.write(1, msgspec.json.encode(confinement))


if __name__ == "__main__":
    main(sys.argv[1])
