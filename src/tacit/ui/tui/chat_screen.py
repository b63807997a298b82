"""`tacit chat` as a Textual app: input, conversation, questions and footer held together.

The first frame comes before settings, skills and the provider's library are read: those follow in
a thread. One task listens to the agent and only queues events, so that an interrupt always lands
in the agent, which then saves its session; another draws what was queued.
"""

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import events as keys
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList, Static
from textual.worker import Worker

from tacit import __version__
from tacit.base.errors import TacitError
from tacit.base.paths import with_tilde
from tacit.ui.chat.input_line import InputHistory
from tacit.ui.chat.live_chat import Chat, ChatOptions
from tacit.ui.tui.conversation_view import Conversation, greeting
from tacit.ui.tui.input_box import Picker, Prompt
from tacit.ui.tui.questions import PROMPT_HINT, Questions
from tacit.ui.tui.widgets import THEME, CallRow, Footer, Working, literal

if TYPE_CHECKING:
    from tacit.agent import agent_events
    from tacit.ui.chat.input_line import Candidate, Token
    from tacit.ui.tui.questions import Choices

_LOOK = 5.0
"""Seconds between two looks at what happened in the background."""
_QUIT_SECONDS = 2.0
"""Seconds in which a second Ctrl-C quits."""


class ChatApp(App[int]):
    """The whole screen."""

    CSS_PATH = "chat.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "interrupt", "stop", priority=True, show=False),
        Binding("ctrl+d", "leave", "quit", priority=True, show=False),
        Binding("ctrl+o", "open_all", "details", priority=True, show=False),
        Binding("pageup", "scroll(-1)", priority=True, show=False),
        Binding("pagedown", "scroll(1)", priority=True, show=False),
        Binding("escape", "focus_prompt", show=False),
    ]

    def __init__(self, options: ChatOptions) -> None:
        super().__init__(ansi_color=True)  # from the start: NO_COLOR is looked at there
        self.register_theme(THEME)
        self.theme = THEME.name
        self.questions = Questions(self)
        self.chat = Chat(options, approve=self.questions.approve, ask=self.questions.ask_user)
        self.conversation = Conversation()
        self.picker = Picker()
        self.prompt = Prompt(self.picker, InputHistory(), self.suggest)
        self.footer = Footer(self.chat)
        self.working = Working()
        self.queued: list[str] = []
        self.ready = asyncio.Event()
        self._events: asyncio.Queue[agent_events.AnyEvent | None] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None
        self._doing: Worker[None] | None = None
        self._resuming = bool(options.resuming)
        """What was said before has to stand above what is said now: messages wait for it."""
        self._busy = self._resuming
        self._stopped_at = 0.0
        self._files: list[str] | None = None

    def compose(self) -> ComposeResult:
        yield self.conversation
        yield Vertical(id="questions")
        yield self.working
        yield Static(id="queued")
        yield self.picker
        with Horizontal(id="box"):
            yield Static("›", id="mark")
            yield self.prompt
        yield self.footer

    async def on_mount(self) -> None:
        self.prompt.placeholder = PROMPT_HINT
        self.prompt.focus()
        await self.conversation.add_rows(greeting(__version__, with_tilde(self.chat.project)))
        self.footer.draw()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._open(), group="open")

    async def _open(self) -> None:
        """What takes time, behind the first frame."""
        try:
            await asyncio.to_thread(import_module, "tacit.ui.tui.answer")
            await asyncio.to_thread(self.chat.open)
            self.footer.draw()
            await self._summarise_earlier()
            self._resumed()
            await asyncio.to_thread(self.chat.load_model)
        except TacitError as error:
            await self._fault(error)
            self._resumed()
        self.ready.set()
        self.footer.opening = False
        await self._show_news()
        self.set_interval(_LOOK, self._show_news_when_idle)

    # What the user sends

    async def on_prompt_sent(self, message: Prompt.Sent) -> None:
        if self.questions.panel is not None:
            self.questions.panel.settle(message.text)
        elif self._busy:
            self.queued.append(message.text)
            self._draw_queued()
        else:
            self._start(message.text)

    def _start(self, text: str) -> None:
        self._busy = True
        self._doing = self.run_worker(self._do(text), group="do")

    async def _do(self, text: str) -> None:
        """One message from its sending to the end of its answer."""
        from tacit.ui.chat import slash_commands

        try:
            command = slash_commands.parse_slash_command(text)
            if command is not None:
                await self._command(text, *command)
            else:
                await self._answer(text)
        except TacitError as error:
            await self._fault(error)
        except asyncio.CancelledError:
            if not self.is_running:
                raise
            await self.conversation.interrupted()
        except Exception as error:  # a fault of ours must not take the conversation along
            what = f"{type(error).__name__}: {error}"
            await self._fault(TacitError(what, "this is a fault in tacit; please report it"))
        finally:
            self._files = None  # the answer may have made new ones
            self.working.end()
            self.footer.draw()
        if not self._take_next():
            await self._show_news()

    def _resumed(self) -> None:
        if self._resuming:
            self._resuming = False
            self._take_next()

    def _take_next(self) -> bool:
        """Nothing is going on any more: take up the next message that waits, if there is one."""
        self._busy = False
        if not self.queued:
            return False
        following = self.queued.pop(0)
        self._draw_queued()
        self._start(following)
        return True

    async def _command(self, text: str, command: object, rest: str) -> None:
        from tacit.ui.chat.slash_commands import SlashCommand

        assert isinstance(command, SlashCommand)
        if command.name == "quit":
            self.exit(0)
            return
        await self.conversation.said(text)
        self.working.begin(f"/{command.name}")
        shown = await asyncio.to_thread(command.run, self.chat, rest)
        if shown.next_step == "reopened":
            await self.conversation.clear()
            await self._summarise_earlier()
        await self.conversation.show_command(shown)

    async def _answer(self, text: str) -> None:
        await self.conversation.said(text)
        if not self.ready.is_set():
            self.working.begin("getting the model ready")
            await self.ready.wait()
        if self.chat.session is None or not self.chat.ready:
            await asyncio.to_thread(self.chat.open)
            await asyncio.to_thread(self.chat.load_model)
        self.working.begin("thinking")
        listening = self._listening = asyncio.create_task(self._listen(text))
        while (event := await self._events.get()) is not None:
            await self.conversation.show(self._update_status(event))
        await asyncio.wait({listening})
        self._listening = None
        if listening.cancelled():
            await self.conversation.interrupted()
        else:
            await listening

    async def _listen(self, text: str) -> None:
        try:
            async for event in self.chat.say(text):
                self._events.put_nowait(event)
        finally:
            self._events.put_nowait(None)

    def _update_status(self, event: "agent_events.AnyEvent") -> "agent_events.AnyEvent":
        """Keep the lines at the bottom true."""
        from tacit.agent import agent_events

        if isinstance(event, agent_events.Call):
            self.questions.doing = f"running {event.name}"
            if self.questions.panel is None:
                self.working.begin(self.questions.doing)
        elif isinstance(event, agent_events.Return):
            self.working.begin("thinking")
        elif isinstance(event, agent_events.Usage):
            self.footer.draw()
        return event

    async def on_choices_show_all(self, message: "Choices.ShowAll") -> None:
        await self.conversation.add_rows(Static(message.body, classes="diff"))
        self.conversation.anchor()

    # Completion

    def suggest(self, token: "Token") -> "list[Candidate]":
        """What the word at the cursor could become."""
        from tacit.ui.chat import input_line, slash_commands

        if self.questions.panel is not None:
            return []
        if token.kind == "slash":
            named = [(c.name, c.about) for c in slash_commands.SLASH_COMMANDS.values()]
            skills = self.chat.library.active() if self.chat.session is not None else []
            return input_line.slash_candidates(token.text, skills, named, self.chat.scheduled())
        if self._files is None:
            self._files = []
            self.run_worker(self._list_files(), group="files")
        return input_line.file_candidates(token.text, self._files)

    async def _list_files(self) -> None:
        from tacit.ui.chat.input_line import project_files

        self._files = await asyncio.to_thread(project_files, self.chat.project)
        self.prompt.offer_again()

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        if message.option_list is self.picker:
            self.prompt.complete(self.picker.candidates[message.option_index])
            self.prompt.focus()

    # Keys

    def action_interrupt(self) -> None:
        """Stop the answer; with nothing to stop, empty the input; twice, leave."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            return
        now = time.monotonic()
        if now - self._stopped_at < _QUIT_SECONDS:
            self.exit(0)
            return
        self._stopped_at = now
        if self._busy:
            self._take_back_queued()
            if self._listening is not None:
                self._listening.cancel()
            elif self._doing is not None:
                self._doing.cancel()
        elif self.prompt.text:
            self.prompt.earlier.add(self.prompt.text)
            self.prompt.set_text("")
        else:
            self.footer.hint("Ctrl-C again quits", _QUIT_SECONDS)

    def action_leave(self) -> None:
        if self.prompt.has_focus and self.prompt.text:
            self.prompt.action_delete_right()
        else:
            self.exit(0)

    def action_open_all(self) -> None:
        self.conversation.toggle_all()

    def action_scroll(self, pages: int) -> None:
        middle = self.conversation
        if pages < 0:
            middle.release_anchor()
        middle.scroll_relative(y=pages * max(middle.size.height - 2, 1), animate=False)

    def action_focus_prompt(self) -> None:
        if self.questions.panel is None:
            self.prompt.focus()

    def on_key(self, event: keys.Key) -> None:
        """Typing over a row of the conversation goes to the input."""
        if isinstance(self.focused, CallRow) and event.is_printable:
            self.prompt.focus()
            self.prompt.insert(event.character or "")
            event.stop()

    def on_paste(self, event: keys.Paste) -> None:
        """So does pasting."""
        if isinstance(self.focused, CallRow):
            self.prompt.focus()
            self.prompt.post_message(keys.Paste(event.text))
            event.stop()

    # Bits of the screen

    async def _summarise_earlier(self) -> None:
        if self.chat.has_messages:
            await self.conversation.summarise_earlier(self.chat)
        self.footer.draw()

    async def _fault(self, error: TacitError) -> None:
        await self.conversation.end_answer()
        await self.conversation.add_notice(f"{error.message}\n{error.hint}".strip(), "error")

    async def _show_news(self) -> None:
        """Tell what happened in the background, and count what waits for the user."""
        from tacit.ui.chat.slash_commands import waiting_count

        for line in await asyncio.to_thread(self.chat.news.take):
            await self.conversation.add_notice(f"◇ {line}", "news")
        self.footer.inbox = await asyncio.to_thread(waiting_count)
        self.footer.draw()

    def _show_news_when_idle(self) -> None:
        """Show news while the chat is idle: they must not break into an answer."""
        if not self._busy and self.questions.panel is None and self.chat.news.is_due:
            self.run_worker(self._show_news(), group="look")

    def _draw_queued(self) -> None:
        row = self.query_one("#queued", Static)
        row.display = bool(self.queued)
        row.update(literal("\n".join(f"next: {text.splitlines()[0]}" for text in self.queued)))

    def _take_back_queued(self) -> None:
        """What waits to be sent goes back into the input."""
        if self.queued:
            self.prompt.set_text("\n".join([*self.queued, self.prompt.text]).strip())
            self.queued.clear()
            self._draw_queued()
