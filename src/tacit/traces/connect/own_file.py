"""Agents that load every file of a folder: they get one file of ours, and nothing is edited."""

import os
from collections.abc import Callable, Mapping

import msgspec

from tacit.base.errors import Refused, TacitError
from tacit.traces.connect.change import FileChange, read
from tacit.traces.connect.connector import Agent, Hook

MARK = "tacit-hook"


class OwnFile(msgspec.Struct, frozen=True):
    """A connector for one such agent; see `Connector` for its duties."""

    agent: Agent
    name: str
    """The file in the agent's folder."""
    hooked: tuple[str, ...]
    content: Callable[[Hook], str]
    read_calls: Callable[[str], Mapping[str, str]]
    """The commands in a text that `content` wrote, by event."""
    todo: str = ""

    def file(self) -> str:
        return os.path.join(self.agent.folder(), self.name)

    def events(self) -> tuple[str, ...]:
        return self.hooked

    def connecting(self, hook: Hook) -> FileChange | None:
        path, after = self.file(), self.content(hook)
        before = read(path)
        if before == after:
            return None
        if before is not None and MARK not in before:
            raise Refused(
                f"{path} is not Tacit's, but stands where its file would go",
                "move it away and try again",
            )
        return FileChange(path, before, after, pristine=False)

    def disconnecting(self) -> FileChange | None:
        before = read(self.file())
        if before is None or MARK not in before:
            return None
        return FileChange(self.file(), before, None)  # a backup, unless nobody changed it

    def calls(self) -> Mapping[str, str]:
        try:
            text = read(self.file())
        except TacitError:
            return {}
        return self.read_calls(text) if text else {}
