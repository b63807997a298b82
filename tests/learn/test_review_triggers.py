"""When a session is looked at: the rules, held against a simple model of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent.agent_events import Answered
from tacit.base import paths
from tacit.base.setting_sections import LearnSettings, MemorySettings, Settings
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.review import review_triggers
from tacit.learn.review.review_triggers import (
    ChatFacts,
    Due,
    SessionFacts,
    choose_sessions,
    decide,
    decide_after_session,
    decide_in_chat,
    enough_calls,
    named_sessions,
    review_request,
)
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
from tacit.traces.trace import Told, Trace

SETTINGS = Settings()

small = st.integers(0, 30)
names = st.lists(st.sampled_from(["deploy", "release", "tests", "notes"]), unique=True).map(tuple)
moments = st.sampled_from(["", "2026-11-15 10:00"])
seens = st.builds(
    SessionFacts,
    calls=small,
    messages=small,
    changed=names,
    background=st.booleans(),
    skills_before=moments,
    facts_before=moments,
    corrected_skills=st.integers(0, 1),
    corrected_facts=st.integers(0, 1),
    skills_since=small,
    facts_since=small,
    parent=st.sampled_from(["", "", "main"]),
    weight=small,
)
learns = st.builds(LearnSettings, after_calls=small, after_messages=small, chat_iterations=small)
memories = st.builds(MemorySettings, use=st.booleans(), chat_turns=small)
spokens = st.builds(
    ChatFacts,
    ended=st.sampled_from(["done", "interrupted", "error", "turns", "money"]),
    iterations=small,
    messages=small,
)


@settings(max_examples=60, deadline=None)
@given(seens, learns, memories)
def test_after_a_session_as_the_rules_say(seen, learn, memory) -> None:
    """Skills: enough calls, none changed. Facts: enough said, or read anyway. After a look, the
    same of what came since, or a correction; a helper's session is not looked at by itself."""
    found = decide(seen, Settings(learn=learn, memory=memory))
    own = not seen.background and not seen.parent
    corrected = seen.skills_before and seen.corrected_skills
    skills = bool(
        own
        and learn.after_calls > 0
        and (seen.calls >= learn.after_calls or corrected)
        and not seen.changed
    )
    corrected = seen.facts_before and seen.corrected_facts
    enough = learn.after_messages > 0 and (seen.messages >= learn.after_messages or corrected)
    read = skills and seen.messages > 0
    if seen.facts_before and seen.facts_since > seen.skills_since:
        read = False
    facts = bool(own and memory.use and (enough or read))
    assert (found.skills, found.facts) == (skills, facts)
    assert found.due == (skills or facts)
    assert found.reason
    assert found.word == "due" if skills else found.word != "due"


@settings(max_examples=60, deadline=None)
@given(spokens, learns, memories)
def test_in_a_chat_as_the_rules_say(spoken, learn, memory) -> None:
    """A final answer, and a count that has come to its number; 0 is off; both are one decision."""
    found = decide(spoken, Settings(learn=learn, memory=memory))
    final = spoken.ended == "done"
    skills = final and 0 < learn.chat_iterations <= spoken.iterations
    facts = final and memory.use and 0 < memory.chat_turns <= spoken.messages
    assert (found.skills, found.facts) == (skills, facts)
    assert found.moment == "chat"
    assert found.reason


@settings(max_examples=60, deadline=None)
@given(seens, learns, memories)
def test_a_refusal_names_the_setting_or_the_fact_behind_it(seen, learn, memory) -> None:
    """Whoever is told "no" is told what to change, or what the session did."""
    found = decide(seen, Settings(learn=learn, memory=memory))
    if not found.skills:
        causes = ("learn.after_calls", "changed skills itself", "Tacit's own", "helper's part")
        assert any(cause in found.reason for cause in causes)
    if not found.facts:
        causes = ("learn.after_messages", "memory.use", "Tacit's own", "helper's part")
        assert any(cause in found.reason for cause in causes)


def test_the_numbers_as_they_come() -> None:
    """Twenty calls after a session; ten requests or ten messages in a chat."""
    assert not decide(SessionFacts(calls=19, messages=1), SETTINGS).due
    assert decide(SessionFacts(calls=20, messages=1), SETTINGS).skills
    assert decide(SessionFacts(calls=0, messages=3), SETTINGS).facts
    nine = ChatFacts(ended="done", iterations=9, messages=9)
    assert not decide(nine, SETTINGS).due
    both = decide(ChatFacts(ended="done", iterations=10, messages=10), SETTINGS)
    assert (both.skills, both.facts) == (True, True)
    off = Settings(
        learn=LearnSettings(after_calls=0, after_messages=0, chat_iterations=0),
        memory=MemorySettings(chat_turns=0),
    )
    assert not decide(SessionFacts(calls=99, messages=99), off).due
    assert not decide(ChatFacts(ended="done", iterations=99, messages=99), off).due


