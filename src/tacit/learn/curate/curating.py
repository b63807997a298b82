"""One run of curation: look, decide by the rules, put away through the gate, write it down.

Only one runs at a time. The plan is on the disk before the first change and the report after the
last; each change has an id that follows from the run's, so a run that was killed is finished by
the next one and nothing lands twice. What was used since the plan was made is left where it is.
"""

import hashlib
import os
from collections import Counter
from datetime import datetime, timedelta

import msgspec

from tacit.base.files import write_atomic
from tacit.base.locks import locked
from tacit.base.sections import Settings
from tacit.changes.actor import Actor, acting_as
from tacit.changes.change import Archive, Change, new_id, time_of
from tacit.changes.gate import Gate
from tacit.changes.history import History
from tacit.changes.neighbours import Nobody
from tacit.learn.curate.book import Book, Key, Noted
from tacit.learn.curate.looking import Found, look, seen
from tacit.learn.curate.rebuilding import sound_tables
from tacit.learn.curate.report import Moved, Report, markdown
from tacit.learn.curate.states import Age, Rules, State, age, counted
from tacit.learn.curate.world import World, copied
from tacit.traces.store import Store

_DAY = 86_400.0
WAIT_SECONDS = 5.0
"""How long a second curator waits before it gives way."""


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that is to change its state, and how it stood when that was decided."""

    place: str
    skill: str
    before: State
    after: State
    days: float
    why: str
    change: str
    uses: int
    digest: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run is going to do, and what will be remembered of the look."""

    id: str
    at: datetime
    by: str
    passed: float
    noted: list[tuple[str, str, Noted]]
    acts: list[Act]
    uses: int
    states: dict[str, int]
    kept: dict[str, int]
    notes: tuple[str, ...] = ()


def curate(world: World, settings: Settings, *, by: str = "user") -> Report:
    """Do what the rules say of the skills of `world`. Raises `Busy` while another one runs.

    A run that was interrupted is finished first.
    """
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        Store.open(world.database) as store,
    ):
        notes = sound_tables(world, store)
        book = Book(store.connection)
        for left in book.curations("begun"):
            if left.by == "model":  # a consolidation; see consolidating.py
                continue
            _carry_out(world, settings, store, book, msgspec.json.decode(left.plan, type=Plan))
        plan = make_plan(world, Rules.of(settings.curate), store, book, by, notes)
        book.begin(plan.id, plan.at, by, msgspec.json.encode(plan))
        return _carry_out(world, settings, store, book, plan)


def rehearse(world: World, settings: Settings) -> Report:
    """What `curate` would do: the same, on a copy that is thrown away."""
    with copied(world) as copy:
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
    world: World, rules: Rules, store: Store, book: Book, by: str, notes: tuple[str, ...] = ()
) -> Plan:
    """What the rules say of every skill, worked out and not yet done."""
    now = world.clock.now()
    run = new_id(now)
    before = book.noted()
    looked = book.looked()
    passed = (now - looked).total_seconds() / _DAY if looked else 0.0
    found = look(world, store.connection)
    histories = {place.root: History(place, world.data) for place in world.places}
    noted: list[tuple[str, str, Noted]] = []
    acts: list[Act] = []
    states: Counter[str] = Counter(active=0, stale=0, archived=0)
    kept: Counter[str] = Counter()
    for skill in found:
        known = before.get(skill.key)
        what = seen(skill, known, now, histories[skill.place.root])
        new = age(rules, known.age if known else None, what, passed)
        noted.append((*skill.key, _note(skill, known, new, now)))
        if what.kept and not skill.archived:
            kept[what.kept] += 1
        elif skill.learned:
            states[new.state] += 1
        was = known.state if known else "active"
        if new.state != was and not what.kept and not skill.archived:
            acts.append(_act(skill, run, len(acts), was, new, rules))
    return Plan(
        id=run,
        at=now,
        by=by,
        passed=counted(rules, passed),
        noted=noted,
        acts=acts,
        uses=_uses(store),
        states=dict(states),
        kept=dict(sorted(kept.items())),
        notes=notes,
    )


