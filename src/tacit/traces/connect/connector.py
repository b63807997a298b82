"""What connecting an agent takes: the duties of a connector, and the command that agents call."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Protocol

import msgspec

from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.traces.connect.change import FileChange

SECONDS = 5
"""How long an agent lets the hook run. It takes hundredths; three seconds is its own limit."""


class Agent(msgspec.Struct, frozen=True):
    """An agent as it is found on a machine."""

    host: str
    title: str
    programs: tuple[str, ...]
    home: str
    """Its folder below the user's home."""
    variable: str = ""
    """The variable that moves that folder."""

    def folder(self) -> str:
        moved = os.environ.get(self.variable, "").strip() if self.variable else ""
        if moved:
            return os.path.abspath(os.path.expanduser(moved))
        return os.path.join(paths.user_home(), self.home)

    def program(self) -> str:
        """The path of its program, or nothing."""
        return next((found for name in self.programs if (found := shutil.which(name))), "")

    def is_installed(self) -> bool:
        """Whether its program is on the PATH, or its folder is there and not by our doing."""
        if self.program():
            return True
        from tacit.traces.connect import records

        folder = self.folder()
        made = (path for record in records.load().values() for path in record.folders)
        return os.path.isdir(folder) and os.path.realpath(folder) not in made


class Hook(msgspec.Struct, frozen=True):
    """The hook program as it is called: usually one path, with spaces in it two."""

    words: tuple[str, ...]

    def command(self, host: str, event: str) -> str:
        """For a shell, and for those who split like one."""
        return shlex.join([*self.words, host, event])


class Connector(Protocol):
    """Connects one agent. Planning reads files and changes none; writing is `change.py`."""

    @property
    def agent(self) -> Agent: ...

    @property
    def todo(self) -> str:
        """What the user must still do once connected; empty where nothing is left."""
        ...

    def file(self) -> str:
        """The file that is written, whether it exists or not."""
        ...

    def connecting(self, hook: Hook) -> FileChange | None:
        """The change that makes the agent call `hook`; None where it does already.

        Raises `BadConfig` for a file that cannot be read or edited safely, `Refused` where
        something of the user's is in the way.
        """
        ...

    def disconnecting(self) -> FileChange | None:
        """The change that takes out every call of ours and nothing else; None where there is none.

        By the file alone, since what was written may be long ago and on another machine.
        """
        ...

    def calls(self) -> Mapping[str, str]:
        """By event, the command of ours that the agent is told to run. Never raises."""
        ...

    def events(self) -> tuple[str, ...]:
        """The events that are hooked."""
        ...


def is_ours(command: object) -> bool:
    """Whether a command runs the hook program: the one mark by which entries of ours are known."""
    return isinstance(command, str) and bool(
        re.search(r"(^|[\s/\"'])tacit-hook[\"']?\s+[a-z]", command)
    )


def trouble_with(command: str) -> str:
    """Why a command of ours cannot run, or nothing when it can."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "its command cannot be split into words"
    for word in words:
        if not os.path.isabs(word):
            break
        if not os.access(word, os.X_OK):
            return f"{word} cannot be run" if os.path.exists(word) else f"{word} does not exist"
        try:
            with open(word, "rb") as file:
                first = file.readline(4096)
        except OSError as error:
            return f"{word}: {error.strerror}"
        interpreter = os.fsdecode(first[2:].strip()) if first.startswith(b"#!") else ""
        if interpreter.startswith(os.sep) and not os.access(interpreter, os.X_OK):
            return f"{word} needs {interpreter}, which does not exist"
    return ""


def find_hook() -> Hook:
    """The hook program of this installation."""
    folders = [os.path.dirname(sys.executable), os.path.dirname(os.path.abspath(sys.argv[0]))]
    for folder in folders:
        path = os.path.join(folder, "tacit-hook")
        if os.access(path, os.X_OK):
            # The kernel takes neither spaces nor very long paths in the first line of a script.
            awkward = " " in sys.executable or len(sys.executable) > 120
            return Hook((sys.executable, path) if awkward else (path,))
    raise NotFound(
        f"the program tacit-hook is not beside {sys.executable}",
        "install tacit again: pip install tacit",
    )
