"""The loop: ask the model, run the tools it calls, ask again, until it answers.

Everything that happens is an event. What was done is in the conversation as soon as it is done, so
an interrupt or a crash loses nothing. pydantic-ai speaks to the providers; the loop is ours:
reviews, repairs and scheduled runs are the same with other tools and limits.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.agent import events
from tacit.agent.approval import Approver, Request, subject_of
from tacit.agent.conversation import Conversation
from tacit.agent.foreign import serve
from tacit.agent.limits import Limits, Meter
from tacit.agent.retry import Faults
from tacit.agent.tools.tool import Context, Failed, Result, Tool

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import Model

_INTERRUPTED = "[interrupted by the user before it ran]"


class Agent:
    """A model, its tools and a conversation."""

    def __init__(
        self,
        model: "Model",
        conversation: Conversation,
        tools: tuple[Tool, ...],
        context: Context,
        approver: Approver,
        *,
        limits: Limits | None = None,
    ) -> None:
        self.model = model
        self.conversation = conversation
        self.context = context
        self.limits = limits or Limits()
        self._tools = {tool.name: tool for tool in tools}
        self._approver = approver

    async def respond(self, message: str) -> AsyncIterator[events.AnyEvent]:
        """Answer `message`. The last event is an `End`, whatever happened before it."""
        meter = Meter(self.limits)
        self.conversation.add_user(message)
        async for event in self._run(meter):
            yield event

    async def resume(self) -> AsyncIterator[events.AnyEvent]:
        """Go on from a conversation that ends with something the model has not answered."""
        async for event in self._run(Meter(self.limits)):
            yield event

    async def _run(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        reason: events.Reason = "done"
        try:
            async with asyncio.timeout(meter.left()):
                while True:
                    if over := meter.over():
                        reason = over
                        break
                    async for event in self._turn(meter):
                        yield event
                    if not self.conversation.is_unanswered():
                        break
        except TimeoutError:
            reason = "seconds"
        except (asyncio.CancelledError, GeneratorExit):
            self.conversation.close_open_calls(_INTERRUPTED)
            self.conversation.end("interrupted")
            raise
        except Faults as fault:
            reason = "error"
            yield events.Error(str(fault), fault.hint)
        if reason != "done":
            self.conversation.close_open_calls(f"[not run: the limit on {reason} was reached]")
        self.conversation.end(reason)
        yield events.End(reason, self.conversation.last_text(), meter.turns)

    async def _turn(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        """One request, and the tools that it calls."""
        meter.turns += 1
        response: ModelResponse | None = None
        async for item in self._request():
            if isinstance(item, events.Event):
                yield item
            else:
                response = item
        assert response is not None
        usage = _usage(response)
        meter.count(usage)
        self.conversation.add_response(response, usage)
        yield usage
        for part in response.parts:
            if part.part_kind == "tool-call":
                async for event in self._call(part):
                    yield event
        self.conversation.flush_returns()

    async def _request(self) -> "AsyncIterator[events.AnyEvent | ModelResponse]":
        """The model's response, streamed; made again while that is safe."""
        from pydantic_ai.direct import model_request_stream

        from tacit.agent.retry import waits

        for wait in waits():
            try:
                async with model_request_stream(
                    self.model,
                    self.conversation.messages,
                    model_settings=self.conversation.model_settings(),
                    model_request_parameters=self._parameters(),
                ) as stream:
                    async for event in stream:
                        delta = _text(event)
                        if delta:
                            yield events.Text(delta)
                    yield stream.get()
                    return
            except Exception as error:
                fault = Faults.of(error)
                if fault is None:
                    raise
                if not fault.passing or wait is None:
                    raise fault from error
                pause = fault.retry_after or wait
                yield events.Restarted(str(fault), pause)
                await asyncio.sleep(pause)

    async def _call(self, part: "ToolCallPart") -> AsyncIterator[events.AnyEvent]:
        arguments = _arguments(part)
        name, served = serve(part.tool_name, arguments, set(self._tools))
        yield events.Call(part.tool_call_id, part.tool_name, arguments)
        began = time.monotonic()
        result = await self._execute(name, served)
        seconds = time.monotonic() - began
        self.conversation.add_return(part, result, seconds)
        if result.skill:
            active = self.conversation.active[result.skill]
            yield events.Skill(active.name, "model", active.digest)
        yield events.Return(
            part.tool_call_id, name, result.text, result.failed, seconds, result.diff
        )

    async def _execute(self, name: str, arguments: dict[str, Any]) -> Result:
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            return Result(f"There is no tool '{name}'. The tools are: {known}.", failed=True)
        try:
            call = tool.check(arguments)
            request = Request(tool.name, tool.power, subject_of(arguments), arguments)
            if not await self._approver.allows(request):
                return Result("The user did not allow this call.", failed=True)
            return await tool.run(call, self.context)
        except Failed as failed:
            return Result(str(failed), failed=True)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a tool's fault is an answer to the model, not our end
            return Result(f"{name} failed: {type(error).__name__}: {error}", failed=True)

    def _parameters(self) -> Any:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        tools = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema()
            )
            for tool in self._tools.values()
        ]
        return ModelRequestParameters(function_tools=tools)


def _text(event: Any) -> str:
    """The text in a stream event, if it has any."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""


def _arguments(part: "ToolCallPart") -> dict[str, Any]:
    """The arguments of a call; what is no JSON object is handed on, to be refused."""
    given = part.args
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return {"unreadable": part.args}
    return given if isinstance(given, dict) else {"unreadable": msgspec.to_builtins(given)}


def _usage(response: "ModelResponse") -> events.Usage:
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
