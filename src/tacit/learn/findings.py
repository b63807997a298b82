"""What sessions show by counting alone, without a model.

Findings, over the sessions of a project: commands that failed and then worked, what the user
corrected, sequences of commands that recur. Signals, in one session: what is worth a reviewer's
attention, each with the steps that it stands on, worded from what the user said and the agent
called and never from what a tool printed.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.learn.command_purposes import abstracted, purpose, slug
from tacit.traces import observations
from tacit.traces.trace import REFUSED, Activation, Step, ToolCall, Trace

FEWEST = 2
"""Sessions in which a sequence must stand to count as a habit."""
_LONGEST, _SHORTEST = 8, 3
_MOST_HABITS = 3
_MOST_STEPS = 2000
"""Commands of one session that are compared with those of others."""
_MOST_LETTERS = 2000
"""A longer command is a program that was typed in, not a way to run one."""


class Sighting(msgspec.Struct, frozen=True):
    """Where something was seen."""

    session: str
    turn: int


class FailedForm(msgspec.Struct, frozen=True):
    """A form of a command that failed, why, what worked instead, and where that was seen."""

    command: str
    error: str
    mended_by: str
    seen: tuple[Sighting, ...]


class Correction(msgspec.Struct, frozen=True):
    """What the user put right, in their own words."""

    text: str
    seen: tuple[Sighting, ...]


class Finding(msgspec.Struct, frozen=True):
    """All that was counted about one purpose in one project."""

    project: str
    purpose: str
    works: str
    """The form to use: the last that worked, where the user put it right the last after that."""
    failures: tuple[FailedForm, ...] = ()
    wishes: tuple[Correction, ...] = ()
    steps: tuple[str, ...] = ()
    """Of a habit: the commands in their order."""
    sessions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"run-{slug(self.purpose)}" if not self.steps else f"{slug(self.purpose)}-routine"


def count_findings(traces: Iterable[Trace]) -> list[Finding]:
    """What the sessions show, the best supported first."""
    by_project: dict[str, list[Trace]] = {}
    for trace in traces:
        by_project.setdefault(trace.project, []).append(trace)
    found = [
        finding
        for project, own in by_project.items()
        for finding in _project_findings(project, own)
    ]
    return sorted(found, key=lambda f: (-len(f.wishes), -len(f.sessions), f.project, f.purpose))


def _project_findings(project: str, traces: list[Trace]) -> list[Finding]:
    counts: dict[str, _Counted] = {}
    for trace in sorted(traces, key=lambda t: (str(t.head.ended or ""), t.id)):
        _count(trace, counts)
    found = [c.finding(project, key) for key, c in counts.items() if c.teaches()]
    return [*(f for f in found if f.failures or f.wishes), *_habits(project, traces)]


class _Counted:
    """What is known so far of one purpose."""

    def __init__(self) -> None:
        self.failures: dict[tuple[str, str], list[Sighting]] = {}
        self.fixes: dict[tuple[str, str], str] = {}
        self.wishes: dict[str, list[Sighting]] = {}
        self.right: list[str] = []
        self.after_wish: list[str] = []
        self.sessions: dict[str, None] = {}

    def teaches(self) -> bool:
        """Whether there is something to learn: a failure or a wish, and a way that works."""
        return bool(self.right) and bool(self.fixes or self.wishes)

    def finding(self, project: str, key: str) -> Finding:
        works = (self.after_wish or self.right)[-1]
        # What works now as it stands did not fail because of how it was called.
        failures = tuple(
            FailedForm(command, error, self.fixes.get((command, error), ""), tuple(seen))
            for (command, error), seen in self.failures.items()
            if (command, error) in self.fixes and command != works
        )
        wishes = tuple(Correction(text, tuple(seen)) for text, seen in self.wishes.items())
        return Finding(project, key, works, failures, wishes, (), tuple(self.sessions))


def _count(trace: Trace, counts: dict[str, _Counted]) -> None:
    corrected = {c.turn: c.text for c in observations.corrections(trace) if c.by == "prompt"}
    recovered = {id(r.failed): r for r in _recoveries_by_command(trace)}
    tried: set[str] = set()
    for turn in trace.turns:
        wish = corrected.get(turn.number, "")
        tried_before = frozenset(tried)
        for call in turn.calls:
            if call.kind != "shell" or not (command := observations.command_of(call).strip()):
                continue
            key = purpose(command)
            if not key or len(command) > _MOST_LETTERS:
                continue
            tried.add(key)
            counted = counts.setdefault(key, _Counted())
            counted.sessions[trace.id] = None
            seen = Sighting(trace.id, turn.number)
            if call.failed:
                _failed(counted, call, command, seen, recovered.get(id(call)))
            elif call.finished:
                counted.right.append(command)
                if wish and key in tried_before:  # one puts right what was done
                    counted.after_wish.append(command)
                    counted.wishes.setdefault(wish, []).append(seen)


def _recoveries_by_command(trace: Trace) -> list[observations.Recovery]:
    """The failures that another form of the command got over, rather than an edit in between."""
    place = {id(call): at for at, call in enumerate(trace.calls)}
    edits = [at for at, c in enumerate(trace.calls) if c.kind in ("write", "edit") and not c.failed]
    return [
        r
        for r in observations.recoveries(trace)
        if r.before.split() != r.after.split()
        and not any(place[id(r.failed)] < at < place[id(r.succeeded)] for at in edits)
    ]


def _failed(
    counted: _Counted,
    call: ToolCall,
    command: str,
    seen: Sighting,
    recovery: observations.Recovery | None,
) -> None:
    error = " ".join((call.error or call.result.strip().rsplit("\n", 1)[-1]).split())[:160]
    counted.failures.setdefault((command, error), []).append(seen)
    if recovery is not None:
        counted.fixes[(command, error)] = observations.command_of(recovery.succeeded).strip()


def _habits(project: str, traces: list[Trace]) -> list[Finding]:
    """Sequences of purposes that stand, in this order, in several sessions."""
    ways = {trace.id: _commands_by_purpose(trace)[:_MOST_STEPS] for trace in traces}
    support: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for session, way in ways.items():
        keys = [key for key, _ in way]
        for size in range(_SHORTEST, _LONGEST + 1):
            for at in range(len(keys) - size + 1):
                part = tuple(keys[at : at + size])
                if len(set(part)) == size:
                    commands = [command for _, command in way[at : at + size]]
                    support.setdefault(part, {}).setdefault(session, commands)
    common = {part: seen for part, seen in support.items() if len(seen) >= FEWEST}
    found: list[Finding] = []
    for part in sorted(_maximal(common), key=lambda p: (-len(common[p]), -len(p), p)):
        if len(found) == _MOST_HABITS:
            break
        seen = common[part]
        steps = tuple(
            abstracted([commands[at] for commands in seen.values()]) for at in range(len(part))
        )
        found.append(
            Finding(project, f"{part[0]} {part[-1]}", steps[-1], (), (), steps, tuple(seen))
        )
    return found


def _maximal(common: dict[tuple[str, ...], dict[str, list[str]]]) -> set[tuple[str, ...]]:
    """The sequences that are not part of a longer one seen in the same sessions."""
    maximal = set(common)
    for longer, seen in common.items():
        for size in range(_SHORTEST, len(longer)):
            for at in range(len(longer) - size + 1):
                part = longer[at : at + size]
                if common[part].keys() <= seen.keys():
                    maximal.discard(part)
    return maximal


def _commands_by_purpose(trace: Trace) -> list[tuple[str, str]]:
    """The purposes that were served, in order, each with its command; repetitions once."""
    done = [
        (key, text)
        for command in observations.commands(trace)
        if not command.failed and (key := purpose(text := command.text.strip()))
    ]
    return [b for a, b in pairwise([("", ""), *done]) if a[0] != b[0]]


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


def session_signals(trace: Trace, findings: Iterable[Finding] = ()) -> list[Signal]:
    """What stands out in `trace`, the strongest first; `findings` are what counting over the
    project's sessions gave."""
    place = step_names(trace)
    found = [
        *_corrections(trace, place),
        *_recoveries(trace, place),
        *_skills(trace, place),
        *_stuck(trace, place),
        *_repeated(trace),
        *_habit_signals(findings),
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
            key = purpose(observations.command_of(call)) if call.kind == "shell" else call.name
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
    for command in observations.commands(trace):
        if not command.failed and (key := purpose(command.text)):
            ran[key] += 1
    return [
        Signal("repeated", 0, f"{_short(key)} was run {count} times")
        for key, count in ran.most_common(4)
        if count >= _OFTEN
    ]


def _habit_signals(findings: Iterable[Finding]) -> list[Signal]:
    found = []
    for finding in findings:
        sessions = len(finding.sessions)
        if finding.steps:
            way = " ; ".join(shorten(one_line(step), 120) for step in finding.steps)
            text = f"in {sessions} sessions of this project, in this order: {clean(way)}"
        else:
            works = shorten(clean(one_line(finding.works)), 160)
            text = f"in {sessions} sessions: {_short(finding.purpose)} works as `{works}`"
        found.append(Signal("habit", 0, text))
    return found
