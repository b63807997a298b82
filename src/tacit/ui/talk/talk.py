"""A conversation as a face holds it: opened behind the first frame, counted, and opened anew.

Owns the session's life. It leaves showing things to the faces and talking to models to `agent/`.
Opening reads settings and skills and imports a provider's library, so it is done in a thread.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from tacit.base import paths
from tacit.base.errors import TacitError
from tacit.ui.talk import scheduled
from tacit.ui.talk.news import News
from tacit.ui.talk.tally import Tally

if TYPE_CHECKING:
    from tacit.agent import events
    from tacit.agent.approval import Answer, Request
    from tacit.agent.session import Session
    from tacit.agent.tools.tool import Asked
    from tacit.skills.library import Library


class Options(msgspec.Struct, frozen=True):
    """How a conversation begins."""

    cwd: str = ""
    model: str = ""
    resuming: str = ""
    """The whole id of an earlier session."""
    yes: bool = False
    learns: bool = False
    """Whether what is said here may be looked at for skills and facts."""


class Talk:
    """One conversation after another, in one place."""

    def __init__(
        self,
        options: Options,
        *,
        approve: "Callable[[Request], Awaitable[Answer]]",
        ask: "Callable[[Asked], Awaitable[str | None]]",
    ) -> None:
        self.options = options
        self.cwd = options.cwd or os.getcwd()
        self.project = paths.project_root(self.cwd)
        self.tally = Tally()
        self.news = News()
        self.session: Session | None = None
        self.ready = False
        self._approve = approve
        self._ask = ask
        self._library: Library | None = None
        self.scheduled = scheduled.Names()

    @property
    def model(self) -> str:
        """`provider:model`, once it is known."""
        return self.session.choice.name if self.session is not None else self.options.model

    @property
    def id(self) -> str:
        return self.session.conversation.session if self.session is not None else ""

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
            from tacit.work import glue

            glue.listen_to_chat()
        if self.session is None:
            self.session = self._made(self.options.model, self.options.resuming)

    def warm(self) -> None:
        """Import the provider's library, and learn how much the model can read at once.

        Blocks; raises `TacitError`.
        """
        if self.session is not None and not self.ready:
            from tacit.agent import models

            model = models.build(self.session.choice)
            self.tally.window = self.session.settings.agent.window or model.context_window
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
        self.tally = Tally()
        self.warm()

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
        self.warm()

    async def say(self, text: str) -> "AsyncIterator[events.AnyEvent]":
        """Answer a message; usage is counted on the way."""
        from tacit.agent import events

        if self.session is None:
            raise TacitError("there is no model to talk to", "set one up: tacit setup")
        if text.startswith(scheduled.PREFIX):
            said = scheduled.by_hand(text, approve=self._approve, ask=self._ask)
        else:
            said = self.session.say(text)
        async with aclosing(said) as heard:
            async for event in heard:
                if isinstance(event, events.Usage):
                    self.tally.count(event)
                yield event

    def close(self) -> None:
        if self.session is not None:
            self.session.close()

    def _made(self, model: str, resuming: str) -> "Session":
        from tacit.agent.session import Session
        from tacit.base import settings

        return Session(
            settings.load(self.cwd).settings,
            cwd=self.cwd,
            model=model,
            resuming=resuming,
            yes=self.options.yes,
            approve=self._approve,
            ask=self._ask,
            kit=scheduled.kit(),
        )


def full_id(start: str) -> str:
    """The whole id of the session that `start` begins. Raises `NotFound`."""
    from tacit.agent.stored import session_file

    return os.path.basename(session_file(start)).removesuffix(".jsonl")
