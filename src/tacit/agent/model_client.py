"""Requests to a model: streamed, repeated while that is safe, then made to the next model.

A response counts only when it is whole; only then are its tools run. So a request that failed on
its way has changed nothing and can be repeated. pydantic-ai speaks to the providers; their
libraries raise what they like, above all in the middle of a stream, and here all of it becomes one
kind of error that says in words what happened and whether trying again may help. Which models there
are is `models.py`'s, what is sent is the conversation's.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tacit.agent import agent_events
from tacit.agent.budget import Meter
from tacit.agent.conversation import Conversation
from tacit.agent.tool import Tool
from tacit.base.display import shorten

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model


_FIRST, _MOST = 1.0, 30.0
_LONGEST_TOLD = 120.0
"""Longer than this nobody waits because a provider says so."""
# Libraries between us and a provider, by the first part of their modules' names.
_CARRIERS = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "openai", "anthropic", "google")


class RequestFailed(Exception):
    """A request that failed, in words for the user."""

    def __init__(
        self, why: str, hint: str = "", *, may_pass: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(why)
        self.hint = hint
        self.may_pass = may_pass
        self.retry_after = retry_after

    @classmethod
    def of(cls, error: Exception) -> "RequestFailed":
        """What an `error` of a request means."""
        from pydantic_ai import exceptions as e

        if isinstance(error, RequestFailed):
            return error
        if isinstance(error, e.ModelAPIError):
            return _of_provider(error)
        if isinstance(error, e.ContentFilterError):
            return cls(
                f"the provider's filter stopped the answer: {_provider_message(error)}",
                "ask otherwise",
            )
        if isinstance(error, e.UnexpectedModelBehavior):
            return cls(
                f"the provider's answer cannot be read: {_provider_message(error)}", may_pass=True
            )
        if isinstance(error, e.UserError):
            return cls(str(error), "check the model's name: tacit config")
        if isinstance(error, UnicodeDecodeError):
            return cls("the provider's answer cannot be read: it is not UTF-8", may_pass=True)
        if type(error).__module__.partition(".")[0] in _CARRIERS:
            return _of_carrier(error)
        if isinstance(error, OSError | ValueError | EOFError):
            return cls(
                f"the provider's answer cannot be read: {_provider_message(error)}", may_pass=True
            )
        return cls(
            f"the provider's library failed: {_provider_message(error)}", "take another model"
        )


class TooLong(RequestFailed):
    """The conversation is longer than the model can read."""


def retry_waits(retries: int) -> Iterator[float | None]:
    """Seconds to wait after each try; None after the last. They double, with some chance in it."""
    for number in range(retries):
        wait = min(_FIRST * 2**number, _MOST)
        yield wait * random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    yield None


def _of_provider(error: Exception) -> RequestFailed:
    """An error that pydantic-ai has put a name to."""
    from pydantic_ai import exceptions as e

    if isinstance(error, e.ModelAuthenticationError):
        return RequestFailed(
            f"the provider refused the key: {_provider_message(error)}", "check it: tacit setup"
        )
    if isinstance(error, e.ModelContextWindowExceededError):
        return TooLong("the conversation is longer than the model can read", "start a new one")
    if isinstance(error, e.ModelQuotaExceededError):
        return RequestFailed(
            f"the quota is used up: {_provider_message(error)}", "see the provider's account page"
        )
    if isinstance(error, e.ModelNotFoundError):
        return RequestFailed(
            _provider_message(error), "check the model's name and address: tacit config"
        )
    known = (
        e.ModelRateLimitError,
        e.ModelUnavailableError,
        e.ModelServerError,
        e.ModelConnectionError,
        e.ModelRequestTimeout,
    )
    # Without a status, the answer came and could not be read.
    status = getattr(error, "status_code", None) or 500
    may_pass = isinstance(error, known) or status in (408, 409, 425, 429) or status >= 500
    after = float(getattr(error, "retry_after", 0) or 0)
    if after > _LONGEST_TOLD:
        return RequestFailed(
            _provider_message(error), f"the provider says: try again in {after:.0f} s"
        )
    if isinstance(error, e.ModelConnectionError):
        hint = "see that it runs and the address is right (agent.base_url), or try again later"
        why = _provider_message(error).rstrip(".")
        return RequestFailed(f"the model's server cannot be reached: {why}", hint, may_pass=True)
    hint = "try again later" if may_pass else "check the model's name: tacit config"
    return RequestFailed(_provider_message(error), hint, may_pass=may_pass, retry_after=after)


def _of_carrier(error: Exception) -> RequestFailed:
    """An error that came through from a library below."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 425, 429):
        return RequestFailed(_provider_message(error), "check the model's name: tacit config")
    kind = type(error).__name__
    slow = "Timeout" in kind
    why = "the provider stopped answering" if slow else "the connection to the provider broke"
    return RequestFailed(
        f"{why}: {_provider_message(error) or kind}", "try again later", may_pass=True
    )


