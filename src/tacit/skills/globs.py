"""Patterns for files, as skills write them under `paths`: `src/**/*.py`, `*.{ts,tsx}`."""

import re
from functools import lru_cache


def matches(path: str, pattern: str) -> bool:
    """Whether the relative `path` fits. A pattern without `/` fits a name at any depth."""
    path = path.replace("\\", "/").removeprefix("./")
    return _compiled(pattern.removeprefix("./")).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    if pattern.endswith("/"):
        pattern += "**"
    prefix = "" if "/" in pattern else "(?:.*/)?"
    try:
        return re.compile(prefix + _translate(pattern), re.S)
    except re.error:  # an odd pattern fits only itself
        return re.compile(re.escape(pattern))


def _translate(pattern: str) -> str:
    out, at, depth = [], 0, 0
    while at < len(pattern):
        c = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        closing = pattern.find("]", at + 2) if c == "[" else -1
        if c == "[" and closing > 0:
            inside = pattern[at + 1 : closing].replace("\\", "\\\\")
            out.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            at = closing
        elif c == "{" and "}" in pattern[at:]:
            out.append("(?:")
            depth += 1
        elif c == "}" and depth:
            out.append(")")
            depth -= 1
        elif c == "," and depth:
            out.append("|")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(c, re.escape(c)))
        at += 1
    return "".join(out)
