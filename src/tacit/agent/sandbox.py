"""Commands run in a sandbox: bubblewrap on Linux, Seatbelt on macOS, else not at all.

Inside, the system can be read, and of people's folders the project and what builds need
(`private_folders.py`), but for what `off_limits.py` hides; only the project and a temporary folder
can be written, and in the project not what is guarded. There is no network unless it is allowed. A
command ends by itself, at its limits or by the user's interrupt, and its whole tree of processes
ends with it. What it made where it may make nothing is taken away again.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from tacit.agent.command_limits import call_filter, first_excess, hold_back, shell_limits
from tacit.agent.off_limits import (
    CommandLimits,
    CommandRules,
    Guards,
    look_through,
    outermost,
    parents_of,
)
from tacit.agent.planted_files import Watch
from tacit.agent.private_folders import TOOL_VARIABLES, private_folders, shown_paths
from tacit.agent.process_rights import apart_from_sockets
from tacit.base import paths
from tacit.base.errors import Refused
from tacit.base.paths import is_inside

_KEEP = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "HOME", *TOOL_VARIABLES,
)  # fmt: skip
_TMP = "/tmp"  # noqa: S108 - inside, it is a folder of the session's own
# The kernel's own. Root is their owner and needs no capability to write them.
_SWITCHES = tuple(
    f"/proc/{name}"
    for name in (
        "sys",
        "sysrq-trigger",
        "irq",
        "bus",
        "fs",
        "acpi",
        "scsi",
        "mtrr",
        "latency_stats",
    )
)


class Pipes(NamedTuple):
    """Descriptors that a namespace is given."""

    info: int
    """It writes JSON with `child-pid`, its first process, there."""
    block: int
    """It lets the command begin when something can be read from there."""
    calls: int = -1
    """Where it reads which calls the kernel is to refuse."""


class Sandbox(Protocol):
    """Turns a shell command into a program call that holds it in."""

    name: str
    is_namespace: bool
    """Whether its processes end with the first of them, and it tells which that is."""

    def call(self, command: str, rules: CommandRules, guards: Guards, pipes: Pipes) -> list[str]:
        """The arguments to run `command` with. Raises nothing; starts nothing.

        Only a namespace makes use of `pipes`.
        """
        ...


def find_sandbox(allow_none: bool = False) -> Sandbox:
    """The sandbox of this machine. Raises `Refused` where there is none, unless that is allowed."""
    if sys.platform == "linux" and (program := paths.find_program("bwrap")):
        return Bubblewrap(program)
    if sys.platform == "darwin" and (program := paths.find_program("sandbox-exec")):
        return Seatbelt(program)
    if allow_none:
        return NoSandbox()
    what = "bubblewrap (apt install bubblewrap)" if sys.platform == "linux" else "a sandbox"
    raise Refused(
        f"commands run only in a sandbox, and there is none here: {what} is missing",
        'install it, or set agent.sandbox = "none" to run commands bare',
    )


class Bubblewrap:
    """Namespaces of its own, by the `bwrap` program."""

    name = "bubblewrap"
    is_namespace = True

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program

    def call(self, command: str, rules: CommandRules, guards: Guards, pipes: Pipes) -> list[str]:
        words = [
            self._program, "--info-fd", str(pipes.info), "--block-fd", str(pipes.block),
            "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run",
            "--bind", rules.temporary, _TMP,
        ]  # fmt: skip
        if pipes.calls >= 0:
            words += ["--seccomp", str(pipes.calls)]
        for switches in _SWITCHES:
            if os.path.exists(switches):
                words += ["--ro-bind", switches, switches]
        if rules.network:
            resolver = "/run/systemd/resolve"
            words += ["--share-net", "--ro-bind-try", resolver, resolver]
        private = [path for path in private_folders(rules) if not is_inside(path, _TMP)]
        shown = shown_paths(rules)
        words += _private_mounts(private, shown)
        bind = "--ro-bind" if rules.read_only_project else "--bind"
        words += [bind, rules.project, rules.project]
        for path in rules.writable:
            words += ["--bind", path, path]
        if not rules.read_only_project:
            words += _guard_mounts(rules, guards)
        seen = [os.path.realpath(path) for path in (rules.project, *rules.writable, *shown)]
        for path in guards.hidden:
            gone = any(is_inside(path, place) for place in (_TMP, "/run", *private))
            if not gone or any(is_inside(path, place) for place in seen):
                mount = (
                    ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
                )
                words += mount
        for path in ("/run", *private):
            words += ["--remount-ro", path]
        run = ["/bin/sh", "-c", command]
        run = apart_from_sockets(run) if rules.network else run
        return [*words, "--chdir", rules.project, "--", *run]


def _private_mounts(private: list[str], shown: list[str]) -> list[str]:
    """Mounts that hide `private` and bring back what is shown of it, by each of its names."""
    words = [word for path in private for word in ("--tmpfs", path)]
    found = {os.path.realpath(path) for path in shown}
    for path in outermost(p for p in found if any(is_inside(p, place) for place in private)):
        words += ["--ro-bind", path, path]
    links = (path for path in shown if os.path.islink(path) and os.path.realpath(path) in found)
    for path in links:
        above = os.path.realpath(os.path.dirname(path))
        here = os.path.join(above, os.path.basename(path))
        if any(is_inside(here, place) for place in private) and not any(
            is_inside(here, place) for place in found
        ):
            words += ["--symlink", os.path.realpath(path), here]
    return words


def _guard_mounts(rules: CommandRules, guards: Guards) -> list[str]:
    """Mounts over what stays as it is. A mount cannot be renamed away.

    Nor can the folders above what is firm. They are left alone above the rest: a file could no
    longer be moved between two of them, and what takes the place of one is found afterwards.
    """
    words: list[str] = []
    done: set[str] = set()
    for path in guards.firm:
        for above in parents_of(path, rules.project):
            if os.path.isdir(above) and above not in done:
                words += ["--bind", above, above]
                done.add(above)
        if os.path.exists(path):
            words += ["--ro-bind", path, path]
    for path in outermost(guards.loose):
        words += ["--ro-bind", path, path]
    for path in (os.path.join(rules.project, allowed) for allowed in rules.allow_write):
        real = os.path.realpath(path)
        if any(is_inside(real, loose) for loose in guards.loose) and os.path.exists(real):
            words += ["--bind", real, real]
    return words


class Seatbelt:
    """A profile for macOS's `sandbox-exec`."""

    name = "seatbelt"
    is_namespace = False

    def __init__(self, program: str = "sandbox-exec") -> None:
        self._program = program

    def call(self, command: str, rules: CommandRules, guards: Guards, pipes: Pipes) -> list[str]:
        text = f"{shell_limits(rules.limits)}{command}"
        return [self._program, "-p", self.profile(rules, guards), "/bin/sh", "-c", text]

    def profile(self, rules: CommandRules, guards: Guards) -> str:
        """Later rules win over earlier ones."""
        own = () if rules.read_only_project else (rules.project,)
        writable = [os.path.realpath(p) for p in (*own, rules.temporary, *rules.writable)]
        shown = dict.fromkeys(map(os.path.realpath, (*shown_paths(rules), rules.project)))
        lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
        lines += _each("deny file-read-data", private_folders(rules))
        lines += _each("allow file-read*", (*shown, *writable))
        lines += _each("allow file-write*", writable)
        devices = ("null", "zero", "tty", "dtracehelper")
        literals = " ".join(f'(literal "/dev/{name}")' for name in devices)
        lines.append(f'(allow file-write* {literals} (subpath "/dev/fd"))')
        lines += _each("deny file-write*", (*guards.firm, *guards.loose))
        above = (each for path in guards.firm for each in parents_of(path, rules.project))
        # Renaming a folder above would put a new one in its place.
        lines += _each("deny file-write-unlink", dict.fromkeys(above), "literal")
        allowed = (os.path.join(rules.project, path) for path in rules.allow_write)
        lines += _each("allow file-write*", (p for p in allowed if is_inside(p, rules.project)))
        lines += _each("deny file-read* file-write*", guards.hidden)
        # What asks a program outside to act in its place.
        lines.append("(deny appleevent-send)")
        outside = ("/usr/bin/open", "/usr/bin/osascript", "/bin/launchctl")
        lines += [f"(deny process-exec (literal {_quoted(path)}))" for path in outside]
        if not rules.network:
            lines.append("(deny network*)")
        return "\n".join(lines)


