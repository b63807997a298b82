"""One question to the model, without tools: money is held, one request is made, its cost recorded.

Analysts and mergers of a distillation ask here, as jobs. There is nothing to confine: what comes
back is words, which code holds against the session. So the request is made in the worker's own
process, and twenty at once cost twenty connections rather than twenty interpreters.
"""

import asyncio
import time
from functools import cache
from typing import TypeVar

import msgspec

from tacit.agent import budget, models
from tacit.agent.agent_events import Usage
from tacit.agent.budget import Limits, Meter
from tacit.base.clock import until_tomorrow
from tacit.base.errors import TacitError
from tacit.base.job import Job, JobResult
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.learn.review.review_answer import json_objects
from tacit.learn.review.review_batch import model_price

MOST_ANSWER = 3_000
"""Tokens that an answer may have."""
_TRIES = 3


class Inquiry(msgspec.Struct, frozen=True):
    """What a model is asked, and all that travels to whoever asks it: nothing else is needed."""

    instructions: str
    message: str
    model: str = ""
    """Another model than that of the settings."""


class Reply(msgspec.Struct, frozen=True):
    """What a model said, and what it took."""

    text: str = ""
    model: str = ""
    cost: float | None = None
    refused: str = ""
    """Why there is no answer and will be none."""


def answer_job(job: Job) -> JobResult:
    """Ask what `job.payload` says. The job of the kinds `analyse` and `merge`, on any machine.

    What was said comes back with the result, and is judged by whoever has the session.
    """
    asked = msgspec.convert(job.payload, Inquiry)
    flags = {"learn.model": asked.model} if asked.model else {}
    settings = load_settings(None, flags).settings
    try:
        choice = models.for_learning(settings)
    except TacitError as error:
        # Where machines share the queue, another one may have a model.
        if job.attempt < _OTHERS:
            return JobResult("put off", error.message, later=_SOON / 2)
        return _answered(Reply(refused=error.explain()))
    held = budget.reserve(settings.learn, _limits(asked, choice.name, settings))
    if held.refusal:
        later = until_tomorrow() if budget.is_spent(settings.learn) else _SOON
        return JobResult("put off", held.refusal, later=later)
    try:
        return _ask(job, asked, settings, choice, held)
    finally:
        budget.settle(held)


_SOON = 60.0
_OTHERS = 5
_LEAST_HELD = 0.0001


def most_cost(asked: Inquiry, model: str) -> float:
    """What a request may cost at most; 0 where no price is known."""
    sent, answered = _prices(model)
    return _sent(asked) * sent + MOST_ANSWER * answered


@cache
def _prices(model: str) -> tuple[float, float]:
    """Dollars for a token that is sent, and for one of an answer."""
    many = 1_000_000
    sent, both = model_price(model, many, 0) or 0.0, model_price(model, many, many) or 0.0
    return sent / many, (both - sent) / many


def _sent(asked: Inquiry) -> int:
    """Tokens that are sent, at most: text has three characters a token or more."""
    return (len(asked.instructions) + len(asked.message)) // 3 + 200


def _limits(asked: Inquiry, model: str, settings: Settings) -> Limits:
    """What one request may take. Twenty at once must fit the day's budget, so no more is held."""
    learn = settings.learn
    money, tokens = max(most_cost(asked, model), _LEAST_HELD), _sent(asked) + MOST_ANSWER
    return Limits(
        1, learn.seconds, min(tokens, learn.tokens or tokens), min(money, learn.money or money)
    )


def _ask(
    job: Job,
    asked: Inquiry,
    settings: Settings,
    choice: models.ModelChoice,
    held: budget.Reservation,
) -> JobResult:
    from tacit.agent.model_client import RequestFailed

    began = time.monotonic()
    try:
        text, usage = asyncio.run(ask_once(asked, settings, choice, held.limits))
    except TimeoutError:
        fault = RequestFailed(f"no answer within {held.limits.seconds:g} s", may_pass=True)
    except Exception as error:
        fault = RequestFailed.of(error)
    else:
        seconds = time.monotonic() - began
        budget.record_spending(job.kind, job.key, usage, seconds=seconds, reserved=held)
        return _answered(Reply(text, choice.name, usage.cost))
    if fault.may_pass and job.attempt < _TRIES:
        return JobResult("put off", str(fault), later=max(fault.retry_after, _SOON * job.attempt))
    return _answered(Reply(model=choice.name, refused=str(fault)))


async def ask_once(
    asked: Inquiry, settings: Settings, choice: models.ModelChoice, limits: Limits
) -> tuple[str, Usage]:
    """What the model says, and what that took. Raises `RequestFailed` and `TimeoutError`."""
    model = models.build(
        choice
    )  # first, so that of the client library only what it needs is loaded
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        UserPromptPart,
    )

    from tacit.agent.model_client import ModelClient, usage_of, with_likely_usage

    system, user = SystemPromptPart(asked.instructions), UserPromptPart(asked.message)
    messages: list[ModelMessage] = [ModelRequest(parts=[system, user])]
    meter = Meter(msgspec.structs.replace(limits, tokens=MOST_ANSWER))
    client = ModelClient([model], None, (), retries=settings.agent.retries)
    async with asyncio.timeout(limits.seconds or None), client:
        async for item in client.request(messages, meter):
            if isinstance(item, ModelResponse):
                text = "".join(p.content for p in item.parts if p.part_kind == "text")
                return text, usage_of(with_likely_usage(item, messages)[0])
    raise AssertionError("a request ended without an answer or a fault")


def _answered(reply: Reply) -> JobResult:
    outcome = "refused" if reply.refused else "answered"
    return JobResult(outcome, reply.refused, data=msgspec.to_builtins(reply))


def reply_of(result: JobResult) -> Reply:
    """What came back of a job."""
    refused = Reply(refused=result.reason or "no answer")
    return msgspec.convert(result.data, Reply) if result.data else refused


A = TypeVar("A")


def read_answer(text: str, form: type[A]) -> A | None:
    """The answer in what a model said, whatever stands around it; None where there is none."""
    for found in json_objects(text[:200_000]):
        try:
            return msgspec.convert(found, form, strict=False)
        except msgspec.ValidationError:
            continue
    return None
