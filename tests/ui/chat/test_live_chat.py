"""What both faces share: history, the account, words, previews, earlier sessions."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.agent.tool_approval import ApprovalRequest
from tacit.base.display import amount
from tacit.base.errors import NotFound
from tacit.changes.change import acting_as
from tacit.changes.facts import NewFact, Rationale, remember
from tacit.changes.gate import Gate
from tacit.changes.place import fact_places
from tacit.learn import notices
from tacit.learn.notices import Notice
from tacit.traces.hosts.tacit import SessionWriter
from tacit.ui.chat import event_text, past_sessions, slash_commands
from tacit.ui.chat.event_text import call_preview
from tacit.ui.chat.input_line import InputHistory
from tacit.ui.chat.live_chat import Chat, ChatOptions, News, UsageCount, in_chat_words


def test_history_is_walked_and_kept(tmp_path: Path) -> None:
    """Back and forward go through the entries; what was being typed comes back at the end."""
    history = InputHistory(str(tmp_path / "h"))
    for text in ("one", "two\nlines", "two\nlines"):
        history.add(text)
    again = InputHistory(str(tmp_path / "h"))
    assert again.entries == ["one", "two\nlines"]
    assert [again.back("draft"), again.back(""), again.back("")] == ["two\nlines", "one", None]
    assert [again.forward(), again.forward(), again.forward()] == ["two\nlines", "draft", None]
    history.add("my password is Kx7vQ2mLw9Zr")
    assert "Kx7vQ2mLw9Zr" not in (tmp_path / "h").read_text()


@given(st.binary(max_size=200))
def test_any_history_file_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """A damaged file gives what can be read of it."""
    path = tmp_path_factory.mktemp("h") / "h"
    path.write_bytes(data + b'\n"kept"\n')
    assert InputHistory(str(path)).entries[-1] == "kept"


def test_history_is_cut_to_its_size(tmp_path: Path) -> None:
    """A file that grew long is written anew with the latest entries."""
    path = tmp_path / "h"
    path.write_text("".join(f'"{number}"\n' for number in range(3000)))
    assert len(InputHistory(str(path)).entries) == 1000
    assert path.read_text().splitlines()[-1] == '"2999"'
    assert len(path.read_text().splitlines()) == 1000


def test_a_history_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """Where the file cannot be made, history lasts as long as the program."""
    (tmp_path / "file").write_text("")
    history = InputHistory(str(tmp_path / "file" / "h"))
    history.add("one")
    assert history.back("") == "one"


def test_cost_is_said_only_where_it_is_known() -> None:
    """Unknown prices show as `?`, a mix says so, and the window gives a share."""
    usage = UsageCount()
    assert usage.shown_cost() == ""
    usage.count(Usage(1000, 50, 500))
    assert (usage.shown_cost(), usage.shown_context()) == ("$?", "1.1k tokens")
    usage.count(Usage(9000, 1000, 0, 0.25))
    usage.window = 100_000
    assert usage.shown_cost() == "$0.25+?"
    assert usage.shown_context() == "10.0k tokens (10%)"
    report = usage.report()
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
    assert event_text.shown_seconds(taken) == shown


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.text(), st.integers(), st.none())))
def test_no_argument_steers_a_terminal(arguments: dict[str, object]) -> None:
    """What a call is about is one line without control characters, whatever a model writes."""
    for text in (event_text.call_subject(arguments), event_text.arguments_text(arguments)):
        assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
    assert "\n" not in event_text.call_subject(arguments)


def test_a_preview_of_a_fact_shows_what_it_replaces(home: Path) -> None:
    """Whoever allows a fact to be noted or forgotten sees what stands under its name now."""
    folder = home / ".agents" / "memory" / "editor"
    folder.mkdir(parents=True)
    (folder / "FACT.md").write_text("---\nname: editor\ndescription: It is Emacs.\n---\n")
    arguments = {"name": "editor", "fact": "It is Helix.", "kind": "user"}
    for tool in ("remember", "forget"):
        text, kind = call_preview(
            ApprovalRequest(tool, "write", "editor", arguments), str(home / "work")
        )
        assert kind == "text"
        assert text.startswith("now, in user: It is Emacs.\n")
        assert "It is Helix." in text


def test_a_preview_is_a_diff_against_the_file(home: Path) -> None:
    """A write shows what changes in the file; one outside the project is not read."""
    (home / "work" / "a.txt").write_text("one\ntwo\n")
    (home / "outside.txt").write_text("secret\n")
    for path, gone in (("a.txt", "-two"), ("../outside.txt", "-secret")):
        arguments = {"path": path, "content": "one\nthree\n"}
        request = ApprovalRequest("write_file", "write", path, arguments)
        text, kind = call_preview(request, str(home / "work"))
        assert kind == "diff"
        assert "+three" in text
        assert (gone in text) == (path == "a.txt")


def test_a_preview_leaves_no_line_out(home: Path) -> None:
    """A line of the text may look like the head of a diff, or hold another end of a line."""
    arguments = {"path": "a.txt", "content": "++ one\n-- two\u2028--- three\x0c+++ four\n"}
    request = ApprovalRequest("write_file", "write", "a.txt", arguments)
    text, _ = call_preview(request, str(home / "work"))
    assert text.splitlines()[-2:] == ["+++ one", "+-- two�--- three�+++ four"]


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
    [one] = past_sessions.past_sessions(folder)
    assert (one.id, one.title, one.prompts) == ("20260102-000000-bbbb", "fix the build", 2)
    assert past_sessions.past_sessions("/elsewhere") == []
    spoken = past_sessions.spoken_in(one.id)
    assert [(s.who, s.text) for s in spoken] == [
        ("you", "fix the\nbuild"),
        ("tool", "run_command make"),
        ("agent", "It is broken."),
        ("you", "and now?"),
    ]
    assert spoken[1].failed
    assert past_sessions.last_turns(spoken, 1) == (spoken[3:], 1)
    assert os.path.exists(empty.path)


async def _nobody(asked: object) -> None:
    return None


@pytest.fixture
def chat(home: Path) -> Chat:
    return Chat(ChatOptions(), approve=_nobody, ask=_nobody)  # type: ignore[arg-type]


def do(chat: Chat, text: str) -> str:
    found = slash_commands.parse_slash_command(text)
    assert found is not None
    return found[0].run(chat, found[1]).text


def test_news_are_told_once_with_the_commands_of_the_chat() -> None:
    """A notice becomes a line that names /undo; the second look, and another chat, tell nothing."""
    news = News()
    assert not news.is_due
    assert news.take() == ()
    notices.announce(Notice(kind="created", skill="backup", change="20261115-1-abcd1234"))
    assert news.is_due
    (line,) = news.take()
    assert line.startswith("learned the skill backup")
    assert "undo: /undo abcd1234" in line
    assert news.take() == ()
    assert News().take() == ()


def test_while_nothing_is_written_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at an unchanged database does not open it."""
    notices.announce(Notice(kind="created", skill="backup", change="c1"))
    news = News()
    assert len(news.take()) == 1
    news.take()
    monkeypatch.setattr(notices, "pending", lambda face: pytest.fail("it was read"))
    assert not news.is_due
    assert news.take() == ()


