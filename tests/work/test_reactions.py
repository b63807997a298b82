"""What happened becomes what is to be done: once, also when a kill lies between."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit import hook
from tacit.agent.agent_events import Answered, ReviewBegun
from tacit.base import config_file, database, paths
from tacit.base.errors import Unwritable
from tacit.base.event_bus import bus
from tacit.base.setting_sections import JobSettings
from tacit.learn import notices
from tacit.learn.ledger import Ledger, open_ledger
from tacit.skills.holdback import drawn_by
from tacit.testing.sample_sessions import made, ran
from tacit.traces import hook_events, host_registry
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.store import Store
from tacit.work import intake, job_queue, reactions, worker
from tacit.work.intake import SessionStored
from tacit.work.job_queue import JobQueue
from tacit.work.worker import store_ended_session

FIXTURES = Path(__file__).parent.parent / "fixtures" / "transcripts"


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process listens, and starts no worker."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    reactions.listen_to_chat()


def stored(calls: int, session: str = "s-1", *, messages: int = 1, status: str = "new") -> str:
    """Have it heard that a session with so many calls is over."""
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
    (first,) = job_queue.waiting_jobs()
    assert (first.kind, first.key, first.session) == ("review", name, name)
    assert first.payload["session"] == name
    assert (first.payload["moment"], first.payload["skills"]) == ("after", True)


def test_a_short_session_asks_for_nothing_and_says_why() -> None:
    """The decision is on record with its reason."""
    name = stored(3)
    assert not job_queue.waiting_jobs()
    store = Store.open()
    (decided,) = Ledger(store.connection).decisions(name)
    store.close()
    assert "3 tool calls, fewer than 20" in decided.decision.reason


@pytest.mark.parametrize("point", ["_insert", "add_jobs"])
def test_killed_while_it_is_decided_it_is_decided_again(
    point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the decision lands, or after it, the next worker finds one job and no second.

    What was decided then is what `tacit why` shows.
    """

    def killed(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, point, killed)
        with pytest.raises(KeyboardInterrupt):
            stored(20)
    assert len(job_queue.waiting_jobs()) == (point == "add_jobs")
    for _ in range(2):
        name = stored(20, status="unchanged")
    assert [job.key for job in job_queue.waiting_jobs()] == [name]
    with open_ledger() as ledger:
        assert [d.decision.word for d in ledger.decisions(name)] == ["due"]


def test_what_is_over_is_not_decided_on_again() -> None:
    """A session whose review is over, and that is said to have ended once more, has no job."""
    name = stored(20)
    with open_ledger() as ledger:
        ledger.close_job("review", name)
    stored(20, status="unchanged")
    assert not job_queue.waiting_jobs()


def test_one_looked_at_for_facts_may_yet_be_looked_at_for_skills() -> None:
    """A session that goes on, and then has calls enough, has a job of its own for that."""
    config_file.set_values({"learn.after_messages": 3})
    stored(2, messages=4)
    stored(25, messages=6, status="grown")
    facts, skills = job_queue.waiting_jobs()
    assert (facts.payload["skills"], facts.payload["facts"]) == (False, True)
    assert skills.payload["skills"]
    assert facts.id != skills.id


def test_a_session_that_is_only_imported_asks_for_nothing() -> None:
    """Only one that is over is learned from by itself."""
    trace = made(["Do it.", *(ran(f"make {number}", "ok") for number in range(30))])
    store = Store.open()
    store.write(trace)
    store.close()
    bus.publish(SessionStored(trace.id, "new"))
    assert not job_queue.waiting_jobs()


