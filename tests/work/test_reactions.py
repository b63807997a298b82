"""What happened becomes what is to be done: once, also when a kill lies between."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.agent.agent_events import Answered, ReviewBegun
from tacit.base import config_file
from tacit.base.errors import Unwritable
from tacit.base.event_bus import bus
from tacit.learn.ledger import Ledger
from tacit.testing.sample_sessions import made, ran
from tacit.traces import hook_events
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.store import Store
from tacit.work import job_queue, reactions, worker
from tacit.work.intake import SessionStored
from tacit.work.worker import take_up


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process listens, and starts no worker."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    reactions.listen_to_chat()


def stored(calls: int, session: str = "s-1", *, messages: int = 1, status: str = "new") -> str:
    """Publish that a session with so many calls is over."""
    turns = [[f"Message {number}."] for number in range(1, messages)]
    first: list[Any] = ["Do it.", *(ran(f"make {number}", "ok") for number in range(calls))]
    trace = made(first, *turns, session=session)
    store = Store.open()
    store.write(trace)
    store.close()
    bus.publish(SessionStored(trace.id, status, ended=True))
    assert not bus.errors, bus.errors[-1]
    return trace.id


def test_a_long_session_asks_for_a_review_once() -> None:
    """Twenty calls: one job about it, however often it is said to be over."""
    name = stored(20)
    stored(20, status="unchanged")
    first, again = job_queue.waiting_requests()
    assert (first.kind, first.key, first.job) == ("review", name, again.job)
    assert first.payload["session"] == name
    assert (first.payload["moment"], first.payload["skills"]) == ("after", True)


def test_a_short_session_asks_for_nothing_and_says_why() -> None:
    """The decision is on record with its reason."""
    name = stored(3)
    assert not job_queue.waiting_requests()
    store = Store.open()
    (decided,) = Ledger(store.connection).decisions(name)
    store.close()
    assert "3 tool calls, fewer than 20" in decided.decision.reason


def test_what_was_decided_but_not_asked_for_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two, the next worker asks: the decision alone would lose the review."""

    def killed(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    real = job_queue.request
    monkeypatch.setattr(job_queue, "request", killed)
    with pytest.raises(KeyboardInterrupt):
        stored(20)
    monkeypatch.setattr(job_queue, "request", real)
    assert not job_queue.waiting_requests()
    name = stored(20, status="unchanged")
    assert [asked.key for asked in job_queue.waiting_requests()] == [name]


def test_one_looked_at_for_facts_may_yet_be_looked_at_for_skills() -> None:
    """A session that goes on, and then has calls enough, has a job of its own for that."""
    config_file.set_values({"learn.after_messages": 3})
    stored(2, messages=4)
    stored(25, messages=6, status="grown")
    facts, skills = job_queue.waiting_requests()
    assert (facts.payload["skills"], facts.payload["facts"]) == (False, True)
    assert skills.payload["skills"]
    assert facts.job != skills.job


def test_a_session_that_is_only_imported_asks_for_nothing() -> None:
    """Only one that is over is learned from by itself."""
    trace = made(["Do it.", *(ran(f"make {number}", "ok") for number in range(30))])
    store = Store.open()
    store.write(trace)
    store.close()
    bus.publish(SessionStored(trace.id, "new"))
    assert not job_queue.waiting_requests()


def test_what_could_not_be_asked_for_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's log names the session and the cause, and the worker goes on."""

    def full(*given: Any, **named: Any) -> None:
        raise Unwritable("cannot ask for the review: No space left on device")

    stored(1)
    monkeypatch.setattr(job_queue, "request", full)
    config_file.set_values({"learn.after_calls": 1})
    worker._tell(SessionStored("claude-code:s-1", "grown", ended=True))
    log = (home / ".local/share/tacit/worker.log").read_text().splitlines()
    assert log[-1].endswith(
        "claude-code:s-1: what follows was not asked for:"
        " cannot ask for the review: No space left on device"
    )


def answered(**more: Any) -> Answered:
    given = {"reason": "done", "iterations": 10, "user_turns": 1, "requests": 10}
    return Answered("chat-1", "", skill_changes=0, changed_at=datetime.now(UTC), **(given | more))


def test_a_chat_is_looked_at_while_it_goes_on() -> None:
    """Ten requests and a final answer: a job for this part of it, and its counting begins anew."""
    heard: list[ReviewBegun] = []
    with bus.listening(ReviewBegun, heard.append):
        bus.publish(answered(iterations=9))
        bus.publish(answered(reason="interrupted"))
        assert not job_queue.waiting_requests()
        bus.publish(answered())
        bus.publish(answered(requests=20))
    assert not bus.errors
    assert [asked.key for asked in job_queue.waiting_requests()] == [
        "tacit:chat-1#10",
        "tacit:chat-1#20",
    ]
    assert [(looked.session, looked.skills, looked.facts) for looked in heard] == [
        ("chat-1", True, False)
    ] * 2


def test_a_chat_reports_itself_as_a_host_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer and at its end; the worker finds its file by the event, and stores it."""
    monkeypatch.delenv("TACIT_WORKER")
    monkeypatch.setattr(reactions, "wake", lambda: None)
    writer = SessionWriter("chat-1", project=str(home / "work"))
    writer.prompt("Do it.")
    writer.said("Done.")
    writer.close()
    bus.publish(answered(iterations=0))
    reactions.end_chats()
    reactions.end_chats()
    found = hook_events.pending()
    assert [(event.host, event.kind) for event in found] == [
        ("tacit", "turn-ended"),
        ("tacit", "session-ended"),
    ]
    (session,) = hook_events.quiet_sessions(found, found[-1].time)
    assert take_up(session)
    store = Store.open()
    assert [s.id for s in store.sessions()] == ["tacit:chat-1"]
    store.close()
    assert not hook_events.pending()
