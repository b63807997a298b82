"""The scrolling middle: turns the agent's events into rows, and an earlier session into a summary.

It follows the end unless the user scrolls up. What is far back is let go, so that a day's work does
not slow the screen; the session's file has it all.
"""

from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tacit.agent import agent_events
from tacit.base.display import amount, counted, one_line
from tacit.ui.chat import event_text, past_sessions
from tacit.ui.chat.event_text import CommandAnswer
from tacit.ui.tui.widgets import CallRow, Diff, Notice, Said, styled

if TYPE_CHECKING:
    from tacit.ui.tui.answer import Answer

_MOST_ROWS = 400
_TURNS_BEFORE, _LINES_BEFORE = 5, 8
_LIMITS = ("turns", "seconds", "tokens", "money")


class Conversation(VerticalScroll, can_focus=False):
    """Everything that was said, the newest at the bottom."""

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._answer: Answer | None = None
        self._calls: dict[str, CallRow] = {}
        self._dropped: Notice | None = None
        self.all_open = False

    def on_mount(self) -> None:
        self.anchor()

    async def put(self, *rows: Widget) -> None:
        """Add rows at the end."""
        await self.mount(*rows)
        await self._let_go()

    async def tell(self, text: str, kind: str = "note") -> None:
        await self.put(Notice(text, kind))

    async def show_command(self, shown: CommandAnswer) -> None:
        """What a command like `/skills` gave."""
        if shown.text:
            await self.put(Notice(shown.text, "told"))
        if shown.diff:
            await self.put(Diff(shown.diff))

    async def said(self, text: str) -> None:
        self._calls.clear()
        await self.put(Said(text))
        self.anchor()

    async def show(self, event: agent_events.AnyEvent) -> None:
        """Draw one event."""
        match event:
            case agent_events.Text(delta=delta):
                await self._stream(delta)
            case agent_events.Call():
                await self.end_answer()
                row = self._calls[event.id] = CallRow(event)
                await self.put(row)
                row.open(self.all_open)
            case agent_events.Return(id=call):
                if call in self._calls:
                    self._calls[call].finish(event)
            case agent_events.Restarted():
                await self._take_back()
            case agent_events.Error() | agent_events.End() | agent_events.Compacted():
                await self.end_answer()
            case _:
                pass
        text, kind = in_words(event)
        if text:
            await self.tell(text, kind)

    async def _stream(self, delta: str) -> None:
        if self._answer is None:
            from tacit.ui.tui.answer import Answer

            if not delta.strip():
                return
            self._answer = Answer()
            await self.put(self._answer)
        await self._answer.add(delta)

    async def interrupted(self) -> None:
        """The user stopped the answer; what was done stays."""
        await self.end_answer()
        for row in self._calls.values():
            row.stop()
        await self.tell("interrupted; what was done is kept", "warning")

    async def end_answer(self) -> None:
        if self._answer is not None:
            await self._answer.finish()
            self._answer = None

    async def recount(self, session: str, active: list[str]) -> None:
        """Say briefly what was said in an earlier session."""
        from tacit.ui.tui.answer import Answer

        spoken, before = past_sessions.last_turns(past_sessions.spoken_in(session), _TURNS_BEFORE)
        if before:
            await self.tell(f"… {before} earlier messages")
        tools: list[past_sessions.Spoken] = []

        async def flush() -> None:
            if tools:
                failed = sum(one.failed for one in tools)
                also = f", {failed} failed" if failed else ""
                names = ", ".join(dict.fromkeys(one.text.split(" ")[0] for one in tools))
                count = counted(len(tools), "call")
                await self.tell(f"{count}{also}: {names}")
                tools.clear()

        for one in spoken:
            if one.who == "tool":
                tools.append(one)
                continue
            if one.who == "skill" and tools and tools[-1].text.startswith("run_skill"):
                tools.pop()  # the call that loaded it
            await flush()
            if one.who == "skill":
                await self.tell(f"◆ {one_line(one.text)}", "skill")
            if one.who == "you":
                await self.put(Said(event_text.first_lines(one.text, _LINES_BEFORE)[0]))
            elif one.who == "agent" and one.text.strip():
                text, left = event_text.first_lines(one.text, _LINES_BEFORE)
                await self.put(Answer(text + ("\n\n…" if left else "")))
        await flush()
        skills = f" · skills active: {', '.join(map(one_line, active))}" if active else ""
        await self.tell(f"resumed {session}{skills}")

    def toggle_all(self) -> None:
        """Open or close every call."""
        self.all_open = not self.all_open
        for row in self.query(CallRow):
            row.open(self.all_open)

    async def clear(self) -> None:
        self._answer = None
        self._dropped = None
        self._calls.clear()
        await self.remove_children()

    async def _take_back(self) -> None:
        """Remove text that does not count, because the request is made again."""
        if self._answer is not None:
            await self._answer.finish()
            await self._answer.remove()
            self._answer = None

    async def _let_go(self) -> None:
        rows = list(self.children)
        if len(rows) <= _MOST_ROWS:
            return
        old = rows[: len(rows) - _MOST_ROWS * 3 // 4]
        await self.remove_children(old)
        self._dropped = Notice("… what came before is in the session's file: /sessions", "note")
        await self.mount(self._dropped, before=0)


def in_words(event: agent_events.AnyEvent) -> tuple[str, str]:
    """The notice that an event deserves, and its kind; empty for most."""
    match event:
        case agent_events.Skill(name=name, by=by):
            return f"◆ {name}, called by {'you' if by == 'user' else 'the model'}", "skill"
        case agent_events.Notice(text=text):
            return text, "warning"
        case agent_events.Compacted(tokens=tokens):
            return f"at {amount(tokens)} tokens; the conversation goes on from a summary", "note"
        case agent_events.Restarted(why=why, seconds=wait):
            return f"{why}; again in {event_text.shown_seconds(wait)}", "warning"
        case agent_events.Error(why=why, hint=hint):
            return f"{why}\n{hint}".strip(), "error"
        case agent_events.End(reason=reason) if reason in _LIMITS:
            return f"stopped: the limit on {reason} was reached", "warning"
    return "", ""


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
