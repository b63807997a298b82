"""Excerpts of long texts: the lines that matter, and how much was left out.

Pure functions over text. Whoever shows the result says where the text came from (`digest`).
"""

import re
from typing import Any

import msgspec

from tacit.base.display import plain
from tacit.base.secrets import redact

# Lines that say what went wrong, in the words that programs use for it.
_MATTERS = re.compile(
    r"\b(?:error|errors|exception|traceback|fatal|panic|failed|failure|fail|denied|refused|invalid"
    r"|undefined|unknown|unrecognized|unexpected|missing|not found|no such|cannot|could not|can't"
    r"|unable|must|required|expected|deprecated|warning|usage|hint|did you mean|abort(?:ed)?"
    r"|timed out|timeout|conflict|exit (?:code|status))\b|^E\s{2,}|[A-Z]\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NOISE = re.compile(r'^\s*(?:at |File "|\d+%|[#=\-*.\s]{3,}$|\|?\s*\^+~*\s*$)')


def clean(text: str) -> str:
    """`text` without secrets and without what steers a terminal."""
    return redact(plain(text)).text


def cut(text: str, most: int) -> str:
    """`text`, or its beginning and its end with how much stood between them."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    left = len(text) - head - tail
    return f"{text[:head].rstrip()} […{left:,} characters…] {text[len(text) - tail :].lstrip()}"


def first_and_last(text: str, most: int) -> str:
    """Of an output that is fine: all of a short one, else its first and its last line."""
    text = text.strip()
    if len(text) <= most:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    first, last = lines[0].rstrip(), lines[-1].strip()
    half = most // 2
    head = first if len(first) <= half else first[:half].rstrip() + "…"
    if len(lines) == 1:
        return f"{head}\n[{len(text):,} characters]"
    tail = last if len(last) <= half else "…" + last[-half:].lstrip()
    return f"{head}\n[{len(lines):,} lines]\n{tail}"


def failure_excerpt(text: str, most: int) -> str:
    """Of an output that failed: the lines that say why, and the last ones, in their order."""
    text = text.strip()
    if len(text) <= most:
        return text
    lines = text.splitlines()
    scores = [_score(line, at, len(lines)) for at, line in enumerate(lines)]
    chosen: set[int] = set()
    room = most
    for at in sorted(range(len(lines)), key=lambda at: (-scores[at], -at)):
        size = min(len(lines[at]), 240) + 1
        if scores[at] <= 0 or size > room:
            continue
        chosen.add(at)
        room -= size
    return "\n".join(_with_gaps(lines, sorted(chosen)))


def _score(line: str, at: int, count: int) -> int:
    if not line.strip() or _NOISE.match(line):
        return 0
    score = 4 if _MATTERS.search(line) else 0
    if at >= count - 3:
        score += 3
    return score + (at < 1)


def _with_gaps(lines: list[str], chosen: list[int]) -> list[str]:
    out: list[str] = []
    before = -1
    for at in chosen:
        if at > before + 1:
            out.append(f"[{at - before - 1} lines]")
        line = lines[at].rstrip()
        out.append(line if len(line) <= 240 else line[:239] + "…")
        before = at
    if before < len(lines) - 1:
        out.append(f"[{len(lines) - 1 - before} lines]")
    return out


def arguments_excerpt(given: dict[str, Any], most: int, each: int) -> str:
    """A call's arguments as JSON on one line; long values cut, and the whole if that is long."""
    shown = {key: _short(value, each) for key, value in given.items()}
    return cut(clean(msgspec.json.encode(shown, enc_hook=str).decode()), most)


def _short(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, dict):
        return {str(key): _short(inner, most) for key, inner in list(value.items())[:20]}
    if isinstance(value, list | tuple):
        return [_short(inner, most) for inner in value[:20]]
    return value