def change_id(run: str, number: int, skill: str) -> str:
    """The id of a change of a run: always the same, and later than those before it."""
    at = time_of(run) + timedelta(milliseconds=number + 1)
    digest = hashlib.sha256(f"{run}\0{number}\0{skill}".encode("utf-8", "surrogateescape"))
    return f"{new_id(at)[:-8]}{digest.hexdigest()[:8]}"


def gate_over(world: World, settings: Settings) -> Gate:
    """The gate for putting away by the rules: it asks where the user wants to be asked of all."""
    asked: tuple[Actor, ...] = ("curator",)
    return Gate(
        world.places,
        neighbours=Nobody(),
        always_ask=asked if settings.learn.approval in ("ask", "propose-only") else (),
        data=world.data,
        clock=world.clock,
    )


def _carry_out(world: World, settings: Settings, store: Store, book: Book, plan: Plan) -> Report:
    gate = gate_over(world, settings)
    places = {real.id: place.root for place, real in world.pairs}
    now = {found.key: found for found in look(world, store.connection)} if plan.acts else {}
    noted: dict[Key, Noted] = {(place, skill): note for place, skill, note in plan.noted}
    moved = []
    for act in plan.acts:
        key = (act.place, act.skill)
        done = _do(gate, plan, act, places.get(act.place, ""), now.get(key))
        moved.append(done)
        if act.after == "archived" and done.outcome != "done" and key in noted:
            noted[key] = msgspec.structs.replace(noted[key], state="stale")
    states = Counter(plan.states)
    left = sum(m.after == "archived" and m.outcome != "done" for m in moved)
    states["stale"], states["archived"] = states["stale"] + left, states["archived"] - left
    report = Report(
        id=plan.id,
        at=plan.at,
        by=plan.by,
        passed=plan.passed,
        states=dict(states),
        kept=plan.kept,
        moved=tuple(moved),
        notes=plan.notes,
    )
    book.note(noted, plan.at, plan.uses)
    write_report(world, report)
    book.close(plan.id, msgspec.json.encode(report))
    return report


def write_report(world: World, report: Report) -> str:
    """Put a report where the user can find it; the path."""
    path = report_path(world, report.id)
    write_atomic(path, markdown(report).encode("utf-8", "backslashreplace"))
    return path


def report_path(world: World, run: str) -> str:
    return os.path.join(world.data, "reports", f"curation-{run}.md")


def _do(gate: Gate, plan: Plan, act: Act, root: str, found: Found | None) -> Moved:
    moved = Moved(
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
    landed = gate.site(root).history.knows(act.change, act.skill)
    if not landed and (found is None or (found.uses, found.digest) != (act.uses, act.digest)):
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
        verdict = gate.propose(change)
    outcome = {"applied": "done"}.get(verdict.outcome, verdict.outcome)
    note = verdict.refusal.reason if verdict.refusal else ""
    return msgspec.structs.replace(
        moved,
        outcome=outcome,
        change=verdict.change if not verdict.refused else "",
        note=note,
    )


def _act(skill: Found, run: str, number: int, was: State, new: Age, rules: Rules) -> Act:
    return Act(
        place=skill.key[0],
        skill=skill.skill,
        before=was,
        after=new.state,
        days=round(new.idle, 2),
        why=_why(was, new, rules),
        change=change_id(run, number, skill.skill),
        uses=skill.uses,
        digest=skill.digest,
    )


def _note(skill: Found, known: Noted | None, new: Age, now: datetime) -> Noted:
    same = known is not None and known.state == new.state
    return Noted(
        state=new.state,
        idle=new.idle,
        uses=skill.uses,
        digest=skill.digest,
        head=skill.head,
        since=known.since if same and known is not None else now,
    )


def _why(was: State, new: Age, rules: Rules) -> str:
    if new.state == "active":
        return "it was brought back" if was == "archived" else "it was used or edited"
    limit = rules.archive if new.state == "archived" else rules.stale
    return f"{int(new.idle)} days without use or edit; the limit is {limit:g}"


def _uses(store: Store) -> int:
    query = "SELECT (SELECT count(*) FROM uses) + (SELECT count(*) FROM host_uses)"
    return int(store.connection.execute(query).fetchone()[0])
