"""Requests to each provider: what they carry for the cache, what they cost, when they count."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from talking import WIRES, of, say

from tacit.agent import agent_events, models
from tacit.agent.model_client import RequestFailed, cache_settings
from tacit.testing import Cut, Garbage, ModelServer, Reply, Stall, Status, ToolUse, Usage, reply

# A model of each provider whose price is public, in dollars a million: input, cached, output.
PRICED = {
    "openai-chat": ("gpt-5-mini", 0.25, 0.025, 2.0),
    "openai-responses": ("gpt-5-mini", 0.25, 0.025, 2.0),
    "anthropic": ("claude-haiku-4-5", 1.0, 0.1, 5.0),
    "gemini": ("gemini-2.5-flash", 0.3, 0.03, 2.5),
}


def test_tokens_and_cost_of_each_provider(open_session, wire) -> None:
    """Input, output, what came from the cache and the price of all three, as each reports them."""
    name, full, cached, out = PRICED[wire]
    with ModelServer([reply("one", usage=Usage(10_000, 500, 8_000))]) as server:
        session = open_session(server, wire, {"model": f"{WIRES[wire][0]}:{name}"})
        (used,) = of(agent_events.Usage, say(session, "hi"))
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (10_000, 500, 8_000)
    cost = (2_000 * full + 8_000 * cached + 500 * out) / 1e6
    assert used.cost == pytest.approx(cost)
    assert used.model == name


def test_the_prefix_is_marked_where_the_provider_wants_marks(open_session, wire) -> None:
    """Anthropic's requests carry marks on system, tools and the end; the others' need none."""
    with ModelServer(["one", "two"]) as server:
        say(open_session(server, wire), "first", "second")
    for request in server.requests:
        body: dict[str, Any] = json.loads(request.body)
        marks = request.body.count(b'"cache_control"')
        assert marks == (3 if wire == "anthropic" else 0)
        if wire == "anthropic":
            assert body["system"][-1]["cache_control"]["type"] == "ephemeral"
            assert body["tools"][-1]["cache_control"]["type"] == "ephemeral"
            assert body["cache_control"]["type"] == "ephemeral"


def test_openai_is_given_the_session_as_the_key_of_its_cache(monkeypatch) -> None:
    """Requests of one session find the same cache; other servers get nothing they may refuse."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    own = models.build(models.ModelChoice("openai:gpt-5-mini"))
    assert cache_settings(own, "s1")["openai_prompt_cache_key"] == "s1"
    other = models.build(models.ModelChoice("openai:gpt-5-mini", "http://127.0.0.1:9/v1"))
    assert "openai_prompt_cache_key" not in cache_settings(other, "s1")


BROKEN = [Cut(3), Garbage(3), Cut(3), Garbage(3)]


@pytest.mark.parametrize(("wire", "fault"), list(zip(WIRES, BROKEN, strict=True)))
def test_a_call_that_came_in_half_is_not_made(open_session, project: Path, wire, fault) -> None:
    """A response that breaks off in a call has no effect; the whole one that follows has one."""
    append = ToolUse("run_command", {"command": "echo ran >> log # " + "x" * 400}, "c1")
    whole = reply(append)
    script = iter([Reply(whole.parts, fault=fault), whole, "done"])
    with ModelServer(lambda request: next(script)) as server:
        session = open_session(server, wire, yes=True)
        told = say(session, "go")
    assert told[-1].reason == "done", told
    assert (project / "log").read_text() == "ran\n"
    assert len(of(agent_events.Restarted, told)) == 1
    assert server.requests[0].body == server.requests[1].body


def test_what_a_tool_did_is_not_done_again_when_the_next_request_fails(
    open_session, project: Path, wire
) -> None:
    """After a command ran, only the request with its result is repeated, never the command."""
    append = ToolUse("run_command", {"command": "echo ran >> log"}, "c1")
    script = iter([append, Status(503), Status(429), Cut(2), "done"])
    with ModelServer(lambda request: next(script)) as server:
        told = say(open_session(server, wire, yes=True), "go")
    assert told[-1].text == "done"
    assert (project / "log").read_text() == "ran\n"
    assert len({request.body for request in server.requests[1:]}) == 1


def test_a_wait_that_the_provider_names_is_kept(open_session, wire) -> None:
    """What the provider says of how long to wait goes before our own waits."""

    async def first_wait(session: Any) -> float:
        async with aclosing(session.say("go")) as told:
            async for event in told:
                if isinstance(event, agent_events.Restarted):
                    return event.seconds
        return 0.0

    with ModelServer([Status(429, retry_after=7)]) as server:
        assert asyncio.run(first_wait(open_session(server, wire))) == 7.0


def test_a_stall_that_ends_is_no_fault(open_session, wire) -> None:
    """A provider that pauses in the middle is waited for, and the answer is whole."""
    slow = reply("The first half and the second.", fault=Stall(0.3, after_chunks=4))
    with ModelServer([slow]) as server:
        told = say(open_session(server, wire), "go")
    assert told[-1].text == "The first half and the second."
    assert not of(agent_events.Restarted, told)


@pytest.mark.parametrize(("wire", "code"), list(zip(WIRES, (401, 404, 429, 500), strict=True)))
def test_what_the_provider_says_is_what_the_user_reads(open_session, wire, code) -> None:
    """An error is the provider's sentence with its number, not a dump of the answer's body."""
    with ModelServer(lambda request: Status(code, message="the moon is in the way")) as server:
        told = say(open_session(server, wire, {"retries": 0}), "go")
    (error,) = of(agent_events.Error, told)
    assert f"the moon is in the way (error {code})" in error.why
    assert "{" not in error.why
    assert "status_code" not in error.why


def test_a_server_that_is_not_there_is_named_as_such() -> None:
    """Nothing listens: it says so, where the address is set, and that it is worth another try."""
    from pydantic_ai.exceptions import ModelConnectionError

    fault = RequestFailed.of(ModelConnectionError("mock", "Connection error."))
    assert str(fault) == "the model's server cannot be reached: Connection error"
    assert fault.may_pass
    assert "agent.base_url" in fault.hint
