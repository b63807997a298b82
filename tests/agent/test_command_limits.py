"""A command cannot use up the machine: memory, disk and processes have limits."""

import asyncio
import os
import sys

import pytest
from boxes import WHY, Box

from tacit.agent import command_limits
from tacit.agent.command_limits import DiskRoom, MachineMemory
from tacit.agent.off_limits import CommandLimits
from tacit.agent.sandbox import NoSandbox, run_sandboxed
from tacit.base.setting_sections import AgentSettings

needs_bubblewrap = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")
_PYTHON = os.path.realpath(sys.executable)


@needs_bubblewrap
def test_one_process_gets_no_more_memory(box: Box) -> None:
    """The kernel refuses what is above the limit, at once."""
    limits = CommandLimits(memory=200)
    done = box.run(f"{_PYTHON} -c 'x = bytearray(10**9); print(1)'", limits=limits)
    assert "MemoryError" in done.output
    assert "1\n" in box.run(f"{_PYTHON} -c 'x = bytearray(10**8); print(1)'", limits=limits).output


@needs_bubblewrap
def test_many_processes_together_get_no_more_memory(box: Box) -> None:
    """Each below the limit, together above it: the command is ended and told why."""
    hog = f"{_PYTHON} -c 'import time; x = b\"x\" * (90 * 10**6); time.sleep(60)'"
    done = box.run(f"{hog} & {hog} & {hog} & {hog} & wait", limits=CommandLimits(memory=250))
    assert done.excess == "more than 250 MB of memory (agent.command_memory)"
    assert done.failed


@needs_bubblewrap
def test_shared_memory_counts(box: Box) -> None:
    """Files in /dev/shm are memory too."""
    write = "for i in 1 2 3; do head -c 90000000 /dev/zero > /dev/shm/$i; done; sleep 60"
    done = box.run(write, limits=CommandLimits(memory=200))
    assert "of memory" in done.excess


@needs_bubblewrap
def test_processes_are_counted(box: Box) -> None:
    """Also for root, whom the kernel does not count: a command that multiplies is ended."""
    bomb = "i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done; wait"
    done = box.run(bomb, limits=CommandLimits(processes=100))
    assert done.failed
    assert "processes" in done.excess or "fork" in done.output


@needs_bubblewrap
def test_what_is_written_is_limited(box: Box) -> None:
    """One large file is cut off by the kernel; many small ones are counted, also of children."""
    limits = CommandLimits(disk=30)
    one = box.run("head -c 90000000 /dev/zero > big", limits=limits)
    assert one.failed
    assert (box.project / "big").stat().st_size <= 30 * 1024 * 1024
    small = "i=0; while :; do head -c 5000000 /dev/zero > f$i; sync f$i; i=$((i+1)); done"
    many = box.run(small, limits=limits, seconds=60)
    assert "written" in many.excess


@needs_bubblewrap
def test_within_its_limits_nothing_happens(box: Box) -> None:
    """The limits of the settings let an ordinary command be."""
    done = box.run("echo fine; sleep 0.5", limits=command_limits.limits_of(AgentSettings()))
    assert (done.output, done.failed) == ("fine\n", False)


def test_the_settings_say_how_much() -> None:
    """Nothing set is three quarters of the machine; -1 is no limit."""
    found = command_limits.limits_of(AgentSettings())
    assert 0 < found.memory < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    assert (found.disk, found.processes) == (20_000, 4096)
    none = AgentSettings(command_memory=-1, command_disk=-1, command_processes=-1)
    assert command_limits.limits_of(none) == CommandLimits()


def test_without_a_sandbox_the_shell_holds_back(box: Box) -> None:
    """Run bare, a file that grows too large is cut off."""
    rules = box.rules(limits=CommandLimits(disk=1))
    done = asyncio.run(run_sandboxed("head -c 9000000 /dev/zero > big", NoSandbox(), rules, 20))
    assert done.failed
    assert (box.project / "big").stat().st_size <= 1024 * 1024