def test_what_cannot_be_recorded_now_is_tried_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the event stays; the log names session and cause once, and work goes on."""

    def full(*given: Any, **named: Any) -> None:
        raise Unwritable("tacit.db cannot be written: No space left on device")

    reported(home)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "decide", full)
        passes = iter([False, False, False, True, True])
        worker.work(quiet=0, idle=0, pause=lambda s: None, stop=lambda: next(passes))
    (line,) = [line for line in worker_log(home) if "No space" in line]
    assert "tacit:chat-1 is tried again: tacit.db cannot be written" in line
    assert len(hook_events.pending()) == 1
    (session,) = hook_events.quiet_sessions(hook_events.pending(), time.time(), 0)
    store_ended_session(session)
    assert not hook_events.pending()
    with open_ledger() as ledger:
        assert ledger.decisions("tacit:chat-1")


def test_what_fails_for_good_is_said_and_not_repeated(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of our own is tried three times; the log names session and cause, and all goes on."""
    tried: list[int] = []

    def broken(*given: Any, **named: Any) -> None:
        tried.append(1)
        raise ValueError("a fault of its own")

    reported(home)
    monkeypatch.setattr(Ledger, "decide", broken)
    monkeypatch.setattr(worker, "_TROUBLE", 0.0)
    monkeypatch.setattr(worker, "_LONGEST", 0.0)
    worker.work(quiet=1e9, idle=0)
    assert "tacit:chat-1: given up: ValueError: a fault of its own" in worker_log(home)[-1]
    assert len(tried) == 3
    assert not hook_events.pending()


