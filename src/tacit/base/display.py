"""Text and amounts on their way to a person: control characters taken out, cut or padded to a
number of columns, and money, tokens and counts as people read them.

Says how wide the output is and whether it takes colour. Tables, styles and screens are `ui/`'s.
`tacit list` imports this, so nothing heavy is imported here.
"""

import sys
import unicodedata

_CONTROL = {
    c: "\N{REPLACEMENT CHARACTER}" for c in (*range(0x20), *range(0x7F, 0xA0)) if c not in (9, 10)
}
# Characters that reorder or hide what follows them, or end a line: shown, not obeyed.
_CONTROL.update(dict.fromkeys((1564, 8206, 8207, *range(8232, 8239), *range(8294, 8298)), "�"))
_CONTROL[13] = ""
_REACH = 2000
"""How far from a cut a space is looked for, at most."""


def plain(text: str) -> str:
    """`text` without anything that could steer a terminal; tabs and line ends stay."""
    if text.isprintable():
        return text
    return text.translate(_CONTROL)


def one_line(text: str) -> str:
    """`text` as a single line of printable characters."""
    return " ".join(plain(text.replace("\n", " ")).split())


def width(text: str) -> int:
    """Columns that `text` takes: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(c) for c in text)


def fit(text: str, columns: int) -> str:
    """`text` cut to at most `columns`, with an ellipsis where something was cut."""
    if len(text) <= columns and text.isascii():
        return text
    if width(text) <= columns:
        return text
    out, used = [], 0
    for c in text:
        used += _columns(c)
        if used > columns - 1:
            break
        out.append(c)
    return "".join(out).rstrip() + "…" if columns > 0 else ""


def shorten(text: str, most: int, mark: str = "…") -> str:
    """`text` in at most `most` characters, with `mark` where its end was cut."""
    return text if len(text) <= most else text[: most - len(mark)].rstrip() + mark


def shorten_start(text: str, most: int) -> str:
    """The end of `text` in at most `most` characters, with an ellipsis where its start was cut."""
    return text if len(text) <= most else "…" + text[len(text) - most + 1 :].lstrip()


def shorten_middle(
    text: str, most: int, *, tail: float = 0.25, more: str = "", inline: bool = False
) -> str:
    """`text`, or of a long one about `most` characters from its start and its end.

    `tail` is the part that is kept of the end; `more` is said beside how much was left out, on a
    line of its own unless `inline`. The cuts are made where a word ends, if one ends near: half of
    a key would not look like one to a redaction.
    """
    if len(text) <= most:
        return text
    end = len(text) - int(most * tail)
    start = most - int(most * tail)
    reach = min(_REACH, most // 8)  # of a short text something must stay on both sides
    space = max(text.rfind(c, max(0, start - reach), start) for c in " \n\t")
    start = space if space > 0 else start
    spaces = [at for c in " \n\t" if (at := text.find(c, end, end + reach)) > 0]
    end = min(spaces, default=end)
    note = f"[… {end - start:,} characters left out{more} …]"
    if inline:
        return f"{text[:start].rstrip()} {note} {text[end:].lstrip()}".rstrip()
    return f"{text[:start]}\n{note}" + (f"\n{text[end:]}" if end < len(text) else "")


def pad(text: str, columns: int) -> str:
    """`text` fitted and filled with spaces to exactly `columns`."""
    text = fit(text, columns)
    return text + " " * (columns - width(text))


def unified_diff(before: str, after: str, first: str, second: str) -> str:
    """What `diff -u` shows of two texts with these names. A line ends at a newline only."""
    import difflib
    from io import StringIO

    lines = difflib.unified_diff([*StringIO(before)], [*StringIO(after)], first, second)
    mark = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + mark for line in lines)


def headless_diff(diff: str) -> str:
    """`diff` without the two lines above it that name the texts. A line of a text may look like
    those, and is one that people must see."""
    names = diff.split("\n", 2)
    heads = ("--- ", "+++ ")
    is_head = len(names) == 3 and all(map(str.startswith, names, heads))
    return names[2] if is_head else diff


def columns(stream: object = None) -> int:
    """The width to write for: COLUMNS, else the terminal's, else 100."""
    import os

    try:
        wanted = int(os.environ.get("COLUMNS") or 0)
        if wanted > 0:
            return wanted
    except ValueError:
        pass
    try:
        found = os.get_terminal_size(getattr(stream or sys.stdout, "fileno", lambda: -1)()).columns
    except (OSError, ValueError):
        found = 0
    return found or 100  # a terminal that was never told its size says 0


def can_colour(stream: object = None) -> bool:
    """Whether to colour: a terminal, and neither NO_COLOR nor TERM=dumb says otherwise."""
    import os

    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def _columns(c: str) -> int:
    if c < "\u0300":
        return 1
    if unicodedata.combining(c) or unicodedata.category(c) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def dollars(money: float) -> str:
    """Two places from ten cents on, else enough to see something."""
    text = f"${money:,.4f}"
    return f"${money:,.2f}" if money >= 0.1 or text.endswith("00") else text


def amount(number: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if number < 1000:
        return str(number)
    if number < 999_500:
        return f"{number / 1000:.1f}k" if number < 99_950 else f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def counted(number: int, noun: str) -> str:
    """`1 skill`, `11,493 skills`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


_PER_TOKEN = 4.0  # characters, of English prose and code
_PER_TOKEN_WIDE = 1.5  # of scripts that are written without spaces


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` is: by characters, so an estimate, not a count."""
    wide = sum(1 for c in text if c >= "\u2e80") if not text.isascii() else 0
    return round((len(text) - wide) / _PER_TOKEN + wide / _PER_TOKEN_WIDE)
