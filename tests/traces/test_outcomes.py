"""How calls, tasks and sessions ended, and by what that is known."""

import pytest

from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.outcomes import absent_program, call_outcome, purpose_outcomes
from tacit.traces.store import Store
from tacit.traces.task_outcomes import task_outcome, task_outcomes, trace_outcome
from tacit.traces.trace import REFUSED, ToolCall

# What was run, what it printed, whether the host says that it failed, and what is right.
SHELL = [
    ("pytest -q", "3 passed in 0.1s", False, ("worked", "exit code")),
    ("pytest -q | tail -5", "3 passed in 0.1s", False, ("worked", "output")),
    ("pytest -q | tail -5", "= 1 failed, 2 passed in 0.1s =", False, ("failed", "output")),
    ("pytest 2>&1 | tail -1", "boring", False, ("unclear", "hidden")),
    ("set -o pipefail; pytest | tail -1", "boring", False, ("worked", "exit code")),
    ("npm test | tail", "Tests:  2 failed, 5 passed", False, ("failed", "output")),
    ("bun test src | tail", "error: Database down\n 12 pass\n 0 fail", False, ("worked", "output")),
    ("npx astro check | tail -1", "- 0 errors", False, ("worked", "output")),
    ("npx astro check | tail -1", "- 2 errors", False, ("failed", "output")),
    ("go test ./... | head", "ok  \tapp/x\t0.2s", False, ("worked", "output")),
    ("go test ./... | head", "PASS\nok  \ta\t0.2s [no tests to run]", False,
     ("unclear", "hidden")),
    ("cargo test x | tail", "test result: ok. 0 passed; 0 failed", False, ("unclear", "hidden")),
    ("go test ./... | grep FAIL", "", False, ("worked", "nothing found")),
    ("go test ./... | grep app", "", False, ("unclear", "hidden")),
    ("go build ./... 2>&1 | head", "", False, ("worked", "output")),
    ("go build ./... 2>&1 | head", "a.go:3:1: undefined: x", False, ("failed", "output")),
    ("mise run lint 2>&1 | tail -9", "[lint:go] 2 issues:", False, ("failed", "output")),
    ("mise run lint 2>&1 | tail -9", "[lint:go] 0 issues.", False, ("worked", "output")),
    ("gh pr checks 7", "lint\tfail\t1m\ntest\tpending\t0", True, ("worked", "output")),
    ("gh pr checks 7 --job", "unknown flag: --job", True, ("failed", "exit code")),
    ("python manage.py migrate --check", "Exit code 1", True, ("worked", "output")),
    ("npm run lint; echo done", "done", False, ("unclear", "hidden")),
    ("npm run lint; echo exit: $?", "bad\nexit: 1", False, ("failed", "output")),
    ("npm run lint || true", "", False, ("unclear", "hidden")),
    ("bun run typecheck | tail", "$ tsc --noEmit", False, ("worked", "output")),
    ("npx tsc | head", "a.ts(1,2): error TS2322: no", False, ("failed", "output")),
    ("git push 2>&1 | tail -2", " ! [rejected] main -> main", False, ("failed", "output")),
    ("git push 2>&1 | tail -2", "   1234567..89abcde  main -> main", False, ("worked", "output")),
    ("curl -si http://x | head -1", "HTTP/1.1 503 Down", False, ("failed", "output")),
    ("grep -r foo src", "Exit code 1", True, ("worked", "nothing found")),
    ("cat a | grep foo", "Exit code 1", True, ("worked", "nothing found")),
    ("grep -r [ src", "Exit code 2\ngrep: brackets not balanced", True, ("failed", "exit code")),
    ("cat nothing | head", "cat: nothing: No such file or directory", False, ("failed", "output")),
    ("cat notes.md | head", "error: is what it says", False, ("failed", "output")),
    ("ls missing", "Exit code 1\nls: missing: No such file", True, ("failed", "exit code")),
    ("deploy.sh", "Exit code 3\nno region", True, ("failed", "exit code")),
    ("ls", "/opt/brew/shellenv.sh: line 18: /bin/ps: Operation not permitted\na.py\n", False,
     ("worked", "exit code")),
    ("go build ./... | head", "/home/me/.zshrc:3: command not found: nvm", False,
     ("worked", "output")),
    ("# only a comment", "", False, ("unclear", "none")),
    (">", "x", False, ("unclear", "none")),
    ("deploy.sh", "sleepy\nCommand timed out after 2m", True, ("timed out", "tool")),
    ("make x", "<tool_use_error>Sibling tool call errored</tool_use_error>", True,
     ("cancelled", "sibling")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "output", "failed", "right"), SHELL)
