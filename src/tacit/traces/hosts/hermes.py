"""Hermes Agent: SQLite at `$HERMES_HOME/state.db`, tables sessions and messages.

Rows that the user took back (inactive, not compacted) are left out. A compaction keeps the old
rows, marked, and writes those that stay once more behind a summary: the copies are left out.

Connected by `hooks` in its `config.yaml`, and by the shared skills folder among those that it
reads: Hermes reads skills only in its own folder and in `skills.external_dirs`.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from tacit.base.errors import BadConfig, TacitError
from tacit.traces import settings_yaml, values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import HOOK_SECONDS, Agent, FileChange, Hook, is_ours, read_settings
from tacit.traces.host import Hooks, stated_outcome
from tacit.traces.settings_json import apply_splices
from tacit.traces.settings_yaml import Malformed, TooOdd
from tacit.traces.sqlite_host import MAX_VALUE, SqliteHost, columns_of
from tacit.traces.trace import Usage

_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_FIRST = 3  # a compaction leaves this many rows at the beginning as they are


class Hermes(SqliteHost):
    name = "hermes"
    title = "Hermes"
    hooks = Hooks(("on_session_end",), ("on_session_finalize",))
    file = ".hermes/state.db"
    listing = """
      SELECT s.id, coalesce((SELECT max(timestamp) FROM messages WHERE session_id = s.id),
        s.started_at) AS changed FROM sessions s ORDER BY changed
    """
    version = """
      SELECT count(*), max(id), sum(active), (SELECT output_tokens FROM sessions
        WHERE id = :session) FROM messages WHERE session_id = :session
    """

    def rows(self, connection: sqlite3.Connection, session: str, into: Assembler) -> Iterator[None]:
        found = connection.execute("SELECT * FROM sessions WHERE id = ?", (session,)).fetchone()
        if found is None:
            return
        self._session(dict(found), into)
        kept = "active = 1 OR compacted = 1"
        if "compacted" not in columns_of(connection, "messages"):
            kept = "active = 1"
        query = f"""
          SELECT role, tool_call_id, tool_calls, timestamp,
            CASE WHEN length(content) <= {MAX_VALUE} THEN content END AS content, length(content)
          FROM messages WHERE session_id = ? AND ({kept}) ORDER BY id
        """  # noqa: S608
        rows = connection.execute(query, (session,))
        for number, row in enumerate(_without_copies(rows)):
            into.begin(number)
            if row["content"] is None and row["length(content)"]:
                into.passed("too-long")
            self._message(row, into)
            yield

    def _session(self, row: dict[str, Any], into: Assembler) -> None:
        into.about(
            session=values.string(row.get("id")),
            model=values.string(row.get("model")),
            project=values.string(row.get("cwd")),
            branch=values.string(row.get("git_branch")),
            title=values.string(row.get("title")),
            parent=values.string(row.get("parent_session_id")),
        )
        into.at(values.when(row.get("started_at")))
        known = row.get("cost_status") not in (None, "unknown")
        cost = row.get("actual_cost_usd") or (row.get("estimated_cost_usd") if known else None)
        into.used_in_all(
            Usage(
                values.count(row.get("input_tokens")),
                values.count(row.get("output_tokens")),
                values.count(row.get("cache_read_tokens")),
                values.count(row.get("cache_write_tokens")),
                values.count(row.get("reasoning_tokens")),
                values.amount(cost),
            )
        )

    def _message(self, row: sqlite3.Row, into: Assembler) -> None:
        at, content = values.when(row["timestamp"]), values.string(row["content"])
        if content.startswith(_SUMMARY):
            into.compacted(content, at)
        elif row["role"] == "user":
            into.prompt(content, at)
        elif row["role"] == "assistant":
            into.said(content, at)
            for call in _calls(row):
                function = values.mapping(call.get("function"))
                name = values.string(function.get("name"))
                into.called(values.string(call.get("id")), name, function.get("arguments"), at)
        elif row["role"] == "tool":
            result, failed, error = stated_outcome(content)
            call_id = values.string(row["tool_call_id"])
            into.returned(call_id, result, failed=failed, error=error, at=at)
        elif row["role"] not in ("system", "session_meta"):
            into.passed("unknown-record")


def _without_copies(rows: Iterable[sqlite3.Row]) -> Iterator[sqlite3.Row]:
    """`rows` without those that a compaction wrote again.

    It writes the first few rows, a summary, and the last rows in their order. The same words said
    again later by the user are no copy: they do not continue that order.
    """
    told: list[int] = []
    held: list[
        tuple[int, sqlite3.Row]
    ] = []  # like the session's first rows: copies, if a summary follows
    places: list[int] = []  # where among `told` the row before may have been copied from
    behind_summary = False
    for row in rows:
        key = hash(row["tool_call_id"] or row["tool_calls"] or (row["role"], row["content"]))
        if str(row["content"]).startswith(_SUMMARY):
            held, places, behind_summary = [], [], True
            yield row
            continue
        if behind_summary:
            places = [place for place, other in enumerate(told) if other == key]
            behind_summary = False
        else:
            places = [at + 1 for at in places if at + 1 < len(told) and told[at + 1] == key]
        if places:
            continue
        if len(told) >= _FIRST and len(held) < _FIRST and key == told[len(held)]:
            held.append((key, row))
            continue
        for _, before in held:
            yield before
        told += (*(other for other, _ in held), key)
        held = []
        yield row
    for _, before in held:
        yield before


def _calls(row: sqlite3.Row) -> list[dict[str, Any]]:
    decoded = values.items(values.decoded_json(row["tool_calls"]))
    return [call for call in decoded if isinstance(call, dict)]


host = Hermes()


SHARED_SKILLS = "~/.agents/skills"
EVENTS = ("on_session_end", "on_session_finalize")
YamlPath = tuple[str | int, ...]


class HermesConnector(msgspec.Struct, frozen=True):
    """See `Connector` for its duties."""

    agent: Agent = Agent("hermes", "Hermes", ("hermes",), ".hermes", "HERMES_HOME")
    todo: str = (
        "Start hermes once in a terminal and allow the two hooks when it asks; runs without a "
        "terminal need --accept-hooks."
    )

    def file(self) -> str:
        return os.path.join(self.agent.folder(), "config.yaml")

    def events(self) -> tuple[str, ...]:
        return EVENTS

    def connecting(self, hook: Hook) -> FileChange | None:
        path = self.file()
        before = read_settings(path)
        value = self._parse(before or "")
        ours = dict(_our_hooks(value))
        wanted = {event: hook.command("hermes", event) for event in EVENTS}
        addition: dict[str, Any] = {
            "hooks": {e: [{"command": c, "timeout": HOOK_SECONDS}] for e, c in wanted.items()}
        }
        if sorted((path[1], command) for path, command in ours.items()) == sorted(wanted.items()):
            return None
        try:
            clean = _without_ours(before or "") if ours else before or ""
            if SHARED_SKILLS not in _skills(self._parse(clean)):
                addition["skills"] = {"external_dirs": [SHARED_SKILLS]}
            splices = settings_yaml.add(clean, addition)
        except TooOdd as error:
            by_hand = settings_yaml.lines(addition).rstrip().replace("\n", "\n  ")
            raise BadConfig(
                f"{path} cannot be edited safely: {error}",
                f"nothing was changed; add these lines by hand:\n  {by_hand}",
            ) from error
        return FileChange(path, before, apply_splices(clean, splices), splices, pristine=not ours)

    def disconnecting(self) -> FileChange | None:
        before = read_settings(self.file())
        if before is None or not list(_our_hooks(self._parse(before))):
            return None
        try:
            after = _without_ours(before)
        except TooOdd as error:
            raise BadConfig(
                f"{self.file()} cannot be edited safely: {error}",
                "take the entries with tacit-hook out by hand",
            ) from error
        return FileChange(self.file(), before, after, pristine=False)

    def calls(self) -> dict[str, str]:
        try:
            found = _our_hooks(self._parse(read_settings(self.file()) or ""))
        except TacitError:
            return {}
        return {str(path[1]): command for path, command in found}

    def _parse(self, text: str) -> Any:
        try:
            return settings_yaml.parse(text)
        except Malformed as error:
            raise BadConfig(
                f"{self.file()} is not valid YAML, {error}",
                "nothing was changed; mend it, then: tacit connect hermes",
            ) from error


def _our_hooks(value: Any) -> list[tuple[YamlPath, str]]:
    """The paths of our hooks, and their commands."""
    found: list[tuple[YamlPath, str]] = []
    events = value.get("hooks") if isinstance(value, dict) else None
    for event, items in events.items() if isinstance(events, dict) else ():
        for i, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and is_ours(item.get("command")):
                found.append((("hooks", event, i), item["command"]))
    return found


def _skills(value: Any) -> list[Any]:
    skills = value.get("skills") if isinstance(value, dict) else None
    folders = skills.get("external_dirs") if isinstance(skills, dict) else None
    return folders if isinstance(folders, list) else []


def _without_ours(text: str) -> str:
    """Take our entries out, and the keys that they leave without a value."""
    while ours := _our_hooks(settings_yaml.parse(text)):
        text = settings_yaml.remove(text, _widened(settings_yaml.parse(text), ours[0][0]))
    value = settings_yaml.parse(text)
    for i, folder in enumerate(_skills(value)):
        path: YamlPath = ("skills", "external_dirs", i)
        if folder == SHARED_SKILLS and settings_yaml.MARK in settings_yaml.source(text, path):
            return settings_yaml.remove(text, _widened(value, path))
    return text


def _widened(value: Any, path: YamlPath) -> YamlPath:
    """`path`, or what is around it as long as nothing else is in there."""
    while len(path) > 1:
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        if len(holder) > 1:
            break
        path = path[:-1]
    return path


CONNECTOR = HermesConnector()
