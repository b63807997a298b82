"""The spool as the worker reads it, with what hooks of eight agents really got."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import trace_samples
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import hook
from tacit.traces import hook_events, host_registry
from tacit.traces.hook_events import ANY_HOST, Callers, Event

PLUGGED = [host.name for host in host_registry.each() if host.signs.variable]
"""The agents that one plugin folder serves, and that are told apart by signs."""


@pytest.fixture
def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tacit's data folder, with the runtime folder as the other spool."""
    monkeypatch.setenv("TACIT_HOME", str(home / "tacit"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    (home / "run").mkdir(mode=0o700)
    for host in host_registry.each():
        if host.signs.variable:
            monkeypatch.delenv(host.signs.variable, raising=False)
    return home / "tacit" / "data"


def sent(row: dict[str, Any]) -> bytes:
    """What the hook gets: the payload of the agent, or what our extension sends."""
    more = {name: row[name] for name in ("cwd", "sessionFile") if name in row}
    return json.dumps({**row["payload"], **more}).encode()


def spool(data: Path, host: str, event: str, payload: bytes) -> None:
    assert hook.record(str(data), hook.head([host, event], len(payload)), payload)


def made(session: str, at: float, kind: Any = "turn-ended", **more: Any) -> Event:
    fields = {"host": "codex", "path": f"/{at}", "name": "Stop", **more}
    return Event(session=session, time=at, kind=kind, **fields)


@pytest.mark.parametrize("host", trace_samples.REAL)
def test_real_payloads_are_understood(data: Path, host: str) -> None:
    """Of each agent's real payloads: session, transcript, folder, and what ended."""
    sample = trace_samples.REAL[host]
    for row in sample.hook_calls():
        spool(data, host, row["event"], sent(row))
    found = hook_events.pending()
    assert {event.session for event in found} == {sample.session}
    assert {event.host for event in found} == {host}
    assert {event.cwd for event in found} == {"/home/dev/demo"}
    place = {f"/home/dev/{sample.file}"} if sample.file.endswith(".jsonl") else set()
    assert {event.transcript for event in found if event.transcript} == place
    assert tuple(event.kind for event in found if event.kind != "other") == sample.ended


@pytest.mark.parametrize("host", PLUGGED)
def test_the_plugin_tells_agents_apart(
    data: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hooks file serves five agents: which one called is seen from what it sent."""
    for row in trace_samples.REAL[host].hook_calls():
        with monkeypatch.context() as patch:
            for name in row["env"]:
                patch.setenv(name, "1")
            spool(data, ANY_HOST, row["event"], sent(row))
    assert {event.host for event in hook_events.pending()} == {host}


def test_a_session_seen_by_two_roads_counts_once(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copilot runs its own hook and that of Claude Code: one session, and it is Copilot's."""
    monkeypatch.setenv("COPILOT_CLI", "1")
    copilot = trace_samples.REAL["copilot"].hook_calls()
    for row in copilot:
        spool(data, "copilot", row["event"], sent(row))
        snake = {
            "session_id": row["payload"]["sessionId"],
            "cwd": row["payload"]["cwd"],
            "hook_event_name": {"agentStop": "Stop", "sessionEnd": "SessionEnd"}.get(row["event"]),
        }
        spool(data, "claude-code", "", json.dumps(snake).encode())
    found = hook_events.pending()
    assert len(found) == 2 * len(copilot)
    (session,) = hook_events.quiet_sessions(found, time.time())
    assert session.host == "copilot"
    assert session.transcript.endswith("events.jsonl")
    assert session.ended
    assert len(session.events) == len(found)


def test_a_turn_waits_for_quiet_and_an_end_does_not() -> None:
    """Stop counts after two minutes without another event, the end of a session at once."""
    turn = made("a", 1000.0)
    assert hook_events.quiet_sessions([turn], 1000.0 + 119) == []
    assert [s.session for s in hook_events.quiet_sessions([turn], 1000.0 + 120)] == ["a"]
    ended = hook_events.quiet_sessions([turn, made("a", 1001.0, "session-ended")], 1001.0)
    assert [(s.ended, s.last) for s in ended] == [(True, 1001.0)]
    assert hook_events.quiet_sessions([turn, made("a", 1100.0)], 1130.0) == []


def test_a_session_taken_up_again_is_not_over() -> None:
    """What comes after the end of a session, even its start, makes it wait for quiet again."""
    end = made("a", 1000.0, "session-ended")
    for kind in ("other", "turn-ended"):
        assert hook_events.quiet_sessions([end, made("a", 1005.0, kind)], 1010.0) == []


def test_equal_ids_of_two_hosts_are_two_sessions() -> None:
    """Ids that are not unique in the world belong to their host."""
    found = [made("1", 0.5, host="codex"), made("1", 0.7, host="hermes")]
    assert len(hook_events.quiet_sessions(found, 1e6)) == 2


def test_one_uuid_is_one_session_whoever_reports_it() -> None:
    """Also where the second road could not be told apart; who knows the transcript is believed."""
    session = "891b20a2-8e73-42de-ac68-1cfa9dbad896"
    found = [
        made(session, 1.0, host="copilot", transcript="/h/session-state/x/events.jsonl"),
        made(session, 2.0, host="claude-code"),
    ]
    (only,) = hook_events.quiet_sessions(found, 1e6)
    assert (only.host, only.last, len(only.events)) == ("copilot", 2.0, 2)


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    """An event from the future does not wait until the clock has caught up."""
    assert len(hook_events.quiet_sessions([made("a", 5_000_000.0)], 1000.0)) == 1


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "01a1ddf2-64a3-74f1-92ab-0ebd1877ed24"]),
            st.sampled_from(["codex", "claude-code"]),
            st.floats(0, 1000),
            st.sampled_from(["turn-ended", "session-ended", "other"]),
        ),
        max_size=12,
    )
)
@settings(deadline=None)
def test_every_event_is_in_one_session_at_most(rows: list[Any]) -> None:
    """In any order, events are grouped once, and after long quiet all of them are due."""
    given_events = [made(s, t, k, host=h, path=f"/{i}") for i, (s, h, t, k) in enumerate(rows)]
    late = hook_events.quiet_sessions(given_events, 1e6)
    assert sorted(e.path for s in late for e in s.events) == sorted(e.path for e in given_events)
    now = hook_events.quiet_sessions(given_events, 1000.0)
    assert {(s.host, s.session) for s in now} <= {(s.host, s.session) for s in late}