def test_a_command(command: str, output: str, failed: bool, right: tuple[str, str]) -> None:
    """A pipe hides an exit code, the output may say more, a search may find nothing."""
    outcome = call_outcome(ran(command, output, failed=failed))
    assert (outcome.state, outcome.reason) == right


def test_what_a_command_echoes_itself_is_no_word_of_its_program() -> None:
    """It may say that it worked, but not how the program says so."""
    outcome = call_outcome(ran("go build ./... 2>&1 && echo OK || echo BAD", "OK"))
    assert (outcome.state, outcome.evidence) == ("worked", "")


def test_a_refusal_is_no_failure() -> None:
    """What the user stopped is told as that, and does not count as failed."""
    call = ToolCall("", "Bash", "shell", {"command": "make"}, "no", True, REFUSED)
    assert call_outcome(call).state == "refused"
    assert not call_outcome(call).failed


def test_a_tool_that_says_error_failed() -> None:
    """A tool of the user's own that answers with an error failed, though no host says so."""
    assert call_outcome(called("book", {}, "Error: no seats")).reason == "output"
    assert call_outcome(called("book", {}, "booked")).state == "worked"


def test_each_purpose_of_a_line_has_its_outcome() -> None:
    """What is joined by && worked where the line went on; a check behind a pipe says it itself."""
    call = ran("npm run fmt && npm run lint 2>&1 | tail", "3 issues:")
    assert [(name, found.state) for name, found in purpose_outcomes(call)] == [
        ("npm run fmt", "worked"),
        ("npm run lint", "failed"),
    ]


def test_of_several_that_failed_the_output_says_which() -> None:
    """The linter's own words blame the linter; what stood behind it did not run."""
    call = ran("npm run fmt && npm run lint && npm test", "3 issues:", failed=True)
    assert [(name, found.state) for name, found in purpose_outcomes(call)] == [
        ("npm run fmt", "unclear"),
        ("npm run lint", "failed"),
        ("npm test", "unclear"),
    ]
    assert call_outcome(call).state == "failed"


EDIT = called("Edit", {"file_path": "a.py"})


def test_who_stopped_a_chain_that_leads_to_a_commit() -> None:
    """Staging by its own words, else the commit, unless it was made; what follows never ran."""
    chain = "git add a.py && git commit -m x && git push"
    hook = "lint......Passed\nbug: the hook is broken\ntypes......Passed"
    lost = "fatal: pathspec 'a.py' did not match any files"
    behind = "[main 1234567] x\n ! [rejected] main -> main\nerror: failed to push some refs"
    calls = {output: ran(chain, output, failed=True) for output in (hook, lost, behind)}
    ends = {
        output: {name: found.state for name, found in purpose_outcomes(call)}
        for output, call in calls.items()
    }
    told = ("git add", "git commit", "git push")
    assert ends[hook] == dict(zip(told, ("worked", "failed", "unclear"), strict=True))
    assert ends[lost] == dict(zip(told, ("failed", "unclear", "unclear"), strict=True))
    assert ends[behind] == dict(zip(told, ("worked", "worked", "failed"), strict=True))
    assert call_outcome(ran(chain, hook, failed=True)).evidence == "bug: the hook is broken"


def test_a_task_ends_by_what_the_user_says_next() -> None:
    """Praise, a complaint, and the order to commit outweigh silence; tests speak otherwise."""
    trace = made(
        ["Fix it", EDIT, ran("npm test")],
        ["It still doesn't work", EDIT],
        ["Great, commit it", ran("git commit -m x", "[main 1234567] x")],
    )
    marks = [task_outcome(turn) for turn in trace.turns]
    found = task_outcomes(marks)
    assert [outcome.state for outcome in found] == ["failed", "worked", "worked"]
    assert found[0].evidence == "It still doesn't work"


