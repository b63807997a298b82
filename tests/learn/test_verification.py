"""What a repaired skill names must exist, and its scripts must parse."""

from pathlib import Path

import pytest
from traces_of_skills import call, session

from tacit.changes.change import File
from tacit.learn.improve.verification import (
    Bench,
    CheckedSkill,
    KnownTools,
    check_repair,
    find_sandbox,
    tools_in,
)

HEAD = "---\nname: demo\ndescription: Shows things.\n---\n\n"
OURS = KnownTools("tacit", frozenset({"run_command", "read_file"}), complete=True)
OTHERS = KnownTools("codex", frozenset({"shell"}), complete=False)


def _check(
    text: str,
    tools: KnownTools = OURS,
    *,
    project: str = "",
    bench: Bench | None = None,
    **files: str,
) -> CheckedSkill:
    new = {"SKILL.md": File((HEAD + text).encode())}
    new |= {path.replace("__", "/", 1): File(data.encode()) for path, data in files.items()}
    return check_repair({"SKILL.md": File(HEAD.encode())}, new, tools, project, bench)


@pytest.mark.parametrize(
    "text",
    ["Use the `Bash` tool.", "Call `run_shell_command`.", "Use the WebFetch tool.", "`Read(x)` it"],
)
def test_a_tool_of_others_is_a_problem(text: str) -> None:
    """A name from the table of tools that does not exist here is said, with those that do."""
    (problem,) = _check(text).problems
    assert "read_file, run_command" in problem
    assert _check(text, OTHERS).problems == ()
    assert len(_check(text, OTHERS).open) == 1, "of another host it is not known"


def test_a_name_that_stood_there_is_a_doubt() -> None:
    """What the old text named in code marks alone may be something else than a tool."""
    old = {"SKILL.md": File((HEAD + "Fill in a `Task`, with the Bash tool.").encode())}
    found = check_repair(old, old | {"a.md": File(b"")}, OURS, "", None)
    assert ["'Task'" in doubt for doubt in found.doubts] == [True]
    assert ["'Bash'" in problem for problem in found.problems] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "Use `run_command`, then `read_file`.",
        "Read the file, edit the list, `list` it, and use a command-line tool.",
        "Run `bash -n` on it. A Task for later. Write it down.",
    ],
)
def test_plain_words_are_no_tools(text: str) -> None:
    """Names that exist, and words that only look like tools, are no problem."""
    assert _check(text).problems == ()


def test_files_that_are_named_must_exist(tmp_path: Path) -> None:
    """Scripts and references in the skill or in the project; templates of names are none."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "own.sh").write_text("")
    text = (
        "Run `scripts/a.py`, see [more](references/b.md#x), scripts/own.sh, `references/<name>.md`,"
        " scripts/*.sh, [web](https://x.y/z.md), `src/scripts/other.py`. Then references/gone.md."
    )
    found = _check(text, project=str(tmp_path), scripts__a_py="")
    assert set(found.problems) == {
        "SKILL.md names 'scripts/a.py', which does not exist",
        "SKILL.md names 'references/b.md', which does not exist",
        "SKILL.md names 'references/gone.md', which does not exist",
    }
    assert "scripts/own.sh exists in the project" in found.holds


def test_the_frontmatter_stays() -> None:
    """A repair that touches the frontmatter is turned down."""
    new = {"SKILL.md": File(HEAD.replace("Shows", "Does").encode())}
    found = check_repair({"SKILL.md": File(HEAD.encode())}, new, OURS, "", None)
    assert found.problems == ("the frontmatter of SKILL.md differs; put it back as it was",)
    assert check_repair({"SKILL.md": File(b"")}, {}, OURS, "", None).problems == (
        "SKILL.md is missing",
    )


def test_scripts_parse() -> None:
    """Python, JSON and TOML are parsed here; what nothing here can parse is said."""
    files = {
        "scripts/ok.py": File(b"print(1)\n"),
        "scripts/bad.py": File(b"def f(:\n"),
        "scripts/deep.py": File(b"(" * 10_000),
        "assets/bad.json": File(b"{"),
        "assets/ok.toml": File(b"a = 1"),
        "scripts/tool": File(b"\x7fELF", "program"),
        "scripts/run.sh": File(b"echo"),
        "notes.txt": File(b"anything"),
    }
    skill = {"SKILL.md": File(HEAD.encode())}
    found = check_repair(skill, skill | files, OURS, "", None)
    assert [p.partition(":")[0] for p in found.problems] == [
        "assets/bad.json does not parse",
        "scripts/bad.py does not parse",
        "scripts/deep.py does not parse",
    ]
    assert found.holds == ("assets/ok.toml parses", "scripts/ok.py parses")
    assert found.open == ("whether scripts/run.sh parses", "whether scripts/tool parses")


@pytest.mark.skipif(find_sandbox() is None, reason="there is no sandbox here")
def test_shell_scripts_are_parsed_in_the_sandbox(tmp_path: Path) -> None:
    """A shell script that does not parse is a problem, and nothing in it is run."""
    box = find_sandbox()
    assert box is not None
    bench = Bench(box, str(tmp_path), "/nowhere", "demo")
    skill = {"SKILL.md": File(HEAD.encode())}
    scripts = {
        "scripts/bad.sh": File(b"touch /tmp/x; if true; then\n"),
        "scripts/ok.sh": File(b"exit 3\n"),
    }
    found = check_repair(skill, skill | scripts, OURS, "", bench)
    assert found.holds == ("scripts/ok.sh parses",)
    assert len(found.problems) == 1
    assert "scripts/bad.sh does not parse" in found.problems[0]


def test_which_tools_there_are() -> None:
    """Of our chat all are known, and MCP's that answered; of other hosts, what was seen."""
    calls = (call("Bash", "ls"), call("mcp__x__look", {}), call("Nope", {}, "There is no tool"))
    own, other = (tools_in(session("demo", *calls, host=host)) for host in ("tacit", "codex"))
    assert {"run_command", "mcp__x__look"} <= own.names
    assert own.complete
    assert "Bash" not in own.names
    assert (other.names, other.complete) == ({"Bash", "mcp__x__look"}, False)