def test_done_takes_an_event_out_once(data: Path) -> None:
    """An event stays until it is done; done twice is no error; its host was heard then."""
    spool(data, "codex", "Stop", b'{"session_id": "abc"}')
    (event,) = hook_events.pending()
    assert hook_events.pending() == [event]
    hook_events.remove(event)
    hook_events.remove(event)
    assert hook_events.pending() == []
    assert hook_events.last_heard() == {"codex": pytest.approx(event.time, abs=0.01)}


def test_hosts_are_heard_before_their_events_are_done(data: Path) -> None:
    """What waits in the spool counts as heard, and an older event does not turn the time back."""
    spool(data, "gemini", "AfterAgent", b'{"session_id": "abc"}')
    assert hook_events.last_heard()["gemini"] == pytest.approx(time.time(), abs=60)
    hook_events.remove(made("x", 5000.0, host="gemini"))
    hook_events.remove(made("x", 4000.0, host="gemini"))
    (event,) = hook_events.pending()
    hook_events.remove(event)
    assert hook_events.last_heard()["gemini"] == pytest.approx(event.time, abs=0.01)


def test_both_spools_are_read(data: Path) -> None:
    """Events that had to go elsewhere are found together with the others, oldest first."""
    spool(data, "codex", "Stop", b'{"session_id": "first"}')
    hook.deliver(hook.spools(str(data))[1], hook.head(["pi"], 9) + b'{"sessionId": "second"}')
    assert [event.session for event in hook_events.pending()] == ["first", "second"]


def test_a_payload_that_was_cut_off_still_counts(data: Path) -> None:
    """A last message of many megabytes does not hide whose session it was."""
    payload = b'{"session_id": "abc", "cwd": "/x", "last_assistant_message": "' + b"y" * 3_000_000
    spool(data, "claude-code", "Stop", payload[: hook.KEEP])
    (event,) = hook_events.pending()
    assert (event.session, event.cwd, event.kind) == ("abc", "/x", "turn-ended")


