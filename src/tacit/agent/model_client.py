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
import re
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.agent import agent_events
from tacit.agent.budget import Meter
from tacit.agent.conversation import Conversation
from tacit.agent.tool import Tool
from tacit.base.display import one_line, shorten

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

T = TypeVar("T")


_FIRST, _MOST = 1.0, 30.0
_LONGEST_TOLD = 120.0
"""Longer than this nobody waits because a provider says so."""
_SILENCE = 60.0
"""Seconds for which a provider may be silent in any case."""
ANSWER = 16_384
"""Tokens that an answer may have: no model in use has less, and a longer one is a mistake."""
_LEAST_ANSWER = 256
"""An answer that may have less than this is not worth asking for."""
_LEAST_ASKED = 16
"""OpenAI refuses to be asked for less."""
_LONGEST_TOKEN = 16
"""Characters, on average over an answer: more than any language or code has."""
_OTHER_WIRE = (404, 405, 501)
"""What a server says that does not know the way by which it is asked."""
# Libraries between us and a provider, by the first part of their modules' names.
_CARRIERS = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "openai", "anthropic", "google")


class RequestFailed(Exception):
    """A request that failed, in words for the user."""

    def __init__(
        self,
        why: str,
        hint: str = "",
        *,
        may_pass: bool = False,
        retry_after: float = 0.0,
        status: int = 0,
    ) -> None:
        super().__init__(why)
        self.hint = hint
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.status = status

    @classmethod
    def of(cls, error: Exception) -> "RequestFailed":
        """What an `error` of a request means."""
        from pydantic_ai import exceptions as e

        if (own := _own_error(error)) is not None:
            return own
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


def page_fault(where: str, body: str) -> RequestFailed:
    """A web page came where a model's answer should be."""
    hint = "see that the address is that of a model's server (agent.base_url); it may end in /v1"
    return RequestFailed(f"{where} answered with a web page, not with a model: {_page(body)}", hint)


def _own_error(error: BaseException | None) -> RequestFailed | None:
    """What we raised ourselves below a provider's library, which may have wrapped it."""
    while error is not None and not isinstance(error, RequestFailed):
        error = error.__cause__
    return error


def retry_waits(retries: int) -> Iterator[float | None]:
    """Seconds to wait after each try; None after the last. They double, with some chance in it."""
    for number in range(retries):
        wait = min(_FIRST * 2**number, _MOST)
        yield wait * random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    yield None


def _of_provider(error: Exception) -> RequestFailed:
    """An error that pydantic-ai has put a name to."""
    from pydantic_ai import exceptions as e

    status = int(getattr(error, "status_code", None) or 0)
    if isinstance(error, e.ModelAuthenticationError):
        why = f"the provider refused the key: {_provider_message(error)}"
        return RequestFailed(why, "check it: tacit setup", status=status)
    if isinstance(error, e.ModelContextWindowExceededError):
        return TooLong("the conversation is longer than the model can read", "start a new one")
    if isinstance(error, e.ModelQuotaExceededError):
        return RequestFailed(
            f"the quota is used up: {_provider_message(error)}", "see the provider's account page"
        )
    if isinstance(error, e.ModelNotFoundError):
        hint = "check the model's name and address: tacit config"
        return RequestFailed(_provider_message(error), hint, status=status)
    known = (
        e.ModelRateLimitError,
        e.ModelUnavailableError,
        e.ModelServerError,
        e.ModelConnectionError,
        e.ModelRequestTimeout,
    )
    # Without a status, the answer came and could not be read.
    may_pass = isinstance(error, known) or not status or _may_pass(status)
    after = float(getattr(error, "retry_after", 0) or 0)
    if isinstance(error, e.ModelConnectionError):
        hint = "see that it runs and the address is right (agent.base_url), or try again later"
        why = _provider_message(error).rstrip(".")
        return RequestFailed(f"the model's server cannot be reached: {why}", hint, may_pass=True)
    hint = _what_to_do(status, after, may_pass)
    return RequestFailed(
        _provider_message(error), hint, may_pass=may_pass, retry_after=after, status=status
    )


def _may_pass(status: int) -> bool:
    return status in (408, 409, 425, 429) or status >= 500


def _what_to_do(status: int, after: float, may_pass: bool) -> str:
    if after > _LONGEST_TOLD:
        return f"the provider says: try again in {after:.0f} s"
    if may_pass:
        return "try again later"
    if status == 413:
        return "the request is too large for this server: take another model, or less at a time"
    return "the model does not take this request: take another one (tacit setup)"


