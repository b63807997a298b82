"""Agents that keep hooks in a JSON file under `hooks.<Event>`, as Claude Code began it.

{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…", "timeout": 5}]}]}}
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.base.errors import BadConfig, TacitError
from tacit.traces.connect.change import BACKUP, FileChange, read
from tacit.traces.connect.connector import SECONDS, Agent, Hook, is_ours
from tacit.traces.connect.jsonc import Malformed, parse
from tacit.traces.connect.jsonc_edit import WrongShape, add, remove
from tacit.traces.connect.splices import apply

Path = tuple[str | int, ...]


class JsonHooks(msgspec.Struct, frozen=True):
    """A connector for one such agent; see `Connector` for its duties."""

    agent: Agent
    name: str
    """The file in the agent's folder."""
    hooked: tuple[str, ...]
    milliseconds: bool = False
    """Whether the agent takes a timeout in milliseconds, not in seconds."""
    seconds: int = SECONDS
    """How long the agent lets the hook run."""
    todo: str = ""

    def file(self) -> str:
        return os.path.join(self.agent.folder(), self.name)

    def events(self) -> tuple[str, ...]:
        return self.hooked

    def connecting(self, hook: Hook) -> FileChange | None:
        path = self.file()
        before = read(path)
        wanted = self._entries(hook)
        value = self._parse(before or "")
        ours = list(_ours(value))
        if self._is_right(value, ours, wanted):
            return None
        clean = self._without_ours(before or "") if ours else before or ""
        try:
            splices = add(clean, {"hooks": wanted})
        except WrongShape as error:
            raise BadConfig(
                f"cannot add hooks to {path}: {error}", "mend that part of the file and try again"
            ) from error
        after = apply(clean, splices)
        return FileChange(path, before, after, splices, pristine=not ours)

    def disconnecting(self) -> FileChange | None:
        path = self.file()
        before = read(path)
        if before is None or not list(_ours(self._parse(before))):
            return None
        after = self._without_ours(before)
        return FileChange(path, before, after, pristine=False)

    def calls(self) -> dict[str, str]:
        try:
            value = self._parse(read(self.file()) or "")
        except TacitError:
            return {}
        return {str(path[1]): command for path, command in _ours(value)}

    def _entries(self, hook: Hook) -> dict[str, Any]:
        timeout = self.seconds * 1000 if self.milliseconds else self.seconds
        return {
            event: [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": hook.command(self.agent.host, event),
                            "timeout": timeout,
                        }
                    ]
                }
            ]
            for event in self.hooked
        }

    def _is_right(self, value: Any, ours: list[tuple[Path, str]], wanted: dict[str, Any]) -> bool:
        """Whether there is exactly one call of ours for each event, and it is the right one."""
        found = sorted((str(path[1]), _at(value, path)["command"]) for path, _ in ours)
        right = sorted((event, group[0]["hooks"][0]["command"]) for event, group in wanted.items())
        return found == right

    def _parse(self, text: str) -> Any:
        try:
            return parse(text)
        except Malformed as error:
            raise BadConfig(
                f"{self.file()} is not valid JSON, {error}",
                f"nothing was changed; mend it, then: tacit connect {self.agent.host}",
            ) from error

    def _without_ours(self, text: str) -> str:
        """Take every call of ours out, and what it leaves empty, except what was empty before."""
        while found := next(_ours(value := parse(text)), None):
            path = found[0]  # hooks, event, number of the group, hooks, number of the hook
            if len(_at(value, path[:4])) == 1:
                path = path[:3]
                for outer in (path[:2], path[:1]):
                    if len(_at(value, outer)) > 1 or self._was_empty(outer):
                        break
                    path = outer
            text = remove(text, path)
        return text

    def _was_empty(self, path: Path) -> bool:
        """Whether the user had an empty list or object there, as the backup says."""
        try:
            return _at(parse(read(self.file() + BACKUP) or ""), path) in ([], {})
        except (TacitError, Malformed, LookupError, TypeError):
            return False


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _ours(value: Any) -> Iterator[tuple[Path, str]]:
    """The paths of our hooks in a settings file, and their commands."""
    events = value.get("hooks") if isinstance(value, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for i, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for j, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command")):
                    yield ("hooks", event, i, "hooks", j), hook["command"]
