"""A session cut into tasks, and how each ended."""

from datetime import timedelta

import msgspec
import pytest

from tacit.learn.segments import Segment, segment_trace, segments
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.trace import Step, Trace

LOGIN = ["Fix the login form, it loses the password field", ran("npm test", "3 passing"), "Fixed."]
DOCS = ["Write a changelog entry about the new exporter", "Written."]


def edited(path: str = "/p/app/src/login.ts") -> Step:
    return called("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, "ok")


def judged(verdict: str, *turns: list) -> Trace:
    trace = made(*turns, project="/p/app")
    return Trace(msgspec.structs.replace(trace.head, verdict=verdict), trace.turns)


def only(trace: Trace) -> Segment:
    (found,) = segments(trace)
    return found


def test_another_request_is_another_task() -> None:
    """A prompt that shares nothing with what was done begins a task; its parts are the trace's."""
    trace = made(LOGIN, DOCS, project="/p/app")
    first, second = segments(trace)
    assert (first.asked, first.purposes, first.calls) == (LOGIN[0], ("npm test",), 1)
    assert (second.number, second.first, second.id) == (2, 1, f"{trace.id}#1")
    assert segment_trace(trace, second).prompts == (DOCS[0],)


@pytest.mark.parametrize(
    "prompt",
    [
        "yes, go ahead with all of that please",
        "no, the checkbox should stay where it was before",
        "make it shorter",
        "the password field still flickers on the login form",
        "commit and push everything to the branch now",
        "login.ts has one more place like this one",
    ],
)
def test_what_goes_on_with_a_task(prompt: str) -> None:
    """Approval, correction, a few words, and what speaks of the same things begin no task."""
    trace = made([*LOGIN, edited()], [prompt, ran("npm test", "3 passing")], project="/p/app")
    assert len(segments(trace)) == 1


def test_the_user_says_that_it_is_something_else() -> None:
    """Where the user turns away in words, fewer new words are enough; so after a long pause."""
    asked = "write tests for the exporter password module with a fixture"
    near = made(LOGIN, [asked, "ok"])
    assert len(segments(near)) == 1
    assert len(segments(made(LOGIN, [f"Next task: {asked}", "ok"]))) == 2
    later = msgspec.structs.replace(near.turns[1], started=near.turns[0].ended + timedelta(hours=9))
    assert len(segments(Trace(near.head, (near.turns[0], later)))) == 2


def test_a_reader_may_cut_too() -> None:
    """A turn that a reader names begins a task, also where counting saw none."""
    trace = made(LOGIN, ["no, use the other field", "ok"])
    assert len(segments(trace)) == 1
    assert [found.first for found in segments(trace, [1])] == [0, 1]


def test_failures_and_corrections() -> None:
    """A task knows the steps that failed, the turns of corrections, and its errors in short."""
    failed = ran("make x", "make: *** No rule to make target 'x'.  Stop.", failed=True)
    found = only(made(["Build the thing with make", failed], ["no, use make all", ran("make all")]))
    assert (found.failures, found.corrections) == (("0.1",), (1,))
    assert found.errors == ("rul target stop",)


PASSED = ran("npm test", "3 passing")
FAILED = ran("npm test", "2 failing", failed=True)


@pytest.mark.parametrize(
    ("turns", "state", "evidence"),
    [
        ([["Fix it", FAILED, edited(), PASSED]], "worked", "npm test"),
        ([["Fix it", PASSED], ["no, that is wrong"], ["again", FAILED]], "failed", "npm test"),
        ([["Fix it", PASSED, edited()]], "unclear", ""),
        ([["Fix it", "All tests pass now, it is fixed and done."]], "unclear", ""),
        ([["Fix it", edited()], ["thanks, perfect"]], "worked", "the user said"),
        ([["Fix it", edited()], ["it still doesn't work"]], "failed", "the user said"),
    ],
)
def test_how_a_task_ended(turns: list, state: str, evidence: str) -> None:
    """The checks that ran last come first, then the user's words; never the agent's own claim."""
    outcome = only(made(*turns, project="/p/app")).outcome
    assert (outcome.state, bool(outcome.confidence)) == (state, state != "unclear")
    assert outcome.evidence.startswith(evidence)


def test_a_verdict_counts_behind_the_tests() -> None:
    """A verifier decides where no test did; where both speak and differ, it is less sure."""
    alone = only(judged("reward: 1", ["Change my flight to Tuesday please", "Done."]))
    assert (alone.outcome.state, alone.outcome.evidence) == (
        "worked",
        "the verifier says reward: 1",
    )
    agreed = only(judged("resolved: true", ["Fix it", PASSED])).outcome
    disputed = only(judged("resolved: false", ["Fix it", PASSED])).outcome
    assert disputed.state == "worked"
    assert disputed.confidence < agreed.confidence
    assert "resolved: false" in disputed.evidence


def test_what_was_undone_or_asked_for_again_had_failed() -> None:
    """Without other evidence, taking work back or asking for it once more says that it failed."""
    task = ["Speed up the image loader of the gallery page", edited("/p/app/a.ts")]
    other = ["Rename every settings constant to upper case", edited("/p/app/b.ts")]
    undone = segments(made(task, ["Compare the database schema", ran("git restore .")]))
    assert (undone[0].outcome.state, undone[0].outcome.evidence) == (
        "failed",
        "it was undone: git restore .",
    )
    again = segments(made(task, other, [f"Next task: {task[0]}", edited("/p/app/a.ts")]))
    assert again[0].outcome.evidence == "it was asked for once more"
    assert again[1].outcome.state == "unclear"


def test_an_empty_session_has_no_task() -> None:
    """Nothing was asked and nothing done."""
    assert segments(made()) == []
