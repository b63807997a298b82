"""A judge: a model that says of a pair of runs what code cannot.

It is shown the task, what is expected, and two results called A and B, and is told nothing of which
side is which. It is asked twice, with the two changed round; each run gets what it is given in
either place, and how often both agree is reported with the answer of the trial.
"""

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec

from tacit.agent import models
from tacit.agent.budget import Limits, Meter
from tacit.agent.model_client import ModelClient, RequestFailed
from tacit.base.display import shorten_middle
from tacit.base.errors import Busy
from tacit.base.prompts import prompt
from tacit.base.setting_sections import Settings
from tacit.learn.trial.trial_run import RunResult
from tacit.learn.trial.trial_tasks import Task

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_SECONDS = 120.0
_MOST_SHOWN = 12_000
_JSON = re.compile(r"\{.*\}", re.DOTALL)


class _Said(msgspec.Struct):
    """For each expectation, whether the result meets it."""

    A: list[bool]
    B: list[bool]


class Judge:
    """A model, asked without tools."""

    def __init__(self, settings: Settings, name: str) -> None:
        choice = models.require(settings.agent, name)
        self.name = choice.name
        self._models: list[Model] = models.build_each(choice)
        self._retries = settings.agent.retries

    def compare(
        self, task: Task, one: RunResult, other: RunResult
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """What each of two runs is given in the first order and in the second, from 0 to 1.

        1 where it meets every expectation. Raises `Busy` where the judge cannot be asked.
        """
        first = asyncio.run(self._asked(task, one, other))
        second = asyncio.run(self._asked(task, other, one))
        return (first[0], second[1]), (first[1], second[0])

    async def _asked(self, task: Task, a: RunResult, b: RunResult) -> tuple[float, float]:
        from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

        expected = "\n".join(f"{n}. {text}" for n, text in enumerate(task.expectations, 1))
        text = prompt(
            "learn",
            "judge",
            task=task.prompt,
            expected=f"{task.expected}\n{expected}".strip(),
            a=_shown(a),
            b=_shown(b),
        )
        client = ModelClient(self._models, None, (), retries=self._retries)
        said = ""
        meter = Meter(Limits(seconds=_SECONDS))
        try:
            async with asyncio.timeout(_SECONDS), client:
                message = ModelRequest(parts=[UserPromptPart(text)])
                async for item in client.request([message], meter):
                    if isinstance(item, ModelResponse):
                        said = item.text or ""
        except (RequestFailed, TimeoutError) as error:
            why = str(error) or f"no answer within {_SECONDS:.0f} s"
            raise Busy(f"the judge {self.name} cannot be asked: {why}", "go on later") from None
        return _read(said, len(task.expectations))


def _shown(result: RunResult) -> str:
    made = f"\n\nFiles that it made or changed:\n{result.made}" if result.made else ""
    return shorten_middle(f"{result.ran.answer}{made}", _MOST_SHOWN)


def _read(said: str, count: int) -> tuple[float, float]:
    """Whether all expectations are met by A and by B; neither where the answer is no answer."""
    found = _JSON.search(said)
    try:
        given = msgspec.json.decode(found[0] if found else "", type=_Said)
    except msgspec.DecodeError:
        return 0.0, 0.0
    return tuple(float(len(each) == count and all(each)) for each in (given.A, given.B))  # type: ignore[return-value]
