"""The loop: ask the model, run the tools it calls, ask again, until it answers.

Everything that happens is an event. What was done is in the conversation as soon as it is done, so
an interrupt or a crash loses nothing. Reviews, repairs and scheduled runs are this same loop with
other tools and limits. `model_client.py` makes the requests.

Near the end of what the model can read, the conversation is compacted: the model itself writes a
summary, as an answer to the conversation as it stands, so the cached prefix serves once more. Then
the prefix changes, for the only time, to the summary, the text of every active skill exactly as it
was loaded, and the user's message if it is still unanswered.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tacit.agent import agent_events
from tacit.agent.budget import Limits, Meter
from tacit.agent.conversation import Conversation
from tacit.agent.model_client import (
    ModelClient,
    RequestFailed,
    TooLong,
    usage_of,
    with_likely_usage,
)
from tacit.agent.tool import Context, Failed, Result, Tool
from tacit.agent.tool_aliases import as_own_call
from tacit.agent.tool_approval import ApprovalRequest, Approver
from tacit.base.display import shorten_middle
from tacit.base.prompts import prompt

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
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
        footnote: Callable[[], str] = str,
    ) -> None:
        """`models` are tried in order; `window` is what the model can read, 0 for what is known.

        `footnote` gives what the model is told behind a tool's result; mostly nothing.
        """
        self.conversation = conversation
        self.context = context
        self.limits = limits or Limits()
        self._tools = {tool.name: tool for tool in tools}
        self._approver = approver
        several = list(models) if isinstance(models, Sequence) else [models]
        self._asking = ModelClient(
            several, conversation, tools, retries=self.limits.retries, window=window
        )
        self._footnote = footnote
        self._running = ""
        """The call whose tool is at work, so that an interrupt may leave it half done."""

    async def respond(
        self,
        message: str,
        *,
        note: str = "",
        known: Sequence[str] = (),
        meter: Meter | None = None,
    ) -> AsyncGenerator[agent_events.AnyEvent, None]:
        """Answer `message`. The last event is an `End`, whatever happened before it.

        The limits are those of one message, unless a `meter` counts over several.
        """
        self.conversation.add_user(message, note=note, known=known)
        async for event in self.resume(meter):
            yield event

    async def resume(
        self, meter: Meter | None = None
    ) -> AsyncGenerator[agent_events.AnyEvent, None]:
        """Go on from a conversation that ends with something the model has not answered."""
        async for event in detached(self._run(meter or Meter(self.limits))):
            yield event

    async def _run(self, meter: Meter) -> AsyncIterator[agent_events.AnyEvent]:
        reason: agent_events.Reason = "done"
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
            if why := self._asking.stalled(meter):
                yield agent_events.Error(why, "try again later", passing=True)
        except asyncio.CancelledError:
            self._close_history(_CUT, _NOT_RUN, _HALF_RUN)
            self.conversation.end("interrupted")
            raise
        except RequestFailed as fault:
            reason = "error"
            yield agent_events.Error(str(fault), fault.hint, fault.may_pass)
        why = f"the limit on {reason} was reached" if reason != "error" else "the request failed"
        if reason != "done":
            self._close_history(f"[{why}]", f"[not run: {why}]", f"[stopped while it ran: {why}]")
        self.conversation.end(reason)
        yield agent_events.End(reason, self.conversation.last_text(), meter.turns)

    async def _turn(self, meter: Meter) -> AsyncIterator[agent_events.AnyEvent]:
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

    async def _call(self, part: "ToolCallPart") -> AsyncIterator[agent_events.AnyEvent]:
        arguments = _arguments(part)
        yield agent_events.Call(part.tool_call_id, part.tool_name, arguments)
        name, seconds = part.tool_name, 0.0
        try:
            if _UNREADABLE in arguments:
                result = _malformed(name, arguments[_UNREADABLE])
            else:
                name, served = as_own_call(name, arguments, self._tools)
                result, seconds = await self._execute(part.tool_call_id, name, served)
        except Failed as instead:
            result = Result(str(instead), failed=True)
        told = msgspec.structs.replace(result, text=result.text + self._footnote())
        self.conversation.add_return(part, told, seconds)
        self._running = ""
        if result.activated is not None:
            yield agent_events.Skill(result.activated.name, "model", result.activated.digest)
        yield agent_events.Return(
            part.tool_call_id, name, result.text, result.failed, seconds, result.diff
        )

    async def _execute(
        self, call_id: str, name: str, arguments: dict[str, Any]
    ) -> tuple[Result, float]:
        """What a call gives, and the seconds that the tool itself took: people are not timed."""
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join(sorted(self._tools))
            return Result(f"There is no tool '{name}'. The tools are: {names}.", failed=True), 0.0
        began = 0.0
        try:
            call = tool.check(arguments)
            # Nobody is shown what the call does not make use of: it could hide what it does.
            known = tool.takes()
            used = {k: v for k, v in arguments.items() if known is None or k in known}
            request = ApprovalRequest(tool.name, tool.power, agent_events.subject_of(used), used)
            self.context.approved_by_person = self._approver.will_ask(request)
            if tool.refuse is not None:
                await tool.refuse(call, self.context)
            if not await self._approver.allows(request):
                return Result(self._approver.refusal, failed=True), 0.0
            self.context.approved_by_person = self._approver.by_person
            self._running = call_id if tool.power != "ask" else ""
            began = time.monotonic()
            result = await tool.run(call, self.context)
        except Failed as failed:
            result = Result(str(failed), failed=True)
        except Exception as error:  # a tool's fault is an answer to the model, not our end
            result = Result(f"{name} failed: {type(error).__name__}: {error}", failed=True)
        return result, time.monotonic() - began if began and tool.power != "ask" else 0.0

    async def _compact(self, meter: Meter) -> AsyncIterator[agent_events.AnyEvent]:
        before = self._asking.used
        meter.turns += 1
        summary = ""
        async for item in compact(self.conversation, self._asking, meter):
            if isinstance(item, str):
                summary = item
            else:
                yield item
        if summary:
            yield agent_events.Compacted(summary, before)

    def _is_long(self) -> bool:
        return self._asking.used > 0.8 * self._asking.window

    def _close_history(self, cut: str, not_run: str, half_run: str) -> None:
        """Leave a history that providers accept: what was half said kept, every call answered."""
        if partial := self._asking.take_partial_text():
            self.conversation.add_cut_text(partial, cut)
        self.conversation.close_open_calls(not_run, running=self._running, instead=half_run)
        self._running = ""


_UNREADABLE = "unreadable"


def _malformed(name: str, sent: Any) -> Result:
    """The answer to a call whose arguments are no JSON object. It is not run."""
    shown = shorten_middle(" ".join(str(sent).split()), 300, tail=0.5)
    why = f"{name} was not run: its arguments are not a JSON object, but: {shown}"
    return Result(
        f"{why}\nSend them again as one object; if it was cut off, send less.", failed=True
    )


def _arguments(part: "ToolCallPart") -> dict[str, Any]:
    """The arguments of a call; what is no JSON object is handed on, to be refused."""
    given = part.args
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return {_UNREADABLE: part.args}
    if given is None:
        return {}
    return given if isinstance(given, dict) else {_UNREADABLE: msgspec.to_builtins(given)}


T = TypeVar("T")


async def detached(source: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """The items of `source`, made ahead of the reader; what it raises is raised here at the end."""
    queue: asyncio.Queue[T | None] = asyncio.Queue()

    async def produce() -> None:
        try:
            async for item in source:
                queue.put_nowait(item)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(produce())
    try:
        while (item := await queue.get()) is not None:
            yield item
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


_OPENING = "<summary>\nThis conversation was summarised to make room. What happened before:\n\n"
_CLOSING = "\n</summary>"
_GO_ON = "\n\nThe message below was being worked on. Go on from there with the next step."


async def compact(
    conversation: Conversation, asking: "ModelClient", meter: Meter
) -> "AsyncIterator[agent_events.AnyEvent | str]":
    """Replace the conversation by its summary, which comes last, as a string.

    Raises `Faults`. A model that writes no summary leaves the conversation as it is.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

    conversation.flush_returns()
    before = list(conversation.messages)
    waiting = next((message for message in reversed(before) if _is_prompt(message)), None)
    if before[-1] is waiting:
        before.pop()
        going = False
    else:
        going = True  # in the middle of an answer
    if not before:
        return  # one long message: there is nothing to sum up
    wish = ModelRequest(
        parts=[UserPromptPart(content=prompt("agent", "summary").strip())],
        instructions=conversation.instructions,
    )
    answer: ModelResponse | None = None
    for messages in (before, _trimmed(before)):
        try:
            async for item in asking.request([*messages, wish], meter):
                if isinstance(item, ModelResponse):
                    answer = item
                elif not isinstance(item, agent_events.Text):
                    yield item
            break
        except TooLong:
            if messages is not before:
                raise
    asking.take_partial_text()
    assert answer is not None
    answer, _ = with_likely_usage(answer, before)  # what is wrong was said at the first answer
    usage = usage_of(answer)
    meter.count(usage)
    yield usage
    summary = "".join(p.content for p in answer.parts if p.part_kind == "text").strip()
    if not summary:
        yield agent_events.Notice("the model wrote no summary; the conversation stays as it is")
        return
    conversation.compact(summary, _compacted_messages(conversation, summary, waiting, going))
    yield summary