def test_the_environment_names_the_session_where_nothing_was_sent(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that was too slow to send anything is known by the variable that it sets."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "abc")
    spool(data, "claude-code", "Stop", b"")
    (event,) = hook_events.pending()
    assert (event.host, event.session) == ("claude-code", "abc")


def test_what_cannot_be_used_is_put_aside(data: Path) -> None:
    """Rubbish is passed over, put aside by sweep, and only the newest of it is kept."""
    for i in range(25):
        spool(data, "codex", "Stop", b"\xff\x00 rubbish %d" % i)
    (data / "events" / "1.event").write_bytes(b"tacit-event 99\n\n{}")
    spool(data, "codex", "Stop", b'{"session_id": "good"}')
    assert [event.session for event in hook_events.pending()] == ["good"]
    assert hook_events.sweep() == 26
    assert hook_events.sweep() == 0
    assert len(list((data / "events" / "unusable").iterdir())) == 20
    assert [event.session for event in hook_events.pending()] == ["good"]


def test_an_event_that_lost_its_name_is_saved(data: Path) -> None:
    """Power cut between writing and naming: a whole file is an event, a part of one is removed."""
    payload = b'{"session_id": "abc"}'
    whole = hook.head(["codex", "Stop"], len(payload)) + payload
    folder = data / "events"
    hook.make_private(str(folder))
    for name, content in (("whole", whole), ("part", whole[:-3]), ("new", whole)):
        (folder / f".{name}.tmp").write_bytes(content)
    for name in ("whole", "part"):
        os.utime(folder / f".{name}.tmp", (1000, 1000))
    assert hook_events.sweep() == 0
    assert sorted(path.name for path in folder.iterdir()) == [".new.tmp", "whole.event"]
    assert [event.session for event in hook_events.pending()] == ["abc"]


def test_a_spool_of_somebody_else_is_not_read(data: Path, home: Path) -> None:
    """Events in a folder that others can write in are not taken for ours."""
    other = Path(hook.spools(str(data))[1])
    other.mkdir(mode=0o777)
    other.chmod(0o777)
    (other / "1.event").write_bytes(hook.head(["codex"], 0) + b'{"session_id": "planted"}')
    assert hook_events.pending() == []


@settings(max_examples=60, deadline=None)
@given(
    payload=st.one_of(
        st.binary(max_size=200),
        st.dictionaries(
            st.sampled_from(["session_id", "sessionId", "transcript_path", "cwd", "type"]),
            st.one_of(
                st.none(), st.integers(), st.text(max_size=20), st.lists(st.text(max_size=3))
            ),
        ).map(lambda value: json.dumps(value).encode()),
    ),
    words=st.lists(st.text(max_size=10).map(lambda word: word.replace("\0", "")), max_size=2),
)
def test_no_payload_stops_the_reader(data: Path, payload: bytes, words: list[str]) -> None:
    """Whatever was sent, reading, grouping and sweeping go on; ids never hold a path."""
    hook.record(str(data), hook.head(words, len(payload)), payload)
    found = hook_events.pending()
    assert all("/" not in event.session and event.session for event in found)
    hook_events.quiet_sessions(found, 0.0)
    hook_events.sweep()
    for event in found:
        hook_events.remove(event)
    assert hook_events.pending() == []


def shared_ground(data: Path) -> Path:
    """A spool beside the data folder, as a command in another agent's sandbox can make it."""
    other = Path(hook.spools(str(data))[1])
    other.mkdir(mode=0o700)
    return other


def test_what_lies_in_a_shared_spool_leads_nowhere(data: Path, tmp_path: Path) -> None:
    """Links, pipes and folders planted there: nothing is waited for, and no file of others goes."""
    other = shared_ground(data)
    for i in range(30):
        (tmp_path / f"file{i}").write_text("mine")
    (other / "unusable").symlink_to(tmp_path)
    os.mkfifo(other / "1.event")
    os.mkfifo(other / ".2.tmp")
    (other / "3.event").mkdir()
    (other / ".4.tmp").mkdir()
    (other / "5.event").write_text("rubbish")
    for i, size in enumerate(("\N{SUPERSCRIPT TWO}", "9" * 5000)):
        (other / f".7{i}.tmp").write_text(f"tacit-event 1\nsize {size}\n\nx")
    (other / "6.event").symlink_to(tmp_path / "file0")
    assert hook_events.pending() == []
    hook_events.sweep(time.time() + 3600)
    assert len(list(tmp_path.glob("file*"))) == 30
    assert {path.name for path in tmp_path.iterdir()} == {f"file{i}" for i in range(30)}
    assert not (other / "5.event").exists()


def test_a_shared_spool_names_no_transcript_but_where_an_agent_keeps_it(
    data: Path, home: Path, tmp_path: Path
) -> None:
    """Whoever wrote the event may have written that file: what it calls the user's words is not."""
    shared_ground(data)
    forged = tmp_path / "forged.jsonl"
    kept = home / ".claude" / "projects" / "x" / "kept.jsonl"
    kept.parent.mkdir(parents=True)
    for path in (forged, kept):
        path.write_text("{}")
        payload = json.dumps({"session_id": path.stem, "transcript_path": str(path)}).encode()
        head = hook.head(["claude-code", "Stop"], len(payload))
        for spool in hook.spools(str(data))[:2]:
            hook.deliver(spool, head + payload)
    told = {
        (e.session, Path(e.path).is_relative_to(data), e.transcript) for e in hook_events.pending()
    }
    assert told == {
        ("forged", True, str(forged)),
        ("forged", False, ""),
        ("kept", True, str(kept)),
        ("kept", False, str(kept)),
    }


def test_the_mark_of_a_start_is_taken_away(data: Path) -> None:
    """A worker that has its lock lets the next one be started as soon as it is gone."""
    data.mkdir(parents=True)
    assert hook.claim(str(data / "worker.starting"))
    hook_events.worker_started()
    hook_events.worker_started()
    assert hook.claim(str(data / "worker.starting"))


def test_a_stated_host_is_believed() -> None:
    """Only hooks that others run too are looked at twice."""
    asked = Callers().calling_host
    copilots = "/a/session-state/x/events.jsonl"
    assert asked("hermes", {"sessionId": "x"}, copilots, {}) == "hermes"
    assert asked("nobody", {"sessionId": "x"}, copilots, {}) == "nobody"
    assert asked("claude-code", {}, "/odd/place.jsonl", {"COPILOT_CLI": "1"}) == "claude-code"
    assert asked("claude-code", {"session_id": "x"}, "", {}) == "claude-code"
    both = {"CLAUDE_CODE_SESSION_ID": "y", "COPILOT_CLI": ""}
    assert asked(ANY_HOST, {"session_id": "x"}, "", both) == "copilot"
    assert asked(ANY_HOST, {"session_id": "y"}, "", both) == "claude-code"


def test_no_value_of_a_variable_is_kept_but_of_a_session(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook knows no agent: it writes the names of variables, and ids of sessions."""
    monkeypatch.setenv("SOME_API_KEY", "hidden-value")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "abc")
    head = hook.head(["claude-code", "Stop"], 0)
    assert b"hidden-value" not in head
    assert b" SOME_API_KEY= " in head + b" "
    assert b"CLAUDE_CODE_SESSION_ID=abc" in head


def test_events_of_older_versions_are_read(data: Path) -> None:
    """They held a few signs with their values, and nothing else of the environment."""
    head = b"tacit-event 1\nhost plugin\nevent Stop\ncwd /x\ntime 5.0\npid 1\nsize 0\nsigns "
    hook.deliver(hook.spools(str(data))[0], head + b"GEMINI_SESSION_ID=xyz\n\n")
    hook.deliver(hook.spools(str(data))[0], head + b"COPILOT_CLI=1\n\n" + b'{"session_id": "s"}')
    found = sorted((event.host, event.session) for event in hook_events.pending())
    assert found == [("copilot", "s"), ("gemini", "xyz")]
