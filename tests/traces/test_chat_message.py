"""Messages of every API and library, in one form."""

import json
from typing import Any

import pytest

from tacit.traces.chat_message import Message, messages_of

CALL = ("c1", "bash", {"command": "ls"})
USER = {"role": "user", "content": "go"}


def _call(message: Message) -> tuple[str, str, Any]:
    call = message.calls[0]
    given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    return call.id, call.name, given


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]},
            id="OpenAI chat"),
        pytest.param({"type": "function_call", "call_id": "c1", "id": "fc_9", "name": "bash",
                      "arguments": '{"command": "ls"}'}, id="OpenAI responses"),
        pytest.param({"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
            id="Anthropic"),
        pytest.param({"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}]},
            id="OpenTelemetry"),
        pytest.param({"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "bash",
             "input": {"command": "ls"}}]}, id="Vercel"),
        pytest.param({"lc": 1, "type": "constructor", "id": ["langchain_core", "AIMessage"],
                      "kwargs": {"content": "", "tool_calls": [
                          {"name": "bash", "args": {"command": "ls"}, "id": "c1"}]}},
                     id="LangChain"),
        pytest.param({"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [
            {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]}}},
            id="older LangChain"),
        pytest.param({"message": {"role": "assistant", "tool_calls": [{"tool_call": {
            "id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}}]}},
            id="OpenInference"),
        pytest.param({"choices": [{"message": {"role": "assistant", "content": json.dumps([
            {"id": "c1", "type": "function", "function": {
                "name": "bash", "arguments": '{"command": "ls"}'}}])}}]}, id="calls as text"),
    ],
)  # fmt: skip
def test_a_call_in_every_form(value: dict[str, Any]) -> None:
    """The same call, however it is written, and as text too."""
    for form in (value, [value], json.dumps(value), {"messages": [value]}):
        (message,) = messages_of(form, "assistant")
        assert (message.role, _call(message), message.text) == ("assistant", CALL, "")


@pytest.mark.parametrize(
    ("value", "call_id"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "out"}, "c1"),
        ({"type": "function_call_output", "call_id": "c1", "output": "out"}, "c1"),
        ({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "out"}]}, "c1"),
        ({"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "out"}]}, "c1"),
        ({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1",
            "output": {"type": "text", "value": "out"}}]}, "c1"),
        ({"role": "user", "parts": [
            {"functionResponse": {"name": "bash", "response": {"output": "out"}}}]}, ""),
    ],
)  # fmt: skip
def test_a_result_in_every_form(value: dict[str, Any], call_id: str) -> None:
    """It answers its call, and is no prompt."""
    (message,) = messages_of(value)
    assert message.role == "tool"
    assert [(result.id, result.text) for result in message.results] == [(call_id, "out")]


@pytest.mark.parametrize(
    "value",
    [
        "go",
        '"go"',
        {"messages": [{"role": "system", "content": "x"}, USER]},
        {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
        {"contents": "go"},
        {"prompt": "go"},
        {"input": {"question": "go"}},
        {"generations": [[{"text": "go", "message": {"type": "human", "content": "go"}}]]},
        [{"type": "text", "text": "go"}],
    ],
)
def test_words_in_every_wrapping(value: Any) -> None:
    """Requests and answers are unwrapped; what belongs to nobody is by whom it is said to be."""
    spoken = [m for m in messages_of(value, "user") if m.role != "system"]
    assert [(m.role, m.text.strip('"')) for m in spoken] == [("user", "go")]


def test_thoughts_are_left_out_and_attachments_counted() -> None:
    """Pictures, sounds and files are named and counted, parts of no known kind counted."""
    content = [
        {"type": "thinking", "thinking": "hm"}, {"type": "reasoning", "content": "hm"},
        {"type": "image_url", "image_url": {}}, {"type": "input_audio"}, {"type": "blob"},
        {"inlineData": {"data": "AAAA"}}, {"type": "from-the-future", "x": 1},
        {"type": "text", "text": "go"},
    ]  # fmt: skip
    (message,) = messages_of({"role": "user", "content": content})
    assert (message.attachments, message.unknown) == (4, 1)
    assert message.text.endswith("go")
    assert "hm" not in message.text