def test_a_proposal_is_answered_in_the_chat() -> None:
    """`tacit accept` and `tacit inbox` are /inbox in a chat; what has no command there stays."""
    line = "see: tacit inbox ab · keep: tacit accept ab · drop: tacit reject ab · tacit diff ab"
    assert in_chat_words(line) == (
        "see: /inbox ab · keep: /inbox accept ab · drop: /inbox reject ab · tacit diff ab"
    )


def test_cost_names_what_learning_took(chat: Chat) -> None:
    """Below the conversation's own account stands what the background spent today."""
    assert "learning   nothing today of $2.00 a day; see: tacit cost" in do(chat, "/cost")
    budget.record_spending("review", "s1", Usage(1000, 100, 0, 0.03, "m"))
    assert "learning   $0.03 today of $2.00 a day; see: tacit cost" in do(chat, "/cost")


def test_facts_are_listed_read_and_forgotten(chat: Chat, home: Path) -> None:
    """/memory lists them, shows one with where it is from, and forgets one, which /undo undoes."""
    assert "Nothing has been noted yet" in do(chat, "/memory")
    place = next(place for place in fact_places() if place.scope == "user")
    note = NewFact(
        name="editor", says="The user writes in Helix.", kind="user", detail="Not in vim."
    )
    with acting_as("user"):
        remember(Gate(fact_places()), place.root, note, Rationale())
    assert "The user writes in Helix." in do(chat, "/memory")
    shown = do(chat, "/memory editor")
    assert "Not in vim." in shown
    assert "noted by the user" in shown
    with pytest.raises(NotFound, match="there is no fact") as raised:
        do(chat, "/memory editr")
    assert "editor" in raised.value.hint
    told = do(chat, "/memory forget editor")
    assert told.startswith("Forgotten: editor (bring it back: /undo ")
    assert "Nothing has been noted yet" in do(chat, "/memory")
    do(chat, told.partition("back: ")[2].rstrip(")"))
    assert "Helix" in do(chat, "/memory")
