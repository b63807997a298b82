"""The Trace: what one agent session did, whatever the host. Frozen structs with properties.

Owns the shape. How a host's records become a Trace is `assembler.py`'s; what can be concluded from
one (corrections, commands, files touched, skills written) is `observations.py`'s.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

Kind = Literal["read", "write", "edit", "shell", "search", "web", "ask", "skill", "other"]

OWN_HOST = "tacit"
"""The name that Tacit's own sessions have among the hosts."""

REFUSED = "the user refused this call"
"""The reason of a failure that was the user's own decision."""

# Why something was passed over, and what a person is told about it.
REASONS = {
    "not-json": "lines that are not JSON",
    "cut-off": "a last line that was not written to its end",
    "too-long": "lines longer than the limit",
    "mended": "lines with characters that are not valid; read with those replaced",
    "unknown-record": "records of a kind that this version does not know",
    "bad-record": "records that do not have the form of their kind",
    "host-error": "records on which the reader for this host failed",
    "lone-result": "tool results without a call",
    "attachment": "attachments: pictures, sounds, files",
    "copied": "steps copied from an earlier session, which has them",
    "rejected": "answers that were not preferred, where a file holds two to choose from",
    "no-content": "calls of a model of which only figures were recorded, not what was said",
    "clock": "times earlier than the one before",
    "shortened": "long texts of which the middle was left out",
    "locked": "a database that its owner held locked; a copy was read",
    "unreadable": "files that could not be read",
}


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider reported them; `cost` in US dollars where the host knows it."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage.sum((self, other))

    @staticmethod
    def sum(parts: Iterable["Usage"]) -> "Usage":
        """All of `parts` together; the cost is of those whose cost is known."""
        parts = tuple(parts)
        if len(parts) == 1:
            return parts[0]
        costs = [part.cost for part in parts if part.cost is not None]
        return Usage(
            sum([part.input for part in parts]),
            sum([part.output for part in parts]),
            sum([part.cache_read for part in parts]),
            sum([part.cache_write for part in parts]),
            sum([part.reasoning for part in parts]),
            sum(costs) if costs else None,
        )


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Something the assistant said."""

    text: str
    at: datetime | None = None


Teller = Literal["agent", "plan", "teammate", "hook", "file", "output", "system"]


class Told(msgspec.Struct, frozen=True, tag="told"):
    """A text in the user's place that the user did not type; `by` says where it came from.

    `agent`: the main agent's words to a helper. `plan`: a plan of the agent's that the user
    accepted. `teammate`: another agent's message or report. `hook`, `file`, `output`: what a hook
    said, an attached file holds, or a command printed, as the host put it beside a prompt.
    `system`: a message of the system in the middle of a session; what stands before is `Given`.
    """

    text: str
    by: Teller
    at: datetime | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="call"):
    """One use of a tool: `name` as the host says it, `kind` from the common table."""

    id: str
    name: str
    kind: Kind
    arguments: dict[str, Any] = {}
    result: str = ""
    failed: bool = False
    error: str = ""
    """Why it failed, in one line; empty when it did not."""
    finished: bool = True
    """False when no result was recorded: the session ended first, or is not over."""
    at: datetime | None = None
    duration: float | None = None
    """Seconds, where known."""
    reply: str = ""
    """What the user typed in refusing this call, or in answer to it: the user's own words."""


class Activation(msgspec.Struct, frozen=True, tag="skill"):
    """A skill was loaded, by a tool, by the user, or by reading its SKILL.md."""

    name: str
    at: datetime | None = None


class Compaction(msgspec.Struct, frozen=True, tag="compaction"):
    """The host replaced the history by a summary."""

    summary: str = ""
    at: datetime | None = None


class Subagent(msgspec.Struct, frozen=True, tag="subagent"):
    """Work was handed to another agent; `session` is its own session, where known."""

    name: str = ""
    task: str = ""
    session: str = ""
    at: datetime | None = None


Step = Text | ToolCall | Activation | Compaction | Subagent | Told


def text_of_step(step: Step) -> str:
    """All that a step says, does or prints, as a person would read it."""
    match step:
        case Text(text=text) | Told(text=text) | Compaction(summary=text):
            return text
        case Subagent(name=name, task=task):
            return f"{name} {task}"
        case ToolCall():
            given = _texts_in(step.arguments)
            return "\n".join((step.name, *given, step.error, step.result))
    return ""


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part)


