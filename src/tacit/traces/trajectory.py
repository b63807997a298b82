"""The Trajectory: a Trace as training and evaluation want it, with labels and its helpers inside.

Owns how the steps of a trace become entries (one for what was said and the calls made with it, in
the order in which they happened) and which labels they get. How an entry is spelled is the
business of `trajectory_forms.py`, cutting down to a number of tokens that of `token_limit.py`, and
which sessions, where to and what is counted that of `work/export.py`.

What the reader of a form finds out by itself is not said a second time: that a call loads a skill
or hands work to a helper follows from the call.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from tacit.traces import tool_calls
from tacit.traces.observations import Correction, corrections
from tacit.traces.outcomes import Outcome
from tacit.traces.trace import (
    Activation,
    Compaction,
    Given,
    Head,
    Step,
    Subagent,
    Text,
    Told,
    ToolCall,
    Trace,
    Turn,
    Usage,
)

Speaker = Literal["system", "user", "agent"]
Aside = Activation | Subagent
"""What happens in a session and is no message."""


class StandsFor(msgspec.Struct, frozen=True):
    """The steps that one entry stands for: their first and last number before anything was cut."""

    steps: tuple[int, int]
    turns: tuple[int, int]
    tokens: int
    """As estimated, of the steps that were cut."""
    by: str
    """The model that summed them up; `no model` where only their number is told."""


class Entry(msgspec.Struct, frozen=True):
    """One step of a trajectory: a message to the agent, or what it said with the calls it made."""

    source: Speaker
    turn: int
    text: str = ""
    at: datetime | None = None
    calls: tuple[ToolCall, ...] = ()
    asides: tuple[tuple[Aside, ...], ...] = ((),)
    """Those right after the text, and then those after each call."""
    told: str = ""
    """For what the user did not type: who told it, `given`, `compaction`, `summary` or `aside`."""
    copied: bool = False
    """It stands in an earlier session, and was copied here as this one was resumed."""
    usage: Usage = Usage()
    """Of the whole turn, at the agent's last entry of it, or where it said nothing the last."""
    stands_for: StandsFor | None = None


class LoadedSkill(msgspec.Struct, frozen=True):
    """A skill that was loaded, and in which version: the digest of its SKILL.md, where known."""

    name: str
    version: str = ""
    turn: int = 0
    by: str = ""


class TaskLabel(msgspec.Struct, frozen=True):
    """How one turn ended."""

    turn: int
    outcome: Outcome


class Labels(msgspec.Struct, frozen=True):
    """What is known of a session beside its words. Copied turns are another session's."""

    outcome: Outcome = Outcome()
    tasks: tuple[TaskLabel, ...] = ()
    """The turns of which it is known."""
    corrections: tuple[Correction, ...] = ()
    skills: tuple[LoadedSkill, ...] = ()
    model: str = ""
    cost: float | None = None
    failed_calls: tuple[str, ...] = ()
    copied_turns: tuple[int, ...] = ()


class Trajectory(msgspec.Struct, frozen=True):
    """A session for training: its entries in order, its labels, and its helpers' own."""

    head: Head
    entries: tuple[Entry, ...]
    given: Given = Given()
    labels: Labels = Labels()
    usage: Usage = Usage()
    """Without that of the copied turns."""
    helpers: tuple["Trajectory", ...] = ()

    @property
    def id(self) -> str:
        return self.head.id

    def family(self) -> Iterator["Trajectory"]:
        """This one, its helpers, and theirs."""
        yield self
        for helper in self.helpers:
            yield from helper.family()

    @property
    def told_first(self) -> str:
        """The task of a helper, in the words that it was given."""
        return next((entry.text for entry in self.entries if entry.told == "agent"), "")


class Notes(msgspec.Struct, frozen=True):
    """What others know of a session: how it ended, the skills that were used, what is copied."""

    outcome: Outcome = Outcome()
    tasks: Sequence[Outcome] = ()
    skills: tuple[LoadedSkill, ...] = ()
    copied: Collection[int] = ()
    given: Given = Given()


def trajectory_of(
    trace: Trace, known: Notes | None = None, helpers: Iterable[Trajectory] = ()
) -> Trajectory:
    """`trace` as a trajectory."""
    known = known or Notes()
    given = known.given
    entries = [Entry("system", 0, given.system, told="given")] if given.system else []
    for turn in trace.turns:
        entries += _entries(turn, copied=turn.number in known.copied)
    own = Trace(trace.head, tuple(turn for turn in trace.turns if turn.number not in known.copied))
    usage = _without(trace, known.copied)
    labels = Labels(
        known.outcome,
        _task_labels(trace, known),
        tuple(corrections(own)),
        tuple(skill for skill in known.skills or _loaded(own) if skill.turn not in known.copied),
        trace.head.model,
        usage.cost,
        tuple(call.id for call in own.failures),
        tuple(sorted(known.copied)),
    )
    return Trajectory(trace.head, tuple(entries), given, labels, usage, tuple(helpers))


