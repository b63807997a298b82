"""Cheap signals: what in a session is worth a reviewer's look, found by counting alone.

Each names the turn and the step that it stands on, and is worded from what the user said and what
the agent called, never from what a tool printed: a signal stands above the fence.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from tacit.base.terminal import one_line
from tacit.learn.counting import Finding
from tacit.learn.purposes import purpose
from tacit.learn.telling import clean
from tacit.traces import derived
from tacit.traces.trace import REFUSED, Activation, Step, ToolCall, Trace

Kind = Literal["correction", "refusal", "mended", "stuck", "repeated", "habit", "skill-failed"]

_OFTEN = 3
"""Runs of one purpose in one session from which it counts as a procedure that is repeated."""
_MOST = 12
"""Signals of one kind that are told."""


class Signal(msgspec.Struct, frozen=True):
    """One thing that stands out."""

    kind: Kind
    turn: int
    text: str
    steps: tuple[str, ...] = ()
    """The steps that it stands on, as the digest numbers them."""


def signals(trace: Trace, findings: Iterable[Finding] = ()) -> list[Signal]:
    """What stands out in `trace`, the strongest first; `findings` are what counting over the
    project's sessions gave."""
    place = step_names(trace)
    found = [
        *_corrections(trace, place),
        *_mended(trace, place),
        *_skills(trace, place),
        *_stuck(trace, place),
        *_repeated(trace),
        *_habits(findings),
    ]
    counts: Counter[str] = Counter()
    kept = []
    for signal in found:
        counts[signal.kind] += 1
        if counts[signal.kind] <= _MOST:
            kept.append(signal)
    return kept


def weight(trace: Trace) -> int:
    """How much speaks for looking at a session, for putting several in order."""
    worth = {"correction": 5, "refusal": 4, "mended": 3, "skill-failed": 4, "stuck": 2}
    return sum(worth.get(signal.kind, 1) for signal in signals(trace))


def step_names(trace: Trace) -> dict[int, str]:
    """How each step is called, by its identity: `3.2` is the second step of turn 3."""
    return {
        id(step): f"{turn.number}.{number}"
        for turn in trace.turns
        for number, step in enumerate(turn.steps, 1)
    }


def _short(name: str) -> str:
    """A name as one word or two: whoever made the tool chose it."""
    return one_line(name)[:60]


def _corrections(trace: Trace, place: dict[int, str]) -> list[Signal]:
    found = [
        Signal("correction", c.turn, "the user put something right", (f"{c.turn}",))
        for c in derived.corrections(trace)
        if c.by == "prompt"
    ]
    for turn in trace.turns:
        for call in turn.calls:
            if call.error == REFUSED:
                text = f"the user refused a call of {_short(call.name)}"
                found.append(Signal("refusal", turn.number, text, (place[id(call)],)))
    return found


def _mended(trace: Trace, place: dict[int, str]) -> list[Signal]:
    found = []
    for mended in derived.mended(trace):
        if mended.failed.error == REFUSED:
            continue
        steps = (place[id(mended.failed)], place[id(mended.succeeded)])
        changed = (
            " ".join(one_line(part) for part in mended.changed)[:200] if mended.changed else ""
        )
        what = f"; changed: {clean(changed)}" if changed else "; called the same way"
        text = f"{_short(mended.failed.name)} failed, then worked{what}"
        found.append(Signal("mended", mended.turn, text, steps))
    return found


def _skills(trace: Trace, place: dict[int, str]) -> list[Signal]:
    """A skill was loaded, and calls failed after it in the same turn."""
    found = []
    for turn in trace.turns:
        for name in dict.fromkeys(turn.skills):
            loaded = [at for at, step in enumerate(turn.steps) if _is_loading(step, name)]
            failed = [
                place[id(step)]
                for step in turn.steps[loaded[0] :]
                if isinstance(step, ToolCall) and step.failed
            ]
            if failed:
                text = f"the skill {_short(name)} was in use and {len(failed)} calls failed"
                found.append(Signal("skill-failed", turn.number, text, tuple(failed[:6])))
    return found


def _is_loading(step: Step, name: str) -> bool:
    return isinstance(step, Activation) and step.name == name


def _stuck(trace: Trace, place: dict[int, str]) -> list[Signal]:
    """The same purpose failed again and again."""
    failed: dict[str, list[str]] = {}
    last: dict[str, int] = {}
    for turn in trace.turns:
        for call in turn.calls:
            key = purpose(derived.command_of(call)) if call.kind == "shell" else call.name
            if call.failed and key:
                failed.setdefault(key, []).append(place[id(call)])
                last[key] = turn.number
    return [
        Signal("stuck", last[key], f"{_short(key)} failed {len(steps)} times", tuple(steps[:6]))
        for key, steps in failed.items()
        if len(steps) >= _OFTEN
    ]


def _repeated(trace: Trace) -> list[Signal]:
    ran: Counter[str] = Counter()
    for command in derived.commands(trace):
        if not command.failed and (key := purpose(command.text)):
            ran[key] += 1
    return [
        Signal("repeated", 0, f"{_short(key)} was run {count} times")
        for key, count in ran.most_common(4)
        if count >= _OFTEN
    ]


def _habits(findings: Iterable[Finding]) -> list[Signal]:
    found = []
    for finding in findings:
        sessions = len(finding.sessions)
        if finding.steps:
            way = " ; ".join(one_line(step)[:120] for step in finding.steps)
            text = f"in {sessions} sessions of this project, in this order: {clean(way)}"
        else:
            works = clean(one_line(finding.works))[:160]
            text = f"in {sessions} sessions: {_short(finding.purpose)} works as `{works}`"
        found.append(Signal("habit", 0, text))
    return found
