"""Running one command to its end, its time limit, or the user's interrupt, whichever is first."""

import asyncio
import contextlib
import json
import os
import re
import select
import shutil
import signal
import time

import msgspec

from tacit.agent.sandbox import Sandbox, environment
from tacit.agent.walls import Rules, guarded

MOST_OUTPUT = 400_000
_CHUNK = 65_536
_LINGER = 0.5
"""Seconds for the rest of the output once the command itself has ended."""
# In the settings of a repository: what names a program to run, or brings in other settings.
_RUNS = re.compile(
    r"(?i)fsmonitor|command|pager|editor|hookspath|textconv|\[filter|\[alias|\[include|helper"
    r"|program|askpass|external|driver|receivepack|uploadpack|worktree\s*="
)


class Outcome(msgspec.Struct, frozen=True):
    """How a command ended. A non-zero exit is a failure."""

    exit_code: int
    output: str
    seconds: float
    timed_out: bool = False
    dropped: int = 0
    """Bytes of output in the middle that were not kept."""
    taken_away: tuple[str, ...] = ()
    """What the command made where it may make nothing; it was moved out of the project."""

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0 or bool(self.taken_away)


async def run(command: str, sandbox: Sandbox, rules: Rules, seconds: float) -> Outcome:
    """Run `command`; its whole tree of processes is gone when this returns or is cancelled."""
    began = time.monotonic()
    missing = [path for path in _watched(rules) if not os.path.lexists(path)]
    keeper = _Keeper()
    timed_out = False
    process, output, told = await _start(command, sandbox, rules)
    reading = asyncio.create_task(_read(output, keeper))
    inner = _open_first(told) if sandbox.is_namespace else _close(told)
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
        taken = _take_away(missing, rules)
    code = process.returncode if process.returncode is not None else -1
    text, dropped = keeper.text()
    return Outcome(code, text, time.monotonic() - began, timed_out, dropped, tuple(taken))


async def _start(
    command: str, sandbox: Sandbox, rules: Rules
) -> tuple[asyncio.subprocess.Process, int, int]:
    """The process, where its output can be read, and where the sandbox tells of its first process.

    The pipes are our own: asyncio's would have us wait for every child that still holds one.
    """
    output, inlet = os.pipe()
    told, teller = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *sandbox.call(command, rules, teller),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=inlet,
            stderr=inlet,
            pass_fds=(teller,),
            cwd=rules.project,
            env=environment(sandbox, rules, os.environ),
            start_new_session=True,
        )
    except BaseException:
        os.close(output)
        os.close(told)
        raise
    finally:
        os.close(inlet)
        os.close(teller)
    return process, output, told


def _open_first(told: int) -> int:
    """A handle on the first process of the namespace, with which all others end; -1 for none.

    The sandbox writes at once and closes, so this hardly waits.
    """
    text = b""
    with os.fdopen(told, "rb", 0) as file:
        while select.select([file], [], [], 5.0)[0] and (part := file.read(4096)):
            text += part
    try:
        return os.pidfd_open(int(json.loads(text)["child-pid"]))
    except (ValueError, KeyError, TypeError, OSError, AttributeError):
        return -1


async def _read(output: int, keeper: "_Keeper") -> None:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(output, "rb", 0)
    )
    try:
        while part := await stream.read(_CHUNK):
            keeper.add(part)
    finally:
        transport.close()


class _Keeper:
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


def _close(told: int) -> int:
    os.close(told)
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


def _watched(rules: Rules) -> list[str]:
    return [*guarded(rules), os.path.join(rules.project, ".git")]


def _take_away(missing: list[str], rules: Rules) -> list[str]:
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
