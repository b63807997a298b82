"""Scripts kept in files: JSON for plain lists and markers, Python for anything else."""

import os
import runpy
from typing import Any

import msgspec

from tacit.base.errors import BadConfig, NotFound
from tacit.testing.replies import Reply
from tacit.testing.script import (
    Replies,
    Rules,
    Script,
    Turns,
    as_script,
    marked,
)

_Entry = Reply | str
"""In JSON, a reply is an object with `parts`, or a string that is its text."""


class _Marked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    replies: list[_Entry]
    marker: str
    then: _Entry | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: list[_Marked] = []
    default: _Entry | None = None


def load_script(path: str) -> Script:
    """The script in a file.

    JSON: a list of replies, used up in order; or `{"rules": [{"marker": "…", "replies": […]}],
    "default": …}`, where a rule takes the conversations with its marker in the user's first
    message and replies by turn. Python: a file that sets `script`.
    """
    if not os.path.isfile(path):
        raise NotFound(f"there is no script at {path}", "give the path of a .json or .py file")
    if path.endswith(".py"):
        return _python(path)
    with open(path, "rb") as file:
        data = file.read()
    try:
        loaded: list[_Entry] | _File = msgspec.json.decode(data, type=list[_Entry] | _File)
    except msgspec.DecodeError as error:
        raise BadConfig(f"{path} is not a script: {error}", "see docs/testing.md") from error
    if isinstance(loaded, list):
        return Replies(loaded)
    rules = [(marked(rule.marker), Turns(rule.replies, then=rule.then)) for rule in loaded.rules]
    return Rules(*rules, default=loaded.default)


def _python(path: str) -> Script:
    names: dict[str, Any] = runpy.run_path(path)
    if "script" not in names:
        raise BadConfig(f"{path} sets no `script`", "end the file with `script = …`")
    return as_script(names["script"])