def test_another_trigger_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is due is enough; where none is, each says why."""

    def weighty(facts: SessionFacts, settings: Settings) -> Due:
        return Due(facts.weight > 5, "due" if facts.weight > 5 else "light", "its weight")

    monkeypatch.setattr(review_triggers, "SKILL_TRIGGERS", (enough_calls, weighty))
    assert decide(SessionFacts(calls=1, messages=1, weight=9), SETTINGS).skills
    neither = decide(SessionFacts(calls=1, messages=1), SETTINGS)
    assert (neither.due, neither.word) == (False, "few calls")
    assert "fewer than 20 (learn.after_calls), its weight" in neither.reason


def test_reasons_read_well() -> None:
    """The words that `tacit why` shows."""
    few = decide(SessionFacts(calls=1, messages=1), SETTINGS)
    assert few.word == "few calls"
    assert few.reason == (
        "for skills: 1 tool call, fewer than 20 (learn.after_calls), nothing was put right;"
        " for facts: 1 message of yours, fewer than 3 (learn.after_messages)"
    )
    changed = decide(SessionFacts(calls=50, messages=2, changed=("a", "b", "c", "d")), SETTINGS)
    assert changed.word == "changed skills"
    assert "it changed skills itself: a, b, c and 1 more" in changed.reason
    stopped = decide(ChatFacts(ended="interrupted", iterations=20, messages=20), SETTINGS)
    assert stopped.reason == "the answer was not a final one (interrupted)"


SETTINGS = Settings()


def calls(number: int) -> list:
    return [ran(f"make part-{n}") for n in range(number)]


def answered(**more) -> Answered:
    facts = {"session": "s1", "project": "/p", "reason": "done", "iterations": 0, "user_turns": 0}
    return Answered(**facts | {"requests": 1, "skill_changes": 0} | more)


def test_each_part_of_a_session_that_grows_is_looked_at_once(store: Store) -> None:
    """Too few calls, then enough, then the rest when that is enough, and nothing twice."""
    ledger = Ledger(store.connection)
    store.write(made(["go", *calls(19)]))
    assert not decide_after_session(store, "claude-code:made-1", SETTINGS).due
    (found,) = ledger.decisions("claude-code:made-1")
    assert "19 tool calls, fewer than 20" in found.decision.reason
    store.write(made(["go", *calls(25)]))
    decision = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert decision.skills
    assert review_request("claude-code:made-1", decision) == (
        "claude-code:made-1",
        {
            "session": "claude-code:made-1",
            "moment": "after",
            "skills": True,
            "facts": True,
            "weight": decision.weight,
        },
    )
    assert decide_after_session(store, "claude-code:made-1", SETTINGS) == decision
    store.write(made(["go", *calls(44)]))
    again = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert (again.due, again.word) == (False, "done before")
    assert "since then 19 tool calls, fewer than 20" in again.reason
    assert ledger.latest_decisions()["claude-code:made-1"] == again
    store.write(made(["go", *calls(44)], ["on", *calls(1)]))
    assert decide_after_session(store, "claude-code:made-1", SETTINGS).skills
    keys = [(job.key, job.payload.get("since")) for job in ledger.open_jobs()]
    assert keys == [("claude-code:made-1", None), ("claude-code:made-1#2.45", None)]
    store.write(made(["go", *calls(44)], ["on", *calls(1)], ["so", *calls(30)]))
    assert decide_after_session(store, "claude-code:made-1", SETTINGS).since == 2
    assert ledger.open_jobs()[-1].payload["since"] == 2


def test_a_correction_after_a_look_is_seen(store: Store) -> None:
    """The user comes back and puts something right: that part is due, however short it is."""
    store.write(made(["go", *calls(25)]))
    assert decide_after_session(store, "claude-code:made-1", SETTINGS).skills
    store.write(made(["go", *calls(25)], ["thanks"]))
    assert not decide_after_session(store, "claude-code:made-1", SETTINGS).due
    store.write(made(["go", *calls(25)], ["thanks"], ["No, never run make as root.", *calls(1)]))
    decision = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert (decision.skills, decision.facts, decision.since) == (True, True, 1)
    assert "you put something right since it was looked at" in decision.reason


def helper(session: str, parent: str, number: int) -> Trace:
    """A helper's session, with so many calls."""
    trace = made(["find it", *calls(number)], session=session)
    (turn,) = trace.turns
    told = msgspec.structs.replace(turn, prompt="", steps=(Told("find it", "agent"), *turn.steps))
    return Trace(msgspec.structs.replace(trace.head, parent=parent), (told,))


