"""How tasks and sessions ended, each with the reason that says so.

A task is a turn: a prompt and what followed it, up to what the user says next. It is judged by the
checks that ran last, by what was shipped, and by the user's words; how a single call ended is
`outcomes.py`'s.
"""

import re
from collections.abc import Sequence

import msgspec

from tacit.base.display import shorten
from tacit.base.patterns import late_pattern
from tacit.traces.command_purposes import work_class
from tacit.traces.outcomes import Outcome, State, purpose_outcomes, stopped_early, telling_line
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import ToolCall, Trace, Turn

_PRAISE = late_pattern(
    r"^\W*(?:great|perfect|thanks?|thank you|works|it works|looks? good|lgtm|nice|awesome"
    r"|excellent|good job|well done"
    r"|super|parfait|merci|danke|perfekt|gracias|完美|谢谢|很好|ありがとう)\b|^\W*(?:完美|谢谢|很好|ありがとう)"
    r"|^\W*(?:ok(?:ay)?\W+|now\W+|yes\W+)?(?:commit|push|merge|ship|release|tag|create (?:a "
    r"|the )?(?:pr|pull request)|open a pr)\b",
    re.IGNORECASE,
)
# Each with words of which one stands in whatever it fits, in a text of plain letters.
_COMPLAINTS = (
    (("no", "wrong"), late_pattern(r"^\W*(?:no|nope|wrong)\b(?!\s+(?:problem|worries))", re.I)),
    (("work", "fixed", "there", "right", "correct", "pass"), late_pattern(
        r"\b(?:still|doesn['’]?t|does not|didn['’]?t|isn['’]?t|not)\s+(?:\w+\s+){0,2}(?:work"
        r"|working|fixed|there|right|correct|pass)\w*\b", re.I)),
    (("fail", "broken", "wrong", "red"), late_pattern(
        r"\b(?:still|checks?|tests?|ci|build)\s+(?:still\s+)?(?:fail|broken|wrong|red)\w*", re.I)),
    (("error", "issue", "bug", "problem", "log"), late_pattern(
        r"\bi(?:['’]ve)?\s+(?:\w+\s+){0,6}?(?:get|got|see|have)\s+(?:an?|the|th(?:is|at|ese))\s+"
        r"(?:\w+\s+){0,2}(?:error|issue|bug|problem|log)s?\b", re.I)),
    (("nein", "falsch"), late_pattern(r"不对|错了|还是不行|違う|nein|falsch", re.I)),
)  # fmt: skip
_THEN_SHIP = late_pattern(r"(?:^|\band|\bthen|,|\.)\s+(?:commit|push|merge)\b[^?]*$", re.IGNORECASE)
_SHORT_ORDER = 80
"""Characters up to which a prompt that ends in an order to ship asks for little else."""
_SHIPS = late_pattern(
    r"^(?:git push|git merge|gh pr (?:create|merge)|gh release|npm publish|cargo publish|twine)"
)


_CI_READ = late_pattern(r"\bgh (?:run (?:view|watch)|api)\b")
_CI_FAILED = late_pattern(r'^X \S|"conclusion": ?"failure"', re.MULTILINE)
_CI_PASSED = late_pattern(r'^✓ \S|"conclusion": ?"success"', re.MULTILINE)
_NO_HOOK = late_pattern(r"\s--no-verify\b")
_NAMES_CHECK = late_pattern(r"\b(?:tests?|ci|build|lint\w*|checks?|pipeline)\b", re.IGNORECASE)
_PROVES = ("test", "check")
"""Classes of work that show that something does what it should; a build shows that it builds."""


class TaskOutcome(msgspec.Struct, frozen=True):
    """How one turn ended by its own evidence, and what its prompt says of the turn before."""

    own: Outcome = Outcome()
    before: Outcome = Outcome()
    changed: bool = False
    """Whether it changed files."""
    failing: tuple[str, ...] = ()
    """The classes of checks that failed last, each with what it said."""
    passed: tuple[str, ...] = ()


def task_outcome(turn: Turn) -> TaskOutcome:
    """What a turn shows by itself: its last checks, what it shipped, the words that begin it."""
    last: dict[str, Outcome] = {}
    changed = stopped = forced = False
    for call in turn.calls:
        if call.kind in ("write", "edit") and not call.failed:
            changed = True
            last = {key: found for key, found in last.items() if found.failed}
        end, command = stopped_early(call), command_of(call)
        stopped = end is not None and end.state in ("cancelled", "unfinished")
        if "--no-verify" in command and _NO_HOOK.search(command):
            forced |= "no-verify" not in turn.prompt  # what the hook had said stands
        if (ci := _ci(call, command)) and any(_SHIPS.match(key) for key in last):
            last["ci"] = ci
        for name, outcome in purpose_outcomes(call):
            key = work_class(name) or (name if _SHIPS.match(name) else "format")
            key = "commit" if name.endswith("git commit") else key
            if key != "format" and (outcome.failed or outcome.state == "worked"):
                said = shorten(f"{name}: {outcome.evidence or outcome.state}", 200)
                state: State = "failed" if outcome.failed else "worked"
                last.pop(key, None)
                last[key] = Outcome(state, outcome.reason, said)
    return TaskOutcome(
        Outcome("unclear", "user") if stopped or forced else _by_checks(last, turn.prompt),
        _said_of_before(turn.prompt),
        changed,
        tuple(key for key, found in last.items() if found.failed),
        tuple(key for key, found in last.items() if not found.failed),
    )


