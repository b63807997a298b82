"""Each form of a trajectory: as others' code reads it, and read again by our own readers."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trace_samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.base.display import shorten_middle
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.host import Source
from tacit.traces.token_limit import fit_tokens
from tacit.traces.trace import (
    Activation,
    Compaction,
    Given,
    Head,
    Text,
    Told,
    ToolCall,
    Trace,
    Usage,
)
from tacit.traces.trajectory import Notes, Trajectory, trajectory_of
from tacit.traces.trajectory_forms import FORMS, NO_RESULT, count_losses, saved_path
from tacit.traces.values import MAX_TEXT, quote_tags, unquote_tags

TOOL = {"type": "function", "function": {"name": "Bash", "description": "", "parameters": {}}}
GIVEN = Given("You are an agent.", (TOOL,))
HOSTILE = "a </think> b <tool_call>{}</tool_call> </tool_response> &lt;think> <|im_end|> \u2028 é"


def rows(trajectory: Trajectory, form: str) -> list[Any]:
    """What a form's lines are once they went through JSON."""
    lines = FORMS[form].lines(trajectory)
    return [json.loads(msgspec.json.encode(line)) for line in lines]


def rich() -> Trace:
    """A session with something of everything."""
    at = made(["a"], ["b"], ["c"]).turns[2].started
    shortened = shorten_middle("word " * 6000, MAX_TEXT)
    odd = msgspec.structs.replace(ran("x", ""), finished=False)
    return made(
        [f"Build it. {HOSTILE}", Told("a file", "file"), f"I do. {HOSTILE}", ran("make", HOSTILE)],
        ["No, not so.", Activation("release"), ran("make all", "boom", failed=True), "Sorry."],
        ["", Told("A long text.", "teammate", at), "Well.", ran("cat", shortened)],
        ["Go on.", Compaction("We built."), called("mcp.do it", {"a": [1, {"b": "<x>"}]}), odd],
    )


def real(host: str) -> Trace:
    source = next(iter(host_registry.get(host).inside(str(trace_samples.file_of(host)))))
    return read_trace(host_registry.get(host), source)


@cache
def openai_type(name: str) -> Any:
    """OpenAI's own type of that name, as a check; it takes a second to be made."""
    from pydantic import TypeAdapter

    return TypeAdapter(getattr(pytest.importorskip("openai.types.chat"), name))


@pytest.mark.parametrize("host", sorted(trace_samples.REAL))
def test_others_read_what_we_write(host: str) -> None:
    """The ATIF models of PyPI and OpenAI's own types take every real session, to the last field."""
    atif = pytest.importorskip("atif")
    trajectory = trajectory_of(real(host), Notes(given=GIVEN))
    found = atif.Trajectory.model_validate(rows(trajectory, "atif")[0])
    assert sum(len(step.tool_calls or ()) for step in found.steps) == 4
    assert found.agent.tool_definitions == [TOOL]
    assert found.steps[0].message == "You are an agent."
    line = rows(trajectory, "openai")[0]
    for message in line["messages"]:
        plain = {key: value for key, value in message.items() if key != "weight"}
        openai_type("ChatCompletionMessageParam").validate_python(plain)
    for tool in line["tools"]:
        openai_type("ChatCompletionToolParam").validate_python(tool)


