"""A conversation as a face holds it: opened behind the first frame, counted, and opened anew.

Owns the life of the session, the count of tokens and money, the news from background work, and
the run of a schedule by run. Faces show things, and `agent/` talks to models. Opening reads
settings and skills and imports a provider's library, so it is done in a thread.
"""

import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

import msgspec

from tacit.agent.agent_events import Usage
from tacit.base import paths
from tacit.base.display import amount, counted, dollars, one_line
from tacit.base.errors import TacitError

if TYPE_CHECKING:
    from tacit.agent import agent_events
    from tacit.agent.agent_session import AskUser, Session
    from tacit.agent.session_tools import Kit
    from tacit.agent.tool import Question
    from tacit.agent.tool_approval import ApprovalAnswer, ApprovalRequest, Ask
    from tacit.skills.library import Library
    from tacit.ui.chat.past_sessions import Spoken


_SCHEDULE = "sched-"
"""How the names begin by which schedules are run."""
_FRESH_SECONDS = 2.0


def chat_kit() -> "Kit":
    """What a session with a user works with: the agent's own tools, and those for schedules."""
    from tacit.agent.session_tools import TOOLS, Kit
    from tacit.work.schedule_requests import TOOLS as FOR_SCHEDULES

    return Kit((*TOOLS, *FOR_SCHEDULES))


class ScheduleNames:
    """The schedules for completion; read again every other second, not at every key."""

    def __init__(self) -> None:
        self._checked_at = 0.0
        self._found: list[tuple[str, str]] = []

    def __call__(self) -> list[tuple[str, str]]:
        """`sched-NAME` and what it does."""
        if time.monotonic() - self._checked_at > _FRESH_SECONDS:
            from tacit.work.schedule_store import listing

            self._found = [(f"{_SCHEDULE}{s.name}", s.description) for s in listing()[0]]
            self._checked_at = time.monotonic()
        return self._found


async def run_schedule_by_hand(
    called: str, text: str, *, approve: "Ask | None", ask: "AskUser | None"
) -> "AsyncGenerator[agent_events.AnyEvent, None]":
    """What happens when the schedule that is called `sched-NAME` is run now, without a `text`."""
    from tacit.agent import agent_events
    from tacit.work.schedule_runner import ByHand
    from tacit.work.schedule_store import find

    try:
        if text:
            raise TacitError(f"/{called} takes no further words", "it runs as it was made")
        run = ByHand(find(called.removeprefix(_SCHEDULE)), approve=approve, ask=ask)
    except TacitError as error:
        yield agent_events.Error(error.message, error.hint)
        yield agent_events.End("error", "", 0)
        return
    try:
        yield agent_events.Notice(
            f"{run.schedule.name} runs in a session of its own: {run.session}"
        )
        async for event in run.stream():
            yield event
    finally:
        run.close()


_SHELL_COMMANDS = (
    (re.compile(r"\btacit (undo|inbox|memory)\b"), r"/\1"),
    (re.compile(r"\btacit (accept|reject)\b"), r"/inbox \1"),
)


class News:
    """The news of one chat."""

    def __init__(self) -> None:
        self._seen: object = None

    @property
    def is_due(self) -> bool:
        """Whether something was written since the last look; two calls of stat."""
        mark = _database_mark()
        return mark is not None and mark != self._seen

    def take(self) -> tuple[str, ...]:
        """The lines to show, each once. Blocks for a moment; raises nothing."""
        if not self.is_due:
            return ()
        from tacit.learn import notices

        self._seen = _database_mark()
        if not notices.pending("chat"):
            return ()
        return tuple(in_chat_words(line) for line in notices.tell("chat"))


def in_chat_words(line: str) -> str:
    """A line of the shell's as it is for a chat."""
    for shell, chat in _SHELL_COMMANDS:
        line = shell.sub(chat, line)
    return line


def _database_mark() -> object:
    """What is different once somebody has written to the database; None where there is none."""
    from tacit.base import database  # late: the first frame does not wait for it

    path = database.default_path()
    try:
        whole = os.stat(path)
    except OSError:
        return None
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return whole.st_mtime_ns, whole.st_size
    return whole.st_mtime_ns, whole.st_size, log.st_mtime_ns, log.st_size


