"""Steps are found by words, by a command that failed, by a file, by a skill."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tacit.testing.sample_sessions import called, made, ran, used
from tacit.traces import session_rows
from tacit.traces.session_search import Sought
from tacit.traces.store import Store
from tacit.traces.trace import ToolCall


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(str(tmp_path / "tacit.db"), lambda text: (text, {}))
    yield opened
    opened.close()


def places(store: Store, sought: Sought | str, limit: int = 20) -> list[tuple[str, str]]:
    return [(hit.id.partition(":")[2], hit.place) for hit in store.search(sought, limit=limit)]


def test_a_hit_names_the_step_that_holds_the_most_words(store: Store) -> None:
    """A prompt is step 0 of its turn; in a call all counts that it was given and printed."""
    edit = called("MultiEdit", {"edits": [{"old": "teapot", "new": "kettle"}]})
    late = ran("make report", "x " * 6000 + "the walrus line " + "y " * 6000)
    store.write(made(["Polish the kettle.", "Well.", edit, late], session="s"))
    assert places(store, "polish") == [("s", "0.0")]
    assert places(store, "teapot kettle") == [("s", "0.2")]
    assert places(store, "walrus") == [("s", "0.3")]
    (hit,) = store.search("walrus")
    assert "the walrus line" in hit.snippet.text


def test_the_better_hit_comes_first_and_beginnings_count_where_words_are_few(store: Store) -> None:
    """What was asked weighs more than what was printed; a longer word fits where more is wanted."""
    store.write(made(["Build it.", ran("x", "deploy")], session="printed"))
    store.write(made(["Deploy it."], session="asked"))
    store.write(made(["See the deployment."], session="longer"))
    assert [name for name, _ in places(store, "deploy", 2)] == ["asked", "printed"]
    assert {name for name, _ in places(store, "deploy")} == {"asked", "printed", "longer"}


def test_of_very_many_hits_the_latest_are_ranked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that stands everywhere is not ranked everywhere."""
    monkeypatch.setattr("tacit.traces.session_search._RANKED", 3)
    for number in range(6):
        store.write(made([f"run {'run ' * (6 - number)}"], session=f"s{number}"))
    assert [name for name, _ in places(store, "run", 2)] == ["s3", "s4"]


def test_by_a_command_that_failed(store: Store) -> None:
    """Not one that worked, nor another that failed in the same turn; the latest first."""
    store.write(made(["Test.", ran("npm test", "1 failing", failed=True)], session="old"))
    store.write(
        made(
            ["Test.", ran("npm test", "ok"), ran("ls npm", "test: no such file", failed=True)],
            session="worked",
        )
    )
    hidden = ran("npm test | tail -3", "3 failed, 2 passed in 1.0s")
    store.write(made(["Test.", "Now.", hidden], session="new"))
    assert places(store, Sought(failed="npm test")) == [("new", "0.2"), ("old", "0.1")]
    assert places(store, Sought(failed="npm test", words="nothing")) == []


def test_a_failed_command_is_found_by_whole_words_then_by_beginnings(store: Store) -> None:
    """Its words count as they are; where too few commands hold them, their beginnings do."""
    for number, command in enumerate(("mend it", "mending it", "mend all")):
        store.write(made(["Go.", ran(command, "no", failed=True)], session=f"s{number}"))
    assert [hit.id[-2:] for hit in store.search(Sought(failed="mend"), limit=2)] == ["s2", "s0"]
    assert [hit.id[-2:] for hit in store.search(Sought(failed="mend"))] == ["s2", "s1", "s0"]


def test_a_failed_call_of_many_words_is_found(store: Store) -> None:
    """By a word anywhere in it, though it is too long to be kept beside the turn."""
    long = called("Edit", {"old_string": "x " * 3000 + "walrus"}, "not found", failed=True)
    store.write(made(["Go.", long], session="long"))
    store.write(made(["Go.", called("Edit", {"old_string": "walrus"}, "ok")], session="worked"))
    assert places(store, Sought(failed="walrus")) == [("long", "0.1")]


