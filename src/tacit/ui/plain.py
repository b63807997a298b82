"""`tacit chat --plain`: lines in, lines out. For screen readers, dumb terminals and pipes.

The same conversation as on the whole screen, in words instead of marks: nothing moves, nothing is
coloured, and a line is written once it is whole. With `as_json` every event is a line of JSON.
"""

import asyncio
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.base.display import fit, one_line, plain
from tacit.base.errors import TacitError
from tacit.base.paths import with_tilde
from tacit.ui.chat import event_text
from tacit.ui.chat.event_text import CommandAnswer
from tacit.ui.chat.live_chat import Chat, ChatOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.agent import agent_events
    from tacit.agent.tool import Question
    from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest

_TURNS_BEFORE, _LINES_BEFORE = 3, 6
_ANSWERS: "dict[str, ApprovalAnswer]" = {
    "y": "once", "yes": "once", "s": "session", "a": "always", "n": "no", "no": "no", "": "no",
}  # fmt: skip


def run(options: ChatOptions, *, as_json: bool = False) -> int:
    """Talk until the input ends; the exit code."""
    return Plain(options, as_json=as_json).run()


class Plain:
    """The line-based face."""

    def __init__(self, options: ChatOptions, *, as_json: bool = False) -> None:
        self.chat = Chat(options, approve=self.approve, ask=self.ask_user)
        self.as_json = as_json
        self.code = 0
        self._interactive = sys.stdin.isatty() and not as_json
        self._line = ""
        """The part of the answer that is not a whole line yet."""
        self._answering: asyncio.Task[None] | None = None

    def run(self) -> int:
        self.chat.open()
        self._greet()
        with asyncio.Runner() as runner:
            while (text := self._read_message()) is not None:
                try:
                    if not self._do(text, runner):
                        break
                    self._show_news()
                except TacitError as error:
                    self._fault(error.message, error.hint)
                except (KeyboardInterrupt, asyncio.CancelledError):
                    self._interrupted()
            self.chat.close()
        if self._interactive and self.chat.resume_hint:
            self._say(self.chat.resume_hint)
        return self.code

    def _do(self, text: str, runner: asyncio.Runner) -> bool:
        """Do what a message asks for; False ends the conversation."""
        from tacit.ui.chat import slash_commands

        command = slash_commands.parse_slash_command(text)
        if command is None:
            runner.run(self._answer(text))
            return True
        shown = command[0].run(self.chat, command[1])
        if shown.next_step == "quit":
            return False
        if shown.next_step == "reopened":
            self._summarise_earlier()
        self._show(shown)
        return True

    async def _answer(self, text: str) -> None:
        self._answering = asyncio.current_task()
        async for event in self.chat.say(text):
            self._show_event(event)

    # Events in words

    def _show_event(self, event: "agent_events.AnyEvent") -> None:
        from tacit.agent import agent_events

        if self.as_json:
            self._write(agent_events.encode_event(event).decode())
            return
        text, kind = event_text.event_notice(event)
        match event:
            case agent_events.Text(delta=delta):
                self._stream(delta)
            case agent_events.Restarted():
                self._line = ""
                self._say(f"{text}. What was said of this answer does not count.")
            case agent_events.Call(name=name, arguments=arguments):
                self._say(f"[{one_line(f'{name} {event_text.call_subject(arguments)}')}]")
            case agent_events.Return():
                self._returned(event)
            case agent_events.Error(why=why, hint=hint):
                self.code = 10
                self._fault(why, hint)
            case agent_events.End():
                self._flush()
                if text:
                    self._say(f"{text.capitalize()}.")
            case _ if text:
                mark = {"skill": "skill ", "warning": "note: "}.get(kind, "")
                self._say(f"[{mark}{one_line(text)}]")

    def _returned(self, event: "agent_events.Return") -> None:
        from tacit.agent import agent_events

        took = event_text.shown_seconds(event.seconds)
        if event.failed:
            self._say(
                f"[failed after {took}: {fit(one_line(agent_events.last_words(event.text)), 120)}]"
            )
        elif event.diff:
            self._say(f"[done in {took}]")
            self._say(event.diff.rstrip("\n"))
        elif event.name != "ask_user":
            self._say(f"[done in {took}]")

    # Questions

    async def approve(self, request: "ApprovalRequest") -> "ApprovalAnswer":
        """Ask whether a call may run."""
        await _let_events_print()
        if self.as_json:
            asked = {"type": "approval", **msgspec.to_builtins(request)}
            return _ANSWERS.get((self._ask_in_json(asked) or "").strip().lower(), "no")
        text, _ = event_text.call_preview(request, self.chat.project)
        self._say(f"May {request.tool} do this?")
        self._say("\n".join(f"  {line}" for line in text.splitlines()))
        self._say(f"y: once. s: for this session ({one_line(request.pattern)}). a: always. n: no.")
        while True:
            answer = self._prompt("y, s, a or n> ")
            if answer is None:
                return "no"
            known = _ANSWERS.get(answer.strip().lower())
            if known is not None:
                return known
            self._say("Please answer y, s, a or n.")

    async def ask_user(self, asked: "Question") -> str | None:
        """Put the model's question to the user."""
        await _let_events_print()
        if self.as_json:
            return self._ask_in_json({"type": "question", **msgspec.to_builtins(asked)})
        self._say(f"Question: {asked.question}")
        for number, option in enumerate(asked.options, start=1):
            self._say(f"  {number}: {one_line(option)}")
        answer = self._prompt("your answer, or a number> " if asked.options else "your answer> ")
        if answer is None:
            return None
        answer = answer.strip()
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(asked.options):
            return asked.options[int(answer) - 1]
        return answer

    def _ask_in_json(self, asked: dict[str, Any]) -> str | None:
        self._write_json(asked)
        return self._prompt("")

    def _prompt(self, mark: str) -> str | None:
        """A line from the user in the middle of an answer; None at the end of the input.

        Ctrl-C here stops the whole answer, and the agent that asks.
        """
        self._flush()
        try:
            with _plain_interrupts():
                return self._read(mark)
        except KeyboardInterrupt:
            assert self._answering is not None
            self._answering.cancel()
            raise asyncio.CancelledError from None

    # Reading

    def _read_message(self) -> str | None:
        """What the user says next. A backslash at the end of a line goes on with the next one."""
        stopped = False
        while True:
            try:
                parts = []
                line = self._read("you> ")
                while line is not None and line.endswith("\\"):
                    parts.append(line[:-1])
                    line = self._read("...> ")
                if line is None and not parts:
                    return None
                text = "\n".join([*parts, line or ""]).strip()
                if text:
                    return text
                stopped = False
            except KeyboardInterrupt:
                if stopped or not self._interactive:
                    return None
                stopped = True
                self._say("\nCtrl-C again, or Ctrl-D, quits.")

    def _read(self, mark: str) -> str | None:
        if self._interactive:
            try:
                return input(mark)
            except EOFError:
                sys.stdout.write("\n")
                return None
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None

    # Writing

    def _greet(self) -> None:
        if self.as_json:
            self._write_json({"type": "session", "id": self.chat.id})
            return
        if self._interactive:
            _load_readline()
            self._say(f"tacit in {with_tilde(self.chat.project)}, with {self.chat.model}.")
            self._say("/help lists the commands. Ctrl-C stops an answer, Ctrl-D quits.")
        self._summarise_earlier()
        self._show_news()

    def _show_news(self) -> None:
        """Say what was learned in the background since this was last asked."""
        for line in self.chat.news.take():
            if self.as_json:
                self._write_json({"type": "notice", "text": line})
            else:
                self._say(f"[news: {line}]")

    def _summarise_earlier(self) -> None:
        """Sum up the conversation that is resumed."""
        if not self.chat.has_messages or self.as_json:
            return
        earlier, before = self.chat.earlier(_TURNS_BEFORE, _LINES_BEFORE)
        if before:
            self._say(f"({before} earlier messages)")
        for who, text, is_cut in earlier:
            if who in ("you", "agent"):
                said = "You said" if who == "you" else "The answer was"
                self._say(f"{said}: {text}{' …' if is_cut else ''}")
        active = self.chat.active_skills
        self._say(f"Resumed {self.chat.id}." + (f" Skills active: {active}." if active else ""))

    def _interrupted(self) -> None:
        if self.as_json:
            self._write_json({"type": "interrupted"})
        else:
            self._say("Interrupted; what was done is kept.")

    def _show(self, shown: CommandAnswer) -> None:
        if self.as_json:
            self._write_json({"type": "shown", "text": shown.text})
            return
        self._say("\n".join(part for part in (shown.text, shown.diff) if part))

    def _fault(self, why: str, hint: str) -> None:
        if self.as_json:
            self._write_json({"type": "error", "why": why, "hint": hint})
            return
        self._say(f"Error: {why}" + (f"\n{hint}" if hint else ""))

    def _stream(self, delta: str) -> None:
        self._line += plain(delta)
        whole, end, rest = self._line.rpartition("\n")
        if end:
            self._write(whole)
            self._line = rest

    def _flush(self) -> None:
        if self._line:
            self._write(self._line)
            self._line = ""

    def _say(self, text: str) -> None:
        self._flush()
        self._write(plain(text))

    def _write_json(self, value: dict[str, Any]) -> None:
        self._write(msgspec.json.encode(value).decode())

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


async def _let_events_print() -> None:
    """Let what happened before a question be written before it: the question holds up the loop."""
    for _ in range(10):
        await asyncio.sleep(0)


def _load_readline() -> None:
    """Editing of the line and its history, where the system has them."""
    try:
        import readline
    except ImportError:
        return
    from tacit.ui.chat.input_line import InputHistory

    for text in InputHistory().entries[-200:]:
        if "\n" not in text:
            readline.add_history(text)


@contextmanager
def _plain_interrupts() -> "Iterator[None]":
    """Ctrl-C raises KeyboardInterrupt at once, as outside of asyncio, so that reading ends."""
    try:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread: nobody presses keys there
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
