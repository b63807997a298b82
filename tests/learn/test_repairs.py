"""Which failures speak against a skill."""

import pytest
from traces_of_skills import call, session

from tacit.base.setting_sections import ImproveSettings
from tacit.learn.improve.repairs import counted_failures, failure_key, outside_cause, step_command
from tacit.learn.skill_runs import SkillRun, runs_of
from tacit.traces.trace import REFUSED, ToolCall

BROKEN = call("Bash", "bash scripts/go.sh", "bash: scripts/go.sh: No such file or directory")
FINE = call("Bash", "ls", result="go.py")


def _run(*calls: ToolCall) -> SkillRun:
    (run,) = runs_of(session("demo", *calls))
    return run


def test_a_failed_step_counts() -> None:
    """A call that its host calls failed, and that was never got over, counts."""
    (found,) = counted_failures(_run(FINE, BROKEN, FINE), ImproveSettings())
    assert (found.step.number, found.cost) == (2, 0)


def test_words_do_not_count() -> None:
    """A result that merely speaks of failure is none."""
    assert (
        counted_failures(_run(call("Bash", "cat log", result="12 tests failed, error")), _S) == ()
    )


@pytest.mark.parametrize(
    "error",
    [
        "curl: (6) Could not resolve host: example.com",
        "ssh: connect: Network is unreachable",
        "npm ERR! getaddrinfo ENOTFOUND registry.npmjs.org",
        "write: No space left on device",
        "HTTP 429: Too Many Requests",
        "fork: Cannot allocate memory",
        "[interrupted by the user while it ran; it may be done in part]",
        REFUSED,
    ],
)
def test_the_environment_is_not_the_skill_s(error: str) -> None:
    """No network, a full disk, a refused prompt: no reason to change a skill."""
    run = _run(call("Bash", "bash scripts/go.sh", error))
    assert outside_cause(run.steps[0])
    assert counted_failures(run, _S) == ()


@pytest.mark.parametrize(
    "error",
    [
        "curl: (7) Failed to connect to localhost port 80: Connection refused",
        "Permission denied",
        "Exit code 1",
        "There is no tool 'Frobnicate'. The tools are: read_file.",
        "command not found: space",
    ],
)
def test_what_is_not_clear_counts(error: str) -> None:
    """A cause that may lie in the skill is looked at."""
    assert counted_failures(_run(call("Bash", "bash scripts/go.sh", error)), _S)


def test_what_was_got_over_counts_by_its_cost() -> None:
    """A failure that was got over counts from three calls on, and the number is a setting."""
    wins = call("Bash", "bash ./scripts/go.sh --quiet", result="ok")
    cheap, dear = _run(BROKEN, FINE, wins), _run(BROKEN, FINE, FINE, wins)
    assert counted_failures(cheap, _S) == ()
    assert [found.cost for found in counted_failures(dear, _S)] == [3]
    assert counted_failures(dear, ImproveSettings(recovered_calls=0)) == ()
    assert counted_failures(cheap, ImproveSettings(recovered_calls=2))


def test_a_threshold_of_failures() -> None:
    """Fewer failed steps than the setting asks for are none."""
    assert counted_failures(_run(BROKEN), ImproveSettings(failures=2)) == ()
    assert len(counted_failures(_run(BROKEN, BROKEN), ImproveSettings(failures=2))) == 2


def test_the_skill_that_governed_is_blamed() -> None:
    """Of two skills the one that was loaded last before the call answers for it."""
    from tacit.traces.trace import Activation

    made = session("first", FINE)
    turn = made.turns[0]
    steps = (*turn.steps, Activation("second"), BROKEN)
    import msgspec

    trace = msgspec.structs.replace(made, turns=(msgspec.structs.replace(turn, steps=steps),))
    first, second = runs_of(trace)
    assert counted_failures(first, _S) == ()
    assert len(counted_failures(second, _S)) == 1


def test_a_mark_is_of_the_failure_not_of_its_numbers() -> None:
    """Other folders and numbers are the same failure; another script is not."""
    one = call("Bash", "bash /a/b/go.sh x", "/a/b/go.sh: line 12: foo: not found")
    two = call("Shell", "cd /z && bash /z/go.sh x", "/z/go.sh: line 99: foo: not found")
    three = call("Bash", "bash /a/b/other.sh", "/a/b/other.sh: line 12: foo: not found")
    marks = [failure_key(_run(one).steps[0]) for one in (one, two, three)]
    assert marks[0] == marks[1] != marks[2]


@pytest.mark.parametrize("code", ["exit code 2", "[exit code 2]", "Exit code: 2", "failed"])
def test_an_exit_code_alone_is_no_failure_s_name(code: str) -> None:
    """Two failures of one command are told apart by what it said, where its host gives a number."""
    said = ("sh: cannot open scripts/go.sh", "go: the option --fast is gone")
    steps = [
        _run(call("Bash", "sh go.sh", code, result=f"{line}\n{code}")).steps[0] for line in said
    ]
    assert [step.said for step in steps] == list(said)
    assert failure_key(steps[0]) != failure_key(steps[1])


def test_commands_of_all_hosts() -> None:
    """A command is found however a host writes it; another tool has none."""
    wanted = {"command": ["bash", "-lc", "make test"]}
    assert step_command(_run(call("shell", wanted)).steps[0]) == "make test"
    assert step_command(_run(call("exec_command", {"cmd": "ls"})).steps[0]) == "ls"
    assert step_command(_run(call("Read", {"file_path": "x"})).steps[0]) == ""


_S = ImproveSettings()