def _task_labels(trace: Trace, known: Notes) -> tuple[TaskLabel, ...]:
    pairs = zip(trace.turns, known.tasks, strict=False)
    return tuple(
        TaskLabel(turn.number, outcome)
        for turn, outcome in pairs
        if outcome.state != "unclear" and turn.number not in known.copied
    )


def _loaded(trace: Trace) -> list[LoadedSkill]:
    return [LoadedSkill(name, turn=turn.number) for turn in trace.turns for name in turn.skills]


def _without(trace: Trace, copied: Collection[int]) -> Usage:
    """The usage of a session, less what its copied turns took in the session they come from."""
    taken = Usage.sum(turn.usage for turn in trace.turns if turn.number in copied)
    whole = trace.usage
    return Usage(
        max(0, whole.input - taken.input),
        max(0, whole.output - taken.output),
        max(0, whole.cache_read - taken.cache_read),
        max(0, whole.cache_write - taken.cache_write),
        max(0, whole.reasoning - taken.reasoning),
        None if whole.cost is None else max(0.0, whole.cost - (taken.cost or 0.0)),
    )


def _entries(turn: Turn, *, copied: bool) -> list[Entry]:
    """The entries of one turn."""
    found = [Entry("user", turn.number, turn.prompt, turn.started)] if turn.prompt else []
    loaded: set[str] = set()
    for step in turn.steps:
        if isinstance(step, Activation | Subagent):
            _note(found, step, turn.number, loaded)
        elif isinstance(step, ToolCall) and found and _goes_with(found[-1], step):
            last = found[-1]
            found[-1] = msgspec.structs.replace(
                last, calls=(*last.calls, step), asides=(*last.asides, ())
            )
        else:
            found.append(_entry(step, turn.number))
    if found:
        said = [at for at, entry in enumerate(found) if entry.source == "agent"]
        place = said[-1] if said else -1
        found[place] = msgspec.structs.replace(found[place], usage=turn.usage)
    if not copied:
        return found
    # What it took was taken in the session that it comes from.
    return [msgspec.structs.replace(entry, copied=True, usage=Usage()) for entry in found]


def _entry(step: Step, turn: int) -> Entry:
    match step:
        case Text(text=text, at=at):
            return Entry("agent", turn, text, at)
        case ToolCall(at=at):
            return Entry("agent", turn, "", at, (step,), ((), ()))
        case Told(text=text, by=by, at=at):
            return Entry("system" if by == "system" else "user", turn, text, at, told=by)
        case Compaction(summary=summary, at=at):
            return Entry("system", turn, summary, at, told="compaction")
    raise TypeError(f"{type(step).__name__} is no message")


def _goes_with(entry: Entry, call: ToolCall) -> bool:
    """Whether `call` was made in the same breath: with a text, or before the calls of the entry
    had ended. Nobody says which answers of the model a trace's steps come from."""
    if entry.source != "agent":
        return False
    if not entry.calls:
        return True
    return any(_overlap(before, call) for before in entry.calls)


def _overlap(before: ToolCall, call: ToolCall) -> bool:
    if before.at is None or call.at is None:
        return False
    ended = before.at + timedelta(seconds=before.duration or 0.0)
    return call.at == before.at or before.at < call.at < ended


def _note(entries: list[Entry], step: Aside, turn: int, loaded: set[str]) -> None:
    """Note `step` at the entry that it follows, unless the call there tells it already."""
    if not entries:
        entries.append(Entry("system", turn, "", step.at, told="aside"))
    last = entries[-1]
    call = last.calls[-1] if last.calls else None
    if isinstance(step, Activation):
        follows = call is not None and step.name in _loads(call) and step.at == call.at
        if step.name in loaded:
            follows = True
        loaded.add(step.name)
    else:
        follows = call is not None and _hands_over(call) and step == tool_calls.delegation_of(call)
    if not follows:
        asides = (*last.asides[:-1], (*last.asides[-1], step))
        entries[-1] = msgspec.structs.replace(last, asides=asides)


def _loads(call: ToolCall) -> Sequence[str]:
    return () if call.failed else tuple(tool_calls.skills_loaded(call.kind, call.arguments))


def _hands_over(call: ToolCall) -> bool:
    return tool_calls.is_delegation(call.name)