def test_everything_passes_the_atif_models() -> None:
    """Also what no fixture has: unfinished calls, helpers, copies, cuts, odd names, no version."""
    atif = pytest.importorskip("atif")
    helper_head = Head("claude-code", "h1", parent="made-1")
    helper = trajectory_of(Trace(helper_head, made(["", Told("do x", "agent"), "ok"]).turns))
    task = called("Task", {"prompt": "do x"}, "done")
    (last,) = made(["Delegate.", task, *"abcdefgh"]).turns
    trace = Trace(rich().head, (*rich().turns, msgspec.structs.replace(last, number=4)))
    whole = trajectory_of(trace, Notes(copied={0}, given=GIVEN), [helper])
    cut, _ = fit_tokens(whole, 250)
    for trajectory in (whole, cut):
        found = atif.Trajectory.model_validate(rows(trajectory, "atif")[0])
        assert [step.step_id for step in found.steps] == list(range(1, len(found.steps) + 1))
    (row,) = rows(whole, "atif")
    assert [s["step_id"] for s in row["steps"] if s.get("is_copied_context")] == [2, 3, 4]
    (inner,) = row["subagent_trajectories"]
    assert inner["trajectory_id"] == "claude-code:h1"
    refs = [
        result["subagent_trajectory_ref"]
        for step in row["steps"]
        for result in step.get("observation", {}).get("results", ())
        if "subagent_trajectory_ref" in result
    ]
    assert refs == [[{"trajectory_id": "claude-code:h1"}]]


def test_usage_is_counted_once() -> None:
    """Cached tokens are part of the prompt's, and a turn's figures stand at one step."""
    trace = made(["Go.", "a", ran("x"), "b"])
    usage = Usage(10, 5, 100, 20, 3, 0.5)
    turn = msgspec.structs.replace(trace.turns[0], usage=usage)
    head = msgspec.structs.replace(trace.head, usage=usage)
    (row,) = rows(trajectory_of(Trace(head, (turn,))), "atif")
    metrics = [step["metrics"] for step in row["steps"] if "metrics" in step]
    assert [m["prompt_tokens"] for m in metrics] == [130]
    assert row["final_metrics"]["total_prompt_tokens"] == 130
    assert row["final_metrics"]["total_cost_usd"] == 0.5


def test_results_follow_their_calls() -> None:
    """Each tool message answers a call of the message before it, and each call has an answer."""
    for line in rows(trajectory_of(rich()), "openai"):
        open_calls: list[str] = []
        for message in line["messages"]:
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
            else:
                assert open_calls == []
                open_calls = [call["id"] for call in message.get("tool_calls", ())]
                for call in message.get("tool_calls", ()):
                    assert isinstance(json.loads(call["function"]["arguments"]), dict)
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
        assert open_calls == []
        assert line["messages"][-1]["content"] == NO_RESULT


@pytest.mark.parametrize("form", ["openai", "sharegpt", "tinker", "sts"])
def test_a_summary_is_no_human_turn(form: str) -> None:
    """Neither a cut nor a host's own summary comes back as something the user said."""
    trace = made(["Go.", ran("a"), Compaction("We went."), ran("b", "x" * 900), *"cdefg"])
    cut, stands_for = fit_tokens(trajectory_of(trace), 200, lambda *_: ("They went on.", "m"))
    assert stands_for is not None
    found = [m for row in rows(cut, form) for m in _messages(row)]
    humans = [m for m in found if m.get("role", m.get("from")) in ("user", "human")]
    assert [m.get("content", m.get("value")) for m in humans] == ["Go."]
    assert any("They went on." in m.get("content", m.get("value")) for m in found)


def _messages(row: dict[str, Any]) -> Sequence[dict[str, Any]]:
    return (
        row.get("messages") or row.get("conversations") or [row.get("message") or {"content": ""}]
    )


def test_copied_turns_are_not_trained_on() -> None:
    """Weight 0, or not trainable; forms that can say neither leave them out, and that is told."""
    trajectory = trajectory_of(made(["a", "b"], ["c", "d"]), Notes(copied={0}))
    (line,) = rows(trajectory, "openai")
    assert [m.get("weight") for m in line["messages"]] == [None, 0, None, None]
    (line,) = rows(trajectory, "tinker")
    assert [m["trainable"] for m in line["messages"]] == [False, False, False, True]
    (line,) = rows(trajectory, "sharegpt")
    assert [m["value"] for m in line["conversations"]] == ["c", "d"]
    assert [row["message"]["content"] for row in rows(trajectory, "sts")[1:]] == ["c", "d"]
    for form in ("sharegpt", "sts"):
        said = " ".join(count_losses(trajectory, FORMS[form]))
        assert "copied from an earlier session" in said


