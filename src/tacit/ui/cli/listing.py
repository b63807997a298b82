"""The table of skills: aligned and cut to the width on a terminal, tab-separated in a pipe."""

import os
import sys
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Line = tuple[str, str, str, str, str]
"""Name, scope, description, state, gravest problem."""

_PART = 200
_DIM, _BOLD, _RED, _YELLOW, _END = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"


def write(rows: "Iterable[Line]") -> int:
    """Print `rows`; the exit code is 0 also when there are none."""
    if sys.stdout.isatty():
        from tacit.base.terminal import can_colour, columns

        return put([table(list(rows), columns(), can_colour())])
    # In parts: one text of all lines is as wide as its widest character, and slow to fill.
    rows = iter(rows)
    return put(iter(lambda: separated(islice(rows, _PART)), ""))


def put(parts: "Iterable[str]") -> int:
    """Write to standard output. A reader that goes away early, as `head` does, is no error."""
    try:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def separated(rows: "Iterable[Line]") -> str:
    """A line a skill: name, scope, state, description, with tabs between."""
    return "".join([f"{name}\t{scope}\t{state}\t{text}\n" for name, scope, text, state, _ in rows])


def table(rows: list[Line], space: int, colour: bool) -> str:
    """The same for people, with a line at the end that counts them."""
    from tacit.base.terminal import fit, pad, width

    if not rows:
        return "No skills yet. Put a folder with a SKILL.md into ~/.agents/skills\n"
    names = min(max(width(row[0]) for row in rows), max(space // 3, 16), 44)
    scopes = max(len(row[1]) for row in rows)
    left = max(space - names - scopes - 4, 10)
    out = []
    for name, scope, text, state, worst in rows:
        mark = _mark(state, worst)
        shown = f"{mark} {text}" if mark else text
        line = f"{pad(name, names)}  {pad(scope, scopes)}  "
        if colour:
            tone = _DIM if state != "active" else ""
            accent = _RED if worst == "error" else _YELLOW
            cut = fit(shown, left)
            if mark:
                cut = f"{accent}{cut[: len(mark)]}{_END}{tone}{cut[len(mark) :]}"
            out.append(f"{tone}{_BOLD if not tone else ''}{pad(name, names)}{_END}{tone}  ")
            out.append(f"{_DIM}{pad(scope, scopes)}{_END}{tone}  {cut}{_END}\n")
        else:
            out.append(f"{line}{fit(shown, left)}\n")
    out.append(f"\n{summary(rows)}\n")
    return "".join(out)


def summary(rows: list[Line]) -> str:
    """How many there are, by scope and state."""
    scopes: dict[str, int] = {}
    states: dict[str, int] = {}
    broken = 0
    for _, scope, _, state, worst in rows:
        scopes[scope] = scopes.get(scope, 0) + 1
        states[state] = states.get(state, 0) + 1
        broken += worst == "error"
    parts = [f"{count:,} {scope}" for scope, count in scopes.items()]
    text = f"{len(rows):,} {'skill' if len(rows) == 1 else 'skills'}: {', '.join(parts)}"
    if states.get("shadowed"):
        text += f" · {states['shadowed']:,} shadowed"
    if states.get("untrusted"):
        text += f" · {states['untrusted']:,} not trusted (tacit trust)"
    if broken:
        text += f" · {broken:,} with errors (tacit lint)"
    return text


def _mark(state: str, worst: str) -> str:
    if state != "active":
        return f"[{state}]"
    return "[error]" if worst == "error" else ""
