"""A host's own program as a model: a conversation in, words out, no tools.

What the rest of Tacit asks as any other model. The program is run by `host_program.py`, or by
whoever is given as `ask`: a process that may start no program has its parent do it.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from tacit.agent import host_program
from tacit.traces import values
from tacit.traces.program import Said

Ask = Callable[[str, str], Awaitable[Said]]
"""Has a program answer: its instructions, and the question. Raises `RequestFailed`."""
COST, ESTIMATED = "cost", "estimated"
"""In the details of a response: its dollars, and whether the program did not name all of it."""


class ProgramModel(Model[None]):
    """The program that a name like `cli:claude` means."""

    def __init__(self, name: str, ask: Ask | None = None) -> None:
        host_program.find(name)
        self._name = name
        self._ask = ask or self._run
        super().__init__(profile=ModelProfile(supports_tools=False))

    @property
    def model_name(self) -> str:
        return self._name.partition(":")[2]

    @property
    def system(self) -> str:
        return host_program.PREFIX

    @property
    def base_url(self) -> None:
        return None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        parameters = model_request_parameters
        async with self.request_stream(messages, model_settings, parameters) as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        instructions, text = as_text(messages)
        said = await self._ask(instructions, text)
        stream = _OneAnswer(
            model_request_parameters=model_request_parameters, _said=said, _name=self._name
        )
        sent, came, cost = said.input_tokens, said.output_tokens, said.cost
        guessed = sent is None or came is None or cost is None
        if sent is None or came is None:
            sent, came = estimate(instructions + text), estimate(said.text)
        if cost is None:
            cost = host_program.assumed_cost(sent, came)
        stream.provider_details = {"finish_reason": "stop", COST: cost, ESTIMATED: guessed}
        cached = min(said.cached_tokens, sent)
        stream._usage = RequestUsage(
            input_tokens=sent, output_tokens=came, cache_read_tokens=cached
        )
        yield stream

    async def _run(self, instructions: str, text: str) -> Said:
        """Run the program in a thread; it ends when nobody waits for it any more."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(
                host_program.ask, self._name, instructions, text, stop=stop.is_set
            )
        finally:
            stop.set()


@dataclass
class _OneAnswer(StreamedResponse):
    """An answer that came whole."""

    _said: Said
    _name: str
    _at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self.finish_reason = "stop"
        for event in self._parts_manager.handle_text_delta(
            vendor_part_id="answer", content=self._said.text
        ):
            yield event

    async def close_stream(self) -> None:
        """Nothing is open."""

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def provider_name(self) -> str:
        return host_program.PREFIX

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._at


def estimate(text: str) -> int:
    """Tokens by characters, four a token."""
    return len(text) // 4


def as_text(messages: list[ModelMessage]) -> tuple[str, str]:
    """The instructions and the conversation: the question alone, or who said what, in order."""
    instructions, turns = "", list[tuple[str, str]]()
    for message in messages:
        if message.kind == "request":
            instructions = message.instructions or instructions
        for part in message.parts:
            if part.part_kind == "system-prompt":
                instructions = f"{instructions}\n\n{part.content}".strip()
            elif part.part_kind == "user-prompt":
                turns.append(("User", values.text(part.content)))
            elif part.part_kind == "text":
                turns.append(("You", part.content))
            elif part.part_kind == "tool-call":
                turns.append(("You", f"[called {part.tool_name} with {part.args_as_json_str()}]"))
            elif part.part_kind == "tool-return":
                turns.append((f"What {part.tool_name} gave", part.model_response_str()))
            elif part.part_kind == "retry-prompt":
                turns.append(("User", part.model_response()))
    if len(turns) == 1:
        return instructions, turns[0][1]
    said = "\n\n".join(f"{who}:\n{text}" for who, text in turns)
    return instructions, f"{said}\n\nGo on with your next answer."
