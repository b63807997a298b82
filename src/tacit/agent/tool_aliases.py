"""Calls by the names that other agents give to tools, served by our own tools.

The names come from the one table in `traces/`; here a call's arguments are renamed too, and a call
that no tool of ours can serve is answered with what to do instead.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from tacit.agent.tool import Failed, Tool
from tacit.traces.tool_calls import TOOL_NAMES, our_tool

# What others call an argument -> what we call it.
_ARGUMENTS = {
    "file_path": "path", "filepath": "path", "filename": "path", "file": "path",
    "absolute_path": "path", "target_file": "path", "dir_path": "path", "directory": "path",
    "notebook_path": "path", "old_string": "old", "oldstring": "old", "old_str": "old",
    "new_string": "new", "newstring": "new", "new_str": "new", "replace_all": "all",
    "replaceall": "all", "cmd": "command", "script": "command", "timeout": "seconds",
    "text": "content", "file_text": "content", "contents": "content", "skill": "name",
    "skill_name": "name", "args": "arguments", "regex": "pattern", "glob_pattern": "pattern",
    "include": "glob", "prompt": "question", "start_line": "offset",
}  # fmt: skip


_NO_BACKGROUND = (
    "A command runs to its end before its result comes, and nothing runs on behind it: there is"
    " nothing to read from, write to or stop. Use run_command."
)
_BACKGROUND = (
    "BashOutput", "KillBash", "KillShell", "TaskOutput", "Monitor", "read_bash", "write_bash",
    "stop_bash", "list_bash", "write_stdin", "process", "read_powershell", "write_powershell",
    "stop_powershell", "read_terminal", "close_terminal",
)  # fmt: skip
# What a call that none of our tools can serve is answered, by its name or by the tool it means.
_INSTEAD = dict.fromkeys(_BACKGROUND, _NO_BACKGROUND) | {
    "Delete": "Use run_command with rm.",
    "delete_file": "Use run_command with rm.",
    "read_many_files": "Read the files one by one with read_file; find them with glob_files.",
    "keep_todos": "There is no list of tasks here. Keep the plan in mind and go on with the work.",
    "run_agent": "There are no helpers here. Do the work yourself, in this conversation.",
    "fetch_page": "No page can be fetched. Use run_command with curl if the network is allowed,"
    " or ask the user for what is needed.",
    "search_web": "The web cannot be searched. Use what is in the project, or ask the user.",
}


def as_own_call(
    name: str, arguments: dict[str, Any], known: Mapping[str, Tool]
) -> tuple[str, dict[str, Any]]:
    """The call as one of `known`, with its arguments renamed; as it is, where none is like it.

    Raises `Failed` with what to do instead, for what other agents have and we have not.
    """
    ours = name if name in known else our_tool(name, arguments)
    if name not in known and (name in _INSTEAD or (ours in _INSTEAD and ours not in known)):
        raise Failed(_INSTEAD[name if name in _INSTEAD else str(ours)])
    if ours is None or ours not in known:
        return name, arguments
    own = known[ours].takes()
    if own is None or (name == ours and own >= arguments.keys()):
        return name, arguments
    given = {
        key if key in own else _renamed(key): _value(key, value) for key, value in arguments.items()
    }
    return ours, _SHAPES.get(ours, _as_it_is)(given)


def alias_table(known: set[str]) -> str:
    """The table for the prompt: what others call each of our tools that is there."""
    rows = []
    for tool in TOOL_NAMES:
        others = [name for name in tool.names if name not in known and name not in _INSTEAD]
        if tool.ours in known and others:
            rows.append(f"- {', '.join(dict.fromkeys(others))}: {tool.ours}")
    return "\n".join(rows)


def _as_it_is(given: dict[str, Any]) -> dict[str, Any]:
    return given


def _search(given: dict[str, Any]) -> dict[str, Any]:
    if "query" in given and "pattern" not in given:
        given["pattern"] = given.pop("query")
    return given


def _question(given: dict[str, Any]) -> dict[str, Any]:
    """Several questions at once become one; options that are objects, their labels."""
    several = given.pop("questions", None)
    if isinstance(several, list) and several and isinstance(several[0], dict):
        texts = [str(one.get("question", "")) for one in several if isinstance(one, dict)]
        given["question"] = "\n".join(texts)
        if len(several) == 1:
            given["options"] = several[0].get("options", [])
    if isinstance(options := given.get("options"), list):
        given["options"] = [
            str(one.get("label", one)) if isinstance(one, dict) else str(one) for one in options
        ]
    return given


def _edit(given: dict[str, Any]) -> dict[str, Any]:
    """Several edits at once, and patches, as replacements that are made together."""
    _file(given)
    patch = given.pop("input", None) or given.pop("patch", None)
    if isinstance(patch, str):
        given |= _patched(patch)
    if isinstance(several := given.pop("edits", None), list):
        given["edits"] = [
            {_renamed(key): value for key, value in one.items()}
            for one in several
            if isinstance(one, dict)
        ]
    return given


def _patched(patch: str) -> dict[str, Any]:
    """A patch of one file (`*** Update File: PATH`) as replacements. Raises `Failed`."""
    path, edits = "", []
    for line in patch.splitlines():
        head, _, rest = line.partition(": ")
        if head == "*** Update File":
            if path:
                raise Failed("One file a call: send a patch for each file, or use edit_file.")
            path = rest.strip()
        elif head in ("*** Add File", "*** Delete File", "*** Move to"):
            raise Failed(
                "A patch can change a file here. Use write_file to add one; run_command"
                " with rm or mv for the rest."
            )
        elif line.startswith("@@"):
            edits.append(("", ""))
        elif path and not line.startswith("***"):
            edits = edits or [("", "")]
            old, new = edits[-1]
            text = line[1:] + "\n"
            edits[-1] = (
                old if line.startswith("+") else old + text,
                new if line.startswith("-") else new + text,
            )
    if not path:
        raise Failed("The patch names no file. It needs a line `*** Update File: PATH`.")
    return {"path": path, "edits": [{"old": old, "new": new} for old, new in edits if old != new]}


def _file(given: dict[str, Any]) -> dict[str, Any]:
    """Tools that do several things say which in `command`; which of ours it is tells that."""
    given.pop("command", None)
    return given


_SHAPES = {
    "search_files": _search,
    "ask_user": _question,
    "read_file": _file,
    "write_file": _file,
    "edit_file": _edit,
}


def _renamed(key: str) -> str:
    return _ARGUMENTS.get(key.lower(), key)


def _value(key: str, value: Any) -> Any:
    if key in ("cmd", "command") and isinstance(value, list):
        words = [str(word) for word in value]
        if len(words) == 3 and words[0] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):
            return words[2]
        return shlex.join(words)
    if key == "timeout" and isinstance(value, int | float) and value > 1000:
        return value / 1000  # milliseconds elsewhere
    return value
