"""Consolidation by a model: clusters of look-alikes go in, plans that were rehearsed come out.

Costs grow with the clusters that are new, not with the library: each is looked at once for the
versions that its skills have. The agent works in the closed room on copies; what it proposes is
carried out on a copy of the library first, and a refusal there goes back to it. Then the plan
lands, or waits for the user's word, as the settings say.
"""

import os
from contextlib import closing
from typing import Any

import msgspec

from tacit.agent.limits import Limits
from tacit.agent.tools.tool import Failed, Result
from tacit.base.locks import locked
from tacit.base.sections import Settings
from tacit.changes.change import new_id
from tacit.changes.files import programs, to_bytes
from tacit.changes.gate import Gate
from tacit.learn.approving import approval
from tacit.learn.background import room
from tacit.learn.background.staging import Edited, Staging
from tacit.learn.background.task import Ran, Task
from tacit.learn.curate.book import Book
from tacit.learn.curate.curating import WAIT_SECONDS, write_report
from tacit.learn.curate.joining import Made, gate_over, join, rehearse
from tacit.learn.curate.likeness import Cluster, clusters
from tacit.learn.curate.looking import Found, look
from tacit.learn.curate.prompts import prompt
from tacit.learn.curate.rebuilding import sound_tables
from tacit.learn.curate.report import Report
from tacit.learn.curate.umbrellas import Consolidation, Umbrella
from tacit.learn.curate.world import World
from tacit.traces.store import Store

BY = "model"
"""Who made a run, in the book."""
_TRIES = 3
"""Times that a refusal goes back to the agent."""
_MOST_SHOWN = 24_000
"""Characters of the skills' own text in the first message; the rest is read by a tool."""


def consolidate(
    world: World, settings: Settings, *, dry: bool = False, asked: bool = False
) -> list[Report]:
    """Look for look-alikes and join them; a report for each cluster that was looked at.

    What a kill interrupted is finished first. `dry` lands nothing and remembers nothing. `asked`:
    the user wants it now, whatever the setting says, and for clusters that were looked at before
    as well. Raises `Busy` while another curation runs.
    """
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        closing(Store.open(world.database)) as store,
    ):
        sound_tables(world, store)
        book = Book(store.connection)
        reports = [] if dry else finish(world, settings, store, book)
        if settings.curate.consolidate == "off" and not asked:
            return reports
        found = look(world, store.connection)
        fresh = [c for c in clusters(world, found) if asked or not book.fact(_fact(c))]
        for cluster in fresh[: settings.curate.clusters]:
            plan, rehearsed, why = _ask(world, settings, cluster, found)
            report = _settle(world, settings, store, plan, rehearsed, why, dry=dry)
            if not dry:
                book.set_fact(_fact(cluster), report.id)
            reports.append(report)
        return reports


def finish(world: World, settings: Settings, store: Store, book: Book) -> list[Report]:
    """Carry out again what a kill interrupted."""
    left = [run for run in book.curations("begun") if run.by == BY]
    plans = [msgspec.json.decode(run.plan, type=Consolidation) for run in left]
    gate = gate_over(world, settings, agreed=True)
    return [_land(world, store, plan, gate) for plan in plans]


def accept(world: World, settings: Settings, start: str) -> Report | None:
    """Carry out a plan that waits, with the user's consent; None where there is no such plan."""
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        closing(Store.open(world.database)) as store,
    ):
        book = Book(store.connection)
        run = next((r for r in book.curations("waiting") if _is(r.id, start)), None)
        if run is None:
            return None
        plan = msgspec.json.decode(run.plan, type=Consolidation)
        book.begin(plan.id, plan.at, BY, run.plan)
        return _land(world, store, plan, gate_over(world, settings, agreed=True))


def _is(run: str, start: str) -> bool:
    return len(start) >= 4 and (run.startswith(start) or run.endswith(start))


