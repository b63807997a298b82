"""Every decision about a session is recorded, and a look happens once."""

from pathlib import Path

import pytest

from tacit.agent.answered import Answered
from tacit.base import paths
from tacit.base.sections import LearnSettings, MemorySettings, Settings
from tacit.learn.considering import consider, consider_chat, wanted
from tacit.learn.ledger import REVIEW, Ledger
from tacit.testing.sessions import made, ran
from tacit.traces.store import Store

SETTINGS = Settings()


@pytest.fixture
def store():
    opened = Store.open()
    yield opened
    opened.close()


def calls(number: int) -> list:
    return [ran(f"make part-{n}") for n in range(number)]


def answered(**more) -> Answered:
    facts = {"session": "s1", "project": "/p", "reason": "done", "iterations": 0, "user_turns": 0}
    return Answered(**facts | {"requests": 1, "skill_changes": 0} | more)


def test_a_session_that_grows_is_looked_at_once(store: Store) -> None:
    """Too few calls, then enough, then no second time; each is on record with its reason."""
    ledger = Ledger(store.connection)
    store.write(made(["go", *calls(19)]))
    assert not consider(store, "claude-code:made-1", SETTINGS).look
    (found,) = ledger.decisions("claude-code:made-1")
    assert "19 tool calls, fewer than 20" in found.decision.reason
    store.write(made(["go", *calls(25)]))
    decision = consider(store, "claude-code:made-1", SETTINGS)
    assert decision.skills
    assert wanted("claude-code:made-1", decision) == (
        "claude-code:made-1",
        {
            "session": "claude-code:made-1",
            "moment": "after",
            "skills": True,
            "facts": True,
            "weight": decision.weight,
        },
    )
    store.write(made(["go", *calls(60)]))
    again = consider(store, "claude-code:made-1", SETTINGS)
    assert (again.look, again.word) == (False, "done before")
    assert ledger.looked_at("claude-code:made-1")[0]
    assert ledger.latest_decisions()["claude-code:made-1"] == again


def test_a_look_for_facts_leaves_the_one_for_skills_due(store: Store) -> None:
    """A session that pauses early and goes on is looked at for skills too."""
    talk = (["go", *calls(4)], ["so", *calls(4)], ["no", *calls(4)])
    store.write(made(*talk))
    first = consider(store, "claude-code:made-1", SETTINGS)
    assert (first.skills, first.facts) == (False, True)
    ledger, stored = Ledger(store.connection), store.find("claude-code:made-1")
    ledger.record(stored, REVIEW, "nothing", "no facts")
    store.write(made(*talk, ["on", *calls(15)]))
    second = consider(store, "claude-code:made-1", SETTINGS)
    assert (second.skills, second.facts) == (True, False)


def test_a_look_by_hand_counts(store: Store) -> None:
    """What `tacit learn` has looked at with a model is not looked at again by itself."""
    store.write(made(["go", *calls(25)]))
    Ledger(store.connection).record(
        store.find("claude-code:made-1"), REVIEW, "nothing", "nothing to keep"
    )
    assert consider(store, "claude-code:made-1", SETTINGS).word == "done before"


def test_a_look_that_failed_is_due_by_hand(store: Store) -> None:
    """A server that was down costs no session: the next run by hand looks at it."""
    store.write(made(["go", *calls(25)]))
    ledger, stored = Ledger(store.connection), store.find("claude-code:made-1")
    ledger.record(stored, REVIEW, "failed", "no answer")
    assert ledger.is_new(stored, REVIEW)
    ledger.record(stored, REVIEW, "nothing", "nothing to keep")
    assert not ledger.is_new(stored, REVIEW)


def test_a_session_that_changed_skills_is_left_alone(store: Store) -> None:
    """It is not looked at for skills; for facts it may be."""
    writes = ran("cat > .agents/skills/deploy/SKILL.md")
    store.write(made(["go", *calls(25), writes], ["more"], ["still more"]))
    decision = consider(store, "claude-code:made-1", SETTINGS)
    assert (decision.skills, decision.facts, decision.word) == (False, True, "due for facts")
    assert "it changed skills itself: deploy" in decision.reason


def test_work_of_our_own_is_not_looked_at(store: Store) -> None:
    """A session that ran in the data folder is one of ours in the background."""
    project = Path(paths.folders().data) / "staging" / "job-1"
    store.write(made(["go", *calls(50)], project=str(project)))
    assert consider(store, "claude-code:made-1", SETTINGS).word == "own work"


def test_what_promises_more_weighs_more(store: Store) -> None:
    """A correction and a failure that was mended count; plain work does not."""
    store.write(made(["go", *calls(25)], session="plain"))
    mended = [ran("make x", "no", failed=True), ran("make x V=1")]
    store.write(made(["go", *calls(23), *mended], ["No, use tabs."], session="rich"))
    plain = consider(store, "claude-code:plain", SETTINGS)
    rich = consider(store, "claude-code:rich", SETTINGS)
    assert rich.weight > plain.weight


def test_a_chat_is_looked_at_when_it_is_due_and_the_record_says_why_not_before() -> None:
    """Not yet, then due for both in one job, keyed by how far the chat had come."""
    store = Store.open()
    ledger = Ledger(store.connection)
    assert not consider_chat(answered(iterations=9), SETTINGS).look
    (found,) = ledger.decisions("tacit:s1")
    assert "9 requests since the last time, of 10" in found.decision.reason
    decision = consider_chat(answered(iterations=12, user_turns=10, requests=12), SETTINGS)
    assert (decision.skills, decision.facts) == (True, True)
    key, payload = wanted("tacit:s1", decision, "12")
    assert (key, payload["moment"]) == ("tacit:s1#12", "chat")
    assert not consider_chat(answered(iterations=1), SETTINGS).look
    assert all(ledger.looked_at("tacit:s1"))  # a later "not yet" does not undo that
    store.write(made(["go", *calls(40)], host="tacit", session="s1"))
    assert consider(store, "tacit:s1", SETTINGS).word == "done before"
    store.close()


def test_thresholds_are_settings(store: Store) -> None:
    """Two calls are enough where that is set."""
    store.write(made(["go", *calls(2)]))
    loose = Settings(learn=LearnSettings(after_calls=2), memory=MemorySettings(use=False))
    decision = consider(store, "claude-code:made-1", loose)
    assert (decision.skills, decision.facts) == (True, False)