def test_a_change_after_the_last_check_is_unclear() -> None:
    """Tests that passed before the last edit prove nothing about it."""
    assert trace_outcome(made(["Go", ran("npm test"), EDIT])).state == "unclear"
    assert trace_outcome(made(["Go", EDIT, ran("npm test")])).state == "worked"


def test_a_failed_check_is_not_praised_away() -> None:
    """A linter that failed, and was not run again, leaves the task open."""
    trace = made(["Go", EDIT, ran("npm run lint | tail", "3 issues:"), ran("npm test")], ["commit"])
    assert trace_outcome(trace).state == "unclear"


def test_the_outcome_is_kept(store: Store) -> None:
    """The store says how a session and each of its tasks ended, with the evidence."""
    store.write(made(["Go", EDIT, ran("npm test", "5 passed in 1s")], ["No, that is wrong"]))
    (stored,) = store.sessions()
    assert (stored.outcome.state, stored.outcome.reason) == ("failed", "user")
    assert [outcome.state for outcome in store.task_outcomes(stored.id)] == ["failed", "unclear"]


def test_a_verdict_in_the_file_decides(store: Store, tmp_path) -> None:
    """The reward of a verifier stands above everything else."""
    import json

    from tacit.traces import host_registry

    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]
    file = tmp_path / "runs.json"
    file.write_text(
        json.dumps([{"traj": messages, "reward": 1.0}, {"traj": messages, "reward": 0.0}])
    )
    host = host_registry.get("openai")
    for source in host.inside(str(file)):
        store.take_in(host, source)
    assert sorted(s.outcome.state for s in store.sessions()) == ["failed", "worked"]


def ended(*turns: list) -> str:
    return trace_outcome(made(*turns)).state


def test_a_build_shows_that_it_builds() -> None:
    """Tests show that something works; a linter or a build only where that was the task."""
    edit = called("Edit", {"file_path": "/p/a.py"})
    assert ended(["Add a button", edit, ran("npm run build")]) == "unclear"
    assert ended(["The build is broken", edit, ran("npm run build")]) == "worked"
    assert ended(["Add a button", edit, ran("npm run lint"), ran("npm test")]) == "worked"
    assert ended(["Add a button", edit, ran("npm test"), ran("npm run lint")]) == "worked"


def test_a_failed_check_is_over_when_its_kind_works() -> None:
    """Another check that passes later says nothing of the tests that had failed."""
    failing = ["Add it", called("Edit", {"file_path": "/p/a.py"}), ran("npm test", failed=True)]
    assert ended(failing, ["go on", ran("git push")]) == "failed"
    assert ended(failing, ["go on", ran("npm test"), ran("git push")]) == "worked"


def test_what_the_user_stopped_is_unclear() -> None:
    """A turn that was cut off shows nothing, whatever passed before."""
    stop = ran("npm start", "[Request interrupted by user for tool use]", failed=True)
    assert ended(["Add it", ran("npm test"), stop]) == "unclear"


@pytest.mark.parametrize("words", ["Make a nice message and commit.", "Good, then push"])
def test_an_order_to_ship_says_that_it_is_good(words: str) -> None:
    """Also where it is not the first word of a short prompt."""
    edit = called("Edit", {"file_path": "/p/a.py"})
    assert ended(["Add it", edit], [words, ran("git commit -m x")]) == "worked"


def test_a_commit_that_was_ordered_is_what_the_turn_was_for() -> None:
    """It worked when the commit did, past a hook only on the user's word."""
    edit = called("Edit", {"file_path": "/p/a.py"})
    hook = ran("git commit -m x", "3 issues:\nhusky - pre-commit script failed", failed=True)
    work = ["Add it", edit, ran("npm test")]
    assert ended(work, ["commit", ran("git commit -m x", "[main 1234567] x")]) == "worked"
    assert ended(work, ["commit", hook]) == "failed"
    past = ran("git commit --no-verify -m x", "[main 1234567] x")
    assert ended(work, ["commit", hook], ["commit with --no-verify then", past]) == "worked"
    assert ended(["Add it and release", edit, hook, ran("npm test"), past]) == "unclear"


