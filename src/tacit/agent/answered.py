"""An answer is over: what is told to the layers above, and what was counted until then.

The counts are part of the conversation. They are found again in its file when it is resumed, so
they survive a kill. `Session` publishes `Answered`; whoever then begins to look at the conversation
publishes `Looked`, and the counting begins anew. Nobody here waits for either.
"""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from tacit.agent.events import Reason

Changed = Literal["", "skill", "fact"]
"""What a call changed of what is kept beyond the conversation."""


class Answered(msgspec.Struct, frozen=True):
    """Event: an answer of the agent has come to its end, well or not."""

    session: str
    project: str
    reason: Reason
    """`done` for a final answer; else the limit, `interrupted` or `error`."""
    iterations: int
    """Requests to the model since a skill was changed here, or the conversation looked at."""
    user_turns: int
    """Messages of the user's since a fact was kept here, or the conversation looked at for some."""
    requests: int
    """All requests to the model in this conversation."""
    skill_changes: int
    """How often this conversation changed a skill."""
    changed_at: datetime | None = None
    """When it last did."""


class Looked(msgspec.Struct, frozen=True):
    """Event: somebody begins to look at a running conversation, for skills, for facts, or both.

    To be published in the thread in which `Answered` was heard. Heard by the session it names.
    """

    session: str
    skills: bool = False
    facts: bool = False


class Counts:
    """What has happened in one conversation."""

    def __init__(self) -> None:
        self.requests = 0
        self.iterations = 0
        self.user_turns = 0
        self.skill_changes = 0
        self.changed_at: datetime | None = None

    def responded(self) -> None:
        """The model has answered a request."""
        self.requests += 1
        self.iterations += 1

    def asked(self) -> None:
        """The user has said something."""
        self.user_turns += 1

    def changed(self, what: Changed, at: object = None) -> None:
        """A call has changed a skill, or kept or dropped a fact."""
        if what == "skill":
            self.skill_changes += 1
            self.changed_at = _when(at)
            self.iterations = 0
        elif what == "fact":
            self.user_turns = 0

    def looked(self, *, skills: bool, facts: bool) -> None:
        """The conversation is being looked at."""
        if skills:
            self.iterations = 0
        if facts:
            self.user_turns = 0

    def answered(self, session: str, project: str, reason: Reason) -> Answered:
        """The event for the end of an answer."""
        return Answered(
            session,
            project,
            reason,
            iterations=self.iterations,
            user_turns=self.user_turns,
            requests=self.requests,
            skill_changes=self.skill_changes,
            changed_at=self.changed_at,
        )


def _when(at: object) -> datetime:
    """The time in a line of a session's file; now, for what happens now."""
    try:
        return datetime.fromisoformat(str(at)) if at else datetime.now(UTC)
    except ValueError:
        return datetime.now(UTC)
