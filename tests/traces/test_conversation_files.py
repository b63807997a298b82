"""Files of conversations that are no agent's own: message lists, ShareGPT, SWE-agent; and ours."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tacit.base.errors import Unwritable
from tacit.testing import HOST_CHECKS, Expected, HostCase
from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.trace import Trace, Usage

MESSAGES = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "Build it."},
    {"role": "assistant", "content": "I build.", "tool_calls": [
        {"id": "1", "function": {"name": "bash", "arguments": '{"command": "make"}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": '{"output": "no rule", "exit_code": 2}'},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "2", "function": {"name": "bash", "arguments": '{"command": "make -C src"}'}}]},
    {"role": "tool", "tool_call_id": "2", "content": "ok"},
    {"role": "user", "content": [{"type": "text", "text": "No, with clang."}]},
    {"role": "assistant", "content": [{"type": "text", "text": "With clang."}]},
]  # fmt: skip


def imported(path: Path) -> list[Trace]:
    return [read_trace(host_registry.get(s.host), s) for s in host_registry.recognise(str(path))]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("list.json", MESSAGES),
        ("object.json", {"id": "x", "model": "m", "messages": MESSAGES}),
        ("several.json", [{"messages": MESSAGES}, {"messages": MESSAGES}]),
        ("lines.jsonl", [{"messages": MESSAGES}, {"messages": MESSAGES}]),
        ("loose.jsonl", MESSAGES),
    ],
)
def test_message_lists_in_every_wrapping(name: str, document: Any, tmp_path: Path) -> None:
    """A list, an object, several in one file, a line each, or a message a line."""
    path = tmp_path / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(part) + "\n" for part in document))
    else:
        path.write_text(json.dumps(document, indent=1))
    traces = imported(path)
    assert len(traces) == (2 if name in ("several.json", "lines.jsonl") else 1)
    for trace in traces:
        assert trace.host == "openai"
        assert trace.prompts == ("Build it.", "No, with clang.")
        assert trace.texts == ("I build.", "With clang.")
        assert [(call.kind, call.failed) for call in trace.calls] == [
            ("shell", True),
            ("shell", False),
        ]
        assert trace.failures[0].result == "no rule"
    assert len({trace.session for trace in traces}) == len(traces)


def test_messages_in_anthropics_form(tmp_path: Path) -> None:
    """Calls and results as content blocks."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "x"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "bad", "is_error": True}]},
    ]  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(messages))
    (trace,) = imported(tmp_path / "x.json")
    assert (trace.prompts, trace.texts) == (("go",), ("ok",))
    assert trace.failures[0].error == "bad"


def test_sharegpt(tmp_path: Path) -> None:
    """Tool calls in tags, two at once answered in order; several conversations in one file."""
    calls = "".join(
        f'<tool_call>{{"name": "bash", "arguments": {{"command": "{c}"}}}}</tool_call>'
        for c in "ab"
    )
    conversation = [
        {"from": "system", "value": "tools"},
        {"from": "human", "value": "go"},
        {"from": "gpt", "value": f"<think>hm</think>I look. {calls}"},
        {"from": "tool", "value": "<tool_response>one</tool_response>"
         "<tool_response>Error: two</tool_response>"},
        {"from": "gpt", "value": "done"},
    ]  # fmt: skip
    line = json.dumps({"conversations": conversation})
    (tmp_path / "x.jsonl").write_text(f"{line}\n{line}\nnot json\n")
    first, second = imported(tmp_path / "x.jsonl")
    assert first.turns == second.turns
    assert (first.host, first.prompts, first.texts) == ("sharegpt", ("go",), ("I look.", "done"))
    assert [(c.arguments["command"], c.result, c.failed) for c in first.calls] == [
        ("a", "one", False),
        ("b", "Error: two", True),
    ]


