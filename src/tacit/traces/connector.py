"""How an agent is told to call the hook: the duties of a connector, and the two common kinds.

`JsonHooks` edits a JSON file with `hooks.<Event>`, as Claude Code began it:
{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…", "timeout": 5}]}]}}
`OwnFile` gives one file of ours to an agent that loads every file of a folder. Either plans a
`FileChange` to one file of the user's, which is shown as a diff and written with a backup, or not
at all. Which agents are connected, and taking it back, is `connection.py`'s.
"""

import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.display import unified_diff
from tacit.base.errors import BadConfig, NotFound, Refused, TacitError, Unwritable
from tacit.traces.settings_json import (
    BadJson,
    Splice,
    WrongShape,
    add_to_jsonc,
    apply_splices,
    parse_jsonc,
    remove_from_jsonc,
)

BACKUP = ".tacit-backup"


class FileChange(msgspec.Struct, frozen=True):
    """What one file said and is to say. None stands for a file that does not exist."""

    path: str
    before: str | None
    after: str | None
    splices: tuple[Splice, ...] = ()
    """How `after` came from a text without anything of ours, to go back there to the byte."""
    pristine: bool = True
    """Whether `before` is somebody else's, and so worth a backup."""

    def diff(self, name: str = "") -> str:
        """As `diff -u` shows it."""
        name = name or self.path
        first = name if self.before is not None else os.devnull
        second = name if self.after is not None else os.devnull
        return unified_diff(self.before or "", self.after or "", first, second).rstrip("\n")


