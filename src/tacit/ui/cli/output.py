"""What commands print with: JSON, tables, rows, wrapped text, sparklines; and the yes they ask for.

Cutting and cleaning of text is `base`'s.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import click
import msgspec

from tacit.base import paths
from tacit.base.display import columns, fit, pad, plain, width
from tacit.base.errors import TacitError
from tacit.skills.skill import Problem

_BARS = "▁▂▃▄▅▆▇█"
_LETTERS = ".:-=+*#@"


def sparkline(values: Sequence[float], zero: str = " ") -> str:
    """A sign a value, higher for more; `zero` for 0."""
    signs = _BARS if can_draw_bars() else _LETTERS
    most = max(values, default=0)
    return "".join(
        signs[min(len(signs) - 1, int(value / most * len(signs)))] if value > 0 else zero
        for value in values
    )


def share_bar(share: float, columns: int, rest: str = "") -> str:
    """A bar of `share` of the columns, at least one sign for anything; the others are `rest`."""
    sign = "█" if can_draw_bars() else "#"
    full = min(max(round(share * columns), 1 if share > 0 else 0), columns)
    return sign * full + rest * (columns - full)


def can_draw_bars() -> bool:
    """Whether the output takes signs beyond ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return encoding.startswith("utf") and os.environ.get("TERM") != "dumb"


# What JSON may hold as it is, and a terminal would obey.
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
SEVERITY_COLOUR = {"error": "red", "warning": "yellow", "note": "blue"}


_taken: ContextVar[list[Any] | None] = ContextVar("tacit_taken", default=None)


@contextmanager
def taking() -> Iterator[list[Any]]:
    """For a `with` block, what would be printed as JSON is put into the list instead."""
    taken: list[Any] = []
    token = _taken.set(taken)
    try:
        yield taken
    finally:
        _taken.reset(token)


def write_json(value: Any) -> int:
    """`value` as one JSON document, indented for people, compact in a pipe; the exit code 0."""
    if (taken := _taken.get()) is not None:
        taken.append(value)
        return 0
    data = as_json(value)
    if sys.stdout.isatty():
        text = msgspec.json.format(data, indent=2).decode()
        data = _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
    click.echo(data)
    return 0


def as_json(value: Any) -> bytes:
    """`value` as JSON; of a path that is not in UTF-8, what can be shown of it."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_printable(msgspec.to_builtins(value)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], drop: Sequence[str] = ()) -> str:
    """Aligned columns; the last one is cut to what is left of the width.

    `drop` names columns that are left out, one after the other, while a line does not fit. In a
    pipe nothing is left out or cut: a line a row, with tabs between, and no head; COLUMNS, where it
    is set, says that a table is wanted all the same.
    """
    if not rows:
        return ""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return "\n".join("\t".join(click.unstyle(cell) for cell in row) for row in rows)
    for name in drop:
        if _needs(head, rows) <= columns():
            break
        at = list(head).index(name)
        head, *rows = [[*row[:at], *row[at + 1 :]] for row in (head, *rows)]
    sizes = [max(width(row[i]) for row in (head, *rows)) for i in range(len(head))]
    left = columns() - sum(sizes[:-1]) - 2 * (len(head) - 1)
    lines = [_line(head, sizes, left)]
    lines[0] = click.style(lines[0].rstrip(), bold=True)
    lines += [_line(row, sizes, left).rstrip() for row in rows]
    return "\n".join(lines)


def page(text: str) -> None:
    """Write `text`, by the user's pager where it is longer than the screen."""
    import shlex
    import shutil
    import subprocess

    pager = shlex.split(os.environ.get("TACIT_PAGER", os.environ.get("PAGER", "less")))
    short = text.count("\n") < shutil.get_terminal_size().lines
    program = paths.find_program(pager[0]) if pager else ""
    if short or not program:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    # Colours as they are, one screen is no reason to ask for a key, and the text stays on leaving.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8"} | os.environ
    with subprocess.Popen([program, *pager[1:]], stdin=subprocess.PIPE, env=environment) as shown:
        try:
            shown.communicate(text.encode("utf-8", "backslashreplace"))
        except (BrokenPipeError, KeyboardInterrupt):
            pass  # left early


def write_problem(found: Problem) -> None:
    """A problem of a skill with its line, and under it how to mend it."""
    place = f"{found.line}" if found.file == "SKILL.md" else plain(f"{found.file}:{found.line}")
    mark = click.style(f"{found.severity:<8}", fg=SEVERITY_COLOUR[found.severity])
    code = click.style(f"[{found.code}]", dim=True)
    click.echo(_wrapped(f"  {place:>5}  {mark} ", f"{plain(found.message)} {code}", 18))
    click.echo(_wrapped(" " * 18, f"→ {plain(found.fix)}", 20))


def write_hint(text: str) -> None:
    """A line beside the matter, such as how to undo it."""
    click.echo(click.style(text, dim=True))


def write_rows(
    rows: Iterable[tuple[str, str]], wide: int, colours: Mapping[str, str | None] | None = None
) -> None:
    """Each value after its label, which takes `wide` columns; without those that are empty."""
    for label, value in rows:
        if value:
            shown = click.style(plain(value), fg=(colours or {}).get(label))
            click.echo(f"{click.style(f'{label:<{wide}}', dim=True)} {shown}")


def write_diff(text: str, indent: str = "") -> None:
    """A diff in colour."""
    for line in text.removesuffix("\n").split("\n") if text else ():  # it ends at nothing else
        head = line.startswith(("+++", "---"))
        colour = None if head else _DIFF_COLOURS.get(line[:1])
        click.echo(indent + click.style(plain(line), fg=colour, bold=head or None))


def confirm(question: str, yes: bool, otherwise: TacitError, *, err: bool = False) -> None:
    """Go on only with a yes, given before or now. Raises `otherwise` where nobody can be asked."""
    if not yes:
        if not sys.stdin.isatty():
            raise otherwise
        click.confirm(question, abort=True, err=err)


@contextmanager
def progress_bar(*, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on the terminal. It is told how much is done of what, 0 where that is not known, and
    in words on what and at which cost."""
    if hidden or not sys.stderr.isatty():
        yield lambda done, whole, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)

        def tell(done: int, whole: int, text: str) -> None:
            shown.update(task, completed=done, total=whole or None, description=text)

        yield tell


def wrapped(text: str) -> str:
    """`text` in lines that fit a terminal; in a pipe it stays as it is."""
    return _wrapped("", text, 0) if sys.stdout.isatty() else text


def _wrapped(begin: str, text: str, indent: int) -> str:
    """`text` in lines that fit the terminal, under each other; `begin` has `indent` columns."""
    import textwrap

    inside = max(columns() - indent, 30)
    lines = textwrap.wrap(text, inside, break_long_words=False, break_on_hyphens=False)
    return begin + f"\n{' ' * indent}".join(lines or [""])


def _needs(head: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Columns that every cell takes; of the last one, what it can be cut to."""
    sizes = [max(width(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return sum(sizes[:-1]) + 2 * (len(head) - 1) + min(sizes[-1], 20)


def _line(row: Sequence[str], sizes: Sequence[int], left: int) -> str:
    cells = [pad(cell, size) for cell, size in zip(row[:-1], sizes[:-1], strict=True)]
    return "  ".join([*cells, fit(row[-1], max(left, 20))])


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(part) for part in value]
    return value
