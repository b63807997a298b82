"""Files of sessions that are no agent's own: every form that is read, and our own sessions."""

import contextlib
import json
import os
import re
import resource
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tacit.base.errors import Unwritable
from tacit.testing import HOST_CHECKS, Expected, HostCase
from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.outcomes import Outcome
from tacit.traces.task_outcomes import trace_outcome
from tacit.traces.trace import Told, Trace, Usage

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
        ("wrapped.jsonl", [{"type": m["role"], "message": m} for m in MESSAGES]),
        ("wrapped.json", {"messages": [{"type": m["role"], "message": m} for m in MESSAGES]}),
    ],
)
def test_message_lists_in_every_wrapping(name: str, document: Any, tmp_path: Path) -> None:
    """A list, an object, several in one file, a line each, a message a line, or in a record."""
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


def test_of_two_answers_the_preferred_one_is_read(tmp_path: Path) -> None:
    """LLaMA-Factory's preference data: the other is counted, and was never said."""
    record = {"conversations": [{"from": "human", "value": "go"}],
              "chosen": {"from": "gpt", "value": "well"},
              "rejected": {"from": "gpt", "value": "badly"}}  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps([record]))
    (trace,) = imported(tmp_path / "x.json")
    assert (trace.texts, trace.skipped) == (("well",), {"rejected": 1})


def test_a_model_is_called_whatever_the_operation_is_named(tmp_path: Path) -> None:
    """Gemini CLI names it llm_call, and writes its answer without a role."""
    attributes = {
        "gen_ai.operation.name": "llm_call", "gen_ai.request.model": "m",
        "gen_ai.conversation.id": "c", "gen_ai.usage.output_tokens": 7,
        "gen_ai.system_instructions": '"Be short."', "gen_ai.tool.definitions": "[]",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"text": "go"}]}]',
        "gen_ai.output.messages": '{"parts": [{"text": "done"}]}',
    }  # fmt: skip
    span = {"name": "llm_call", "context": {"trace_id": "t", "span_id": "1"},
            "start_time": "2026-01-01T00:00:00Z", "attributes": attributes}  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps([span]))
    (trace,) = imported(tmp_path / "x.json")
    assert (trace.prompts, trace.texts, trace.usage.output) == (("go",), ("done",), 7)
    (source,) = host_registry.recognise(str(tmp_path / "x.json"))
    assert host_registry.get("otel").given(source).system == "Be short."


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


FORMS = Path(__file__).parents[1] / "fixtures" / "trace-forms"
PROMPTS = ("Build the package.", "No, with clang.")


class Form(NamedTuple):
    """A fixture: who reads it, and what stands in it where that differs from the others."""

    file: str
    host: str
    session: str = "conv-1"
    tokens: int = 40
    verdict: str = ""
    attachments: int = 0


WHOLE = [
    Form("openai.jsonl", "openai", "openai#at0", 0, attachments=1),
    Form("anthropic.jsonl", "openai", "anthropic#at0", 0, attachments=1),
    Form("sharegpt.jsonl", "sharegpt", "sharegpt#at0", 0),
    Form("atif-1.5.json", "atif"),
    Form("bedrock.jsonl", "openai", "bedrock#at0", 0, attachments=1),
    Form("tau2-bench.json", "tau-bench", "sim-1", verdict="reward: 1"),
    Form("tau-bench-react.json", "tau-bench", "tau-bench-react#doc0", 0, "reward: 1"),
    Form("openhands-0.json", "openhands", "openhands-0#doc0", 0, attachments=1),
    Form("openhands-1.jsonl", "openhands", "openhands-1#all", 0),
    Form("openhands-results.jsonl", "openhands", "demo__demo-1", 40, "resolved: true", 1),
    Form("otel-events.jsonl", "otel"),
    Form("otel-attributes.jsonl", "otel"),
    Form("otel-details.jsonl", "otel"),
    Form("otel-openllmetry.jsonl", "otel"),
    Form("openinference.jsonl", "openinference"),
    Form("phoenix.json", "openinference"),
    Form("spans-nested.json", "openinference"),
    Form("langfuse-api.json", "langfuse", verdict="correctness: false"),
    Form("langfuse-traces.json", "langfuse", verdict="correctness: false"),
    Form("langfuse-blob/observations_v2", "langfuse", verdict="correctness: true"),
    Form("langsmith.jsonl", "langsmith"),
]


