"""Every host by the contract, and what single hosts write besides the samples."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import trace_samples

from tacit.base.errors import NotFound
from tacit.testing import HOST_CHECKS, HostCase
from tacit.traces import host_folders, host_registry
from tacit.traces.assembler import Reading, read_trace
from tacit.traces.host import Source, zstd_module
from tacit.traces.observations import paths_of
from tacit.traces.outcomes import call_outcome
from tacit.traces.store import Store
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import REFUSED, Told, Trace
from tacit.work import intake


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", trace_samples.REAL)
def test_a_host_keeps_the_contract(name: str, check, tmp_path: Path) -> None:
    """Each of the eight gives 2 prompts, 4 calls, 1 failure, 6 texts, 120 tokens, the project."""
    path = str(trace_samples.file_of(name))
    check(
        HostCase(host_registry.get(name), path, trace_samples.expected(name), str(tmp_path / "s"))
    )


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_a_host_finds_its_sessions_at_home(name: str, agents: Path) -> None:
    """Each agent's session is found where the agent put it, and the agent counts as used."""
    host = host_registry.get(name)
    assert host.homes()
    found = list(host.find())
    assert [source.path for source in found] == [str(agents / trace_samples.REAL[name][1])]
    assert read_trace(host, found[0]).session == trace_samples.REAL[name][2]


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_no_agent_no_sessions(name: str, home: Path) -> None:
    """In an empty home no agent is there, and no session is found."""
    host = host_registry.get(name)
    assert host.homes() == []
    assert list(host.find()) == []


