"""The input: many lines, history, paste, and the list of completions above it.

Enter sends, Ctrl-J makes a new line. What can be completed is `chat/input_line.py`'s.
"""

import time
from collections.abc import Callable

from textual import events as keys
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from tacit.base.display import fit, pad, plain, width
from tacit.ui.chat.input_line import Candidate, InputHistory, Token, token_at
from tacit.ui.tui.widgets import styled

_MOST_CANDIDATES = 50


class Picker(OptionList, can_focus=False):
    """Candidates for the word at the cursor. It never takes the focus: typing goes on."""

    def __init__(self) -> None:
        super().__init__(id="picker", markup=False)
        self.candidates: list[Candidate] = []
        self.display = False

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    @property
    def chosen(self) -> Candidate | None:
        at = self.highlighted
        return self.candidates[at] if self.is_open and at is not None else None

    def show(self, candidates: list[Candidate]) -> None:
        """Offer these; nothing to offer closes the list."""
        self.candidates = candidates[:_MOST_CANDIDATES]
        self.clear_options()
        self.display = bool(self.candidates)
        if self.candidates:
            self.add_options([Option(row) for row in self._rows()])
            self.highlighted = 0

    def hide(self) -> None:
        self.show([])

    def move(self, step: int) -> None:
        if self.candidates:
            self.highlighted = ((self.highlighted or 0) + step) % len(self.candidates)

    def _rows(self) -> list[Content]:
        columns = max(self.app.size.width - 5, 20)  # padding and a scroll bar
        names = [candidate.inserted for candidate in self.candidates]
        first = min(max(width(name) for name in names), max(columns * 2 // 5, 14))
        if all(not candidate.about for candidate in self.candidates):
            return [styled((fit(name, columns), "")) for name in names]
        colours = {"skill": "bold", "command": "$secondary", "file": "", "scheduled": "$accent"}
        return [
            styled(
                (pad(name, first), colours[candidate.kind]),
                ("  " + fit(candidate.about, columns - first - 2), "dim"),
            )
            for name, candidate in zip(names, self.candidates, strict=True)
        ]


Suggest = Callable[[Token], list[Candidate]]
"""What a word could become. It is called at every key, so it does not wait for anything."""

_NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")


class Prompt(TextArea):
    """Where the user types."""

    class Sent(Message):
        """The user is done with this text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, picker: Picker, earlier: InputHistory, suggest: Suggest) -> None:
        super().__init__(
            id="prompt", soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True
        )
        self.picker = picker
        self.earlier = earlier
        self._suggest = suggest
        self.typed_at = 0.0
        self._offered: Token | None = None
        self._closed_for = ""
        """The text for which the user closed the picker."""

    async def _on_key(self, event: keys.Key) -> None:
        self.typed_at = time.monotonic()
        if self._handle_key(event) or await self._run_binding(event):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)
        self.offer()

    async def _run_binding(self, event: keys.Key) -> bool:
        """Run an editing key at once. Left to bubble, it would come after letters typed later."""
        if event.is_printable:
            return False
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            await self.run_action(binding.action)
            return True
        return False

    async def _on_paste(self, event: keys.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        self.typed_at = time.monotonic()
        self.insert(text)
        self.scroll_cursor_visible()
        self.offer()

    def _handle_key(self, event: keys.Key) -> bool:
        key = event.key
        if key in _NEW_LINE:
            self.insert("\n")
            return True
        if self.picker.is_open and self._handle_picker_key(key):
            return True
        if key == "enter":
            self._enter()
            return True
        if key == "up" and self.cursor_at_first_line:
            return self._recall(self.earlier.back(self.text))
        if key == "down" and self.cursor_at_last_line and self.earlier.browsing:
            return self._recall(self.earlier.forward())
        return False

    def _handle_picker_key(self, key: str) -> bool:
        chosen = self.picker.chosen
        if key in ("up", "down"):
            self.picker.move(1 if key == "down" else -1)
            return True
        if key == "escape":
            self._closed_for = self.text
            self.picker.hide()
            return True
        if key in ("enter", "tab") and chosen is not None:
            token = self.token
            whole = token is not None and token.text == chosen.name
            if key == "enter" and chosen.kind != "file" and whole:
                return False  # typed in full: Enter sends it
            self.complete(chosen)
            if key == "enter" and chosen.kind == "command":
                self._enter()
            return True
        return False

    @property
    def token(self) -> Token | None:
        return token_at(self.text, self._offset())

    def complete(self, chosen: Candidate) -> None:
        """Put the candidate in place of the word at the cursor."""
        token = self.token
        if token is None:
            return
        text = self.text
        inserted = chosen.inserted + " "
        self.load_text(text[: token.start] + inserted + text[token.end :].lstrip(" "))
        self.move_cursor(self._location(token.start + len(inserted)))
        self.offer()

    def set_text(self, text: str) -> None:
        """Put `text` into the input, with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.offer()

    def on_text_area_selection_changed(self) -> None:
        self.offer()  # the mouse moved the cursor

    def offer(self) -> None:
        """Let the list show what the word at the cursor could become."""
        if self.text != self._closed_for:
            self._closed_for = ""
        token = None if self._closed_for or (self.earlier.browsing and self.text) else self.token
        if token is None:
            self._offered = None
            self.picker.hide()
        elif token != self._offered:
            self._offered = token
            self.picker.show(self._suggest(token))

    def offer_again(self) -> None:
        """What can be suggested has changed."""
        self._offered = None
        self.offer()

    def _enter(self) -> None:
        text = self.text
        if text.endswith("\\") and self.cursor_location == self.document.end:
            self.load_text(text[:-1] + "\n")
            self.move_cursor(self.document.end)
            return
        self.picker.hide()
        if text.strip():
            self.earlier.add(text)
            self.load_text("")
            self.typed_at = 0.0
            self.post_message(self.Sent(text.strip()))

    def _recall(self, text: str | None) -> bool:
        if text is None:
            return False
        self.set_text(text)
        return True

    def _offset(self) -> int:
        row, column = self.cursor_location
        lines = self.text.split("\n")
        return sum(len(line) + 1 for line in lines[:row]) + column

    def _location(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n"), offset - (before.rfind("\n") + 1)
