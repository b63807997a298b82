"""One request to the model: streamed, made again while that is safe, then of the next model.

A response counts only when it is whole; only then are its tools run. So a request that fails on
its way has changed nothing and can be repeated. pydantic-ai speaks to the providers.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tacit.agent import events
from tacit.agent.conversation import Conversation
from tacit.agent.limits import Meter
from tacit.agent.retry import Faults, TooLong, waits
from tacit.agent.tools.tool import Tool

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

WINDOW = 128_000
"""Tokens that a model is taken to read when nothing is known of it."""


class Asking:
    """The models of an agent, in the order in which they are tried.

    Entered for the length of a run: the HTTP clients are open inside, and closed after it.
    """

    def __init__(
        self,
        models: "Sequence[Model]",
        conversation: Conversation,
        tools: Sequence[Tool],
        *,
        retries: int,
    ) -> None:
        self._models = list(models)
        self._conversation = conversation
        self._tools = tools
        self._retries = retries
        self._stack = AsyncExitStack()
        self._half_said = ""

    async def __aenter__(self) -> "Asking":
        for model in self._models:
            await self._stack.enter_async_context(model)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stack.aclose()

    @property
    def used(self) -> int:
        """Tokens that the conversation took in the last request, as the provider counted them."""
        for message in reversed(self._conversation.messages):
            if message.kind == "response" and message.usage.input_tokens:
                return message.usage.input_tokens + message.usage.output_tokens
        return 0

    @property
    def window(self) -> int:
        """Tokens that the model can read."""
        return self._models[0].context_window or WINDOW

    def take_half_said(self) -> str:
        """The text of a response that did not come to its end; only once."""
        said, self._half_said = self._half_said, ""
        return said

    async def ask(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        """Put the conversation to the model, and keep its response. Raises `Faults`."""
        async for item in self.request(self._conversation.messages, meter):
            if isinstance(item, events.Event):
                yield item
                continue
            usage = usage_of(item)
            self._half_said = ""
            self._conversation.add_response(item, usage)
            meter.count(usage)
            yield usage
            if meter.limits.money and usage.cost is None and meter.unpriced == 1:
                name = usage.model or "this model"
                yield events.Notice(f"no price is known for {name}: its requests count as free")
            if item.finish_reason == "length":
                yield events.Notice("the answer was cut off: it reached the model's longest")

    async def request(
        self, messages: "list[ModelMessage]", meter: Meter
    ) -> "AsyncIterator[events.AnyEvent | ModelResponse]":
        """The model's response to `messages`, after the text of it. Raises `Faults`."""
        for number, model in enumerate(self._models):
            following = self._models[number + 1 : number + 2]
            for wait in waits(self._retries):
                try:
                    async for item in self._stream(model, messages, meter):
                        yield item
                    return
                except Exception as error:
                    fault = Faults.of(error)
                    last = not fault.passing or wait is None
                    if isinstance(fault, TooLong) or (last and not following):
                        raise fault from error
                    self._half_said = ""
                    if last:
                        yield events.Restarted(f"{fault}; turning to {following[0].model_id}", 0.0)
                        break
                    pause = fault.retry_after or wait or 0.0
                    yield events.Restarted(str(fault), pause)
                    await asyncio.sleep(pause)

    async def _stream(
        self, model: "Model", messages: "list[ModelMessage]", meter: Meter
    ) -> "AsyncIterator[events.AnyEvent | ModelResponse]":
        from pydantic_ai.direct import model_request_stream

        settings = caching(model, self._conversation.session)
        if (left := meter.tokens_left()) is not None:
            settings = settings | {"max_tokens": max(left, 1)}
        async with model_request_stream(
            model,
            messages,
            model_settings=settings,
            model_request_parameters=self._parameters(),
        ) as stream:
            async for event in stream:
                if delta := _text(event):
                    self._half_said += delta
                    yield events.Text(delta)
            response = stream.get()
        if not any(part.part_kind in ("text", "tool-call") for part in response.parts):
            # Kept, an answer of nothing would make providers refuse all that follows.
            raise Faults("the model gave an empty answer", "ask again", passing=True)
        yield response

    def _parameters(self) -> Any:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        tools = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema()
            )
            for tool in self._tools
        ]
        return ModelRequestParameters(function_tools=tools)


def caching(model: "Model", session: str) -> Any:
    """Settings by which the provider keeps the prefix of a conversation.

    Anthropic wants marks in the request. OpenAI and Gemini do it by themselves; OpenAI finds it
    again by a key, which servers that merely speak the same may not know.
    """
    if model.system == "openai" and "//api.openai.com" in (model.base_url or ""):
        return {"cache": True, "openai_prompt_cache_key": session}
    return {"cache": True}


def usage_of(response: "ModelResponse") -> events.Usage:
    """What a response took; the cost only where the price is known."""
    usage = response.usage
    try:
        cost: float | None = float(response.cost().total_price)
    except Exception:  # no price is known for this model
        cost = None
    return events.Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        cost,
        response.model_name or "",
    )


def _text(event: Any) -> str:
    """The text in a stream event, if it has any."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""