def test_what_helpers_did_counts_towards_their_parent(store: Store) -> None:
    """Their calls make the parent due; they are not looked at, and not listed, by themselves."""
    store.write(made(["go", *calls(5)], session="main"))
    store.write(helper("h1", "main", 9))
    store.write(helper("h2", "h1", 9))
    assert decide_after_session(store, "claude-code:h1", SETTINGS).word == "helper"
    decision = decide_after_session(store, "claude-code:main", SETTINGS)
    assert (decision.skills, decision.facts) == (True, True)
    assert "23 tool calls" in decision.reason
    assert [s.head.session for s in store.sessions()] == ["main"]
    whole = store.whole("claude-code:main")
    assert (whole.prompts, len(whole.calls)) == (("go",), 23)
    assert [turn.helper for turn in whole.turns] == ["", "claude-code:h1", "claude-code:h2"]


def test_a_look_for_facts_leaves_the_one_for_skills_due(store: Store) -> None:
    """A session that pauses early and goes on is looked at for skills too."""
    talk = (["go", *calls(4)], ["so", *calls(4)], ["now", *calls(4)])
    store.write(made(*talk))
    first = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert (first.skills, first.facts) == (False, True)
    ledger, stored = Ledger(store.connection), store.find("claude-code:made-1")
    ledger.record(stored, REVIEW, "nothing", "no facts")
    store.write(made(*talk, ["on", *calls(15)]))
    second = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert (second.skills, second.facts) == (True, False)


def test_a_short_session_with_a_correction_is_due(store: Store) -> None:
    """Few calls are enough where the user put something right, or a failure was mended."""
    plain = ["go", *calls(2)]
    store.write(made(plain, ["thanks, go on", *calls(2)], session="plain"))
    store.write(made(plain, ["No, not like that", *calls(1)], session="corrected"))
    mended = ["go", ran("x.sh a", "bad", failed=True), ran("x.sh a --right")]
    store.write(made(mended, session="mended"))
    chosen = choose_sessions(store, store.sessions(), SETTINGS)
    assert sorted(session_names(chosen)) == ["corrected", "mended"]
    assert chosen.passed == {"few calls": 1}
    assert decide_after_session(store, "claude-code:corrected", SETTINGS).skills
    assert not decide_after_session(store, "claude-code:plain", SETTINGS).skills


def test_a_look_by_hand_counts(store: Store) -> None:
    """What `tacit learn` has looked at with a model is not looked at again by itself."""
    store.write(made(["go", *calls(25)]))
    Ledger(store.connection).record(
        store.find("claude-code:made-1"), REVIEW, "nothing", "nothing to keep"
    )
    assert decide_after_session(store, "claude-code:made-1", SETTINGS).word == "done before"


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
    decision = decide_after_session(store, "claude-code:made-1", SETTINGS)
    assert (decision.skills, decision.facts, decision.word) == (False, True, "due for facts")
    assert "it changed skills itself: deploy" in decision.reason


def test_work_of_our_own_is_not_looked_at(store: Store) -> None:
    """A session that ran in the data folder is one of ours in the background."""
    project = Path(paths.folders().data) / "staging" / "job-1"
    store.write(made(["go", *calls(50)], project=str(project)))
    assert decide_after_session(store, "claude-code:made-1", SETTINGS).word == "own work"


def test_what_promises_more_weighs_more(store: Store) -> None:
    """A correction and a failure that was mended count; plain work does not."""
    store.write(made(["go", *calls(25)], session="plain"))
    mended = [ran("make x", "no", failed=True), ran("make x V=1")]
    store.write(made(["go", *calls(23), *mended], ["No, use tabs."], session="rich"))
    plain = decide_after_session(store, "claude-code:plain", SETTINGS)
    rich = decide_after_session(store, "claude-code:rich", SETTINGS)
    assert rich.weight > plain.weight


def test_a_chat_is_looked_at_when_it_is_due_and_the_record_says_why_not_before() -> None:
    """Not yet, then due for both in one job, keyed by how far the chat had come."""
    store = Store.open()
    ledger = Ledger(store.connection)
    assert not decide_in_chat(answered(iterations=9), SETTINGS).due
    (found,) = ledger.decisions("tacit:s1")
    assert "9 requests since the last time, of 10" in found.decision.reason
    decision = decide_in_chat(answered(iterations=12, user_turns=10, requests=12), SETTINGS)
    assert (decision.skills, decision.facts) == (True, True)
    key, payload = review_request("tacit:s1", decision, "12")
    assert (key, payload["moment"]) == ("tacit:s1#12", "chat")
    assert not decide_in_chat(answered(iterations=1), SETTINGS).due
    assert all(ledger.looked_at("tacit:s1"))  # a later "not yet" does not undo that
    store.write(made(["go", *calls(40)], host="tacit", session="s1"))
    assert decide_after_session(store, "tacit:s1", SETTINGS).word == "done before"
    store.close()


