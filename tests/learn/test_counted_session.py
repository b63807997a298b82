"""A session is counted once, and again when something of it or of the rules has changed."""

import msgspec
import pytest

from tacit.learn import counted_session
from tacit.learn.counted_session import CountedSession, count_session, counted_sessions
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.store import Store, forget_sessions
from tacit.traces.trace import Trace

FAILED = "docs/a.md:1:2: E501 Line too long (101 > 100)\nFound 1 error."
WORK = (
    ["Never edit the lock file by hand. Update the docs please.",
     ran("mise run lint", FAILED, failed=True), ran("ruff check .", "All checks passed!"),
     called("Edit", {"file_path": "/p/app/a.py"}), called("mcp__shop__order", {"item": 4})],
    ["Commit it now", ran("git add a.py && git commit -m 'fix: a'", "[main 1234567] fix: a")],
)  # fmt: skip


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions that were read whole."""
    read: list[str] = []

    def note(store: Store, name: str) -> Trace:
        read.append(name)
        return reading(store, name)

    reading = Store.whole
    monkeypatch.setattr(Store, "whole", note)
    return read


def session(name: str, *more: list, parent: str = "") -> Trace:
    trace = made(*WORK, *more, session=name, project="/p/app")
    return Trace(msgspec.structs.replace(trace.head, parent=parent), trace.turns)


def counted(store: Store, *names: str) -> list[CountedSession]:
    return list(counted_sessions(store, [f"claude-code:{name}" for name in names]))


def test_only_what_is_new_is_read(store: Store, whole: list[str]) -> None:
    """What was counted before is as good as counted now, and no session is read for it."""
    for name in "ab":
        store.write(session(name))
    first = counted(store, "a", "b")
    assert first == [count_session(session(name)) for name in "ab"]
    assert (first[0].wishes, first[0].runs[0].rules, first[0].changes.subjects) != ((), (), ())
    store.write(session("c"))
    assert counted(store, "a", "b", "c") == [*first, count_session(session("c"))]
    assert whole == ["claude-code:a", "claude-code:b", "claude-code:c"]


def test_what_has_changed_is_counted_again(store: Store, whole: list[str]) -> None:
    """A session that went on, and one whose helper's helper did; no other."""
    for name, parent in (("main", ""), ("other", ""), ("helper", "main"), ("below", "helper")):
        store.write(session(name, parent=parent))
    counted(store, "main", "other")
    for name, parent in (("main", ""), ("below", "helper"), ("new", "below")):
        whole.clear()
        store.write(session(name, ["And", ran("make docs", "ok")], parent=parent))
        counted(store, "main", "other")
        assert whole == ["claude-code:main"]


def resumed(name: str, *more: list) -> Trace:
    """A session that begins with a copy of `a`."""
    trace = session("a", *more)
    return Trace(msgspec.structs.replace(trace.head, session=name), trace.turns)


def test_one_history_counts_once(store: Store, whole: list[str]) -> None:
    """Of a session that was resumed in another file only what is new; of a mere copy nothing."""
    store.write(session("a"))
    said = "Never edit the schema by hand. Update the docs please."
    store.write(resumed("b", [said, ran("make docs", "ok")]))
    store.write(resumed("c"))
    first, rest = counted(store, "c", "b", "a")[::-1]
    assert first == count_session(session("a"))
    assert [wish.text for wish in rest.wishes] == [said]
    assert (rest.id, len(rest.runs), rest.wishes[0].turn) == ("claude-code:b", 1, 2)
    cut = resumed("d")
    last = msgspec.structs.replace(cut.turns[-1], steps=())
    store.write(Trace(cut.head, (*cut.turns[:-1], last)))
    assert counted(store, "a", "b", "d") == [first, rest]
    whole.clear()
    assert counted(store, "a", "b", "c") == [first, rest]
    assert whole == []
    forget_sessions(store, session="claude-code:a")
    left = counted(store, "b", "c")
    assert [(one.id, len(one.copied)) for one in left] == [
        ("claude-code:b", 2),
        ("claude-code:c", 0),
    ]


def test_by_other_rules_it_is_counted_again(
    store: Store, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that are not those of the last time make everything new."""
    store.write(session("a"))
    counted(store, "a")
    monkeypatch.setattr(counted_session, "_rules", lambda: "others")
    counted(store, "a")
    assert len(whole) == 2


@pytest.mark.parametrize("gone", ["a", "helper"])
def test_what_is_forgotten_is_not_kept(store: Store, gone: str) -> None:
    """Nothing of a forgotten session is left in what was counted, nor of its helper's."""
    store.write(session("a"))
    store.write(session("helper", ["Never say gherkin again", ran("ls")], parent="a"))
    counted(store, "a")
    forget_sessions(store, session=f"claude-code:{gone}")
    assert store.connection.execute("SELECT count(*) FROM counted").fetchone()[0] == 0


def test_one_that_cannot_be_counted_keeps_no_other_from_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        store.write(session(name))

    def stumble(trace: Trace) -> frozenset[str]:
        if trace.turns and trace.id.endswith(":a"):
            raise IndexError("of a word that is not there")
        return programs(trace)

    programs = counted_session.programs_run
    monkeypatch.setattr(counted_session, "programs_run", stumble)
    assert [one.id for one in counted(store, "a", "b")] == ["claude-code:b"]
