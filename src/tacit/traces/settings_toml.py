"""Edits to a TOML file that leave everything else as it is: one table at its end, put and taken.

TOML lets a table be written in many ways; only the plainest is written, and only that is taken out
again. Whatever is edited is parsed afterwards and compared with what it should say.
"""

import re
import tomllib
from typing import Any

from tacit.traces.settings_json import Malformed, Splice, Unfit, apply_splices

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def parse_toml(text: str) -> Any:
    """What the text says. Raises `Malformed`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from None


def add_table(text: str, addition: dict[str, Any]) -> tuple[Splice, ...]:
    """What to splice in so that `text` also has the one table that `addition` nests."""
    path: list[str] = []
    table: Any = addition
    while len(table) == 1 and isinstance(inner := next(iter(table.values())), dict):
        path.append(next(iter(table)))
        table = inner
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [_header(path), *(f"{key} = {_value(value)}" for key, value in table.items()), ""]
    ended = not text or text.endswith(("\n", newline))
    before = ("" if ended else newline) + (newline if text else "")
    splice = Splice(len(text), "", before + newline.join(lines))
    _check(apply_splices(text, [splice]), _joined(parse_toml(text), addition))
    return (splice,)


def remove_table(text: str, path: tuple[str | int, ...]) -> str:
    """`text` without the table at `path` and the empty line before it. Raises `Unfit`."""
    header = _header([str(part) for part in path])
    found = re.search(rf"(?m)(^[ \t]*\r?\n)?^{re.escape(header)}[ \t]*\r?\n?", text)
    if found is None:
        raise Unfit(f"{'.'.join(map(str, path))} is not a table with a line of its own")
    rest = re.search(r"(?m)^[ \t]*\[", text[found.end() :])
    end = found.end() + rest.start() if rest else len(text)
    wanted = parse_toml(text)
    holder = wanted
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    if not holder and len(path) == 2:
        del wanted[path[0]]
    after = text[: found.start()] + text[end:]
    _check(after, wanted)
    return after


def _header(path: list[str]) -> str:
    if not all(_BARE.fullmatch(part) for part in path):
        raise Unfit(f"{'.'.join(path)} is not a plain name")
    return f"[{'.'.join(path)}]"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | int):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _joined(before: Any, addition: Any) -> Any:
    if isinstance(before, dict) and isinstance(addition, dict):
        both = {key: _joined(before.get(key), value) for key, value in addition.items()}
        return {**before, **both}
    return addition


def _check(text: str, wanted: Any) -> None:
    try:
        said = parse_toml(text)
    except Malformed as error:
        raise Unfit(str(error)) from None
    if said != wanted:
        raise Unfit("the file is laid out in a way that cannot be edited safely")
