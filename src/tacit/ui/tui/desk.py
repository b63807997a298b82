"""What the agent asks: one question at a time, between the conversation and the input.

The agent calls `approve` and `ask_user` in a task of its own and waits. An interrupt cancels that
task, and the question is gone with it.
"""

import time
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tacit.agent.approval import Answer, Request
    from tacit.agent.tools.tool import Asked
    from tacit.ui.tui.app import ChatApp
    from tacit.ui.tui.asking import Choices

HINT = "Ask, or / for skills"
_TYPING = 1.0
"""Seconds after a key in which somebody counts as typing."""


class Desk:
    """Where the user is asked."""

    def __init__(self, app: "ChatApp") -> None:
        self._app = app
        self.panel: Choices | None = None
        """The question that is open."""
        self.doing = "working"
        """What goes on when it is answered."""

    async def approve(self, request: "Request") -> "Answer":
        """Ask whether a call may run."""
        from tacit.ui.talk.preview import preview
        from tacit.ui.tui.asking import Approval

        text, kind = preview(request, self._app.talk.project)
        answer = await self._ask(Approval(request, text, kind, typing=self._is_typing()))
        return cast("Answer", answer) if answer in ("once", "session", "always") else "no"

    async def ask_user(self, asked: "Asked") -> str | None:
        """Put the model's question to the user."""
        from tacit.ui.tui.asking import Question

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
            app.prompt.placeholder = HINT
            app.prompt.focus()  # first, or the focus falls to a row and scrolls there
            panel.remove()
            app.working.begin(self.doing)

    def _is_typing(self) -> bool:
        return time.monotonic() - self._app.prompt.typed_at < _TYPING
