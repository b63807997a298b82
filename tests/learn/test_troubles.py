"""What fails as it is called, over the projects of a machine, and what is none of it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tacit.learn.counted_session import count_session, programs_run
from tacit.learn.drafts import draft, draft_sessions
from tacit.learn.findings import TroubleFinding, count_findings
from tacit.learn.ledger import Ledger
from tacit.learn.rates import Trouble
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.store import Store
from tacit.traces.trace import ToolCall, Trace

NO_JQ = ran("jq . a.json", "bash: line 1: jq: command not found", failed=True)


def session(number: int, *calls: ToolCall, project: str = "/home/me/app") -> Trace:
    trace = made(["go", *calls], session=f"s{number}", project=project)
    ended = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return Trace(msgspec.structs.replace(trace.head, ended=ended), trace.turns)


def told(*traces: Trace) -> list[Trouble]:
    found = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    return [trouble for one in found for trouble in one.troubles]


def test_what_several_projects_lack_is_told_once_for_the_machine() -> None:
    """Under the name of the system, as is what somebody's home shows; in two sessions of one
    project it stays with the project."""
    one, other = session(1, NO_JQ), session(2, NO_JQ, project="/home/me/other")
    (found,) = count_findings([one, other, session(3, NO_JQ)])
    made_draft = draft(found)
    assert (made_draft.name, made_draft.project) == ("linux-programs", "")
    assert "`jq` failed 3 of 3 times in 3 sessions: `bash: line 1: jq:" in made_draft.text
    assert "What this Linux machine lacks, does not take or stops" in made_draft.text
    (found,) = count_findings([one, session(3, NO_JQ)])
    assert (draft(found).name, found.project) == ("app-programs", "/home/me/app")
    assert count_findings([one, session(2, NO_JQ, project="/Users/me/other")]) == []
    (found,) = count_findings(session(n, NO_JQ, project="/home/me") for n in range(2))
    assert draft(found).name == "linux-programs"


def test_a_program_that_was_there_last_has_been_installed() -> None:
    gone = [session(n, NO_JQ, project=f"/home/me/p{n}") for n in range(1, 4)]
    there = ran("jq . b.json", "{}")
    assert [t.there for t in told(session(0, there), *gone)] == [1]
    assert told(*gone, session(9, there)) == []


@pytest.mark.parametrize("line", ["jq . a || echo none", "cat a || jq . a", "jq . a; ls"])
def test_what_hides_how_a_program_ended_shows_not_that_it_is_there(line: str) -> None:
    assert "jq" not in programs_run(session(1, ran(line, "none")))
    assert "jq" in programs_run(session(1, ran("ls; jq . a && ls", "none")))


def test_the_stub_of_windows_is_no_python() -> None:
    """Also where it failed in silence behind another command."""
    stub = ran("which python3 && python3 -c 'print(1)'", "Exit code 49\n/c/python3", failed=True)
    silent = ran("python3 -c 'import x' || echo no", "no")
    traces = [session(n, stub, silent, project=f"C:\\w\\p{n}") for n in range(2)]
    (found,) = count_findings(traces)
    assert "`python3: Exit code 49`. Windows has only a stub of that name" in draft(found).text


@pytest.mark.parametrize("works", ["python deploy.py run x", "./deploy.sh run x"])
def test_a_script_of_the_same_name_does_the_work(works: str) -> None:
    gone = ran("deploy run x", "bash: line 1: deploy: command not found", failed=True)
    (trouble,) = told(*(session(n, gone, ran(works, "done")) for n in range(2)))
    assert trouble.works[0].startswith(works.removesuffix(" run x"))


def test_a_password_that_is_not_always_asked_for() -> None:
    """Where as many sessions ran it as were asked, nothing is told."""
    asked = ran("sudo ls", "sudo: a terminal is required to read the password", failed=True)
    traces = [session(n, asked, asked) for n in range(2)]
    assert [t.failed for t in told(*traces)] == [4]
    free = [session(n, ran("sudo ls", "a")) for n in range(2, 4)]
    assert [t.failed for t in told(*traces, free[0])] == [4]
    assert told(*traces, *free) == []


def test_a_tool_of_the_host_that_fails_again_and_again() -> None:
    """In one way, in three sessions and a quarter of its calls there; what it did not find is an
    answer."""
    gate = "[Gate]\n\nBefore editing {}.py, present these facts:\n1. Who imports it"
    stopped = [called("Edit", {"file_path": n}, gate.format(n), failed=True) for n in "abc"]
    fine = called("Edit", {"file_path": "d"})
    traces = [session(n, one, fine, fine) for n, one in enumerate(stopped)]
    (found,) = count_findings(traces)
    assert "The agent's own tool `Edit` failed 3 of 9 times in 3 sessions: `[Gate]" in (
        draft(found).text
    )
    assert told(*traces[:2]) == []
    assert told(*(session(n, one, *[fine] * 5) for n, one in enumerate(stopped))) == []
    for said in ("File does not exist.", "InputValidationError", "User chose to stay in plan mode"):
        lost = called("Read", {"file_path": "a"}, said, failed=True)
        assert told(*(session(n, lost) for n in range(3))) == []


@pytest.mark.parametrize(
    ("fails", "error", "after"),
    [
        ("docker exec {} curl a", 'exec: "curl": executable file not found', "docker exec b{} ls"),
        ("docker network inspect n", "network n not found", "docker network ls"),
        ("rospack find plan", "package 'plan' not found", "rospack find map{}"),
        ("npm install app{}", "404 Not Found", "npm install other"),
        ("git push -u o m", "fatal: repository 'x' not found", "cd /a && git push -u o m | tail"),
        ("git push -u o m", "fatal: repository 'x' not found", "echo go{} && git push -u o m"),
        ("pip install a", "externally-managed", "pip install a --break-system-packages"),
        ("bot -p ''", "Usage: bot [options]", "bot -p '' --approval-mode yolo"),
        ("bot --yolo -p ''", "Usage: bot [options]", "bot --yolo -p x{}"),
    ],
)
def test_what_is_for_another_end_mends_nothing(fails: str, error: str, after: str) -> None:
    """Another command in the same container, a list of what is not there, the same once more in
    another folder, and what leaves a guard out."""
    steps = [
        (ran(fails.format(n), f"Error: {error}", failed=True), ran(after.format(n), "ok"))
        for n in range(2)
    ]
    assert not any(t.works for t in told(*(session(n, *own) for n, own in enumerate(steps))))


def test_what_a_sandbox_may_hold_back_is_told_where_none_is_left() -> None:
    """Also beside a tool that fails."""
    gate = called("Edit", {"file_path": "a"}, "[Gate]", failed=True)
    held = ran("app serve", "Error: listen EPERM: operation not permitted", failed=True)
    steps = (gate, held, ran("app serve --socket x", "up"))
    assert "app serve" in [t.form for t in told(*(session(n, *steps) for n in range(3)))]


def test_what_a_remote_refuses_is_one_whatever_was_to_be_done_there() -> None:
    no_key = "git@example.org: Permission denied (publickey).\nfatal: Could not read from remote"
    steps = [
        (ran(f"git {verb} origin main", no_key, failed=True), ran(f"git {verb} https://x/a main"))
        for verb in ("fetch", "push")
    ]
    (trouble,) = told(*(session(n, *own) for n, own in enumerate(steps)))
    assert trouble.program == "git"
    assert set(trouble.works) == {"git fetch https://x/a main", "git push https://x/a main"}


def test_a_file_that_is_too_large_to_be_read_whole() -> None:
    """Told by its name, however often others are read."""
    said = "File content (90000 tokens) exceeds maximum allowed tokens (25000)."
    large = called("Read", {"file_path": "/home/me/app/logs/run.log"}, said, failed=True)
    others = [called("Read", {"file_path": f"/home/me/app/{n}.py"}) for n in range(9)]
    (trouble,) = told(*(session(n, large, *others) for n in range(3)))
    assert (trouble.form, trouble.failed, trouble.runs) == ("Read logs/run.log", 3, 3)


def test_the_same_package_by_another_call_is_what_worked() -> None:
    fails = ran("npm install app@2", "npm error: app@2 not found", failed=True)
    (trouble,) = told(*(session(n, fails, ran("npm install app@1", "added")) for n in range(2)))
    assert trouble.works == ("npm install app@1",)


def test_other_projects_are_asked_what_the_machine_lacks(store: Store) -> None:
    """Also where nothing is new there; what is told is what the new session shows."""
    ledger = Ledger(store.connection)
    store.write(session(1, NO_JQ, project="/home/me/other"))
    assert draft_sessions(store, ledger, store.sessions(), dry_run=True) == []
    store.write(session(2, NO_JQ))
    new = [stored for stored in store.sessions() if stored.head.project.endswith("app")]
    (proposed,) = draft_sessions(store, ledger, new, dry_run=True)
    assert proposed.draft.name == "linux-programs"
    assert len(proposed.draft.evidence) == 2


def test_what_a_session_says_of_tools_is_kept_with_it() -> None:
    (use,) = count_session(session(1, called("Glob", {}, "spawn rg ENOENT", failed=True))).tools
    assert (use.name, use.error, use.failed, use.calls) == ("Glob", "spawn rg ENOENT", 1, 1)