def _provider_message(error: Exception) -> str:
    """What went wrong, in the provider's own words where it has some."""
    status = getattr(error, "status_code", None)
    message = _message(getattr(error, "body", None))
    text = f"{message} (error {status})" if message and status else message or str(error)
    return shorten(" ".join(text.split()) or type(error).__name__, 300)


def _message(body: object) -> str:
    """The sentence in the body of an answer: providers put it in one place or another."""
    if isinstance(body, str):
        try:
            return _message(json.loads(body)) or body
        except ValueError:
            return "" if "<html" in body.lower() else body
    if isinstance(body, list) and body:
        return _message(body[0])
    if not isinstance(body, dict):
        return ""
    for key in ("error", "message", "detail", "msg"):
        if found := _message(body.get(key)):
            return found
    return ""


MOST_ANSWER = 1_000_000
"""Characters of one answer; a model that goes on and on would fill the memory."""
WINDOW = 128_000
"""Tokens that a model is taken to read when nothing is known of it."""


class ModelClient:
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
        self._partial_text = ""

    async def __aenter__(self) -> "ModelClient":
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

    def take_partial_text(self) -> str:
        """The text of a response that did not come to its end; only once."""
        text, self._partial_text = self._partial_text, ""
        return text

    async def ask(self, meter: Meter) -> AsyncIterator[agent_events.AnyEvent]:
        """Put the conversation to the model, and keep its response. Raises `Faults`."""
        async for item in self.request(self._conversation.messages, meter):
            if isinstance(item, agent_events.Event):
                yield item
                continue
            usage = usage_of(item)
            self._partial_text = ""
            self._conversation.add_response(item, usage)
            meter.count(usage)
            yield usage
            if meter.limits.money and usage.cost is None and meter.unpriced == 1:
                name = usage.model or "this model"
                yield agent_events.Notice(
                    f"no price is known for {name}: its requests count as free"
                )
            if item.finish_reason == "length":
                yield agent_events.Notice("the answer was cut off: it reached the model's longest")

    async def request(
        self, messages: "list[ModelMessage]", meter: Meter
    ) -> "AsyncIterator[agent_events.AnyEvent | ModelResponse]":
        """The model's response to `messages`, after the text of it. Raises `Faults`."""
        for number, model in enumerate(self._models):
            following = self._models[number + 1 : number + 2]
            for wait in retry_waits(self._retries):
                try:
                    async for item in self._stream(model, messages, meter):
                        yield item
                    return
                except Exception as error:
                    fault = RequestFailed.of(error)
                    last = not fault.may_pass or wait is None
                    if isinstance(fault, TooLong) or (last and not following):
                        raise fault from error
                    self._partial_text = ""
                    if last:
                        yield agent_events.Restarted(
                            f"{fault}; turning to {following[0].model_id}", 0.0
                        )
                        break
                    pause = fault.retry_after or wait or 0.0
                    yield agent_events.Restarted(str(fault), pause)
                    await asyncio.sleep(pause)

    async def _stream(
        self, model: "Model", messages: "list[ModelMessage]", meter: Meter
    ) -> "AsyncIterator[agent_events.AnyEvent | ModelResponse]":
        from pydantic_ai.direct import model_request_stream

        settings = cache_settings(model, self._conversation.session)
        if (left := meter.tokens_left()) is not None:
            settings = settings | {"max_tokens": max(left, 1)}
        async with model_request_stream(
            model,
            messages,
            model_settings=settings,
            model_request_parameters=self._parameters(),
        ) as stream:
            size = 0
            async for event in stream:
                size += _size(event)
                if size > MOST_ANSWER:
                    raise RequestFailed(
                        f"the model's answer passed {MOST_ANSWER:,} characters and went on",
                        "take another model",
                    )
                if delta := _text(event):
                    self._partial_text += delta
                    yield agent_events.Text(delta)
            response = stream.get()
        if not any(part.part_kind in ("text", "tool-call") for part in response.parts):
            # Kept, an answer of nothing would make providers refuse all that follows.
            raise RequestFailed("the model gave an empty answer", "ask again", may_pass=True)
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


def cache_settings(model: "Model", session: str) -> Any:
    """Settings by which the provider keeps the prefix of a conversation.

    Anthropic wants marks in the request. OpenAI and Gemini do it by themselves; OpenAI finds it
    again by a key, which servers that merely speak the same may not know.
    """
    if model.system == "openai" and "//api.openai.com" in (model.base_url or ""):
        return {"cache": True, "openai_prompt_cache_key": session}
    return {"cache": True}


def usage_of(response: "ModelResponse") -> agent_events.Usage:
    """What a response took; the cost only where the price is known."""
    usage = response.usage
    try:
        cost: float | None = float(response.cost().total_price)
    except Exception:  # no price is known for this model
        cost = None
    return agent_events.Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        cost,
        response.model_name or "",
    )


def _size(event: Any) -> int:
    """The characters that a stream event adds to the answer: its text, thoughts and arguments."""
    part = getattr(event, "part" if event.event_kind == "part_start" else "delta", None)
    names = ("content", "content_delta", "args", "args_delta")
    return sum(len(str(getattr(part, name, "") or "")) for name in names)


def _text(event: Any) -> str:
    """The text in a stream event, if it has any."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""
