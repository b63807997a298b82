"""The loop: streaming, tools, failures, limits, interrupts; in all formats where it matters."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talking import WIRES, of, say, write_skill

from tacit.agent import agent_events
from tacit.agent.budget import Limits
from tacit.agent.tool import Question
from tacit.agent.tool_approval import ApprovalRequest
from tacit.testing import (
    Cut,
    Garbage,
    ModelServer,
    Reply,
    Stall,
    Status,
    ToolUse,
    Usage,
    reply,
)
from tacit.ui.chat import past_sessions
from waiting import FOREVER, LONG

READ = ToolUse("read_file", {"path": "a.txt"})


@pytest.fixture
def a_file(project: Path) -> Path:
    (project / "a.txt").write_text("the content\n")
    return project / "a.txt"


def test_a_tool_is_called_and_its_result_sent_back(open_session, a_file, wire) -> None:
    """Text streams in pieces, a call runs, its result reaches the model, the answer ends it."""
    with ModelServer([reply("Let me look. ", READ), "It says: the content."]) as server:
        told = say(open_session(server, wire), "what is in a.txt?")
    assert (
        "".join(e.delta for e in of(agent_events.Text, told))
        == "Let me look. It says: the content."
    )
    (call,), (returned,) = of(agent_events.Call, told), of(agent_events.Return, told)
    assert (call.name, call.arguments) == ("read_file", {"path": "a.txt"})
    assert not returned.failed
    assert server.requests[1].tool_results[0].text == "     1\tthe content"
    assert told[-1] == agent_events.End("done", "It says: the content.", 2)
    assert [(u.input_tokens, u.output_tokens) for u in of(agent_events.Usage, told)] == [
        (100, 20)
    ] * 2


def test_an_answer_arrives_while_it_is_made(open_session) -> None:
    """The first piece of text is there though the last one never comes."""

    async def run(session: Any) -> str:
        stream, text = session.say("hi"), ""
        async for event in stream:
            if isinstance(event, agent_events.Text):
                text = event.delta
                break
        await stream.aclose()
        return text

    with ModelServer([reply("word " * 40, fault=Stall(FOREVER, after_chunks=3))]) as server:
        assert asyncio.run(run(open_session(server))).startswith("word")


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (ToolUse("no_such_tool", {}), "There is no tool 'no_such_tool'"),
        (ToolUse("read_file", {"path": "nothing"}), "there is no nothing"),
        (ToolUse("read_file", {"pfad": "a.txt"}), "It takes: path"),
        (ToolUse("read_file", raw='{"path": "a.t'), 'not a JSON object, but: {"path": "a.t'),
        (ToolUse("read_file", raw="[1, 2]"), "not a JSON object, but: [1, 2]"),
        (ToolUse("list_files", raw='{"path": "a'), "list_files was not run"),
        (ToolUse("read_file", raw=""), "It takes: path"),
    ],
)
def test_a_bad_call_is_an_answer_to_the_model(open_session, use: ToolUse, says: str) -> None:
    """Unknown tools and wrong or broken arguments fail in words, and the run goes on."""
    with ModelServer([use, "I see."]) as server:
        told = say(open_session(server), "go")
    (returned,) = of(agent_events.Return, told)
    assert returned.failed
    assert says in returned.text
    assert told[-1].reason == "done"


def test_several_calls_in_one_response_run_in_order(open_session, project, wire) -> None:
    """Each gets its own result, in the order of the calls, in one request."""
    first = ToolUse("write_file", {"path": "n", "content": "1"}, "c1")
    second = ToolUse("read_file", {"path": "n"}, "c2")
    with ModelServer([reply(first, second), "done"]) as server:
        told = say(open_session(server, wire, yes=True), "go")
    assert [returned.failed for returned in of(agent_events.Return, told)] == [False, False]
    assert [result.id for result in server.requests[1].tool_results] == ["c1", "c2"]
    assert server.requests[1].tool_results[1].text == "     1\t1"


def test_a_command_that_fails_is_recorded_as_failed(open_session, home) -> None:
    """A non-zero exit is a failed result, for the model, the event and the trace."""
    import shutil

    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    with ModelServer([ToolUse("run_command", {"command": "echo no >&2; exit 3"}), "ah"]) as server:
        session = open_session(server, yes=True)
        told = say(session, "go")
    assert of(agent_events.Return, told)[0].failed
    assert "[exit code 3]" in server.requests[1].tool_results[0].text
    from tacit.traces.assembler import read_trace
    from tacit.traces.host import Source
    from tacit.traces.host_registry import get
    from tacit.traces.hosts.tacit import session_path

    path = session_path(session.conversation.session)
    (call,) = read_trace(get("tacit"), Source("tacit", path)).calls
    assert call.failed


@pytest.mark.parametrize("answer", ["once", "no"])
def test_approval_is_asked_and_obeyed(open_session, project, answer) -> None:
    """A write asks with what it is about; no means that nothing happened and the model knows."""
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Any:
        asked.append(request)
        return answer

    with ModelServer([ToolUse("write_file", {"path": "n", "content": "1"}), "ok"]) as server:
        told = say(open_session(server, approve=approve), "go")
    assert [(request.tool, request.subject) for request in asked] == [("write_file", "n")]
    assert (project / "n").exists() is (answer == "once")
    assert of(agent_events.Return, told)[0].failed is (answer == "no")


def test_what_cannot_work_is_refused_before_anybody_is_asked(open_session, a_file) -> None:
    """A person is not asked to allow a call that is refused anyway."""

    async def never(request: ApprovalRequest) -> Any:
        raise AssertionError("nobody is asked")

    uses = reply(
        ToolUse("edit_file", {"path": "a.txt", "old": "not there", "new": "x"}),
        ToolUse("write_file", {"path": "/etc/hosts", "content": "x"}),
    )
    with ModelServer([uses, "ok"]) as server:
        told = say(open_session(server, approve=never), "go")
    refused = [returned.text for returned in of(agent_events.Return, told) if returned.failed]
    assert "does not stand in a.txt" in refused[0]
    assert "outside the project" in refused[1]


def test_with_nobody_to_ask_the_answer_is_no(open_session, project) -> None:
    """Without a user, writes and commands are refused and questions come back unanswered."""
    uses = reply(
        ToolUse("write_file", {"path": "n", "content": "1"}),
        ToolUse("run_command", {"command": "touch n"}),
        ToolUse("ask_user", {"question": "May I?"}),
    )
    with ModelServer([uses, "ok"]) as server:
        told = say(open_session(server), "go")
    assert [returned.failed for returned in of(agent_events.Return, told)] == [True] * 3
    assert not (project / "n").exists()


def test_a_question_reaches_the_user_and_the_skill_stays(open_session, home) -> None:
    """ask_user gives the user's words back, and the skill before it is still there."""
    write_skill(home / ".agents" / "skills", "deploy", "# Deploy\n\nAsk where.")
    asked: list[Question] = []

    async def ask(question: Question) -> str | None:
        asked.append(question)
        return "to staging"

    use = ToolUse("ask_user", {"question": "Where?", "options": ["staging", "production"]})
    with ModelServer([use, "done"]) as server:
        say(open_session(server, ask=ask), "/deploy it")
    assert asked == [Question("Where?", ("staging", "production"))]
    results = [result.text for result in server.requests[-1].tool_results]
    assert "Ask where." in results[0]
    assert results[1] == "to staging"


