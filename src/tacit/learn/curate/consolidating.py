"""Consolidation by a model: clusters of look-alikes go in, plans that were rehearsed come out.

Costs grow with the clusters that are new, not with the library: each is looked at once for the
versions that its skills have. What a model proposes (`asking.py`) was carried out on a copy of the
library already. Here it lands, or waits for the user's word, as the settings say.
"""

import os

import msgspec

from tacit.base.locks import locked
from tacit.base.sections import Settings
from tacit.changes.change import new_id
from tacit.learn.approving import approval
from tacit.learn.curate.asking import Asked, ask
from tacit.learn.curate.book import Book
from tacit.learn.curate.curating import WAIT_SECONDS, write_report
from tacit.learn.curate.joining import Made, gate_over, join
from tacit.learn.curate.likeness import Cluster, clusters
from tacit.learn.curate.looking import look
from tacit.learn.curate.rebuilding import sound_tables
from tacit.learn.curate.report import Report
from tacit.learn.curate.umbrellas import Consolidation
from tacit.learn.curate.world import World
from tacit.traces.store import Store

BY = "model"
"""Who made a run, in the book."""


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
        Store.open(world.database) as store,
    ):
        sound_tables(world, store)
        book = Book(store.connection)
        reports = [] if dry else finish(world, store, book)
        if settings.curate.consolidate == "off" and not asked:
            return reports
        found = look(world, store.connection)
        fresh = [c for c in clusters(world, found) if asked or not book.fact(_fact(c))]
        for cluster in fresh[: settings.curate.clusters]:
            asked_about = ask(world, settings, cluster, found)
            report = _settle(world, settings, store, asked_about, dry=dry)
            if not dry and not asked_about.later:
                book.set_fact(_fact(cluster), report.id)
            reports.append(report)
        return reports


def finish(world: World, store: Store, book: Book) -> list[Report]:
    """Carry out again what a kill interrupted."""
    left = [run for run in book.curations("begun") if run.by == BY]
    plans = [msgspec.json.decode(run.plan, type=Consolidation) for run in left]
    return [_land(world, store, plan) for plan in plans]


def accept(world: World, start: str) -> Report | None:
    """Carry out a plan that waits, with the user's consent; None where there is no such plan."""
    lock = os.path.join(world.data, "locks", "curate.lock")
    with (
        locked(lock, seconds=WAIT_SECONDS, what="the curation of the library"),
        Store.open(world.database) as store,
    ):
        book = Book(store.connection)
        run = next((r for r in book.curations("waiting") if _is(r.id, start)), None)
        if run is None:
            return None
        plan = msgspec.json.decode(run.plan, type=Consolidation)
        plan = msgspec.structs.replace(plan, agreed=True)
        book.begin(plan.id, plan.at, BY, msgspec.json.encode(plan))
        return _land(world, store, plan)


def _is(run: str, start: str) -> bool:
    return len(start) >= 4 and (run.startswith(start) or run.endswith(start))


def _settle(
    world: World,
    settings: Settings,
    store: Store,
    asked: Asked,
    *,
    dry: bool,
) -> Report:
    """Let a plan land, or wait, or say why there is none."""
    plan, rehearsed, why = asked.plan, asked.rehearsed, asked.why
    if plan is None or rehearsed is None:
        now = world.clock.now()
        notes = (why,) if why else ()
        return Report(id=new_id(now), at=now, by=BY, dry=dry, notes=notes, later=asked.later)
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
    return _land(world, store, plan)


def _land(world: World, store: Store, plan: Consolidation) -> Report:
    made = join(world, plan, gate_over(world, plan.place, agreed=plan.agreed))
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


def _fact(cluster: Cluster) -> str:
    return f"cluster {cluster.key}"
