"""Requests to each provider: what they carry for the cache, what they cost, when they count."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from talking import WIRES, of, say

from tacit.agent import agent_events, model_client, models
from tacit.agent.model_client import RequestFailed, cache_settings, lower_limit
from tacit.testing import (
    Cut,
    Endless,
    Garbage,
    ModelServer,
    Page,
    Reply,
    Stall,
    Status,
    Terms,
    ToolUse,
    Usage,
    reply,
)
from waiting import FOREVER

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


LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")


def asked_for(request: Any) -> int | None:
    """The limit on the answer in a request, wherever its format has it."""
    body = json.loads(request.body)
    everywhere = body | body.get("generationConfig", {})
    return next((everywhere[name] for name in LIMITS if name in everywhere), None)


@pytest.mark.parametrize("tokens", [0, 5, 3_000, 200_000])
def test_an_answer_is_asked_for_in_bounds(open_session, wire, tokens) -> None:
    """Whatever is left of a budget: never more than a model has, never less than it takes."""
    name = PRICED[wire][0]
    with ModelServer("one") as server:
        flags = {"model": f"{WIRES[wire][0]}:{name}", "tokens": tokens}
        say(open_session(server, wire, flags), "hi")
    wanted = asked_for(server.requests[0])
    assert wanted is not None
    assert 16 <= wanted <= 16_384
    assert wanted <= max(tokens, 16) or not tokens


def test_a_limit_that_is_refused_is_lowered(open_session, wire) -> None:
    """The same run goes on with what the provider allows, and the next asks for that at once."""
    with ModelServer(["one", "two"], strict=False, terms=Terms(output=4_000)) as server:
        session = open_session(server, wire, {"retries": 0})
        told = [say(session, text)[-1].reason for text in ("first", "second")]
    assert told == ["done", "done"]
    assert [(asked_for(request) or 0) <= 4_001 for request in server.requests] == [True, True]
    assert len(server.failures) <= 2


REFUSALS = [
    ("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for x", 8192),
    ("max_tokens is too large: 16000. This model supports at most 4096 completion tokens", 4096),
    ("Invalid 'max_output_tokens': Expected a value <= 12,000, but got 16000 instead.", 12_000),
    ("it has a maxOutputTokens value of 16000 but the range is from 1 to 8193 (exclusive)", 8193),
    ("`max_tokens` must be less than or equal to `8192`", 8192),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    ("maximum context length is 8192. You requested 16500 (500 in messages, 16000 in it)", 8192),
    ("Unsupported parameter: 'max_completion_tokens' is not supported by this server", 0),
    ("max_tokens is too large", 8_000),
    ("max_tokens: too many for gpt-4o-2024-08-06", 8_000),
    ("messages: text content blocks must be non-empty", None),
    ("The model `x` does not exist", None),
]


@pytest.mark.parametrize(("words", "lower"), REFUSALS)
def test_what_a_refusal_says_of_the_limit(words: str, lower: int | None) -> None:
    """Providers name what they allow in words of their own."""
    from pydantic_ai.exceptions import ModelHTTPError

    error = ModelHTTPError(400, "x", {"error": {"message": words}})
    assert lower_limit(error, 16_000, again=False) == lower
    assert lower_limit(ModelHTTPError(401, "x", error.body), 16_000, again=False) is None


def test_a_limit_is_halved_where_what_was_named_is_refused_too() -> None:
    """It comes to an end: below what is of use the refusal stands."""
    from pydantic_ai.exceptions import ModelHTTPError

    error = ModelHTTPError(400, "x", "max_tokens too large, the window is 8192")
    assert lower_limit(error, 8_192, again=True) == 4_096
    assert lower_limit(error, 300, again=True) is None


def test_a_stream_without_its_end_mark_is_no_answer(open_session, wire) -> None:
    """The server closed the stream as if all was said; the request is made again."""
    half = reply("I have deleted nothing but the", fault=Cut(3, clean=True))
    with ModelServer([half, "whole"]) as server:
        told = say(open_session(server, wire), "go")
    assert told[-1].text == "whole"
    assert "without an end mark" in of(agent_events.Restarted, told)[0].why


@pytest.mark.parametrize("code", [200, 502])
def test_a_web_page_is_told_as_one(open_session, wire, code) -> None:
    """What the server sent is said by its title; a page instead of an answer is not tried again,
    at the first message or at a later one."""
    answers = iter([reply("Yes.")])
    with ModelServer(lambda _: next(answers, Page(code, "Gateway down"))) as server:
        session = open_session(server, wire, {"retries": 1})
        say(session, "hello")
        told = say(session, "go")
    (error,) = of(agent_events.Error, told)
    assert "Gateway down" in error.why or "<!DOCTYPE html>" in error.why
    assert "<title>" not in error.why
    assert error.passing == (code == 502 or wire == "gemini")


def test_an_answer_without_end_is_left(open_session, wire) -> None:
    """More than the model was allowed to say cannot be an answer."""
    endless = reply("word " * 200, fault=Endless(6))
    with ModelServer(endless) as server:
        told = say(open_session(server, wire, {"retries": 0, "window": 8_000}), "go")
    (error,) = of(agent_events.Error, told)
    assert "has no end" in error.why
    assert error.passing


def test_silence_is_not_waited_for_until_all_time_is_gone(
    open_session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With half of the time gone in silence the request is made again, and answered."""
    monkeypatch.setattr(model_client, "_SILENCE", 0.05)
    with ModelServer([Stall(FOREVER), "here"]) as server:
        told = say(open_session(server, flags={"seconds": 4}), "go")
    assert told[-1].text == "here"
    assert "nothing came for 2 s" in of(agent_events.Restarted, told)[0].why