class Turn(msgspec.Struct, frozen=True):
    """A prompt and all that followed it, in order, up to the next prompt.

    `prompt` holds what the user typed and nothing else. It is empty where a session begins without
    one, where somebody else's words began the turn (its first step is then what was `Told`), and
    where a very long turn goes on: a turn holds a bounded number of steps, so that reading needs
    bounded memory.
    """

    number: int
    prompt: str = ""
    steps: tuple[Step, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    usage: Usage = Usage()
    helper: str = ""
    """The helper's own session, where a session is shown together with its helpers' turns."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(step.text for step in self.steps if isinstance(step, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(step for step in self.steps if isinstance(step, ToolCall))

    @property
    def skills(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps if isinstance(step, Activation))

    @property
    def subagents(self) -> tuple[Subagent, ...]:
        return tuple(step for step in self.steps if isinstance(step, Subagent))

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        return tuple(step for step in self.steps if isinstance(step, Compaction))


class Head(msgspec.Struct, frozen=True):
    """A session without its turns: who, where, when, and what was passed over while reading."""

    host: str
    session: str = ""
    version: str = ""
    """The host's own version, as its records say."""
    model: str = ""
    project: str = ""
    """The folder in which the session began."""
    repository: str = ""
    """Host and path of the repository that the folder is a checkout of, where its file says so."""
    branch: str = ""
    title: str = ""
    parent: str = ""
    """The session that this one is a part of, for a helper's own session. What stands in the user's
    place in a helper's session are the main agent's words."""
    copied_from: str = ""
    """The session whose history this one begins with a copy of, where its file says so."""
    source: str = ""
    """The file, folder or database that it was read from."""
    handed: bool = False
    """It was handed in (see `Source`): its user need not be this one, so it vouches for nothing."""
    verdict: str = ""
    """What a verifier made of it, as its file says: `reward: 1`, `resolved: false`."""
    started: datetime | None = None
    ended: datetime | None = None
    usage: Usage = Usage()
    skipped: dict[str, int] = {}
    """What was passed over, by reason (see `REASONS`)."""

    @property
    def id(self) -> str:
        """What names the session in the store and in commands."""
        return f"{self.host}:{self.session}"


class Given(msgspec.Struct, frozen=True):
    """What a model was given beside the conversation. No part of a Trace: it is long, the same in
    most sessions, and stays where the host keeps it."""

    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    """Definitions of tools, as OpenAI writes them."""


class Trace(msgspec.Struct, frozen=True):
    """One whole session."""

    head: Head
    turns: tuple[Turn, ...] = ()

    @property
    def id(self) -> str:
        """Host and session, which name a session everywhere."""
        return self.head.id

    @property
    def host(self) -> str:
        return self.head.host

    @property
    def session(self) -> str:
        return self.head.session

    @property
    def project(self) -> str:
        return self.head.project

    @property
    def usage(self) -> Usage:
        return self.head.usage

    @property
    def skipped(self) -> dict[str, int]:
        return self.head.skipped

    @property
    def prompts(self) -> tuple[str, ...]:
        return tuple(turn.prompt for turn in self.turns if turn.prompt)

    @property
    def user_words(self) -> tuple[str, ...]:
        """All that the user typed, in order: prompts, and replies to calls."""
        return tuple(
            text
            for turn in self.turns
            for text in (turn.prompt, *(call.reply for call in turn.calls))
            if text
        )

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(self.each_call())

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for turn in self.turns for text in turn.texts)

    @property
    def failures(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.each_call() if call.failed)

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that were activated, each once, in order."""
        return tuple(dict.fromkeys(name for turn in self.turns for name in turn.skills))

    def since(self, number: int) -> "Trace":
        """The session from its own turn `number` on."""
        places = (at for at, t in enumerate(self.turns) if t.number == number and not t.helper)
        return Trace(self.head, self.turns[next(places, len(self.turns)) :])

    def each_call(self) -> Iterator[ToolCall]:
        for turn in self.turns:
            yield from turn.calls
