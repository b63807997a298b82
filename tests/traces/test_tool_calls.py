"""The table of tool names."""

import pytest

from tacit.traces import tool_calls


@pytest.mark.parametrize(
    ("name", "kind", "ours"),
    [
        ("Read", "read", "read_file"), ("read_file", "read", "read_file"),
        ("view", "read", "read_file"), ("Write", "write", "write_file"),
        ("replace", "edit", "edit_file"), ("apply_patch", "edit", "edit_file"),
        ("patch", "edit", "edit_file"), ("Bash", "shell", "run_command"),
        ("exec_command", "shell", "run_command"), ("run_shell_command", "shell", "run_command"),
        ("terminal", "shell", "run_command"), ("grep", "search", "search_files"),
        ("Glob", "search", "glob_files"), ("list_directory", "search", "list_files"),
        ("WebFetch", "web", "fetch_page"), ("google_web_search", "web", "search_web"),
        ("AskUserQuestion", "ask", "ask_user"), ("clarify", "ask", "ask_user"),
        ("Skill", "skill", "run_skill"), ("activate_skill", "skill", "run_skill"),
        ("Task", "other", "run_agent"), ("todo_write", "other", "keep_todos"),
        ("browser_click", "web", None), ("mcp__github__create_issue", "other", None),
        ("", "other", None), ("READ-FILE", "read", "read_file"),
    ],
)  # fmt: skip
def test_names_of_all_hosts(name: str, kind: str, ours: str | None) -> None:
    """Each host's name for a tool has its kind and our own tool."""
    assert tool_calls.kind_of(name) == kind
    assert tool_calls.our_tool(name) == ours


@pytest.mark.parametrize(
    ("command", "kind"),
    [("view", "read"), ("create", "write"), ("str_replace", "edit"), ("", "edit")],
)
def test_editors_are_told_apart_by_their_command(command: str, kind: str) -> None:
    """A tool that views, creates and replaces has the kind of what it was told to do."""
    assert tool_calls.kind_of("str_replace_editor", {"command": command}) == kind


def test_no_name_stands_in_two_rows() -> None:
    """Folded, every name belongs to one tool: the mapping is a function."""
    seen: dict[str, str] = {}
    for tool in tool_calls.TOOL_NAMES:
        for name in tool.names:
            plain = tool_calls._plain(name)
            assert seen.setdefault(plain, tool.ours) == tool.ours, name


SCHEMA = {"type": "object"}
TOOL = {"name": "make", "description": "Builds.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "given",
    [
        {"type": "function", "function": TOOL},
        [{"type": "function", **TOOL}],
        '[{"name": "make", "description": "Builds.", "input_schema": {"type": "object"}}]',
        [{"functionDeclarations": [TOOL]}],
        [{"tool": {"json_schema": '{"type": "function", "function": '
         '{"name": "make", "description": "Builds.", "parameters": {"type": "object"}}}'}}],
        {"name": "make", "description": "Builds.", "inputSchema": SCHEMA},
    ],
)  # fmt: skip
def test_definitions_of_tools_of_any_api(given: object) -> None:
    """OpenAI's two APIs, Anthropic's, Gemini's, OpenInference's and MCP's say the same."""
    assert tool_calls.tools_of(given) == [{"type": "function", "function": TOOL}]


@pytest.mark.parametrize("given", [None, "", "x", 3, [[[]]], {"tools": {"tools": {}}}, [None, {}]])
def test_what_defines_no_tool(given: object) -> None:
    assert tool_calls.tools_of(given) == []