def test_a_variable_moves_a_hosts_home(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CODEX_HOME and HERMES_HOME are honoured as the hosts honour them."""
    (agents / ".codex").rename(agents / "elsewhere")
    assert list(host_registry.get("codex").find()) == []
    monkeypatch.setenv("CODEX_HOME", str(agents / "elsewhere"))
    assert len(list(host_registry.get("codex").find())) == 1
    (agents / ".hermes").rename(agents / "h")
    monkeypatch.setenv("HERMES_HOME", str(agents / "h"))
    assert len(list(host_registry.get("hermes").find())) == 1


def test_a_folder_is_sorted_out_by_form(agents: Path) -> None:
    """Given a folder with all of them, each session goes to the host that wrote it, once."""
    found = host_registry.recognise(str(agents))
    assert sorted(source.host for source in found) == sorted(trace_samples.REAL)


def test_each_tested_agent_is_known_whole() -> None:
    """Every agent names its skill folders, its keys, the events to hook, and how to connect it."""
    for name in trace_samples.REAL:
        host = host_registry.get(name)
        assert host.tested
        assert host.hooks.turn
        assert host.connector()
        (folders,) = [row for row in host_folders.host_folders() if row.host == name]
        assert folders.user
        assert folders.secrets
        assert folders.row() == host.folders().row()


def read(host: str, folder: Path, *records: Any, name: str = "s.jsonl") -> Trace:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    trace = read_trace(host_registry.get(host), Source(host, str(path)))
    assert "host-error" not in trace.skipped
    return trace


def claude(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "sessionId": "s", "message": message, **more}


def test_claude_slash_commands(tmp_path: Path) -> None:
    """A skill that the user calls is a prompt and a skill; the program's own are neither."""
    trace = read(
        "claude-code",
        tmp_path,
        claude("user", "<command-name>/clear</command-name><command-args></command-args>"),
        claude("user", "<local-command-stdout>done</local-command-stdout>"),
        claude("user", "<command-name>/pack</command-name><command-args>now</command-args>"),
        claude("user", [{"type": "text", "text": "the skill's body"}], isMeta=True),
        claude("assistant", [{"type": "text", "text": "ok"}]),
    )
    assert trace.prompts == ("/pack now",)
    assert trace.skills == ("pack",)


def test_claude_side_chains_and_subagents(tmp_path: Path) -> None:
    """What a helper did is part of its session, and what it was told is the agent's word."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    side = [
        claude("user", "find it", isSidechain=True, agentId="a1"),
        claude("assistant", [call], isSidechain=True, agentId="a1"),
    ]
    main = read("claude-code", tmp_path, claude("user", "go"), *side)
    assert (main.prompts, len(main.calls), len(main.turns)) == (("go",), 1, 1)
    for name in ("p/s/subagents/agent-a1.jsonl", "p/agent-a1.jsonl"):
        own = read("claude-code", tmp_path, *side, name=name)
        assert (own.prompts, own.session, own.head.parent) == ((), "agent-a1", "s")
        assert own.turns[0].steps[0] == Told("find it", "agent")


def test_claude_compaction_and_refusal(tmp_path: Path) -> None:
    """A summary is no prompt; a refused call failed because the user said so."""
    refusal = "The user doesn't want to proceed with this tool use. To tell you how: use make"
    trace = read(
        "claude-code",
        tmp_path,
        claude("user", "go"),
        claude("assistant", [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}]),
        claude(
            "user",
            [{"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": refusal}],
        ),
        claude("user", "[Request interrupted by user for tool use]"),
        claude("user", "This session is being continued…", isCompactSummary=True),
    )
    assert trace.prompts == ("go",)
    assert trace.failures[0].error == REFUSED
    assert [len(turn.compactions) for turn in trace.turns] == [1]


def test_claude_circles_in_parent_links(tmp_path: Path) -> None:
    """Records that are each other's parents are read in the order of the file."""
    records = [
        claude("user", "one", uuid="a", parentUuid="b"),
        claude("user", "two", uuid="b", parentUuid="a"),
        claude("user", "three", uuid="c", parentUuid="c"),
    ]
    assert read("claude-code", tmp_path, *records).prompts == ("one", "two", "three")


def test_claude_usage_is_counted_once_a_message(tmp_path: Path) -> None:
    """The usage repeated on each block of a message counts once, its last figure."""
    blocks = [
        claude(
            "assistant",
            [{"type": "text", "text": str(n)}],
            message={"id": "m", "model": "x", "usage": {"output_tokens": n}},
        )
        for n in (1, 7)
    ]
    assert read("claude-code", tmp_path, claude("user", "go"), *blocks).usage.output == 7


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def test_codex_older_forms(tmp_path: Path) -> None:
    """Prompts as user_message, results as JSON with an exit code, patches as custom calls."""
    output = json.dumps({"output": "no such file\n", "metadata": {"exit_code": 2}})
    trace = read(
        "codex",
        tmp_path,
        codex("session_meta", id="c1", cwd="/p", cli_version="0.40",
              git={"repository_url": "https://me:word@github.com/Acme/tool.git"}),
        codex("response_item", type="message", role="user", content=[{"text": "<environment>"}]),
        codex("event_msg", type="user_message", message="go"),
        codex("response_item", type="function_call", call_id="1", name="shell",
              arguments='{"command": ["bash", "-lc", "ls x"]}'),
        codex("response_item", type="function_call_output", call_id="1", output=output),
        codex("response_item", type="custom_tool_call", call_id="2", name="apply_patch",
              input="*** Begin Patch\n*** Update File: a.py\n"),
        codex("response_item", type="custom_tool_call_output", call_id="2", output="Success."),
        codex("compacted", message="so far"),
        codex("event_msg", type="agent_reasoning", text="…"),
    )  # fmt: skip
    assert trace.head.repository == "github.com/acme/tool"
    assert trace.prompts == ("go",)
    assert [(call.kind, call.failed) for call in trace.calls] == [("shell", True), ("edit", False)]
    assert trace.failures[0].error == "no such file"
    assert trace.turns[0].compactions[0].summary == "so far"


def test_codex_lines_of_the_time_before_payloads(tmp_path: Path) -> None:
    say = lambda role, text: {"type": "message", "role": role, "content": [{"text": text}]}  # noqa: E731
    trace = read(
        "codex",
        tmp_path,
        {"id": "c1", "timestamp": "2025-08-20T13:20:47Z", "instructions": None,
         "git": {"branch": "main"}},
        {"record_type": "state"},
        say("user", "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"),
        say("user", "run the tests"),
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "id": "f", "call_id": "1", "name": "shell",
         "arguments": json.dumps({"command": ["bash", "-lc", "make test"]})},
        {"type": "function_call_output", "call_id": "1",
         "output": json.dumps({"output": "1 failed", "metadata": {"exit_code": 2}})},
        say("assistant", "One fails."),
        say("user", "run the tests"),
    )  # fmt: skip
    assert (trace.session, trace.project, trace.head.branch) == ("c1", "/p", "main")
    assert trace.prompts == ("run the tests", "run the tests")
    call, said = trace.turns[0].calls[0], trace.turns[0].texts
    assert (call.result, call.failed, said) == ("1 failed", True, ("One fails.",))


