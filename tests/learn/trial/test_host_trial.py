"""A run by a host's program: a home of its own, the skills of its side alone, its session kept."""

import json
from pathlib import Path

import pytest

from tacit.agent.sandbox import NoSandbox
from tacit.base.errors import NotFound
from tacit.base.setting_sections import Settings
from tacit.changes.change import File
from tacit.learn.trial import host_trial
from tacit.learn.trial.arms import Arms, Side
from tacit.learn.trial.host_trial import HostAgent
from tacit.learn.trial.trial_run import Ran, clean_folder
from tacit.learn.trial.trial_tasks import Task
from tacit.traces import host_registry
from tacit.traces.store import Store

SKILL = {"SKILL.md": File(b"---\nname: notes\ndescription: d\n---\nx\n"), "evals/e": File(b"x")}
PROGRAM = """#!/bin/sh
[ -z "$OTHER" ] && [ "$ANTHROPIC_API_KEY" = test ] && [ "$TACIT_WORKER" = 1 ] || exit 3
skills=$(ls "$HOME/.claude/skills" 2>/dev/null)
mkdir -p "$HOME/.claude/projects/p"
python3 - "$PWD" "$(cat)" "$skills" > "$HOME/.claude/projects/p/s-$$.jsonl" <<'END'
import json, sys
where, said, skills = sys.argv[1:]
base = {"sessionId": "s" + where[-12:-5], "cwd": where, "timestamp": "2026-11-16T00:00:00Z"}
print(json.dumps({**base, "type": "user", "message": {"content": said}}))
if skills:
    use = {"type": "tool_use", "id": "1", "name": "Skill", "input": {"skill": skills}}
    print(json.dumps({**base, "type": "assistant", "message": {"content": [use]}}))
END
echo "$skills" > out.txt
ANSWER
"""
GOOD = """echo '{"type": "result", "subtype": "success", "result": "done", "total_cost_usd": 0.2,
"usage": {"input_tokens": 9, "output_tokens": 1}}'"""
BAD = """echo '{"type": "result", "subtype": "success", "is_error": true, "result": "API Error"}'"""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies below /tmp, as a test's program does, cannot be seen in the sandbox."""
    monkeypatch.setattr(host_trial, "find_sandbox", lambda allow_none=False: NoSandbox())


def install(home: Path, monkeypatch: pytest.MonkeyPatch, answer: str = GOOD) -> None:
    program = home / "bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAM.replace("ANSWER", answer))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    monkeypatch.setenv("OTHER", "secret")


def ran(side: Side) -> tuple[Ran, str]:
    task = Task(id="t", prompt="Take notes in /app", root="/app")
    with clean_folder(task) as (work, above):
        Arms("notes", {"with": SKILL, "without": {}}).lay_out(side, f"{above}/skills")
        found = HostAgent(Settings(), "claude").run(task, work, f"{above}/skills", 1)
        out = Path(work, "out.txt")
        return found, out.read_text().strip() if out.exists() else ""


def test_a_program_has_the_skills_of_its_side_and_no_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what it read, called and cost is known, and its session can be opened."""
    install(home, monkeypatch)
    (home / ".claude" / "skills" / "mine").mkdir(parents=True)
    (found, out), (_, without) = ran("with"), ran("without")
    assert (out, without) == ("notes", "")
    assert (found.skills, found.calls, found.tokens, found.cost) == (("notes",), 1, 10, 0.2)
    assert not found.void
    with Store.open() as store:
        trace = store.trace(found.session)
    assert trace.host == host_registry.get("claude-code").name
    assert trace.prompts[0].startswith("Take notes in /")
    assert "/app" not in trace.prompts[0]


def test_a_program_that_fails_by_itself_makes_a_void_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(home, monkeypatch, BAD)
    assert ran("with")[0].void == "API Error"
    install(home, monkeypatch, "echo Segmentation fault")
    assert "Segmentation fault" in ran("with")[0].void


def test_what_cannot_do_tasks_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotFound, match="not on the PATH"):
        HostAgent(Settings(), "claude")
    with pytest.raises(NotFound, match="no agent is known as 'opencod'") as told:
        HostAgent(Settings(), "opencod")
    assert "opencode" in told.value.hint


def test_every_program_that_can_do_tasks_says_how() -> None:
    from tacit.agent.host_program import host_programs
    from tacit.traces.program import Question

    able = [found.program for found in host_programs(tasks=True)]
    words = "claude codex gemini qwen copilot opencode pi hermes"
    assert {program.word for program in able} == set(words.split())
    for program in able:
        start = program.work(Question("Do it", model="m"))
        assert "Do it" in (start.stdin, *start.words)
        assert "m" in start.words
        assert json.dumps(start.files)
    assert "hermes" not in {found.program.word for found in host_programs()}


def test_a_server_of_ones_own_is_told_to_programs_that_know_it_by_settings() -> None:
    """Without its key: that stays in the environment."""
    from tacit.agent.host_program import host_programs
    from tacit.traces.program import Question

    asked = Question("Do it", model="m", server="http://127.0.0.1:9/v1")
    for found in host_programs(tasks=True):
        start = found.program.work(asked)
        told = "".join([*start.files.values(), *start.variables.values(), *start.words])
        knows = found.program.word in ("codex", "opencode", "pi", "hermes")
        assert (asked.server in told, "OPENAI_API_KEY" in told) == (knows, knows)