@pytest.mark.parametrize("form", WHOLE, ids=lambda form: form.file)
def test_every_form_tells_the_same_session(form: Form) -> None:
    """Prompts, answers, calls with their results, failures, tokens, verdict; nothing told twice."""
    (trace,) = imported(FORMS / form.file)
    assert (trace.host, trace.session) == (form.host, form.session)
    shown = tuple(re.sub(r"\[\w+\]", "", p).strip() for p in trace.prompts)
    assert shown == PROMPTS
    assert trace.texts == ("I build.", "It is built: dist/demo.whl.", "With clang, then.")
    assert [(c.kind, c.arguments["command"], c.failed) for c in trace.calls] == [
        ("shell", "make", True),
        ("shell", "make -C src", False),
    ]
    assert "No rule to make target" in trace.calls[0].result
    assert trace.calls[1].result == "built dist/demo.whl"
    assert trace.usage.output == form.tokens
    assert trace.head.verdict == form.verdict
    assert trace.skipped == ({"attachment": form.attachments} if form.attachments else {})


@pytest.mark.parametrize("form", WHOLE, ids=lambda form: form.file)
def test_a_form_is_known_by_content_alone(form: Form, tmp_path: Path) -> None:
    """A file under another name, without an ending, is read by the same reader."""
    source = FORMS / form.file
    if source.is_dir():
        (source,) = source.iterdir()
    (tmp_path / "piped").write_bytes(source.read_bytes())
    assert {s.host for s in host_registry.recognise(str(tmp_path / "piped"))} == {form.host}


GIVEN_TOOLS = (
    "langsmith.jsonl", "openai.jsonl", "openinference.jsonl", "otel-openllmetry.jsonl",
    "phoenix.json", "spans-nested.json",
)  # fmt: skip


@pytest.mark.parametrize("form", WHOLE, ids=lambda form: form.file)
def test_what_the_model_was_given_is_found(form: Form) -> None:
    """The system's words, and the definitions of tools in the files that have them."""
    (source,) = host_registry.recognise(str(FORMS / form.file))
    given = host_registry.get(form.host).given(source)
    assert given.system.startswith("You are")
    names = [tool["function"]["name"] for tool in given.tools]
    assert names == (["run_command"] if form.file in GIVEN_TOOLS else [])


def test_the_system_may_speak_later(tmp_path: Path) -> None:
    """What it says in the middle of a conversation is a step, and nobody's prompt."""
    said = [("system", "Be short."), ("user", "Hi."), ("system", "Be long."), ("assistant", "Yes.")]
    messages = [{"role": role, "content": text} for role, text in said]
    turns = [{"from": role, "value": text} for role, text in said]
    request = {"params": {"model": "m", "system": [{"type": "text", "text": "Be short."}],
                          "tools": [{"name": "x", "input_schema": {"type": "object"}}],
                          "messages": messages[1:]}}  # fmt: skip
    for record in ({"messages": messages}, {"conversations": turns}, request):
        (tmp_path / "x.json").write_text(json.dumps(record))
        (source,) = host_registry.recognise(str(tmp_path / "x.json"))
        trace = read_trace(host_registry.get(source.host), source)
        assert host_registry.get(source.host).given(source).system == "Be short."
        assert trace.prompts == ("Hi.",)
        assert trace.turns[0].steps[0] == Told("Be long.", "system")
    (tool,) = host_registry.get(source.host).given(source).tools
    assert tool["function"]["parameters"] == {"type": "object"}


def test_resumed_context_is_not_counted_twice() -> None:
    """Copied steps are left out and counted; a helper's trajectory is a session of its own."""
    main, helper = imported(FORMS / "atif-1.8.json")
    assert main.prompts == ("No, with clang.\n[image]",)
    assert main.skipped == {"copied": 4, "attachment": 1}
    assert main.usage == Usage(400, 20, 100, cost=0.02)
    assert (helper.session, helper.head.parent) == ("helper-1", "conv-2")
    assert [step.text for step in helper.turns[0].steps if isinstance(step, Told)] == [
        "Find clang."
    ]