def test_codex_failures_told_by_the_sandbox_and_patches_within_the_shell(tmp_path: Path) -> None:
    """Older versions put the exit code before the output, and apply patches of shell commands."""
    patch = "*** Begin Patch\n*** Update File: a.py\n*** End Patch"
    told = "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, "
    calls = [
        (["bash", "-lc", "pytest -q"], f"{told}exit code: 2, stdout: \nE  no module named a"),
        (["bash", "-lc", f"apply_patch << 'PATCH'\n{patch}\nPATCH"], "Success."),
        (["apply_patch", patch], "Success."),
        (["bash", "-lc", "grep apply_patch notes.md"], "apply_patch"),
    ]
    lines = [codex("event_msg", type="user_message", message="go")]
    for number, (command, output) in enumerate(calls):
        given = json.dumps({"command": command})
        lines += [
            codex("response_item", type="function_call", call_id=f"{number}", name="shell",
                  arguments=given),
            codex("response_item", type="function_call_output", call_id=f"{number}", output=output),
        ]  # fmt: skip
    trace = read("codex", tmp_path, *lines)
    kinds = [(call.kind, call.failed) for call in trace.calls]
    assert kinds == [("shell", True), ("edit", False), ("edit", False), ("shell", False)]
    assert trace.calls[0].result == "\nE  no module named a"
    assert [paths_of(call) for call in trace.calls[1:3]] == [["a.py"], ["a.py"]]


def test_codex_prompt_told_by_both_events_counts_once(tmp_path: Path) -> None:
    """And the same words as a later prompt count again."""
    item = {"type": "UserMessage", "content": [{"type": "text", "text": "go"}]}
    both = (
        codex("event_msg", type="user_message", message="go"),
        codex("event_msg", type="item_completed", item=item),
    )
    answer = codex("response_item", type="message", role="assistant", content=[{"text": "ok"}])
    assert read("codex", tmp_path, *both, answer, *both).prompts == ("go", "go")


def scripted(call: str, script: str, *printed: str) -> list[dict[str, Any]]:
    """A call of Codex's `exec`, and what it gave."""
    texts = [{"type": "input_text", "text": text} for text in printed]
    head = {"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"}
    return [
        codex("response_item", type="custom_tool_call", call_id=call, name="exec", input=script),
        codex("response_item", type="custom_tool_call_output", call_id=call,
              output=[head, *texts]),
    ]  # fmt: skip


def test_codex_commands_within_scripts(tmp_path: Path) -> None:
    """A script's commands are commands; an exit code that it prints counts, and one that it does
    not print is not known."""
    ended = '{"exit_code":%d,"output":"done"}'
    trace = read(
        "codex",
        tmp_path,
        codex("event_msg", type="user_message", message="go"),
        *scripted("1", 'const r = await tools.exec_command({cmd:"ls \\"a b\\"",workdir:"/p/src"});'
                       " text(r.output)", "a"),
        *scripted("2", "const w = '/p'; const r = await tools.exec_command({\"cmd\": `cat ${w}/x`,"
                       " workdir: w}); text(JSON.stringify(r))", ended % 2),
        *scripted("3", 'for (const r of await Promise.all([tools.exec_command({cmd:"one"}),'
                       ' tools.exec_command({cmd:"two"})])) text(JSON.stringify(r))',
                  ended % 0, ended % 0),
        *scripted("4", 'const p = "*** Begin Patch\\n*** Update File: a.py\\n*** End Patch";'
                       " text(await tools.apply_patch(p))", "{}"),
        *scripted("5", "text(ALL_TOOLS.length)", "7"),
    )  # fmt: skip
    assert [command_of(call) for call in trace.calls[:3]] == [
        'ls "a b"', "cat /p/x", "one && two",
    ]  # fmt: skip
    assert [call.kind for call in trace.calls] == ["shell", "shell", "shell", "edit", "other"]
    assert [call.failed for call in trace.calls[:3]] == [False, True, False]
    assert trace.calls[0].arguments["workdir"] == "/p/src"
    assert trace.calls[0].result == "Script completed\na"
    assert trace.calls[2].result == "done\ndone"
    assert "*** Update File: a.py" in trace.calls[3].arguments["input"]


