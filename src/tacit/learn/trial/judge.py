"""A judge: a model that says of a pair of runs what code cannot.

It is shown the task, what is expected, and two results called A and B, and is told nothing of which
side is which. It is asked twice, with the two changed round; each run gets what it is given in
either place, and how often both agree is reported with the answer of the trial. What it costs is a
part of what the trial does.
"""

import asyncio
from itertools import islice

import msgspec

from tacit.agent import models
from tacit.agent.budget import Limits
from tacit.agent.model_client import RequestFailed
from tacit.base.display import shorten_middle
from tacit.base.errors import Busy
from tacit.base.prompts import prompt
from tacit.base.setting_sections import Settings
from tacit.learn.inquiry import Inquiry, ask_once
from tacit.learn.review.review_answer import json_objects
from tacit.learn.trial.trial_run import RunResult
from tacit.learn.trial.trial_tasks import Task

_SECONDS = 120.0
_MOST_SHOWN = 12_000
_TRIES = 3
"""How often it is asked until its answer can be read."""


class _Said(msgspec.Struct):
    """For each expectation, whether the result meets it."""

    A: list[bool]
    B: list[bool]


class Judgement(msgspec.Struct, frozen=True):
    """What two runs are given, each in the first order and in the second, from 0 to 1."""

    given: tuple[tuple[float, float], tuple[float, float]]
    cost: float | None
    """Dollars for all that was asked; None without a price."""


class Judge:
    """A model, asked without tools."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._choice = models.require(settings.agent, name)
        self.name = self._choice.name
        self._settings = settings
        self._cost: float | None = 0.0

    def compare(self, task: Task, one: RunResult, other: RunResult) -> Judgement:
        """What each of two runs is given: 1 where it meets every expectation.

        Raises `Busy` where the judge cannot be asked, or says nothing that can be read.
        """
        self._cost = 0.0
        first = self._asked(task, one, other)
        second = self._asked(task, other, one)
        return Judgement(((first[0], second[1]), (first[1], second[0])), self._cost)

    def _asked(self, task: Task, a: RunResult, b: RunResult) -> tuple[float, float]:
        expected = "\n".join(f"{n}. {text}" for n, text in enumerate(task.expectations, 1))
        text = prompt(
            "learn",
            "judge",
            task=task.prompt,
            expected=f"{task.expected}\n{expected}".strip(),
            a=_shown(a),
            b=_shown(b),
        )
        head, mark, rest = text.partition("<task>")
        inquiry = Inquiry(head.strip(), mark + rest)
        for _ in range(_TRIES):
            if (found := _read(self._words(inquiry), len(task.expectations))) is not None:
                return found
        why = f"the judge {self.name} gives no verdict that can be read on {task.id}"
        raise Busy(why, "take another model: --judge provider:model")

    def _words(self, inquiry: Inquiry) -> str:
        limits = Limits(seconds=_SECONDS)
        try:
            said, usage = asyncio.run(ask_once(inquiry, self._settings, self._choice, limits))
        except (RequestFailed, TimeoutError) as error:
            why = str(error) or f"no answer within {_SECONDS:.0f} s"
            hint = "go on later: the same command"
            raise Busy(f"the judge {self.name} cannot be asked: {why}", hint) from None
        known = self._cost is not None and usage.cost is not None
        self._cost = self._cost + usage.cost if known else None  # type: ignore[operator]
        return said


def _shown(result: RunResult) -> str:
    made = f"\n\nFiles that it made or changed:\n{result.made}" if result.made else ""
    return shorten_middle(f"{result.ran.answer}{made}", _MOST_SHOWN)


def _read(said: str, count: int) -> tuple[float, float] | None:
    """Whether all expectations are met by A and by B; None where the answer is no answer."""
    for found in islice(json_objects(said), 5):
        try:
            given = msgspec.convert(found, _Said)
        except msgspec.ValidationError:
            continue
        if len(given.A) == len(given.B) == count:
            return float(all(given.A)), float(all(given.B))
    return None