class NoSandbox:
    """No walls; only where the user's settings say so."""

    name = "none"
    is_namespace = False

    def call(self, command: str, rules: CommandRules, guards: Guards, pipes: Pipes) -> list[str]:
        return ["/bin/sh", "-c", f"{shell_limits(rules.limits)}{command}"]


def command_environment(
    sandbox: Sandbox, rules: CommandRules, given: Mapping[str, str]
) -> dict[str, str]:
    """The variables that a command gets: no keys, tokens or sockets."""
    temporary = _TMP if sandbox.name == "bubblewrap" else rules.temporary
    kept = {name: given[name] for name in _KEEP if name in given}
    return kept | {
        "TERM": "dumb",
        "NO_COLOR": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "TMPDIR": temporary,
        "XDG_CACHE_HOME": os.path.join(temporary, ".cache"),
        "npm_config_cache": os.path.join(temporary, ".npm"),  # npm does nothing without writing it
    }


def _each(rule: str, paths: Iterable[str], kind: str = "subpath") -> list[str]:
    return [f"({rule} ({kind} {_quoted(path)}))" for path in paths]


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


MOST_OUTPUT = 400_000
_CHUNK = 65_536
_LINGER = 0.5
"""Seconds for the rest of the output once the command itself has ended."""


class CommandOutcome(msgspec.Struct, frozen=True):
    """How a command ended. A non-zero exit is a failure."""

    exit_code: int
    output: str
    seconds: float
    timed_out: bool = False
    dropped: int = 0
    """Bytes of output in the middle that were not kept."""
    removed: tuple[str, ...] = ()
    """What the command made where it may make nothing; it was moved out of the project."""
    excess: str = ""
    """What it took too much of, so that it was ended."""

    @property
    def failed(self) -> bool:
        ended = self.timed_out or bool(self.excess)
        return ended or self.exit_code != 0 or bool(self.removed)