def _of_carrier(error: Exception) -> RequestFailed:
    """An error that came through from a library below."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and status >= 400 and not _may_pass(status):
        hint = _what_to_do(status, 0.0, may_pass=False)
        return RequestFailed(_provider_message(error), hint, status=status)
    kind = type(error).__name__
    slow = "Timeout" in kind
    why = "the provider stopped answering" if slow else "the connection to the provider broke"
    return RequestFailed(
        f"{why}: {_provider_message(error) or kind}", "try again later", may_pass=True
    )


def _provider_message(error: Exception) -> str:
    """What went wrong, in the provider's own words where it has some. It may repeat the key."""
    from tacit.base import secrets

    status = getattr(error, "status_code", None)
    message = _message(getattr(error, "body", None))
    text = f"{message} (error {status})" if message and status else message or str(error)
    return shorten(one_line(secrets.redact(text).text) or type(error).__name__, 300)


def _message(body: object) -> str:
    """The sentence in the body of an answer: providers put it in one place or another."""
    if isinstance(body, str):
        try:
            return _message(json.loads(body)) or body
        except ValueError:
            return _page(body) if "<html" in body.lower() else body
    if isinstance(body, list) and body:
        return _message(body[0])
    if not isinstance(body, dict):
        return ""
    for key in ("error", "message", "detail", "msg"):
        if found := _message(body.get(key)):
            return found
    return ""


def _page(body: str) -> str:
    """What a web page says: its title, or its first words."""
    title = re.search(r"(?is)<title[^>]*>(.*?)</title>", body)
    text = title[1] if title and title[1].strip() else re.sub(r"<[^>]*>", " ", body)
    return f"'{shorten(' '.join(text.split()), 100)}'"


_NAMES_LIMIT = re.compile(r"(?i)max\W?_?(output|completion|new)?_?tokens")
_NOT_KNOWN = re.compile(r"(?i)\bun(supported|known|recognized|expected)|extra inputs|not permitted")
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?![\d-]*[a-zA-Z_-])")


def lower_limit(error: Exception, asked: int, *, again: bool) -> int | None:
    """The limit to ask for after a refusal of `asked` tokens; None where it was not about that.

    Providers name what they allow in words of their own: the largest number below ours is taken,
    and where that was refused as well (`again`), half of it. 0 where the server does not know the
    parameter: then none is sent.
    """
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    text = _message(getattr(error, "body", None)) or str(error)
    numbers = [int(found.replace(",", "")) for found in _NUMBER.findall(text)]
    if not _NAMES_LIMIT.search(text) and asked not in numbers:
        return None
    smaller = [number for number in numbers if _LEAST_ANSWER <= number < asked]
    if not smaller and _NOT_KNOWN.search(text):
        return 0
    lower = asked // 2 if again or not smaller else max(smaller)
    return lower if lower >= _LEAST_ANSWER else None


