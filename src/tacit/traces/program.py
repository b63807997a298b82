"""How a host's own program is asked for one answer: its command line, and what its output means.
Also how it is had to do a task, in a trial.

A record a program, beside the other facts of its host. It says how the program is started so that
it only answers: no hooks, no tools that can act, none of the user's skills, instructions or
servers, and no session where it can do without. It also says what its output means, and by which
words a login that is missing, a limit that is reached and an option that is gone are known.
Starting it, its limits and its end are `agent/host_program.py`'s.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from tacit.base.patterns import late_pattern
from tacit.traces import values

INSTRUCTIONS = "instructions.md"
"""The file in the question's folder that holds the instructions, for programs that want one."""
GO = "Answer what you were given, in words alone."
"""What a program is told where something must be said beside the question."""
DO = "Do the task that you were given."
"""The same where it is to do something."""
_LONGEST_REPORT = 1_000_000


class Question(msgspec.Struct, frozen=True):
    """What a program is asked."""

    text: str
    instructions: str = ""
    """What stands in the place of the program's own instructions."""
    model: str = ""
    """As the program calls it; empty for the one that its user has set there."""
    folder: str = ""
    """The folder that it runs in, which is ours."""
    server: str = ""
    """For a task: a server with OpenAI's API that is asked in place of the provider's own, with the
    key in `OPENAI_API_KEY`."""

    @property
    def whole(self) -> str:
        """Both in one text, for a program that takes no instructions."""
        return f"{self.instructions}\n\n{self.text}" if self.instructions else self.text


class Start(msgspec.Struct, frozen=True):
    """How a program is started for a question."""

    words: tuple[str, ...]
    """What follows the program's name."""
    stdin: str
    variables: dict[str, str] = {}
    files: dict[str, str] = {}
    """Files to write before, below the question's folder."""


class Said(msgspec.Struct, frozen=True):
    """What a program printed, understood. Figures that it did not report are None."""

    text: str = ""
    error: str = ""
    """What went wrong, in the program's own words."""
    input_tokens: int | None = None
    """All that was sent, with what the provider had at hand."""
    output_tokens: int | None = None
    cached_tokens: int = 0
    cost: float | None = None
    """In dollars; on a subscription what the same would have cost, as the program says."""
    model: str = ""


class Program:
    """A host's program as a model, and as the agent of a trial: by `start`, and by `work`.

    One of the two may be left out. Nothing here may raise anything but `ValueError` in `said`.
    """

    word: ClassVar[str]
    """What stands behind `cli:`; also its name on the PATH."""
    login: ClassVar[str]
    """What a person types to log in."""
    status: ClassVar[tuple[str, ...]] = ()
    """What to call it with so that it exits with 0 when somebody is logged in, if it can tell."""
    paid: ClassVar[str]
    """What an answer is taken from, for people."""
    by_hand: ClassVar[str] = ""
    """Why nobody but the user may choose it."""
    leaves: ClassVar[bool] = False
    """Whether a session stays in its list: it cannot be told otherwise."""

    logged_out: ClassVar[re.Pattern[str]] = late_pattern(
        r"(?i)not (?:logged|signed) ?in|\blog ?in\b|/login|\bsign ?in\b|\blog ?on\b|unauthori[sz]ed"
        r"|unauthenticated|authenticat|\b401\b|api.?key|credential|auth method|no auth"
    )
    limited: ClassVar[re.Pattern[str]] = late_pattern(
        r"(?i)rate.?limit|(?:usage|session|weekly|daily|hourly|spend\w*) limit|limit reached"
        r"|hit your .{0,20}limit|quota|too many requests|\b429\b|out of (?:usage|credits)"
        r"|overloaded|\b529\b|credits? (?:exhausted|used up)|insufficient"
    )
    changed: ClassVar[re.Pattern[str]] = late_pattern(
        r"(?i)(?:unknown|unexpected|unrecogni[sz]ed|invalid|unsupported|bad) "
        r"(?:option|argument|flag|feature|command|value|choice|configuration)|no such option"
        r"|error: unknown|did you mean|not a known|invalid values:|\bshow help\b"
    )

    def start(self, question: Question) -> Start:
        """How it is started for `question`."""
        raise NotImplementedError

    def work(self, question: Question) -> Start:
        """How it is started to do a task with its tools, in a sandbox and a home of its own.

        The files are written below that home. Its output is read by `said`.
        """
        raise NotImplementedError

    def said(self, output: str, question: Question) -> Said:
        """What `output` says. Raises `ValueError` where it is not in the program's form."""
        raise NotImplementedError


def named_model(option: str, question: Question) -> tuple[str, ...]:
    """The option that names the model, where one is named."""
    return (option, question.model) if question.model else ()


def one_object(output: str) -> dict[str, Any]:
    """The one JSON object that `output` is, perhaps behind lines of another kind."""
    for text in (output, output[output.find("\n{") + 1 :]):
        found = values.decoded_json(text)
        if isinstance(found, dict):
            return found
    raise ValueError("it is not a JSON object")


def objects(output: str) -> list[dict[str, Any]]:
    """The JSON objects in `output`, one a line; other lines are passed over."""
    found = [values.decoded_json(line) for line in output.splitlines() if line.startswith("{")]
    events = [value for value in found if isinstance(value, dict)]
    if not events:
        raise ValueError("it holds no JSON objects")
    return events


def reported(value: Any) -> int | None:
    """A count of tokens, or None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def money(value: Any) -> float | None:
    """An amount, or None where it is none."""
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if sound else None


def total(*parts: Any) -> int | None:
    """The sum of counts, of which the first must be one."""
    if reported(parts[0]) is None:
        return None
    return sum(reported(part) or 0 for part in parts)


def report_file(folder: str, name: str) -> dict[str, Any]:
    """The JSON object in a file that the program wrote into its folder; empty where it is none."""
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return values.mapping(values.decoded_json(file.read(_LONGEST_REPORT)))
    except OSError:
        return {}


def last(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The last of the events of that type; empty where there is none."""
    return next((event for event in reversed(events) if event.get("type") == kind), {})


def each_of(events: list[dict[str, Any]], kind: str, field: str) -> Iterator[dict[str, Any]]:
    """What stands in `field` of the events of that type."""
    return (values.mapping(event.get(field)) for event in events if event.get("type") == kind)
