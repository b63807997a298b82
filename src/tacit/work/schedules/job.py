"""What a due run comes to: the session, its outcome on record, its output delivered, once.

The queue may run this again after a kill. What is on record by then is not done again: a session
that was over is only delivered, a place that was served is left alone, and a run that is over is
over. A session in the middle of which the kill came begins anew.
"""

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

import msgspec

from tacit.agent import events, spending
from tacit.agent.limits import Limits
from tacit.agent.spending import Reserved
from tacit.base.errors import Busy, TacitError, Unwritable
from tacit.base.events import bus
from tacit.base.job import Done, Job, cancelled
from tacit.base.sections import LearnSettings
from tacit.base.settings import load
from tacit.traces.hosts import registry
from tacit.traces.store import Store
from tacit.work.intake import SessionStored, find_source
from tacit.work.log import log
from tacit.work.schedules import delivering, runs, shelf
from tacit.work.schedules.acting import Acting, Outcome
from tacit.work.schedules.recurrence import Once
from tacit.work.schedules.runs import Row, run_id
from tacit.work.schedules.shelf import By, Schedule

AGAIN = (30.0, 120.0, 600.0)
"""Seconds before the next try, after a failure on the way to the model."""
HOST = "tacit"
"""Our own sessions, as the store knows them."""
HAND = "by hand, process "
"""Before the id of the process that runs it, while it does."""
_HELD = 60.0
"""Seconds to wait where other work holds the budget."""
_WATCH = 1.0


def run(job: Job) -> Done:
    """Do one due run."""
    row = _row(job)
    if not row.live:
        return Done(row.state, row.reason)
    try:
        if row.state == "ran" and row.schedule not in shelf.names():
            return _over(row, "done", row.reason)  # a one-shot, in the trash by now
        schedule = shelf.read(row.schedule)
        if row.state != "ran":
            if why := _outdated(schedule, row):
                return _over(row, "skipped", why)
            held = _reserve(schedule)
            if held.refusal:
                return _held_up(schedule, row, held.refusal)
            try:
                row, outcome = _do(schedule, row, held)
            finally:
                spending.settle(held)
            if outcome.passing and row.attempt <= len(AGAIN):
                return _again(row, outcome)
            if not outcome.succeeded:
                return _failed(row, _why(outcome))
            row = _update(row, state="ran", output=outcome.text, reason="")
    except (Busy, Unwritable):
        raise  # these pass: the queue tries again
    except TacitError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return _failed(row, error.message + hint)
    return finish(schedule, row)


def finish(schedule: Schedule, row: Row) -> Done:
    """Deliver a run that succeeded, put a one-shot into the trash, and be done."""
    row = delivering.deliver(schedule, row, load().settings.schedule.webhook_hosts)
    outside = [f"{p}: {said}" for p, said in row.delivered.items() if said.startswith("failed")]
    if outside:
        text = f"{row.schedule}: output was not delivered everywhere ({'; '.join(outside)})"
        delivering.tell(f"undelivered:{row.id}", text)
    if _is_spent(schedule, row):
        try:
            shelf.remove(schedule.name, By(reason=f"ran once: {row.id}"))
        except TacitError as error:  # it was removed meanwhile, or is pinned: nothing is lost
            row = _update(row, reason=f"not put into the trash: {error.message}")
    _update(row, state="done", ended=datetime.now(UTC))
    return Done("silent" if row.silent else "done", "; ".join(outside))


def record_hand(schedule: Schedule, outcome: Outcome, row: Row) -> None:
    """What a run by hand came to. A one-shot that had failed is done with when this succeeds."""
    row = _update(row, refused=outcome.refused, output=outcome.text, reason="")
    if not outcome.succeeded:
        _update(row, state="failed", reason=_why(outcome), ended=datetime.now(UTC))
        return
    if _is_spent(schedule, row):
        try:
            shelf.remove(schedule.name, By(reason=f"ran by hand: {row.id}"))
        except TacitError:
            pass
    # Whoever ran it has read it.
    _update(row, state="done", read=True, ended=datetime.now(UTC))


def begin_hand(schedule: Schedule, session: str) -> Row:
    """A row for a run by hand that begins now."""
    now = datetime.now(UTC)
    row = Row(
        id=f"{schedule.name}@hand-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z",
        schedule=schedule.name,
        due=now,
        why="hand",
        state="running",
        began=now,
        attempt=1,
        session=session,
        reason=f"{HAND}{os.getpid()}",
    )
    with runs.writing() as connection:
        runs.add(connection, row, now)
    return row


