"""Timing processes and calls so that noise hits both sides: alternating, best and median.

Beside the time on the clock stands the time on the processor, of a process and those it started:
on a busy machine that is the figure to go by.
"""

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec


class Took(msgspec.Struct, frozen=True):
    """Seconds that something took, on the clock and on the processor."""

    clock: float
    cpu: float


class Timing(msgspec.Struct, frozen=True):
    """How long one thing took, each time."""

    runs: tuple[Took, ...]

    @property
    def best(self) -> float:
        return min(run.clock for run in self.runs)

    @property
    def median(self) -> float:
        return statistics.median(run.clock for run in self.runs)

    @property
    def cpu(self) -> float:
        """The least on the processor."""
        return min(run.cpu for run in self.runs)


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
    cpu_ratio: float | None = None
    aim: float | None = None
    """The ratio should be at most this."""

    @property
    def met(self) -> bool | None:
        """Whether the aim was reached, by the clock or the processor; None where there is none."""
        if self.aim is None or self.ratio is None:
            return None
        return min(self.ratio, self.cpu_ratio or self.ratio) <= self.aim


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
        cpu_ratio=ours.cpu / theirs.cpu if theirs else None,
        aim=aim,
    )


def alternate(jobs: Mapping[str, Callable[[], Took]], rounds: int) -> dict[str, Timing]:
    """Run every job in turn, `rounds` times over; each says what it took.

    One round before the first is thrown away: it fills caches of the system, and writes bytecode.
    """
    runs: dict[str, list[Took]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            took = job()
            if number:
                runs[name].append(took)
    return {name: Timing(tuple(took)) for name, took in runs.items()}


class Shell:
    """Starts processes in a home of their own, with nothing of the caller's environment."""

    def __init__(self, home: str, **more: str) -> None:
        self.home = home
        self.work = os.path.join(home, "work")
        os.makedirs(self.work, exist_ok=True)
        self.environment = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **more}

    def time(self, command: Sequence[str], allowed: tuple[int, ...] = (0,)) -> Took:
        """From the start of a process to its end; what it prints goes nowhere."""
        before = _children_cpu()
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
        took = Took(time.perf_counter() - began, _children_cpu() - before)
        if done.returncode not in allowed:
            raise Failed(command, done.returncode, done.stderr.decode(errors="replace"))
        return took

    def lines(self, command: Sequence[str]) -> list[str]:
        """What a process prints."""
        done = subprocess.run(
            command, env=self.environment, cwd=self.work, capture_output=True, check=True
        )
        return done.stdout.decode(errors="replace").splitlines()

    def call(self, command: Sequence[str]) -> Took:
        """What a process says that a call inside it took."""
        answer = self.ask(command)
        return Took(float(answer["seconds"]), float(answer["cpu"]))

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


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
