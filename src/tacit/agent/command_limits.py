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
from typing import NamedTuple

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


# On each kind of machine: its mark in a filter, and its numbers of `fallocate`; of
# `io_uring_setup`, by which that can be had as well; and of `add_key`, `request_key`, `keyctl`.
# Programs do without.
_CALLS = (
    (0xC000003E, 285, (425, 248, 249, 250)),
    (0xC000003E, 0x40000000 + 285, tuple(0x40000000 + n for n in (425, 248, 249, 250))),
    (0x40000003, 324, (425, 286, 287, 288)),
    (0xC00000B7, 47, (425, 217, 218, 219)),
    (0x40000028, 352, (425, 309, 310, 311)),
)
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _UNSUPPORTED, _MISSING = 0x7FFF0000, 0x0005005F, 0x00050026


def call_filter() -> bytes:
    """A program for the kernel that refuses what fills a disk without a byte being written, as no
    count of what a command writes sees it; and the kernel's keys, which the user's login has."""
    code: list[tuple[int, int, int, int]] = []
    for machine, allocate, missing in _CALLS:
        steps = [(_LOAD, 0, 0, 0)]
        for number, answer in ((allocate, _UNSUPPORTED), *((n, _MISSING) for n in missing)):
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
        code += [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(steps), machine), *steps]
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

    `folders` are those that it writes. What no count of its processes shows is seen by what the
    machine and these disks have left; so it is where other programs take it.
    """
    at_first, disks = machine_memory(), {folder: disk_room(folder) for folder in folders}
    # Of one that is nearly full as it is, half of what is left.
    least = min(at_first.total // 16, at_first.left - at_first.total // 16)
    while True:
        await asyncio.sleep(_EVERY)
        memory = machine_memory()
        if over := _excess(pid, limits, memory.kept - at_first.kept - memory.total // 64):
            return over
        if limits.memory and memory.left < least:
            return "so much memory that the machine runs short of it (agent.command_memory)"
        for folder, before in disks.items() if limits.disk else ():
            room = disk_room(folder)
            if room.files < before.files // 2:
                return "more than half of the files that the disk has room for (agent.command_disk)"
            if room.bytes < _least_room(before.bytes, limits.disk * _MEGABYTE):
                return "so much room that the disk runs short of it (agent.command_disk)"


class MachineMemory(NamedTuple):
    """In bytes; zeros where it is not known."""

    total: int
    left: int
    kept: int
    """What is neither left nor a process's own: in sockets, pipes, shared memory, tables of pages.
    Nothing says for whom the kernel keeps it."""


def machine_memory() -> MachineMemory:
    found = dict(line.split(":") for line in _read("/proc/meminfo").splitlines() if ":" in line)
    names = ("MemTotal", "MemAvailable", "AnonPages", "SwapTotal", "SwapFree")
    total, left, own, swap, unused = (int(found.get(name, "0").split()[0]) * 1024 for name in names)
    # What is swapped out may lie in memory, compressed.
    return MachineMemory(total, left, total - left - own - (swap - unused))


class DiskRoom(NamedTuple):
    """What a disk can still take; zeros where that is not known or not counted."""

    bytes: int
    files: int


def disk_room(folder: str) -> DiskRoom:
    try:
        status = os.statvfs(folder)
    except OSError:
        return DiskRoom(0, 0)
    return DiskRoom(status.f_bavail * status.f_frsize, status.f_favail)


def _least_room(before: int, most: int) -> int:
    """Bytes that a disk must have left. An eighth of what it had is for what other programs write
    meanwhile."""
    return max(before - most - before // 8, before // 16)


def _excess(pid: int, limits: CommandLimits, kept: int) -> str:
    if limits.processes and _processes(pid) > limits.processes:
        return f"more than {limits.processes:,} processes (agent.command_processes)"
    tree = list(_tree(pid))
    if limits.memory and _is_over(tree, limits.memory * _MEGABYTE, max(_shared(pid), kept)):
        return f"more than {limits.memory:,} MB of memory (agent.command_memory)"
    if limits.disk and _written(tree) > limits.disk * _MEGABYTE:
        return f"more than {limits.disk:,} MB written (agent.command_disk)"
    return ""


def _is_over(tree: list[int], most: int, kept: int) -> bool:
    """The quick count takes shared pages several times; only a large one is worth an exact look.

    What processes share may be a part of what the kernel keeps.
    """
    for file, names in (("status", "Rss{}"), ("smaps_rollup", "Pss_{}")):
        own, shared = (_sum(tree, file, names.format(kind)) for kind in ("Anon", "Shmem"))
        if own + max(shared, kept) <= most:
            return False
    return True


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


def _sum(tree: list[int], file: str, field: str) -> int:
    """The bytes that the lines of this name say, in kB, of all processes together."""
    found = 0
    for pid in tree:
        for line in _read(f"/proc/{pid}/{file}").splitlines():
            name, _, value = line.partition(":")
            if name == field:
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
    """Bytes on their way to a disk; what a process wrote counts for a parent that waits for it."""
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
