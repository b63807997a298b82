"""Commands run in a sandbox: bubblewrap on Linux, Seatbelt on macOS, else not at all.

Inside, the disk can be read but for what `off_limits.py` hides; only the project and a temporary
folder can be written, and in the project not what is guarded. There is no network unless it is
allowed. A command ends by itself, at its time limit or by the user's interrupt, and its whole tree
of processes ends with it.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec

from tacit.agent.off_limits import CommandRules, guarded, hidden, parents_of
from tacit.base.errors import Refused
from tacit.base.paths import is_inside

_KEEP = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "HOME", "VIRTUAL_ENV",
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
# Processes of one command, where the system counts them by namespace.
_SHELL = ("/bin/sh", "-c", 'ulimit -u 4096 2>/dev/null; exec /bin/sh -c "$0"')


class Sandbox(Protocol):
    """Turns a shell command into a program call that holds it in."""

    name: str
    is_namespace: bool
    """Whether its processes end with the first of them, and it tells which that is."""

    def call(self, command: str, rules: CommandRules, info_fd: int) -> list[str]:
        """The arguments to run `command` with. Raises nothing; starts nothing.

        A namespace writes JSON with `child-pid`, its first process, to the descriptor `info_fd`.
        """
        ...


def find_sandbox(allow_none: bool = False) -> Sandbox:
    """The sandbox of this machine. Raises `Refused` where there is none, unless that is allowed."""
    if sys.platform == "linux" and (program := shutil.which("bwrap")):
        return Bubblewrap(program)
    if sys.platform == "darwin" and (program := shutil.which("sandbox-exec")):
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

    def call(self, command: str, rules: CommandRules, info_fd: int) -> list[str]:
        words = [
            self._program, "--info-fd", str(info_fd), "--unshare-all", "--die-with-parent",
            "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
            "--proc", "/proc", "--tmpfs", "/run", "--bind", rules.temporary, _TMP,
        ]  # fmt: skip
        for switches in _SWITCHES:
            if os.path.exists(switches):
                words += ["--ro-bind", switches, switches]
        if rules.network:
            resolver = "/run/systemd/resolve"
            words += ["--share-net", "--ro-bind-try", resolver, resolver]
        bind = "--ro-bind" if rules.read_only_project else "--bind"
        words += [bind, rules.project, rules.project]
        for path in rules.writable:
            words += ["--bind", path, path]
        if not rules.read_only_project:
            words += _guards(rules)
        shown = (rules.project, *rules.writable)
        for path in hidden(rules):
            if is_inside(path, _TMP) and not any(is_inside(path, s) for s in shown):
                continue  # not there inside: /tmp is another folder
            if is_inside(path, "/run"):
                continue
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        return [*words, "--chdir", rules.project, "--", *_SHELL, command]


def _guards(rules: CommandRules) -> list[str]:
    """Mounts over what stays as it is. A mount cannot be renamed away, nor the folders above it."""
    words: list[str] = []
    done: set[str] = set()
    for path in guarded(rules):
        for above in parents_of(path, rules.project):
            if os.path.isdir(above) and above not in done:
                words += ["--bind", above, above]
                done.add(above)
        if os.path.exists(path):
            words += ["--ro-bind", path, path]
    return words


class Seatbelt:
    """A profile for macOS's `sandbox-exec`."""

    name = "seatbelt"
    is_namespace = False

    def __init__(self, program: str = "sandbox-exec") -> None:
        self._program = program

    def call(self, command: str, rules: CommandRules, info_fd: int) -> list[str]:
        return [self._program, "-p", self.profile(rules), "/bin/sh", "-c", command]

    def profile(self, rules: CommandRules) -> str:
        """Later rules win over earlier ones."""
        own = () if rules.read_only_project else (rules.project,)
        writable = [os.path.realpath(p) for p in (*own, rules.temporary, *rules.writable)]
        lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
        lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in writable]
        devices = ("null", "zero", "tty", "dtracehelper")
        literals = " ".join(f'(literal "/dev/{name}")' for name in devices)
        lines.append(f'(allow file-write* {literals} (subpath "/dev/fd"))')
        for path in guarded(rules):
            lines.append(f"(deny file-write* (subpath {_quoted(path)}))")
            # Renaming a folder above would put a new one in its place.
            lines += [
                f"(deny file-write-unlink (literal {_quoted(above)}))"
                for above in parents_of(path, rules.project)
            ]
        lines += [f"(deny file-read* file-write* (subpath {_quoted(p)}))" for p in hidden(rules)]
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

    def call(self, command: str, rules: CommandRules, info_fd: int) -> list[str]:
        return ["/bin/sh", "-c", command]


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
    }


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


