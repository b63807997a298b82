"""What a run of curation did, as a struct and as Markdown: what changed, why, how to undo it.

The terminal's form of the same is `ui/cli/curate.py`'s.
"""

from datetime import datetime
from typing import Literal

import msgspec

from tacit.learn.curate.states import State

Outcome = Literal["done", "proposed", "refused", "used meanwhile", "would"]


_DONE = ("done", "would")


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that changed its state."""

    skill: str
    root: str
    before: State
    after: State
    days: float
    """Days without use, as they count."""
    why: str
    outcome: Outcome = "done"
    change: str = ""
    note: str = ""


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """Skills that were joined in one."""

    umbrella: str
    root: str
    absorbed: tuple[str, ...]
    why: str
    is_new: bool = False
    files: tuple[str, ...] = ()
    """Files that the umbrella got or that changed in it."""
    rewritten: tuple[str, ...] = ()
    """Other skills in which the old names were replaced."""
    outcome: str = "done"
    note: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run."""

    id: str
    at: datetime
    by: str = "user"
    dry: bool = False
    passed: float = 0.0
    """Days that counted since the look before."""
    states: dict[str, int] = {}
    """How many learned skills stand in which state now."""
    kept: dict[str, int] = {}
    """How many were left alone, and why."""
    moved: tuple[Moved, ...] = ()
    joined: tuple[Joined, ...] = ()
    notes: tuple[str, ...] = ()
    later: bool = False
    """Whether a cluster was not looked at, and will be again."""

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(moved.change for moved in self.moved if moved.change)

    @property
    def landed(self) -> bool:
        """Whether there is something to undo."""
        archived = any(m.outcome == "done" and m.after == "archived" for m in self.moved)
        return not self.dry and (archived or any(j.outcome == "done" for j in self.joined))

    @property
    def undo(self) -> str:
        return f"tacit undo {self.id[-8:]}" if self.landed else ""

    def summary(self) -> str:
        """One line for a log, a list, a notice."""
        parts = []
        for state, word in (
            ("stale", "stale"),
            ("archived", "archived"),
            ("active", "in use again"),
        ):
            if count := sum(m.after == state and m.outcome in _DONE for m in self.moved):
                parts.append(f"{count} {word}")
        joined = [j for j in self.joined if j.outcome in _DONE]
        if joined:
            absorbed = sum(len(j.absorbed) for j in joined)
            parts.append(f"{absorbed} joined into {len(joined)}")
        return ", ".join(parts) or "nothing to do"


_LAST = (
    "Nothing was deleted. A skill in the archive is found by `tacit search`, comes back when it is"
    " called by its name, and by `tacit restore NAME`."
)
_WORDS = {"active": "In use again", "stale": "Stale", "archived": "Archived"}


def markdown(report: Report) -> str:
    """The report as a document of its own."""
    title = "Dry run of a curation" if report.dry else "Curation"
    lines = [f"# {title}, {report.at:%Y-%m-%d %H:%M} UTC", ""]
    counted = f"Days that counted since the last look: {report.passed:.1f}."
    lines += [f"{report.summary().capitalize()}. {counted}", ""]
    if report.undo:
        lines += [f"Take all of it back: `{report.undo}`", ""]
    for after in ("archived", "stale", "active"):
        rows = [m for m in report.moved if m.after == after]
        if rows:
            lines += [
                f"## {_WORDS[after]}",
                "",
                "| skill | why | outcome | undo |",
                "|---|---|---|---|",
            ]
            lines += [_row(moved) for moved in rows] + [""]
    if report.joined:
        lines += ["## Joined", ""]
        for joined in report.joined:
            lines += _joined(joined)
    lines += ["## The library now", "", "| state | learned skills |", "|---|---|"]
    lines += [f"| {state} | {count} |" for state, count in report.states.items()]
    lines += [f"| left alone: {why} | {count} |" for why, count in report.kept.items()] + [""]
    if report.notes:
        lines += ["## Notes", "", *(f"- {_cell(note)}" for note in report.notes), ""]
    return "\n".join([*lines, _LAST, ""])


def _row(moved: Moved) -> str:
    undo = f"`tacit undo {moved.change[-8:]}`" if moved.change and moved.outcome == "done" else ""
    note = f": {moved.note}" if moved.note else ""
    return f"| {_cell(moved.skill)} | {_cell(moved.why)} | {moved.outcome}{_cell(note)} | {undo} |"


def _joined(joined: Joined) -> list[str]:
    new = " (new)" if joined.is_new else ""
    lines = [f"### {_cell(joined.umbrella)}{new}: {joined.outcome}", "", f"{_cell(joined.why)}", ""]
    lines += [f"- takes in {_cell(name)}" for name in joined.absorbed]
    lines += [f"- file {_cell(path)}" for path in joined.files]
    lines += [f"- {_cell(name)} now names it" for name in joined.rewritten]
    return [*lines, *([f"- {_cell(joined.note)}"] if joined.note else []), ""]


def _cell(text: str) -> str:
    """`text` in one line that ends no cell of a table and begins no markup."""
    from tacit.base.terminal import one_line

    return one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
