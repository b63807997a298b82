"""Compaction: near the end of what a model can read, a conversation goes on from a summary.

The model writes the summary itself, as an answer to the conversation as it stands, so the cached
prefix serves once more. Then the prefix changes, for the only time: a summary, the text of every
active skill exactly as it was loaded, and the user's message if it is still unanswered.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.agent import events
from tacit.agent.conversation import Conversation
from tacit.agent.limits import Meter
from tacit.agent.prompts import prompt
from tacit.agent.retry import TooLong

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart

    from tacit.agent.asking import Asking

_OPENING = "<summary>\nThis conversation was summarised to make room. What happened before:\n\n"
_CLOSING = "\n</summary>"
_GO_ON = "\n\nGo on from there with the next step."


async def compact(
    conversation: Conversation, asking: "Asking", meter: Meter
) -> "AsyncIterator[events.AnyEvent | str]":
    """Replace the conversation by its summary, which comes last, as a string.

    Raises `Faults`. A model that writes no summary leaves the conversation as it is.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

    conversation.flush_returns()
    before = list(conversation.messages)
    waiting = before.pop() if _is_prompt(before[-1]) else None
    if not before:
        return  # one long message: there is nothing to sum up
    wish = ModelRequest(
        parts=[UserPromptPart(content=prompt("summary").strip())],
        instructions=conversation.instructions,
    )
    answer: ModelResponse | None = None
    for messages in (before, _trimmed(before)):
        try:
            async for item in asking.request([*messages, wish], meter):
                if isinstance(item, ModelResponse):
                    answer = item
                elif not isinstance(item, events.Text):
                    yield item
            break
        except TooLong:
            if messages is not before:
                raise
    asking.take_half_said()
    assert answer is not None
    from tacit.agent.asking import usage_of

    usage = usage_of(answer)
    meter.count(usage)
    yield usage
    summary = "".join(p.content for p in answer.parts if p.part_kind == "text").strip()
    if not summary:
        yield events.Notice("the model wrote no summary; the conversation stays as it is")
        return
    conversation.compact(summary, _anew(conversation, summary, waiting))
    yield summary


def _anew(
    conversation: Conversation, summary: str, waiting: "ModelMessage | None"
) -> "list[ModelMessage]":
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

    held = conversation.instructions
    text = _OPENING + summary + _CLOSING + ("" if waiting else _GO_ON)
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=text)], instructions=held)
    ]
    if loaded := _loaded(conversation):
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
    return replace(part, content=f"{text[:300]}\n[…]\n{text[-300:]}")


def _loaded(conversation: Conversation) -> "list[tuple[ToolCallPart, ToolReturnPart]]":
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