def test_what_was_not_captured_is_said() -> None:
    """Calls of a model whose messages were not recorded are counted, and the tools are there."""
    (trace,) = imported(FORMS / "otel-silent.jsonl")
    assert trace.skipped == {"no-content": 4}
    assert [(call.name, call.failed) for call in trace.calls] == [
        ("run_command", True),
        ("run_command", False),
    ]


@pytest.mark.parametrize("name", ["text", "toolcalls"])
def test_mini_swe_agent_as_it_writes(name: str) -> None:
    """Commands in fences and tool calls give the same run."""
    (trace,) = imported(FORMS / f"mini-swe-agent-{name}.traj.json")
    assert trace.prompts == ("Build the package.",)
    assert [call.failed for call in trace.calls] == [True, False, False]
    assert trace.usage.cost == 3.0
    assert trace.skipped == {}


def test_an_answer_without_a_call_is_no_reason_to_prompt(tmp_path: Path) -> None:
    """mini-swe-agent tells the model in the user's place that it may not answer so."""
    run = json.loads((FORMS / "mini-swe-agent-toolcalls.traj.json").read_text())
    refusals = [
        {"role": "assistant", "content": "Done, I think."},
        {"role": "user", "content": "No tool call.", "extra": {"interrupt_type": "FormatError"}},
        {"role": "user", "content": "Go on.", "extra": {"interrupt_type": "UserInterruption"}},
    ]
    (tmp_path / "x.traj.json").write_text(
        json.dumps(run | {"messages": run["messages"] + refusals})
    )
    (trace,) = imported(tmp_path / "x.traj.json")
    assert trace.prompts == ("Build the package.", "Go on.")
    assert Told("No tool call.", "system") in trace.turns[0].steps


def test_one_trace_of_langfuse_is_not_taken_for_claude_code(tmp_path: Path) -> None:
    """The API gives a trace with its observations, which have a session and need no trace's id."""
    page = json.loads((FORMS / "langfuse-traces.json").read_text())
    for name, found in (("one.json", page["data"][0]), ("line.jsonl", page["data"][0])):
        (tmp_path / name).write_text(json.dumps(found))
        (trace,) = imported(tmp_path / name)
        assert (trace.host, trace.session, trace.prompts[0]) == ("langfuse", "conv-1", PROMPTS[0])
    blob = json.loads((FORMS / "langfuse-api.json").read_text())[0]["observations"]
    lines = [json.dumps(one | {"sessionId": "conv-1"}) + "\n" for one in blob]
    (tmp_path / "blob.jsonl").write_text("".join(lines))
    assert [s.host for s in host_registry.recognise(str(tmp_path / "blob.jsonl"))] == ["langfuse"]


def test_what_is_no_message_is_counted(tmp_path: Path) -> None:
    """A line that says nothing, and a call without a name."""
    lines = [*MESSAGES, {"type": "progress"}, {"role": "assistant", "tool_calls": [{"id": "9"}]}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (trace,) = imported(tmp_path / "x.jsonl")
    assert (len(trace.calls), trace.skipped) == (2, {"unknown-record": 2})


def test_rewards_and_reports_become_outcomes(tmp_path: Path) -> None:
    """A reward in the file, a report beside the runs, and Harbor's folder of a trial."""
    shutil.copytree(FORMS / "swe-agent", tmp_path / "swe")
    shutil.copytree(FORMS / "swe-agent", tmp_path / "trial" / "none")
    for name in ("agent", "verifier"):
        (tmp_path / "trial" / name).mkdir()
    shutil.copy(FORMS / "atif-1.5.json", tmp_path / "trial/agent/trajectory.json")
    (tmp_path / "trial/verifier/reward.txt").write_text("0.0\n")
    assert [trace_outcome(t).state for t in imported(FORMS / "tau-bench.json")] == [
        "worked",
        "failed",
    ]
    runs = {t.session: trace_outcome(t) for t in imported(tmp_path / "swe")}
    assert runs["demo__demo-1"] == Outcome("worked", "verdict", "resolved: true")
    assert runs["demo__demo-2"] == Outcome("failed", "verdict", "resolved: false")
    (harbor,) = imported(tmp_path / "trial/agent")
    assert trace_outcome(harbor).evidence == "reward: 0"


OTHER = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "count_traces.py"))
"""A walk over the JSON that shares nothing with the readers."""
WALKED = {
    "atif-1.5.json": "atif", "atif-1.8.json": "atif", "sharegpt.jsonl": "sharegpt",
    "openai.jsonl": "openai", "anthropic.jsonl": "openai", "bedrock.jsonl": "openai",
    "tau-bench.json": "tau-bench", "tau2-bench.json": "tau-bench",
    "tau-bench-react.json": "tau-bench", "openhands-0.json": "openhands",
    "openhands-1.jsonl": "openhands", "openhands-results.jsonl": "openhands",
    "mini-swe-agent-text.traj.json": "swe-agent", "swe-agent/demo__demo-1.traj": "swe-agent",
    "mini-swe-agent-toolcalls.traj.json": "swe-agent",
}  # fmt: skip


