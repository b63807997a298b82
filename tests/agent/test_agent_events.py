"""An answer that is over is published with what was counted, and the counts outlive the process."""

from collections.abc import Iterator

import pytest
from talking import interrupt, say

from tacit.agent import agent_events
from tacit.agent.agent_events import Answered, ReviewBegun
from tacit.agent.conversation import resume
from tacit.base.event_bus import bus
from tacit.testing import ModelServer, Stall, Status, ToolUse, reply


@pytest.fixture
def heard() -> Iterator[list[Answered]]:
    found: list[Answered] = []
    with bus.listening(Answered, found.append):
        yield found


SKILL = {
    "action": "create",
    "name": "greet",
    "description": "Use this to greet a customer at the desk.",
    "content": "# Greet\n\n1. Say the customer's name.\n2. Offer a chair.",
}


def test_requests_and_messages_are_counted(open_session, project, heard) -> None:
    """Each request counts, and each message; a slash's own call and a failed try do not."""
    call = ToolUse("list_files", {})
    with ModelServer([call, call, "one", Status(503), "two"]) as server:
        session = open_session(server)
        say(session, "first", "second")
    assert [(a.reason, a.iterations, a.user_turns, a.requests) for a in heard] == [
        ("done", 3, 1, 3),
        ("done", 4, 2, 4),
    ]
    assert (heard[0].session, heard[0].project) == (session.conversation.session, str(project))
    assert (heard[0].skill_changes, heard[0].changed_at) == (0, None)


async def once(request: object) -> str:
    """A person who says yes to this call."""
    return "once"


def test_a_changed_skill_begins_anew_and_a_refused_one_does_not(open_session, heard) -> None:
    """What manage_skill did is a change when it landed; the requests are counted from there."""
    bad = ToolUse("manage_skill", SKILL | {"action": "edit", "old": "x", "new": "y"})
    script = [bad, "no", ToolUse("manage_skill", SKILL), ToolUse("list_files", {}), "made"]
    with ModelServer(script) as server:
        say(open_session(server, approve=once), "one", "two")
    assert [(a.iterations, a.skill_changes) for a in heard] == [(2, 0), (2, 1)]
    assert heard[1].requests == 5
    assert heard[1].changed_at is not None


def test_the_counts_survive_a_resume(open_session, heard) -> None:
    """Read back from the file, they are what they were, to the second of the change."""
    script = [ToolUse("manage_skill", SKILL), "made", "two", "three"]
    with ModelServer(script) as server:
        session = open_session(server, approve=once)
        say(session, "one", "two")
        session.close()
        session = open_session(server, resuming=session.conversation.session)
        say(session, "three")
    before, after = heard[1], heard[2]
    assert (after.iterations, after.user_turns, after.requests) == (3, 3, 4)
    assert after.skill_changes == 1
    assert before.changed_at is not None
    assert after.changed_at is not None
    assert abs((after.changed_at - before.changed_at).total_seconds()) < 5


def test_who_looks_begins_the_count_anew(open_session, heard) -> None:
    """A look for skills and one for facts each set their own count back, also after a resume."""

    def look(answered: Answered) -> None:
        bus.publish(ReviewBegun("another", skills=True, facts=True))
        if answered.requests == 2:
            bus.publish(ReviewBegun(answered.session, skills=True))
        if answered.requests == 3:
            bus.publish(ReviewBegun(answered.session, facts=True))

    with ModelServer(["a", "b", "c", "d"]) as server, bus.listening(Answered, look):
        session = open_session(server)
        say(session, "1", "2", "3", "4")
        session.close()
    assert [(a.iterations, a.user_turns) for a in heard] == [(1, 1), (2, 2), (1, 3), (2, 1)]
    counts = resume(session.conversation.session).counts
    assert (counts.iterations, counts.user_turns, counts.requests) == (2, 1, 4)


def test_a_slash_counts_as_the_users_message_only(open_session, home, heard) -> None:
    """The call that a `/name` puts into the conversation was no request, also when read back."""
    from talking import write_skill

    write_skill(home / ".agents" / "skills", "deploy", "# Deploy")
    with ModelServer(["done"]) as server:
        session = open_session(server)
        say(session, "/deploy it")
        session.close()
    assert (heard[0].requests, heard[0].user_turns) == (1, 1)
    counts = resume(session.conversation.session).counts
    assert (counts.requests, counts.user_turns) == (1, 1)


def test_an_interrupt_and_an_error_are_told_as_such(open_session, heard) -> None:
    """Interrupted, the reason says so; what was not sent at all is no answer."""

    stall = reply("a b c d e f", fault=Stall(3600, after_chunks=4))
    with ModelServer([stall, Status(401)]) as server:
        session = open_session(server)
        interrupt(session, "one")
        say(session, "/nothing-like-it", "two")
    assert [(a.reason, a.requests) for a in heard] == [("interrupted", 0), ("error", 0)]


def test_a_listener_that_fails_breaks_no_answer(open_session) -> None:
    """What a listener raises stays on the bus; the answer ends as ever."""

    def fail(answered: Answered) -> None:
        raise RuntimeError("listener")

    with ModelServer(["fine"]) as server, bus.listening(Answered, fail):
        told = say(open_session(server), "one")
    assert isinstance(told[-1], agent_events.End)
    assert told[-1].reason == "done"
