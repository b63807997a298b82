"""What stands in the conversation: what was said, tool calls that open, notices."""

import time
from typing import ClassVar

from textual import events as keys
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tacit.agent import events
from tacit.base.terminal import fit, one_line, width
from tacit.ui.talk import words
from tacit.ui.tui.look import diff_content, joined, literal

_MOST_DIFF, _MOST_TEXT = 16, 400
_MARKS = {"running": ("•", "$warning"), "done": ("✓", "$success"), "failed": ("✗", "$error")}


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

    def __init__(self, call: events.Call) -> None:
        super().__init__(classes="call")
        self.call = call
        self.state = "running"
        self.opened = False
        self._subject = words.subject(call.arguments)
        self._result: events.Return | None = None
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

    def finish(self, result: events.Return) -> None:
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
        mark, colour = _MARKS[self.state]
        took = words.seconds(self._result.seconds) if self._result and self._result.seconds else ""
        fold = "▾" if self.opened else "▸"
        room = (self.size.width or 78) - len(took) - 6
        name = fit(one_line(self.call.name), max(room, 4))
        about = fit(self._subject, max(room - width(name) - 1, 0))
        gap = " " * max(room - width(name) - width(about) - 1, 0)
        self._head.update(
            joined(
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
        parts = [literal(words.arguments_text(self.call.arguments), "dim")]
        if self._result is not None:
            text, left = words.cut(self._result.text, _MOST_TEXT)
            parts.append(literal(text, "$error" if self._result.failed else ""))
            if left:
                parts.append(literal(f"… {left} more lines", "dim italic"))
        return Content("\n").join(part for part in parts if part.plain)
