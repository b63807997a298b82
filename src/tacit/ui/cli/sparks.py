"""Numbers as a row of small bars; in letters where a terminal has no such signs."""

import os
import sys
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_LETTERS = ".:-=+*#@"


def sparkline(values: Sequence[float]) -> str:
    """A sign a value, higher for more; nothing at all for 0."""
    signs = _BARS if can_draw() else _LETTERS
    most = max(values, default=0)
    if most <= 0:
        return " " * len(values)
    return "".join(
        " " if value <= 0 else signs[min(len(signs) - 1, int(value / most * len(signs)))]
        for value in values
    )


def bar(value: int, most: int, columns: int) -> str:
    """A bar as long as its share of `most`; at least one sign for anything above 0."""
    sign = "█" if can_draw() else "#"
    return sign * (max(1, round(columns * value / most)) if value > 0 and most > 0 else 0)


def can_draw() -> bool:
    """Whether the output takes signs beyond ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return encoding.startswith("utf") and os.environ.get("TERM") != "dumb"