def test_thresholds_are_settings(store: Store) -> None:
    """Two calls are enough where that is set."""
    store.write(made(["go", *calls(2)]))
    loose = Settings(learn=LearnSettings(after_calls=2), memory=MemorySettings(use=False))
    decision = decide_after_session(store, "claude-code:made-1", loose)
    assert (decision.skills, decision.facts) == (True, False)


NOW = datetime(2026, 11, 15, tzinfo=UTC)


def put(store: Store, name: str, calls: int, *, days: int, corrected: bool = False, **more) -> None:
    work = [ran(f"make part-{n}") for n in range(calls)]
    turns = [["go", *work]] + ([["No, not like that."]] if corrected else [])
    trace = made(*turns, session=name, **more)
    ended = NOW - timedelta(days=days)
    head = msgspec.structs.replace(trace.head, started=ended, ended=ended)
    store.write(Trace(head, trace.turns))


def session_names(chosen) -> list[str]:
    return [candidate.stored.head.session for candidate in chosen.candidates]


def test_newest_are_taken_and_the_most_promising_come_first(store: Store) -> None:
    """Two of three fit in a run: the two newest; of those the corrected one is looked at first."""
    put(store, "old-but-rich", 30, days=9, corrected=True)
    put(store, "middle", 30, days=5, corrected=True)
    put(store, "newest", 30, days=1)
    put(store, "small", 3, days=0)
    chosen = choose_sessions(store, store.sessions(), Settings(), most=2)
    assert session_names(chosen) == ["middle", "newest"]
    assert (chosen.left, chosen.passed) == (1, {"few calls": 1})
    assert session_names(choose_sessions(store, store.sessions(), Settings(), most=9)) == [
        "middle", "old-but-rich", "newest",
    ]  # fmt: skip


def test_looked_at_before_is_passed_over_until_it_goes_on(store: Store) -> None:
    """A session is due again when it went on since, or when that is asked for."""
    put(store, "s", 30, days=1)
    Ledger(store.connection).record(store.find("claude-code:s"), REVIEW, "nothing", "no")
    chosen = choose_sessions(store, store.sessions(), Settings())
    assert (session_names(chosen), chosen.passed) == ([], {"done before": 1})
    assert session_names(choose_sessions(store, store.sessions(), Settings(), again=True)) == ["s"]
    put(store, "s", 30, days=0, corrected=True)
    assert session_names(choose_sessions(store, store.sessions(), Settings())) == ["s"]


def test_what_is_named_is_looked_at_whatever_it_holds(store: Store) -> None:
    """No threshold holds for a session that a person names."""
    put(store, "tiny", 1, days=1)
    (candidate,) = named_sessions(store, store.sessions(), Settings()).candidates
    assert (candidate.decision.skills, candidate.decision.facts) == (True, True)


def test_sessions_that_changed_skills_are_passed_over(store: Store) -> None:
    """As after a session, what a session changed itself is left alone."""
    store.write(made(["go", *[ran("make")] * 30, ran("tacit edit deploy")], session="own"))
    assert choose_sessions(store, store.sessions(), Settings()).passed == {"changed skills": 1}


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(15, 25), st.booleans()), max_size=8), st.integers(1, 5))
def test_none_is_lost_and_none_comes_twice(home, rows, most) -> None:
    """Chosen, passed over and left are all the sessions there are."""
    store = Store.open()
    for number, (calls, corrected) in enumerate(rows):
        put(store, f"s{number}", calls, days=number, corrected=corrected)
    chosen = choose_sessions(store, store.sessions(), Settings(), most=most)
    due = [(f"s{n}", calls) for n, (calls, right) in enumerate(rows) if calls >= 20 or right]
    assert sorted(session_names(chosen)) == sorted(name for name, _ in due[:most])
    assert [c.decision.weight for c in chosen.candidates] == sorted(
        (c.decision.weight for c in chosen.candidates), reverse=True
    )
    assert chosen.left == sum(calls >= 20 for _, calls in due[most:])
    store.remove([s.id for s in store.sessions()], by_user=False)
    store.connection.execute("DELETE FROM forgotten")
    store.close()
