"""One run of curation by the rules: survey, decide, archive through the gate, report.

Only one runs at a time. The plan is on the disk before the first change and the report after the
last; each change has an id that follows from the run's, so a run that was killed is finished by
the next one and nothing lands twice. What was used since the plan was made stays where it is. The
report is kept as a struct and as Markdown, with how to undo each change.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

import msgspec

from tacit.base.atomic_files import locked, write_atomic
from tacit.base.setting_sections import Settings
from tacit.changes.change import Archive, Change, acting_as, new_change_id
from tacit.changes.gate import Gate
from tacit.changes.history import History
from tacit.changes.neighbours import NoNeighbours
from tacit.learn.background.background_gate import background_gate
from tacit.learn.background.staging import change_id, earlier_verdict
from tacit.learn.curate.curation_records import (
    Age,
    AgeRules,
    CurationRecords,
    RecordedSkill,
    SkillKey,
    SkillState,
    counted_days,
    next_age,
)
from tacit.learn.curate.curation_scope import CurationScope, copied_scope
from tacit.learn.curate.library_survey import SurveyedSkill, activity_of, survey
from tacit.learn.use_records import ensure_use_tables
from tacit.traces.store import Store

MoveOutcome = Literal["done", "proposed", "refused", "used meanwhile", "would"]


_DONE = ("done", "would")


class MovedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that changed its state."""

    skill: str
    root: str
    before: SkillState
    after: SkillState
    days: float
    """Days without use, as they count."""
    why: str
    outcome: MoveOutcome = "done"
    change: str = ""
    note: str = ""


class JoinedSkills(msgspec.Struct, frozen=True, kw_only=True):
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


class CurationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one run."""

    id: str
    at: datetime
    by: str = "user"
    dry: bool = False
    passed: float = 0.0
    """Days that counted since the curation before."""
    states: dict[str, int] = {}
    """How many learned skills stand in which state now."""
    kept: dict[str, int] = {}
    """How many were left alone, and why."""
    moved: tuple[MovedSkill, ...] = ()
    joined: tuple[JoinedSkills, ...] = ()
    notes: tuple[str, ...] = ()
    later: bool = False
    """Whether a cluster was not considered, and will be again."""

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


def report_markdown(report: CurationReport) -> str:
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


def _row(moved: MovedSkill) -> str:
    undo = f"`tacit undo {moved.change[-8:]}`" if moved.change and moved.outcome == "done" else ""
    note = f": {moved.note}" if moved.note else ""
    return f"| {_cell(moved.skill)} | {_cell(moved.why)} | {moved.outcome}{_cell(note)} | {undo} |"


def _joined(joined: JoinedSkills) -> list[str]:
    new = " (new)" if joined.is_new else ""
    lines = [f"### {_cell(joined.umbrella)}{new}: {joined.outcome}", "", f"{_cell(joined.why)}", ""]
    lines += [f"- takes in {_cell(name)}" for name in joined.absorbed]
    lines += [f"- file {_cell(path)}" for path in joined.files]
    lines += [f"- {_cell(name)} now names it" for name in joined.rewritten]
    return [*lines, *([f"- {_cell(joined.note)}"] if joined.note else []), ""]


def _cell(text: str) -> str:
    """`text` in one line that ends no cell of a table and begins no markup."""
    from tacit.base.display import one_line

    return one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")


_DAY = 86_400.0
WAIT_SECONDS = 5.0
"""How long a second curator waits before it gives way."""


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that is to change its state, and how it stood when that was decided."""

    place: str
    skill: str
    before: SkillState
    after: SkillState
    days: float
    why: str
    change: str
    uses: int
    digest: str


class CurationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run is going to do, and what will be recorded of it."""

    id: str
    at: datetime
    by: str
    passed: float
    noted: list[tuple[str, str, RecordedSkill]]
    acts: list[PlannedMove]
    uses: int
    states: dict[str, int]
    kept: dict[str, int]
    notes: tuple[str, ...] = ()


@contextmanager
def exclusive(scope: CurationScope) -> Iterator[Store]:
    """The store, for a `with` block in which no one else curates. Raises `Busy`."""
    lock = os.path.join(scope.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        Store.open(scope.database) as store,
    ):
        yield store


def curate(scope: CurationScope, settings: Settings, *, by: str = "user") -> CurationReport:
    """Do what the rules say of the skills of `scope`. Raises `Busy` while another one runs.

    A run that was interrupted is finished first.
    """
    with exclusive(scope) as store:
        notes = ensure_use_tables(store, scope.database)
        records = CurationRecords(store.connection)
        for left in records.curations("begun"):
            if left.by == "model":  # a consolidation, which `curator` finishes
                continue
            _carry_out(
                scope, settings, store, records, msgspec.json.decode(left.plan, type=CurationPlan)
            )
        plan = make_plan(scope, AgeRules.of(settings.curate), store, records, by, notes)
        records.begin(plan.id, plan.at, by, msgspec.json.encode(plan))
        return _carry_out(scope, settings, store, records, plan)


def rehearse_curation(scope: CurationScope, settings: Settings) -> CurationReport:
    """What `curate` would do: the same, on a copy that is thrown away."""
    with copied_scope(scope) as copy:
        report = curate(copy, settings)
    real = {place.root: original.root for place, original in copy.pairs}
    moved = tuple(
        msgspec.structs.replace(
            m,
            root=real.get(m.root, m.root),
            change="",
            outcome="would" if m.outcome == "done" else m.outcome,
        )
        for m in report.moved
    )
    return msgspec.structs.replace(report, dry=True, moved=moved)


def make_plan(
    scope: CurationScope,
    rules: AgeRules,
    store: Store,
    records: CurationRecords,
    by: str,
    notes: tuple[str, ...] = (),
) -> CurationPlan:
    """What the rules say of every skill, worked out and not yet done."""
    now = scope.clock.now()
    run = new_change_id(now)
    before = records.skills()
    last = records.last()
    passed = (now - last).total_seconds() / _DAY if last else 0.0
    found = survey(scope, store.connection)
    histories = {place.root: History(place, scope.data) for place in scope.places}
    noted: list[tuple[str, str, RecordedSkill]] = []
    acts: list[PlannedMove] = []
    states: Counter[str] = Counter(active=0, stale=0, archived=0)
    kept: Counter[str] = Counter()
    for skill in found:
        known = before.get(skill.key)
        what = activity_of(skill, known, now, histories[skill.place.root])
        new = next_age(rules, known.age if known else None, what, passed)
        noted.append((*skill.key, _recorded_skill(skill, known, new, now)))
        if what.kept and not skill.archived:
            kept[what.kept] += 1
        elif skill.learned:
            states[new.state] += 1
        was = known.state if known else "active"
        if new.state != was and not what.kept and not skill.archived:
            acts.append(_act(skill, run, len(acts), was, new, rules))
    return CurationPlan(
        id=run,
        at=now,
        by=by,
        passed=counted_days(rules, passed),
        noted=noted,
        acts=acts,
        uses=_uses(store),
        states=dict(states),
        kept=dict(sorted(kept.items())),
        notes=notes,
    )


def _carry_out(
    scope: CurationScope,
    settings: Settings,
    store: Store,
    records: CurationRecords,
    plan: CurationPlan,
) -> CurationReport:
    gate = background_gate(
        "curator",
        scope.places,
        settings,
        neighbours=NoNeighbours(),
        data=scope.data,
        clock=scope.clock,
    )
    places = {real.id: place.root for place, real in scope.pairs}
    now = {found.key: found for found in survey(scope, store.connection)} if plan.acts else {}
    recorded: dict[SkillKey, RecordedSkill] = {
        (place, skill): record for place, skill, record in plan.noted
    }
    moved = []
    for act in plan.acts:
        key = (act.place, act.skill)
        done = _do(gate, plan, act, places.get(act.place, ""), now.get(key))
        moved.append(done)
        if act.after == "archived" and done.outcome != "done" and key in recorded:
            recorded[key] = msgspec.structs.replace(recorded[key], state="stale")
    states = Counter(plan.states)
    left = sum(m.after == "archived" and m.outcome != "done" for m in moved)
    states["stale"], states["archived"] = states["stale"] + left, states["archived"] - left
    report = CurationReport(
        id=plan.id,
        at=plan.at,
        by=plan.by,
        passed=plan.passed,
        states=dict(states),
        kept=plan.kept,
        moved=tuple(moved),
        notes=plan.notes,
    )
    records.replace_skills(recorded, plan.at, plan.uses)
    write_report(scope, report)
    records.close(plan.id, msgspec.json.encode(report))
    return report


def write_report(scope: CurationScope, report: CurationReport) -> str:
    """Put a report where the user can find it; the path."""
    path = report_path(scope, report.id)
    write_atomic(path, report_markdown(report).encode("utf-8", "backslashreplace"))
    return path


def report_path(scope: CurationScope, run: str) -> str:
    return os.path.join(scope.data, "reports", f"curation-{run}.md")


def _do(
    gate: Gate, plan: CurationPlan, act: PlannedMove, root: str, found: SurveyedSkill | None
) -> MovedSkill:
    moved = MovedSkill(
        skill=act.skill,
        root=root,
        before=act.before,
        after=act.after,
        days=act.days,
        why=act.why,
    )
    if act.after != "archived":
        return moved
    if not root:
        return msgspec.structs.replace(moved, outcome="refused", note="its folder is gone")
    landed = earlier_verdict(gate, act.change, act.skill)
    if landed is None and (found is None or (found.uses, found.digest) != (act.uses, act.digest)):
        return msgspec.structs.replace(moved, outcome="used meanwhile")
    change = Change(
        id=act.change,
        skill=act.skill,
        operations=(Archive(),),
        actor="curator",
        reason=act.why,
        root=root,
        group=plan.id,
    )
    with acting_as("curator"):
        verdict = landed or gate.propose(change)
    outcome = {"applied": "done"}.get(verdict.outcome, verdict.outcome)
    note = verdict.refusal.reason if verdict.refusal else ""
    return msgspec.structs.replace(
        moved,
        outcome=outcome,
        change=verdict.change if not verdict.refused else "",
        note=note,
    )


def _act(
    skill: SurveyedSkill, run: str, number: int, was: SkillState, new: Age, rules: AgeRules
) -> PlannedMove:
    return PlannedMove(
        place=skill.key[0],
        skill=skill.skill,
        before=was,
        after=new.state,
        days=round(new.idle, 2),
        why=_why(was, new, rules),
        change=change_id(run, skill.skill, number=number),
        uses=skill.uses,
        digest=skill.digest,
    )


def _recorded_skill(
    skill: SurveyedSkill, known: RecordedSkill | None, new: Age, now: datetime
) -> RecordedSkill:
    same = known is not None and known.state == new.state
    return RecordedSkill(
        state=new.state,
        idle=new.idle,
        uses=skill.uses,
        digest=skill.digest,
        head=skill.head,
        since=known.since if same and known is not None else now,
    )


def _why(was: SkillState, new: Age, rules: AgeRules) -> str:
    if new.state == "active":
        return "it was brought back" if was == "archived" else "it was used or edited"
    limit = rules.archive if new.state == "archived" else rules.stale
    return f"{int(new.idle)} days without use or edit; the limit is {limit:g}"


def _uses(store: Store) -> int:
    return int(store.connection.execute("SELECT count(*) FROM uses").fetchone()[0])