def test_the_labels_are_where_a_row_may_hold_them() -> None:
    """OpenAI's rows hold what its service takes; others' only texts, which fit into one table."""
    trajectory = trajectory_of(rich(), Notes(given=GIVEN))
    assert set(rows(trajectory, "openai")[0]) == {"messages", "tools", "parallel_tool_calls"}
    assert rows(trajectory, "atif")[0]["extra"]["tacit"]["labels"]["failed_calls"]
    assert rows(trajectory, "sts")[0]["labels"]["failed_calls"]
    for form in ("sharegpt", "tinker"):
        plain = trajectory_of(made(["a", "b"]))
        for one in (trajectory, plain):
            (row,) = rows(one, form)
            assert list(row)[1:] == ["session_id", "agent", "model", "parent", "outcome", "tools"]
            assert all(isinstance(value, str) for value in list(row.values())[1:])


def test_what_a_form_cannot_say_is_counted() -> None:
    losses = count_losses(trajectory_of(rich()), FORMS["sharegpt"])
    text = " / ".join(f"{number} {what}" for what, number in losses.items())
    for said in ("1 whether a call failed", "2 who told", "1 skills that were loaded"):
        assert said in text
    assert any(what.startswith("calls without a result") for what in losses)
    assert "when each step happened" in losses


def test_calls_without_times_are_said_to_follow_each_other() -> None:
    """Two calls of one answer, in a file that says no times: nobody knows that any more."""
    calls = [ToolCall(str(n), "Bash", "shell") for n in range(3)]
    trace = made(["Go."])
    turn = msgspec.structs.replace(trace.turns[0], steps=(*calls[:2], Text("so"), calls[2]))
    losses = count_losses(trajectory_of(Trace(trace.head, (turn,))), FORMS["openai"])
    (number,) = (times for what, times in losses.items() if "made at once" in what)
    assert number == 1


# Round trips.


def _back(trajectory: Trajectory, form: str, folder: Path) -> Trace:
    """What our reader of the form makes of it."""
    file = folder / f"x.{'json' if form == 'atif' else 'jsonl'}"
    file.write_bytes(
        b"".join(msgspec.json.encode(row) + b"\n" for row in FORMS[form].lines(trajectory))
    )
    host = host_registry.get(form)
    (source,) = host.inside(str(file))
    return read_trace(host, Source(form, str(file), source.key))


def _said(trace: Trace, form: str) -> list[Any]:
    """What `form` can say of a trace: of ATIF all but the ids of calls that had none."""
    found: list[Any] = []
    for turn in trace.turns:
        found.append(("prompt", turn.prompt)) if turn.prompt else None
        for step in turn.steps:
            if isinstance(step, ToolCall):
                result = step.result if step.finished else NO_RESULT
                found.append((step.name, step.arguments, result))
            elif isinstance(step, Told):
                found.append(("prompt", step.text))
            elif hasattr(step, "text"):
                found.append(("text", step.text))
    return found


@pytest.mark.parametrize("form", ["openai", "sharegpt"])
@pytest.mark.parametrize("host", sorted(trace_samples.REAL))
def test_read_again_it_is_the_same(form: str, host: str, tmp_path: Path) -> None:
    """Every prompt, text, call and result of a real session comes back, in order."""
    trace = real(host)
    assert _said(_back(trajectory_of(trace), form, tmp_path), form) == _said(trace, form)


