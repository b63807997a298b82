"""How things look: the terminal's own colours, and text that can never be taken for markup.

The theme names the sixteen colours of the terminal and paints no background, so it follows a
light or a dark terminal, works over ssh and on old ones, and NO_COLOR leaves plain text.
"""

from textual.content import Content
from textual.theme import Theme

from tacit.base.terminal import plain

THEME = Theme(
    name="tacit",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_magenta",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border": "ansi_bright_black",
        "border-blurred": "ansi_bright_black",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_blue",
        "scrollbar-active": "ansi_blue",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "scrollbar-corner-color": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_blue",
        "input-selection-foreground": "ansi_bright_white",
        "screen-selection-background": "ansi_blue",
        "screen-selection-foreground": "ansi_bright_white",
    },
)

_DIFF = {"+": "ansi_green", "-": "ansi_red", "@": "ansi_cyan"}


def literal(text: str, style: str = "") -> Content:
    """`text` as it is: no markup is read in it, no control character leaves it."""
    return Content.styled(plain(text), style) if style else Content(plain(text))


def joined(*parts: tuple[str, str]) -> Content:
    """Pieces of text, each with its style."""
    return Content("").join([literal(text, style) for text, style in parts])


def diff_content(text: str, most: int = 0) -> Content:
    """A unified diff in colour, its first `most` lines."""
    lines = [line for line in plain(text).splitlines() if not line.startswith(("--- ", "+++ "))]
    left = len(lines) - most if most else 0
    shown = lines[:most] if left > 0 else lines
    parts = [literal(line, _DIFF.get(line[:1], "dim")) for line in shown]
    if left > 0:
        parts.append(literal(f"… {left} more lines", "dim italic"))
    return Content("\n").join(parts)
