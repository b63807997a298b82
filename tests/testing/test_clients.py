"""The real client libraries take the scripted server for their provider.

Each library is optional: where it is not installed its tests are skipped, and `test_wires.py`
still holds the formats. The same facts are checked for each, through one small adapter.
"""

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tacit.testing import Cut, ModelServer, Reply, Stall, Status, ToolUse, Usage, reply
from waiting import FOREVER, LONG

USE = ToolUse("get_weather", {"city": "Zürich", "days": [1, 2]})
SAID = reply("Let me look. ", USE, usage=Usage(120, 33, 80))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Got:
    """What a client made of a reply."""

    def __init__(self, text: str, calls: list[tuple[str, Any]], usage: tuple[int, int, int]):
        self.text, self.calls, self.usage = text, calls, usage


class Chat:
    needs = "openai"

    def __init__(self, url: str, retries: int, timeout: float) -> None:
        import openai

        self.client = openai.OpenAI(
            base_url=f"{url}/v1", api_key="k", max_retries=retries, timeout=timeout
        )
        self.errors = openai.OpenAIError
        self.timed_out = openai.APITimeoutError
        self.ask: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [
                {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
            ],
        }

    def whole(self) -> Got:
        return self._got(self.client.chat.completions.create(**self.ask))

    def streamed(self) -> Got:
        counted = {"include_usage": True}
        with self.client.chat.completions.stream(**self.ask, stream_options=counted) as stream:
            return self._got(stream.get_final_completion())

    def _got(self, answer: Any) -> Got:
        message, used = answer.choices[0].message, answer.usage
        calls = [(c.function.name, _loads(c.function.arguments)) for c in message.tool_calls or ()]
        cached = used.prompt_tokens_details.cached_tokens
        return Got(
            message.content or "", calls, (used.prompt_tokens, used.completion_tokens, cached)
        )


class Responses(Chat):
    def __init__(self, url: str, retries: int, timeout: float) -> None:
        super().__init__(url, retries, timeout)
        self.ask = {
            "model": "m",
            "input": "hi",
            "tools": [
                {
                    "type": "function",
                    "name": "get_weather",
                    "parameters": SCHEMA,
                    "strict": False,
                }
            ],
        }

    def whole(self) -> Got:
        return self._got(self.client.responses.create(**self.ask))

    def streamed(self) -> Got:
        with self.client.responses.stream(**self.ask) as stream:
            return self._got(stream.get_final_response())

    def _got(self, answer: Any) -> Got:
        items = [item for item in answer.output if item.type == "function_call"]
        used = answer.usage
        cached = used.input_tokens_details.cached_tokens
        return Got(
            answer.output_text,
            [(item.name, _loads(item.arguments)) for item in items],
            (used.input_tokens, used.output_tokens, cached),
        )


class Messages:
    needs = "anthropic"

    def __init__(self, url: str, retries: int, timeout: float) -> None:
        import anthropic

        self.client = anthropic.Anthropic(
            base_url=url, api_key="k", max_retries=retries, timeout=timeout
        )
        # The library lets the HTTP client's own error through when a stream breaks off.
        self.errors = (anthropic.AnthropicError, _transport_error())
        self.timed_out = (anthropic.APITimeoutError, _transport_error("TimeoutException"))
        self.ask: dict[str, Any] = {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
        }

    def whole(self) -> Got:
        return self._got(self.client.messages.create(**self.ask))

    def streamed(self) -> Got:
        with self.client.messages.stream(**self.ask) as stream:
            return self._got(stream.get_final_message())

    def _got(self, answer: Any) -> Got:
        used = answer.usage
        return Got(
            "".join(block.text for block in answer.content if block.type == "text"),
            [(block.name, block.input) for block in answer.content if block.type == "tool_use"],
            (
                used.input_tokens + used.cache_read_input_tokens,
                used.output_tokens,
                used.cache_read_input_tokens,
            ),
        )


class Google:
    needs = "google.genai"

    def __init__(self, url: str, retries: int, timeout: float) -> None:
        from google import genai
        from google.genai import errors, types

        again = types.HttpRetryOptions(attempts=retries + 1, initial_delay=0.05, max_delay=0.1)
        options = types.HttpOptions(base_url=url, timeout=int(timeout * 1000), retry_options=again)
        self.client = genai.Client(api_key="k", http_options=options)
        self.errors = (errors.APIError, _transport_error(), ConnectionError)
        self.timed_out = (_transport_error("TimeoutException"), TimeoutError)
        declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        self.ask: dict[str, Any] = {"model": "m", "contents": "hi", "config": config}

    def whole(self) -> Got:
        return self._got([self.client.models.generate_content(**self.ask)])

    def streamed(self) -> Got:
        return self._got(list(self.client.models.generate_content_stream(**self.ask)))

    def _got(self, answers: list[Any]) -> Got:
        parts = [part for a in answers for part in a.candidates[0].content.parts or ()]
        used = answers[-1].usage_metadata
        return Got(
            "".join(part.text or "" for part in parts),
            [(p.function_call.name, p.function_call.args) for p in parts if p.function_call],
            (
                used.prompt_token_count,
                used.candidates_token_count,
                used.cached_content_token_count,
            ),
        )