def test_codex_command_that_goes_on(tmp_path: Path) -> None:
    """Its end, which a later call sees, is the command's own."""
    running = "Chunk ID: 1\nProcess running with session ID 7\nOutput:\ncompiling\n"
    ended = "Chunk ID: 2\nProcess exited with code 3\nOutput:\n1 failed\n"
    trace = read(
        "codex",
        tmp_path,
        codex("event_msg", type="user_message", message="go"),
        codex("response_item", type="function_call", call_id="1", name="exec_command",
              arguments='{"cmd": "cargo test"}'),
        codex("response_item", type="function_call_output", call_id="1", output=running),
        *(record for at in "23" for record in (
            codex("response_item", type="function_call", call_id=at, name="write_stdin",
                  arguments='{"session_id": 7, "chars": ""}'),
            codex("response_item", type="function_call_output", call_id=at,
                  output=running if at == "2" else ended),
        )),
    )  # fmt: skip
    assert trace.calls[0].failed
    assert trace.calls[0].result == "1 failed\n"
    assert call_outcome(trace.calls[0]).state == "failed"
    assert trace.calls[1].result.startswith("Process running with session ID 7\n")


def test_codex_output_that_speaks_of_exit_codes(tmp_path: Path) -> None:
    """Only the envelope says whether a command failed, not what the command printed."""
    text = "Chunk ID: 1\nProcess exited with code 0\nOutput:\nthe test exited with code 1\n"
    trace = read(
        "codex",
        tmp_path,
        codex("event_msg", type="user_message", message="go"),
        codex("response_item", type="function_call", call_id="1", name="exec_command",
              arguments="{}"),
        codex("response_item", type="function_call_output", call_id="1", output=text),
    )  # fmt: skip
    assert trace.failures == ()
    assert trace.calls[0].result == "the test exited with code 1\n"


def test_codex_call_of_a_tool_that_is_not_there(tmp_path: Path) -> None:
    """It failed, and no skill was loaded by it."""
    trace = read(
        "codex",
        tmp_path,
        codex("event_msg", type="user_message", message="go"),
        codex("response_item", type="function_call", call_id="1", name="read_skill",
              arguments='{"name": "ship-it"}'),
        codex("response_item", type="function_call_output", call_id="1",
              output="unsupported call: read_skill"),
    )  # fmt: skip
    assert [call.name for call in trace.failures] == ["read_skill"]
    assert trace.skills == ()


def test_gemini_history_alone_is_read(tmp_path: Path) -> None:
    """A file that holds nothing but the history of a resumed session is read from that."""
    messages = [
        {"id": "0", "type": "user", "content": [{"text": "<session_context>x"}]},
        {"id": "1", "type": "user", "content": [{"text": "go"}]},
        {"id": "2", "type": "gemini", "content": [
            {"text": "ok"}, {"functionCall": {"id": "c", "name": "read_file", "args": {}}}]},
        {"id": "3", "type": "user", "content": [
            {"functionResponse": {"id": "c", "response": {"output": "text"}}}]},
    ]  # fmt: skip
    header = {"sessionId": "g", "projectHash": "x"}
    trace = read("gemini", tmp_path, header, {"$set": {"messages": messages}})
    assert (trace.prompts, trace.texts) == (("go",), ("ok",))
    assert (trace.calls[0].kind, trace.calls[0].result) == ("read", "text")


def test_pi_skills_and_compaction(tmp_path: Path) -> None:
    """A skill that the user called stands in the prompt as a block; a summary is a compaction."""
    said = '<skill name="pack" location="/x/SKILL.md">\nbody\n</skill>\n\nnow'
    trace = read(
        "pi",
        tmp_path,
        {"type": "session", "id": "p", "cwd": "/p"},
        {"type": "message", "message": {"role": "user", "content": said}},
        {"type": "compaction", "summary": "so far"},
    )
    assert trace.prompts == ("/skill:pack now",)
    assert trace.skills == ("pack",)
    assert trace.turns[0].compactions[0].summary == "so far"


