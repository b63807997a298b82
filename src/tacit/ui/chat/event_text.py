"""What a face shows as text: calls, results and times in words, and the answers of slash commands.

Text in, text out, free of control characters. Light, because the first frame imports it.
"""

import json
from typing import Any, Literal

import msgspec

from tacit.agent.agent_events import subject_of
from tacit.base.display import fit, one_line, pad, plain, width


def call_subject(arguments: dict[str, Any]) -> str:
    """What a call is about, on one line: its command, its path, else its first word-like value."""
    values = (subject_of(arguments), *arguments.values())
    return next((one_line(v) for v in values if isinstance(v, str) and v.strip()), "")


def shown_seconds(taken: float) -> str:
    """`0.2 s`, `12 s`, `3 min 20 s`."""
    if taken < 9.95:
        return f"{taken:.1f} s"
    whole = round(taken)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def arguments_text(arguments: dict[str, Any]) -> str:
    """The arguments of a call, each under its name; long texts as they are, not as JSON."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" in text:
            inside = "\n".join(f"  {line}" for line in text.splitlines())
            lines.append(f"{name}:\n{inside}")
        else:
            lines.append(f"{name}: {text}")
    return plain("\n".join(lines))


def first_lines(text: str, most: int) -> tuple[str, int]:
    """The first `most` lines of `text`, and how many are left."""
    lines = plain(text).splitlines()
    return "\n".join(lines[:most]), max(len(lines) - most, 0)


def last_line(text: str, most: int = 120) -> str:
    """The last line that says something: what went wrong, as a rule."""
    lines = [line for line in plain(text).splitlines() if line.strip()]
    return fit(one_line(lines[-1]), most) if lines else ""


class CommandAnswer(msgspec.Struct, frozen=True):
    """Text, a diff under it, and what the face does next."""

    text: str
    diff: str = ""
    then: Literal["", "quit", "reopened"] = ""


def two_columns(rows: list[tuple[str, str]], most: int = 24) -> str:
    """Two columns; a face wraps what is longer than its width."""
    first = min(max(width(left) for left, _ in rows), most)
    return "\n".join(f"{pad(left, first)}  {fit(right, 200)}".rstrip() for left, right in rows)
