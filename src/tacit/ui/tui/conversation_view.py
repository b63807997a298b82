"""The scrolling middle: turns the agent's events into rows, and an earlier session into a summary.

It follows the end unless the user scrolls up. What is far back is let go, so that a day's work does
not slow the screen; the session's file has it all.
"""

from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tacit.agent import agent_events
from tacit.ui.chat import event_text
from tacit.ui.chat.event_text import CommandAnswer
from tacit.ui.chat.live_chat import Chat
from tacit.ui.tui.widgets import CallRow, Diff, Notice, Said, styled

if TYPE_CHECKING:
    from tacit.ui.tui.answer import Answer

_MOST_ROWS = 400
_TURNS_BEFORE, _LINES_BEFORE = 5, 8


class Conversation(VerticalScroll, can_focus=False):
    """Everything that was said, the newest at the bottom."""

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._answer: Answer | None = None
        self._calls: dict[str, CallRow] = {}
        self.all_open = False

    def on_mount(self) -> None:
        self.anchor()

    async def add_rows(self, *rows: Widget) -> None:
        """Add rows at the end."""
        await self.mount(*rows)
        await self._drop_old_rows()

    async def add_notice(self, text: str, kind: str = "note") -> None:
        await self.add_rows(Notice(text, kind))

    async def show_command(self, shown: CommandAnswer) -> None:
        """What a command like `/skills` gave."""
        if shown.text:
            await self.add_rows(Notice(shown.text, "told"))
        if shown.diff:
            await self.add_rows(Diff(shown.diff))

    async def said(self, text: str) -> None:
        self._calls.clear()
        await self.add_rows(Said(text))
        self.anchor()

    async def show(self, event: agent_events.AnyEvent) -> None:
        """Draw one event."""
        match event:
            case agent_events.Text(delta=delta):
                await self._stream(delta)
            case agent_events.Call():
                await self.end_answer()
                row = self._calls[event.id] = CallRow(event)
                await self.add_rows(row)
                row.open(self.all_open)
            case agent_events.Return(id=call):
                if call in self._calls:
                    self._calls[call].finish(event)
            case agent_events.Restarted():
                await self._discard_answer()
            case agent_events.Error() | agent_events.End() | agent_events.Compacted():
                await self.end_answer()
            case _:
                pass
        text, kind = event_text.event_notice(event)
        if text:
            await self.add_notice(f"◆ {text}" if kind == "skill" else text, kind)

    async def _stream(self, delta: str) -> None:
        if self._answer is None:
            from tacit.ui.tui.answer import Answer

            if not delta.strip():
                return
            self._answer = Answer()
            await self.add_rows(self._answer)
        await self._answer.add(delta)

    async def interrupted(self) -> None:
        """The user stopped the answer; what was done stays."""
        await self.end_answer()
        for row in self._calls.values():
            row.stop()
        await self.add_notice("interrupted; what was done is kept", "warning")

    async def end_answer(self) -> None:
        if self._answer is not None:
            await self._answer.finish()
            self._answer = None

    async def summarise_earlier(self, chat: Chat) -> None:
        """Sum up the conversation that is resumed."""
        from tacit.ui.tui.answer import Answer

        earlier, before = chat.earlier(_TURNS_BEFORE, _LINES_BEFORE)
        if before:
            await self.add_notice(f"… {before} earlier messages")
        for who, text, is_cut in earlier:
            match who:
                case "you":
                    await self.add_rows(Said(text))
                case "agent":
                    await self.add_rows(Answer(text + ("\n\n…" if is_cut else "")))
                case "skill":
                    await self.add_notice(f"◆ {text}", "skill")
                case _:
                    await self.add_notice(text)
        skills = f" · skills active: {chat.active_skills}" if chat.active_skills else ""
        await self.add_notice(f"resumed {chat.id}{skills}")

    def toggle_all(self) -> None:
        """Open or close every call."""
        self.all_open = not self.all_open
        for row in self.query(CallRow):
            row.open(self.all_open)

    async def clear(self) -> None:
        self._answer = None
        self._calls.clear()
        await self.remove_children()

    async def _discard_answer(self) -> None:
        """Remove text that does not count, because the request is made again."""
        if self._answer is not None:
            await self._answer.finish()
            await self._answer.remove()
            self._answer = None

    async def _drop_old_rows(self) -> None:
        rows = list(self.children)
        if len(rows) <= _MOST_ROWS:
            return
        old = rows[: len(rows) - _MOST_ROWS * 3 // 4]
        await self.remove_children(old)
        await self.mount(Notice("… what came before is in the session's file: /sessions"), before=0)


def greeting(version: str, place: str) -> Widget:
    """The first thing that is seen."""
    return Static(
        styled(
            ("tacit ", "bold $primary"),
            (f"{version} · {place}\n", "dim"),
            ("/ skills and commands · @ files · /help", "dim"),
        ),
        classes="greeting",
    )