class UsageCount:
    """Counts requests, tokens and money."""

    def __init__(self) -> None:
        self.requests = 0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.money = 0.0
        self.unpriced = 0
        self.context = 0
        """Tokens of the last request with its answer: what the next one begins with."""
        self.window: int | None = None
        """What the model can read at once, where that is known."""

    def count(self, usage: Usage) -> None:
        self.requests += 1
        self.input += usage.input_tokens
        self.output += usage.output_tokens
        self.cached += usage.cached_tokens
        self.context = usage.input_tokens + usage.output_tokens
        if usage.cost is None:
            self.unpriced += 1
        else:
            self.money += usage.cost

    def shown_context(self) -> str:
        """`12.3k tokens (6%)`; without the share where the window is not known."""
        if not self.context:
            return ""
        text = f"{amount(self.context)} tokens"
        return f"{text} ({self.context / self.window:.0%})" if self.window else text

    def shown_cost(self) -> str:
        """`$0.042`; `?` where a price is not known, `$0.042+?` where some are not."""
        if not self.requests:
            return ""
        if self.unpriced == self.requests:
            return "$?"
        return dollars(self.money) + ("+?" if self.unpriced else "")

    def report(self) -> str:
        """Requests, tokens and money, for `/cost`."""
        if not self.requests:
            return "Nothing has been asked yet."
        share = f", {self.cached / self.input:.0%} of it from the cache" if self.cached else ""
        window = f" of {amount(self.window)}" if self.window else ""
        lines = [
            f"requests   {self.requests:,}",
            f"input      {self.input:,} tokens{share}",
            f"output     {self.output:,} tokens",
            f"context    {self.context:,} tokens in the last request{window}",
            f"cost       {self._priced()}",
        ]
        return "\n".join(lines)

    def _priced(self) -> str:
        if self.unpriced == self.requests:
            return "not known: no price is on record for this model"
        unknown = f", and {self.unpriced} requests without a known price" if self.unpriced else ""
        return dollars(self.money) + unknown


def _without_skill_calls(spoken: "list[Spoken]") -> "list[Spoken]":
    """Without the calls that loaded a skill: the skill itself is told."""
    return [
        one
        for one, following in zip_longest(spoken, spoken[1:])
        if not (
            one.who == "tool"
            and one.text.startswith("run_skill")
            and following is not None
            and following.who == "skill"
        )
    ]


def _counted_calls(calls: "list[Spoken]") -> str:
    failed = sum(one.failed for one in calls)
    also = f", {failed} failed" if failed else ""
    names = ", ".join(dict.fromkeys(one.text.split(" ")[0] for one in calls))
    return f"{counted(len(calls), 'call')}{also}: {names}"


class ChatOptions(msgspec.Struct, frozen=True):
    """How a conversation begins."""

    cwd: str = ""
    model: str = ""
    resuming: str = ""
    """The whole id of an earlier session."""
    yes: bool = False
    learns: bool = False
    """Whether the conversation may be reviewed for skills and facts."""