def test_a_server_that_lacks_a_way_is_asked_by_the_other(open_session) -> None:
    """Responses where Chat Completions is not known; from then on the way that works is first."""

    def script(request: Any) -> Any:
        return "fine" if request.wire == "openai-responses" else Status(404, message="Not Found")

    with ModelServer(script) as server:
        told = say(open_session(server), "one", "two")
    assert [event.reason for event in of(agent_events.End, told)] == ["done", "done"]
    assert [r.wire for r in server.requests] == ["openai-chat"] + ["openai-responses"] * 2


def test_a_model_that_is_not_there_is_told_by_the_first_refusal(open_session) -> None:
    """Both ways were tried, and the words are those of the server's own format."""

    def script(request: Any) -> Any:
        chat = request.wire == "openai-chat"
        return Status(404, message="model 'mock' not found" if chat else "page not found")

    with ModelServer(script) as server:
        (error,) = of(agent_events.Error, say(open_session(server), "one"))
    assert "model 'mock' not found" in error.why
    assert not error.passing


@pytest.mark.parametrize(("code", "after"), [(429, 3600.0), (503, 0.0)])
def test_what_may_pass_later_says_so(open_session, code, after) -> None:
    """A provider that wants an hour is not waited for, and the job may come back after it."""
    with ModelServer(Status(code, retry_after=after or None)) as server:
        told = say(open_session(server, flags={"retries": 0 if not after else 4}), "go")
    (error,) = of(agent_events.Error, told)
    assert error.passing
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reported",
    [
        Usage(-5, -7),
        Usage(100, -1),
        Usage(100, 20, -3),
        Usage(100, 20, 5_000),
        Usage(10**15, 5),
        Usage(100, 10**14),
        Usage(10**30, 20),
    ],
    ids=str,
)
def test_figures_that_cannot_be_are_not_believed(open_session, wire, reported: Usage) -> None:
    """A run goes on with what was said; tokens are counted by characters, and a note says so."""
    with ModelServer([reply("one", usage=reported), "two"], strict=False) as server:
        told = say(open_session(server, wire), "hi", "and on")
    assert not of(agent_events.Error, told)
    ends = of(agent_events.End, told)
    assert [(end.reason, end.text) for end in ends] == [("done", "one"), ("done", "two")]
    used = of(agent_events.Usage, told)[0]
    assert 0 <= used.cached_tokens <= used.input_tokens < 10_000
    assert 0 < used.output_tokens < 1_000
    assert used.estimated
    assert "counted by characters" in of(agent_events.Notice, told)[0].text


@pytest.mark.parametrize(
    ("wire", "model"),
    [("openai-responses", "gpt-5-mini"), ("gemini", "gemini-3-pro-preview")],
)
def test_what_a_model_thought_goes_back_with_its_calls(open_session, wire, model: str) -> None:
    """Signatures and reasoning, over several calls and a new message; the server refuses a
    conversation without them."""
    look = ToolUse("ls", {"path": "."})
    with ModelServer([look, look, "one", look, "two"]) as server:
        session = open_session(server, wire, {"model": f"{WIRES[wire][0]}:{model}"})
        told = say(session, "look", "again")
    assert [end.text for end in of(agent_events.End, told)] == ["one", "two"]
    sent = server.requests[-1].body
    assert (b"thoughtSignature" if wire == "gemini" else b'"reasoning"') in sent


def test_a_provider_that_repeats_the_key_is_not_quoted_with_it() -> None:
    """What it says goes to screens, logs, notices and the answers of jobs."""
    from pydantic_ai.exceptions import ModelHTTPError

    body = {"error": {"message": "Incorrect key: Bearer u8jzPde0IgxLd6GncfBAepfJBd0K\x1b[31m."}}
    told = str(RequestFailed.of(ModelHTTPError(401, "x", body)))
    assert "Incorrect key" in told
    assert "u8jzPde0" not in told
    assert told.isprintable()
