"""A finding as a SKILL.md: a draft that says of itself that it was made by counting."""

import os
import re
from datetime import date

import msgspec

from tacit.base.terminal import one_line, plain
from tacit.learn.counting import Failure, Finding
from tacit.skills.naming import suggest


class Draft(msgspec.Struct, frozen=True):
    """A skill to propose, with the sessions that show why."""

    name: str
    text: str
    project: str
    reason: str
    evidence: tuple[str, ...]


def draft(finding: Finding, today: date | None = None) -> Draft:
    """The draft for one finding."""
    where = _project(finding.project)
    count = len(finding.sessions)
    sessions = f"{count} session{'s' if count != 1 else ''}"
    name = suggest(finding.name)
    if finding.steps:
        last = finding.purpose.split(" ", 1)[-1]
        about = f"The steps from {finding.steps[0].split()[0]} to {last} in {where}, in order"
    else:
        what = finding.purpose
        about = f"How to run {what} in {where}, and what goes wrong when it is run otherwise"
    lines = [
        "---",
        f"name: {name}",
        f"description: {_quoted(f'{about}. Use before running it. Draft from {sessions}.')}",
        "metadata:",
        "  source: auto-skill",
        "  draft: 'true'",
        f"  learned: '{(today or date.today()).isoformat()}'",
        "  method: counting",
        "---",
        "",
        f"# {_title(finding)}",
        "",
        f"A draft, made by counting over {sessions}. Check it before you rely on it.",
        "",
        *_body(finding),
    ]
    reason = f"{_why(finding)} ({sessions})"
    return Draft(name, "\n".join(lines) + "\n", finding.project, reason, finding.sessions)


def _title(finding: Finding) -> str:
    return "The usual steps" if finding.steps else f"Running `{finding.purpose}`"


def _body(finding: Finding) -> list[str]:
    if finding.steps:
        lines = ["Done in this order, each step having worked:", ""]
        lines += [f"{number}. {_code(step)}" for number, step in enumerate(finding.steps, 1)]
        if any("<value>" in step for step in finding.steps):
            lines += ["", "`<value>` stands for what differed from session to session."]
        return lines
    lines = ["1. Run it as it last worked:", "", *_block(finding.works)]
    if finding.wishes:
        lines += ["", "2. What the user asked for, in their own words:", ""]
        lines += [f'   - "{_cut(wish.text, 400)}"' for wish in finding.wishes]
    if finding.failures:
        lines += ["", "## What fails", ""]
        for failure in finding.failures:
            lines += _failure(failure, finding.works)
    return lines


def _failure(failure: Failure, works: str) -> list[str]:
    times = len(failure.seen)
    often = f"{times} time{'s' if times != 1 else ''}"
    why = f" with {_code(failure.error)}" if failure.error else ""
    lines = [f"- {_code(failure.command)} failed {often}{why}."]
    if failure.mended_by and failure.mended_by != works:
        first = _code(failure.mended_by)
        lines.append(f"  At first it was mended by {first}; the form above came later.")
    return lines


def _why(finding: Finding) -> str:
    if finding.steps:
        return f"{len(finding.steps)} commands recur in the same order"
    if finding.wishes and finding.failures:
        return f"{finding.purpose} failed, was mended, and the user put it right"
    if finding.wishes:
        return f"the user put right how {finding.purpose} is run"
    return f"{finding.purpose} failed and was mended"


def _project(folder: str) -> str:
    """The project's name, where it is one; a folder may be called anything."""
    name = os.path.basename(folder.rstrip("/"))
    return name if re.fullmatch(r"[\w.+-]{1,60}", name) else "this project"


def _block(command: str) -> list[str]:
    """A command as a code block inside a list item, as it was typed."""
    return [f"       {line.rstrip()}" for line in plain(command).strip().splitlines()]


def _code(text: str) -> str:
    """Text as code on one line, whatever backticks are in it."""
    text = _cut(text, 300)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _cut(text: str, most: int) -> str:
    """One line, with an ellipsis where something was left out."""
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _quoted(text: str) -> str:
    return "'" + _cut(text, 1000).replace("'", "''") + "'"