def _loads(text: str) -> Any:
    import json

    return json.loads(text)


def _transport_error(name: str = "HTTPError") -> type[Exception]:
    """The error of the HTTP client that the libraries stand on, whichever of the two it is."""
    import httpx2

    found: type[Exception] = getattr(httpx2, name)
    return found


KINDS = [Chat, Responses, Messages, Google]
Connect = Callable[..., Any]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """`connect(server, retries=0, timeout=5)` gives a client of one library, closed at the end."""
    kind = request.param
    if not _installed(kind.needs):
        pytest.skip(f"{kind.needs} is not installed")

    made = []

    def make(server: ModelServer, retries: int = 0, timeout: float = 5.0) -> Any:
        made.append(kind(server.url, retries, timeout))
        return made[-1]

    yield make
    for each in made:
        each.client.close()


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_text_calls_and_usage(connect, how) -> None:
    """Text, a tool call and three token counts arrive as the script has them."""
    with ModelServer(SAID) as server:
        got = getattr(connect(server), how)()
        request = server.requests[0]
    assert got.text == "Let me look. "
    assert got.calls == [("get_weather", USE.arguments)]
    assert got.usage == (120, 33, 80)
    assert request.tool_names == {"get_weather"}
    assert request.user_texts == ("hi",)
    assert request.stream == (how == "streamed")


@pytest.mark.parametrize("code", [429, 500])
def test_a_retry_succeeds(connect, code) -> None:
    """After an error that says when to come back, the client comes back and is served."""
    with ModelServer([Status(code, retry_after=0.05), "fine"]) as server:
        assert connect(server, retries=1).whole().text == "fine"
        assert [e.outcome for e in server.wait_ended(2)] == ["refused", "answered"]


@pytest.mark.parametrize("after", [0, 2])
def test_a_stall_meets_the_clients_time_limit(connect, after) -> None:
    """A client with a time limit leaves a stalled reply, and the server notices."""
    with ModelServer(reply("Hello there", fault=Stall(FOREVER, after))) as server:
        client = connect(server, timeout=0.3)
        with pytest.raises(client.timed_out):
            client.streamed()
        assert server.wait_ended(timeout=LONG)[0].outcome == "client left"


def test_a_cut_is_an_error(connect) -> None:
    """A connection dropped in the middle of a stream is an error, not a short reply."""
    with ModelServer(Reply(SAID.parts, fault=Cut(2))) as server:
        client = connect(server)
        with pytest.raises(client.errors):
            client.streamed()


def _pydantic_model(wire: str, url: str) -> Any:
    if wire == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel("m", provider=AnthropicProvider(base_url=url, api_key="k"))
    if wire == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel("m", provider=GoogleProvider(base_url=url, api_key="k"))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIChatModel if wire == "openai-chat" else OpenAIResponsesModel
    return kind("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k"))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_pydantic_ai_runs_a_tool(wire, streamed) -> None:
    """pydantic-ai calls the tool that the script asks for and sends its result back."""
    pytest.importorskip("pydantic_ai")
    import asyncio

    from pydantic_ai import Agent

    async def work(url: str) -> tuple[str, Any]:
        # The model is entered so that its HTTP client is closed with the loop still there.
        async with _pydantic_model(wire, url) as model:
            agent = Agent(model, system_prompt="be brief")

            @agent.tool_plain
            def weather(city: str) -> str:
                return f"sun over {city}"

            if streamed:
                async with agent.run_stream("how is it in Zürich?") as stream:
                    return await stream.get_output(), stream.usage
            result = await agent.run("how is it in Zürich?")
            return result.output, result.usage

    said = [reply(ToolUse("weather", {"city": "Zürich"}), usage=Usage(50, 10)), "It is sunny."]
    with ModelServer(said) as server:
        output, used = asyncio.run(work(server.url))
        first, second = server.requests
    assert output == "It is sunny."
    assert (used.input_tokens, used.output_tokens) == (150, 30)
    assert (first.wire, first.stream) == (wire, streamed)
    assert "be brief" in first.system
    assert [result.text for result in second.tool_results] == ["sun over Zürich"]
