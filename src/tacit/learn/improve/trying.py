"""The bench: commands run on a copy of a skill, in the sandbox, without a network.

The project can be read and not written, the copy lies in a folder of its own that goes afterwards;
so a command that failed can be run again, before and after a repair, without doing anything. Where
there is no sandbox nothing is run, whatever the settings allow the user's own chat.
"""

import asyncio
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from tacit.agent import running, sandbox
from tacit.agent.running import Outcome
from tacit.agent.sandbox import Sandbox
from tacit.agent.walls import Rules
from tacit.base import paths
from tacit.base.errors import Refused
from tacit.changes.files import File
from tacit.learn.background import room
from tacit.learn.improve.screen import elsewhere

SECONDS = 20.0
MOST = 3
"""Commands that are run again."""
_PARSERS = {"sh": ("bash", "bash -n"), "js": ("node", "node --check")}
_NO_PARSER = 64

State = Literal["fixed", "still fails", "fails now", "does not fail here"]


class Tried(msgspec.Struct, frozen=True):
    """One failed command, run before and after."""

    command: str
    state: State
    said: str = ""
    """The end of what it said after the repair."""


class Bench:
    """A place to run commands. Each gets a fresh copy, so none finds what another left."""

    def __init__(
        self, box: Sandbox, project: str, folder: str, name: str, hide: tuple[str, ...] = ()
    ) -> None:
        """`folder` is where the skill really lies, `name` what its copy is called.

        `hide` is what commands must not see; `open_bench` knows what that is.
        """
        self._box = box
        self._folder = folder
        self._name = name
        self._project = os.path.realpath(project) if os.path.isdir(project) else ""
        self._hide = hide

    def run(self, command: str, files: Mapping[str, File], seconds: float = SECONDS) -> Outcome:
        """Run `command` in the project with `files` for the skill; `$SKILL_DIR` is their folder.

        What it writes is gone afterwards.
        """
        temporary = os.path.realpath(tempfile.mkdtemp(prefix="tacit-bench-"))
        try:
            lay_out(os.path.join(temporary, self._name), files)
            rules = Rules(
                project=self._project or temporary,
                temporary=temporary,
                read_only_project=bool(self._project),
                hide=self._hide,
            )
            place = self.place if self._box.name == "bubblewrap" else f"{temporary}/{self._name}"
            text = f"export SKILL_DIR={shlex.quote(place)}\n{command}"
            return asyncio.run(running.run(text, self._box, rules, seconds))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @property
    def place(self) -> str:
        """The copy's folder, as a command sees it."""
        # Only in bubblewrap is /tmp a folder of its own; elsewhere the place differs each time.
        return f"/tmp/{self._name}" if self._box.name == "bubblewrap" else "$SKILL_DIR"  # noqa: S108

    def parse(self, kind: str, path: str, files: Mapping[str, File]) -> str | None:
        """What is wrong with the script; empty for nothing; None when nothing here can tell."""
        program, parser = _PARSERS[kind]
        there = f"command -v {program} >/dev/null || exit {_NO_PARSER}"
        done = self.run(f'{there}\ncd "$SKILL_DIR" && {parser} {shlex.quote(path)}', files)
        if done.timed_out or done.exit_code == _NO_PARSER:
            return None
        return done.output.strip()[-300:] or "it does not" if done.exit_code else ""

    def compare(
        self, commands: Iterable[str], old: Mapping[str, File], new: Mapping[str, File]
    ) -> tuple[Tried, ...]:
        """Run commands that failed on the old files and on the new ones."""
        found = []
        for command in list(dict.fromkeys(commands))[:MOST]:
            moved = self.moved(command, old.keys() | new.keys())
            before, after = self.run(moved, old), self.run(moved, new)
            state: State = "still fails" if after.failed else "fixed"
            if not before.failed:
                state = "fails now" if after.failed else "does not fail here"
            found.append(Tried(command, state, after.output.strip()[-500:]))
        return tuple(found)

    def moved(self, command: str, files: Iterable[str]) -> str:
        """`command` with the skill's own folder replaced by the copy's."""
        home = paths.user_home()
        spellings = {self._folder, os.path.realpath(self._folder)}
        for spelling in tuple(spellings):
            if spelling.startswith(f"{home}/"):
                spellings |= {f"{start}{spelling[len(home) :]}" for start in ("~", "$HOME")}
        for spelling in sorted(spellings, key=len, reverse=True):
            command = command.replace(spelling, self.place)
        for path in sorted(files, key=len, reverse=True):
            if "/" in path and not os.path.exists(os.path.join(self._project, path)):
                relative = rf"(?<![\w/.~$}}-])(?:\./)?{re.escape(path)}(?![\w/])"
                place = f"{self.place}/{path}".replace("\\", r"\\")
                command = re.sub(relative, place, command)
        return command


def lay_out(folder: str, files: Mapping[str, File]) -> None:
    """Write `files` into a new folder; links are left out."""
    os.makedirs(folder)
    for path, file in files.items():
        if file.kind == "link":
            continue
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as out:
            out.write(file.data)
        if file.kind == "program":
            os.chmod(target, 0o700)


def open_bench(project: str, folder: str, name: str) -> Bench | None:
    """A bench where commands see of people's files the project alone; None where that cannot be."""
    box = find_sandbox()
    project = room.readable_project(project)
    hide = elsewhere(project)
    return Bench(box, project, folder, name, hide) if box and hide is not None else None


def find_sandbox() -> Sandbox | None:
    """The sandbox of this machine, or None."""
    try:
        return sandbox.find()
    except Refused:
        return None
