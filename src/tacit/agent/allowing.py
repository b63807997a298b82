"""Keeping "always" in the user's config.toml: one more pattern in agent.allow, the rest untouched.

The file is a person's, with their comments and order, so it is edited as text; the result must
parse to exactly what was wanted, else the file is left alone.
"""

import json
import os
import re
import tomllib
from typing import Any

from tacit.base import paths
from tacit.base.errors import BadConfig
from tacit.base.files import write_atomic
from tacit.base.locks import locked

_SECTION = re.compile(r"^[ \t]*\[agent\][ \t]*(#.*)?$", re.M)
_NEXT = re.compile(r"^[ \t]*\[", re.M)
_ALLOW = re.compile(r"^[ \t]*allow[ \t]*=[ \t]*\[", re.M)
# A string of either kind, or a comment: what a bracket inside of does not close the list.
_SKIPPED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*')


def allow_always(pattern: str) -> str:
    """Add `pattern` to agent.allow; the file's path. Raises `BadConfig`, `Unwritable`, `Busy`."""
    path = paths.folders().config_file
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with locked(path + ".lock", what="the settings"):
        before = _read(path)
        wanted = _parsed(before, path)
        allowed = wanted.setdefault("agent", {}).setdefault("allow", [])
        if pattern in allowed:
            return path
        allowed.append(pattern)
        after = added(before, pattern)
        if not _says(after, wanted):
            raise BadConfig(f"{path} cannot be edited by rule", f"add it to agent.allow: {pattern}")
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
        write_atomic(os.path.realpath(path), after.encode(), mode=mode)
    return path


def added(text: str, pattern: str) -> str:
    """The settings in `text` with `pattern` at the end of agent.allow."""
    value = json.dumps(pattern, ensure_ascii=False)  # a JSON string is a TOML string
    section = _SECTION.search(text)
    if section is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[agent]\nallow = [{value}]\n"
    following = _NEXT.search(text, section.end())
    end = following.start() if following else len(text)
    key = _ALLOW.search(text, section.end(), end)
    if key is None:
        return f"{text[: section.end()]}\nallow = [{value}]{text[section.end() :]}"
    close = _closing(text, key.end())
    inside = text[key.end() : close].rstrip()
    bare = _SKIPPED.sub(lambda m: "" if m[0].startswith("#") else "s", inside).rstrip()
    comma = "" if not bare or bare.endswith(",") else ","
    line = "\n" if "\n" in text[key.end() : close] else ""
    if line:  # a list over several lines; a comment may end the last of them
        head, tail = text[: key.end()] + _with_comma(inside, comma), "\n" + text[close:]
        return f"{head}\n  {value},{tail}"
    return f"{text[: key.end()]}{inside}{comma + ' ' if inside else ''}{value}{text[close:]}"


def _with_comma(inside: str, comma: str) -> str:
    """`inside` with a comma after its last value, before a comment that follows it."""
    if not comma:
        return inside
    last = max(
        (m.end() for m in _SKIPPED.finditer(inside) if not m[0].startswith("#")),
        default=len(inside),
    )
    return inside[:last] + comma + inside[last:]


def _closing(text: str, at: int) -> int:
    while at < len(text):
        if skipped := _SKIPPED.match(text, at):
            at = skipped.end()
        elif text[at] == "]":
            return at
        else:
            at += 1
    return at


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"cannot read {path}: {error}", "mend it") from error


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _parsed(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{path} is not valid TOML: {error}", "mend that line") from error
