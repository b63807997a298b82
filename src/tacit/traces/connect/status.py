"""How each agent stands: installed, connected, when it was last heard, and what is wrong."""

import json
import os
import re
import sqlite3

import msgspec

from tacit.base.errors import TacitError
from tacit.traces import events
from tacit.traces.connect.connector import Agent, Connector, trouble_with
from tacit.traces.connect.registry import CONNECTORS

_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)")


class Status(msgspec.Struct, frozen=True):
    """One agent."""

    host: str
    title: str
    installed: bool
    version: str
    """As its files say; empty where that would take running it."""
    connected: bool
    """Told to call the hook for at least one event."""
    trouble: str
    """Why it will not be heard although it is connected; mended by connecting it again."""
    heard: float | None
    """When it last called, in seconds since 1970."""
    sessions: int | None
    """How many of its sessions are in the store; None where the store cannot be read."""
    file: str
    todo: str


def statuses() -> list[Status]:
    """Every agent that Tacit knows."""
    heard = events.heard()
    seen = _sessions()
    return [
        _status(connector, heard.get(host), None if seen is None else seen.get(host, 0))
        for host, connector in CONNECTORS.items()
    ]


def _sessions() -> dict[str, int] | None:
    """The sessions in the store, by host. A store that is not there yet is not made."""
    from tacit.base import database
    from tacit.traces.store import Store

    if not os.path.exists(database.default_path()):
        return {}
    try:
        with Store.open() as store:
            return store.counts()
    except (TacitError, sqlite3.Error):
        return None


def _status(connector: Connector, heard: float | None, sessions: int | None) -> Status:
    agent = connector.agent
    calls = connector.calls()
    return Status(
        host=agent.host,
        title=agent.title,
        installed=agent.is_installed(),
        version=version_of(agent),
        connected=bool(calls),
        trouble=_trouble(connector, dict(calls)),
        heard=heard,
        sessions=sessions,
        file=connector.file(),
        todo=connector.todo,
    )


def _trouble(connector: Connector, calls: dict[str, str]) -> str:
    if not calls:
        try:
            connector.disconnecting()  # reads the file as connecting would
        except TacitError as error:
            return error.message
        return ""
    for command in calls.values():
        if trouble := trouble_with(command):
            return trouble
    missing = [event for event in connector.events() if event not in calls]
    return f"not called at {' and '.join(missing)}" if missing else ""


def version_of(agent: Agent) -> str:
    """The version by the files around its program: package.json, or a name in the path."""
    program = agent.program()
    if not program:
        return ""
    folder = os.path.realpath(program)
    for _ in range(4):
        name = os.path.basename(folder)
        if found := _VERSION.fullmatch(name):
            return found[1]
        folder = os.path.dirname(folder)
        try:
            with open(os.path.join(folder, "package.json"), "rb") as file:
                value = json.loads(file.read(1 << 20))
        except (OSError, ValueError, RecursionError):
            continue
        version = value.get("version") if isinstance(value, dict) else None
        return version if isinstance(version, str) else ""
    return ""
