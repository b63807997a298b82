"""What a tool call means, whatever the host: its kind, our own tool like it, the skills it loads.

Owns the one table of tool names. Names are matched without regard to case, and `_`, `-` and spaces
are the same. Tools of MCP servers (`mcp__server__tool`) are `other`, since their names promise
nothing, but for those of `tacit mcp`. A skill is loaded by a skill tool, or by showing its
SKILL.md; which skills a session changed is `observations.py`'s.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tacit.traces import values
from tacit.traces.trace import Kind, Subagent, ToolCall


class ToolNames(NamedTuple):
    """One of our own tools, its kind, and what the hosts call theirs that does the same."""

    ours: str
    kind: Kind
    names: tuple[str, ...]


def _over_mcp(tool: str) -> tuple[str, ...]:
    """What hosts call a tool of `tacit mcp`."""
    return tool, f"tacit_{tool}", f"mcp_tacit_{tool}"


TOOL_NAMES: tuple[ToolNames, ...] = (
    ToolNames("read_file", "read", (
        "Read", "ReadFile", "read", "read_file", "read_many_files", "view", "view_file",
        "view_image", "NotebookRead", "open_file", "open", "scroll_up", "scroll_down", "goto",
    )),
    ToolNames("write_file", "write", (
        "Write", "WriteFile", "write", "write_file", "create", "create_file", "Delete",
        "delete_file",
    )),
    ToolNames("edit_file", "edit", (
        "Edit", "MultiEdit", "NotebookEdit", "edit", "multiedit", "replace", "edit_file",
        "apply_patch", "patch", "StrReplace", "search_replace", "insert",
        "edit_notebook", "reapply",
    )),
    ToolNames("run_command", "shell", (
        "Bash", "BashOutput", "KillBash", "KillShell", "TaskOutput", "Monitor", "bash", "read_bash",
        "write_bash", "stop_bash", "list_bash", "Shell", "shell", "shell_command", "local_shell",
        "local_shell_call", "exec_command", "write_stdin", "unified_exec", "run_shell_command",
        "run_terminal_cmd", "run_command", "execute_bash", "terminal", "process", "execute_code",
        "execute_ipython_cell", "powershell", "read_powershell", "write_powershell",
        "stop_powershell", "read_terminal", "close_terminal",
    )),
    ToolNames("search_files", "search", (
        "Grep", "grep", "grep_search", "grep_files", "search_file_content", "search_files", "rg",
        "codebase_search", "SemanticSearch", "codesearch", "lsp", "LSP", "search_dir",
        "search_file",
    )),
    ToolNames("glob_files", "search", (
        "Glob", "glob", "glob_files", "find", "find_file", "file_search", "glob_file_search",
    )),
    ToolNames("list_files", "search", (
        "LS", "ls", "list", "list_dir", "list_directory", "list_files", "ListDirectory",
    )),
    ToolNames("fetch_page", "web", (
        "WebFetch", "webfetch", "web_fetch", "fetch", "fetch_page", "web_extract", "open_page",
    )),
    ToolNames("search_web", "web", (
        "WebSearch", "websearch", "web_search", "google_web_search", "search_web", "x_search",
        "web_search_call",
    )),
    ToolNames("ask_user", "ask", (
        "AskUserQuestion", "AskQuestion", "ask_user", "ask_user_question", "question", "clarify",
        "request_user_input", "confirm_output",
    )),
    ToolNames("run_skill", "skill", (
        "Skill", "skill", "activate_skill", "skill_view", "run_skill", "use_skill", "invoke_skill",
        *_over_mcp("read_skill"),
    )),
    ToolNames("manage_skill", "other", ("skill_manage", "manage_skill")),
    ToolNames("search_sessions", "search", ("session_search", "search_sessions")),
    ToolNames("list_skills", "other", ("skills_list", "list_skills")),
    ToolNames("run_agent", "other", (
        "Task", "Agent", "task", "agent", "delegate", "delegate_task", "delegate_to_agent",
        "spawn_agent", "subagent", "codebase_investigator",
    )),
    ToolNames("keep_todos", "other", (
        "TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "todo", "todowrite",
        "todoread", "todo_write", "write_todos", "update_todo", "update_plan", "task_tracker",
    )),
    ToolNames("remember", "other", (
        "save_memory", "store_memory", "memory", "remember", *_over_mcp("remember"),
    )),
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


_BY_NAME: dict[str, ToolNames] = {_plain(name): tool for tool in TOOL_NAMES for name in tool.names}
_seen: dict[str, ToolNames | None] = {}  # each spelling is folded once


def _names_of(name: str) -> ToolNames | None:
    try:
        return _seen[name]
    except KeyError:
        tool = _BY_NAME.get(_plain(name))
        if len(_seen) < 4096:  # names come from files; a hostile one may hold any number
            _seen[name] = tool
        return tool


def kind_of(name: str, arguments: Mapping[str, Any] | None = None) -> Kind:
    """The common kind of the tool that a host calls `name`."""
    if tool := _names_of(name):
        return tool.kind
    if _plain(name) in _EDITORS:
        return _COMMANDS.get(str((arguments or {}).get("command", "")), ("edit", ""))[0]
    if _plain(name).startswith("browser"):
        return "web"
    return "other"


def our_tool(name: str, arguments: Mapping[str, Any] | None = None) -> str | None:
    """What we call the tool that another host calls `name`; None when we have none like it."""
    if tool := _names_of(name):
        return tool.ours
    if _plain(name) in _EDITORS:
        return _COMMANDS.get(str((arguments or {}).get("command", "")), ("edit", "edit_file"))[1]
    return None


def is_outcome_report(name: str) -> bool:
    """Whether a call of `name` says over MCP how a skill did."""
    return _plain(name) in {_plain(known) for known in _over_mcp("report_outcome")}


def is_delegation(name: str) -> bool:
    """Whether a call of `name` hands work to another agent."""
    tool = _names_of(name)
    return tool is not None and tool.ours == "run_agent"


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "params")
_AROUND = (
    "tool", "toolSpec", "json_schema", "function_declarations", "functionDeclarations", "tools",
)  # fmt: skip


def tools_of(value: Any, depth: int = 0) -> list[dict[str, Any]]:
    """Definitions of tools as OpenAI writes them, out of those of any API, or the JSON of them."""
    value = values.decoded_json(value) if isinstance(value, str) else value
    if depth > 6 or not value:
        return []
    if isinstance(value, list | tuple):
        return [tool for part in value for tool in tools_of(part, depth + 1)]
    if not isinstance(value, dict) or isinstance(value.get("function"), dict):
        return [value] if isinstance(value, dict) else []
    name = values.string(value.get("name"))
    if not name or isinstance(value.get("tools"), list):
        return [tool for key in _AROUND for tool in tools_of(value.get(key), depth + 1)]
    schemas = (value[key] for key in _SCHEMAS if isinstance(value.get(key), dict))
    schema: dict[str, Any] = next(schemas, {})
    said = value.get("description") or value.get("doc")
    about = {"description": said} if said else {}
    return [{"type": "function", "function": {"name": name, **about, "parameters": schema}}]


_SHELL = re.compile(
    r"(?:.*[/\\])?(?:(?:ba|da|z|k|fi)?sh|pwsh|powershell|cmd)(?:\.exe)?", re.IGNORECASE
)
_GIVEN = re.compile(r"-[a-z]?c|-command|/c", re.IGNORECASE)
_COMMAND_KEYS = ("command", "cmd", "script", "code", "input")


def command_of(call: ToolCall) -> str:
    """The command that a shell call ran; empty when it ran none."""
    for key in _COMMAND_KEYS:
        value = call.arguments.get(key)
        if isinstance(value, list):  # an argument vector, often ["bash", "-lc", "…"]
            words = [word for word in value if isinstance(word, str)]
            given = len(words) > 2 and _SHELL.fullmatch(words[0]) and _GIVEN.fullmatch(words[-2])
            return words[-1] if given else " ".join(words)
        if isinstance(value, str) and value.strip():
            return value
    return ""


_SKILL_FILE = re.compile(r"([^\s/\\\"'`=:;|&<>()]+)[/\\]SKILL\.md", re.IGNORECASE)
# A command that shows a file; one that writes or lists a SKILL.md does not load the skill.
_SHOWS = re.compile(r"^\s*(?:cat|sed|head|tail|less|more|bat|nl|type|get-content)\b[^>]*$", re.I)
# A file in one of the folders that a skill may have beside its SKILL.md.
_SUPPORT = re.compile(
    r"[/\\]([^/\\\s]+)[/\\](?:scripts|references|assets|templates)[/\\][^\s]+$", re.IGNORECASE
)
_COMMAND_END = re.compile(r"&&|\|\||[;|\n]")


def skills_loaded(kind: Kind, arguments: dict[str, Any]) -> Iterator[str]:
    """The names of the skills that a call of this kind, with these arguments, loaded."""
    if kind == "skill":
        if arguments.get("path"):  # a file of it, and not the skill
            return
        for key in ("skill", "name", "skill_name", "command"):
            if name := values.string(arguments.get(key)).strip().strip("/"):
                yield name[:200]
                return
    elif kind == "read":
        for value in arguments.values():
            short = isinstance(value, str) and len(value) < 4000 and _names_skill(value)
            if short and (m := _SKILL_FILE.search(value)):
                yield m.group(1)
    elif kind == "shell":
        for key in ("command", "cmd", "input"):
            given = values.text(arguments.get(key))[:4000]
            for part in _COMMAND_END.split(given) if _names_skill(given) else ():
                if _SHOWS.match(part):
                    yield from _SKILL_FILE.findall(part)


def _names_skill(text: str) -> bool:
    """Whether a SKILL.md stands in a text at all."""
    return "skill.md" in text.casefold()


def skill_of_support_file(path: str) -> str:
    """The skill whose support file lies at `path`; empty when it is no such file."""
    found = _SUPPORT.search(path) if re.search(r"[/\\]skills?[/\\]", path) else None
    return found.group(1) if found else ""


def delegation_of(call: ToolCall) -> Subagent:
    """What is handed on by a call that hands work on."""
    said = {name: values.string(value) for name, value in call.arguments.items()}
    who = said.get("subagent_type") or said.get("agent") or said.get("agent_name") or ""
    task = next((said[key] for key in _TASKS if said.get(key)), "")
    return Subagent(who, task, at=call.at)


_TASKS = ("prompt", "task", "goal", "message", "description")