def test_gemini_older_documents(tmp_path: Path, home: Path) -> None:
    """Older versions wrote one JSON document a session, anew each time; it is found and read."""
    call = {"id": "1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success"}
    messages = [
        {"type": "warning", "id": "0", "content": "a hook failed"},
        {"type": "user", "id": "1", "content": "go"},
        {"type": "gemini", "id": "2", "content": "ok", "toolCalls": [call]},
    ]
    file = home / ".gemini" / "tmp" / "x" / "chats" / "session-2026-02-03T04-09-29eb990e.json"
    file.parent.mkdir(parents=True)
    document = {"sessionId": "g", "projectHash": "x", "messages": messages}
    file.write_text(json.dumps(document, indent=2))
    host = host_registry.get("gemini")
    (found,) = host.find()
    assert [source.path for source in host_registry.recognise(str(home))] == [found.path]
    trace = read_trace(host, found)
    assert (trace.session, trace.prompts, trace.texts) == ("g", ("go",), ("ok",))
    assert (len(trace.calls), trace.skipped) == (1, {})
    file.write_text("{}")
    assert list(host.inside(str(file))) == []


@pytest.mark.parametrize(
    ("project", "path"),
    [("/home/ann/infra", "/home/ann/infra/ai/a.yml"), ("C:\\w\\infra", "C:\\w\\infra\\a.yml")],
)
def test_gemini_folders_named_for_a_hash(project: str, path: str, home: Path) -> None:
    """Older versions name no project; it is the folder of that hash, and no other."""
    calls = [
        {"id": str(n), "name": "write_file", "args": {"file_path": told}, "status": "success"}
        for n, told in enumerate(("/home/ann/other/b.yml", "../c.yml", path))
    ]
    for own in (project, f"{project}er"):
        name = hashlib.sha256(own.encode()).hexdigest()
        file = home / ".gemini" / "tmp" / name / "chats" / "session-2026-02-03T04-09-29eb990e.json"
        file.parent.mkdir(parents=True)
        messages = [
            {"type": "user", "id": "1", "content": "go"},
            {"type": "gemini", "id": "2", "content": "ok", "toolCalls": calls},
        ]
        document = {"sessionId": name, "projectHash": name, "messages": messages}
        file.write_text(json.dumps(document))
    host = host_registry.get("gemini")
    assert sorted(read_trace(host, found).project for found in host.find()) == ["", project]


def test_copilot_subagents_and_skills(tmp_path: Path) -> None:
    """A helper's events are its parent's, but not what it was told; an invoked skill is seen."""
    trace = read(
        "copilot",
        tmp_path,
        {"type": "session.start", "data": {"sessionId": "c", "context": {"cwd": "/p"}}},
        {"type": "user.message", "data": {"content": "go"}},
        {"type": "skill.invoked", "data": {"name": "pack"}},
        {"type": "user.message", "data": {"content": "find", "parentToolCallId": "t"}},
        {"type": "assistant.message", "data": {"content": "inner", "parentToolCallId": "t"}},
        {"type": "user.message", "data": {"content": "body", "source": "skill-pack"}},
    )
    assert (trace.prompts, trace.texts, trace.skills) == (("go",), ("inner",), ("pack",))


def test_cursor(tmp_path: Path) -> None:
    """Prompts without their tags, calls, no counts."""
    trace = read(
        "cursor",
        tmp_path,
        {"role": "user", "message": {"content": [
            {"type": "text", "text": "<user_query>\ngo\n</user_query>"}]}},
        {"role": "assistant", "message": {"content": [
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]}},
        name="x/agent-transcripts/abc/abc.jsonl",
    )  # fmt: skip
    assert (trace.session, trace.prompts, trace.texts) == ("abc", ("go",), ("ok",))
    assert trace.calls[0].kind == "shell"
    assert not host_registry.get("cursor").tested


