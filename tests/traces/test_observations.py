"""What a session shows by itself, on the real sessions of the eight agents and on cases."""

import pytest
import trace_samples
from hypothesis import given
from hypothesis import strategies as st

from tacit.testing.sample_sessions import called, made, ran
from tacit.traces import host_registry, observations
from tacit.traces.assembler import read_trace
from tacit.traces.observations import skills_written
from tacit.traces.tool_calls import kind_of
from tacit.traces.trace import REFUSED, Head, Text, ToolCall, Trace, Turn


@pytest.fixture(params=trace_samples.REAL)
def real(request: pytest.FixtureRequest) -> Trace:
    host = host_registry.get(request.param)
    return read_trace(host, next(iter(host.inside(str(trace_samples.file_of(request.param))))))


def trace_of(*turns: tuple[str, list[ToolCall]]) -> Trace:
    steps = [(prompt, (Text("ok"), *calls)) for prompt, calls in turns]
    return Trace(
        Head("test", "s", project="/p"),
        tuple(Turn(n, prompt, parts) for n, (prompt, parts) in enumerate(steps)),
    )


def call(name: str, /, failed: bool = False, error: str = "", **arguments: object) -> ToolCall:
    kind = kind_of(name, arguments)
    why = error or ("it broke" if failed else "")
    return ToolCall("1", name, kind, dict(arguments), "out", failed, why)


def test_the_figures_of_real_sessions(real: Trace) -> None:
    """Every real session counts 2 prompts, 6 texts, 4 calls, 1 failure and nothing unfinished."""
    assert observations.counts(real) == observations.Counts(2, 6, 4, 1, 0, 0, 0, 0)


def test_the_correction_in_real_sessions(real: Trace) -> None:
    """The second prompt of every real session, and only that, is a correction."""
    assert observations.corrections(real) == [observations.Correction(1, trace_samples.PROMPTS[1])]


def test_what_was_mended_in_real_sessions(real: Trace) -> None:
    """The build that failed is paired with the one that worked; the variable is what changed."""
    (found,) = observations.recoveries(real)
    assert found.error == "KeyError: 'VERSION'"
    assert found.before == "python3 build.py"
    assert found.after == "VERSION=1.2.3 python3 build.py"
    assert found.changed == ("+VERSION=1.2.3",)


def test_the_commands_of_real_sessions(real: Trace) -> None:
    """The three builds are listed in order, the first one failed."""
    found = [c for c in observations.commands(real) if "build.py" in c.text]
    assert [(c.turn, c.text, c.failed) for c in found] == [
        (0, "python3 build.py", True),
        (0, "VERSION=1.2.3 python3 build.py", False),
        (1, "read -r VERSION < VERSION; export VERSION; python3 build.py", False),
    ]


def test_the_files_of_real_sessions(real: Trace) -> None:
    """README.md was read once; Codex read it in the shell, which is not parsed."""
    wanted = [] if real.host == "codex" else [observations.Touched("README.md", read=1)]
    assert observations.files(real) == wanted


@pytest.mark.parametrize(
    "prompt",
    [
        "No, use tabs.", "don't do that", "stop", "That's wrong.",
        "I said python 3.11", "You forgot the tests", "It still fails", "不对,用另一个文件",
        "不要用 npm", "use pnpm instead", "From now on run the linter first",
        "Please don't commit", "Wait, undo that", "Nein, so nicht",
    ],
)  # fmt: skip
def test_corrections_are_recognised(prompt: str) -> None:
    """What people say to put an agent right, in several tongues."""
    assert observations.is_correction(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Now add a test for it.", "Thanks, that works.", "No problem, go on.", "Continue",
        "Notify the team when done", "Write a function that stops the server", "好的,继续",
        "What does this file do?", "Looks good, commit it", "No worries",
        "Actually, can you also show the log?", "Instead, tell me what it does",
        "don't worry about linting for now",
    ],
)  # fmt: skip
def test_other_prompts_are_no_corrections(prompt: str) -> None:
    """Thanks, questions and further work are not corrections."""
    assert not observations.is_correction(prompt)


def test_the_first_prompt_corrects_nothing() -> None:
    """A session that begins with "Don't …" begins with a wish, not with a correction."""
    assert observations.corrections(trace_of(("Don't use npm here. Build it.", []))) == []


def test_a_refused_call_is_a_correction() -> None:
    """A call that the user refused counts, with what the user said."""
    refused = call("Bash", failed=True, error=REFUSED, command="rm -rf x")
    assert observations.corrections(trace_of(("go", [refused])))[0].by == "refusal"


def test_unlike_successes_mend_nothing() -> None:
    """Another program or another file that works does not mend what failed."""
    calls = [
        call("Bash", failed=True, command="npm test"),
        call("Bash", command="ls -la"),
        call("Edit", failed=True, file_path="a.py"),
        call("Edit", file_path="b.py"),
    ]
    assert observations.recoveries(trace_of(("go", calls))) == []


def test_the_last_of_several_failures_is_paired() -> None:
    """Three tries of which the third works: the second is the one that it is compared with."""
    calls = [
        call("Bash", failed=True, command="pytest -x"),
        call("Bash", failed=True, command="pytest tests -x"),
        call("Bash", command="PYTHONPATH=src pytest tests -x"),
        call("Bash", command="PYTHONPATH=src pytest tests -x"),
    ]
    (found,) = observations.recoveries(trace_of(("go", calls)))
    assert found.before == "pytest tests -x"
    assert found.changed == ("+PYTHONPATH=src",)


def test_an_edit_that_works_the_second_time_is_mended() -> None:
    """For tools with files, the same file is the same purpose."""
    calls = [
        call("Edit", failed=True, file_path="a.py", old_string="x"),
        call("Read", file_path="a.py"),
        call("Edit", file_path="a.py", old_string="y"),
    ]
    (found,) = observations.recoveries(trace_of(("go", calls)))
    assert found.failed.arguments["old_string"] == "x"


def test_files_are_seen_from_the_project() -> None:
    """A file in the project is named relative to it; reading and writing are counted apart."""
    calls = [
        call("Read", file_path="/p/src/a.py"),
        call("Edit", file_path="/p/src/a.py"),
        call("Write", file_path="/elsewhere/b"),
        call("Read", failed=True, file_path="/p/none"),
    ]
    assert observations.files(trace_of(("go", calls))) == [
        observations.Touched("src/a.py", 1, 1),
        observations.Touched("/elsewhere/b", 0, 1),
    ]


def test_argument_vectors_are_commands() -> None:
    """A command given as a list of words, with or without a shell around it, is read as one."""
    calls = [
        call("shell", command=["bash", "-lc", "make all"]),
        call("shell", command=["git", "status"]),
        call("shell", command=["pwsh.exe", "-NoLogo", "-NoProfile", "-Command", "make it"]),
        call("shell", command=["git", "-c", "a=b", "log"]),
    ]
    assert [c.text for c in observations.commands(trace_of(("go", calls)))] == [
        "make all",
        "git status",
        "make it",
        "git -c a=b log",
    ]


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_no_skill_was_written_in_real_sessions(name: str) -> None:
    """No real session wrote a skill."""
    host = host_registry.get(name)
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