def _compacted_messages(
    conversation: Conversation, summary: str, waiting: "ModelMessage | None", going: bool
) -> "list[ModelMessage]":
    """The summary, the skills that are loaded, and the user's message that is not answered yet."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

    held = conversation.instructions
    text = _OPENING + summary + _CLOSING + (_GO_ON if going else "")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=text)], instructions=held)
    ]
    if loaded := _loaded_skills(conversation):
        messages.append(ModelResponse(parts=[call for call, _ in loaded]))
        messages.append(ModelRequest(parts=[told for _, told in loaded], instructions=held))
    if waiting is not None:
        messages.append(waiting)
    return messages


def _trimmed(messages: "list[ModelMessage]") -> "list[ModelMessage]":
    """The same with long results of tools cut short, where even the summary would not fit."""
    found: list[ModelMessage] = []
    for message in messages:
        if message.kind == "request":
            parts = [_shorter(part) for part in message.parts]
            found.append(replace(message, parts=parts))
        else:
            found.append(message)
    return found


def _shorter(part: Any) -> Any:
    if part.part_kind != "tool-return" or len(text := str(part.content)) < 700:
        return part
    return replace(part, content=shorten_middle(text, 600, tail=0.5))


def _loaded_skills(conversation: Conversation) -> "list[tuple[ToolCallPart, ToolReturnPart]]":
    """The call and the result by which each active skill was loaded, in its latest version."""
    calls: dict[str, ToolCallPart] = {}
    found: dict[str, tuple[ToolCallPart, ToolReturnPart]] = {}
    for message in conversation.messages:
        for part in message.parts:
            if part.part_kind == "tool-call":
                calls[part.tool_call_id] = part
            elif part.part_kind == "tool-return" and part.tool_call_id in calls:
                text = str(part.content)
                for name in conversation.active:
                    if text.startswith(f'<skill name="{name}"'):
                        found.pop(name, None)  # the order of the last loading counts
                        found[name] = (calls[part.tool_call_id], part)
    return list(found.values())


def _is_prompt(message: "ModelMessage") -> bool:
    return message.kind == "request" and any(p.part_kind == "user-prompt" for p in message.parts)