def _ci(call: ToolCall, command: str) -> Outcome | None:
    """How a run of the forge's checks ended, where a call asked for it."""
    if "gh " not in command or not _CI_READ.search(command):
        return None
    if found := _CI_FAILED.search(call.result):
        return Outcome("failed", "output", telling_line(call.result[found.start() :]))
    return Outcome("worked", "output") if _CI_PASSED.search(call.result) else None


def _by_checks(last: dict[str, Outcome], prompt: str) -> Outcome:
    """What the last checks of a turn say together: a failure outweighs the rest, and that it
    builds or that a linter is content is success only where that was asked for."""
    ends = sorted(last.items(), key=lambda item: (item[1].failed, _proves(item[0], prompt)))
    if not ends:
        return Outcome()
    key, outcome = ends[-1]
    if outcome.failed or _proves(key, prompt):
        return outcome
    return Outcome("unclear", outcome.reason, outcome.evidence)


def _proves(key: str, prompt: str) -> bool:
    named = re.search(rf"\b{re.escape(key.rstrip('s'))}", prompt, re.IGNORECASE)
    return key in _PROVES or bool(_SHIPS.match(key)) or named is not None


def _said_of_before(prompt: str) -> Outcome:
    start = prompt.strip()[:300]
    lower = start.lower() if start.isascii() else ""
    for words, complaint in _COMPLAINTS:
        may_fit = not lower or any(word in lower for word in words)
        if may_fit and complaint.search(start):
            return Outcome("failed", "user", telling_line(start))
    pleased = _PRAISE.match(start) or (len(start) <= _SHORT_ORDER and _THEN_SHIP.search(start))
    return Outcome("worked", "user", telling_line(start)) if pleased else Outcome()


def task_outcomes(marks: Sequence[TaskOutcome]) -> list[Outcome]:
    """How each task ended: by what the user said next, else by its own evidence.

    A check that failed is over when checks of its class work, or when a commit that it had stopped
    was made on the user's order. Praise does not make a failed check good, and a check that passes
    does not answer a complaint that is not about it.
    """
    found = []
    failing: set[str] = set()
    for at, mark in enumerate(marks):
        stopped_before = "commit" in failing
        failing = (failing | set(mark.failing)) - set(mark.passed)
        said = marks[at + 1].before if at + 1 < len(marks) else Outcome()
        ordered = stopped_before and mark.own.evidence.partition(": ")[0].endswith("git commit")
        if said.state == "failed":
            found.append(said)
        elif said.state == "worked":
            unsure = Outcome("unclear", "user", mark.own.evidence)
            found.append(unsure if mark.own.state == "failed" else said)
        elif mark.own.state == "worked" and _unanswered(mark):
            found.append(Outcome("unclear", "user", mark.before.evidence))
        elif mark.own.state == "worked" and failing and not ordered:
            still = f"{', '.join(sorted(failing))} failed before, and did not work since"
            found.append(Outcome("unclear", "output", still))
        else:
            found.append(mark.own)
    return found


def _unanswered(mark: TaskOutcome) -> bool:
    """Whether a turn began with a complaint that is not about the checks that then passed."""
    complains = mark.before.state == "failed" and not _NAMES_CHECK.search(mark.before.evidence)
    return complains and any(key in _PROVES for key in mark.passed)


def session_outcome(marks: Sequence[TaskOutcome], verdict: str = "") -> Outcome:
    """How a session ended: a verifier's verdict, else the last task that can be judged, unless
    files were changed after it."""
    if verdict:
        return Outcome(_judged(verdict.rpartition(": ")[2]), "verdict", verdict)
    for mark, outcome in zip(reversed(marks), reversed(task_outcomes(marks)), strict=True):
        if outcome.state != "unclear" or mark.changed:
            return outcome
    return Outcome()


def _judged(value: str) -> State:
    """What a verdict's value says: true and false, or a number, of which a part is neither."""
    try:
        number = float(value)
    except ValueError:
        return "failed" if value == "false" else "worked"
    return "worked" if number >= 1 else "failed" if number <= 0 else "unclear"


def trace_outcome(trace: Trace) -> Outcome:
    """How the session of `trace` ended."""
    return session_outcome([task_outcome(turn) for turn in trace.turns], trace.head.verdict)
