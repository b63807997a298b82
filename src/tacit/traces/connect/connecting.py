"""Connecting and disconnecting agents: the plan, which can be shown, and then its execution.

One process at a time does this. Each agent stands alone: a broken file of one does not keep the
others from being connected.
"""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager

import msgspec

from tacit.base import paths
from tacit.base.errors import TacitError
from tacit.base.locks import locked
from tacit.traces.connect import change as changes
from tacit.traces.connect import records
from tacit.traces.connect.change import FileChange
from tacit.traces.connect.connector import Connector, Hook


class Plan(msgspec.Struct, frozen=True):
    """What is to be done for one agent: a change, nothing, or an error that says why not."""

    connector: Connector
    change: FileChange | None = None
    error: TacitError | None = None

    @property
    def host(self) -> str:
        return self.connector.agent.host


def plan_connecting(connectors: Iterable[Connector], hook: Hook) -> list[Plan]:
    """What has to be written so that each agent calls the hook."""
    plans = []
    for connector in connectors:
        try:
            plans.append(Plan(connector, connector.connecting(hook)))
        except TacitError as error:
            plans.append(Plan(connector, error=error))
    return plans


def plan_disconnecting(connectors: Iterable[Connector]) -> list[Plan]:
    """What has to be written so that nothing of ours is left; exact if nobody else wrote since."""
    known = records.load()
    plans = []
    for connector in connectors:
        try:
            change = connector.disconnecting()
            record = known.get(connector.agent.host)
            if change is not None and record is not None and record.path == change.path:
                change = _exact(change, record)
            plans.append(Plan(connector, change))
        except TacitError as error:
            plans.append(Plan(connector, error=error))
    return plans


def connect(plan: Plan) -> None:
    """Write what the plan says, and remember it. Doing it twice is refused, not repeated."""
    assert plan.change is not None
    with _alone():
        folders = changes.write(plan.change)
        records.remember(plan.host, plan.change, folders)


def disconnect(plan: Plan) -> bool:
    """Take out what was written; whether a backup is left because it says something else."""
    assert plan.change is not None
    with _alone():
        changes.write(plan.change)
        record = records.load().get(plan.host)
        left = changes.drop_backup(plan.change.path, plan.change.after)
        if record is not None:
            if plan.change.after is None:
                records.remove_folders(record)
            records.forget(plan.host)
    return left


def _exact(change: FileChange, record: records.Record) -> FileChange:
    """`change` with the very bytes that stood there before, if the file is as it was left."""
    try:
        after = records.original(record, change.before)
    except KeyError:
        if change.after is None or not record.created or change.after.strip() not in ("", "{}"):
            return change
        after = None  # the file was ours, and nothing of anybody else's is in it
    return msgspec.structs.replace(change, after=after, pristine=False)


def _alone() -> AbstractContextManager[None]:
    return locked(
        os.path.join(paths.folders().data, "connect.lock"), what="the settings of your agents"
    )
