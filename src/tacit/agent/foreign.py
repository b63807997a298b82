"""Serving calls by the names that other agents give to tools, from the one table in `traces/`."""

import shlex
from typing import Any

from tacit.traces.kinds import TOOLS, our_tool

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


def serve(name: str, arguments: dict[str, Any], known: set[str]) -> tuple[str, dict[str, Any]]:
    """The call as one of `known`, with its arguments renamed; as it is, where there is none."""
    if name in known:
        return name, arguments
    ours = our_tool(name, arguments)
    if ours is None or ours not in known:
        return name, arguments
    return ours, {_renamed(key): _value(key, value) for key, value in arguments.items()}


def mapping(known: set[str]) -> str:
    """The table for the prompt: what others call each of our tools that is there."""
    rows = []
    for tool in TOOLS:
        others = [name for name in tool.names if name not in known]
        if tool.ours in known and others:
            rows.append(f"- {', '.join(dict.fromkeys(others))}: {tool.ours}")
    return "\n".join(rows)


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
