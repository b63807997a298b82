"""What is concluded from a session, on the real sessions of the eight agents and on cases."""

import pytest
import trace_samples

from tacit.traces import derived
from tacit.traces.hosts import registry
from tacit.traces.kinds import kind_of
from tacit.traces.reading import read_trace
from tacit.traces.trace import REFUSED, Head, Text, ToolCall, Trace, Turn


@pytest.fixture(params=trace_samples.REAL)
def real(request: pytest.FixtureRequest) -> Trace:
    host = registry.get(request.param)
    return read_trace(host, next(iter(host.inside(str(trace_samples.file_of(request.param))))))


def made(*turns: tuple[str, list[ToolCall]]) -> Trace:
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
    assert derived.counts(real) == derived.Counts(2, 6, 4, 1, 0, 0, 0, 0)


def test_the_correction_in_real_sessions(real: Trace) -> None:
    """The second prompt of every real session, and only that, is a correction."""
    assert derived.corrections(real) == [derived.Correction(1, trace_samples.PROMPTS[1])]


def test_what_was_mended_in_real_sessions(real: Trace) -> None:
    """The build that failed is paired with the one that worked; the variable is what changed."""
    (found,) = derived.mended(real)
    assert found.error == "KeyError: 'VERSION'"
    assert found.before == "python3 build.py"
    assert found.after == "VERSION=1.2.3 python3 build.py"
    assert found.changed == ("+VERSION=1.2.3",)


def test_the_commands_of_real_sessions(real: Trace) -> None:
    """The three builds are listed in order, the first one failed."""
    found = [c for c in derived.commands(real) if "build.py" in c.text]
    assert [(c.turn, c.text, c.failed) for c in found] == [
        (0, "python3 build.py", True),
        (0, "VERSION=1.2.3 python3 build.py", False),
        (1, "read -r VERSION < VERSION; export VERSION; python3 build.py", False),
    ]


def test_the_files_of_real_sessions(real: Trace) -> None:
    """README.md was read once; Codex read it in the shell, which is not parsed."""
    wanted = [] if real.host == "codex" else [derived.Touched("README.md", read=1)]
    assert derived.files(real) == wanted


@pytest.mark.parametrize(
    "prompt",
    [
        "No, use tabs.", "don't do that", "Actually, the port is 8080", "stop", "That's wrong.",
        "I said python 3.11", "You forgot the tests", "It still fails", "不对,用另一个文件",
        "不要用 npm", "use pnpm instead", "From now on run the linter first",
        "Please don't commit", "Wait, undo that", "Nein, so nicht",
    ],
)  # fmt: skip
def test_corrections_are_recognised(prompt: str) -> None:
    """What people say to put an agent right, in several tongues."""
    assert derived.is_correction(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Now add a test for it.", "Thanks, that works.", "No problem, go on.", "Continue",
        "Notify the team when done", "Write a function that stops the server", "好的,继续",
        "What does this file do?", "Looks good, commit it", "No worries",
    ],
)  # fmt: skip
def test_other_prompts_are_no_corrections(prompt: str) -> None:
    """Thanks, questions and further work are not corrections."""
    assert not derived.is_correction(prompt)


def test_the_first_prompt_corrects_nothing() -> None:
    """A session that begins with "Don't …" begins with a wish, not with a correction."""
    assert derived.corrections(made(("Don't use npm here. Build it.", []))) == []


def test_a_refused_call_is_a_correction() -> None:
    """A call that the user refused counts, with what the user said."""
    refused = call("Bash", failed=True, error=REFUSED, command="rm -rf x")
    assert derived.corrections(made(("go", [refused])))[0].by == "refusal"


def test_unlike_successes_mend_nothing() -> None:
    """Another program or another file that works does not mend what failed."""
    calls = [
        call("Bash", failed=True, command="npm test"),
        call("Bash", command="ls -la"),
        call("Edit", failed=True, file_path="a.py"),
        call("Edit", file_path="b.py"),
    ]
    assert derived.mended(made(("go", calls))) == []


def test_the_last_of_several_failures_is_paired() -> None:
    """Three tries of which the third works: the second is the one that it is compared with."""
    calls = [
        call("Bash", failed=True, command="pytest -x"),
        call("Bash", failed=True, command="pytest tests -x"),
        call("Bash", command="PYTHONPATH=src pytest tests -x"),
        call("Bash", command="PYTHONPATH=src pytest tests -x"),
    ]
    (found,) = derived.mended(made(("go", calls)))
    assert found.before == "pytest tests -x"
    assert found.changed == ("+PYTHONPATH=src",)


def test_an_edit_that_works_the_second_time_is_mended() -> None:
    """For tools with files, the same file is the same purpose."""
    calls = [
        call("Edit", failed=True, file_path="a.py", old_string="x"),
        call("Read", file_path="a.py"),
        call("Edit", file_path="a.py", old_string="y"),
    ]
    (found,) = derived.mended(made(("go", calls)))
    assert found.failed.arguments["old_string"] == "x"


def test_files_are_seen_from_the_project() -> None:
    """A file in the project is named relative to it; reading and writing are counted apart."""
    calls = [
        call("Read", file_path="/p/src/a.py"),
        call("Edit", file_path="/p/src/a.py"),
        call("Write", file_path="/elsewhere/b"),
        call("Read", failed=True, file_path="/p/none"),
    ]
    assert derived.files(made(("go", calls))) == [
        derived.Touched("src/a.py", 1, 1),
        derived.Touched("/elsewhere/b", 0, 1),
    ]


def test_argument_vectors_are_commands() -> None:
    """A command given as a list of words, with or without a shell around it, is read as one."""
    calls = [
        call("shell", command=["bash", "-lc", "make all"]),
        call("shell", command=["git", "status"]),
    ]
    assert [c.text for c in derived.commands(made(("go", calls)))] == ["make all", "git status"]