def _row(job: Job) -> Row:
    """The run that a job is for; made anew where the database has lost it."""
    due = datetime.fromtimestamp(float(job.payload["due"]), UTC)
    name = str(job.payload["schedule"])
    with runs.writing() as connection:
        found = runs.of(connection, job.key)
        if found is not None:
            return found
        row = Row(id=run_id(name, due), schedule=name, due=due, why="due", state="sent")
        runs.add(connection, row, datetime.now(UTC))
        return row


def _outdated(schedule: Schedule, row: Row) -> str:
    """Why a run is not wanted any more."""
    if cancelled():
        return "cancelled"
    if schedule.binding.paused:
        return "the schedule was paused meanwhile"
    if row.due <= schedule.binding.since:
        return "the schedule's time was changed meanwhile"
    return ""


def _reserve(schedule: Schedule) -> Reserved:
    """What the run may take of what is left of the day."""
    settings = load(schedule.binding.project).settings
    chosen = settings.schedule
    limits = Limits(0, schedule.binding.seconds, chosen.tokens, chosen.money)
    return spending.reserve(settings.learn, limits)


def _is_held_only(learn: LearnSettings) -> bool:
    """Whether there is budget left, and only work that goes on, or was killed, holds it."""
    spent = spending.today()
    money = not learn.daily_money or spent.money < learn.daily_money
    return money and (not learn.daily_tokens or spent.tokens < learn.daily_tokens)


def _do(schedule: Schedule, row: Row, held: Reserved) -> tuple[Row, Outcome]:
    """The session. What it spends is counted."""
    acting = Acting(schedule, row.due, limits=held.limits)
    try:
        now = datetime.now(UTC)
        session = acting.session.context.session
        row = _update(row, state="running", began=now, attempt=row.attempt + 1, session=session)
        outcome = asyncio.run(_watched(acting, row, held))
    finally:
        acting.close()
        _store(row.session)
    return _update(row, refused=outcome.refused), outcome


def _store(session: str) -> None:
    """Take the session in like any other that is over, so that what failed in it is repaired."""
    try:
        source = find_source(HOST, session) if session else None
        if source is None:
            return
        with Store.open() as store:
            written = store.take_in(registry.get(HOST), source)
        if written.id:
            bus.publish(SessionStored(written.id, written.status, ended=True))
    except TacitError as error:  # the run is what counts here
        log(f"{session} is not in the store: {error.message}")


async def _watched(acting: Acting, row: Row, held: Reserved) -> Outcome:
    """Run it; stop when the job is cancelled."""

    async def read() -> None:
        async for event in acting.stream():
            if isinstance(event, events.Usage):
                spending.record("schedule", row.id, event, seconds=0.0, reserved=held)

    task = asyncio.create_task(read())
    while not task.done():
        await asyncio.wait({task}, timeout=_WATCH)
        if not task.done() and await asyncio.to_thread(cancelled):
            task.cancel()
            await asyncio.wait({task})
            return Outcome("interrupted", error="cancelled")
    await task
    return acting.outcome


def _again(row: Row, outcome: Outcome) -> Done:
    wait = AGAIN[row.attempt - 1]
    _update(row, state="sent", reason=f"tried again: {outcome.error}")
    return Done("put off", outcome.error, later=wait)


def _held_up(schedule: Schedule, row: Row, refusal: str) -> Done:
    """The day's budget is spent, which is told; or others hold it for now, which passes."""
    if not _is_held_only(load(schedule.binding.project).settings.learn):
        return _failed(row, refusal)
    _update(row, state="sent", reason=f"waits: {refusal}")
    return Done("put off", refusal, later=_HELD)


def _failed(row: Row, reason: str) -> Done:
    done = _over(row, "failed", reason)
    failed = msgspec.structs.replace(row, state="failed", reason=reason)
    delivering.tell(row.id, delivering.headline(failed))
    return done


def _over(row: Row, state: str, reason: str) -> Done:
    _update(row, state=state, reason=reason, ended=datetime.now(UTC))
    return Done(state, reason)


def _why(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error
    if outcome.reason == "interrupted":
        return "it was interrupted"
    return f"the limit on {outcome.reason} was reached"


def _is_spent(schedule: Schedule, row: Row) -> bool:
    """Whether a one-shot has nothing left to come after this run."""
    timing = schedule.binding.timing
    return isinstance(timing, Once) and row.due >= timing.at


def _update(row: Row, **values: Any) -> Row:
    with runs.writing() as connection:
        runs.update(connection, row.id, datetime.now(UTC), **values)
    return msgspec.structs.replace(row, **values)