@pytest.mark.parametrize(("name", "form"), WALKED.items())
def test_counts_are_those_of_another_parse(name: str, form: str) -> None:
    """As many prompts and calls as counting the JSON gives."""
    read = OTHER["read_counts"](imported(FORMS / name))
    assert read == OTHER["walked_counts"](form, FORMS / name)
    assert min(read) > 0


@pytest.mark.parametrize("name", ["openai.jsonl", "tau-bench.json"])
def test_every_conversation_of_a_file_is_a_session(name: str, tmp_path: Path) -> None:
    """Lines, and the items of one list."""
    file = tmp_path / name
    if name.endswith(".jsonl"):
        file.write_text((FORMS / name).read_text() * 50)
    else:
        file.write_text(json.dumps(json.loads((FORMS / name).read_text()) * 50))
    traces = imported(file)
    assert len({trace.session for trace in traces}) == (50 if name.endswith("l") else 100)
    assert OTHER["read_counts"](traces) == OTHER["walked_counts"](WALKED[name], file)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in some JSON, also in texts that hold JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _objects(part)


def _commands(file: Path) -> set[str]:
    """The commands that a file of any form says were run, found without knowing the form."""
    text = file.read_text()
    found: set[str] = set()
    for line in text.splitlines() if file.suffix == ".jsonl" else [text]:
        for value in _objects(json.loads(line)):
            found |= {value["command"]} if isinstance(value.get("command"), str) else set()
            found |= {value["action"]} if isinstance(value.get("action"), str) else set()
            words = value.get("value") or value.get("content")
            if isinstance(words, str):
                found |= set(re.findall(r'"command": "(.*?)"', words))
    return {command for command in found if command.startswith("make")}


@pytest.mark.parametrize("name", sorted(p.name for p in FORMS.iterdir() if p.suffix != ".md"))
def test_every_command_of_a_file_is_a_call(name: str) -> None:
    """Whatever the form: what another walk over the JSON finds was called, once each."""
    files = [p for p in (FORMS / name).rglob("*.*") if p.suffix in (".jsonl", ".traj")]
    for file in files or [FORMS / name]:
        for trace in imported(file):
            if trace.head.parent or "copied" in trace.skipped or not trace.calls:
                continue
            called = [call.arguments.get("command", "") for call in trace.calls]
            assert sorted(c for c in called if c.startswith("make")) == sorted(_commands(file))


def test_an_id_that_is_used_again_is_another_call(tmp_path: Path) -> None:
    """Cached answers repeat ids: each call keeps its own result, also where ids are left out."""

    def call(name: str, call_id: str | None) -> list[dict[str, Any]]:
        asked = {"function": {"name": name, "arguments": "{}"}} | (
            {"id": call_id} if call_id else {}
        )
        return [
            {"role": "assistant", "content": "", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call_id, "content": f"of {name}"},
        ]

    user = {"role": "user", "content": "go"}
    again = [user, *call("a", "1"), *call("b", "1"), *call("c", "1")]
    first, second = call("d", None)[0], call("e", None)[0]
    nameless = [user, first, second, call("d", None)[1], call("e", None)[1]]
    for messages, wanted in ((again, "abc"), (nameless, "de")):
        (tmp_path / "x.json").write_text(json.dumps(messages))
        (trace,) = imported(tmp_path / "x.json")
        assert [(c.name, c.result) for c in trace.calls] == [(n, f"of {n}") for n in wanted]