def _settle(
    world: World,
    settings: Settings,
    store: Store,
    plan: Consolidation | None,
    rehearsed: Made | None,
    why: str,
    *,
    dry: bool,
) -> Report:
    """Let a plan land, or wait, or say why there is none."""
    if plan is None or rehearsed is None:
        now = world.clock.now()
        return Report(id=new_id(now), at=now, by=BY, dry=dry, notes=(why,) if why else ())
    book = Book(store.connection)
    waits = (
        settings.curate.consolidate != "auto"
        or "curator" in approval(settings.learn, data=world.data).asks
    )
    if dry or waits:
        report = _report(plan, rehearsed, why, dry=dry)
        if not dry:
            joined = tuple(
                msgspec.structs.replace(j, outcome="waits for you") for j in report.joined
            )
            report = msgspec.structs.replace(report, joined=joined)
            data = msgspec.json.encode(plan)
            book.keep_waiting(plan.id, plan.at, BY, data, msgspec.json.encode(report))
        return report
    book.begin(plan.id, plan.at, BY, msgspec.json.encode(plan))
    return _land(world, store, plan, gate_over(world, settings))


def _land(world: World, store: Store, plan: Consolidation, gate: Gate) -> Report:
    made = join(world, plan, gate)
    report = _report(plan, made, "")
    book = Book(store.connection)
    if not made.refused:
        # Umbrellas of one plan may be alike; they were just told apart.
        own = {umbrella.skill for umbrella in plan.umbrellas}
        for cluster in clusters(world, look(world, store.connection)):
            if cluster.place == plan.place and own.issuperset(cluster.skills):
                book.set_fact(_fact(cluster), plan.id)
    write_report(world, report)
    book.close(plan.id, msgspec.json.encode(report), "refused" if made.refused else "done")
    return report


def _report(plan: Consolidation, made: Made, why: str, *, dry: bool = False) -> Report:
    notes = [why] if why else []
    notes += [
        f"'{skill}' keeps the old name, which goes on working" for skill in made.kept_as_alias
    ]
    return Report(
        id=plan.id,
        at=plan.at,
        by=BY,
        dry=dry,
        joined=made.joined,
        notes=tuple(notes),
    )


def _ask(
    world: World, settings: Settings, cluster: Cluster, found: list[Found]
) -> tuple[Consolidation | None, Made | None, str]:
    """Have an agent look at a cluster; its plan and what that came to on a copy, or neither, and
    what is to be said about it."""
    job = f"consolidate-{cluster.key}"
    staging = Staging.open(job, data=world.data)
    try:
        broker = _Broker(world, cluster, staging)
        task = Task(
            job=job,
            kind="curate",
            actor="curator",
            project=next((r.project for p, r in world.pairs if r.id == cluster.place), ""),
            staging=staging.path,
            instructions=prompt("umbrella"),
            message=_message(cluster, staging, found),
            toolset="tacit.learn.curate.tools:tools",
            limits=Limits(
                turns=settings.curate.turns,
                seconds=settings.curate.seconds,
                tokens=settings.learn.tokens,
                money=settings.learn.money,
                retries=settings.agent.retries,
            ),
        )
        ran = room.run(task, broker, settings)
        return broker.plan(ran), broker.rehearsed, broker.why(ran)
    finally:
        staging.discard()


