"""Summaries of steps that are cut from a trajectory, by the model that a person chose for learning.

Asks only where one was chosen, reserves from the day's budget before each question and records what
it took, like all work beside the user's own conversations. A summary that cannot be had is no fault
of the export: the reason is kept, and the steps are told by their number.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from tacit.agent import budget, models
from tacit.agent.budget import Limits, Meter, Reservation
from tacit.base.errors import TacitError
from tacit.base.prompts import prompt
from tacit.base.setting_sections import Settings
from tacit.traces.trajectory import Trajectory

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

KIND = "export"
"""What the spending is recorded under."""


class StepSummaries:
    """Asks the user's model for a summary, one question each. Not for several threads.

    Raises `BadConfig` when made where no model was chosen.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        choice = models.for_learning(settings)
        self.model = choice.name
        self._built = models.build(choice)
        self.made = 0
        self.money = 0.0
        self.faults: dict[str, int] = {}
        """Why summaries are missing, and how many."""
        self._refused = ""

    def __call__(self, trajectory: Trajectory, text: str, tokens: int) -> tuple[str, str]:
        """A summary of `text` in about `tokens` tokens, and the model; empty where it failed."""
        learn = self._settings.learn
        limits = Limits(1, learn.seconds, learn.tokens, learn.money, self._settings.agent.retries)
        reserved = Reservation(refusal=self._refused)
        if not self._refused:
            reserved = budget.reserve(learn, limits)
            self._refused = reserved.refusal  # for the rest of this run: no day passes in it
        if self._refused:
            return self._without(self._refused)
        try:
            made = asyncio.run(self._ask(trajectory.id, text, tokens, reserved))
        except TimeoutError:
            return self._without(f"no answer within {learn.seconds:g} s")
        except TacitError as error:
            return self._without(error.message)
        except Exception as error:  # a provider's library raises what it likes
            from tacit.agent.model_client import RequestFailed

            return self._without(str(RequestFailed.of(error)))
        finally:
            budget.settle(reserved)
        if not made:
            return self._without("the model wrote nothing")
        self.made += 1
        return made, self.model

    def told(self) -> dict[str, Any]:
        """For a report: who wrote how many, at what cost, and why others are missing."""
        return {
            "model": self.model,
            "made": self.made,
            "cost": self.money,
            "missing": self.faults,
        }

    def _without(self, why: str) -> tuple[str, str]:
        self.faults[why] = self.faults.get(why, 0) + 1
        return "", ""

    async def _ask(self, session: str, text: str, tokens: int, reserved: Reservation) -> str:
        from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

        from tacit.agent.model_client import ModelClient, usage_of, with_likely_usage

        limits = reserved.limits
        asked = prompt("learn", "steps", tokens=str(tokens)).strip()
        wish: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(content=text)], instructions=asked)
        ]
        client = ModelClient([self._built], None, (), retries=limits.retries)
        answer: ModelResponse | None = None
        began, meter = time.monotonic(), Meter(limits)
        async with asyncio.timeout(limits.seconds or None), client:
            async for item in client.request(wish, meter):
                if isinstance(item, ModelResponse):
                    answer = item
        if answer is None:
            return ""
        usage = usage_of(with_likely_usage(answer, wish)[0])
        took = time.monotonic() - began
        budget.record_spending(KIND, session, usage, seconds=took, reserved=reserved)
        self.money += usage.cost or 0.0
        parts = (part.content for part in answer.parts if part.part_kind == "text")
        return "".join(parts).strip()
