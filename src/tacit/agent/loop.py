"""The loop: ask the model, run the tools it calls, ask again, until it answers.

Everything that happens is an event. What was done is in the conversation as soon as it is done, so
an interrupt or a crash loses nothing. `asking.py` makes the requests; reviews, repairs and
scheduled runs are this same loop with other tools and limits.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.agent import events
from tacit.agent.approval import Approver, Request, subject_of
from tacit.agent.asking import Asking
from tacit.agent.compaction import compact
from tacit.agent.conversation import Conversation
from tacit.agent.detached import detached
from tacit.agent.foreign import serve
from tacit.agent.limits import Limits, Meter
from tacit.agent.retry import Faults, TooLong
from tacit.agent.tools.tool import Context, Failed, Result, Tool

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import Model

_NOT_RUN = "[not run: interrupted by the user]"
_HALF_RUN = "[interrupted by the user while it ran; it may be done in part]"
_CUT = "[interrupted]"


class Agent:
    """A model, its tools and a conversation."""

    def __init__(
        self,
        models: "Model | Sequence[Model]",
        conversation: Conversation,
        tools: Sequence[Tool],
        context: Context,
        approver: Approver,
        *,
        limits: Limits | None = None,
        window: int = 0,
    ) -> None:
        """`models` are tried in order; `window` is what the model can read, 0 for what is known."""
        self.conversation = conversation
        self.context = context
        self.limits = limits or Limits()
        self._tools = {tool.name: tool for tool in tools}
        self._approver = approver
        several = list(models) if isinstance(models, Sequence) else [models]
        self._asking = Asking(several, conversation, tools, retries=self.limits.retries)
        self._window = window
        self._running = ""
        """The call whose tool is at work, so that an interrupt may leave it half done."""

    async def respond(
        self, message: str, *, note: str = "", known: Sequence[str] = ()
    ) -> AsyncGenerator[events.AnyEvent, None]:
        """Answer `message`. The last event is an `End`, whatever happened before it."""
        self.conversation.add_user(message, note=note, known=known)
        async for event in self.resume():
            yield event

    async def resume(self) -> AsyncGenerator[events.AnyEvent, None]:
        """Go on from a conversation that ends with something the model has not answered."""
        async for event in detached(self._run(Meter(self.limits))):
            yield event

    async def _run(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        reason: events.Reason = "done"
        try:
            async with asyncio.timeout(meter.left()), self._asking:
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
        except asyncio.CancelledError:
            self._leave_whole(_CUT, _NOT_RUN, _HALF_RUN)
            self.conversation.end("interrupted")
            raise
        except Faults as fault:
            reason = "error"
            yield events.Error(str(fault), fault.hint, fault.passing)
        why = f"the limit on {reason} was reached" if reason != "error" else "the request failed"
        if reason != "done":
            self._leave_whole(f"[{why}]", f"[not run: {why}]", f"[stopped while it ran: {why}]")
        self.conversation.end(reason)
        yield events.End(reason, self.conversation.last_text(), meter.turns)

    async def _turn(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        """One request, and the tools that it calls."""
        if self._is_long():
            async for event in self._compact(meter):
                yield event
            if meter.over():
                return
        meter.turns += 1
        try:
            async for event in self._asking.ask(meter):
                yield event
        except TooLong:
            # The window is smaller than was thought; with a summary it may do.
            async for event in self._compact(meter):
                yield event
            async for event in self._asking.ask(meter):
                yield event
        for part in self.conversation.open_calls():
            async for event in self._call(part):
                yield event
        self.conversation.flush_returns()

    async def _call(self, part: "ToolCallPart") -> AsyncIterator[events.AnyEvent]:
        arguments = _arguments(part)
        name, served = serve(part.tool_name, arguments, set(self._tools))
        yield events.Call(part.tool_call_id, part.tool_name, arguments)
        result, seconds = await self._execute(part.tool_call_id, name, served)
        self.conversation.add_return(part, result, seconds)
        self._running = ""
        if result.activated is not None:
            yield events.Skill(result.activated.name, "model", result.activated.digest)
        yield events.Return(
            part.tool_call_id, name, result.text, result.failed, seconds, result.diff
        )

    async def _execute(
        self, call_id: str, name: str, arguments: dict[str, Any]
    ) -> tuple[Result, float]:
        """What a call gives, and the seconds that the tool itself took: people are not timed."""
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            return Result(f"There is no tool '{name}'. The tools are: {known}.", failed=True), 0.0
        began = 0.0
        try:
            call = tool.check(arguments)
            request = Request(tool.name, tool.power, subject_of(arguments), arguments)
            if not await self._approver.allows(request):
                return Result(self._approver.refusal, failed=True), 0.0
            self.context.agreed = self._approver.by_person
            self._running = call_id if tool.power != "ask" else ""
            began = time.monotonic()
            result = await tool.run(call, self.context)
        except Failed as failed:
            result = Result(str(failed), failed=True)
        except Exception as error:  # a tool's fault is an answer to the model, not our end
            result = Result(f"{name} failed: {type(error).__name__}: {error}", failed=True)
        return result, time.monotonic() - began if began and tool.power != "ask" else 0.0

    async def _compact(self, meter: Meter) -> AsyncIterator[events.AnyEvent]:
        before = self._asking.used
        meter.turns += 1
        summary = ""
        async for item in compact(self.conversation, self._asking, meter):
            if isinstance(item, str):
                summary = item
            else:
                yield item
        if summary:
            yield events.Compacted(summary, before)

    def _is_long(self) -> bool:
        window = self._window or self._asking.window
        return self._asking.used > 0.8 * window

    def _leave_whole(self, cut: str, not_run: str, half_run: str) -> None:
        """Leave a history that providers accept: what was half said kept, every call answered."""
        if said := self._asking.take_half_said():
            self.conversation.add_cut_text(said, cut)
        self.conversation.close_open_calls(not_run, running=self._running, instead=half_run)
        self._running = ""


def _arguments(part: "ToolCallPart") -> dict[str, Any]:
    """The arguments of a call; what is no JSON object is handed on, to be refused."""
    given = part.args
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return {"unreadable": part.args}
    if given is None:
        return {}
    return given if isinstance(given, dict) else {"unreadable": msgspec.to_builtins(given)}