@pytest.mark.parametrize("fault", ["locked", "full", "damaged", "late"])
def test_a_passing_fault_costs_no_session(
    fault: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever keeps a session from being stored, its event stays, and the next try does it."""
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    (source,) = intake.sources("claude-code")
    ended(source)
    monkeypatch.setattr(worker, "_PATIENCE", -1.0)
    with faulty(fault, home, Path(source.path)):
        worker.work(quiet=0, idle=0)
        assert len(hook_events.pending()) == 1
    assert "is tried again" in worker_log(home)[0]
    worker.work(quiet=0, idle=0)
    assert not hook_events.pending()
    with open_ledger() as ledger:
        assert len(ledger.latest_decisions()) == 1


def test_a_transcript_that_never_comes_is_given_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour, and the log says so."""
    monkeypatch.setattr(worker, "_PATIENCE", -1.0)
    payload = b'{"session_id": "11111111-2222-3333-4444-555555555555"}'
    head = hook.head(["codex", "SessionEnd"], len(payload))
    assert hook.record(paths.folders().data, head, payload)
    worker.work(quiet=0, idle=0)
    assert len(hook_events.pending()) == 1
    monkeypatch.setattr(worker, "_NEVER_CAME", -1.0)
    worker.work(quiet=0, idle=0)
    assert not hook_events.pending()
    assert "given up: no transcript was found" in worker_log(home)[-1]


@contextmanager
def faulty(fault: str, home: Path, transcript: Path) -> Iterator[None]:
    """The machine with one thing wrong."""
    data = home / ".local/share/tacit/tacit.db"
    with pytest.MonkeyPatch.context() as patched:
        if fault == "late":
            transcript.rename(home / "aside")
            yield
            (home / "aside").rename(transcript)
        elif fault == "damaged":
            data.write_bytes(b"not a database, but long enough to be taken for one" * 100)
            yield
            data.unlink()
        elif fault == "locked":
            for opening in (database.connect, database.opened.__wrapped__):  # type: ignore[attr-defined]
                patched.setitem(opening.__kwdefaults__, "wait", 0.05)
            with Store.open() as store:
                store.connection.execute("BEGIN EXCLUSIVE")
                yield
        else:

            def full(*given: Any) -> None:
                raise Unwritable("tacit.db cannot be written: No space left on device")

            patched.setattr(Store, "take_in", full)
            yield


def ended(source: Any) -> None:
    """Claude Code has said that the session is over."""
    payload = json.dumps({"session_id": Path(source.path).stem, "transcript_path": source.path})
    head = hook.head(["claude-code", "SessionEnd"], len(payload))
    assert hook.record(paths.folders().data, head, payload.encode())


@pytest.fixture
def heard(home: Path) -> Path:
    """A home in which Claude Code was used, has called before, and left two sessions behind."""
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    mark = home / ".local/share/tacit/heard/claude-code"
    mark.parent.mkdir(parents=True)
    mark.write_text(f"{time.time() - 9000}")
    (source,) = intake.sources("claude-code")
    for name, age in ("killed", 500), ("running", 0), ("old", 9500):
        copy = Path(source.path).with_name(f"{name}.jsonl")
        copy.write_text(Path(source.path).read_text().replace(Path(source.path).stem, name))
        os.utime(copy, (time.time() - age, time.time() - age))
    os.unlink(source.path)
    return home


def test_a_killed_session_is_found_without_its_resume(heard: Path) -> None:
    """No event spoke of it: it is stored and decided on all the same, once; one that goes on, or
    ended before the agent first called, is not."""
    looks = reactions.MissedSessions()
    assert looks.take_in(120) == 1
    assert looks.take_in(120) == 0
    assert reactions.MissedSessions().take_in(120) == 0
    with Store.open() as store, open_ledger() as ledger:
        assert [s.id for s in store.sessions()] == ["claude-code:killed"]
        assert list(ledger.latest_decisions()) == ["claude-code:killed"]


def test_what_was_stored_and_never_decided_on_is_found(heard: Path) -> None:
    """An import before the hook, or a kill between storing and asking, loses no review."""
    with Store.open() as store:
        intake.take_in(store, intake.sources("claude-code"))
    with open_ledger() as ledger:
        assert not ledger.latest_decisions()
    worker.work(quiet=120, idle=0)
    with open_ledger() as ledger:
        assert list(ledger.latest_decisions()) == ["claude-code:killed"]


def reported(home: Path) -> None:
    """A session of our own has ended, and its event is in the spool."""
    writer = SessionWriter("chat-1", project=str(home / "work"))
    writer.prompt("Do it.")
    writer.said("Done.")
    writer.close()
    payload = b'{"session_id": "chat-1", "hook_event_name": "SessionEnd"}'
    assert hook.record(
        paths.folders().data, hook.head(["tacit", "SessionEnd"], len(payload)), payload
    )


def worker_log(home: Path) -> list[str]:
    return (home / ".local/share/tacit/worker.log").read_text().splitlines()


def test_another_process_reports_what_it_stored(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tacit watch` writes an event, as a hook does, and the worker decides: once."""
    monkeypatch.delenv("TACIT_WORKER")
    monkeypatch.setattr(reactions, "wake", lambda: None)
    monkeypatch.setenv("GEMINI_SESSION_ID", "of-the-shell-that-watch-runs-in")
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    (source,) = intake.sources("claude-code")
    with Store.open() as store:
        assert intake.take_in(store, [source], ended=True)[0].counts == {"new": 1}
    assert not bus.errors
    (event,) = hook_events.pending()
    assert (event.host, event.kind, event.transcript) == (
        "claude-code",
        "session-ended",
        source.path,
    )
    with open_ledger() as ledger:
        assert ledger.latest_decisions() == {}
    worker.work(quiet=0, idle=0)
    with open_ledger() as ledger:
        assert list(ledger.latest_decisions()) == [f"claude-code:{event.session}"]


def answered(**more: Any) -> Answered:
    given = {"reason": "done", "iterations": 10, "user_turns": 1, "requests": 10}
    return Answered("chat-1", "", skill_changes=0, changed_at=datetime.now(UTC), **(given | more))


def test_a_chat_is_looked_at_while_it_goes_on() -> None:
    """Ten requests and a final answer: a job for this part of it, and its counting begins anew."""
    heard: list[ReviewBegun] = []
    with bus.listening(ReviewBegun, heard.append):
        bus.publish(answered(iterations=9))
        bus.publish(answered(reason="interrupted"))
        assert not job_queue.waiting_jobs()
        bus.publish(answered())
        bus.publish(answered(requests=20))
    assert not bus.errors
    assert [job.key for job in job_queue.waiting_jobs()] == [
        "tacit:chat-1#10",
        "tacit:chat-1#20",
    ]
    assert [(looked.session, looked.skills, looked.facts) for looked in heard] == [
        ("chat-1", True, False)
    ] * 2


def test_a_chat_reports_itself_as_a_host_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer and at its end; the worker finds its file by the event, and stores it, with
    what the session drew lots for."""
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
    monkeypatch.setenv("TACIT_WORKER", "1")
    lots = {"offered": {}, "held": {"geese": "d1"}}  # as pi and opencode tell them
    found = [msgspec.structs.replace(event, drawn=lots) for event in found]
    (session,) = hook_events.quiet_sessions(found, found[-1].time)
    assert store_ended_session(session)
    assert drawn_by("tacit:chat-1").held == {"geese": "d1"}
    store = Store.open()
    assert [s.id for s in store.sessions()] == ["tacit:chat-1"]
    store.close()
    assert not hook_events.pending()


def test_a_chat_that_is_killed_after_its_decision_loses_nothing() -> None:
    """Before it could report, its job is on record; the next worker finds it at its first turn."""
    from tacit.base.setting_sections import Settings
    from tacit.learn.review.review_triggers import decide_in_chat

    assert decide_in_chat(answered(), Settings()).due
    assert not hook_events.pending()
    assert [job.key for job in JobQueue(JobSettings())._waiting()] == ["tacit:chat-1#10"]


def test_an_agent_that_is_not_understood_is_told_of_once(home: Path) -> None:
    """The next worker that reads its sessions says so, in the log and by one notice."""
    shutil.copytree(FIXTURES / "claude" / "home", home, dirs_exist_ok=True)
    (source,) = intake.sources("claude-code")
    text = Path(source.path).read_text().replace('"tool_use"', '"tool_invocation"')
    Path(source.path).write_text(text)
    ended(source)
    worker.work(quiet=0, idle=0)
    worker.work(quiet=0, idle=0)
    (line,) = [line for line in worker_log(home) if "is not understood" in line]
    assert "Claude Code 2.1.325 is not understood in 1 session" in line
    (notice,) = [n for n in notices.pending("inbox") if n.kind == "deaf"]
    assert "4 tool results without a call" in notices.line(notice)


def test_a_helper_that_ends_later_makes_its_parent_due() -> None:
    """A parent that was over is decided on again; one that was not is left until it is."""

    def ended_with(session: str, calls: int, parent: str = "") -> None:
        trace = made(["Do it.", *(ran(f"make {n}", "ok") for n in range(calls))], session=session)
        with Store.open() as store:
            head = msgspec.structs.replace(trace.head, parent=parent)
            store.write(msgspec.structs.replace(trace, head=head))
        bus.publish(SessionStored(trace.id, "new", ended=True))
        assert not bus.errors, bus.errors[-1]

    ended_with("h1", 15, "main")
    assert not job_queue.waiting_jobs()
    ended_with("main", 2)
    assert not job_queue.waiting_jobs()
    ended_with("h2", 15, "h1")
    (job,) = job_queue.waiting_jobs()
    assert job.session == "claude-code:main"


def test_a_host_that_cannot_be_searched_stops_no_worker(
    heard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What hosts of other packages raise is said in the log, and what was told of is stored."""

    def broken(*given: Any) -> None:
        raise RuntimeError("a plugin's own fault")

    ended(next(iter(intake.sources("claude-code"))))
    monkeypatch.setattr(type(host_registry.get("claude-code")), "find", broken)
    worker.work(quiet=0, idle=0)
    assert not hook_events.pending()
    said = "looking for sessions: RuntimeError: a plugin's own fault"
    assert any(said in line for line in worker_log(heard))
