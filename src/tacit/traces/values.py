"""Values whose type nobody promised. Nothing here raises, whatever it is given."""

import re
from datetime import UTC, datetime
from math import isnan
from typing import Any

import msgspec

from tacit.base.display import shorten_middle
from tacit.traces.trace import Usage

_EXIT = re.compile(
    r"(?:exit(?:ed with)?(?: with)?(?: exit)?[ _]?code|exit status)[:= ]+(-?\d{1,9})", re.IGNORECASE
)
MAX_TEXT = 24_000
"""Characters kept of one text, result or argument: its beginning and its end."""
_MAX_DEPTH = 8
_MAX_ITEMS = 1000
CUT = re.compile(r"\[… ([\d,]+) characters left out …\]")
_MOST = 2**53
_MS = 1e11  # seconds beyond this would be the year 5138: so it is milliseconds


def text(value: Any) -> str:
    """`value` as text: a string, the texts of content blocks, or its JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(part for block in value if (part := _block(block)))
    if isinstance(value, dict):
        return _block(value)
    return str(value)


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        for key in ("text", "output_text", "content", "output", "value"):
            if isinstance(inner := block.get(key), str):
                return inner
        kind = block.get("type")
        if isinstance(kind, str) and "image" in kind.lower():
            return "[image]"
        try:
            return msgspec.json.encode(block).decode()
        except (ValueError, TypeError, RecursionError):
            return "[something that cannot be shown]"
    if isinstance(block, list):
        return "" if len(block) == 0 else _block({"content": None, "items": block})
    return "" if block is None else str(block)


def string(value: Any) -> str:
    """`value` when it is a string, else nothing."""
    return value if isinstance(value, str) else ""


_REMOTE = re.compile(r"(?:\w+://)?(?:[^@/]*@)?([^:/.][^:/]*)(?::\d+(?=/))?[:/]+([^:/].*)")


def repository(value: Any) -> str:
    """Host and path of a remote repository, however it is written; without a name or password."""
    remote = _REMOTE.fullmatch(string(value).strip().rstrip("/").removesuffix(".git"))
    return f"{remote[1]}/{remote[2]}".casefold() if remote else ""


def mapping(value: Any) -> dict[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """`value` when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in `value` when it is a list, else none."""
    return [item for item in items(value) if isinstance(item, dict)]


def either(value: dict[str, Any], *names: str) -> Any:
    """What the first of `names` holds that is there and not null."""
    for name in names:
        if (found := value.get(name)) is not None:
            return found
    return None


def arguments(value: Any) -> dict[str, Any]:
    """The arguments of a call: an object, or the JSON of one; other text under `input`."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value:
        if value.lstrip().startswith("{"):
            decoded = decoded_json(value)
            if isinstance(decoded, dict):
                return decoded
        return {"input": value}
    return {} if value in (None, "") else {"input": value}


def cut_long(value: str) -> str:
    """`value` at the length that is kept. One that was cut before, as in an export, stays."""
    if len(value) <= MAX_TEXT or (len(value) <= MAX_TEXT + 100 and CUT.search(value)):
        return value
    return shorten_middle(value, MAX_TEXT)


def trim_arguments(arguments: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """`arguments` with long texts shortened and deep parts as text, and how many were cut."""
    cuts = 0

    def trimmed(value: Any, depth: int) -> Any:
        nonlocal cuts
        if isinstance(value, str) and len(value) <= MAX_TEXT:  # as most are
            return value
        if isinstance(value, dict | list | tuple) and depth >= _MAX_DEPTH:
            value = text(list(value) if isinstance(value, tuple) else value)
        if isinstance(value, dict):
            cuts += max(0, len(value) - _MAX_ITEMS)
            kept = list(value.items())[:_MAX_ITEMS]
            return {str(key)[:200]: trimmed(part, depth + 1) for key, part in kept}
        if isinstance(value, list | tuple):
            cuts += max(0, len(value) - _MAX_ITEMS)
            return [trimmed(part, depth + 1) for part in value[:_MAX_ITEMS]]
        if value is None or isinstance(value, bool | int | float):
            return value
        short = cut_long(str(value))
        cuts += short != value
        return short

    return {str(k)[:200]: trimmed(v, 1) for k, v in list(arguments.items())[:_MAX_ITEMS]}, cuts


def decoded_json(value: Any) -> Any:
    """What the JSON text `value` holds; None when it is none."""
    if not isinstance(value, str | bytes):
        return None
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return None


def count(value: Any) -> int:
    """`value` as a number of things: never negative, never past what a database holds."""
    if type(value) is int and 0 <= value <= _MOST:  # the usual case
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
        return 0
    return int(min(max(value, 0), _MOST))


def amount(value: Any) -> float | None:
    """`value` as a sum of money or of seconds; None when it is not one. Some write it as text."""
    if isinstance(value, str):
        try:
            value = float(value[:40])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


def usage(
    tokens: dict[str, Any], *names: str, cost: Any = None, cached_in_input: bool = False
) -> Usage:
    """The counts in `tokens`, by the names that they have there, in the order of `Usage`.

    `cached_in_input` says that the host counts cached tokens among its input; `Usage` does not.
    """
    counts = [count(tokens.get(name)) for name in names]
    if cached_in_input:
        counts[0] = max(0, counts[0] - counts[2])
    first, second, read, written, thought = (counts + [0] * 5)[:5]
    return Usage(first, second, read, written, thought, amount(cost))


def when(value: Any) -> datetime | None:
    """A moment, from ISO text, seconds or milliseconds; None when it is none of these."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is UTC:
                return moment
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > _MS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def exit_code(value: str) -> int | None:
    """The exit code that a shell result states in words, e.g. "Exit Code: 1"; the last one."""
    found = None
    for match in _EXIT.finditer(value):
        found = match
    return int(found.group(1)) if found else None


def why(result: str, code: int | None = None) -> str:
    """One line that says why a call failed: the last that tells something, as tracebacks end."""
    for line in map(str.strip, reversed(result.splitlines())):
        if line and not _EXIT.search(line) and not line.startswith("<"):
            return line[:300]
    return f"exit code {code}" if code else "failed"


_TAG = re.compile(r"<(/?(?:think(?:ing)?|tool_call|tool_response)>)")
_QUOTED_TAG = re.compile(r"&(amp;)*lt;(?=/?(?:think(?:ing)?|tool_call|tool_response)>)")


def take_tagged(text: str, *tags: str) -> tuple[str, list[str]]:
    """`text` without what stands in tags, and what stands there; in time that grows with it."""
    found = []
    for tag in tags:
        left, position, end = [], 0, f"</{tag}>"
        while (start := text.find(f"<{tag}>", position)) >= 0:
            if (close := text.find(end, start)) < 0:
                break
            left.append(text[position:start])
            found.append(text[start + len(tag) + 2 : close].strip())
            position = close + len(end)
        text = "".join((*left, text[position:]))
    return text, found


def quote_tags(text: str) -> str:
    """`text` with the tags that ShareGPT files have for calls and thoughts as plain words in it."""
    text = _QUOTED_TAG.sub(lambda found: "&amp;" + found[0][1:], text)
    return _TAG.sub(r"&lt;\1", text)


def unquote_tags(text: str) -> str:
    """What `quote_tags` was given."""
    return _QUOTED_TAG.sub(lambda found: "&" + found[0][5:] if found[1] else "<", text)
