"""What was learned in the background is told in a conversation, once and as a chat says it."""

from pathlib import Path

import pytest

from tacit.agent import spending
from tacit.agent.events import Usage
from tacit.base.errors import NotFound
from tacit.changes.actor import acting_as
from tacit.changes.gate import Gate
from tacit.changes.place import fact_places
from tacit.changes.remembering import Note, Why, remember
from tacit.learn import notices
from tacit.learn.notices import Notice
from tacit.ui.talk import commands
from tacit.ui.talk.news import News, here
from tacit.ui.talk.talk import Options, Talk


async def _nobody(asked: object) -> None:
    return None


@pytest.fixture
def talk(home: Path) -> Talk:
    return Talk(Options(), approve=_nobody, ask=_nobody)  # type: ignore[arg-type]


def do(talk: Talk, text: str) -> str:
    found = commands.parse(text)
    assert found is not None
    return found[0].run(talk, found[1]).text


def test_news_are_told_once_with_the_commands_of_the_chat() -> None:
    """A notice becomes a line that names /undo; the second look, and another chat, tell nothing."""
    news = News()
    assert not news.is_due
    assert news.look() == ()
    notices.announce(Notice(kind="created", skill="backup", change="20261115-1-abcd1234"))
    assert news.is_due
    (line,) = news.look()
    assert line.startswith("learned the skill backup")
    assert "undo: /undo abcd1234" in line
    assert news.look() == ()
    assert News().look() == ()


def test_while_nothing_is_written_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at an unchanged database does not open it."""
    notices.announce(Notice(kind="created", skill="backup", change="c1"))
    news = News()
    assert len(news.look()) == 1
    news.look()
    monkeypatch.setattr(notices, "pending", lambda face: pytest.fail("it was read"))
    assert not news.is_due
    assert news.look() == ()


def test_a_proposal_is_answered_in_the_chat() -> None:
    """`tacit accept` and `tacit inbox` are /inbox in a chat; what has no command there stays."""
    line = "see: tacit inbox ab · keep: tacit accept ab · drop: tacit reject ab · tacit diff ab"
    assert here(line) == (
        "see: /inbox ab · keep: /inbox accept ab · drop: /inbox reject ab · tacit diff ab"
    )


def test_cost_names_what_learning_took(talk: Talk) -> None:
    """Below the conversation's own account stands what the background spent today."""
    assert "learning   nothing today of $2.00 a day; see: tacit cost" in do(talk, "/cost")
    spending.record("review", "s1", Usage(1000, 100, 0, 0.03, "m"))
    assert "learning   $0.0300 today of $2.00 a day; see: tacit cost" in do(talk, "/cost")


def test_facts_are_listed_read_and_forgotten(talk: Talk, home: Path) -> None:
    """/memory lists them, shows one with where it is from, and forgets one, which /undo undoes."""
    assert "Nothing has been noted yet" in do(talk, "/memory")
    place = next(place for place in fact_places() if place.scope == "user")
    note = Note(name="editor", says="The user writes in Helix.", kind="user", detail="Not in vim.")
    with acting_as("user"):
        remember(Gate(fact_places()), place.root, note, Why())
    assert "The user writes in Helix." in do(talk, "/memory")
    shown = do(talk, "/memory editor")
    assert "Not in vim." in shown
    assert "noted by the user" in shown
    with pytest.raises(NotFound, match="there is no fact") as raised:
        do(talk, "/memory editr")
    assert "editor" in raised.value.hint
    told = do(talk, "/memory forget editor")
    assert told.startswith("Forgotten: editor (bring it back: /undo ")
    assert "Nothing has been noted yet" in do(talk, "/memory")
    do(talk, told.partition("back: ")[2].rstrip(")"))
    assert "Helix" in do(talk, "/memory")
