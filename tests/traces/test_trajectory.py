"""How the steps of a trace become entries, and which labels they get."""

from datetime import UTC, datetime, timedelta

import msgspec

from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.outcomes import Outcome
from tacit.traces.trace import REFUSED, Activation, Compaction, Given, Told, ToolCall, Usage
from tacit.traces.trajectory import LoadedSkill, Notes, trajectory_of

AT = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)


def timed(name: str, after: float, took: float) -> ToolCall:
    call = ran(name, "ok")
    return msgspec.structs.replace(call, at=AT + timedelta(seconds=after), duration=took)


def test_a_text_and_the_calls_made_with_it_are_one_entry() -> None:
    """What was said before a call goes with it; what is said after it is the next answer."""
    trace = made(["Build it.", "I build.", ran("make", "ok"), "Built.", ran("ls", "a")])
    entries = trajectory_of(trace).entries
    assert [(e.source, e.text, len(e.calls)) for e in entries] == [
        ("user", "Build it.", 0),
        ("agent", "I build.", 1),
        ("agent", "Built.", 1),
    ]


def test_calls_at_the_same_time_are_one_entry() -> None:
    """A call that began before another ended was made in the same answer; a later one was not."""
    steps = (timed("a", 0, 5), timed("b", 1, 1), timed("c", 6, 1), timed("d", 7, 1))
    entries = trajectory_of(made(["Go.", *steps])).entries
    assert [[c.arguments["command"] for c in e.calls] for e in entries if e.calls] == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]


def test_only_asides_that_no_call_tells_are_kept() -> None:
    """A skill that the user loaded is noted; one that a call loads follows from the call."""
    call = called("Skill", {"skill": "release"}, "text")
    trace = made(["/notes", Activation("notes"), call, Activation("release")])
    entries = trajectory_of(trace).entries
    assert [entry.asides for entry in entries] == [((Activation("notes"),),), ((), ())]


def test_others_words_are_marked() -> None:
    """What a hook told stands in the user's place; a host's own summary is the system's word."""
    trace = made(["Go.", Told("be nice", "hook"), Compaction("all was well"), "Yes."])
    entries = trajectory_of(trace).entries
    assert [(e.source, e.told) for e in entries] == [
        ("user", ""),
        ("user", "hook"),
        ("system", "compaction"),
        ("agent", ""),
    ]


def test_what_the_model_was_given_comes_first() -> None:
    given = Given("You are an agent.", ({"type": "function", "function": {"name": "Bash"}},))
    entries = trajectory_of(made(["Hi.", "Hello."]), Notes(given=given)).entries
    assert (entries[0].source, entries[0].text) == ("system", "You are an agent.")


def test_labels() -> None:
    """Outcome with evidence, corrections, skills in their version, failed calls, model, cost."""
    refused = msgspec.structs.replace(ran("rm x", "no"), failed=True, error=REFUSED)
    trace = made(["Build.", ran("make", "boom", failed=True)], ["No, use ninja.", refused, "Ok."])
    trace = msgspec.structs.replace(
        trace, head=msgspec.structs.replace(trace.head, usage=Usage(10, 5, cost=0.25))
    )
    notes = Notes(
        Outcome("failed", "user", "No, use ninja."),
        [Outcome("failed", "user", "No"), Outcome()],
        (LoadedSkill("release", "abc", 1, "user"),),
    )
    labels = trajectory_of(trace, notes).labels
    assert labels.outcome.evidence == "No, use ninja."
    assert [task.turn for task in labels.tasks] == [0]
    assert [(c.turn, c.by) for c in labels.corrections] == [(1, "prompt"), (1, "refusal")]
    assert labels.skills == notes.skills
    assert labels.failed_calls == ("call-0-0", "call-1-0")
    assert (labels.model, labels.cost) == ("mock-model", 0.25)


def test_copied_turns_are_marked_and_not_counted() -> None:
    """They keep their words; their corrections, skills and cost are the earlier session's."""
    trace = made(["Go.", "Done.", Activation("a")], ["No, stop.", ran("x")], ["Next.", "Yes."])
    turns = [msgspec.structs.replace(t, usage=Usage(10, 1, cost=1.0)) for t in trace.turns]
    head = msgspec.structs.replace(trace.head, usage=Usage(30, 3, cost=3.0))
    trace = msgspec.structs.replace(trace, head=head, turns=tuple(turns))
    made_of = trajectory_of(trace, Notes(copied={0, 1}))
    assert [e.copied for e in made_of.entries] == [True] * 4 + [False] * 2
    assert made_of.usage == Usage.sum(e.usage for e in made_of.entries) == Usage(10, 1, cost=1.0)
    assert made_of.labels.corrections == made_of.labels.skills == ()
    assert (made_of.labels.cost, made_of.labels.copied_turns) == (1.0, (0, 1))
