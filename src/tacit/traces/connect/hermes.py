"""Hermes: `hooks` in its `config.yaml`, and the shared skills folder among those that it reads.

Hermes reads skills only in its own folder and in `skills.external_dirs`; the others read
`.agents/skills` by themselves, or get links.
"""

import os
from typing import Any

import msgspec

from tacit.base.errors import BadConfig, TacitError
from tacit.traces.connect import yaml_edit
from tacit.traces.connect.change import FileChange, read
from tacit.traces.connect.connector import SECONDS, Agent, Hook, is_ours
from tacit.traces.connect.splices import apply
from tacit.traces.connect.yaml_edit import Malformed, TooOdd

SKILLS = "~/.agents/skills"
EVENTS = ("on_session_end", "on_session_finalize")
Path = tuple[str | int, ...]


class Hermes(msgspec.Struct, frozen=True):
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
        before = read(path)
        value = self._parse(before or "")
        ours = dict(_ours(value))
        wanted = {event: hook.command("hermes", event) for event in EVENTS}
        addition: dict[str, Any] = {
            "hooks": {e: [{"command": c, "timeout": SECONDS}] for e, c in wanted.items()}
        }
        if sorted((path[1], command) for path, command in ours.items()) == sorted(wanted.items()):
            return None
        try:
            clean = _without_ours(before or "") if ours else before or ""
            if SKILLS not in _skills(self._parse(clean)):
                addition["skills"] = {"external_dirs": [SKILLS]}
            splices = yaml_edit.add(clean, addition)
        except TooOdd as error:
            by_hand = yaml_edit.lines(addition).rstrip().replace("\n", "\n  ")
            raise BadConfig(
                f"{path} cannot be edited safely: {error}",
                f"nothing was changed; add these lines by hand:\n  {by_hand}",
            ) from error
        return FileChange(path, before, apply(clean, splices), splices, pristine=not ours)

    def disconnecting(self) -> FileChange | None:
        before = read(self.file())
        if before is None or not list(_ours(self._parse(before))):
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
            found = _ours(self._parse(read(self.file()) or ""))
        except TacitError:
            return {}
        return {str(path[1]): command for path, command in found}

    def _parse(self, text: str) -> Any:
        try:
            return yaml_edit.parse(text)
        except Malformed as error:
            raise BadConfig(
                f"{self.file()} is not valid YAML, {error}",
                "nothing was changed; mend it, then: tacit connect hermes",
            ) from error


def _ours(value: Any) -> list[tuple[Path, str]]:
    """The paths of our hooks, and their commands."""
    found: list[tuple[Path, str]] = []
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
    while ours := _ours(yaml_edit.parse(text)):
        text = yaml_edit.remove(text, _widened(yaml_edit.parse(text), ours[0][0]))
    value = yaml_edit.parse(text)
    for i, folder in enumerate(_skills(value)):
        path: Path = ("skills", "external_dirs", i)
        if folder == SKILLS and yaml_edit.MARK in yaml_edit.source(text, path):
            return yaml_edit.remove(text, _widened(value, path))
    return text


def _widened(value: Any, path: Path) -> Path:
    """`path`, or what is around it as long as nothing else is in there."""
    while len(path) > 1:
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        if len(holder) > 1:
            break
        path = path[:-1]
    return path


CONNECTOR = Hermes()