def read_settings(path: str) -> str | None:
    """The text of a file with its line ends, or None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8 text", "save it as UTF-8 and try again") from error
    except OSError as error:
        raise Unwritable(
            f"cannot read {path}: {error.strerror}", "check its permissions"
        ) from error


def write_change(change: FileChange) -> tuple[str, ...]:
    """Make the change; returns the folders that had to be made for it, outermost first.

    A link stays a link: its target is written. Mode bits stay. The file must still say what it
    said when the change was planned.
    """
    if read_settings(change.path) != change.before:
        raise Refused(f"{change.path} was changed meanwhile", "run the same command again")
    real = os.path.realpath(change.path)
    folder = os.path.dirname(real)
    if os.path.islink(change.path) and not os.path.isdir(folder):
        raise Unwritable(
            f"{change.path} is a link to {real}, whose folder does not exist",
            "make that folder, or remove the link",
        )
    if change.before is not None and not os.access(real, os.W_OK):
        raise Unwritable(f"{real} is read-only", "make it writable, or add the lines by hand")
    made = missing_folders(folder)
    mode = 0o600
    if change.before is not None:
        mode = stat.S_IMODE(os.stat(real).st_mode)
        if change.pristine:
            write_atomic(change.path + BACKUP, change.before.encode(), mode=mode)
    if change.after is None:
        _unlink(change.path)
        return ()
    write_atomic(real, change.after.encode(), mode=mode)
    if stat.S_IMODE(os.stat(real).st_mode) != mode:  # the user's umask took bits away
        os.chmod(real, mode)
    return made


def drop_backup(path: str, text: str | None) -> bool:
    """Remove the backup beside `path` if it says no more than `text`; whether one is left."""
    backup = path + BACKUP
    try:
        saved = read_settings(backup)
    except (BadConfig, Unwritable):
        return True
    if saved is None:
        return False
    if saved != text:
        return True
    _unlink(backup)
    return False


def missing_folders(folder: str) -> tuple[str, ...]:
    """What has to be made so that `folder` exists, outermost first."""
    found = []
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(found))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unwritable(
            f"cannot remove {path}: {error.strerror}", "check the permissions of its folder"
        ) from error


HOOK_SECONDS = 5
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
        from tacit.traces import connection

        folder = self.folder()
        made = (path for record in connection.load_records().values() for path in record.folders)
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


JsonPath = tuple[str | int, ...]


class JsonHooks(msgspec.Struct, frozen=True):
    """A connector for one such agent; see `Connector` for its duties."""

    agent: Agent
    name: str
    """The file in the agent's folder."""
    hooked: tuple[str, ...]
    milliseconds: bool = False
    """Whether the agent takes a timeout in milliseconds, not in seconds."""
    seconds: int = HOOK_SECONDS
    """How long the agent lets the hook run."""
    todo: str = ""

    def file(self) -> str:
        return os.path.join(self.agent.folder(), self.name)

    def events(self) -> tuple[str, ...]:
        return self.hooked

    def connecting(self, hook: Hook) -> FileChange | None:
        path = self.file()
        before = read_settings(path)
        wanted = self._entries(hook)
        value = self._parse(before or "")
        ours = list(_our_hooks(value))
        if self._is_right(value, ours, wanted):
            return None
        clean = self._without_ours(before or "") if ours else before or ""
        try:
            splices = add_to_jsonc(clean, {"hooks": wanted})
        except WrongShape as error:
            raise BadConfig(
                f"cannot add hooks to {path}: {error}", "mend that part of the file and try again"
            ) from error
        after = apply_splices(clean, splices)
        return FileChange(path, before, after, splices, pristine=not ours)

    def disconnecting(self) -> FileChange | None:
        path = self.file()
        before = read_settings(path)
        if before is None or not list(_our_hooks(self._parse(before))):
            return None
        after = self._without_ours(before)
        return FileChange(path, before, after, pristine=False)

    def calls(self) -> dict[str, str]:
        try:
            value = self._parse(read_settings(self.file()) or "")
        except TacitError:
            return {}
        return {str(path[1]): command for path, command in _our_hooks(value)}

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

    def _is_right(
        self, value: Any, ours: list[tuple[JsonPath, str]], wanted: dict[str, Any]
    ) -> bool:
        """Whether there is exactly one call of ours for each event, and it is the right one."""
        found = sorted((str(path[1]), _at(value, path)["command"]) for path, _ in ours)
        right = sorted((event, group[0]["hooks"][0]["command"]) for event, group in wanted.items())
        return found == right

    def _parse(self, text: str) -> Any:
        try:
            return parse_jsonc(text)
        except BadJson as error:
            raise BadConfig(
                f"{self.file()} is not valid JSON, {error}",
                f"nothing was changed; mend it, then: tacit connect {self.agent.host}",
            ) from error

    def _without_ours(self, text: str) -> str:
        """Take every call of ours out, and what it leaves empty, except what was empty before."""
        while found := next(_our_hooks(value := parse_jsonc(text)), None):
            path = found[0]  # hooks, event, number of the group, hooks, number of the hook
            if len(_at(value, path[:4])) == 1:
                path = path[:3]
                for outer in (path[:2], path[:1]):
                    if len(_at(value, outer)) > 1 or self._was_empty(outer):
                        break
                    path = outer
            text = remove_from_jsonc(text, path)
        return text

    def _was_empty(self, path: JsonPath) -> bool:
        """Whether the user had an empty list or object there, as the backup says."""
        try:
            return _at(parse_jsonc(read_settings(self.file() + BACKUP) or ""), path) in ([], {})
        except (TacitError, BadJson, LookupError, TypeError):
            return False


def _at(value: Any, path: JsonPath) -> Any:
    for key in path:
        value = value[key]
    return value


def _our_hooks(value: Any) -> Iterator[tuple[JsonPath, str]]:
    """The paths of our hooks in a settings file, and their commands."""
    events = value.get("hooks") if isinstance(value, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for i, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for j, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command")):
                    yield ("hooks", event, i, "hooks", j), hook["command"]


OWN_MARK = "tacit-hook"


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
        before = read_settings(path)
        if before == after:
            return None
        if before is not None and OWN_MARK not in before:
            raise Refused(
                f"{path} is not Tacit's, but stands where its file would go",
                "move it away and try again",
            )
        return FileChange(path, before, after, pristine=False)

    def disconnecting(self) -> FileChange | None:
        before = read_settings(self.file())
        if before is None or OWN_MARK not in before:
            return None
        return FileChange(self.file(), before, None)  # a backup, unless nobody changed it

    def calls(self) -> Mapping[str, str]:
        try:
            text = read_settings(self.file())
        except TacitError:
            return {}
        return self.read_calls(text) if text else {}