def answer_limit(model: "Model", window: int) -> int:
    """The tokens that an answer of `model` may have, where nothing else is known of it.

    A request whose input and limit together pass the window is refused by some: with an eighth of
    it there is room, because a conversation is compacted at four fifths.
    """
    profile: Any = model.profile
    known: int = profile.get("anthropic_max_output_tokens") or ANSWER
    if profile.get("anthropic_rejects_max_tokens_beyond_context_window"):
        known = 4_096  # the oldest of these have no more
    return min(ANSWER, known, max(window // 8, _LEAST_ANSWER))


WINDOW = 128_000
"""Tokens that a model is taken to read when nothing is known of it."""


class ModelClient:
    """The models of an agent, in the order in which they are tried.

    Entered for the length of a run: the HTTP clients are open inside, and closed after it.
    """

    def __init__(
        self,
        models: "Sequence[Model]",
        conversation: Conversation | None,
        tools: Sequence[Tool],
        *,
        retries: int,
        window: int = 0,
    ) -> None:
        """`window` is what the model can read, 0 for what is known of it.

        Without a conversation only `request` can be called.
        """
        self._models = list(models)
        self._kept = conversation
        self._tools = tools
        self._retries = retries
        self._window = window
        self._stack = AsyncExitStack()
        self._partial_text = ""
        self._answers: dict[int, int] = {}
        """How long an answer may be, by the identity of a model that refused a longer one."""
        self._heard = 0.0
        """When something came of the response that is awaited; 0 while none is."""
        self._doubt = ""
        """What was last said of tokens that cannot be."""

    @property
    def _conversation(self) -> Conversation:
        assert self._kept is not None, "there is no conversation"
        return self._kept

    async def __aenter__(self) -> "ModelClient":
        for model in self._models:
            await self._enter(model)
        return self

    async def _enter(self, model: "Model") -> None:
        from tacit.agent.models import refuse_pages

        await self._stack.enter_async_context(model)
        refuse_pages(model)

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
        return self._window_of(self._models[0])

    def _window_of(self, model: "Model") -> int:
        return self._window or model.context_window or WINDOW

    def stalled(self, meter: Meter) -> str:
        """Why the time was not enough, where that was the provider's doing; else empty."""
        if not self._heard:
            return ""
        seconds, silent = meter.limits.seconds, time.monotonic() - self._heard
        if not meter.answers:
            return f"the model gave no answer within {seconds:g} s"
        return f"the model said nothing for the last {silent:.0f} s" if silent > seconds / 4 else ""

    def take_partial_text(self) -> str:
        """The text of a response that did not come to its end; only once."""
        text, self._partial_text = self._partial_text, ""
        return text

    async def ask(self, meter: Meter) -> AsyncIterator[agent_events.AnyEvent]:
        """Put the conversation to the model, and keep its response. Raises `Faults`."""
        first, begins = self._models[0], len(self._conversation.messages) == 1
        if self._tools and begins and not first.profile.get("supports_tools", True):
            words = f"{first.model_id} calls no tools: it can answer, and do nothing else"
            yield agent_events.Notice(words)
        async for item in self.request(self._conversation.messages, meter):
            if isinstance(item, agent_events.Event):
                yield item
                continue
            response, doubt = with_likely_usage(item, self._conversation.messages)
            usage = usage_of(response)
            self._partial_text = ""
            self._conversation.add_response(response, usage)
            meter.count(usage)
            yield usage
            if doubt and doubt != self._doubt:
                self._doubt = doubt
                yield agent_events.Notice(doubt)
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
        refused: dict[str, RequestFailed] = {}
        left = list(self._models)
        while left:
            model = left.pop(0)
            for wait in retry_waits(self._retries):
                try:
                    async for item in self._answer(model, messages, meter):
                        yield item
                    return
                except Exception as error:
                    fault = RequestFailed.of(error)
                    soon = fault.retry_after <= _LONGEST_TOLD and wait is not None
                    if not (fault.may_pass and soon):
                        # In another wire format the same model will say the same, but for this.
                        if fault.status not in _OTHER_WIRE:
                            left = [m for m in left if m.model_name != model.model_name]
                        elif (other := await self._other_wire(model)) is not None:
                            left.insert(0, other)
                        refused.setdefault(model.model_name, fault)
                    if isinstance(fault, TooLong) or (model.model_name in refused and not left):
                        raise refused.get(model.model_name, fault) from error
                    self._partial_text = ""
                    if model.model_name in refused:
                        self._ask_last(model, fault)
                        yield agent_events.Restarted(f"{fault}; turning to {left[0].model_id}", 0.0)
                        break
                    pause = fault.retry_after or wait or 0.0
                    yield agent_events.Restarted(str(fault), pause)
                    await asyncio.sleep(pause)

    async def _other_wire(self, model: "Model") -> "Model | None":
        """The same model in the other wire format, where there is one that was not tried yet."""
        from tacit.agent.models import other_wire

        other = other_wire(model)
        if other is None or any(one is other for one in self._models):
            return None
        await self._enter(other)
        place = next(number for number, one in enumerate(self._models) if one is model)
        self._models.insert(place + 1, other)
        return other

    def _ask_last(self, model: "Model", fault: RequestFailed) -> None:
        """A model that refused will do so again: the others are asked first from here on."""
        if not fault.may_pass:
            self._models = [*(one for one in self._models if one is not model), model]

    async def _answer(
        self, model: "Model", messages: "list[ModelMessage]", meter: Meter
    ) -> "AsyncIterator[agent_events.AnyEvent | ModelResponse]":
        """One try, and again with a lower limit on the answer where that was refused."""
        while True:
            most = self._answers.get(id(model), answer_limit(model, self._window_of(model)))
            if (tokens := meter.tokens_left()) is not None and most:
                most = min(most, max(tokens, _LEAST_ASKED))
            try:
                async for item in self._stream(model, messages, meter, most):
                    yield item
                self._heard = 0.0
                return
            except Exception as error:  # not where the time is up: `stalled` is asked then
                self._heard = 0.0
                lower = lower_limit(error, most, again=id(model) in self._answers) if most else None
                if lower is None:
                    raise
                self._answers[id(model)] = lower

    async def _stream(
        self, model: "Model", messages: "list[ModelMessage]", meter: Meter, most: int
    ) -> "AsyncIterator[agent_events.AnyEvent | ModelResponse]":
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.exceptions import UsageExtractionFailedWarning

        settings = cache_settings(model, self._kept.session if self._kept else "")
        if most:
            settings = settings | {"max_tokens": most}
        time_left = meter.left()
        # A program says nothing before it has all of its answer; its own end is watched.
        watched = time_left is not None and model.system != "cli"
        silence = max((time_left or 0.0) / 2, _SILENCE) if watched else None
        self._heard = time.monotonic()
        opening = model_request_stream(
            model,
            messages,
            model_settings=settings,
            model_request_parameters=self._parameters(model),
            instrument=False,  # else it imports the library's own agent, to ask that
        )
        async with AsyncExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            # Told by `with_likely_usage`, and no reason to write over the user's screen.
            warnings.simplefilter("ignore", UsageExtractionFailedWarning)
            stream = await _in_time(stack.enter_async_context(opening), silence)
            events, size = aiter(stream), 0
            while (event := await _in_time(anext(events, None), silence)) is not None:
                self._heard = time.monotonic()
                size += _size(event)
                if size > _LONGEST_TOKEN * (most or ANSWER):
                    why = f"the model's answer has no end: {size:,} characters so far"
                    raise RequestFailed(why, "try again later", may_pass=True)
                if delta := _text(event):
                    self._partial_text += delta
                    yield agent_events.Text(delta)
            response = stream.get()
        _check_whole(response)
        yield response

    def _parameters(self, model: "Model") -> Any:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        tools = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema()
            )
            for tool in self._tools
            if model.profile.get("supports_tools", True)
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


async def _in_time(awaited: Awaitable[T], seconds: float | None) -> T:
    """What is `awaited` of a provider, which may be silent for that long."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        if seconds is None:
            raise
        why = f"the provider stopped answering: nothing came for {seconds:.0f} s"
        raise RequestFailed(why, "try again later", may_pass=True) from None


def _check_whole(response: "ModelResponse") -> None:
    """Raise where the answer did not come to its end, or is none."""
    # pydantic-ai takes a stream of Chat Completions without an end for a finished one.
    ended = (response.provider_details or {}).get("finish_reason")
    if response.state != "complete" or not ended:
        why = "the answer broke off: the server closed the stream without an end mark"
        raise RequestFailed(why, "try again later", may_pass=True)
    if not any(part.part_kind in ("text", "tool-call") for part in response.parts):
        # Kept, an answer of nothing would make providers refuse all that follows.
        raise RequestFailed("the model gave an empty answer", "ask again", may_pass=True)


def usage_of(response: "ModelResponse") -> agent_events.Usage:
    """What a response took; the cost only where the price is known."""
    usage, details = response.usage, response.provider_details or {}
    try:
        named = details.get("cost") if response.provider_name == "cli" else None
        cost: float | None = float(response.cost().total_price if named is None else named)
    except Exception:  # no price is known for this model
        cost = None
    return agent_events.Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        cost,
        response.model_name or "",
        bool(details.get("estimated")),
    )


def with_likely_usage(
    response: "ModelResponse", messages: "Sequence[ModelMessage]"
) -> "tuple[ModelResponse, str]":
    """The response with tokens that can be, and words about those that were not believed.

    Text has no more tokens than bytes, and the instructions, tools and marks around it are allowed
    for; an answer has no more than were allowed. Where more is reported, or less, or nothing that
    the library understands, it is counted by characters, four a token, and marked as estimated.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    usage, details = response.usage, response.provider_details or {}
    if response.provider_name == "cli":  # a program's figures were looked at already
        return response, ""
    sent = len(ModelMessagesTypeAdapter.dump_json(list(messages)))
    counts = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens]
    likely = all(isinstance(count, int) for count in counts) and (
        0 < counts[0] <= 2 * (sent + _AROUND)
        and 0 <= counts[1] <= _MOST_ANSWER
        and 0 <= counts[2] <= counts[0]
    )
    if likely:
        return response, ""
    blank = replace(usage, input_tokens=0, output_tokens=0, cache_read_tokens=0,
                    cache_write_tokens=0, details={})  # fmt: skip
    mended = replace(response, usage=blank, provider_details={**details, "estimated": True})
    came = len(ModelMessagesTypeAdapter.dump_json([mended]))
    blank.input_tokens, blank.output_tokens = sent // 4, came // 4
    shown = f" that can be ({', '.join(map(str, counts))})" if any(counts) else ""
    return mended, f"the provider reported no tokens{shown}: they are counted by characters"


_AROUND = 200_000
"""Bytes that tools and marks may add to what is sent, with room to spare."""
_MOST_ANSWER = 1_000_000
"""Tokens that no answer reaches, with all that a model thinks before it."""


def _text(event: Any) -> str:
    """The text in a stream event, if it has any."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""


def _size(event: Any) -> int:
    """Characters that came with a stream event."""
    part = getattr(event, "part", None) if event.event_kind == "part_start" else None
    delta = getattr(event, "delta", None) if event.event_kind == "part_delta" else None
    names = ("content", "content_delta", "args", "args_delta")
    return sum(
        len(value)
        for source in (part, delta)
        for name in names
        if isinstance(value := getattr(source, name, None), str)
    )
