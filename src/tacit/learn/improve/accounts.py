"""What came of the failed uses of skills in one session, for whoever asks why. Begins nothing."""

import os
from datetime import UTC, datetime

import msgspec

from tacit.base.sections import Settings
from tacit.learn import recording
from tacit.learn.improve.repairs import Repairs
from tacit.learn.improve.triggers import aside, cases
from tacit.learn.usage import runs_of
from tacit.traces.store import Store


class Account(msgspec.Struct, frozen=True):
    """One skill that failed in the session."""

    skill: str
    outcome: str
    """That of the repair; `not looked at` where there was none."""
    reason: str
    change: str = ""
    at: datetime | None = None


def accounts(store: Store, session: str, settings: Settings) -> list[Account]:
    """The repairs that a session led to, and why its other failures led to none."""
    found = [
        Account(os.path.basename(tried.skill), tried.outcome, tried.note, tried.change, tried.at)
        for tried in Repairs(store.connection).in_session(session)
    ]
    trace = store.trace(session)
    looked_at = {account.skill for account in found}
    judged = {case.run.skill: case for case in cases(store, trace, settings)}
    for run in runs_of(trace, recording.versions_for(trace.project)):
        if run.skill in looked_at or not any(step.failed for step in run.governed):
            continue
        looked_at.add(run.skill)
        case = judged.get(run.skill)
        why = case.why_not or "it waits for its turn" if case is not None else aside(run)
        found.append(Account(run.skill, "not looked at", why, at=run.at or datetime.now(UTC)))
    return found