def test_openhands(tmp_path: Path) -> None:
    """Messages, actions and observations from event files; more events are read on from."""
    events = [
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"text": "go"}]}},
        {"kind": "ActionEvent", "tool_name": "terminal", "tool_call_id": "1",
         "thought": [{"text": "I look"}], "tool_call": {"arguments": '{"command": "ls x"}'}},
        {"kind": "ObservationEvent", "tool_call_id": "1",
         "observation": {"content": [{"text": "no x"}], "exit_code": 2}},
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"text": "more"}]}},
        {"kind": "Condensation", "summary": "so far"},
        {"kind": "FromTheFuture"},
    ]  # fmt: skip
    folder = tmp_path / "conv"
    (folder / "events").mkdir(parents=True)
    metrics = {"a": {"accumulated_cost": 0.5, "accumulated_token_usage": {"completion_tokens": 9}}}
    state = {"id": "oh", "workspace": {"working_dir": "/p"}, "stats": {"usage_to_metrics": metrics}}
    (folder / "base_state.json").write_text(json.dumps(state))
    host = host_registry.get("openhands")
    kept, bookmark = [], None
    for number, event in enumerate(events):
        (folder / "events" / f"event-{number:05}-x.json").write_text(json.dumps(event))
        (source,) = host.inside(str(tmp_path))
        reading = Reading(host, source, bookmark)
        kept = [turn for turn in kept if turn.number < reading.first] + list(reading)
        bookmark = reading.bookmark
    trace = read_trace(host, source)
    assert tuple(kept) == trace.turns
    assert reading.head == trace.head
    assert (trace.prompts, trace.texts, trace.session) == (("go", "more"), ("I look",), "oh")
    assert trace.failures[0].error == "no x"
    assert (trace.usage.output, trace.usage.cost, trace.project) == (9, 0.5, "/p")
    assert trace.skipped == {"unknown-record": 1}


def test_a_huge_file_without_a_line_end_is_no_matter(tmp_path: Path) -> None:
    """Half a gigabyte of zeros, as a full disk leaves them, behind a session changes nothing."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(trace_samples.file_of("pi").read_bytes())
    with path.open("r+b") as file:
        file.truncate(512 * 1024 * 1024)
    trace = read_trace(host_registry.get("pi"), Source("pi", str(path)))
    assert len(trace.prompts) == 2
    assert trace.skipped == {"too-long": 1}


def packed(file: Path) -> Path:
    """A session of Codex, compressed as it does that."""
    made = file.with_name(file.name + ".zst")
    made.write_bytes(zstd_module().compress(file.read_bytes(), 3))
    return made


def test_a_session_that_codex_compressed_is_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    """Found and read like the plain one, which counts while there are both; stored once."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    day = tmp_path / "codex/sessions/2026/11/15"
    day.mkdir(parents=True)
    plain = trace_samples.copy_of("codex", day)
    host = host_registry.get("codex")
    with Store.open(str(tmp_path / "x.db")) as store:
        (source,) = host.find()
        first, whole = store.take_in(host, source), read_trace(host, source)
        compressed = packed(plain)
        assert [s.path for s in host.find()] == [str(plain)]
        plain.unlink()
        (source,) = host.find()
        again = store.take_in(host, source)
        assert (first.status, again.status) == ("new", "unchanged")
        assert len(store.sessions()) == 1
    assert (source.path, read_trace(host, source).turns) == (str(compressed), whole.turns)
    assert [s.host for s in host_registry.recognise(str(tmp_path / "codex"))] == ["codex"]
    assert host.given(source).system


def test_a_compressed_session_that_cannot_be_read(tmp_path: Path, monkeypatch: Any) -> None:
    """One that is damaged is counted, and passed over where sessions are looked for."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    day = tmp_path / "codex/sessions/2026/11/15"
    day.mkdir(parents=True)
    compressed = packed(trace_samples.copy_of("codex", day))
    host = host_registry.get("codex")
    compressed.with_suffix("").unlink()
    compressed.write_bytes(compressed.read_bytes()[:300])
    (source,) = host.find()
    assert read_trace(host, source).skipped == {"unreadable": 1}
    assert host_registry.recognise(str(compressed)) == []
    with pytest.raises(NotFound, match="no session") as error:
        intake.sources(str(compressed))
    assert "zstdcat" in error.value.hint
