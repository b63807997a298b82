"""The events of a running agent: what it tells its faces, and the layers above.

Owns the stream of an answer, which print, JSON lines and the terminal all render; in JSON `type`
names the class, so the names of the classes are part of the format. Owns also two events on the bus
of `base/event_bus.py`: `Answered`, published when an answer is over, with what was counted in the
conversation until then; and `ReviewBegun`, by which whoever begins a review of the running
conversation resets the counts. The counts are part of the conversation and are read again from its
file, so they survive a kill. Who reacts to these events is decided in `learn/` and `work/`.
"""

from datetime import UTC, datetime
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
    estimated: bool = False
    """Whether tokens or cost are an estimate, because nobody reported them."""


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


def subject_of(arguments: dict[str, Any]) -> str:
    """What a call is about, for people and for patterns."""
    for key in ("command", "path", "name", "pattern", "query", "question"):
        if isinstance(value := arguments.get(key), str):
            return value
    return ""


def last_words(text: str) -> str:
    """The last line of what a failed call gave; an exit code alone says little: the one before."""
    lines = text.strip().splitlines()
    if len(lines) > 1 and lines[-1].startswith("[exit code "):
        return f"{lines[-2].strip()} {lines[-1]}"
    return lines[-1] if lines else ""


def encode_event(event: Event) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(event)


Changed = Literal["", "skill", "fact"]
"""What a call changed of what is kept beyond the conversation."""


class Answered(msgspec.Struct, frozen=True):
    """Event: an answer of the agent has come to its end, well or not."""

    session: str
    project: str
    reason: Reason
    """`done` for a final answer; else the limit, `interrupted` or `error`."""
    iterations: int
    """Requests to the model since a skill was changed here, or the conversation reviewed."""
    user_turns: int
    """Messages of the user's since a fact was kept here, or the conversation reviewed for some."""
    requests: int
    """All requests to the model in this conversation."""
    skill_changes: int
    """How often this conversation changed a skill."""
    changed_at: datetime | None = None
    """When it last did."""


class ReviewBegun(msgspec.Struct, frozen=True):
    """Event: a review of a running conversation begins, for skills, for facts, or both.

    To be published in the thread in which `Answered` was heard. Heard by the session it names.
    """

    session: str
    skills: bool = False
    facts: bool = False


class AnswerCounts:
    """What has happened in one conversation."""

    def __init__(self) -> None:
        self.requests = 0
        self.iterations = 0
        self.user_turns = 0
        self.skill_changes = 0
        self.changed_at: datetime | None = None

    def responded(self) -> None:
        """The model has answered a request."""
        self.requests += 1
        self.iterations += 1

    def asked(self) -> None:
        """The user has said something."""
        self.user_turns += 1

    def changed(self, what: Changed, at: object = None) -> None:
        """A call has changed a skill, or kept or dropped a fact."""
        if what == "skill":
            self.skill_changes += 1
            self.changed_at = _time_of(at)
            self.iterations = 0
        elif what == "fact":
            self.user_turns = 0

    def review_begun(self, *, skills: bool, facts: bool) -> None:
        """A review of the conversation begins; what is counted for it begins anew."""
        if skills:
            self.iterations = 0
        if facts:
            self.user_turns = 0

    def answered(self, session: str, project: str, reason: Reason) -> Answered:
        """The event for the end of an answer."""
        return Answered(
            session,
            project,
            reason,
            iterations=self.iterations,
            user_turns=self.user_turns,
            requests=self.requests,
            skill_changes=self.skill_changes,
            changed_at=self.changed_at,
        )


def _time_of(at: object) -> datetime:
    """The time in a line of a session's file; now, for what happens now."""
    try:
        return datetime.fromisoformat(str(at)) if at else datetime.now(UTC)
    except ValueError:
        return datetime.now(UTC)
