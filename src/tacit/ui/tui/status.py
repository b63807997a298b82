"""The lines at the bottom: what is going on, and the footer with model, context, cost, inbox."""

import time

from textual.widgets import Static

from tacit.base.terminal import fit, one_line, width
from tacit.ui.talk import words
from tacit.ui.talk.talk import Talk
from tacit.ui.tui.look import joined, literal

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
        since = f" {words.seconds(taken) if taken > 9 else f'{taken} s'}" if taken else ""
        spin = _SPIN[self._beat % len(_SPIN)]
        text = f"{self._what}{since} · Ctrl-C stops"
        self.update(
            joined((f"{spin} ", "$primary"), (fit(text, max(self.app.size.width - 4, 10)), "dim"))
        )


class Footer(Static):
    """Model, context used, cost and the inbox; what does not fit is left out from the right."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(id="footer")
        self.talk = talk
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
        tally = self.talk.tally
        model = one_line(self.talk.model) or ("getting ready" if self.opening else "no model")
        rest = [tally.shown_context(), tally.shown_cost()]
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
