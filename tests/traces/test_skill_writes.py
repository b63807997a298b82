"""A session that changed skills is told from one that only used them, whatever the host."""

import pytest
import trace_samples
from hypothesis import given
from hypothesis import strategies as st

from tacit.testing.sessions import called, made, ran
from tacit.traces.hosts import registry
from tacit.traces.reading import read_trace
from tacit.traces.skill_writes import skills_written
from tacit.traces.trace import ToolCall


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_no_skill_was_written_in_real_sessions(name: str) -> None:
    """No real session wrote a skill."""
    host = registry.get(name)
    source = next(iter(host.inside(str(trace_samples.file_of(name)))))
    assert skills_written(read_trace(host, source)) == []


@pytest.mark.parametrize(
    "written",
    [
        called("Write", {"file_path": "/home/u/.claude/skills/pack/SKILL.md", "content": "x"}),
        called("edit", {"path": ".agents/skills/pack/references/more.md"}),
        called("write_file", {"file_path": "/home/u/.pi/agent/skills/pack/run.sh"}),
        called("apply_patch", {"input": "*** Begin Patch\n*** Add File: skills/pack/SKILL.md\n+x"}),
        called("skill_manage", {"action": "create", "name": "pack", "content": "x"}),
        called("manage_skill", {"action": "edit", "name": "pack"}),
        called("git_rollback", {"name": "pack"}),
        ran("mkdir -p .agents/skills/pack && cat > .agents/skills/pack/SKILL.md <<'E'\nx\nE"),
        ran("echo more >>~/.claude/skills/pack/references/a.md"),
        ran("printf x | tee -a .codex/skills/pack/SKILL.md >/dev/null"),
        ran("sed -i 's/a/b/' .gemini/skills/pack/SKILL.md"),
        ran("cp -r /tmp/pack ~/.claude/skills/"),
        ran("ln -s ../../shared/pack .qwen/skills/pack"),
        ran("cd x && sudo rm -rf .agents/skills/pack"),
        ran("git mv .github/skills/pack .github/skills/pack"),
        ran("FOO=1 tacit edit pack --from new.md"),
        ran("tacit archive pack", tool="exec_command"),
    ],
    ids=lambda call: str(call.arguments)[:60],
)
def test_a_skill_written_in_the_session_is_seen(written: ToolCall) -> None:
    """By a write, an edit, a patch, a skill tool, the shell or tacit: the skill's name is found."""
    assert skills_written(made(["go", written])) == ["pack"]


@pytest.mark.parametrize(
    "other",
    [
        called("Read", {"file_path": "skills/pack/SKILL.md"}),
        called("Write", {"file_path": "skills/pack/SKILL.md"}, "no", failed=True),
        called("Write", {"file_path": "src/tacit/skills/walk/files.py"}),
        called("Edit", {"file_path": "docs/skills/overview.md"}),
        called("Skill", {"skill": "pack"}),
        ran("cat skills/pack/SKILL.md > /tmp/x"),
        ran("cat < .agents/skills/pack/SKILL.md"),
        ran("cp .agents/skills/pack/SKILL.md /tmp/"),
        ran("grep -ri skill .agents/skills 2>/dev/null"),
        ran("sed -n 1,5p .agents/skills/pack/SKILL.md"),
        ran("bash .agents/skills/pack/scripts/run.sh > out.txt"),
        ran("cat > notes.md <<'E'\nthen: rm -rf .agents/skills/pack\nE\nls"),
        ran('git commit -m "docs; rm .agents/skills/pack"'),
        ran("tacit show pack && tacit list"),
        ran("echo 'unclosed > .agents/skills/pack/SKILL.md"),
        ran("rm -rf .agents/skills/pack", "no", failed=True),
    ],
    ids=lambda call: str(call.arguments)[:60],
)
def test_what_changes_no_skill_is_not_counted(other: ToolCall) -> None:
    """Reading, using, failing, writing elsewhere, and words in a text change no skill."""
    assert skills_written(made(["go", other])) == []


@given(st.text(alphabet="skil.tac/>|;&'\"()\\\n <-ax$`", max_size=200))
def test_any_command_can_be_looked_at(command: str) -> None:
    """Nothing that a shell could be given breaks the look."""
    assert all(isinstance(name, str) for name in skills_written(made(["go", ran(command)])))
