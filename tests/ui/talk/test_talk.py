"""What both faces share: history, the account, words, previews, earlier sessions."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.agent.approval import Request
from tacit.agent.events import Usage
from tacit.base.amounts import amount
from tacit.traces.hosts.tacit import SessionWriter
from tacit.ui.talk import past, words
from tacit.ui.talk.history import History
from tacit.ui.talk.preview import preview
from tacit.ui.talk.tally import Tally


def test_history_is_walked_and_kept(tmp_path: Path) -> None:
    """Back and forward go through the entries; what was being typed comes back at the end."""
    history = History(str(tmp_path / "h"))
    for text in ("one", "two\nlines", "two\nlines"):
        history.add(text)
    again = History(str(tmp_path / "h"))
    assert again.entries == ["one", "two\nlines"]
    assert [again.back("draft"), again.back(""), again.back("")] == ["two\nlines", "one", None]
    assert [again.forward(), again.forward(), again.forward()] == ["two\nlines", "draft", None]


@given(st.binary(max_size=200))
def test_any_history_file_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """A damaged file gives what can be read of it."""
    path = tmp_path_factory.mktemp("h") / "h"
    path.write_bytes(data + b'\n"kept"\n')
    assert History(str(path)).entries[-1] == "kept"


def test_history_is_cut_to_its_size(tmp_path: Path) -> None:
    """A file that grew long is written anew with the latest entries."""
    path = tmp_path / "h"
    path.write_text("".join(f'"{number}"\n' for number in range(3000)))
    assert len(History(str(path)).entries) == 1000
    assert path.read_text().splitlines()[-1] == '"2999"'
    assert len(path.read_text().splitlines()) == 1000


def test_a_history_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """Where the file cannot be made, history lasts as long as the program."""
    (tmp_path / "file").write_text("")
    history = History(str(tmp_path / "file" / "h"))
    history.add("one")
    assert history.back("") == "one"


def test_cost_is_said_only_where_it_is_known() -> None:
    """Unknown prices show as `?`, a mix says so, and the window gives a share."""
    tally = Tally()
    assert tally.shown_cost() == ""
    tally.count(Usage(1000, 50, 500))
    assert (tally.shown_cost(), tally.shown_context()) == ("$?", "1.1k tokens")
    tally.count(Usage(9000, 1000, 0, 0.25))
    tally.window = 100_000
    assert tally.shown_cost() == "$0.25+?"
    assert tally.shown_context() == "10.0k tokens (10%)"
    report = tally.report()
    assert "10,000 tokens, 5% of it from the cache" in report
    assert "1 requests without a known price" in report


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (99_949, "99.9k"),
        (128_000, "128k"),
        (1_250_000, "1.2M"),
    ],
)
def test_amounts_are_short(number: int, shown: str) -> None:
    """Tokens in at most five characters."""
    assert amount(number) == shown


@pytest.mark.parametrize(
    ("taken", "shown"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (200.0, "3 min 20 s")]
)
def test_times_are_short(taken: float, shown: str) -> None:
    """Seconds as people say them."""
    assert words.seconds(taken) == shown


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.text(), st.integers(), st.none())))
def test_no_argument_steers_a_terminal(arguments: dict[str, object]) -> None:
    """What a call is about is one line without control characters, whatever a model writes."""
    for text in (words.subject(arguments), words.arguments_text(arguments)):
        assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
    assert "\n" not in words.subject(arguments)


def test_a_preview_of_a_fact_shows_what_it_replaces(home: Path) -> None:
    """Whoever allows a fact to be noted or forgotten sees what stands under its name now."""
    folder = home / ".agents" / "memory" / "editor"
    folder.mkdir(parents=True)
    (folder / "FACT.md").write_text("---\nname: editor\ndescription: It is Emacs.\n---\n")
    arguments = {"name": "editor", "fact": "It is Helix.", "kind": "user"}
    for tool in ("remember", "forget"):
        text, kind = preview(Request(tool, "write", "editor", arguments), str(home / "work"))
        assert kind == "text"
        assert text.startswith("now, in user: It is Emacs.\n")
        assert "It is Helix." in text


def test_a_preview_is_a_diff_against_the_file(home: Path) -> None:
    """A write shows what changes in the file; one outside the project is not read."""
    (home / "work" / "a.txt").write_text("one\ntwo\n")
    (home / "outside.txt").write_text("secret\n")
    for path, gone in (("a.txt", "-two"), ("../outside.txt", "-secret")):
        arguments = {"path": path, "content": "one\nthree\n"}
        request = Request("write_file", "write", path, arguments)
        text, kind = preview(request, str(home / "work"))
        assert kind == "diff"
        assert "+three" in text
        assert (gone in text) == (path == "a.txt")


def test_an_earlier_session_is_told_briefly(home: Path) -> None:
    """Sessions are listed by what was said first; those where nothing was said are not."""
    folder = str(home / "work")
    empty = SessionWriter("20260101-000000-aaaa", project=folder)
    empty.close()
    writer = SessionWriter("20260102-000000-bbbb", project=folder)
    writer.prompt("fix the\nbuild")
    writer.called("1", "run_command", {"command": "make"})
    writer.returned("1", "no", failed=True, error="no")
    writer.said("It is broken.")
    writer.prompt("and now?")
    writer.close()
    with open(writer.path, "ab") as file:
        file.write(b'{"type":"prompt","te')
    [one] = past.sessions(folder)
    assert (one.id, one.title, one.prompts) == ("20260102-000000-bbbb", "fix the build", 2)
    assert past.sessions("/elsewhere") == []
    spoken = past.said(one.id)
    assert [(s.who, s.text) for s in spoken] == [
        ("you", "fix the\nbuild"),
        ("tool", "run_command make"),
        ("agent", "It is broken."),
        ("you", "and now?"),
    ]
    assert spoken[1].failed
    assert past.recent(spoken, 1) == (spoken[3:], 1)
    assert os.path.exists(empty.path)
