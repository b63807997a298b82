"""Turns that a resumed or branched session has from an earlier one."""

from datetime import timedelta

import msgspec
import pytest

from tacit.testing.sample_sessions import made, ran
from tacit.traces.copied_turns import CopiedTurns
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
        store.write(made(*HISTORY, ["More."], session="b"))
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
