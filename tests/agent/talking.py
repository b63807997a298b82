"""What the tests of the agent share: talking to a session, writing a skill, the wire formats."""

import asyncio
from pathlib import Path
from typing import Any

from tacit.agent import agent_events
from tacit.agent.agent_session import Session
from waiting import LONG

# Prefix of the model's name, and what its client wants after the server's address.
WIRES = {
    "openai-chat": ("openai", "/v1"),
    "openai-responses": ("openai-responses", "/v1"),
    "anthropic": ("anthropic", ""),
    "gemini": ("google", ""),
}


def say(session: Session, *messages: str) -> list[agent_events.AnyEvent]:
    """What happens when the user says `messages`, one after the other."""

    async def run() -> list[agent_events.AnyEvent]:
        return [event for message in messages async for event in session.say(message)]

    return asyncio.run(run())


def interrupt(session: Session, message: str) -> None:
    """Say `message`, and press Ctrl-C once the answer has begun."""

    async def run() -> None:
        async def talk() -> None:
            async for event in session.say(message):
                if isinstance(event, agent_events.Text):
                    ready.set()

        ready = asyncio.Event()
        task = asyncio.create_task(talk())
        await asyncio.wait_for(ready.wait(), LONG)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(run())


def write_skill(folder: Path, name: str, body: str, *, head: str = "") -> Path:
    """A skill below `folder`, a skills folder."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    path = folder / name / "SKILL.md"
    path.write_text(f"---\nname: {name}\ndescription: Does {name}.\n{head}---\n\n{body}\n")
    return path.parent


def of(kind: type, told: list[Any]) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]
