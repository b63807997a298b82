"""What the improver is told."""

import re
from datetime import UTC, datetime

from traces_of_skills import call, session

from tacit.base.sections import ImproveSettings
from tacit.changes.files import File
from tacit.learn.improve.brief import MOST, brief, fenced
from tacit.learn.improve.checking import tools_of
from tacit.learn.improve.failing import counted
from tacit.learn.improve.repairs import Attempt
from tacit.learn.usage import runs_of
from tacit.traces.trace import ToolCall

FAILED = call("Bash", "sh go.sh --all", "go.sh: line 3: jq: not found", result="jq: not found")


def _brief(*calls: ToolCall, files: dict[str, File] | None = None, host: str = "tacit") -> str:
    trace = session("demo", *calls, host=host)
    (run,) = runs_of(trace)
    earlier = [
        Attempt(
            id="a", skill="demo", root="/r", at=datetime(2026, 1, 2, tzinfo=UTC),
            outcome="rolled back", tried="-one\n+two", note="worse: 9 of 9",
        ),
        Attempt(id="b", skill="demo", root="/r", outcome="put off", note="no money"),
    ]  # fmt: skip
    found = files or {"SKILL.md": File(b"Do it."), "a.bin": File(b"\xff\x00")}
    return brief("demo", found, run, counted(run, ImproveSettings()), earlier, tools_of(trace))


def test_arguments_outputs_and_history_are_there() -> None:
    """The failed call with its arguments and output, what was tried, and the files."""
    text = _brief(call("Bash", "ls", result="go.sh"), FAILED)
    for part in ("sh go.sh --all", "jq: not found", "never got over", "Do it.", "a.bin (2 bytes"):
        assert part in text
    assert "2026-01-02, rolled back: worse: 9 of 9" in text
    assert "Do not do this again." in text
    assert "no money" not in text


def test_only_tools_that_exist_are_named() -> None:
    """The table of other names leads to tools of ours that exist, and to no other."""
    text = _brief(FAILED).partition("# Tools that exist")[2]
    names, _, table = text.strip().partition("\n\n")
    known = set(names.split(", "))
    leads_to = {row.rpartition(": ")[2] for row in table.splitlines() if row.startswith("- ")}
    assert "run_command" in leads_to
    assert leads_to <= known
    assert "There may be more" in _brief(FAILED, host="codex")


def test_a_long_run_is_cut_around_its_failures() -> None:
    """Whatever the length of a session, the failures are told in full and the rest as it fits."""
    many = [call("Bash", f"echo {n}", result="x" * 5_000) for n in range(300)]
    text = _brief(*many, FAILED, *many)
    assert len(text) < 2 * MOST
    assert re.search(r"## step 301: Bash \(FAILED\).*?jq: not found", text, re.S)


def test_no_output_ends_its_fence() -> None:
    """Text with fences of its own stays inside."""
    assert fenced("a\n````\nb").startswith("`````\n")
