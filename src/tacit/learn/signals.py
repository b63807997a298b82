"""What stands out in one session: what is worth a reviewer's attention.

Each signal names the steps that it stands on, and is worded from what the user said and the agent
called, never from what a tool printed. What recurs over sessions is counted by `findings.py`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.base.display import counted, one_line, shorten
from tacit.base.secrets import clean
from tacit.traces import observations
from tacit.traces.command_purposes import purpose
from tacit.traces.outcomes import call_outcome, purpose_outcomes
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import REFUSED, Activation, Step, ToolCall, Trace

if TYPE_CHECKING:
    from tacit.learn.demands import Finding

SignalKind = Literal[
    "correction", "refusal", "mended", "stuck", "repeated", "habit", "skill-failed"
]

_OFTEN = 3
"""Runs of one purpose in one session from which it counts as a procedure that is repeated."""
_MOST = 12
"""Signals of one kind that are told."""


class Signal(msgspec.Struct, frozen=True):
    """One thing that stands out."""

    kind: SignalKind
    turn: int
    text: str
    steps: tuple[str, ...] = ()
    """The steps that it stands on, as the digest numbers them."""


def session_signals(trace: Trace, findings: "Iterable[Finding]" = ()) -> list[Signal]:
    """What stands out in `trace`, the strongest first; `findings` are what counting over the
    project's sessions gave."""
    place = step_names(trace)
    found = [
        *_corrections(trace, place),
        *_recoveries(trace, place),
        *_skills(trace, place),
        *_stuck(trace, place),
        *_repeated(trace),
        *_counted_signals(findings),
    ]
    counts: Counter[str] = Counter()
    kept = []
    for signal in found:
        counts[signal.kind] += 1
        if counts[signal.kind] <= _MOST:
            kept.append(signal)
    return kept


def session_weight(trace: Trace) -> int:
    """How much speaks for reviewing a session, for putting several in order."""
    worth = {"correction": 5, "refusal": 4, "mended": 3, "skill-failed": 4, "stuck": 2}
    return sum(worth.get(signal.kind, 1) for signal in session_signals(trace))


def step_names(trace: Trace) -> dict[int, str]:
    """How each step is called, by its identity: `3.2` is the second step of turn 3."""
    return {
        id(step): f"{turn.number}.{number}"
        for turn in trace.turns
        for number, step in enumerate(turn.steps, 1)
    }


def _short(name: str) -> str:
    """A name as one word or two: whoever made the tool chose it."""
    return shorten(one_line(name), 60)


def _corrections(trace: Trace, place: dict[int, str]) -> list[Signal]:
    found = [
        Signal("correction", c.turn, "the user put something right", (f"{c.turn}",))
        for c in observations.corrections(trace)
        if c.by == "prompt"
    ]
    for turn in trace.turns:
        for call in turn.calls:
            if call.error == REFUSED:
                text = f"the user refused a call of {_short(call.name)}"
                found.append(Signal("refusal", turn.number, text, (place[id(call)],)))
    return found


def _recoveries(trace: Trace, place: dict[int, str]) -> list[Signal]:
    found = []
    for recovery in observations.recoveries(trace):
        if recovery.failed.error == REFUSED:
            continue
        steps = (place[id(recovery.failed)], place[id(recovery.succeeded)])
        changed = shorten(" ".join(one_line(part) for part in recovery.changed), 200)
        what = f"; changed: {clean(changed)}" if changed else "; called the same way"
        text = f"{_short(recovery.failed.name)} failed, then worked{what}"
        found.append(Signal("mended", recovery.turn, text, steps))
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
                if isinstance(step, ToolCall) and call_outcome(step).failed
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
            key = purpose(command_of(call)) if call.kind == "shell" else call.name
            if key and call_outcome(call).failed:
                failed.setdefault(key, []).append(place[id(call)])
                last[key] = turn.number
    return [
        Signal("stuck", last[key], f"{_short(key)} failed {len(steps)} times", tuple(steps[:6]))
        for key, steps in failed.items()
        if len(steps) >= _OFTEN
    ]


def _repeated(trace: Trace) -> list[Signal]:
    ran = Counter(
        name
        for call in trace.each_call()
        for name, outcome in purpose_outcomes(call)
        if outcome.state == "worked"
    )
    return [
        Signal("repeated", 0, f"{_short(key)} was run {count} times")
        for key, count in ran.most_common(4)
        if count >= _OFTEN
    ]


def _counted_signals(findings: "Iterable[Finding]") -> list[Signal]:
    """What was counted over the project's sessions, as rates; never from what a tool printed."""
    found = []
    for finding in findings:
        if text := _counted_text(finding):
            sessions = counted(len(finding.sessions), "session")
            found.append(Signal("habit", 0, f"in {sessions} of this project: {clean(text)}"))
    return found


def _counted_text(finding: "Finding") -> str:
    # What counts is loaded by those alone who have counted.
    from tacit.learn.demands import RefusalFinding, RequestFinding, StagesFinding
    from tacit.learn.findings import ChecksFinding, ProcedureFinding, TroubleFinding
    from tacit.learn.quotations import fact_line

    match finding:
        case ChecksFinding(rates=rates):
            return "; ".join(
                f"{_short(r.purpose)} failed {r.failed} of {r.runs} times" for r in rates[:6]
            )
        case TroubleFinding(program=program, troubles=troubles):
            failed = sum(trouble.failed for trouble in troubles)
            return f"{_short(program)} failed {failed} times because of how it was called"
        case ProcedureFinding(goal=goal, steps=steps):
            way = " ; ".join(shorten(one_line(step.text), 80) for step in steps)
            return f"before {_short(goal)}: {way}"
        case RequestFinding() | StagesFinding():
            return fact_line(finding, "this project")[2]
        case RefusalFinding(purposes=names):
            return f"the user refused {', '.join(map(_short, names))}"
    return ""
