"""Schedules in a conversation: the tools that the agent gets, and `/sched-NAME`, run by hand.

A run by hand is a session of its own beside the conversation, which stays as it is: its tools and
its prompt cannot change, and what the run is not given it cannot call.
"""

import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from tacit.base.errors import TacitError

if TYPE_CHECKING:
    from tacit.agent import events
    from tacit.agent.approval import Ask
    from tacit.agent.kit import Kit
    from tacit.agent.session import AskUser

PREFIX = "/sched-"
_FRESH = 2.0


def kit() -> "Kit":
    """What a session with a user works with: the agent's own tools, and those for schedules."""
    from tacit.agent.kit import Kit
    from tacit.agent.tools import TOOLS
    from tacit.work.schedules.tools import TOOLS as FOR_SCHEDULES

    return Kit((*TOOLS, *FOR_SCHEDULES))


class Names:
    """The schedules for completion; looked at again every other second, not at every key."""

    def __init__(self) -> None:
        self._looked = 0.0
        self._found: list[tuple[str, str]] = []

    def __call__(self) -> list[tuple[str, str]]:
        """`sched-NAME` and what it does."""
        if time.monotonic() - self._looked > _FRESH:
            from tacit.work.schedules.shelf import listing

            self._found = [(f"sched-{s.name}", s.description) for s in listing()[0]]
            self._looked = time.monotonic()
        return self._found


async def by_hand(
    message: str, *, approve: "Ask | None", ask: "AskUser | None"
) -> "AsyncGenerator[events.AnyEvent, None]":
    """What happens when the schedule that a message names is run now."""
    from tacit.agent import events
    from tacit.work.schedules.byhand import ByHand
    from tacit.work.schedules.shelf import find

    name, _, rest = message.removeprefix(PREFIX).partition(" ")
    try:
        if rest.strip():
            raise TacitError(f"{PREFIX}{name} takes no further words", "it runs as it was made")
        hand = ByHand(find(name), approve=approve, ask=ask)
    except TacitError as error:
        yield events.Error(error.message, error.hint)
        yield events.End("error", "", 0)
        return
    try:
        yield events.Notice(f"{hand.schedule.name} runs in a session of its own: {hand.session}")
        async for event in hand.stream():
            yield event
    finally:
        hand.close()