def test_checks_of_the_forge_that_failed_outweigh_the_push() -> None:
    """Only after the push: what is read before it is an older run."""
    push = ran("git push", "To github.com:a/b\n   1234567..89abcde  main -> main")
    run = ran("gh run view 7 --json conclusion", '{"conclusion":"failure"}')
    assert ended(["Release it", push, run]) == "failed"
    assert ended(["Release it", run, push]) == "worked"


def test_a_check_answers_only_a_complaint_about_it() -> None:
    """What the user saw when it ran is not mended by tests that pass."""
    edit = called("Edit", {"file_path": "/p/a.py"})
    seen = "I've started the importer and got this error: no such column"
    assert ended([seen, edit, ran("npm test")]) == "unclear"
    assert ended(["The tests still fail", edit, ran("npm test")]) == "worked"


def test_what_the_shell_did_not_find_is_of_that_part() -> None:
    """What stood before it in the chain worked, and what would have come after did not run."""
    gone = ran("gh auth status && python x.py && go test", "zsh: command not found: python",
               failed=True)  # fmt: skip
    states = {name: outcome.state for name, outcome in purpose_outcomes(gone)}
    assert states == {"gh auth": "worked", "x.py": "failed", "go test": "unclear"}
    lost = ran("cd website && npm run build", "cd: website: No such file or directory", failed=True)
    assert [o.state for _, o in purpose_outcomes(lost)] == ["unclear"]


def test_a_code_that_nobody_saw_is_no_success() -> None:
    """What a script printed of a command tells by its words alone; a command that goes on, not."""
    assert call_outcome(ran("cargo build", "Script completed\nsome text")).state == "unclear"
    failed = "Script completed\ntest result: FAILED. 1 passed"
    assert call_outcome(ran("cargo test", failed)).state == "failed"
    running = "Process running with session ID 7\ntest result: ok. 3 passed"
    assert call_outcome(ran("cargo test", running)).state == "unclear"


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("zsh: command not found: go", "go"),
        ("bash: line 1: python: command not found", "python"),
        ("/bin/sh: 1: rg: not found", "rg"),
        ("sed: The term 'sed' is not recognized as a name of a cmdlet", "sed"),
        ("'grep' is not recognized as an internal or external command,", "grep"),
        ("bash: pip: comando não encontrado", "pip"),
        ("bash: línea 1: jq: orden no encontrada", "jq"),
        ("zsh: foo: the file was not good", ""),
        ("    + CategoryInfo : ObjectNotFound: (head:String) [], CommandNotFoundException", "head"),
        ("fish: Unknown command: jq", "jq"),
        ('OCI runtime exec failed: exec: "bash": executable file not found in $PATH', "bash"),
        ("error: label 'docs' not found", ""),
    ],
)
def test_programs_that_a_shell_does_not_find(said: str, program: str) -> None:
    """In the words of the shells of each system."""
    assert absent_program(said) == program


@pytest.mark.parametrize(
    ("command", "printed", "state"),
    [
        ("dotnet test | tail -1", "Passed!  - Failed:     0, Passed:    12", "worked"),
        ("dotnet test | tail -1", "Failed!  - Failed:     2, Passed:    12", "failed"),
        ("xcodebuild test -scheme A | tail -2", "** TEST SUCCEEDED **", "worked"),
        ("mix test | tail -3", "5 doctests, 12 tests, 0 failures", "worked"),
        ("mix test | tail -3", "12 tests, 1 failure", "failed"),
        ("flutter test | tail -1", "00:02 +5: All tests passed!", "worked"),
        ("deno test | tail -1", "ok | 5 passed | 0 failed (1s)", "worked"),
        ("terraform apply | tail -3", "Apply complete! Resources: 1 added", "worked"),
        ("terraform plan | tail -9", "│ Error: Reference to undeclared resource", "failed"),
        ("dotnet build | tail -3", "Build succeeded.", "worked"),
    ],
)
def test_runners_of_other_languages(command: str, printed: str, state: str) -> None:
    """By what they print, where a pipe hides the exit code."""
    assert call_outcome(ran(command, printed)).state == state
