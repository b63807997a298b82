"""Doing the runs of schedules: what is due is fired, run as a job or by hand, and delivered once.

The queue may run a job again after a kill. What is on record by then is not repeated: a session
that had ended is only delivered, and a destination that was served is left alone. A session that
was killed in the middle begins anew. `fire` plans and queues what is due and ends runs that were
lost; `ByHand` is a run that a person starts and watches.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta

import msgspec

from tacit.agent import agent_events, budget
from tacit.agent.agent_session import AskUser
from tacit.agent.budget import Limits, Reservation
from tacit.agent.tool_approval import Ask
from tacit.base.errors import Busy, TacitError, Unwritable
from tacit.base.job import Job, JobResult, cancelled
from tacit.base.settings import load_settings
from tacit.traces.store import Store
from tacit.traces.trace import OWN_HOST
from tacit.work import delivery, jobs_db, schedule_runs, schedule_store
from tacit.work.due_times import Once
from tacit.work.intake import find_source, store_session
from tacit.work.presence import log, own_ticket
from tacit.work.reactions import session_stored
from tacit.work.schedule_runs import RunState, ScheduleRun, Send, advance, plan
from tacit.work.schedule_session import RunOutcome, ScheduleSession
from tacit.work.schedule_store import Requester, Schedule, login

AGAIN = (30.0, 120.0, 600.0)
"""Seconds before the next try, after a failure on the way to the model."""
HAND = "by hand, process "
"""Before the id of the process that runs it, while it does."""
_HELD = 60.0
"""Seconds to wait where other work holds the budget."""
_WATCH = 1.0


def run(job: Job) -> JobResult:
    """Do one due run."""
    row = _run_of(job)
    if not row.live:
        return JobResult(row.state, row.reason)
    try:
        if row.state == "ran" and row.schedule not in schedule_store.names():
            return _end_run(row, "done", row.reason)  # a one-shot, in the trash by now
        schedule = schedule_store.read(row.schedule)
        if row.state != "ran":
            if why := _outdated(schedule, row):
                return _end_run(row, "skipped", why)
            held = _reserve(schedule)
            if held.refusal:
                return _held_up(schedule, row, held.refusal)
            try:
                row, outcome = _run_session(schedule, row, held)
            finally:
                budget.settle(held)
            if outcome.passing and row.attempt <= len(AGAIN):
                return _again(row, outcome)
            if not outcome.succeeded:
                return _failed(row, _why(outcome))
            row = advance(row, "ran", output=outcome.text, reason="")
            if not row.live:  # given up meanwhile
                return JobResult(row.state, row.reason)
    except (Busy, Unwritable):
        raise  # these pass: the queue tries again
    except TacitError as error:
        return _failed(row, error.explain())
    return finish(schedule, row)


def finish(schedule: Schedule, row: ScheduleRun) -> JobResult:
    """Deliver a run that succeeded, put a one-shot into the trash, and be done."""
    row = delivery.deliver(schedule, row, load_settings().settings.schedule.webhook_hosts)
    outside = [f"{p}: {said}" for p, said in row.delivered.items() if said.startswith("failed")]
    if outside:
        text = f"{row.schedule}: output was not delivered everywhere ({'; '.join(outside)})"
        delivery.tell_user(f"undelivered:{row.id}", text)
    reason = row.reason
    if _is_spent(schedule, row):
        try:
            schedule_store.remove(schedule.name, Requester(reason=f"ran once: {row.id}"))
        except TacitError as error:  # it was removed meanwhile, or is pinned: nothing is lost
            reason = f"not put into the trash: {error.message}"
    advance(row, "done", reason=reason)
    return JobResult("silent" if row.silent else "done", "; ".join(outside))


def record_hand(schedule: Schedule, outcome: RunOutcome, row: ScheduleRun) -> None:
    """Record the result of a run by hand. A one-shot that had failed is over when it succeeds."""
    row = advance(row, "running", refused=outcome.refused, output=outcome.text, reason="")
    if not outcome.succeeded:
        advance(row, "failed", reason=_why(outcome))
        return
    if _is_spent(schedule, row):
        try:
            schedule_store.remove(schedule.name, Requester(reason=f"ran by hand: {row.id}"))
        except TacitError:
            pass
    # Whoever ran it has read it.
    advance(row, "done", read=True)


def begin_hand(schedule: Schedule, session: str) -> ScheduleRun:
    """A row for a run by hand that begins now."""
    now = datetime.now(UTC)
    row = ScheduleRun(
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
    with schedule_runs.write_runs() as connection:
        schedule_runs.add_run(connection, row, now)
    return row


def _run_of(job: Job) -> ScheduleRun:
    """The run that a job is for; made anew where the database has lost it."""
    due = datetime.fromtimestamp(float(job.payload["due"]), UTC)
    name = str(job.payload["schedule"])
    with schedule_runs.write_runs() as connection:
        found = schedule_runs.run_by_id(connection, job.key)
        if found is not None:
            return found
        row = ScheduleRun(id=job.key, schedule=name, due=due, why="due", state="sent")
        schedule_runs.add_run(connection, row, datetime.now(UTC))
        return row


def _outdated(schedule: Schedule, row: ScheduleRun) -> str:
    """Why a run is not wanted any more."""
    if cancelled():
        return "cancelled"
    if schedule.binding.paused:
        return "the schedule was paused meanwhile"
    if row.due <= schedule.binding.since <= datetime.now(UTC):  # not one from a clock ahead
        return "the schedule's time was changed meanwhile"
    return ""


def _reserve(schedule: Schedule) -> Reservation:
    """What the run may take of what is left of the day."""
    settings = load_settings(schedule.binding.project).settings
    chosen = settings.schedule
    limits = Limits(0, schedule.binding.seconds, chosen.tokens, chosen.money)
    return budget.reserve(settings.learn, limits)


def _run_session(
    schedule: Schedule, row: ScheduleRun, held: Reservation
) -> tuple[ScheduleRun, RunOutcome]:
    """The session. What it spends is counted."""
    acting = ScheduleSession(schedule, row.due, limits=held.limits)
    try:
        now = datetime.now(UTC)
        session = acting.session.context.session
        row = advance(row, "running", now=now, began=now, attempt=row.attempt + 1, session=session)
        outcome = asyncio.run(_watched(acting, row, held))
    finally:
        acting.close()
        _store(row.session)
    return advance(row, "running", refused=outcome.refused), outcome


def _store(session: str) -> None:
    """Take the session in like any other that is over, so that what failed in it is repaired."""
    try:
        source = find_source(OWN_HOST, session) if session else None
        if source is not None:
            with Store.open() as store:
                store_session(store, source, session_stored, ended=True)
    except TacitError as error:  # the run is what counts here
        log(f"{session} is not in the store: {error.message}")


async def _watched(acting: ScheduleSession, row: ScheduleRun, held: Reservation) -> RunOutcome:
    """Run it; stop when the job is cancelled."""

    async def read() -> None:
        async for event in acting.stream():
            if isinstance(event, agent_events.Usage):
                budget.record_spending("schedule", row.id, event, seconds=0.0, reserved=held)

    task = asyncio.create_task(read())
    while not task.done():
        await asyncio.wait({task}, timeout=_WATCH)
        if not task.done() and await asyncio.to_thread(cancelled):
            task.cancel()
            await asyncio.wait({task})
            return RunOutcome("interrupted", error="cancelled")
    await task
    return acting.outcome


def _again(row: ScheduleRun, outcome: RunOutcome) -> JobResult:
    wait = AGAIN[row.attempt - 1]
    advance(row, "sent", reason=f"tried again: {outcome.error}")
    return JobResult("put off", outcome.error, later=wait)


def _held_up(schedule: Schedule, row: ScheduleRun, refusal: str) -> JobResult:
    """The day's budget is spent, which is told; or others hold it for now, which passes."""
    if budget.is_spent(load_settings(schedule.binding.project).settings.learn):
        return _failed(row, refusal)
    advance(row, "sent", reason=f"waits: {refusal}")
    return JobResult("put off", refusal, later=_HELD)