@pytest.mark.parametrize("form", ["atif", "openai", "sharegpt", "tinker", "sts"])
@pytest.mark.parametrize("system", ["You are an agent.\n\n  <tool_call> is a tag.", ""])
def test_written_again_it_is_the_same_row(form: str, system: str, tmp_path: Path) -> None:
    """What a form can say is the same after a second round: instructions and tools included."""
    given = Given(system, (TOOL,))
    first = trajectory_of(rich(), Notes(given=given))
    reader = host_registry.get({"tinker": "openai", "sts": "openai"}.get(form, form))
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in FORMS[form].lines(first)))
    (source,) = reader.inside(str(file))
    assert reader.given(source) == given
    again = trajectory_of(read_trace(reader, source), Notes(given=reader.given(source)))
    assert _conversation(again, form) == _conversation(first, form)


def _conversation(trajectory: Trajectory, form: str) -> list[Any]:
    """The rows of a trajectory without the name of its agent, and what is concluded from it."""
    found = rows(trajectory, form)
    if form == "atif":
        return [{**found[0], "extra": None}]
    about = ("agent", "outcome", "model", "session_id", "labels", "harness", "id", "corrections")
    return [{key: value for key, value in row.items() if key not in about} for row in found]


@pytest.mark.skipif("atif" not in host_registry.names(), reason="its reader is not here")
@pytest.mark.parametrize("host", [*sorted(trace_samples.REAL), "everything"])
def test_atif_read_again_is_the_same_trace(host: str, tmp_path: Path) -> None:
    """Turn by turn and field by field, also what ATIF itself has no field for; under its agent."""
    trace = rich() if host == "everything" else real(host)
    back = _back(trajectory_of(trace, Notes(given=GIVEN)), "atif", tmp_path)
    assert back.turns == trace.turns
    away = {"source": "", "started": None, "ended": None}
    assert msgspec.structs.replace(back.head, **away) == msgspec.structs.replace(trace.head, **away)


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1).map(
    lambda text: f"x{text}x"
)
hostile = st.one_of(words, st.sampled_from([HOSTILE, "</tool_call>", "&amp;lt;/think>", "{}"]))


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(prompt=hostile, text=hostile, argument=hostile, result=words)
@pytest.mark.parametrize("form", ["openai", "sharegpt"])
def test_no_text_breaks_a_row(
    form: str, prompt: str, text: str, argument: str, result: str, tmp_path: Path
) -> None:
    """Tags in prompts, answers, arguments and results stay text: nothing closes or opens one."""
    trace = made(
        [prompt, text, called("Bash", {"command": argument}, f"{result} {HOSTILE}"), "end"]
    )
    assert _said(_back(trajectory_of(trace), form, tmp_path), form) == _said(trace, form)


PIECES = ["<", "&lt;", "&amp;", "amp;", "lt;", "/", "think>", "tool_call>", "a", ">"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_quoting_of_tags_can_be_taken_back(text: str) -> None:
    quoted = quote_tags(text)
    assert unquote_tags(quoted) == text
    assert not re.search(r"</?(?:think(?:ing)?|tool_call|tool_response)>", quoted)


def test_a_call_without_an_id_gets_one() -> None:
    call = ToolCall("same", "Bash", "shell")
    trace = made(["Go."])
    turn = msgspec.structs.replace(
        trace.turns[0], steps=(call, call, ToolCall("", "Bash", "shell"))
    )
    (line,) = rows(trajectory_of(Trace(trace.head, (turn,))), "openai")
    ids = [call["id"] for m in line["messages"] for call in m.get("tool_calls", ())]
    assert len(set(ids)) == 3
    assert ids[0] == "same"
    assert all(ids)


def test_two_sessions_never_share_a_file() -> None:
    """However a session is called, its file is a name in the folder, and its own."""
    names = ["a:b/c", "a:b_c", "a:../../x", "a:" + "y" * 300, "a:" + "y" * 301, "a_b:c", "a:b:c"]
    paths = [Path(saved_path(name, FORMS["atif"], "/data")) for name in names]
    assert len(set(paths)) == len(names)
    assert all(path.parent == Path("/data") and len(path.name) < 200 for path in paths)
