"""What the improver is told: the skill, the run in which it failed, what was tried, which tools."""

import json
from collections.abc import Iterable, Mapping

from tacit.agent import foreign
from tacit.changes.files import File
from tacit.learn.improve.checking import Tools
from tacit.learn.improve.failing import Failure
from tacit.learn.improve.repairs import Attempt
from tacit.learn.usage import Run, Step, shortened

MOST = 60_000
"""Characters of the run."""
_MOST_FILE = 20_000
_MOST_FILES = 60_000
_AROUND = 6
"""Steps before and after a failure that are told in full."""


def brief(
    name: str,
    files: Mapping[str, File],
    run: Run,
    failures: Iterable[Failure],
    earlier: Iterable[Attempt],
    tools: Tools,
) -> str:
    """The first message of a repair."""
    failed = tuple(failures)
    parts = [
        f"# The skill `{name}`\n\n{_files(files)}",
        f"# What failed\n\n{_failures(failed)}",
        f"# The run, step by step\n\n{_steps(run, {f.step.number for f in failed})}",
        f"# Earlier repairs of this skill\n\n{_earlier(earlier)}",
        f"# Tools that exist\n\n{_tools(tools)}",
    ]
    return "\n\n".join(parts)


def _files(files: Mapping[str, File]) -> str:
    left = _MOST_FILES
    parts = []
    for path in sorted(files, key=lambda path: (path != "SKILL.md", path)):
        file = files[path]
        runs = ", can be run" if file.kind == "program" else ""
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            parts.append(f"## {path} ({len(file.data):,} bytes, not text{runs})")
            continue
        shown = shortened(text, min(_MOST_FILE, max(left, 0))) if left > 0 else "(read it)"
        left -= len(shown)
        parts.append(f"## {path}{runs}\n\n{fenced(shown)}")
    return "\n\n".join(parts)


def _failures(failures: tuple[Failure, ...]) -> str:
    rows = []
    for failure in failures:
        step = failure.step
        cost = f"got over after {failure.cost} calls" if failure.cost else "never got over"
        rows.append(f"- step {step.number}, {step.tool}: {shortened(step.said, 300)} ({cost})")
    return "\n".join(rows) or "(nothing that was counted; judge for yourself)"


def _steps(run: Run, failed: set[int]) -> str:
    """Those around the failures in full, the others by a line, as far as there is room."""
    near = {number + d for number in failed for d in range(-_AROUND, _AROUND + 1)}
    left = MOST
    parts = []
    for step in run.steps:
        full = not failed or step.number in near
        text = _step(step, full=full and left > 2_000)
        left -= len(text)
        if left < 0 and step.number not in failed:
            continue
        parts.append(text)
    return "\n\n".join(parts) or "(no step was recorded)"


def _step(step: Step, *, full: bool) -> str:
    state = "FAILED" if step.failed else "ok" if step.finished else "no result"
    arguments = json.dumps(step.arguments, ensure_ascii=False, default=str)
    head = f"## step {step.number}: {step.tool} ({state})\n\n{shortened(arguments, 1_500)}"
    if not full:
        return head
    why = f"\n\nerror: {step.error}" if step.error and step.error not in step.result else ""
    return f"{head}{why}\n\n{fenced(step.result)}" if step.result else f"{head}{why}"


def _earlier(earlier: Iterable[Attempt]) -> str:
    rows = []
    for attempt in earlier:
        if attempt.outcome in ("begun", "put off"):
            continue
        note = f": {attempt.note}" if attempt.note else ""
        diff = f"\n{fenced(shortened(attempt.tried, 3_000))}" if attempt.tried else ""
        warning = "\nDo not do this again." if attempt.outcome == "rolled back" else ""
        rows.append(f"- {attempt.at:%Y-%m-%d}, {attempt.outcome}{note}{diff}{warning}")
    return "\n".join(rows[:5]) or "None."


def _tools(tools: Tools) -> str:
    names = ", ".join(sorted(tools.names)) or "none was used"
    if not tools.complete:
        return f"Seen in this session of {tools.host}: {names}. There may be more."
    others = foreign.mapping(set(tools.names))
    return f"{names}\n\nOther names, and what exists here instead:\n\n{others}"


def fenced(text: str) -> str:
    """`text` between fences longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