@needs_bubblewrap
def test_a_disk_is_not_filled_with_empty_files(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes half of the files that the disk has room for is ended."""

    def room(folder: str) -> DiskRoom:
        here = os.path.samefile(folder, box.project)
        return DiskRoom(0, 100 - len(os.listdir(folder)) if here else 0)

    monkeypatch.setattr(command_limits, "disk_room", room)
    make = "i=0; while [ $i -lt 90 ]; do : > f$i; i=$((i+1)); done; sleep 60"
    done = box.run(make, limits=CommandLimits(disk=100))
    assert "half of the files" in done.excess
    assert done.failed


@needs_bubblewrap
def test_a_disk_is_not_filled_without_a_byte_being_written(box: Box) -> None:
    """Room is not taken but by writing, which is counted; a program that wants it all the same
    writes, as the library does for it."""
    code = (
        "import ctypes, errno, os; f = os.open('f', os.O_RDWR | os.O_CREAT);"
        "c = ctypes.CDLL(None, use_errno=True); took = c.fallocate(f, 0, 0, 10**6);"
        "print(took, errno.errorcode[ctypes.get_errno()], os.fstat(f).st_blocks);"
        "print(c.syscall(425, 1, 0), errno.errorcode[ctypes.get_errno()]);"
        "os.posix_fallocate(f, 0, 9999); print(os.fstat(f).st_size)"
    )
    done = box.run(f'{_PYTHON} -c "{code}"')
    assert done.output == "-1 ENOTSUP 0\n-1 ENOSYS\n9999\n"


@needs_bubblewrap
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_the_kernels_keys_are_not_there(box: Box) -> None:
    """They belong to the login, and go with every process: tickets of Kerberos, say."""
    code = (
        "import ctypes, errno; c = ctypes.CDLL(None, use_errno=True);"
        "came = [c.syscall(n, 0, -3, 0) for n in (248, 249, 250)];"
        "print(came, errno.errorcode[ctypes.get_errno()])"
    )
    assert box.run(f'{_PYTHON} -c "{code}"').output == "[-1, -1, -1] ENOSYS\n"


@needs_bubblewrap
@pytest.mark.parametrize(
    ("now", "what"),
    [
        (MachineMemory(16_000, 7_000, 8_700), "more than 400 MB of memory"),
        (MachineMemory(16_000, 7_000, 8_600), ""),  # others may take a little meanwhile
        (MachineMemory(16_000, 900, 3_000), "the machine runs short"),
    ],
)
def test_what_the_kernel_keeps_for_a_command_counts(
    now: MachineMemory, what: str, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory of no process, such as what waits in sockets; not what other programs' own grew by."""
    states = iter([MachineMemory(16_000, 14_000, 8_000)])

    def state() -> MachineMemory:
        found = next(states, now)
        return MachineMemory(*(value * 2**20 for value in found))

    monkeypatch.setattr(command_limits, "machine_memory", state)
    done = box.run("sleep 60" if what else "sleep 0.5", limits=CommandLimits(memory=400))
    assert (what in done.excess, done.failed) == (True, bool(what))


def test_the_kernel_tells_what_it_keeps() -> None:
    """The figures are of this machine, and one adds nothing to another."""
    found = command_limits.machine_memory()
    if sys.platform == "linux":
        assert 0 < found.kept < found.total > found.left > 0


@needs_bubblewrap
def test_a_disk_is_not_filled_by_what_no_count_sees(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as what a process wrote for which nobody waits: what the disk has left tells."""
    left = iter([10_000, 10_000])
    monkeypatch.setattr(
        command_limits, "disk_room", lambda folder: DiskRoom(next(left, 8_000) * 2**20, 0)
    )
    done = box.run("sleep 60", limits=CommandLimits(disk=700))
    assert "the disk runs short" in done.excess
    left = iter([10_000, 10_000])
    assert not box.run("sleep 0.5", limits=CommandLimits(disk=800)).failed


def test_a_disk_keeps_some_room() -> None:
    """More than the limit and an eighth, or nearly all, is too much."""
    least = command_limits._least_room
    assert (least(80_000, 20_000), least(10_000, 20_000)) == (50_000, 625)
