"""A run that a person starts: `/sched-NAME` in a chat, or `tacit schedule run NAME`.

The same session as when it fires, told that it is run by hand. Whoever started it watches, can be
asked, and has read the output when it is over; it is on record with the others.
"""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

from tacit.agent import events
from tacit.agent.approval import Ask
from tacit.agent.session import AskUser
from tacit.work.schedules import job, runs
from tacit.work.schedules.acting import Acting
from tacit.work.schedules.shelf import Schedule


class ByHand:
    """One run by hand. `close` it in any case."""

    def __init__(
        self, schedule: Schedule, *, approve: Ask | None = None, ask: AskUser | None = None
    ) -> None:
        """Raises `NotFound` or `Refused` where it cannot be run, with the reason."""
        self.schedule = schedule
        self._acting = Acting(schedule, datetime.now(UTC), by_hand=True, approve=approve, ask=ask)
        self._row: runs.Row | None = None

    @property
    def refused(self) -> tuple[str, ...]:
        return self._acting.outcome.refused

    @property
    def session(self) -> str:
        return self._acting.session.context.session

    async def stream(self) -> AsyncGenerator[events.AnyEvent, None]:
        """What happens, as it happens."""
        self._row = job.begin_hand(self.schedule, self.session)
        async for event in self._acting.stream():
            if isinstance(event, events.End):
                self._end()
            yield event

    def close(self) -> None:
        """Twice is the same as once."""
        self._end()
        self._acting.close()

    def _end(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            job.record_hand(self.schedule, self._acting.outcome, row)
