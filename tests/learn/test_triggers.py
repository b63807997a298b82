"""When a session is looked at: the rules, held against a simple model of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.sections import LearnSettings, MemorySettings
from tacit.learn.triggers import Seen, Spoken, after_session, in_chat

LEARN, MEMORY = LearnSettings(), MemorySettings()

small = st.integers(0, 30)
names = st.lists(st.sampled_from(["deploy", "release", "tests", "notes"]), unique=True).map(tuple)
moments = st.sampled_from(["", "2026-11-15 10:00"])
seens = st.builds(
    Seen,
    calls=small,
    messages=small,
    changed=names,
    background=st.booleans(),
    skills_before=moments,
    facts_before=moments,
    weight=small,
)
learns = st.builds(LearnSettings, after_calls=small, after_messages=small, chat_iterations=small)
memories = st.builds(MemorySettings, use=st.booleans(), chat_turns=small)
spokens = st.builds(
    Spoken,
    ended=st.sampled_from(["done", "interrupted", "error", "turns", "money"]),
    iterations=small,
    messages=small,
)


@settings(max_examples=60, deadline=None)
@given(seens, learns, memories)
def test_after_a_session_as_the_rules_say(seen, learn, memory) -> None:
    """Skills: enough calls, none changed, not before. Facts: enough said, or read anyway."""
    found = after_session(seen, learn, memory)
    skills = (
        not seen.background
        and learn.after_calls > 0
        and seen.calls >= learn.after_calls
        and not seen.changed
        and not seen.skills_before
    )
    enough = learn.after_messages > 0 and seen.messages >= learn.after_messages
    facts = (
        not seen.background
        and memory.use
        and not seen.facts_before
        and (enough or (skills and seen.messages > 0))
    )
    assert (found.skills, found.facts) == (skills, facts)
    assert found.look == (skills or facts)
    assert found.reason
    assert found.word == "due" if skills else found.word != "due"


@settings(max_examples=60, deadline=None)
@given(spokens, learns, memories)
def test_in_a_chat_as_the_rules_say(spoken, learn, memory) -> None:
    """A final answer, and a count that has come to its number; 0 is off; both are one decision."""
    found = in_chat(spoken, learn, memory)
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
    found = after_session(seen, learn, memory)
    if not found.skills:
        causes = ("learn.after_calls", "looked at already", "changed skills itself", "Tacit's own")
        assert any(cause in found.reason for cause in causes)
    if not found.facts:
        causes = ("learn.after_messages", "looked at already", "memory.use", "Tacit's own")
        assert any(cause in found.reason for cause in causes)


def test_the_numbers_as_they_come() -> None:
    """Twenty calls after a session; ten requests or ten messages in a chat."""
    assert not after_session(Seen(calls=19, messages=1), LEARN, MEMORY).look
    assert after_session(Seen(calls=20, messages=1), LEARN, MEMORY).skills
    assert after_session(Seen(calls=0, messages=3), LEARN, MEMORY).facts
    nine = Spoken(ended="done", iterations=9, messages=9)
    assert not in_chat(nine, LEARN, MEMORY).look
    both = in_chat(Spoken(ended="done", iterations=10, messages=10), LEARN, MEMORY)
    assert (both.skills, both.facts) == (True, True)
    off = LearnSettings(after_calls=0, after_messages=0, chat_iterations=0)
    unused = MemorySettings(chat_turns=0)
    assert not after_session(Seen(calls=99, messages=99), off, unused).look
    assert not in_chat(Spoken(ended="done", iterations=99, messages=99), off, unused).look


def test_reasons_read_well() -> None:
    """The words that `tacit why` shows."""
    few = after_session(Seen(calls=1, messages=1), LEARN, MEMORY)
    assert few.word == "few calls"
    assert few.reason == (
        "for skills: 1 tool call, fewer than 20 (learn.after_calls);"
        " for facts: 1 message of yours, fewer than 3 (learn.after_messages)"
    )
    changed = after_session(Seen(calls=50, messages=2, changed=("a", "b", "c", "d")), LEARN, MEMORY)
    assert changed.word == "changed skills"
    assert "it changed skills itself: a, b, c and 1 more" in changed.reason
    stopped = in_chat(Spoken(ended="interrupted", iterations=20, messages=20), LEARN, MEMORY)
    assert stopped.reason == "the answer was not a final one (interrupted)"
