"""Connecting agents and disconnecting them: plan, execution, record, and how each stands.

One process at a time does this. Each agent stands alone: a broken file of one does not keep the
others from being connected.

What was written is remembered in one small JSON file in the data folder, so that taking it back is
exact to the byte. Without it, or after the user changed a file, entries of ours are still found by
their mark; only the layout around them may then differ.
"""

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import locked, write_atomic
from tacit.base.errors import TacitError, Usage
from tacit.traces import hook_events, host_registry
from tacit.traces.connector import (
    Connector,
    FileChange,
    Hook,
    drop_backup,
    is_installed,
    planning,
    program_of,
    trouble_with,
    write_change,
)
from tacit.traces.host import Host
from tacit.traces.settings_json import Splice, apply_splices, inverse_splices


class Record(msgspec.Struct, frozen=True):
    """One file as it was left."""

    path: str
    digest: str
    """Of the text that was written."""
    created: bool
    """The file was not there before."""
    splices: tuple[Splice, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders that were made for it."""


def load_records() -> dict[str, Record]:
    """By connector. What cannot be read counts as forgotten."""
    try:
        with open(_records_file(), "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, Record])
    except (OSError, msgspec.DecodeError):
        return {}


def remember_connection(key: str, change: FileChange, folders: tuple[str, ...]) -> None:
    """Note what was written under `key`; a file that was ours before stays so."""
    known = load_records()
    old = known.get(key)
    same = old is not None and old.path == change.path
    record = Record(
        path=change.path,
        digest=digest(change.after),
        created=change.before is None or (same and old is not None and old.created),
        splices=change.splices,
        folders=(*(old.folders if same and old is not None else ()), *folders),
    )
    _save_records({**known, key: record})


def forget_connection(key: str) -> None:
    known = load_records()
    if known.pop(key, None) is not None:
        _save_records(known)


def original_text(record: Record, text: str | None) -> str | None:
    """The text before ours was in it. Raises KeyError if `text` is not what was written."""
    if text is None or digest(text) != record.digest:
        raise KeyError(record.path)
    back = inverse_splices(record.splices)
    if record.created:
        return None
    if not all(text.startswith(splice.removed, splice.offset) for splice in back):
        raise KeyError(record.path)
    return apply_splices(text, back)


def remove_folders(record: Record) -> None:
    """Remove the folders that were made, if nothing came into them since."""
    for folder in reversed(record.folders):
        try:
            os.rmdir(folder)
        except OSError:
            break


def digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def _records_file() -> str:
    return os.path.join(paths.folders().data, "connected.json")


def _save_records(known: dict[str, Record]) -> None:
    write_atomic(_records_file(), msgspec.json.encode(known))


class Plan(msgspec.Struct, frozen=True):
    """What is to be done for one agent: a change, nothing, or an error that says why not."""

    connector: Connector
    change: FileChange | None = None
    error: TacitError | None = None

    @property
    def host(self) -> str:
        return self.connector.host.name


def plan_connecting(connectors: Iterable[Connector], hook: Hook) -> list[Plan]:
    """What has to be written so that each agent calls the hook, or knows the MCP server."""
    return _plans(connectors, lambda connector: connector.connecting(hook))


def _plans(
    connectors: Iterable[Connector], change_for: Callable[[Connector], FileChange | None]
) -> list[Plan]:
    """A plan for each, where those for one file follow on each other."""
    plans = []
    with planning() as texts:
        for connector in connectors:
            try:
                change = change_for(connector)
            except TacitError as error:
                plans.append(Plan(connector, error=error))
                continue
            plans.append(Plan(connector, change))
            if change is not None:
                texts[change.path] = change.after
    return plans


def plan_disconnecting(connectors: Iterable[Connector]) -> list[Plan]:
    """What has to be written so that nothing of ours is left; exact if nobody else wrote since."""
    known = load_records()

    def change_for(connector: Connector) -> FileChange | None:
        change = connector.disconnecting()
        record = known.get(connector.key)
        if change is not None and record is not None and record.path == change.path:
            change = _restoring_bytes(change, record)
        return change

    return _plans(connectors, change_for)


def connect(plan: Plan) -> None:
    """Write what the plan says, and remember it. Raises `Refused` if the file changed since."""
    assert plan.change is not None
    with _locked():
        folders = write_change(plan.change)
        remember_connection(plan.connector.key, plan.change, folders)


def disconnect(plan: Plan) -> bool:
    """Take out what was written; whether a backup is left because it says something else."""
    assert plan.change is not None
    with _locked():
        write_change(plan.change)
        record = load_records().get(plan.connector.key)
        left = drop_backup(plan.change.path, plan.change.after)
        if record is not None:
            if plan.change.after is None:
                remove_folders(record)
            forget_connection(plan.connector.key)
    return left


def _restoring_bytes(change: FileChange, record: Record) -> FileChange:
    """`change` with the very bytes that stood there before, if the file is as it was left."""
    try:
        after = original_text(record, change.before)
    except KeyError:
        if change.after is None or not record.created or change.after.strip() not in ("", "{}"):
            return change
        after = None  # the file was ours, and nothing of anybody else's is in it
    return msgspec.structs.replace(change, after=after, pristine=False)


def _locked() -> AbstractContextManager[None]:
    return locked(
        os.path.join(paths.folders().data, "connect.lock"), what="the settings of your agents"
    )


def connectors() -> dict[str, Connector]:
    """How each agent is connected, by host, of all that can be."""
    found = ((host.name, host.connector()) for host in host_registry.each())
    return {name: connector for name, connector in found if connector is not None}


def server_entries() -> dict[str, Connector]:
    """How each agent is told of `tacit mcp`, by host, of all that take MCP servers."""
    found = ((host.name, host.server_entry()) for host in host_registry.each())
    return {name: entry for name, entry in found if entry is not None}


def find_connector(name: str) -> Connector:
    """The connector that a person means by `name`."""
    known = connectors()
    words = {word: found for found in known.values() for word in found.host.aliases} | known
    if name.lower() not in words:
        import difflib

        near = difflib.get_close_matches(name.lower(), [*known, *words], 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        raise Usage(f"there is no agent '{name}' that Tacit can connect", hint)
    return words[name.lower()]


_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)")


class ConnectionStatus(msgspec.Struct, frozen=True):
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
    mcp: bool
    """Told of `tacit mcp`."""
    sessions: int | None
    """How many of its sessions are in the store; None where the store cannot be read."""
    file: str
    todo: str


def statuses() -> list[ConnectionStatus]:
    """Every agent that Tacit knows."""
    heard = hook_events.last_heard()
    seen = _session_counts()
    return [
        _status(connector, heard.get(host), None if seen is None else seen.get(host, 0))
        for host, connector in connectors().items()
    ]


def _session_counts() -> dict[str, int] | None:
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


def _status(connector: Connector, heard: float | None, sessions: int | None) -> ConnectionStatus:
    host = connector.host
    calls = connector.calls()
    return ConnectionStatus(
        host=host.name,
        title=host.title,
        installed=is_installed(host),
        version=version_of(host),
        connected=bool(calls),
        trouble=_trouble(connector, dict(calls)),
        mcp=bool((entry := host.server_entry()) and entry.calls()),
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


def version_of(host: Host) -> str:
    """The version by the files around its program: package.json, or a name in the path."""
    program = program_of(host)
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
