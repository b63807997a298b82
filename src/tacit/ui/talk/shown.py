"""What a command inside a conversation gives to its face."""

from typing import Literal

import msgspec

from tacit.base.terminal import fit, pad, width


class Shown(msgspec.Struct, frozen=True):
    """Text, a diff under it, and what the face does next."""

    text: str
    diff: str = ""
    then: Literal["", "quit", "reopened"] = ""


def table(rows: list[tuple[str, str]], most: int = 24) -> str:
    """Two columns; a face wraps what is longer than its width."""
    first = min(max(width(left) for left, _ in rows), most)
    return "\n".join(f"{pad(left, first)}  {fit(right, 200)}".rstrip() for left, right in rows)