def _failed(row: ScheduleRun, reason: str) -> JobResult:
    done = _end_run(row, "failed", reason)
    failed = msgspec.structs.replace(row, state="failed", reason=reason)
    delivery.tell_user(row.id, delivery.headline(failed))
    return done


def _end_run(row: ScheduleRun, state: RunState, reason: str) -> JobResult:
    advance(row, state, reason=reason)
    return JobResult(state, reason)


def _why(outcome: RunOutcome) -> str:
    if outcome.error:
        return outcome.error
    if outcome.reason == "interrupted":
        return "it was interrupted"
    return f"the limit on {outcome.reason} was reached"


def _is_spent(schedule: Schedule, row: ScheduleRun) -> bool:
    """Whether a one-shot has nothing left to come after this run."""
    timing = schedule.binding.timing
    return isinstance(timing, Once) and row.due >= timing.at


class ByHand:
    """One run by hand. `close` it in any case."""

    def __init__(
        self, schedule: Schedule, *, approve: Ask | None = None, ask: AskUser | None = None
    ) -> None:
        """Raises `NotFound` or `Refused` where it cannot be run, with the reason."""
        self.schedule = schedule
        self._acting = ScheduleSession(
            schedule, datetime.now(UTC), by_hand=True, approve=approve, ask=ask
        )
        self._row: schedule_runs.ScheduleRun | None = None

    @property
    def refused(self) -> tuple[str, ...]:
        return self._acting.outcome.refused

    @property
    def session(self) -> str:
        return self._acting.session.context.session

    async def stream(self) -> AsyncGenerator[agent_events.AnyEvent, None]:
        """What happens, as it happens."""
        self._row = begin_hand(self.schedule, self.session)
        async for event in self._acting.stream():
            if isinstance(event, agent_events.End):
                self._end()
            yield event

    def close(self) -> None:
        """End it. Calling it again changes nothing."""
        self._end()
        self._acting.close()

    def _end(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            record_hand(self.schedule, self._acting.outcome, row)


_SETTLE = 60.0
"""Seconds after which a run that nothing was heard of is looked for in the queues."""


class Fired(msgspec.Struct, frozen=True):
    """The result of one round of planning."""

    begun: bool
    busy: bool
    """Whether a run is not over."""
    next: datetime | None


def fire(now: datetime, send: Send) -> Fired:
    """Plan what is due, queue it, and tell what there is to tell. Raises `TacitError`."""
    good, bad = schedule_store.listing()
    me = login()
    mine = [schedule for schedule in good if schedule.binding.owner in ("", me)]
    planned = plan(now, mine, send)
    for news in planned.news:
        log(news.text)
        delivery.tell_user(news.key, news.text)
    for broken in bad:
        delivery.tell_user(f"broken:{broken.name}", f"{broken.why} · {broken.hint}")
    with schedule_runs.open_runs() as connection:
        live = schedule_runs.live_runs(connection)
    end_lost_runs(live, now, send)
    return Fired(bool(planned.sent), bool(live), planned.next)


def tidy(now: datetime) -> None:
    """Delete what has lain in the trash for long enough, and the record of old runs."""
    schedule_runs.forget_old_runs(now)
    for name in schedule_store.empty_trash(now, load_settings().settings.schedule.trash_days):
        log(f"schedules: {name} is out of the trash")


def end_lost_runs(live: list[ScheduleRun], now: datetime, send: Send) -> None:
    """See to the runs that nobody works on any more.

    One by hand whose process is gone has failed, and so has one whose job is over without a result.
    A job that no queue knows, since its database was lost, is queued again.
    """
    for row in live:
        if row.why == "hand" and row.state == "running" and not _is_alive(row.reason):
            _end(row, "the run by hand was stopped", now)
    old = now - timedelta(seconds=_SETTLE)
    silent = [r for r in live if r.state in ("sent", "running", "ran") and r.why != "hand"]
    silent = [row for row in silent if row.changed < old]
    known = jobs_db.live_jobs(jobs_db.address()) if silent else {}
    for row in silent:
        is_live = known.get(own_ticket("schedule", row.id).job)
        if is_live is None and send(row.id, schedule_runs.job_payload(row)):
            log(f"{row.id} is in no queue: queued again")
            with schedule_runs.write_runs() as connection:
                schedule_runs.update_run(connection, row.id, now)
        elif is_live is False:
            _end(row, "its job ended without a result; see: tacit jobs", now)


def _end(row: ScheduleRun, reason: str, now: datetime) -> None:
    advance(row, "failed", now=now, reason=reason)
    if row.why != "hand":
        delivery.tell_user(row.id, f"{row.schedule} failed: {reason}")


def _is_alive(reason: str) -> bool:
    try:
        os.kill(int(reason.removeprefix(HAND)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
