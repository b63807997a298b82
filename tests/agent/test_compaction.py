"""Near the end of what a model can read, a conversation goes on from a summary."""

from pathlib import Path

import pytest
from talking import of, say, write_skill

from tacit.agent import agent_events
from tacit.testing import ModelServer, Status, ToolUse, Usage, reply

SUMMARY = "The user wants apples. Two were found in a.txt."


@pytest.fixture
def skills(home: Path) -> None:
    write_skill(home / ".agents" / "skills", "deploy", "# Deploy\n\nStep by step, to $ARGUMENTS.")


def test_a_long_conversation_is_summed_up_and_skills_are_kept(open_session, skills, wire) -> None:
    """Past the window, the next request holds a summary, the skill word for word, the message."""
    script = [reply("long", usage=Usage(900, 50)), SUMMARY, "fine", "and on"]
    with ModelServer(script) as server:
        session = open_session(server, wire, flags={"window": 1000})
        say(session, "/deploy staging")
        told = say(session, "what now?")
        assert of(agent_events.Compacted, told) == [agent_events.Compacted(SUMMARY, 950)]
        assert told[-1] == agent_events.End("done", "fine", 2)
        session.close()
        resumed = open_session(server, wire, resuming=session.conversation.session)
        say(resumed, "and then?")
    before, asking, after, last = server.requests
    assert asking.messages[: len(before.messages)] == before.messages  # the prefix served once more
    assert after.system == before.system
    assert SUMMARY in after.user_texts[0]
    assert after.user_texts[-1] == "what now?"
    assert [r.text for r in after.tool_results] == [r.text for r in before.tool_results]
    assert last.messages[: len(after.messages)] == after.messages  # and resumed from there
    assert resumed.conversation.active.keys() == {"deploy"}


def test_in_the_middle_of_a_task_it_goes_on(open_session, project, skills) -> None:
    """Between two tools the summary takes the place of all but the message, word for word."""
    (project / "a.txt").write_text("apples\n")
    use = ToolUse("read_file", {"path": "a.txt"})
    long = reply(use, usage=Usage(900, 50))
    with ModelServer([long, SUMMARY, long, SUMMARY, "finished"]) as server:
        told = say(open_session(server, flags={"window": 1000}), "find apples, at most 3")
    assert of(agent_events.Compacted, told)
    assert told[-1].text == "finished"
    for request in (server.requests[2], server.requests[-1]):
        assert request.user_texts[0].endswith("Go on from there with the next step.")
        assert request.user_texts[1:] == ("find apples, at most 3",)


def test_a_provider_that_says_too_long_is_believed(open_session, skills, project) -> None:
    """When the window is smaller than thought, a summary is made, and the request repeated."""
    message = "This model's maximum context length is 10 tokens. Please reduce the length."
    script = iter(
        ["one", Status(400, message=message), SUMMARY, "fine"],
    )
    with ModelServer(lambda request: next(script)) as server:
        session = open_session(server, "anthropic")
        say(session, "/deploy it")
        from tacit.agent.model_client import TooLong

        asking = session._loaded()._asking
        stream = asking._stream

        async def too_long(*request):
            try:
                async for item in stream(*request):
                    yield item
            except Exception as error:
                if "maximum context length" in str(error):
                    raise TooLong("too long") from error
                raise

        asking._stream = too_long
        told = say(session, "two")
    assert of(agent_events.Compacted, told)
    assert told[-1].text == "fine"


def test_a_model_that_sums_up_with_a_tool_call_changes_nothing(open_session, skills) -> None:
    """Without a summary the conversation stays as it is, and goes on."""
    use = ToolUse("list_files", {})
    with ModelServer([reply("long", usage=Usage(900, 50)), use, "fine"]) as server:
        session = open_session(server, flags={"window": 1000})
        told = say(session, "one", "two")
    assert not of(agent_events.Compacted, told)
    assert told[-1].text == "fine"
    assert server.requests[-1].user_texts == ("one", "two")
