"""What the engine keeps for an attempt at a job."""

from typing import Any

import msgspec

from tacit.work import kinds


class Ticket(msgspec.Struct, frozen=True):
    """What the engine keeps for an attempt."""

    kind: str
    key: str
    payload: dict[str, Any] = {}
    attempt: int = 1
    faults: int = 0
    home: str = ""
    """The machine that asked, where several share the queues."""

    @property
    def job(self) -> str:
        return kinds.job_id(self.kind, self.key)

    @property
    def run(self) -> str:
        """The id of this attempt."""
        return self.job if self.attempt == 1 else f"{self.job}.{self.attempt}"
