"""The list above the input: skills and commands after `/`, files after `@`."""

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tacit.base.terminal import fit, pad, width
from tacit.ui.talk.completing import Candidate
from tacit.ui.tui.look import joined

_MOST = 50


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
        self.candidates = candidates[:_MOST]
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
            return [joined((fit(name, columns), "")) for name in names]
        colours = {"skill": "bold", "command": "$secondary", "file": "", "scheduled": "$accent"}
        return [
            joined(
                (pad(name, first), colours[candidate.kind]),
                ("  " + fit(candidate.about, columns - first - 2), "dim"),
            )
            for name, candidate in zip(names, self.candidates, strict=True)
        ]