def test_swe_agent(tmp_path: Path) -> None:
    """A .traj: the task, thoughts, actions with their kinds, observations, cost."""
    run = {
        "history": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "demo", "is_demo": True},
            {"role": "user", "content": "Fix the bug."},
        ],
        "trajectory": [
            {"thought": "Look.", "action": "str_replace_editor view /r/a.py",
             "observation": "1 x", "execution_time": 0.5},
            {"thought": "Run.", "action": "python a.py",
             "observation": "Traceback (most recent call last)\nKeyError: 1"},
            {"thought": "Write.", "action": "create b.py", "observation": "ok"},
        ],
        "info": {"model_stats": {"instance_cost": 0.2, "tokens_received": 40}},
    }  # fmt: skip
    (tmp_path / "repo__1.traj").write_text(json.dumps(run))
    (trace,) = imported(tmp_path)
    assert (trace.host, trace.session, trace.prompts) == ("swe-agent", "repo__1", ("Fix the bug.",))
    assert [(c.kind, c.failed) for c in trace.calls] == [
        ("read", False),
        ("shell", True),
        ("write", False),
    ]
    assert trace.failures[0].error == "KeyError: 1"
    assert (trace.usage.output, trace.usage.cost) == (40, 0.2)


def test_mini_swe_agent(tmp_path: Path) -> None:
    """Commands in fences, results as the user's messages, which are no prompts."""
    run = {
        "info": {"mini_version": "1"},
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": "Run.\n```bash\nmake\n```"},
            {"role": "user", "content": "<returncode>2</returncode>\nno rule"},
        ],
    }
    (tmp_path / "x.traj.json").write_text(json.dumps(run))
    (trace,) = imported(tmp_path / "x.traj.json")
    assert trace.prompts == ("Fix it.",)
    assert (trace.calls[0].arguments, trace.calls[0].failed) == ({"command": "make"}, True)


def write_own(folder: Path) -> str:
    """A session as Tacit's own agent writes it."""
    writer = SessionWriter("own-1", folder=str(folder), project="/p", model="m", version="1")
    writer.prompt("Build it.")
    writer.activated("pack")
    writer.said("I build.")
    writer.called("1", "run_command", {"command": "make"})
    writer.returned("1", "no rule", failed=True, error="no rule", seconds=0.25)
    writer.used(Usage(10, 20, cost=0.5))
    writer.prompt("No, with clang.")
    writer.compacted("so far")
    writer.delegated("helper", "look", "own-2")
    writer.said("Done.")
    writer.close()
    return writer.path


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
def test_own_sessions_keep_the_contract(check, tmp_path: Path) -> None:
    """What the writer wrote is read back, under the same contract as every host."""
    path = write_own(tmp_path / "sessions")
    expected = Expected("own-1", "/p", ("Build it.", "No, with clang."), ("shell",), 1, 2, 20, "m")
    check(HostCase(host_registry.get("tacit"), path, expected, str(tmp_path / "s")))


def test_own_sessions_are_complete(tmp_path: Path) -> None:
    """Skills, compactions, subagents, durations and costs come back as they were written."""
    write_own(tmp_path)
    (trace,) = imported(tmp_path)
    assert trace.skills == ("pack",)
    assert trace.failures[0].duration == 0.25
    assert trace.turns[1].compactions[0].summary == "so far"
    assert trace.turns[1].subagents[0].session == "own-2"
    assert trace.usage == Usage(10, 20, cost=0.5)


def test_a_session_goes_on_after_a_kill(tmp_path: Path) -> None:
    """A line that a kill cut off is one lost line: what is written later is whole."""
    path = write_own(tmp_path)
    os.truncate(path, os.path.getsize(path) - 10)
    writer = SessionWriter("own-1", folder=str(tmp_path))
    writer.said("Again.")
    writer.close()
    (trace,) = imported(Path(path))
    assert trace.texts == ("I build.", "Again.")
    assert trace.skipped == {"not-json": 1}


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a" * 200])
def test_a_session_name_stays_a_file_name(name: str, tmp_path: Path) -> None:
    """No name of a session leads out of the folder."""
    with pytest.raises(ValueError, match="cannot name a file"):
        SessionWriter(name, folder=str(tmp_path))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The error is one that a person sees."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable):
        SessionWriter("s", folder=str(tmp_path / "file"))