async def run_sandboxed(
    command: str, sandbox: Sandbox, rules: CommandRules, seconds: float
) -> CommandOutcome:
    """Run `command`; its whole tree of processes is gone when this returns or is cancelled.

    Raises `Refused` where what is off limits cannot be kept from it.
    """
    began = time.monotonic()
    guards = look_through(rules)
    watch = Watch(rules, guards)
    buffer = _OutputBuffer()
    timed_out, excess = False, ""
    process, output, ends = await _start(command, sandbox, rules, guards)
    reading = asyncio.create_task(_read(output, buffer))
    first = _first_process(ends, rules.limits) if sandbox.is_namespace else _close(ends)
    try:
        async with asyncio.timeout(seconds):
            excess = await _wait(process, first.pid, rules)
            await asyncio.wait({reading}, timeout=0 if excess else _LINGER)
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process, first.handle)
        reading.cancel()
        await asyncio.wait({reading})
        taken = watch.take_away()
    code = process.returncode if process.returncode is not None else -1
    text, dropped = buffer.text()
    return CommandOutcome(code, text, time.monotonic() - began, timed_out, dropped, taken, excess)


async def _wait(process: asyncio.subprocess.Process, first: int, rules: CommandRules) -> str:
    """Wait until the command has ended, or takes too much: then what of."""
    ended = asyncio.ensure_future(process.wait())
    if first <= 0:
        await ended
        return ""
    written = (rules.project, rules.temporary, *rules.writable)
    watching = asyncio.ensure_future(first_excess(first, rules.limits, written))
    try:
        await asyncio.wait({ended, watching}, return_when=asyncio.FIRST_COMPLETED)
        return "" if ended.done() else watching.result()
    finally:
        ended.cancel()
        watching.cancel()