class Chat:
    """One conversation after another, in one place."""

    def __init__(
        self,
        options: ChatOptions,
        *,
        approve: "Callable[[ApprovalRequest], Awaitable[ApprovalAnswer]]",
        ask: "Callable[[Question], Awaitable[str | None]]",
    ) -> None:
        self.options = options
        self.cwd = options.cwd or os.getcwd()
        self.project = paths.project_root(self.cwd)
        self.usage = UsageCount()
        self.news = News()
        self.session: Session | None = None
        self.ready = False
        self._approve = approve
        self._ask = ask
        self._library: Library | None = None
        self.scheduled = ScheduleNames()

    @property
    def model(self) -> str:
        """`provider:model`, once it is known."""
        return self.session.choice.name if self.session is not None else self.options.model

    @property
    def id(self) -> str:
        return self.session.conversation.session if self.session is not None else ""

    @property
    def has_messages(self) -> bool:
        return self.session is not None and bool(self.session.conversation.messages)

    @property
    def active_skills(self) -> str:
        """The names of the skills that are active in the conversation."""
        return ", ".join(map(one_line, self.session.conversation.active)) if self.session else ""

    @property
    def resume_hint(self) -> str:
        """How to go on later; empty where nothing was said."""
        return f"Go on later: tacit chat --resume {self.id}" if self.has_messages else ""

    def earlier(self, turns: int, lines: int) -> tuple[list[tuple[str, str, bool]], int]:
        """What was said in the last `turns` turns, and how many messages came before them.

        Each is who, what, and whether more than its first `lines` lines were said. Calls that
        follow each other are counted together, by `tools`.
        """
        from tacit.ui.chat import event_text, past_sessions

        spoken, before = past_sessions.last_turns(past_sessions.spoken_in(self.id), turns)
        found: list[tuple[str, str, bool]] = []
        for who, group in groupby(_without_skill_calls(spoken), key=lambda one: one.who):
            if who == "tool":
                found.append(("tools", _counted_calls(list(group)), False))
                continue
            for one in group:
                text, left = event_text.first_lines(one.text, lines)
                if who != "agent" or text.strip():
                    found.append((who, one_line(text) if who == "skill" else text, left > 0))
        return found, before

    @property
    def library(self) -> "Library":
        """The skills; also without a session, when no model could be found."""
        if self.session is not None:
            return self.session.library
        if self._library is None:
            from tacit.skills.library import Library

            self._library = Library(self.cwd)
        return self._library

    def open(self) -> None:
        """Make the session, unless there is one. Blocks; raises `TacitError`."""
        if self.options.learns:
            from tacit.work import reactions

            reactions.listen_to_chat()
        if self.session is None:
            self.session = self._made(self.options.model, self.options.resuming)

    def load_model(self) -> None:
        """Import the provider's library, and learn how much the model can read at once.

        Blocks; raises `TacitError`.
        """
        if self.session is not None and not self.ready:
            from tacit.agent import models

            model = models.build(self.session.choice)
            self.usage.window = self.session.settings.agent.window or model.context_window
            self.ready = True

    def reopen(self, *, resuming: str = "") -> None:
        """Go on in another conversation, a new one or an earlier one.

        When that cannot be done the present one stays. Blocks; raises `TacitError`.
        """
        if resuming and resuming == self.id:
            return  # it is open: one session, one holder
        fresh = self._made(self.options.model, resuming)
        self.close()
        self.session, self.ready = fresh, False
        self.usage = UsageCount()
        self.load_model()

    def use_model(self, name: str) -> None:
        """Go on with another model in the same conversation, or begin one with it.

        When that cannot be done all stays as it is. Blocks; raises `TacitError`.
        """
        if self.session is None:
            self.session = self._made(name, self.options.resuming)
        else:
            self.session.use_model(name)
        choice = self.session.choice
        self.options = msgspec.structs.replace(
            self.options, model=f"{choice.name} {choice.base_url}".strip()
        )
        self.ready = False
        self.load_model()

    async def say(self, text: str) -> "AsyncIterator[agent_events.AnyEvent]":
        """Answer a message that is no command; usage is counted on the way."""
        from tacit.agent import agent_events
        from tacit.agent.activation import slash_words

        if self.session is None:
            raise TacitError("there is no model to talk to", "set one up: tacit setup")
        first = next(iter(slash_words(text)), None)
        if first and first.name.startswith(_SCHEDULE):
            rest = text[first.end :].strip()
            said = run_schedule_by_hand(first.name, rest, approve=self._approve, ask=self._ask)
        else:
            said = self.session.say(text)
        async with aclosing(said) as heard:
            async for event in heard:
                if isinstance(event, agent_events.Usage):
                    self.usage.count(event)
                yield event

    def close(self) -> None:
        if self.session is not None:
            self.session.close()

    def _made(self, model: str, resuming: str) -> "Session":
        from tacit.agent.agent_session import Session
        from tacit.base import settings

        return Session(
            settings.load_settings(self.cwd).settings,
            cwd=self.cwd,
            model=model,
            resuming=resuming,
            yes=self.options.yes,
            approve=self._approve,
            ask=self._ask,
            kit=chat_kit(),
        )


def full_session_id(start: str) -> str:
    """The whole id of the session that `start` begins. Raises `NotFound`."""
    from tacit.traces.hosts.tacit import find_session

    return find_session(start)
