"""Finding the models that could be used here, and trying one with a single small request."""

import asyncio
import os
import time
from typing import TYPE_CHECKING

import msgspec

from tacit.agent import models
from tacit.agent.models import Choice
from tacit.base.errors import TacitError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_SECONDS = 60.0
_PROMPT = "Answer with the one word: ready"


class Outcome(msgspec.Struct, frozen=True):
    """How the try ended."""

    works: bool
    answer: str = ""
    seconds: float = 0.0
    why: str = ""
    hint: str = ""


def found() -> list[Choice]:
    """What a key in the environment or a server on this machine offers, keys first."""
    choices = [
        Choice(work, "", f"{variable} is set")
        for variable, work, _ in models.KEYS
        if os.environ.get(variable)
    ]
    for title, url in models.LOCAL:
        choices += [Choice(f"openai:{name}", url, title) for name in models.models_of(url)[:5]]
    return list({(choice.name, choice.base_url): choice for choice in choices}.values())


def try_model(choice: Choice, seconds: float = _SECONDS) -> Outcome:
    """Ask the model for one word. Never raises for what the provider does."""
    if missing := models.missing_key(choice):
        hint = f"in your shell's profile: export {missing}=…"
        return Outcome(False, why=f"{missing} is not set", hint=hint)
    try:
        model = models.build(choice)
    except TacitError as error:
        return Outcome(False, why=error.message, hint=error.hint)
    began = time.monotonic()
    try:
        answer = asyncio.run(_ask(model, seconds))
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
        return Outcome(
            False, why=why, hint="a large local model may have to be loaded first; try again"
        )
    except Exception as error:
        return _failed(error, choice)
    return Outcome(True, answer.strip(), time.monotonic() - began)


async def _ask(model: "Model", seconds: float) -> str:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest

    async with asyncio.timeout(seconds), model:
        response = await model_request(model, [ModelRequest.user_text_prompt(_PROMPT)])
    return "".join(part.content for part in response.parts if part.part_kind == "text")


def _failed(error: Exception, choice: Choice) -> Outcome:
    """What went wrong, in words, and what to do about it."""
    from tacit.agent.retry import Faults

    fault = Faults.of(error)
    status = getattr(error, "status_code", None)
    return Outcome(False, why=str(fault), hint=_advice(status, choice) or fault.hint)


def _advice(status: int | None, choice: Choice) -> str:
    where = choice.base_url or "the provider"
    if status in (401, 403):
        return "the key is wrong or may not use this model; check it on the provider's page"
    if status == 404:
        served = models.models_of(choice.base_url) if choice.base_url else []
        if served:
            return f"{where} offers: {', '.join(served[:5])}"
        return "check the model's name, and that the address ends in /v1"
    if status == 429:
        return "the account is at its limit; wait, or see the provider's account page"
    if status is None and choice.base_url:
        return f"is the server running? {where} does not answer"
    return ""
