"""Drafts: findings as skills that say they were made by counting, put into the inbox.

A draft always waits for a person. Every session that was counted over gets a line in the ledger,
so that the next run leaves it out.
"""

import os
import re
from collections.abc import Iterable
from datetime import date

import msgspec

from tacit.base.display import counted, one_line, plain, shorten
from tacit.base.paths import existing_folder
from tacit.changes.change import Create, Verdict, acting_as, make_change
from tacit.learn.background.background_gate import background_gate, places_for
from tacit.learn.findings import FailedForm, Finding, count_findings
from tacit.learn.ledger import Ledger
from tacit.skills.skill import suggest_name
from tacit.traces.store import Store, Stored
from tacit.traces.trace import Trace


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
    sessions = counted(len(finding.sessions), "session")
    name = suggest_name(finding.name)
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
        lines += [f'   - "{shorten(one_line(wish.text), 400)}"' for wish in finding.wishes]
    if finding.failures:
        lines += ["", "## What fails", ""]
        for failure in finding.failures:
            lines += _failure(failure, finding.works)
    return lines


def _failure(failure: FailedForm, works: str) -> list[str]:
    often = counted(len(failure.seen), "time")
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
    text = shorten(one_line(text), 300)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _quoted(text: str) -> str:
    return "'" + shorten(one_line(text), 1000).replace("'", "''") + "'"


COUNTING = "counting"
MOST_DRAFTS = 10
"""Drafts that one run proposes; a person is to review each."""


def draft_skills(traces: Iterable[Trace]) -> list[Draft]:
    """What can be learned from sessions by counting, without a model; nothing is proposed."""
    return [draft(finding) for finding in count_findings(traces)]


class ProposedDraft(msgspec.Struct, frozen=True):
    """A draft and what the gate said to it."""

    draft: Draft
    verdict: Verdict | None = None
    """None in a dry run."""


def draft_sessions(
    store: Store, ledger: Ledger, chosen: list[Stored], *, dry_run: bool = False
) -> list[ProposedDraft]:
    """Draft what `chosen` show, together with the other sessions of their projects.

    Every session of `chosen` gets a line in the ledger, so that the next run leaves it out.
    """
    projects = {stored.head.project for stored in chosen}
    related = [s for s in store.sessions(limit=10_000) if s.head.project in projects]
    drafts = draft_skills(store.whole(s.id) for s in related)
    new = {stored.id for stored in chosen}
    drafts = [d for d in drafts if new.intersection(d.evidence)][:MOST_DRAFTS]
    done = [ProposedDraft(d, None if dry_run else propose_draft(d)) for d in drafts]
    if not dry_run:
        _record(ledger, chosen, done)
    return done


def propose_draft(made: Draft) -> Verdict:
    """Put a draft before the user: it waits in the inbox, whatever the other settings say."""
    gate = background_gate("distiller", places_for(existing_folder(made.project)))
    with acting_as("distiller"):
        change = make_change(
            made.name,
            Create({"SKILL.md": made.text.encode()}),
            reason=made.reason,
            evidence=made.evidence,
            root=gate.open_place().place.root,
        )
        return gate.propose(change)


def _record(ledger: Ledger, chosen: Iterable[Stored], done: list[ProposedDraft]) -> None:
    for stored in chosen:
        own = [p for p in done if stored.id in p.draft.evidence and p.verdict is not None]
        waiting = [p for p in own if p.verdict and p.verdict.outcome == "proposed"]
        if waiting:
            names = ", ".join(p.draft.name for p in waiting)
            changes = tuple(p.verdict.change for p in waiting if p.verdict)
            ledger.record(stored, COUNTING, "proposed", f"drafts in the inbox: {names}", changes)
        elif own and own[0].verdict is not None:
            ledger.record(stored, COUNTING, "refused", own[0].verdict.explain())
        else:
            reason = "no failure was mended, nothing was put right, and nothing recurs"
            ledger.record(stored, COUNTING, "nothing", reason)
