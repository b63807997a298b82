"""The one table of tool names: what each host calls a tool, its common kind, and our own tool.

Names are matched without regard to case, and `_`, `-` and spaces are the same. Tools of MCP
servers (`mcp__server__tool`) are `other`: their names promise nothing.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tacit.traces.trace import Kind


class Tool(NamedTuple):
    """One of our own tools, its kind, and what the hosts call theirs that does the same."""

    ours: str
    kind: Kind
    names: tuple[str, ...]


TOOLS: tuple[Tool, ...] = (
    Tool("read_file", "read", (
        "Read", "ReadFile", "read", "read_file", "read_many_files", "view", "view_file",
        "view_image", "NotebookRead", "open_file", "open", "scroll_up", "scroll_down", "goto",
    )),
    Tool("write_file", "write", (
        "Write", "WriteFile", "write", "write_file", "create", "create_file", "Delete",
        "delete_file",
    )),
    Tool("edit_file", "edit", (
        "Edit", "MultiEdit", "NotebookEdit", "edit", "multiedit", "replace", "edit_file",
        "apply_patch", "patch", "StrReplace", "search_replace", "insert",
        "edit_notebook", "reapply",
    )),
    Tool("run_command", "shell", (
        "Bash", "BashOutput", "KillBash", "KillShell", "TaskOutput", "Monitor", "bash", "read_bash",
        "write_bash", "stop_bash", "list_bash", "Shell", "shell", "shell_command", "local_shell",
        "local_shell_call", "exec_command", "write_stdin", "unified_exec", "run_shell_command",
        "run_terminal_cmd", "run_command", "execute_bash", "terminal", "process", "execute_code",
        "execute_ipython_cell", "powershell", "read_powershell", "write_powershell",
        "stop_powershell", "read_terminal", "close_terminal",
    )),
    Tool("search_files", "search", (
        "Grep", "grep", "grep_search", "grep_files", "search_file_content", "search_files", "rg",
        "codebase_search", "SemanticSearch", "codesearch", "lsp", "LSP", "search_dir",
        "search_file",
    )),
    Tool("glob_files", "search", (
        "Glob", "glob", "glob_files", "find", "find_file", "file_search", "glob_file_search",
    )),
    Tool("list_files", "search", (
        "LS", "ls", "list", "list_dir", "list_directory", "list_files", "ListDirectory",
    )),
    Tool("fetch_page", "web", (
        "WebFetch", "webfetch", "web_fetch", "fetch", "fetch_page", "web_extract", "open_page",
    )),
    Tool("search_web", "web", (
        "WebSearch", "websearch", "web_search", "google_web_search", "search_web", "x_search",
        "web_search_call",
    )),
    Tool("ask_user", "ask", (
        "AskUserQuestion", "AskQuestion", "ask_user", "ask_user_question", "question", "clarify",
        "request_user_input", "confirm_output",
    )),
    Tool("run_skill", "skill", (
        "Skill", "skill", "activate_skill", "skill_view", "run_skill", "use_skill", "invoke_skill",
    )),
    Tool("manage_skill", "other", ("skill_manage", "manage_skill")),
    Tool("search_sessions", "search", ("session_search", "search_sessions")),
    Tool("list_skills", "other", ("skills_list", "list_skills")),
    Tool("run_agent", "other", (
        "Task", "Agent", "task", "agent", "delegate", "delegate_task", "delegate_to_agent",
        "spawn_agent", "subagent", "codebase_investigator",
    )),
    Tool("keep_todos", "other", (
        "TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "todo", "todowrite",
        "todoread", "todo_write", "write_todos", "update_todo", "update_plan", "task_tracker",
    )),
    Tool("remember", "other", ("save_memory", "store_memory", "memory", "remember")),
)  # fmt: skip

# Tools that do several things, told apart by their argument `command`.
_EDITORS = {"strreplaceeditor", "strreplacebasededittool", "fileeditor", "editor"}
_COMMANDS: dict[str, tuple[Kind, str]] = {
    "view": ("read", "read_file"),
    "create": ("write", "write_file"),
    "str_replace": ("edit", "edit_file"),
    "insert": ("edit", "edit_file"),
    "undo_edit": ("edit", "edit_file"),
    "edit": ("edit", "edit_file"),
}


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


_BY_NAME: dict[str, Tool] = {_plain(name): tool for tool in TOOLS for name in tool.names}
_seen: dict[str, Tool | None] = {}  # each spelling is folded once


def _look_up(name: str) -> Tool | None:
    try:
        return _seen[name]
    except KeyError:
        tool = _BY_NAME.get(_plain(name))
        if len(_seen) < 4096:  # names come from files; a hostile one may hold any number
            _seen[name] = tool
        return tool


def kind_of(name: str, arguments: Mapping[str, Any] | None = None) -> Kind:
    """The common kind of the tool that a host calls `name`."""
    if tool := _look_up(name):
        return tool.kind
    if _plain(name) in _EDITORS:
        return _COMMANDS.get(str((arguments or {}).get("command", "")), ("edit", ""))[0]
    if _plain(name).startswith("browser"):
        return "web"
    return "other"


def our_tool(name: str, arguments: Mapping[str, Any] | None = None) -> str | None:
    """What we call the tool that another host calls `name`; None when we have none like it."""
    if tool := _look_up(name):
        return tool.ours
    if _plain(name) in _EDITORS:
        return _COMMANDS.get(str((arguments or {}).get("command", "")), ("edit", "edit_file"))[1]
    return None


def hands_over(name: str) -> bool:
    """Whether a call of `name` hands work to another agent."""
    tool = _look_up(name)
    return tool is not None and tool.ours == "run_agent"