def test_a_model_that_never_stops_is_stopped(open_session, a_file) -> None:
    """The limit on turns ends the run, and the conversation can go on after it."""
    with ModelServer(lambda request: READ if request.number <= 5 else "better") as server:
        session = open_session(server, flags={"turns": 5})
        told = say(session, "go")
        assert told[-1].reason == "turns"
        assert told[-1].turns == 5
        assert say(session, "stop it")[-1] == agent_events.End("done", "better", 1)


def test_the_limit_on_tokens(open_session, a_file) -> None:
    """No request is made once the tokens are used up, and each may answer with what is left."""
    uses = reply(READ, usage=Usage(400, 50))
    with ModelServer(lambda request: uses) as server:
        told = say(open_session(server, flags={"tokens": 1000}), "go")
    assert told[-1].reason == "tokens"
    assert len(server.requests) == 3
    most = [
        r.json.get("max_completion_tokens") or r.json.get("max_tokens") for r in server.requests
    ]
    assert most == [1000, 550, 100]


def test_the_limit_on_money_counts_known_prices(open_session, a_file, monkeypatch) -> None:
    """With a known price the budget ends the run; without one the user is told."""
    from tacit.agent import model_client

    with ModelServer(lambda request: READ if request.number < 9 else "end") as server:
        told = say(open_session(server, flags={"money": 0.01, "turns": 3}), "go")
    assert told[-1].reason == "turns"
    assert "no price is known" in of(agent_events.Notice, told)[0].text
    assert len(of(agent_events.Notice, told)) == 1

    known = model_client.usage_of

    def priced(response: Any) -> agent_events.Usage:
        usage = known(response)
        return agent_events.Usage(usage.input_tokens, usage.output_tokens, 0, 0.006)

    monkeypatch.setattr(model_client, "usage_of", priced)
    with ModelServer(lambda request: READ) as server:
        told = say(open_session(server, flags={"money": 0.01}), "go")
    assert told[-1].reason == "money"
    assert len(server.requests) == 2


