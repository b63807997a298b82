"""Tools by the names that other agents give them."""

import re
from pathlib import Path

import pytest
from talking import of, say

from tacit.agent import agent_events
from tacit.agent.session_tools import TOOLS
from tacit.agent.tool import Failed
from tacit.agent.tool_aliases import alias_table, as_own_call
from tacit.testing import ModelServer, ToolUse
from tacit.traces.tool_calls import TOOL_NAMES as TABLE
from tacit.traces.tool_calls import our_tool

NAMES = {tool.name: tool for tool in TOOLS}


def test_each_name_on_the_right_side_is_a_registered_tool(open_session) -> None:
    """The table in the system prompt promises no tool that the request does not offer."""
    with ModelServer(["hi"]) as server:
        say(open_session(server), "hi")
    (request,) = server.requests
    rows = re.findall(r"^- (.+): (\w+)$", request.system.partition("other agents")[2], re.M)
    assert len(rows) >= 8
    for others, ours in rows:
        assert ours in request.tool_names
        assert not set(others.split(", ")) & request.tool_names


def test_the_mapping_is_made_from_the_one_table() -> None:
    """Every name that can be served and is not our own stands in the mapping of its tool."""
    rows = dict(
        row.removeprefix("- ").rsplit(": ", 1)[::-1] for row in alias_table(set(NAMES)).splitlines()
    )
    for tool in TABLE:
        if tool.ours in NAMES:
            wanted = {name for name in tool.names if name not in NAMES and not _instead(name)}
            assert set(rows.get(tool.ours, "").split(", ")) - {""} == wanted
        else:
            assert tool.ours not in rows


@pytest.mark.parametrize(
    ("name", "tool"), [(name, tool.ours) for tool in TABLE for name in tool.names]
)
def test_every_name_in_the_table_is_served(name: str, tool: str) -> None:
    """A call by a foreign name becomes a call of our tool, or is told what to do instead."""
    assert our_tool(name) == tool
    if told := _instead(name):
        assert told.endswith(".")
        return
    served, _ = as_own_call(name, {"path": "x"}, NAMES)
    assert served == (tool if tool in NAMES and name not in NAMES else name)
    assert served in NAMES or tool in ("list_skills",)


def _instead(name: str) -> str:
    try:
        as_own_call(name, {"path": "x"}, NAMES)
    except Failed as told:
        return str(told)
    return ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TodoWrite", "go on with the work"),
        ("Task", "Do the work yourself"),
        ("WebFetch", "curl"),
        ("KillShell", "nothing runs on"),
        ("Delete", "rm"),
    ],
)
def test_what_we_have_not_is_told_what_to_do_instead(open_session, name: str, says: str) -> None:
    with ModelServer([ToolUse(name, {"x": 1}), "ah"]) as server:
        told = say(open_session(server, yes=True), "go")
    (returned,) = of(agent_events.Return, told)
    assert returned.failed
    assert says in returned.text


@pytest.mark.parametrize(
    ("name", "given", "served"),
    [
        ("Read", {"file_path": "a"}, ("read_file", {"path": "a"})),
        (
            "Bash",
            {"command": "ls", "timeout": 5000},
            ("run_command", {"command": "ls", "seconds": 5}),
        ),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, ("run_command", {"command": "ls -l"})),
        ("shell", {"command": ["ls", "a b"]}, ("run_command", {"command": "ls 'a b'"})),
        (
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            ("edit_file", {"path": "a", "old": "x", "new": "y", "all": True}),
        ),
        (
            "Skill",
            {"skill": "deploy", "args": "x"},
            ("run_skill", {"name": "deploy", "arguments": "x"}),
        ),
        ("grep_search", {"query": "x"}, ("search_files", {"pattern": "x"})),
        ("read_file", {"absolute_path": "a"}, ("read_file", {"path": "a"})),
        ("read_file", {"path": "a", "limit": 3}, ("read_file", {"path": "a", "limit": 3})),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]},
            ("edit_file", {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ),
        (
            "str_replace_editor",
            {"command": "view", "path": "a"},
            ("read_file", {"path": "a"}),
        ),
        (
            "AskUserQuestion",
            {"questions": [{"question": "Where?", "options": [{"label": "a"}, {"label": "b"}]}]},
            ("ask_user", {"question": "Where?", "options": ["a", "b"]}),
        ),
    ],
)
def test_arguments_are_renamed(name: str, given: dict, served: tuple) -> None:
    """What other agents call an argument reaches our tool under its own name."""
    found, arguments = as_own_call(name, given, NAMES)
    assert (found, arguments) == served
    (tool,) = [tool for tool in TOOLS if tool.name == found]
    tool.check(arguments)


def test_a_model_that_calls_a_foreign_name_is_served(open_session, project: Path) -> None:
    """`Write` and `Read` work, the history keeps the model's own names, approval sees ours."""
    write = ToolUse("Write", {"file_path": "n", "content": "hello"})
    read = ToolUse("Read", {"file_path": "n"})
    with ModelServer([write, read, "done"]) as server:
        told = say(open_session(server, flags={"allow": ("write_file:n",)}), "go")
    assert [returned.failed for returned in of(agent_events.Return, told)] == [False, False]
    assert (project / "n").read_text() == "hello"
    used = [use.name for m in server.requests[-1].messages for use in m.tool_uses]
    assert used == ["Write", "Read"]


PATCH = """*** Begin Patch
*** Update File: n.py
@@ def first():
 def first():
-    return 1
+    return 2
@@
-last = 3
+last = 4
*** End Patch"""


def test_several_edits_and_patches_are_made_together(open_session, project: Path) -> None:
    """`MultiEdit` and `apply_patch` change the file; one edit that does not fit changes nothing."""
    (project / "n.py").write_text("def first():\n    return 1\n\n\nlast = 3\n")
    several = {
        "file_path": "n.py",
        "edits": [
            {"old_string": "last", "new_string": "final"},
            {"old_string": "return 2", "new_string": "return 5"},
        ],
    }
    half = {
        "file_path": "n.py",
        "edits": [*several["edits"], {"old_string": "x", "new_string": ""}],
    }
    uses = [ToolUse("apply_patch", {"input": PATCH}), ToolUse("MultiEdit", half)]
    with ModelServer([*uses, ToolUse("MultiEdit", several), "done"]) as server:
        told = say(open_session(server, yes=True), "go")
    assert [returned.failed for returned in of(agent_events.Return, told)] == [False, True, False]
    assert (project / "n.py").read_text() == "def first():\n    return 5\n\n\nfinal = 4\n"


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("*** Begin Patch", "names no file"),
        ("*** Begin Patch\n*** Add File: a\n+x", "write_file"),
        ("*** Update File: a\n-x\n+y\n*** Update File: b\n-x\n+y", "One file a call"),
    ],
)
def test_a_patch_that_cannot_be_made_says_how(open_session, patch: str, says: str) -> None:
    with ModelServer([ToolUse("apply_patch", {"input": patch}), "ah"]) as server:
        told = say(open_session(server, yes=True), "go")
    assert of(agent_events.Return, told)[0].failed
    assert says in of(agent_events.Return, told)[0].text
