"""How an agent is told to call the hook: the duties of a connector, and the two common kinds.

`HookedFile` edits a settings file with `hooks.<Event>`, in JSON as Claude Code began it:
{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…", "timeout": 5}]}]}}
`OwnFile` gives one file of ours to an agent that loads every file of a folder. Either plans a
`FileChange` to one file of the user's, which is shown as a diff and written with a backup, or not
at all. Which agents are connected, and taking it back, is `connection.py`'s.
"""

import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import missing_folders, write_atomic
from tacit.base.display import unified_diff
from tacit.base.errors import BadConfig, NotFound, Refused, TacitError, Unwritable
from tacit.traces import values
from tacit.traces.host import Host
from tacit.traces.settings_json import (
    Malformed,
    Splice,
    Unfit,
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


_planned: ContextVar[dict[str, str | None] | None] = ContextVar("tacit_planned", default=None)


@contextmanager
def planning() -> Iterator[dict[str, str | None]]:
    """For a `with` block, files say what the dictionary says of them: what is planned already.

    A block inside another goes on with its dictionary.
    """
    known = _planned.get()
    texts: dict[str, str | None] = {} if known is None else known
    token = _planned.set(texts)
    try:
        yield texts
    finally:
        _planned.reset(token)


def read_settings(path: str) -> str | None:
    """The text of a file with its line ends, or None where there is none."""
    if path in (planned := _planned.get() or {}):
        return planned[path]
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


def settings_folder(host: Host) -> str:
    """The folder of the host's settings, whether it exists or not."""
    return (host.settings_home or host.home).resolve()


def program_of(host: Host) -> str:
    """The path of the host's program, or nothing."""
    return next((found for name in host.programs if (found := paths.find_program(name))), "")


def is_installed(host: Host) -> bool:
    """Whether its program is on the PATH, or its folder is there and not by our doing."""
    if program_of(host):
        return True
    from tacit.traces import connection

    folder = settings_folder(host)
    made = (path for record in connection.load_records().values() for path in record.folders)
    return os.path.isdir(folder) and os.path.realpath(folder) not in made


class Hook(msgspec.Struct, frozen=True):
    """The hook program as it is called: usually one path, with spaces in it two."""

    words: tuple[str, ...]
    facts: bool | None = None
    """Whether agents are told facts as a session begins; None leaves each as it is."""

    def command(self, host: str, event: str, *more: str) -> str:
        """For a shell, and for those who split like one."""
        return shlex.join([*self.words, host, event, *more])

    def calls(self, host: Host, known: Mapping[str, str]) -> dict[str, str]:
        """Every command that `host` is to run, by event, where it runs the `known` ones now."""
        wanted = {event: self.command(host.name, event) for event in host.hooks.events}
        if opening := host.hooks.opening:
            facts = tells_facts(host, known) if self.facts is None else self.facts
            words = [*host.hooks.form.split(), *([FACTS] if facts else [])]
            wanted[opening] = self.command(host.name, opening, *words)
        return wanted


FACTS = "facts"
"""The word in a command of ours by which the user let an agent be told facts."""


def tells_facts(host: Host, calls: Mapping[str, str]) -> bool:
    """Whether an agent with these commands is told facts as a session begins."""
    return calls.get(host.hooks.opening, "").split()[-1:] == [FACTS]


class Connector(Protocol):
    """Connects one agent. Planning reads files and changes none; writing is `write_change`."""

    @property
    def host(self) -> Host: ...

    @property
    def key(self) -> str:
        """What names it in the record of what was written."""
        ...

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


SettingsPath = tuple[str | int, ...]


class SettingsFormat(NamedTuple):
    """How settings of one format are read and edited; see `settings_json.py` for the duties."""

    name: str
    parse: Callable[[str], Any]
    """Raises `Malformed`."""
    add: Callable[[str, dict[str, Any]], tuple[Splice, ...]]
    """Raises `Unfit`."""
    remove: Callable[[str, SettingsPath], str]
    """Raises `Unfit`."""


class HookedFile(msgspec.Struct, frozen=True):
    """A connector for an agent with `hooks.<Event>` in its settings; see `Connector`.

    A subclass names the format and says what an entry looks like there.
    """

    host: Host
    name: str
    """The file in the agent's folder."""
    todo: str = ""
    seconds: int = HOOK_SECONDS
    """How long the agent lets the hook run."""

    form: ClassVar[SettingsFormat]
    grouped: ClassVar[bool] = False
    """Whether an event holds groups, with the hooks in a list of each."""

    @property
    def key(self) -> str:
        return self.host.name

    def entry(self, command: str) -> dict[str, Any]:
        """What stands in the list of an event."""
        raise NotImplementedError

    def besides(self, clean: str) -> dict[str, Any]:
        """What is to be added to the text `clean` beside the hooks."""
        return {}

    def unfit(self, error: Unfit, addition: dict[str, Any]) -> BadConfig:
        """Says why `addition` cannot be added."""
        return BadConfig(
            f"cannot add hooks to {self.file()}: {error}",
            "mend that part of the file and try again",
        )

    def file(self) -> str:
        return os.path.join(settings_folder(self.host), self.name)

    def events(self) -> tuple[str, ...]:
        return self.host.hooks.events

    def connecting(self, hook: Hook) -> FileChange | None:
        path = self.file()
        before = read_settings(path)
        ours = list(self._ours(self._parse(before or "")))
        wanted = hook.calls(self.host, {str(at[1]): command for at, command in ours})
        if sorted((str(at[1]), command) for at, command in ours) == sorted(wanted.items()):
            return None
        addition = {"hooks": {event: [self.entry(call)] for event, call in wanted.items()}}
        try:
            clean = self.without_ours(before or "") if ours else before or ""
            addition |= self.besides(clean)
            splices = self.form.add(clean, addition)
        except Unfit as error:
            raise self.unfit(error, addition) from error
        return FileChange(path, before, apply_splices(clean, splices), splices, pristine=not ours)

    def disconnecting(self) -> FileChange | None:
        path = self.file()
        before = read_settings(path)
        if before is None or not list(self._ours(self._parse(before))):
            return None
        try:
            return FileChange(path, before, self.without_ours(before), pristine=False)
        except Unfit as error:
            raise BadConfig(
                f"{path} cannot be edited safely: {error}",
                "take the entries with tacit-hook out by hand",
            ) from error

    def calls(self) -> dict[str, str]:
        try:
            value = self._parse(read_settings(self.file()) or "")
        except TacitError:
            return {}
        return {str(path[1]): command for path, command in self._ours(value)}

    def without_ours(self, text: str) -> str:
        """Take every call of ours out, and what it leaves empty, except what was empty before."""
        while found := next(self._ours(value := self.form.parse(text)), None):
            text = self.form.remove(text, self.widened(value, found[0]))
        return text

    def widened(self, value: Any, path: SettingsPath) -> SettingsPath:
        """`path`, or what is around it as long as nothing else is in there."""
        if len(path) == 5 and len(_at(value, path[:4])) == 1:
            path = path[:3]  # the whole group
        while len(path) in (2, 3) and len(_at(value, path[:-1])) == 1:
            if self.was_empty(path[:-1]):
                break
            path = path[:-1]
        return path

    def was_empty(self, path: SettingsPath) -> bool:
        """Whether the user had an empty list or object there, as far as can be told."""
        return False

    def _parse(self, text: str) -> Any:
        try:
            return self.form.parse(text)
        except Malformed as error:
            raise BadConfig(
                f"{self.file()} is not valid {self.form.name}, {error}",
                f"nothing was changed; mend it, then: tacit connect {self.host.name}",
            ) from error

    def _ours(self, value: Any) -> Iterator[tuple[SettingsPath, str]]:
        """The paths of our hooks in a settings file, and their commands."""
        for event, items in values.mapping(values.mapping(value).get("hooks")).items():
            for i, item in enumerate(values.items(items)):
                hooks: dict[SettingsPath, Any] = {("hooks", event, i): item}
                if self.grouped:
                    inner = enumerate(values.items(values.mapping(item).get("hooks")))
                    hooks = {("hooks", event, i, "hooks", j): hook for j, hook in inner}
                for path, hook in hooks.items():
                    if is_ours(command := values.mapping(hook).get("command")):
                        yield path, str(command)


def _at(value: Any, path: SettingsPath) -> Any:
    for key in path:
        value = value[key]
    return value


class JsonHooks(HookedFile, frozen=True):
    """Hooks in a JSON file, with comments or without, as several agents took over the form."""

    milliseconds: bool = False
    """Whether the agent takes a timeout in milliseconds, not in seconds."""

    form = SettingsFormat("JSON", parse_jsonc, add_to_jsonc, remove_from_jsonc)
    grouped = True

    def entry(self, command: str) -> dict[str, Any]:
        timeout = self.seconds * 1000 if self.milliseconds else self.seconds
        return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}

    def was_empty(self, path: SettingsPath) -> bool:
        """By the backup."""
        try:
            return _at(parse_jsonc(read_settings(self.file() + BACKUP) or ""), path) in ([], {})
        except (TacitError, Malformed, LookupError, TypeError):
            return False


OWN_MARK = "tacit-hook"


class OwnFile(msgspec.Struct, frozen=True):
    """A connector for an agent that loads every file of a folder; see `Connector`."""

    host: Host
    name: str
    """The file in the agent's folder."""
    content: Callable[[Mapping[str, str]], str]
    """Its text, with the commands by event."""
    read_calls: Callable[[str], Mapping[str, str]]
    """The commands in a text that `content` wrote."""
    todo: str = ""

    @property
    def key(self) -> str:
        return self.host.name

    def file(self) -> str:
        return os.path.join(settings_folder(self.host), self.name)

    def events(self) -> tuple[str, ...]:
        return self.host.hooks.events

    def connecting(self, hook: Hook) -> FileChange | None:
        path, after = self.file(), self.content(hook.calls(self.host, self.calls()))
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
