"""Timing processes and calls so that noise hits both sides: alternating, best and median."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec


class Timing(msgspec.Struct, frozen=True):
    """How long one thing took, each time."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report. Ratios are ours to the other's: below 1 means that ours is less."""

    group: str
    name: str
    ours: Timing | None = None
    against: str = ""
    theirs: Timing | None = None
    values: tuple[str, ...] = ()
    """What is not a time: sizes, hit rates."""
    ratio: float | None = None
    """Best of ours to best of theirs, unless it is a ratio of something else than times."""
    median_ratio: float | None = None
    aim: float | None = None
    """The ratio should be at most this."""

    @property
    def met(self) -> bool | None:
        """Whether the aim was reached, by the best or by the median; None where there is none."""
        if self.aim is None or self.ratio is None:
            return None
        return min(self.ratio, self.median_ratio or self.ratio) <= self.aim


def compare(
    group: str,
    name: str,
    ours: Timing,
    theirs: Timing | None = None,
    *,
    against: str = "",
    aim: float | None = None,
    values: tuple[str, ...] = (),
) -> Figure:
    """The figure for `ours` beside `theirs`."""
    return Figure(
        group=group,
        name=name,
        ours=ours,
        against=against,
        theirs=theirs,
        values=values,
        ratio=ours.best / theirs.best if theirs else None,
        median_ratio=ours.median / theirs.median if theirs else None,
        aim=aim,
    )


def alternate(jobs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Timing]:
    """Run every job in turn, `rounds` times over; each returns its own seconds.

    One round before the first is thrown away: it fills caches of the system, and writes bytecode.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            took = job()
            if number:
                seconds[name].append(took)
    return {name: Timing(tuple(took)) for name, took in seconds.items()}


class Shell:
    """Starts processes in a home of their own, with nothing of the caller's environment."""

    def __init__(self, home: str, **more: str) -> None:
        self.home = home
        self.work = os.path.join(home, "work")
        os.makedirs(self.work, exist_ok=True)
        self.environment = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **more}

    def time(self, command: Sequence[str], allowed: tuple[int, ...] = (0,)) -> float:
        """Seconds from the start of a process to its end; what it prints goes nowhere."""
        began = time.perf_counter()
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        took = time.perf_counter() - began
        if done.returncode not in allowed:
            raise Failed(command, done.returncode, done.stderr.decode(errors="replace"))
        return took

    def ask(self, command: Sequence[str]) -> Any:
        """The JSON that a process prints as its last line."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise Failed(command, done.returncode, done.stderr.decode(errors="replace"))
        return json.loads(done.stdout.splitlines()[-1])


class Failed(Exception):
    """A measured process ended with an error."""

    def __init__(self, command: Sequence[str], code: int, said: str) -> None:
        last = "\n".join(said.strip().splitlines()[-5:])
        super().__init__(f"{' '.join(command)} ended with {code}:\n{last}")
