"""Which reply a request gets."""

import threading
from pathlib import Path

import pytest

from tacit.testing import (
    Message,
    Replies,
    Reply,
    Request,
    Rules,
    Stall,
    Status,
    Text,
    ToolUse,
    Turns,
    Usage,
    marked,
    reply,
    toolless,
)
from tacit.testing.script import ScriptFailed, Tool, ToolResult, as_reply, as_script, load_script


def request(*messages: Message, tools: tuple[Tool, ...] = (), system: str = "") -> Request:
    return Request(
        number=1,
        wire="openai-chat",
        path="/v1/chat/completions",
        headers={},
        body=b"{}",
        model="m",
        stream=False,
        system=system,
        messages=messages,
        tools=tools,
    )


USER, SPOKEN = Message("user", "do the ALPHA thing"), Message("assistant", "ok")


def test_short_forms_mean_replies() -> None:
    """A string, a part or a fault stands for the reply that consists of it."""
    use, fault = ToolUse("read", {"path": "a"}), Status(429)
    assert as_reply("hi") == reply("hi") == Reply((Text("hi"),))
    assert as_reply(use) == reply(use) == Reply((use,))
    assert as_reply(fault) == Reply(fault=fault)
    mixed = reply("a", use, "b", usage=Usage(1, 2, 1))
    assert (mixed.text, mixed.tool_uses, mixed.usage) == ("ab", (use,), Usage(1, 2, 1))


def test_a_script_that_gives_no_reply_is_named() -> None:
    """A function that returns something else fails with the type it returned."""
    with pytest.raises(ScriptFailed, match="NoneType"):
        as_reply(None)  # type: ignore[arg-type]


def test_a_list_is_used_up_in_order() -> None:
    """Replies go out one a request, and one too many fails with the counts."""
    script = Replies(["one", "two"])
    assert [as_reply(script(request())).text for _ in range(2)] == ["one", "two"]
    assert script.left == 0
    with pytest.raises(ScriptFailed, match="has 2 replies and was asked for number 3"):
        script(request())


def test_a_list_can_go_on_with_one_reply() -> None:
    """With `then`, everything after the last reply gets that one."""
    script = Replies(["one"], then="more")
    assert [as_reply(script(request())).text for _ in range(3)] == ["one", "more", "more"]


def test_a_list_gives_each_reply_once_to_many_threads() -> None:
    """Requests that arrive at once share a list without a reply lost or given twice."""
    script, got = Replies([str(n) for n in range(200)]), []

    def take() -> None:
        got.extend(as_reply(script(request())).text for _ in range(25))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(n) for n in range(200)]


def test_one_reply_is_repeated_and_a_function_is_called() -> None:
    """A single reply answers every request; a function sees the request."""
    same = as_script("same")
    assert [as_reply(same(request())).text for _ in range(2)] == ["same", "same"]
    echo = as_script(lambda asked: asked.user_texts[-1].upper())
    assert as_reply(echo(request(USER))).text == "DO THE ALPHA THING"


def test_turns_follow_the_conversation() -> None:
    """The reply depends on how often the model has spoken, so a repeated request repeats it."""
    script = Turns(["first", "second"], then="last")
    opening = request(USER)
    later = request(USER, SPOKEN, Message("user", "and?"))
    assert [as_reply(script(r)).text for r in (opening, opening, later)] == [
        "first",
        "first",
        "second",
    ]
    longest = request(USER, SPOKEN, USER, SPOKEN, USER)
    assert as_reply(script(longest)).text == "last"


def test_a_reply_in_several_items_is_one_turn() -> None:
    """Text and call listed as two items of the assistant's count as one time of speaking."""
    called = Message("assistant", tool_uses=(ToolUse("read", {}, "c1"),))
    result = Message("tool", tool_results=(ToolResult("c1", "text"),))
    assert request(USER, SPOKEN, called, result).turn == 1


def test_rules_choose_by_the_first_that_fits() -> None:
    """Scripts are multiplexed by a marker, side requests get the default."""
    script = Rules((toolless, "a title"), (marked("ALPHA"), ["a1", "a2"]), default="other")
    tools = (Tool("read"),)
    asked = [
        request(USER),
        request(USER, tools=tools),
        request(Message("user", "BETA"), tools=tools),
        request(USER, tools=tools),
    ]
    assert [as_reply(script(r)).text for r in asked] == ["a title", "a1", "other", "a2"]


def test_rules_without_a_default_name_the_request() -> None:
    """A request that no rule fits is an error that says which."""
    with pytest.raises(ScriptFailed, match=r"request 1 \(/v1/chat/completions\)"):
        Rules((marked("ALPHA"), "x"))(request(Message("user", "BETA")))


def test_a_marker_counts_only_before_the_first_reply() -> None:
    """A marker is looked for in what the user said first, however many messages that is."""
    context = Message("user", "<environment/>")
    assert marked("ALPHA")(request(context, USER))
    assert not marked("ALPHA")(request(context, SPOKEN, USER))


def test_mentions_looks_at_all_the_model_is_shown() -> None:
    """System prompt, messages, tool descriptions and results are searched."""
    result = Message("tool", tool_results=(ToolResult("c", "in a result"),))
    shown = request(USER, result, tools=(Tool("t", "in a tool"),), system="in the system")
    for text in ("ALPHA", "in a result", "in a tool", "in the system"):
        assert shown.mentions(text)
    assert not shown.mentions("nowhere")


def test_scripts_from_files(tmp_path) -> None:
    """JSON lists, JSON rules and Python files all give scripts."""
    plain = tmp_path / "plain.json"
    plain.write_text(
        '["hi", {"parts": [{"type": "tool_use", "name": "read", "arguments": {"p": 1}}],'
        ' "fault": {"type": "stall", "seconds": 2}}]'
    )
    script = load_script(str(plain))
    assert as_reply(script(request())).text == "hi"
    second = as_reply(script(request()))
    assert second.tool_uses[0].arguments == {"p": 1}
    assert second.fault is not None

    ruled = tmp_path / "rules.json"
    ruled.write_text('{"rules": [{"marker": "ALPHA", "replies": ["a"]}], "default": "d"}')
    script = load_script(str(ruled))
    assert as_reply(script(request(USER))).text == "a"
    assert as_reply(script(request())).text == "d"

    python = tmp_path / "s.py"
    python.write_text("script = lambda request: str(len(request.messages))\n")
    assert as_reply(load_script(str(python))(request(USER))).text == "1"


def test_the_example_in_the_docs_is_a_script(tmp_path) -> None:
    """The JSON in docs/testing.md loads, and its replies come by turn."""
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    file = tmp_path / "example.json"
    file.write_text(page.split("```json\n")[1].split("```")[0])
    script, asked = load_script(str(file)), Message("user", "SESSION-A")
    first = as_reply(script(request(asked)))
    assert (first.text, first.usage) == ("I look.", Usage(900, 40, 600))
    assert as_reply(script(request(asked, SPOKEN))).fault == Stall(30, 2)
    assert as_reply(script(request(USER))).text == "Nothing to add."


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.json", '[{"parts": [{"type": "dance"}]}]', "not a script"),
        ("x.json", '{"rulez": []}', "not a script"),
        ("x.py", "reply = 1\n", "sets no `script`"),
        ("none.json", None, "no script at"),
    ],
)
def test_a_bad_script_file_is_named(tmp_path, name, text, says) -> None:
    """A file that is no script gives an error with its path and what is wrong."""
    from tacit.base.errors import TacitError

    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(TacitError, match=says) as caught:
        load_script(str(file))
    assert name in caught.value.message
    assert caught.value.hint
