"""How the library stands between two runs of curation: ages, uses, what is due and what waits."""

from collections import Counter
from datetime import datetime

import msgspec

from tacit.agent.uses import Use
from tacit.base.sections import Settings
from tacit.changes.history import History
from tacit.learn import recording
from tacit.learn.curate.book import Book, Noted
from tacit.learn.curate.looking import Found, look, seen
from tacit.learn.curate.report import Report
from tacit.learn.curate.states import Age, Rules, State, age
from tacit.learn.curate.when import due
from tacit.learn.curate.world import World
from tacit.learn.figures import weekly
from tacit.traces.store import Store

WEEKS = 26
_DAY = 86_400.0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One skill."""

    skill: str
    root: str
    state: str
    """As the last run left it; as the next would find it where there was none."""
    kept: str
    """Why it is left alone; empty when it is not."""
    idle: float
    """Days without use or edit, as they count by now."""
    uses: int
    last_use: datetime | None
    weeks: tuple[int, ...]
    """Uses in each of the last 26 weeks, the oldest first."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The library as it ages."""

    last: datetime | None
    """When it was last looked after."""
    due_in: float
    """Seconds until it is next."""
    why: str
    """What it waits for."""
    states: dict[str, int]
    kept: dict[str, int]
    weeks: tuple[int, ...]
    """Uses of all skills in each of the last 26 weeks."""
    rows: list[Row]
    runs: list[Report]
    """The last runs, the latest first."""
    waiting: list[Report]
    """Consolidations that wait for the user's word."""


def status(world: World, settings: Settings) -> Status:
    """How every skill stands now. Changes nothing but the records of uses, which are caught up."""
    rules = Rules.of(settings.curate)
    now = world.clock.now()
    with Store.open(world.database) as store:
        recording.catch_up(store)
        book = Book(store.connection)
        noted, looked = book.noted(), book.looked()
        passed = (now - looked).total_seconds() / _DAY if looked else 0.0
        histories = {place.root: History(place, world.data) for place in world.places}
        all_uses = recording.uses_of(store.connection)
        by_name: dict[str, list[Use]] = {}
        for use in all_uses:
            by_name.setdefault(use.skill, []).append(use)
        rows = []
        for found in look(world, store.connection):
            known = noted.get(found.key)
            what = seen(found, known, now, histories[found.place.root])
            new = age(rules, known.age if known else None, what, passed)
            names = dict.fromkeys((found.name, found.skill.rpartition("/")[2]))
            own = [use for name in names for use in by_name.get(name, ())]
            rows.append(
                Row(
                    skill=found.skill,
                    root=found.place.root,
                    state=_state(found, known, new),
                    kept=found.kept,
                    idle=round(new.idle, 2),
                    uses=found.uses,
                    last_use=found.last_use,
                    weeks=tuple(weekly(own, now, WEEKS)),
                )
            )
        runs = [_report(run.report) for run in book.curations("done", most=10)]
        waiting = [_report(run.report) for run in book.curations("waiting")]
    next_time = due(settings.curate, clock=world.clock, path=world.database)
    judged = [row for row in rows if not row.kept]
    return Status(
        last=looked,
        due_in=next_time.seconds,
        why=next_time.reason,
        states={s: sum(r.state == s for r in judged) for s in ("active", "stale", "archived")},
        kept=dict(Counter(row.kept for row in rows if row.kept)),
        weeks=tuple(weekly(all_uses, now, WEEKS)),
        rows=rows,
        runs=runs,
        waiting=waiting,
    )


def _state(found: Found, known: Noted | None, new: Age) -> State:
    """As the last run left it; but of the archive the disk knows better: it may be back."""
    if found.archived:
        return "archived"
    return known.state if known is not None and known.state != "archived" else new.state


def _report(data: bytes) -> Report:
    return msgspec.json.decode(data, type=Report)
