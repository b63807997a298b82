"""Running one command to its end, its time limit, or the user's interrupt, whichever is first."""

import asyncio
import contextlib
import os
import signal
import time

import msgspec

from tacit.agent.sandbox import Rules, Sandbox, environment

MOST_OUTPUT = 400_000
_CHUNK = 65_536


class Outcome(msgspec.Struct, frozen=True):
    """How a command ended. A non-zero exit is a failure."""

    exit_code: int
    output: str
    seconds: float
    timed_out: bool = False
    dropped: int = 0
    """Bytes of output in the middle that were not kept."""

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0


async def run(command: str, sandbox: Sandbox, rules: Rules, seconds: float) -> Outcome:
    """Run `command`; its whole tree of processes is gone when this returns or is cancelled."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *sandbox.call(command, rules),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=rules.project,
        env=environment()
        if sandbox.name != "none"
        else environment() | {"TMPDIR": rules.temporary},
        start_new_session=True,
    )
    keeper = _Keeper()
    timed_out = False
    try:
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            while part := await process.stdout.read(_CHUNK):
                keeper.add(part)
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process)
    code = process.returncode if process.returncode is not None else -1
    text, dropped = keeper.text()
    return Outcome(code, text, time.monotonic() - began, timed_out, dropped)


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


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the group; killing bubblewrap ends its whole namespace."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        await asyncio.shield(process.wait())
