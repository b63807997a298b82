"""Which sessions a run by hand looks at, and in which order."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.base.sections import Settings
from tacit.learn.batch import choose, named
from tacit.learn.ledger import REVIEW, Ledger
from tacit.testing.sessions import made, ran
from tacit.traces.store import Store
from tacit.traces.trace import Trace

NOW = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def store():
    opened = Store.open()
    yield opened
    opened.close()


def put(store: Store, name: str, calls: int, *, days: int, corrected: bool = False, **more) -> None:
    work = [ran(f"make part-{n}") for n in range(calls)]
    turns = [["go", *work]] + ([["No, not like that."]] if corrected else [])
    trace = made(*turns, session=name, **more)
    ended = NOW - timedelta(days=days)
    head = msgspec.structs.replace(trace.head, started=ended, ended=ended)
    store.write(Trace(head, trace.turns))


def names(chosen) -> list[str]:
    return [candidate.stored.head.session for candidate in chosen.candidates]


def test_newest_are_taken_and_the_most_promising_come_first(store: Store) -> None:
    """Two of three fit in a run: the two newest; of those the corrected one is looked at first."""
    put(store, "old-but-rich", 30, days=9, corrected=True)
    put(store, "middle", 30, days=5, corrected=True)
    put(store, "newest", 30, days=1)
    put(store, "small", 3, days=0)
    chosen = choose(store, store.sessions(), Settings(), most=2)
    assert names(chosen) == ["middle", "newest"]
    assert (chosen.left, chosen.passed) == (1, {"few calls": 1})
    assert names(choose(store, store.sessions(), Settings(), most=9)) == [
        "middle", "old-but-rich", "newest",
    ]  # fmt: skip


def test_looked_at_before_is_passed_over_until_it_goes_on(store: Store) -> None:
    """A session is due again when it went on since, or when that is asked for."""
    put(store, "s", 30, days=1)
    Ledger(store.connection).record(store.find("claude-code:s"), REVIEW, "nothing", "no")
    chosen = choose(store, store.sessions(), Settings())
    assert (names(chosen), chosen.passed) == ([], {"done before": 1})
    assert names(choose(store, store.sessions(), Settings(), again=True)) == ["s"]
    put(store, "s", 30, days=0, corrected=True)
    assert names(choose(store, store.sessions(), Settings())) == ["s"]


def test_what_is_named_is_looked_at_whatever_it_holds(store: Store) -> None:
    """No threshold holds for a session that a person names."""
    put(store, "tiny", 1, days=1)
    (candidate,) = named(store, store.sessions(), Settings()).candidates
    assert (candidate.skills, candidate.facts) == (True, True)


def test_sessions_that_changed_skills_are_passed_over(store: Store) -> None:
    """As after a session, what a session changed itself is left alone."""
    store.write(made(["go", *[ran("make")] * 30, ran("tacit edit deploy")], session="own"))
    assert choose(store, store.sessions(), Settings()).passed == {"changed skills": 1}


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(15, 25), st.booleans()), max_size=8), st.integers(1, 5))
def test_none_is_lost_and_none_comes_twice(home, rows, most) -> None:
    """Chosen, passed over and left are all the sessions there are."""
    store = Store.open()
    for number, (calls, corrected) in enumerate(rows):
        put(store, f"s{number}", calls, days=number, corrected=corrected)
    chosen = choose(store, store.sessions(), Settings(), most=most)
    due = [f"s{n}" for n, (calls, _) in enumerate(rows) if calls >= 20]
    assert sorted(names(chosen)) == sorted(due[:most])
    assert [c.weight for c in chosen.candidates] == sorted(
        (c.weight for c in chosen.candidates), reverse=True
    )
    assert chosen.left == max(len(due) - most, 0)
    store.remove([s.id for s in store.sessions()], by_user=False)
    store.connection.execute("DELETE FROM forgotten")
    store.close()
