"""The small parts of the screen: colours, rows of the conversation, status lines.

The theme names the sixteen colours of the terminal and paints no background, so it follows a
light or a dark terminal, works over ssh and on old ones, and NO_COLOR leaves plain text.
"""

import time
from typing import ClassVar

from textual import events as keys
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.theme import Theme
from textual.widgets import Static

from tacit.agent import agent_events
from tacit.base.display import fit, headless_diff, one_line, plain, width
from tacit.ui.chat import event_text
from tacit.ui.chat.live_chat import Chat

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

_DIFF_COLOURS = {"+": "ansi_green", "-": "ansi_red", "@": "ansi_cyan"}


def literal(text: str, style: str = "") -> Content:
    """`text` as it is: no markup is read in it, no control character leaves it."""
    return Content.styled(plain(text), style) if style else Content(plain(text))


def styled(*parts: tuple[str, str]) -> Content:
    """Pieces of text, each with its style."""
    return Content("").join([literal(text, style) for text, style in parts])


def diff_content(text: str, most: int = 0) -> Content:
    """A unified diff in colour, its first `most` lines."""
    lines = plain(headless_diff(text)).splitlines()
    left = len(lines) - most if most else 0
    shown = lines[:most] if left > 0 else lines
    parts = [literal(line, _DIFF_COLOURS.get(line[:1], "dim")) for line in shown]
    if left > 0:
        parts.append(literal(f"… {left} more lines", "dim italic"))
    return Content("\n").join(parts)


_MOST_DIFF, _MOST_TEXT = 16, 400
_CALL_MARKS = {"running": ("•", "$warning"), "done": ("✓", "$success"), "failed": ("✗", "$error")}


class Said(Static):
    """What the user said."""

    def __init__(self, text: str) -> None:
        super().__init__(literal(text), classes="said")


class Notice(Static):
    """A line from Tacit itself: `note`, `warning` or `error`."""

    def __init__(self, text: str, kind: str = "note") -> None:
        super().__init__(literal(text), classes=f"notice {kind}")


class Diff(Static):
    """A change, in colour."""

    def __init__(self, text: str, most: int = 0) -> None:
        super().__init__(diff_content(text, most), classes="diff")


class CallRow(Vertical, can_focus=True):
    """A tool call on one line, that opens to its arguments and its result."""

    BINDINGS: ClassVar = [Binding("enter", "fold", "open", show=False)]

    def __init__(self, call: agent_events.Call) -> None:
        super().__init__(classes="call")
        self.call = call
        self.state = "running"
        self.opened = False
        self._subject = event_text.call_subject(call.arguments)
        self._result: agent_events.Return | None = None
        self._began = time.monotonic()
        self._head = Static(classes="call-head")
        self._body = Static(classes="call-body")
        self._diff = Static(classes="call-diff")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._diff
        yield self._body

    def on_mount(self) -> None:
        self._body.display = self._diff.display = False
        self._draw()

    def finish(self, result: agent_events.Return) -> None:
        """The result is there."""
        self._result = result
        self.state = "failed" if result.failed else "done"
        if result.name == "ask_user" and not result.failed:
            self._subject = f"{self._subject} → {one_line(result.text)}"
        if result.diff:
            self._diff.display = True
        self._draw()

    def stop(self) -> None:
        """It was interrupted."""
        if self.state == "running":
            self.state = "failed"
            self._subject = f"{self._subject} (interrupted)"
            self._draw()

    def action_fold(self) -> None:
        self.open(not self.opened)

    def open(self, opened: bool) -> None:
        self.opened = opened
        self._body.display = opened
        self._draw()

    def on_click(self, event: keys.Click) -> None:
        if event.widget in (self, self._head):
            self.action_fold()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        mark, colour = _CALL_MARKS[self.state]
        took = (
            event_text.shown_seconds(self._result.seconds)
            if self._result and self._result.seconds
            else ""
        )
        fold = "▾" if self.opened else "▸"
        room = (self.size.width or 78) - len(took) - 6
        name = fit(one_line(self.call.name), max(room, 4))
        about = fit(self._subject, max(room - width(name) - 1, 0))
        gap = " " * max(room - width(name) - width(about) - 1, 0)
        self._head.update(
            styled(
                (f"{mark} ", colour),
                (name, "bold"),
                (f" {about}{gap} ", "dim"),
                (f"{took} ", "dim"),
                (fold, "dim"),
            )
        )
        result = self._result
        if result is not None and result.diff:
            self._diff.update(diff_content(result.diff, 0 if self.opened else _MOST_DIFF))
        if self.opened:
            self._body.update(self._details())

    def _details(self) -> Content:
        parts = [literal(event_text.arguments_text(self.call.arguments), "dim")]
        if self._result is not None:
            text, left = event_text.first_lines(self._result.text, _MOST_TEXT)
            parts.append(literal(text, "$error" if self._result.failed else ""))
            if left:
                parts.append(literal(f"… {left} more lines", "dim italic"))
        return Content("\n").join(part for part in parts if part.plain)


_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Working(Static):
    """Says that something is being done, and since when. Takes no row while nothing is."""

    def __init__(self) -> None:
        super().__init__(id="working")
        self._what = ""
        self._began = 0.0
        self._beat = 0
        self.display = False

    def on_mount(self) -> None:
        self._timer = self.set_interval(0.25, self._draw, pause=True)

    def begin(self, what: str) -> None:
        if what != self._what:
            self._began = time.monotonic()
        if not self._what:
            self._timer.resume()
        self._what = what
        self.display = True
        self._draw()

    def end(self) -> None:
        self._what = ""
        self._timer.pause()
        self.display = False

    def _draw(self) -> None:
        self._beat += 1
        taken = int(time.monotonic() - self._began)
        since = (
            f" {event_text.shown_seconds(taken) if taken > 9 else f'{taken} s'}" if taken else ""
        )
        spin = _SPIN[self._beat % len(_SPIN)]
        text = f"{self._what}{since} · Ctrl-C stops"
        self.update(
            styled((f"{spin} ", "$primary"), (fit(text, max(self.app.size.width - 4, 10)), "dim"))
        )


class Footer(Static):
    """Model, context used, cost and the inbox; what does not fit is left out from the right."""

    def __init__(self, chat: Chat) -> None:
        super().__init__(id="footer")
        self.chat = chat
        self.inbox: int | None = None
        self.opening = True
        """Whether settings and skills are still being read."""
        self._hint = ""

    def on_resize(self) -> None:
        self.draw()

    def hint(self, text: str, seconds: float) -> None:
        """Say something in the footer's place for a while."""
        self._hint = text
        self.draw()
        self.set_timer(seconds, self._unhint)

    def draw(self) -> None:
        columns = max((self.size.width or self.app.size.width) - 2, 10)
        if self._hint:
            self.update(literal(self._hint, "$warning"))
        else:
            self.update(literal(self.line(columns), "dim"))

    def _unhint(self) -> None:
        self._hint = ""
        self.draw()

    def line(self, columns: int) -> str:
        """The footer's text for a width."""
        usage = self.chat.usage
        model = one_line(self.chat.model) or ("getting ready" if self.opening else "no model")
        rest = [usage.shown_context(), usage.shown_cost()]
        if self.inbox:
            rest.append(f"inbox {self.inbox}")
        rest = [part for part in rest if part]
        right = " · ".join(rest)
        room = columns - width(right) - (3 if rest else 0)
        if width(model) > room:
            model = model.partition(":")[2] or model
        model = fit(model, max(room, 8))
        line = " · ".join([model, *rest])
        while width(line) > columns and rest:
            rest.pop()
            line = " · ".join([model, *rest])
        return line
