"""What the agent asks, one question at a time, between the conversation and the input.

The agent calls `approve` and `ask_user` in a task of its own and waits. An interrupt cancels
that task, and the question is gone with it.
"""

import asyncio
import time
from typing import TYPE_CHECKING, cast

from textual import events as keys
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tacit.base.display import one_line
from tacit.ui.chat.event_text import call_preview
from tacit.ui.tui.widgets import diff_content, literal, styled

if TYPE_CHECKING:
    from tacit.agent.tool import Question as Asked
    from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest
    from tacit.ui.tui.chat_screen import ChatApp


class Choices(Static, can_focus=True):
    """A question with answers, each with a key of its own; also arrows and Enter, or a click.

    It takes the focus while somebody may be typing. Keys that come in one breath with what was
    typed before do not count, or the middle of a word could allow a command.
    """

    BREATH = 0.4

    class ShowAll(Message):
        """The user wants to see all of what is asked about."""

        def __init__(self, body: Content) -> None:
            super().__init__()
            self.body = body

    def __init__(
        self, title: str, body: Content, options: list[tuple[str, str, str]], *, typing: bool
    ) -> None:
        super().__init__(classes="asking")
        self.border_title = Content(one_line(title))
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._body = body
        self._options = options
        self._at = 0
        self._rows_above = 0
        self._is_cut = False
        self._armed = time.monotonic() + (self.BREATH if typing else 0.0)

    def on_mount(self) -> None:
        self._draw()

    def settle(self, answer: str | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def on_key(self, event: keys.Key) -> None:
        now = time.monotonic()
        if now < self._armed:
            self._armed = now + self.BREATH
            event.stop()
            return
        chosen = [value for key, _, value in self._options if key == event.character]
        if chosen:
            self.settle(chosen[0])
        elif event.character == "v" and self._is_cut:
            self._is_cut = False
            self.post_message(self.ShowAll(self._body))
        elif event.key in ("up", "down") and self._options:
            step = 1 if event.key == "down" else -1
            self._at = (self._at + step) % len(self._options)
            self._draw()
        elif event.key == "enter" and self._options:
            self.settle(self._options[self._at][2])
        else:
            return
        event.stop()

    def on_click(self, event: keys.Click) -> None:
        row = event.get_content_offset(self)
        if row is not None and 0 <= (at := row.y - self._rows_above) < len(self._options):
            self.settle(self._options[at][2])

    def on_resize(self) -> None:
        self._draw()

    def _shown_body(self, inside: int) -> list[Content]:
        """The body in lines, cut so that the answers stay on the screen."""
        if not self._body.plain:
            return []
        lines = [line for part in self._body.split("\n") for line in part.wrap(inside)]
        room = max(self.app.size.height - len(self._options) - 11, 3)
        self._is_cut = len(lines) > room
        if self._is_cut:
            left = len(lines) - room + 1
            lines[room - 1 :] = [literal(f"… {left} more lines; v shows all", "$warning")]
        return lines

    def _draw(self) -> None:
        inside = max(self.content_size.width or self.app.size.width - 6, 10)
        lines = self._shown_body(inside)
        if lines and self._options:
            lines.append(Content(""))
        self._rows_above = len(lines)
        for number, (key, label, _) in enumerate(self._options):
            here = number == self._at
            line = styled(
                ("❯ " if here else "  ", "$primary"),
                (f"{key} ", "bold $primary"),
                (label, "bold" if here else ""),
            )
            lines.append(line.truncate(inside, ellipsis=True))
        self.update(Content("\n").join(lines))


class Approval(Choices):
    """May this be done?"""

    def __init__(self, request: "ApprovalRequest", text: str, kind: str, *, typing: bool) -> None:
        shown = text if kind == "command" else text or "(empty)"
        drawn = {"diff": diff_content, "command": _command_content}
        body = drawn.get(kind, literal)(shown)
        what = "Run this command?" if request.power == "command" else f"Allow {request.tool}?"
        if kind == "diff":
            what = f"Allow {request.tool} {request.subject}?"
        options = [
            ("y", "yes, once", "once"),
            ("s", f"this session: {one_line(request.pattern)}", "session"),
            ("a", f"always: {one_line(request.pattern)}", "always"),
            ("n", "no", "no"),
        ]
        super().__init__(what, body, options, typing=typing)


class Question(Choices):
    """Something that the model wants to know. Any other answer is typed below."""

    OTHER = "\0other"

    def __init__(self, asked: "Asked", *, typing: bool) -> None:
        options = [
            (str(number), one_line(text), text)
            for number, text in enumerate(asked.options[:9], start=1)
        ]
        if options:
            options.append(("0", "something else: type it below", self.OTHER))
        super().__init__("A question for you", literal(asked.question), options, typing=typing)


def _command_content(text: str) -> Content:
    lines = text.splitlines()
    parts = [
        styled(("$ " if n == 0 else "  ", "dim"), (line, "bold")) for n, line in enumerate(lines)
    ]
    return Content("\n").join(parts)


PROMPT_HINT = "Ask, or / for skills"
_TYPING_SECONDS = 1.0
"""Seconds after a key in which somebody counts as typing."""


class Questions:
    """Where the user is asked."""

    def __init__(self, app: "ChatApp") -> None:
        self._app = app
        self.panel: Choices | None = None
        """The question that is open."""
        self.doing = "working"
        """What goes on when it is answered."""

    async def approve(self, request: "ApprovalRequest") -> "ApprovalAnswer":
        """Ask whether a call may run."""
        text, kind = call_preview(request, self._app.chat.project)
        answer = await self._ask(Approval(request, text, kind, typing=self._is_typing()))
        return cast("ApprovalAnswer", answer) if answer in ("once", "session", "always") else "no"

    async def ask_user(self, asked: "Asked") -> str | None:
        """Put the model's question to the user."""

        panel = Question(asked, typing=self._is_typing())
        if not asked.options:
            return await self._ask(panel, type_it=True)
        answer = await self._ask(panel)
        if answer != Question.OTHER:
            return answer
        return await self._ask(Question(type(asked)(asked.question), typing=False), type_it=True)

    async def _ask(self, panel: "Choices", *, type_it: bool = False) -> str | None:
        app = self._app
        self.panel = panel
        app.working.begin("waiting for your answer")
        try:
            await app.query_one("#questions").mount(panel)
            if type_it:
                app.prompt.placeholder = "Your answer"
                app.prompt.focus()
            else:
                app.prompt.placeholder = "First answer the question above"
                panel.focus()
            return await panel.answer
        finally:
            self.panel = None
            app.prompt.placeholder = PROMPT_HINT
            app.prompt.focus()  # first, or the focus falls to a row and scrolls there
            panel.remove()
            app.working.begin(self.doing)

    def _is_typing(self) -> bool:
        return time.monotonic() - self._app.prompt.typed_at < _TYPING_SECONDS