class _Broker:
    """The parent's side: keeps what is to be joined, and rehearses it when the agent is done."""

    def __init__(self, world: World, cluster: Cluster, staging: Staging) -> None:
        self._world = world
        self._cluster = cluster
        self._staging = staging
        self._gate = Gate(world.places, data=world.data, clock=world.clock)
        self._names = {skill.rpartition("/")[2]: skill for skill in cluster.skills}
        self._joins: dict[str, tuple[tuple[str, ...], str]] = {}
        self._made: Consolidation | None = None
        self._refusals: list[str] = []
        self.rehearsed: Made | None = None
        for skill in cluster.skills:
            staging.copy_in(self._gate, skill, cluster.root)

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        if name != "join":
            raise Failed(f"there is nothing like '{name}' here")
        umbrella = str(arguments.get("umbrella", ""))
        absorbs = tuple(dict.fromkeys(map(str, arguments.get("absorbs") or ())))
        unknown = [skill for skill in absorbs if skill not in self._names]
        taken = [s for other, (own, _) in self._joins.items() if other != umbrella for s in own]
        if unknown:
            raise Failed(f"not among the skills you were given: {', '.join(unknown)}")
        if umbrella in absorbs or umbrella in taken:
            raise Failed(f"'{umbrella}' cannot be taken in and take in")
        if twice := sorted(set(absorbs) & set(taken) | set(absorbs) & set(self._joins)):
            raise Failed(f"is joined already: {', '.join(twice)}")
        if len(absorbs) < (1 if umbrella in self._names else 2):
            raise Failed("an umbrella takes in at least one other skill, a new one at least two")
        self._joins[umbrella] = (absorbs, " ".join(str(arguments.get("why", "")).split())[:500])
        return Result(
            f"'{umbrella}' will take in {', '.join(absorbs)}. Its text is checked at the end."
        )

    def finished(self, text: str) -> str | None:
        if not self._joins:
            return None
        try:
            plan = self._plan()
        except Failed as failed:
            return self._again(str(failed))
        made = rehearse(self._world, plan)
        if made.refused:
            return self._again("; ".join(made.refused))
        self._made, self.rehearsed = plan, made
        return None

    def plan(self, ran: Ran) -> Consolidation | None:
        """What came of it, where the agent came to its end and all of it can be done."""
        if self._made is None or not ran.is_done:
            return None
        return msgspec.structs.replace(self._made, model=ran.model)

    def why(self, ran: Ran) -> str:
        """What is to be said of a run that made no plan."""
        if self._made is not None and ran.is_done:
            return ""
        names = ", ".join(self._cluster.skills)
        if ran.reason != "done":
            return f"{names}: the look was not finished: {ran.error or ran.reason}"
        if self._refusals:
            return f"{names}: what was proposed was refused: {self._refusals[-1]}"
        return f"{names}: nothing to join. {' '.join(ran.text.split())[:300]}"

    def _again(self, refusal: str) -> str | None:
        self._refusals.append(refusal)
        if len(self._refusals) > _TRIES:
            return None
        return f"This cannot be done as it stands: {refusal}\nMend it, then end again."

    def _plan(self) -> Consolidation:
        """The plan that the copies and the joins amount to. Raises `Failed` with what is wrong."""
        if spoilt := self._staging.spoilt():
            raise Failed(f"'{spoilt[0].name}': {spoilt[0].refusal.reason}")
        edited = {edit.name: edit for edit in self._staging.changed()}
        if others := sorted(edited.keys() - self._joins.keys()):
            raise Failed(f"changed, but no umbrella: {', '.join(others)}; call join, or undo it")
        now = self._world.clock.now()
        umbrellas = [
            self._umbrella(name, absorbs, why, edited.get(name))
            for name, (absorbs, why) in self._joins.items()
        ]
        return Consolidation(
            id=new_id(now),
            at=now,
            place=self._cluster.place,
            umbrellas=tuple(umbrellas),
            key=self._cluster.key,
        )

    def _umbrella(
        self, name: str, absorbs: tuple[str, ...], why: str, edit: Edited | None
    ) -> Umbrella:
        if edit is None and name not in self._names:
            raise Failed(f"the umbrella '{name}' was not written")
        new = edit.new if edit is not None else {}
        old = edit.old if edit is not None else {}
        return Umbrella(
            skill=self._names.get(name, name),
            is_new=name not in self._names,
            absorbs=tuple(self._names[skill] for skill in absorbs),
            why=why or "they are much alike",
            files=to_bytes(new),
            executable=programs(new),
            base=edit.base if edit is not None else "",
            touched=tuple(sorted(p for p, file in new.items() if old.get(p) != file)),
        )


def _message(cluster: Cluster, staging: Staging, found: list[Found]) -> str:
    """The skills that are alike: their names, their use, and as much of their text as fits."""
    uses = {f.skill: f.uses for f in found if f.key[0] == cluster.place}
    parts = [f"These {len(cluster.skills)} skills are much alike:\n"]
    room_left = _MOST_SHOWN
    for name, copy in sorted(staging.copied().items()):
        others = sorted(path for path in copy.files if path != "SKILL.md")
        listed = f"; other files: {', '.join(others)}" if others else ""
        parts.append(f"## {name} (used {uses.get(copy.skill, 0)} times{listed})\n")
        text = (
            copy.files["SKILL.md"].data.decode("utf-8", "replace")
            if "SKILL.md" in copy.files
            else ""
        )
        if len(text) <= room_left:
            room_left -= len(text)
            parts.append(f"<file>\n{text}\n</file>\n")
        else:
            parts.append("(read it with read_skill)\n")
    return "\n".join(parts)


def _fact(cluster: Cluster) -> str:
    return f"cluster {cluster.key}"