async def _start(
    command: str, sandbox: Sandbox, rules: CommandRules, guards: Guards
) -> tuple[asyncio.subprocess.Process, int, Pipes]:
    """The process, where its output can be read, and our ends of a namespace's pipes.

    The pipes are our own: asyncio's would have us wait for every child that still holds one.
    """
    output, inlet = os.pipe()
    info, teller = os.pipe()
    block, unblock = os.pipe()
    calls, refused = os.pipe()
    with open(refused, "wb", 0) as file:  # a few hundred bytes, which a pipe takes
        file.write(call_filter())
    try:
        process = await asyncio.create_subprocess_exec(
            *sandbox.call(command, rules, guards, Pipes(teller, block, calls)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=inlet,
            stderr=inlet,
            pass_fds=(teller, block, calls),
            cwd=rules.project,
            env=command_environment(sandbox, rules, os.environ),
            start_new_session=True,
        )
    except BaseException as error:
        for descriptor in (output, info, unblock):
            os.close(descriptor)
        if not isinstance(error, OSError):
            raise
        raise Refused(
            f"no command can be started in {rules.project}: {error.strerror}",
            "see that the folder is there, and start in one below if it holds very many keys",
        ) from None
    finally:
        for descriptor in (inlet, teller, block, calls):
            os.close(descriptor)
    return process, output, Pipes(info, unblock)


class _First(NamedTuple):
    """The first process of a namespace, with which all others end."""

    pid: int = 0
    handle: int = -1


def _first_process(ends: Pipes, limits: CommandLimits) -> _First:
    """Find the first process of the namespace, set its limits, and let the command begin.

    The sandbox writes at once and closes, so this hardly waits.
    """
    text = b""
    with os.fdopen(ends.info, "rb", 0) as file:
        while select.select([file], [], [], 5.0)[0] and (part := file.read(4096)):
            text += part
    try:
        pid = int(json.loads(text)["child-pid"])
        found = _First(pid, os.pidfd_open(pid))
        hold_back(pid, limits)
    except (ValueError, KeyError, TypeError, OSError, AttributeError):
        found = _First()
    with contextlib.suppress(OSError):
        os.write(ends.block, b".")
    os.close(ends.block)
    return found


async def _read(output: int, buffer: "_OutputBuffer") -> None:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(output, "rb", 0)
    )
    try:
        while part := await stream.read(_CHUNK):
            buffer.add(part)
    finally:
        transport.close()


class _OutputBuffer:
    """Keeps the beginning and the end of an output, whatever its size."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, part: bytes) -> None:
        half = MOST_OUTPUT // 2
        room = half - len(self._head)
        if room > 0:
            self._head += part[:room]
            part = part[room:]
        self._tail += part
        if len(self._tail) > 2 * half:
            self._dropped += len(self._tail) - half
            del self._tail[:-half]

    def text(self) -> tuple[str, int]:
        half = MOST_OUTPUT // 2
        if len(self._tail) > half:
            self._dropped += len(self._tail) - half
            del self._tail[:-half]
        joint = f"\n[… {self._dropped:,} bytes left out …]\n".encode() if self._dropped else b""
        return (self._head + joint + self._tail).decode("utf-8", "replace"), self._dropped


def _close(ends: Pipes) -> _First:
    for descriptor in (ends.info, ends.block):
        os.close(descriptor)
    return _First()


async def _end(process: asyncio.subprocess.Process, first: int) -> None:
    """Kill what is left, and wait until it is gone: with `first` its whole namespace ends."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if first >= 0:
        try:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(first, signal.SIGKILL)
            await asyncio.shield(asyncio.to_thread(select.select, [first], [], [], 10.0))
        finally:
            os.close(first)
    with contextlib.suppress(ProcessLookupError):
        await asyncio.shield(process.wait())
