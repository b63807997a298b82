"""Driving the app: open it, type, wait for words on the screen."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from textual.events import Paste
from textual.pilot import Pilot

from tacit.testing import ModelServer
from tacit.testing.script import ScriptLike
from tacit.ui.chat.live_chat import ChatOptions
from tacit.ui.tui.chat_screen import ChatApp
from waiting import LONG

WAIT = LONG


class Chat:
    """An app that runs, and its server."""

    def __init__(self, app: ChatApp, pilot: Pilot[int], server: ModelServer) -> None:
        self.app = app
        self.pilot = pilot
        self.server = server

    @property
    def screen(self) -> str:
        """The screen's text, as a person sees it."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def until(self, what: str | Callable[[], Any]) -> str:
        """Wait for words on the screen, or for something to be so; the screen's text."""
        done = what if callable(what) else lambda: what in self.screen
        try:
            async with asyncio.timeout(WAIT):
                while not done():
                    await self.pilot.pause(0.02)
        except TimeoutError:
            raise AssertionError(f"{what!r} did not come; there is:\n{self.screen}") from None
        await self.pilot.pause()
        return self.screen

    async def press(self, text: str) -> None:
        """Press the keys for a text, one after the other."""
        names = {"\n": "ctrl+j", " ": "space", "/": "slash", "@": "at", "-": "minus"}
        await self.pilot.press(*(names.get(character, character) for character in text))

    async def type(self, text: str) -> None:
        """Put a text into the input in one go, as a terminal hands over what is pasted."""
        self.app.prompt.focus()
        self.app.post_message(Paste(text))
        await self.pilot.pause()

    async def send(self, text: str) -> None:
        """Type a message and send it."""
        await self.type(text)
        if self.app.picker.is_open:
            await self.pilot.press("escape")
        await self.pilot.press("enter")

    async def asked(self, text: str) -> str:
        """Wait for a question that can be answered; the screen's text."""
        await self.until(
            lambda: self.app.desk.panel is not None and self.app.focused is self.app.desk.panel
        )
        return await self.until(text)

    async def idle(self) -> str:
        """Wait until nothing is being done."""
        return await self.until(lambda: not self.app._busy and self.app.ready.is_set())


@asynccontextmanager
async def opened(
    script: ScriptLike, *, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[Chat]:
    """The app in a terminal of this size, with a model that follows `script`."""
    with ModelServer(script, strict=False) as server:
        os.environ["TACIT_AGENT_BASE_URL"] = server.url + "/v1"
        os.environ["TACIT_AGENT_MODEL"] = "openai:mock-model"
        app = ChatApp(ChatOptions(**options))
        async with app.run_test(size=size) as pilot:
            chat = Chat(app, pilot, server)
            await chat.until(app.ready.is_set)
            yield chat
        app.talk.close()
        assert not server.failures, server.failures


def play(scenario: Coroutine[Any, Any, None]) -> None:
    """Run one scenario to its end."""
    asyncio.run(asyncio.wait_for(scenario, 2 * LONG))
