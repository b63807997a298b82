"""Changes to the user's config.toml: values set or removed, and lists added to.

The file belongs to a person, so it is edited as text and everything else in it (comments, order,
spacing) stays as it is. The result must parse to exactly what was wanted; otherwise nothing is
written. Reading settings is `settings.py`'s.
"""

import copy
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from tacit.base import paths
from tacit.base.atomic_files import locked, write_atomic
from tacit.base.errors import BadConfig
from tacit.base.paths import make_private
from tacit.base.settings import read_toml

SettingValue = str | bool | int | float | list[str]
"""What can be set: one value, or a list of texts."""
# A string of either kind, a comment, or a comma: in the first two a bracket closes nothing.
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|,')


def set_values(values: Mapping[str, SettingValue | None], path: str = "") -> str:
    """Set `section.key` values, None removing a key; the file's path.

    Raises `BadConfig` where the file is broken or written in a way that cannot be edited by rule,
    `Unwritable` and `Busy`.
    """
    lines = ", ".join(f"{key} = {toml_value(v)}" for key, v in values.items() if v is not None)
    return _rewrite(
        path,
        lambda text: edited(text, values),
        lambda data: _with_values(data, values),
        f"set there yourself: {lines}",
    )


def append_value(key: str, value: str, path: str = "") -> str:
    """Add `value` to the list `section.key`, unless it is in it; the file's path.

    Raises as `set_values` does.
    """
    section, field = _split_key(key)

    def wanted(data: dict[str, Any]) -> dict[str, Any]:
        listed = data.get(section, {}).get(field, [])
        return data if value in listed else _with_values(data, {key: [*listed, value]})

    return _rewrite(
        path,
        lambda text: appended(text, key, value),
        wanted,
        f"add to {key} there yourself: {value}",
    )


def _rewrite(
    path: str,
    edit: Callable[[str], str],
    expected: Callable[[dict[str, Any]], dict[str, Any]],
    hint: str,
) -> str:
    """Write the file as `edit` makes it, if it then holds the values that are expected."""
    path = path or paths.folders().config_file
    make_private(os.path.dirname(path))
    with locked(path + ".lock", what="the settings"):
        before, current = read_toml(path)
        wanted = expected(current)
        after = edit(before) if wanted != current else before
        if _parsed_or_none(after) != wanted:
            raise BadConfig(f"{path} cannot be edited by rule", hint)
        if after != before:
            mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
            write_atomic(os.path.realpath(path), after.encode(), mode=mode)
    return path


def edited(text: str, values: Mapping[str, SettingValue | None]) -> str:
    """`text` with these values set."""
    for key, value in values.items():
        section, field = _split_key(key)
        text = _set(text, section, field, value)
    return text


def appended(text: str, key: str, value: str) -> str:
    """`text` with `value` at the end of a list."""
    section, field = _split_key(key)
    lines = text.splitlines(keepends=True)
    head = next((n for n, line in enumerate(lines) if _is_head(line, section)), None)
    at = None if head is None else _place(lines, head, field)[0]
    if at is None:
        return _set(text, section, field, [value])
    start = sum(len(line) for line in lines[:at])
    begin = text.index("[", start) + 1
    end = _closing(text, begin)
    inside = text[begin:end]
    if "\n" not in inside:
        gap = ", " if inside.strip() else ""
        return f"{text[:begin]}{inside.rstrip().rstrip(',')}{gap}{toml_value(value)}{text[end:]}"
    # Over several lines: the value gets one of its own, and the last one before it a comma.
    last = max((m.end() for m in _TOKEN.finditer(inside) if m[0][0] != "#"), default=0)
    comma = "," if last and inside[last - 1] != "," else ""
    rest = inside[last:].rstrip()
    return f"{text[:begin]}{inside[:last]}{comma}{rest}\n  {toml_value(value)},\n{text[end:]}"


def _split_key(key: str) -> tuple[str, str]:
    section, _, field = key.rpartition(".")
    return section, field


def toml_value(value: SettingValue) -> str:
    """`value` as TOML writes it."""
    # For these types JSON is TOML, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _set(text: str, section: str, field: str, value: SettingValue | None) -> str:
    lines = text.splitlines(keepends=True)
    end = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    head = next((n for n, line in enumerate(lines) if _is_head(line, section)), None)
    if head is None:
        if value is None:
            return text
        gap = end if text.endswith("\n") else end * 2
        return f"{text}{gap if text else ''}[{section}]{end}{field} = {toml_value(value)}{end}"
    at, last = _place(lines, head, field)
    comment = _comment(lines[at]) if at is not None else ""
    new = [] if value is None else [f"{field} = {toml_value(value)}{comment}{end}"]
    if at is not None:
        lines[at : at + _length(lines[at:last])] = new
    else:
        if not lines[head].endswith("\n"):
            lines[head] += end
        lines[head + 1 : head + 1] = new
    return "".join(lines)


def _place(lines: list[str], head: int, field: str) -> tuple[int | None, int]:
    """The line of a key in the section that begins at `head`, and where that section ends."""
    last = next((n for n in range(head + 1, len(lines)) if _is_any_head(lines[n])), len(lines))
    key = re.compile(rf"[ \t]*{re.escape(field)}[ \t]*=")
    return next((n for n in range(head + 1, last) if key.match(lines[n])), None), last


def _closing(text: str, at: int) -> int:
    """Where the list that begins before `at` ends."""
    while at < len(text) and text[at] != "]":
        skipped = _TOKEN.match(text, at)
        at = skipped.end() if skipped else at + 1
    return at


def _is_head(line: str, section: str) -> bool:
    return (
        re.fullmatch(rf"[ \t]*\[[ \t]*{re.escape(section)}[ \t]*\][ \t]*(#.*)?\s*", line)
        is not None
    )


def _is_any_head(line: str) -> bool:
    return re.match(r"[ \t]*\[", line) is not None


def _length(lines: list[str]) -> int:
    """How many lines the value that begins on the first one takes."""
    for count in range(1, len(lines) + 1):
        if _parsed_or_none("".join(lines[:count])) is not None:
            return count
    return 1


def _comment(line: str) -> str:
    """The comment that ends a line with a whole value, with two spaces before it."""
    for match in re.finditer("#", line):
        if _parsed_or_none(line[: match.start()]) is not None:
            return "  " + line[match.start() :].strip()
    return ""


def _with_values(data: dict[str, Any], values: Mapping[str, SettingValue | None]) -> dict[str, Any]:
    wanted = copy.deepcopy(data)
    for key, value in values.items():
        section, field = _split_key(key)
        if value is not None:
            wanted.setdefault(section, {})[field] = value
        elif section in wanted:
            wanted[section].pop(field, None)
    return wanted


def _parsed_or_none(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
