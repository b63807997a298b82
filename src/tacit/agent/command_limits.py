"""Limits on what one command may use up: memory, what it writes to the disk, processes.

The kernel holds each process to its share from before its first step (rlimits). What they take
together is measured while the command runs, from outside, and whoever runs it ends it when that is
too much. Linux only; elsewhere the shell's own limits have to do.
"""

import asyncio
import contextlib
import os
import struct
from collections.abc import Iterator

from tacit.agent.off_limits import CommandLimits
from tacit.base.setting_sections import AgentSettings

_MEGABYTE = 1024 * 1024
_EVERY = 0.2
"""Seconds between two looks."""


def limits_of(chosen: AgentSettings) -> CommandLimits:
    """What a command may use up by the settings."""
    memory = chosen.command_memory or _most_memory()
    return CommandLimits(
        memory=max(memory, 0),
        disk=max(chosen.command_disk, 0),
        processes=max(chosen.command_processes, 0),
    )


def _most_memory() -> int:
    """Three quarters of this machine's memory, in megabytes; 0 where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4 // _MEGABYTE
    except (ValueError, OSError):
        return 0


def hold_back(pid: int, limits: CommandLimits) -> None:
    """Set the limits of the process `pid`, which has not begun yet, and of what it starts."""
    import resource

    wanted = (
        (resource.RLIMIT_DATA, limits.memory * _MEGABYTE),
        (resource.RLIMIT_FSIZE, limits.disk * _MEGABYTE),
        (resource.RLIMIT_NPROC, limits.processes),
    )
    for which, most in wanted:
        if most:
            with contextlib.suppress(OSError, ValueError):  # it has ended, or has less as it is
                resource.prlimit(pid, which, (most, most))


# On each kind of machine: its mark in a filter, and its numbers of `fallocate` and
# `io_uring_setup`, by which the former can be had as well. Programs do without either.
_CALLS = (
    (0xC000003E, (285, 425)), (0xC000003E, (0x40000000 + 285, 0x40000000 + 425)),
    (0x40000003, (324, 425)), (0xC00000B7, (47, 425)), (0x40000028, (352, 425)),
)  # fmt: skip
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _UNSUPPORTED, _MISSING = 0x7FFF0000, 0x0005005F, 0x00050026


def call_filter() -> bytes:
    """A program for the kernel that refuses what fills a disk without a byte being written: no
    count of what a command writes sees it."""
    code: list[tuple[int, int, int, int]] = []
    for machine, (allocate, ring) in _CALLS:
        code += [
            (_LOAD, 0, 0, 4), (_EQUAL, 0, 5, machine), (_LOAD, 0, 0, 0),
            (_EQUAL, 0, 1, allocate), (_RETURN, 0, 0, _UNSUPPORTED),
            (_EQUAL, 0, 1, ring), (_RETURN, 0, 0, _MISSING),
        ]  # fmt: skip
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *each) for each in code)


def shell_limits(limits: CommandLimits) -> str:
    """The same as words for a shell, where no process can be held back from outside."""
    wanted = (
        ("d", limits.memory * 1024),
        ("f", limits.disk * 2048),
        ("u", limits.processes),
    )
    set_ = "; ".join(f"ulimit -{letter} {most} 2>/dev/null" for letter, most in wanted if most)
    return f"{set_}; " if set_ else ""


async def first_excess(pid: int, limits: CommandLimits, folders: tuple[str, ...] = ()) -> str:
    """Wait until the process `pid` and all below it take too much together; say what of.

    `folders` are those that it writes: a disk can be full of empty files.
    """
    before = {folder: room_for_files(folder) for folder in folders}
    least = _least_memory(limits)
    while True:
        await asyncio.sleep(_EVERY)
        if over := _excess(pid, limits):
            return over
        if least > 0 and _machine_memory()[1] < least:
            return "so much memory that the machine runs short of it (agent.command_memory)"
        if limits.disk and any(room_for_files(f) < room // 2 for f, room in before.items()):
            return "more than half of the files that the disk has room for (agent.command_disk)"


def _least_memory(limits: CommandLimits) -> int:
    """Bytes that the machine must have left; 0 for no limit. What the kernel keeps for a command,
    such as what waits in its sockets, is memory of none of its processes. An eighth of the machine
    is for what other programs take meanwhile."""
    total, left = _machine_memory()
    if not limits.memory or not total:
        return 0
    by_limit = left - limits.memory * _MEGABYTE - total // 8
    return min(max(by_limit, total // 16), left - total // 16)


def _machine_memory() -> tuple[int, int]:
    """The machine's memory and what is left of it, in bytes; zeros where that is not known."""
    found = dict(line.split(":") for line in _read("/proc/meminfo").splitlines() if ":" in line)
    wanted = (found.get(name, "0").split()[0] for name in ("MemTotal", "MemAvailable"))
    total, left = (int(value) * 1024 for value in wanted)
    return total, left


def room_for_files(folder: str) -> int:
    """How many files the disk of `folder` can still take; 0 where it does not count them."""
    try:
        return os.statvfs(folder).f_favail
    except OSError:
        return 0


def _excess(pid: int, limits: CommandLimits) -> str:
    if limits.processes and _processes(pid) > limits.processes:
        return f"more than {limits.processes:,} processes (agent.command_processes)"
    tree = list(_tree(pid))
    most = limits.memory * _MEGABYTE
    if most and _is_over(pid, tree, most):
        return f"more than {limits.memory:,} MB of memory (agent.command_memory)"
    if limits.disk and _written(tree) > limits.disk * _MEGABYTE:
        return f"more than {limits.disk:,} MB written (agent.command_disk)"
    return ""


def _is_over(pid: int, tree: list[int], most: int) -> bool:
    """The quick count takes shared pages several times; only a large one is worth an exact look."""
    left = most - _shared(pid)
    quick = _sum(tree, "status", "RssAnon", "RssShmem")
    return quick > left and _sum(tree, "smaps_rollup", "Pss_Anon", "Pss_Shmem") > left


def _processes(pid: int) -> int:
    """How many there are in the namespace that `pid` is the first of. By a single look: among
    thousands that multiply, whoever reads of each hardly gets a turn."""
    try:
        return sum(name.isdecimal() for name in os.listdir(f"/proc/{pid}/root/proc"))
    except OSError:
        return 0


def _tree(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        here = waiting.pop()
        yield here
        try:
            threads = os.listdir(f"/proc/{here}/task")
        except OSError:
            continue
        for thread in threads:
            waiting += map(int, _read(f"/proc/{here}/task/{thread}/children").split())


def _sum(tree: list[int], file: str, *fields: str) -> int:
    """The bytes that the lines of these names say, in kB, of all processes together."""
    found = 0
    for pid in tree:
        for line in _read(f"/proc/{pid}/{file}").splitlines():
            name, _, value = line.partition(":")
            if name in fields:
                found += int(value.split()[0]) * 1024
    return found


def _shared(pid: int) -> int:
    """Bytes in the command's own /dev/shm, which is memory."""
    try:
        status = os.statvfs(f"/proc/{pid}/root/dev/shm")
    except OSError:
        return 0
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _written(tree: list[int]) -> int:
    """Bytes on their way to a disk; what a process wrote counts for its parent once it ended."""
    found = 0
    for pid in tree:
        values = dict(line.split(": ") for line in _read(f"/proc/{pid}/io").splitlines())
        found += int(values.get("write_bytes", 0)) - int(values.get("cancelled_write_bytes", 0))
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:  # it has ended
        return ""
