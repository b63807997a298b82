"""Spans of one conversation: each thing told once, whoever repeats it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import messages_of
from tacit.traces.spans import Span, scored, tell_spans
from tacit.traces.trace import Head, Subagent, Told, Trace

START = datetime(2026, 11, 15, tzinfo=UTC)


def said(*pairs: tuple[str, Any]) -> list[Any]:
    """Messages by role and words; an assistant's may be a call: (name, id)."""
    made = []
    for role, words in pairs:
        message: dict[str, Any] = {"role": role, "content": words}
        if role == "assistant" and isinstance(words, tuple):
            function = {"name": words[0], "arguments": "{}"}
            message = {"role": role, "tool_calls": [{"id": words[1], "function": function}]}
        if role == "tool":
            message = {"role": role, "tool_call_id": words[0], "content": words[1]}
        made.append(message)
    return list(messages_of(made))


def span(number: int, kind: str, parent: str = "", **about: Any) -> Span:
    at = START + timedelta(seconds=number)
    return Span(str(number), parent, "t", "", kind, start=at, end=at, **about)  # type: ignore[arg-type]


def told(*spans: Span) -> Trace:
    into = Assembler(Head("x"))
    turns = []
    for _ in tell_spans(list(spans), into):
        turns += into.take()
    return Trace(into.head(), (*turns, *into.finish()))


def test_a_history_is_told_once() -> None:
    """Each call repeats all before it; the same words said twice are two prompts."""
    one = said(("system", "s"), ("user", "yes"))
    two = [*said(("system", "s"), ("user", "yes"), ("assistant", "a"), ("user", "yes"))]
    trace = told(
        span(1, "model", given=one, made=said(("assistant", "a"))),
        span(2, "model", given=two, made=said(("assistant", "b"))),
    )
    assert (trace.prompts, trace.texts) == (("yes", "yes"), ("a", "b"))


def test_a_call_that_sends_only_what_is_new() -> None:
    """Where the server keeps the history, nothing is taken for a repetition."""
    trace = told(
        span(1, "model", given=said(("user", "go")), made=said(("assistant", ("bash", "1")))),
        span(2, "model", given=said(("tool", ("1", "out"))), made=said(("assistant", "done"))),
        span(3, "model", given=said(("user", "more")), made=said(("assistant", "done"))),
    )
    assert (trace.prompts, trace.texts) == (("go", "more"), ("done", "done"))
    assert [call.result for call in trace.calls] == ["out"]


def test_a_tools_span_and_its_messages_are_one_call() -> None:
    """With the id, without it, and where the span comes before the message that asks for it."""
    asked = said(("assistant", ("bash", "1")))
    for call_id in ("1", ""):
        trace = told(
            span(1, "model", given=said(("user", "go")), made=asked),
            span(2, "tool", name="bash", call_id=call_id, arguments={}, result="out"),
            span(3, "model", given=said(("user", "go"), ("assistant", ("bash", "1")),
                                        ("tool", ("1", "out"))), made=said(("assistant", "ok"))),
        )  # fmt: skip
        assert [(call.name, call.result) for call in trace.calls] == [("bash", "out")]
    early = told(
        span(1, "tool", name="bash", result="out"),
        span(2, "model", given=said(("user", "go"), ("assistant", ("bash", "1")),
                                    ("tool", ("1", "out"))), made=said(("assistant", "ok"))),
    )  # fmt: skip
    assert len(early.calls) == 1


def test_an_id_that_is_used_again_is_another_call() -> None:
    """Some libraries call a call by its tool's name."""
    trace = told(
        span(1, "model", given=said(("user", "go")), made=said(("assistant", ("bash", "bash")))),
        span(2, "tool", name="bash", call_id="bash", result="one"),
        span(3, "model", given=said(("tool", ("bash", "one"))),
             made=said(("assistant", ("bash", "bash")))),
        span(4, "tool", name="bash", call_id="bash", result="two"),
    )  # fmt: skip
    assert [call.result for call in trace.calls] == ["one", "two"]


def test_a_helpers_words_are_not_the_users() -> None:
    """An agent inside another, or inside a tool, is a helper; one that only hands on is not."""
    trace = told(
        span(1, "agent"),
        span(2, "model", "1", given=said(("user", "go")), made=said(("assistant", ("ask", "1")))),
        span(3, "tool", "1", name="ask", call_id="1", result="found"),
        span(4, "agent", "3", name="finder"),
        span(5, "model", "4", given=said(("user", "find")), made=said(("assistant", "found"))),
    )
    assert trace.prompts == ("go",)
    steps = [step for turn in trace.turns for step in turn.steps]
    assert [s.name for s in steps if isinstance(s, Subagent)] == ["finder"]
    assert [s.text for s in steps if isinstance(s, Told)] == ["find"]
    handed = told(span(1, "agent"), span(2, "agent", "1"),
                  span(3, "model", "2", given=said(("user", "go"))))  # fmt: skip
    assert handed.prompts == ("go",)


def test_a_span_around_a_call_is_not_another_call() -> None:
    """Libraries record a call twice, one around the other: words and tokens count once."""
    inner = {"given": said(("user", "go")), "made": said(("assistant", "ok"))}
    trace = told(span(1, "model", **inner), span(2, "model", "1", **inner))
    assert (trace.prompts, trace.texts) == (("go",), ("ok",))


def test_without_calls_of_a_model_the_outermost_words_count() -> None:
    """A trace of which only the root says something is still a session; a cycle ends."""
    whole = {"given": said(("user", "go")), "made": said(("assistant", "ok"))}
    trace = told(span(1, "other", **whole), span(2, "agent", "1", **whole), span(3, "model", "2"))
    assert (trace.prompts, trace.texts, trace.skipped) == (("go",), ("ok",), {"no-content": 1})
    told(span(1, "agent", "2"), span(2, "agent", "1", **whole))


def test_only_scores_about_success_are_verdicts() -> None:
    """A number on a scale that nobody knows judges nothing."""
    assert scored("correctness", 0) == "correctness: 0"
    assert scored("helpful", True) == "helpful: true"
    assert scored("helpfulness", 0.7) == scored("accuracy", 7) == scored("x", "maybe") == ""