MOST_OUTPUT = 400_000
_CHUNK = 65_536
_LINGER = 0.5
"""Seconds for the rest of the output once the command itself has ended."""
# In the settings of a repository: what names a program to run, or brings in other settings.
_RUNS = re.compile(
    r"(?i)fsmonitor|command|pager|editor|hookspath|textconv|\[filter|\[alias|\[include|helper"
    r"|program|askpass|external|driver|receivepack|uploadpack|worktree\s*="
)


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

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0 or bool(self.removed)


async def run_sandboxed(
    command: str, sandbox: Sandbox, rules: CommandRules, seconds: float
) -> CommandOutcome:
    """Run `command`; its whole tree of processes is gone when this returns or is cancelled."""
    began = time.monotonic()
    missing = [path for path in _watched(rules) if not os.path.lexists(path)]
    buffer = _OutputBuffer()
    timed_out = False
    process, output, info_fd = await _start(command, sandbox, rules)
    reading = asyncio.create_task(_read(output, buffer))
    inner = _first_process(info_fd) if sandbox.is_namespace else _close(info_fd)
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
            await asyncio.wait({reading}, timeout=_LINGER)
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process, inner)
        reading.cancel()
        await asyncio.wait({reading})
        taken = _remove_forbidden(missing, rules)
    code = process.returncode if process.returncode is not None else -1
    text, dropped = buffer.text()
    return CommandOutcome(code, text, time.monotonic() - began, timed_out, dropped, tuple(taken))


async def _start(
    command: str, sandbox: Sandbox, rules: CommandRules
) -> tuple[asyncio.subprocess.Process, int, int]:
    """The process, where its output can be read, and where the sandbox tells of its first process.

    The pipes are our own: asyncio's would have us wait for every child that still holds one.
    """
    output, inlet = os.pipe()
    info_fd, teller = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *sandbox.call(command, rules, teller),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=inlet,
            stderr=inlet,
            pass_fds=(teller,),
            cwd=rules.project,
            env=command_environment(sandbox, rules, os.environ),
            start_new_session=True,
        )
    except BaseException:
        os.close(output)
        os.close(info_fd)
        raise
    finally:
        os.close(inlet)
        os.close(teller)
    return process, output, info_fd


def _first_process(info_fd: int) -> int:
    """A handle on the first process of the namespace, with which all others end; -1 for none.

    The sandbox writes at once and closes, so this hardly waits.
    """
    text = b""
    with os.fdopen(info_fd, "rb", 0) as file:
        while select.select([file], [], [], 5.0)[0] and (part := file.read(4096)):
            text += part
    try:
        return os.pidfd_open(int(json.loads(text)["child-pid"]))
    except (ValueError, KeyError, TypeError, OSError, AttributeError):
        return -1


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


def _close(info_fd: int) -> int:
    os.close(info_fd)
    return -1


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


def _watched(rules: CommandRules) -> list[str]:
    return [*guarded(rules), os.path.join(rules.project, ".git")]


def _remove_forbidden(missing: list[str], rules: CommandRules) -> list[str]:
    """Move out what has appeared at a guarded place: nothing could be mounted where nothing was.

    A repository that the command made is left when nothing in it would run by itself.
    """
    taken = []
    own = os.path.join(rules.project, ".git")
    made_here = own in missing and os.path.isdir(own) and not os.path.islink(own)
    if made_here and _is_harmless(own):
        missing = [path for path in missing if not path.startswith(own)]
    for path in sorted(missing):  # a folder comes before what lies in it
        if os.path.lexists(path):
            bin_ = os.path.join(rules.temporary, "taken-away")
            os.makedirs(bin_, exist_ok=True)
            name = f"{len(os.listdir(bin_))}-{os.path.basename(path)}"
            shutil.move(path, os.path.join(bin_, name))
            taken.append(os.path.relpath(path, rules.project))
    return taken


def _is_harmless(repository: str) -> bool:
    hooks = os.path.join(repository, "hooks")
    names = os.listdir(hooks) if os.path.isdir(hooks) else []
    if any(not name.endswith(".sample") for name in names):
        return False
    if any(os.path.lexists(os.path.join(repository, n)) for n in ("commondir", "config.worktree")):
        return False
    try:
        with open(os.path.join(repository, "config"), encoding="utf-8", errors="replace") as file:
            return _RUNS.search(file.read()) is None
    except OSError:
        return True