def test_the_price_of_a_known_model_is_known() -> None:
    """What a request cost comes from its tokens and the public price."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from tacit.agent.model_client import usage_of

    usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)
    known, unknown = (
        ModelResponse([TextPart("x")], usage=usage, model_name=name, provider_name="openai")
        for name in ("gpt-4o", "mock")
    )
    cost = usage_of(known).cost
    assert cost is not None
    assert cost > 0.5
    assert usage_of(unknown).cost is None


@pytest.mark.parametrize("chunks", [0, 3])
def test_the_limit_on_seconds_holds_in_a_stalled_request(open_session, wire, chunks) -> None:
    """A server that falls silent holds no run beyond its seconds; what was said is kept."""
    stalled = reply("half an answer that goes on and on", fault=Stall(FOREVER, after_chunks=chunks))
    with ModelServer(lambda r: stalled if r.number == 1 else "whole") as server:
        session = open_session(server, wire, flags={"seconds": 1.0})
        session._loaded()  # importing the provider's library takes a while, and is not limited
        told = say(session, "go")
        assert told[-1].reason == "seconds"
        if of(agent_events.Text, told):
            assert "[the limit on seconds was reached]" in session.conversation.last_text()
        session._loaded().limits = Limits()  # a slow machine is not what is tried here
        assert say(session, "again")[-1].text == "whole"


def test_the_limit_on_seconds_does_not_strike_the_reader(open_session) -> None:
    """A reader that is slow between two events is not cancelled when the time is up."""

    async def run(session: Any) -> str:
        async for event in session.say("go"):
            if isinstance(event, agent_events.Text):
                await asyncio.sleep(1.0)
            if isinstance(event, agent_events.End):
                return event.reason
        return ""

    with ModelServer([reply("a", fault=Stall(FOREVER, after_chunks=3))]) as server:
        assert asyncio.run(run(open_session(server, flags={"seconds": 0.6}))) == "seconds"


FAULTS = {
    "429": Status(429, retry_after=0.01),
    "500": Status(500),
    "503": Status(503),
    "cut before": Cut(0),
    "cut in the middle": Reply(reply("Hello ", "there, you").parts, fault=Cut(4)),
    "garbage": Garbage(0),
    "garbage in the middle": Reply(reply("Hello there, you all").parts, fault=Garbage(4)),
    "nothing at all": Reply(()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_passes_is_tried_again(open_session, a_file, wire, fault) -> None:
    """After a passing fault the request is repeated, the answer whole, and no tool runs twice."""
    writes = ToolUse("write_file", {"path": "log", "content": "once"}, "c1")
    script = iter([writes, FAULTS[fault], "fine"])
    with ModelServer(lambda request: next(script)) as server:
        session = open_session(server, wire, yes=True)
        told = say(session, "go")
    assert told[-1] == agent_events.End("done", "fine", 2), of(agent_events.Error, told)
    assert len(of(agent_events.Restarted, told)) == 1
    assert len(of(agent_events.Call, told)) == 1
    assert server.requests[1].body == server.requests[2].body
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_what_does_not_pass_is_not_repeated(open_session, wire, code) -> None:
    """A wrong key, name or request fails at once, with a hint, and the next message may work."""
    asked = 2 if (wire, code) == ("openai-chat", 404) else 1  # there is another way to ask
    script = iter([Status(code)] * asked + ["fine"])
    with ModelServer(lambda request: next(script)) as server:
        session = open_session(server, wire)
        told = say(session, "go")
        assert told[-1].reason == "error"
        assert of(agent_events.Error, told)[0].hint
        assert len(server.requests) == asked
        assert say(session, "again")[-1].text == "fine"


def test_a_fault_that_stays_ends_after_the_retries(open_session) -> None:
    """So many tries as are set, with growing waits, then an error in words."""
    with ModelServer(lambda request: Status(500)) as server:
        told = say(open_session(server, flags={"retries": 2}), "go")
    assert len(server.requests) == 3
    waits = [event.seconds for event in of(agent_events.Restarted, told)]
    assert len(waits) == 2
    assert waits[1] > waits[0]
    assert told[-1].reason == "error"


def test_a_server_that_is_not_there(open_session) -> None:
    """A refused connection is an error in words, not a traceback."""
    with ModelServer([]) as server:
        session = open_session(server, flags={"retries": 1})
    told = say(session, "go")
    assert told[-1].reason == "error"
    assert of(agent_events.Error, told)


def test_a_fallback_model_takes_over(open_session, a_file, wire) -> None:
    """When the first model stays away, the next one, of any provider, answers the same talk."""
    replies = iter([ToolUse("read_file", {"path": "a.txt"}, "c1"), "one"])
    with (
        ModelServer(["from the second"]) as second,
        ModelServer(lambda request: next(replies, Status(500))) as first,
    ):
        provider, path = WIRES[wire]
        how = {"retries": 1, "fallback": (f"{provider}:other {second.url}{path}",)}
        session = open_session(first, flags=how)
        told = say(session, "before", "go")
    assert told[-1].text == "from the second"
    assert len(first.requests) == 2 + 2
    assert second.requests[0].model == "other"
    assert second.requests[0].wire == wire
    assert second.requests[0].user_texts == ("before", "go")
    assert len(second.requests[0].tool_results) == 1
    assert "turning to" in of(agent_events.Restarted, told)[-1].why


async def _interrupt(session: Any, message: str, when: Callable[[str], bool]) -> None:
    """Say something, and stop the answer when that holds, which is told the text so far."""
    said = ""

    async def talk() -> None:
        nonlocal said
        async for event in session.say(message):
            if isinstance(event, agent_events.Text):
                said += event.delta

    async def wait() -> None:
        while not when(said):
            await asyncio.sleep(0.01)

    task = asyncio.create_task(talk())
    await asyncio.wait_for(wait(), LONG)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_interrupt_in_an_answer_keeps_what_was_said(open_session, wire) -> None:
    """Cancelled in the middle of an answer, the half is in the history, which goes on."""
    half = reply("The first half and more of it", fault=Stall(FOREVER, after_chunks=6))
    with ModelServer(lambda r: half if r.number == 1 else "fine") as server:
        session = open_session(server, wire)
        asyncio.run(_interrupt(session, "go", bool))
        assert say(session, "go on")[-1].text == "fine"
    said = [m.text for m in server.requests[-1].messages if m.role == "assistant"]
    assert len(said) == 1
    assert said[0].startswith("The")
    assert said[0].endswith("[interrupted]")


def test_an_interrupt_in_a_tool_answers_every_call(open_session, project, wire) -> None:
    """The running call is told to be half done, the next one not to have run; both have results."""
    uses = reply(
        ToolUse("run_command", {"command": "touch runs; sleep 600"}, "c1"),
        ToolUse("write_file", {"path": "n", "content": "1"}, "c2"),
    )
    with ModelServer([uses, "fine"]) as server:
        session = open_session(server, wire, yes=True)
        asyncio.run(_interrupt(session, "go", lambda said: (project / "runs").exists()))
        assert say(session, "go on")[-1].text == "fine"
    results = {result.id: result.text for result in server.requests[-1].tool_results}
    assert "while it ran" in results["c1"]
    assert "not run" in results["c2"]
    assert not (project / "n").exists()


@pytest.mark.parametrize("asked", ["run_command", "ask_user"])
def test_an_interrupt_in_a_question_says_that_nothing_ran(open_session, project, asked) -> None:
    """Stopped while the user was being asked, the call is told not to have run, and has not."""

    questions: list[Any] = []

    async def never(what: Any) -> Any:
        questions.append(what)
        await asyncio.sleep(FOREVER)

    use = ToolUse(asked, {"command": "touch made", "question": "which?"}, "c1")
    with ModelServer([use, "fine"]) as server:
        session = open_session(server, approve=never, ask=never)
        asyncio.run(_interrupt(session, "go", lambda said: bool(questions)))
        assert say(session, "go on")[-1].text == "fine"
    (result,) = server.requests[-1].tool_results
    assert result.text == "[not run: interrupted by the user]"
    assert not (project / "made").exists()


def test_a_half_answer_is_kept_in_the_session_too(open_session) -> None:
    """What had arrived before an interrupt is in the file: resumed elsewhere, it is sent again."""
    half = reply("The first half and more of it", fault=Stall(FOREVER, after_chunks=6))
    with ModelServer(lambda r: half if r.number == 1 else "fine") as server:
        session = open_session(server)
        asyncio.run(_interrupt(session, "go", lambda said: "first" in said))
        session.close()
        session = open_session(server, resuming=session.conversation.session)
        say(session, "go on")
    first, second, third = server.requests[-1].messages[-3:]
    assert (first.text, third.text) == ("go", "go on")
    assert second.role == "assistant"
    assert second.text.startswith("The first")
    assert second.text.endswith("[interrupted]")
    said = [
        one.text
        for one in past_sessions.spoken_in(session.conversation.session)
        if one.who == "agent"
    ]
    assert said == [second.text, "fine"]


def test_a_person_is_not_timed(open_session) -> None:
    """A call's seconds are the tool's own, without the wait for the user's yes or answer."""

    said: list[float] = []

    async def slowly(what: Any) -> Any:
        await asyncio.sleep(1.0)
        said.append(time.monotonic())
        return "once"

    uses = [ToolUse("run_command", {"command": "true"}), ToolUse("ask_user", {"question": "?"})]
    with ModelServer([reply(*uses), "fine"]) as server:
        told = say(open_session(server, approve=slowly, ask=slowly), "go")
    ran, answered = of(agent_events.Return, told)
    assert answered.seconds == 0.0
    assert 0.0 < ran.seconds < said[1] - 1.0 - said[0]


def test_leaving_the_stream_early_interrupts(open_session) -> None:
    """A reader that stops reading ends the request."""

    async def run(session: Any) -> None:
        stream = session.say("go")
        async for event in stream:
            if isinstance(event, agent_events.Text):
                break
        await stream.aclose()

    with ModelServer([reply("a b c d e f g", fault=Stall(FOREVER, after_chunks=3))]) as server:
        session = open_session(server)
        asyncio.run(run(session))
    assert not session.conversation.open_calls()
