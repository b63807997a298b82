"""What a running agent tells its faces: print, JSON lines and the terminal render the same."""

from typing import Any, Literal

import msgspec

Reason = Literal["done", "turns", "seconds", "tokens", "money", "interrupted", "error"]


class Event(msgspec.Struct, frozen=True, tag_field="type", tag=lambda name: name.lower()):
    """The base of all events; in JSON, `type` says which."""


class Text(Event, frozen=True):
    """A piece of the answer, as it arrives."""

    delta: str


class Restarted(Event, frozen=True):
    """The request failed on its way and is made again: text since the last call does not count."""

    why: str
    seconds: float
    """How long it waits before."""


class Call(Event, frozen=True):
    """The model calls a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class Return(Event, frozen=True):
    """What the call gave."""

    id: str
    name: str
    text: str
    failed: bool
    seconds: float
    diff: str = ""


class Skill(Event, frozen=True):
    """A skill was activated, by the user or by the model."""

    name: str
    by: Literal["user", "model"]
    digest: str


class Notice(Event, frozen=True):
    """Something that the user should know and that ends nothing."""

    text: str


class Compacted(Event, frozen=True):
    """The conversation grew near to what the model can read, and goes on from a summary."""

    summary: str
    tokens: int
    """How long it was before, as reported."""


class Usage(Event, frozen=True):
    """What one request took, as reported; `cost` in dollars where the price is known."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cost: float | None = None
    model: str = ""


class Error(Event, frozen=True):
    """Something went wrong that ends the run."""

    why: str
    hint: str = ""
    passing: bool = False
    """Whether it failed on the way to the model, so that the same may work later."""


class End(Event, frozen=True):
    """The run is over. `text` is the whole last answer."""

    reason: Reason
    text: str
    turns: int


AnyEvent = Text | Restarted | Call | Return | Skill | Notice | Compacted | Usage | Error | End


def last_words(text: str) -> str:
    """The last line of what a failed call gave; an exit code alone says little: the one before."""
    lines = text.strip().splitlines()
    if len(lines) > 1 and lines[-1].startswith("[exit code "):
        return f"{lines[-2].strip()} {lines[-1]}"
    return lines[-1] if lines else ""


def encode(event: Event) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(event)
