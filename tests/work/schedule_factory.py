"""Schedules for tests, and an engine that a test can kill."""

from datetime import datetime
from typing import Any

from tacit.work import schedule_runs, schedule_store
from tacit.work.schedule_store import Binding, Draft, Schedule
from tacit.work.written_times import understand


def binding(when: str, now: datetime, zone: str = "UTC", **more: Any) -> Binding:
    found = understand(when, now, zone)
    bound = {"project": "/tmp"} | more
    return Binding(when=when, timing=found.timing, zone=found.zone, made=now, since=now, **bound)


def scheduled(when: str, now: datetime, zone: str = "UTC", **more: Any) -> Schedule:
    """A schedule on the shelf, through the gate."""
    task = more.pop("task", "Look at the weather.")
    draft = Draft(binding=binding(when, now, zone, **more), task=task, short="weather")
    return schedule_store.make(draft)[0]


def loose(name: str, bound: Binding) -> Schedule:
    """A schedule that lies on no shelf: for what only plans."""
    return Schedule(name=name, binding=bound, description="", body="", folder="")


class Killed(Exception):
    """Stands for a kill -9 at this instruction."""


class Engine:
    """Takes each id once and keeps it over kills, as the durable one does."""

    def __init__(self) -> None:
        self.queue: list[str] = []
        self.taken: set[str] = set()
        self.kill_in = 0
        """After how many calls of `send` the process dies: before, or after, the id is taken."""

    def send(self, run: str, payload: dict[str, Any]) -> bool:
        self.kill_in -= 1
        if self.kill_in == 1:
            raise Killed
        if run not in self.taken:
            self.taken.add(run)
            self.queue.append(run)
        if self.kill_in == 0:
            raise Killed
        return True

    def work(self, now: datetime, most: int = 1_000_000) -> list[str]:
        """Do what waits; each is over at once."""
        done, self.queue = self.queue[:most], self.queue[most:]
        for run in done:
            with schedule_runs.write_runs() as connection:
                schedule_runs.update_run(connection, run, now, state="done", ended=now)
        return done
