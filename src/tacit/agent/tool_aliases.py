"""Calls by the names that other agents give to tools, served by our own tools.

The names come from the one table in `traces/`; here a call's arguments are renamed too.
"""

import shlex
from typing import Any

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


def as_own_call(
    name: str, arguments: dict[str, Any], known: set[str]
) -> tuple[str, dict[str, Any]]:
    """The call as one of `known`, with its arguments renamed; as it is, where there is none."""
    if name in known:
        return name, arguments
    ours = our_tool(name, arguments)
    if ours is None or ours not in known:
        return name, arguments
    given = {_renamed(key): _value(key, value) for key, value in arguments.items()}
    return ours, _SHAPES.get(ours, _as_it_is)(given)


def alias_table(known: set[str]) -> str:
    """The table for the prompt: what others call each of our tools that is there."""
    rows = []
    for tool in TOOL_NAMES:
        others = [name for name in tool.names if name not in known]
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


def _file(given: dict[str, Any]) -> dict[str, Any]:
    """Tools that do several things say which in `command`; which of ours it is tells that."""
    given.pop("command", None)
    return given


_SHAPES = {
    "search_files": _search,
    "ask_user": _question,
    "read_file": _file,
    "write_file": _file,
    "edit_file": _file,
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