def test_failed_calls_that_an_earlier_version_stored_are_found(store: Store) -> None:
    """Before the store is brought up to date, and afterwards without a look at other turns."""
    hidden = ran("npm test | tail -3", "3 failed, 2 passed in 1.0s")
    store.write(made(["Test.", hidden], session="old"))
    store.write(made(["Test.", ran("npm test", "ok")], session="worked"))
    kept = "SELECT failed_words FROM calls ORDER BY turn_id"
    now = [tuple(row) for row in store.connection.execute(kept)]
    assert now == [("npm test | tail -3",), (None,)]
    store.connection.execute("UPDATE calls SET failed_words = NULL")
    store.connection.execute("UPDATE turns SET indexed = 2")
    assert places(store, Sought(failed="npm test")) == [("old", "0.1")]
    store.index_again(1)
    assert [tuple(row) for row in store.connection.execute(kept)] == now
    read: list[str] = []
    store.connection.set_trace_callback(read.append)
    try:
        assert places(store, Sought(failed="npm test")) == [("old", "0.1")]
    finally:
        store.connection.set_trace_callback(None)
    assert sum("body FROM turns" in statement for statement in read) == 2  # by words, by beginnings


def test_by_a_file_that_was_touched(store: Store) -> None:
    """By its path or the end of it, not by a file of a longer name, nor by its mention."""
    read = called("Read", {"file_path": "/home/me/app/src/main.py"}, "print()")
    store.write(made(["Look.", read], session="touched"))
    other = called("Read", {"file_path": "/home/me/app/src/not-main.py"}, "")
    store.write(made(["See src/main.py.", other], session="mentioned"))
    for name in ("/home/me/app/src/main.py", "src/main.py", "main.py", "./main.py"):
        assert places(store, Sought(file=name)) == [("touched", "0.1")]


def test_by_skill_agent_project_and_time(store: Store) -> None:
    """Each narrows what is searched, and a skill also what is listed."""
    began = made(["Ship it."]).head.ended or datetime.now(UTC)
    store.write(made(["Ship it.", used("release")], session="a", project="/p"))
    store.write(made(["Ship it.", used("release-notes")], session="b", project="/p/inner"))
    store.write(made(["Ship it."], session="c", project="/p-other", host="codex"))
    assert [s.head.session for s in store.sessions(skill="release")] == ["a"]
    found = {
        Sought("ship", skill="release"): {"a"},
        Sought("ship", project="/p"): {"a", "b"},
        Sought("ship", host="codex"): {"c"},
        Sought("ship", since=began - timedelta(days=1)): {"a", "b", "c"},
        Sought("ship", since=began + timedelta(days=1)): set(),
    }
    for sought, names in found.items():
        assert {name for name, _ in places(store, sought)} == names


def test_what_was_indexed_before_is_indexed_anew_and_can_be_forgotten(store: Store) -> None:
    """The full text of an older version's turns is brought up to date, or taken out as it was."""
    late = ran("make", "x " * 6000 + "walrus " + "y " * 6000)
    for name in ("kept", "dropped"):
        store.write(made(["Go.", late], session=name))
        _index_as_before(store, late)
    assert places(store, "walrus") == []
    store.remove(["claude-code:dropped"], by_user=True)
    store.index_again(1)
    assert places(store, "walrus") == [("kept", "0.1")]
    assert store.search("make", limit=5)[0].id == "claude-code:kept"
    store.connection.execute("INSERT INTO turns_text (turns_text) VALUES ('integrity-check')")


def _index_as_before(store: Store, call: ToolCall) -> None:
    row = store.connection.execute("SELECT max(id), body FROM turns").fetchone()
    turn = session_rows.turn_of(row["body"])
    assert turn.steps == (msgspec.structs.replace(call, id=turn.calls[0].id),)
    now, before = session_rows.indexed_texts(turn), session_rows.indexed_texts(turn, 1)
    store.connection.execute(session_rows._DROP_TEXT, (row[0], *now))
    store.connection.execute(session_rows._ADD_TEXT, (row[0], *before))
    store.connection.execute("UPDATE turns SET indexed = 1 WHERE id = ?", (row[0],))


def test_a_phrase_is_looked_for_once(store: Store) -> None:
    """It has no beginnings that a second look could find; a word has."""
    store.write(made(["the connection was refused", "so"]))
    asked: list[str] = []
    store.connection.set_trace_callback(asked.append)
    try:
        for query, looks in (('"connection was refused"', 2), ("connection", 4)):
            asked.clear()
            assert len(places(store, query)) == 1
            assert sum("MATCH" in statement for statement in asked) == looks
    finally:
        store.connection.set_trace_callback(None)
