"""Learned skills left out of a session by lot: for the model they are not there, for a person they
are."""

from pathlib import Path
from typing import Any

import pytest
from talking import say, write_skill

from tacit.agent import agent_events
from tacit.skills import holdback
from tacit.skills.holdback import Holdback
from tacit.testing import ModelServer
from tacit.traces.trace import OWN_HOST

LEARNED = "metadata:\n  source: auto-skill\n"


@pytest.fixture
def left_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lot falls on `bravo`."""
    folder = home / ".agents" / "skills"
    write_skill(folder, "alpha", "First.", head=LEARNED)
    write_skill(folder, "bravo", "Second.", head=LEARNED)
    draw = holdback.draw

    def drawn(library: Any, share: float) -> Holdback:
        found = draw(library, 0.0).offered
        return Holdback("", {"alpha": found["alpha"]}, {"bravo": found["bravo"]})

    monkeypatch.setattr(holdback, "draw", drawn)
    monkeypatch.setenv("TACIT_LEARN_HOLDBACK", "0.1")


def test_the_model_is_not_told_and_a_resumed_session_stays_so(
    left_out: None, open_session: Any
) -> None:
    with ModelServer(["one", "two"], strict=False) as server:
        session = open_session(server)
        say(session, "hello")
        assert "- alpha: " in str(server.requests[0].json)
        assert "- bravo: " not in str(server.requests[0].json)
        name = session.conversation.session
        drawn = holdback.drawn_by(f"{OWN_HOST}:{name}")
        assert (list(drawn.offered), list(drawn.held)) == (["alpha"], ["bravo"])
        session.close()
        again = open_session(server, resuming=name)
        say(again, "more")
        assert "bravo: Does" not in str(server.requests[1].json)


def test_a_person_who_asks_for_it_has_it_and_the_session_is_on_no_side(
    left_out: None, open_session: Any
) -> None:
    with ModelServer(["done"], strict=False) as server:
        session = open_session(server)
        told = say(session, "/bravo do it")
        assert [event.name for event in told if isinstance(event, agent_events.Skill)] == ["bravo"]
        drawn = holdback.drawn_by(f"{OWN_HOST}:{session.conversation.session}")
        assert (list(drawn.offered), list(drawn.held)) == (["alpha"], [])


def test_nothing_is_drawn_unless_it_is_wanted(
    left_out: None, open_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_LEARN_HOLDBACK", "0")
    with ModelServer(["done"], strict=False) as server:
        session = open_session(server)
        say(session, "hello")
        assert "- bravo: " in str(server.requests[0].json)
        assert holdback.drawn_by(f"{OWN_HOST}:{session.conversation.session}") == Holdback()
