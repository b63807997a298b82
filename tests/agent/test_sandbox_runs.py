"""Running a command to its end: time, interrupts, output, what it leaves behind."""

import asyncio
import time
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent import sandbox
from tacit.agent.sandbox import Bubblewrap, CommandOutcome

pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")


def _alive(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "cmdline").read_text():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_daemon_does_not_outlive_its_command(box: Box) -> None:
    """A process that forks twice and leaves its session is gone when the command has ended."""
    began = time.monotonic()
    done = box.run("(setsid sh -c 'sleep 61.25 & sleep 61.25' > /dev/null 2>&1 &) ; echo started")
    assert done.output == "started\n"
    assert time.monotonic() - began < 10
    assert not _alive("61.25")


def test_the_time_limit_kills_the_whole_tree(box: Box) -> None:
    """Two hundred processes, some in sessions of their own, are gone when the time is up."""
    spawn = (
        "i=0; while [ $i -lt 100 ]; do (setsid sleep 62.5 &); sleep 62.5 & i=$((i+1)); done; wait"
    )
    began = time.monotonic()
    done = box.run(spawn, seconds=1.5)
    assert done.timed_out
    assert done.failed
    assert time.monotonic() - began < 10
    assert not _alive("62.5")


def test_a_command_that_ignores_signals_ends_too(box: Box) -> None:
    """Trapping every signal buys no time."""
    done = box.run("trap '' TERM INT HUP; while :; do sleep 63.5; done", seconds=0.5)
    assert done.timed_out
    assert done.seconds < 8
    assert not _alive("63.5")


def test_cancelling_kills_the_whole_tree(box: Box) -> None:
    """When the user interrupts, nothing of the command is left running."""

    async def interrupted() -> None:
        command = "(setsid sleep 64.5 &); touch started; sleep 64.5"
        task = asyncio.create_task(sandbox.run_sandboxed(command, Bubblewrap(), box.rules(), 60))
        while not (box.project / "started").exists():
            await asyncio.sleep(0.02)
        assert _alive("64.5")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert not _alive("64.5")


def test_huge_output_is_bounded_and_keeps_both_ends(box: Box) -> None:
    """A hundred megabytes of output leave its beginning and its end, and how much is missing."""
    done = box.run("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert done.output.startswith("first\n")
    assert done.output.endswith("last\n")
    assert len(done.output) < sandbox.MOST_OUTPUT + 1000
    assert done.dropped > 99_000_000
    assert f"{done.dropped:,} bytes left out" in done.output


def test_commands_side_by_side(box: Box) -> None:
    """Several commands at once do not disturb one another."""

    async def both() -> list[CommandOutcome]:
        made = [
            sandbox.run_sandboxed(
                f"sleep 0.2; echo {n} > n{n}; cat n{n}", Bubblewrap(), box.rules(), 20
            )
            for n in range(4)
        ]
        return await asyncio.gather(*made)

    assert [done.output for done in asyncio.run(both())] == ["0\n", "1\n", "2\n", "3\n"]


def test_reading_from_the_terminal_ends_at_once(box: Box) -> None:
    """A command that asks for input gets the end of the file, and no terminal."""
    done = box.run("cat; read x < /dev/tty; echo end", seconds=5)
    assert not done.timed_out
    assert done.output.endswith("end\n")


def test_an_exit_code_is_kept(box: Box) -> None:
    """A non-zero exit is a failure, and its code is known."""
    done = box.run("echo no; exit 7")
    assert (done.exit_code, done.failed, done.output) == (7, True, "no\n")
