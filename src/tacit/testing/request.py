"""What a client sent to the scripted model, in one form whatever the wire format.

A script reads a Request and need not know whether it came as OpenAI, Anthropic or Gemini. The
body is also kept as it came, for tests that compare requests byte for byte.
"""

from typing import Any, Literal

import msgspec

from tacit.testing.replies import ToolUse

WireName = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
Role = Literal["system", "user", "assistant", "tool"]

HIDDEN = "[hidden]"
"""Stands in for the value of a header that carries a key."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool gave back. `name` is empty where the wire format does not repeat it."""

    id: str
    text: str
    name: str = ""
    failed: bool = False


class Message(msgspec.Struct, frozen=True):
    """One entry of the conversation. Results of tools have the role `tool` in every format."""

    role: Role
    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


class Tool(msgspec.Struct, frozen=True):
    """A tool that the client offered, with its JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the model."""

    number: int
    """1 for the first call that this server saw."""
    wire: WireName
    path: str
    """With the query, except that a `key` in it is hidden."""
    headers: dict[str, str]
    """Names in lower case; values that carry a key are hidden."""
    body: bytes
    """Exactly what was sent, after any content encoding was undone."""
    model: str
    stream: bool
    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)

    @property
    def user_texts(self) -> tuple[str, ...]:
        return tuple(message.text for message in self.messages if message.role == "user")

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Every result in the conversation, oldest first."""
        return tuple(result for message in self.messages for result in message.tool_results)

    @property
    def turn(self) -> int:
        """How often the model has already spoken in this conversation."""
        roles = [message.role for message in self.messages]
        # Responses lists each part of one reply as an item of its own, so runs are counted.
        return sum(
            role == "assistant" and (index == 0 or roles[index - 1] != "assistant")
            for index, role in enumerate(roles)
        )

    def mentions(self, text: str) -> bool:
        """Whether `text` stands anywhere in what the model is shown."""
        shown = [self.system, *(message.text for message in self.messages)]
        shown += [tool.description for tool in self.tools]
        shown += [result.text for result in self.tool_results]
        return any(text in part for part in shown)
