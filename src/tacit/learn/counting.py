"""Learning without a model: what can be drafted from sessions by counting alone.

Looks for commands that failed and then worked, for what the user put right, and for sequences of
commands that recur. What it finds is a draft with its evidence, never more: it goes to the inbox,
and a reviewer with a model is shown it first.
"""

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from tacit.learn.purposes import abstracted, purpose, slug
from tacit.traces import derived
from tacit.traces.trace import ToolCall, Trace

FEWEST = 2
"""Sessions in which a sequence must stand to count as a habit."""
_LONGEST, _SHORTEST = 8, 3
_MOST_HABITS = 3
_MOST_STEPS = 2000
"""Commands of one session that are compared with those of others."""
_MOST_LETTERS = 2000
"""A longer command is a program that was typed in, not a way to run one."""


class Seen(msgspec.Struct, frozen=True):
    """Where something was seen."""

    session: str
    turn: int


class Failure(msgspec.Struct, frozen=True):
    """A form of a command that failed, why, what worked instead, and where that was seen."""

    command: str
    error: str
    mended_by: str
    seen: tuple[Seen, ...]


class Wish(msgspec.Struct, frozen=True):
    """What the user put right, in their own words."""

    text: str
    seen: tuple[Seen, ...]


class Finding(msgspec.Struct, frozen=True):
    """All that was counted about one purpose in one project."""

    project: str
    purpose: str
    works: str
    """The form to use: the last that worked, where the user put it right the last after that."""
    failures: tuple[Failure, ...] = ()
    wishes: tuple[Wish, ...] = ()
    steps: tuple[str, ...] = ()
    """Of a habit: the commands in their order."""
    sessions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"run-{slug(self.purpose)}" if not self.steps else f"{slug(self.purpose)}-routine"


def findings(traces: Iterable[Trace]) -> list[Finding]:
    """What the sessions show, the best supported first."""
    by_project: dict[str, list[Trace]] = {}
    for trace in traces:
        by_project.setdefault(trace.project, []).append(trace)
    found = [finding for project, own in by_project.items() for finding in _of(project, own)]
    return sorted(found, key=lambda f: (-len(f.wishes), -len(f.sessions), f.project, f.purpose))


def _of(project: str, traces: list[Trace]) -> list[Finding]:
    counts: dict[str, _Counted] = {}
    for trace in sorted(traces, key=lambda t: (str(t.head.ended or ""), t.id)):
        _count(trace, counts)
    found = [c.finding(project, key) for key, c in counts.items() if c.teaches()]
    return [*(f for f in found if f.failures or f.wishes), *_habits(project, traces)]


class _Counted:
    """What is known so far of one purpose."""

    def __init__(self) -> None:
        self.failures: dict[tuple[str, str], list[Seen]] = {}
        self.mended: dict[tuple[str, str], str] = {}
        self.wishes: dict[str, list[Seen]] = {}
        self.right: list[str] = []
        self.after_wish: list[str] = []
        self.sessions: dict[str, None] = {}

    def teaches(self) -> bool:
        """Whether there is something to learn: a mended failure or a wish, and a way that works."""
        return bool(self.right) and bool(self.mended or self.wishes)

    def finding(self, project: str, key: str) -> Finding:
        works = (self.after_wish or self.right)[-1]
        # What works now as it stands did not fail because of how it was called.
        failures = tuple(
            Failure(command, error, self.mended.get((command, error), ""), tuple(seen))
            for (command, error), seen in self.failures.items()
            if (command, error) in self.mended and command != works
        )
        wishes = tuple(Wish(text, tuple(seen)) for text, seen in self.wishes.items())
        return Finding(project, key, works, failures, wishes, (), tuple(self.sessions))


def _count(trace: Trace, counts: dict[str, _Counted]) -> None:
    corrected = {c.turn: c.text for c in derived.corrections(trace) if c.by == "prompt"}
    mended = {id(m.failed): m for m in _by_the_command(trace)}
    tried: set[str] = set()
    for turn in trace.turns:
        wish = corrected.get(turn.number, "")
        tried_before = frozenset(tried)
        for call in turn.calls:
            if call.kind != "shell" or not (command := derived.command_of(call).strip()):
                continue
            key = purpose(command)
            if not key or len(command) > _MOST_LETTERS:
                continue
            tried.add(key)
            counted = counts.setdefault(key, _Counted())
            counted.sessions[trace.id] = None
            seen = Seen(trace.id, turn.number)
            if call.failed:
                _failed(counted, call, command, seen, mended.get(id(call)))
            elif call.finished:
                counted.right.append(command)
                if wish and key in tried_before:  # one puts right what was done
                    counted.after_wish.append(command)
                    counted.wishes.setdefault(wish, []).append(seen)


def _by_the_command(trace: Trace) -> list[derived.Mended]:
    """The failures that another form of the command mended, rather than an edit in between."""
    place = {id(call): at for at, call in enumerate(trace.calls)}
    edits = [at for at, c in enumerate(trace.calls) if c.kind in ("write", "edit") and not c.failed]
    return [
        m
        for m in derived.mended(trace)
        if m.before.split() != m.after.split()
        and not any(place[id(m.failed)] < at < place[id(m.succeeded)] for at in edits)
    ]


def _failed(
    counted: _Counted, call: ToolCall, command: str, seen: Seen, mended: derived.Mended | None
) -> None:
    error = " ".join((call.error or call.result.strip().rsplit("\n", 1)[-1]).split())[:160]
    counted.failures.setdefault((command, error), []).append(seen)
    if mended is not None:
        counted.mended[(command, error)] = derived.command_of(mended.succeeded).strip()


def _habits(project: str, traces: list[Trace]) -> list[Finding]:
    """Sequences of purposes that stand, in this order, in several sessions."""
    ways = {trace.id: _way(trace)[:_MOST_STEPS] for trace in traces}
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
    for part in sorted(_whole(common), key=lambda p: (-len(common[p]), -len(p), p)):
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


def _whole(common: dict[tuple[str, ...], dict[str, list[str]]]) -> set[tuple[str, ...]]:
    """Those that no longer one, seen in the same sessions, holds."""
    whole = set(common)
    for longer, seen in common.items():
        for size in range(_SHORTEST, len(longer)):
            for at in range(len(longer) - size + 1):
                part = longer[at : at + size]
                if common[part].keys() <= seen.keys():
                    whole.discard(part)
    return whole


def _way(trace: Trace) -> list[tuple[str, str]]:
    """The purposes that were served, in order, each with its command; repetitions once."""
    done = [
        (key, text)
        for command in derived.commands(trace)
        if not command.failed and (key := purpose(text := command.text.strip()))
    ]
    return [b for a, b in pairwise([("", ""), *done]) if a[0] != b[0]]