def test_files_of_no_known_form_are_named(tmp_path: Path) -> None:
    """JSON that nobody claims, or that is broken, is told of; what is none is nobody's business."""
    (tmp_path / "other.json").write_text('{"some": "thing"}')
    (tmp_path / "cut.json").write_text('[{"messages": [{"role":')
    (tmp_path / "setup.cfg").write_text("[section]")
    (tmp_path / "notes.txt").write_text("words")
    shutil.copy(FORMS / "openai.jsonl", tmp_path)
    unknown: list[str] = []
    found = host_registry.recognise(str(tmp_path), unknown.append)
    assert [source.host for source in found] == ["openai"]
    assert [Path(file).name for file in unknown] == ["cut.json", "other.json"]


def test_a_session_of_the_hubs_form(tmp_path: Path) -> None:
    """A line that names the session, then a line for each message."""
    lines = [{"type": "session", "harness": "x", "id": "s1"}]
    lines += [{"type": "message", "message": message} for message in MESSAGES]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (trace,) = imported(tmp_path / "x.jsonl")
    assert (trace.id, len(trace.prompts), len(trace.calls)) == ("openai:s1", 2, 2)


def test_an_export_of_ours_is_read_as_what_it_was(tmp_path: Path) -> None:
    """`extra.tacit` gives back the host, who told what, replies, failures and times."""
    ours = {"project": "/p", "title": "t", "usage": {"input": 5, "output": 6}}
    result = {"failed": True, "error": "it broke", "duration": 2.0, "reply": "not that"}
    steps = [
        {"step_id": 1, "source": "user", "message": "a plan", "extra": {"tacit": {"told": "plan"}}},
        {"step_id": 2, "source": "agent", "message": "ok", "timestamp": "2026-11-15T10:00:00Z",
         "tool_calls": [{"tool_call_id": "c", "function_name": "Bash", "arguments": {}}],
         "observation": {"results": [{"source_call_id": "c", "content": "{}",
                                      "extra": {"tacit": result}}]},
         "extra": {"tacit": {"then": [{"type": "skill", "name": "pack"}]}}},
        {"step_id": 3, "source": "system", "message": "so far",
         "extra": {"tacit": {"told": "compaction"}}},
    ]  # fmt: skip
    document = {
        "schema_version": "ATIF-v1.7", "session_id": "s", "steps": steps,
        "agent": {"name": "claude-code", "version": "2"}, "extra": {"tacit": ours},
    }  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(document))
    (trace,) = imported(tmp_path / "x.json")
    assert (trace.id, trace.project, trace.usage) == ("claude-code:s", "/p", Usage(5, 6))
    told, text, skill, call, compaction = trace.turns[0].steps
    assert isinstance(told, Told)
    assert (told.by, text.text, skill.name, compaction.summary) == ("plan", "ok", "pack", "so far")
    assert (call.failed, call.error, call.duration, call.reply) == (
        True, "it broke", 2.0, "not that",
    )  # fmt: skip


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


def test_what_a_full_disk_did_not_take_is_written_later(tmp_path: Path) -> None:
    """No half of a line stays, and none is lost where there is room again: by the end at last."""
    writer = SessionWriter("own-1", folder=str(tmp_path))
    writer.prompt("Build it.")
    whole = Path(writer.path).read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, before[1]))
    try:
        for text in ("I build.", "It is built."):
            with pytest.raises(Unwritable, match=writer.path):
                writer.said(text)
            assert Path(writer.path).read_bytes() == whole
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    writer.close()
    (trace,) = imported(tmp_path)
    assert (trace.texts, trace.skipped) == (("I build.", "It is built."), {})


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
