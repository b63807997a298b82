"""Turns that a resumed or branched session has from an earlier one."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.testing.sample_sessions import made, ran
from tacit.traces import host_registry
from tacit.traces.copied_turns import CopiedTurns
from tacit.traces.host import Source
from tacit.traces.store import Store
from tacit.traces.trace import Trace

HISTORY = (["Build it.", ran("make", "ok")], ["Now test.", ran("pytest", "ok"), "All pass."])


def later(trace: Trace, **delta: float) -> Trace:
    """The same at other times, with ids of calls that tell."""
    move = timedelta(**delta)
    turns = []
    for turn in trace.turns:
        steps = tuple(
            msgspec.structs.replace(s, id=f"toolu_{s.id}_0123") if hasattr(s, "id") else s
            for s in turn.steps
        )
        started = turn.started + move if turn.started else None
        turns.append(msgspec.structs.replace(turn, steps=steps, started=started))
    head = trace.head
    assert head.started
    assert head.ended
    head = msgspec.structs.replace(head, started=head.started + move, ended=head.ended + move)
    return Trace(head, tuple(turns))


@pytest.fixture
def store(home: object) -> Store:
    return Store.open()


def copied(store: Store, name: str) -> frozenset[int]:
    return CopiedTurns(store).of(store.find(name).head, store.turns(name))


def test_a_history_that_was_copied_is_known_whatever_its_times(store: Store) -> None:
    """By the ids of its calls: agents write other times when they copy. It belongs to the first."""
    with store:
        store.write(later(made(*HISTORY, ["More.", ran("x")], session="b"), hours=1))
        store.write(later(made(*HISTORY, session="a")))
        assert copied(store, "claude-code:a") == frozenset()
        assert copied(store, "claude-code:b") == {0, 1}
        head = store.find("claude-code:b").head
        assert CopiedTurns(store, head).of(head, store.turns(head.id)) == {0, 1}


def test_ids_that_tell_nothing_need_the_same_moment(store: Store) -> None:
    """`call-0-1` stands in many sessions: only the same time makes it a copy."""
    with store:
        store.write(made(*HISTORY, session="a"))
        store.write(made(*HISTORY, ["More."], session="b", copy_of="a"))
        other = made(*HISTORY, session="c")
        turns = [
            msgspec.structs.replace(t, started=t.started + timedelta(days=1))
            for t in other.turns
            if t.started
        ]
        store.write(Trace(other.head, tuple(turns)))
        assert copied(store, "claude-code:b") == {0, 1}
        assert copied(store, "claude-code:c") == frozenset()


def test_where_they_part_the_copy_ends(store: Store) -> None:
    """A branch has the beginning from the first; a third has more from the second."""
    with store:
        store.write(later(made(HISTORY[0], ["A.", ran("a")], session="a")))
        store.write(later(made(HISTORY[0], ["B.", ran("b")], session="b"), hours=1))
        store.write(later(made(HISTORY[0], ["B.", ran("b")], ["C."], session="c"), hours=2))
        assert copied(store, "claude-code:b") == {0}
        assert copied(store, "claude-code:c") == {0, 1}


def test_another_agents_session_is_no_copy(store: Store) -> None:
    with store:
        store.write(later(made(*HISTORY, session="a")))
        store.write(later(made(*HISTORY, session="b", host="pi"), hours=1))
        assert copied(store, "pi:b") == frozenset()


FORKED = "2026-01-02T00:00:00.000Z"


def rollout(folder: Path, session: str, *lines: tuple[str, Any], at: str = "", **meta: Any) -> str:
    """A file of Codex's: its head, then prompts, answers, calls and counts of tokens."""
    records = [("session_meta", {"id": session, "cwd": "/p", **meta})]
    for kind, told in lines:
        if kind == "prompt":
            records.append(("event_msg", {"type": "user_message", "message": told}))
        elif kind == "tokens":
            info = {"total_token_usage": {"output_tokens": told, "total_tokens": told},
                    "last_token_usage": {"output_tokens": 10, "total_tokens": 10}}  # fmt: skip
            records.append(("event_msg", {"type": "token_count", "info": info}))
        elif kind == "meta":
            records.append(("session_meta", {"id": told, "cwd": "/other"}))
        else:
            content = [{"type": "output_text", "text": told}]
            records.append(
                ("response_item", {"type": "message", "role": "assistant", "content": content})
            )
    path = folder / f"rollout-{session}.jsonl"
    with path.open("w") as file:
        for number, (kind, payload) in enumerate(records):
            when = at or f"2026-01-01T00:00:{number:02}.000Z"
            line = {"timestamp": when, "ordinal": number, "type": kind, "payload": payload}
            file.write(json.dumps(line) + "\n")
    return str(path)


TALK = (
    ("prompt", "Hello."), ("said", "Hi."), ("tokens", 10),
    ("prompt", "Build."), ("said", "Built."), ("tokens", 20),
)  # fmt: skip


def test_a_fork_of_codex_is_known_by_its_words(store: Store, tmp_path: Path) -> None:
    """It writes the whole history again under its own id, at the moment of the fork, and counts
    tokens on from there; turns without a call have nothing else to tell them by."""
    host = host_registry.get("codex")
    new = (("prompt", "Build."), ("said", "Built otherwise."), ("tokens", 30))
    files = [
        rollout(tmp_path, "one", *TALK),
        rollout(tmp_path, "two", ("meta", "one"), *TALK[:3], *new, at=FORKED, forked_from_id="one"),
        rollout(tmp_path, "lost", *TALK, at="2026-01-03T00:00:00Z", forked_from_id="gone"),
    ]
    with store:
        for file in files:
            store.take_in(host, Source("codex", file))
        assert copied(store, "codex:one") == frozenset()
        assert copied(store, "codex:two") == {0}
        assert copied(store, "codex:lost") == frozenset()
        two = store.trace("codex:two")
        assert (two.project, two.usage.output) == ("/p", 30)
        assert [turn.usage.output for turn in two.turns] == [10, 10]


def test_what_a_helper_of_codex_was_given_is_left_out(store: Store, tmp_path: Path) -> None:
    """Its file begins with its parent's history, and says at which record its own begins."""
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "one"}}}
    own = (("prompt", "Look."), ("said", "Seen."))
    path = rollout(
        tmp_path, "helper", ("meta", "one"), *TALK, *own,
        source=spawned, subagent_history_start_ordinal=8,
    )  # fmt: skip
    with store:
        store.take_in(host_registry.get("codex"), Source("codex", path))
        trace = store.trace("codex:helper")
    assert (trace.head.parent, trace.texts) == ("one", ("Seen.",))
    assert trace.skipped == {"copied": 7}
