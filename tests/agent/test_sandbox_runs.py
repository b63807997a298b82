"""Running a command to its end: time, interrupts, output, what it leaves behind."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent import sandbox
from tacit.agent.sandbox import Bubblewrap, CommandOutcome
from tacit.base.errors import Refused

pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")

_OWN = os.getpid()
"""Tells the processes of this run from those of another on the same machine."""


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
    sleep = f"sleep 600.{_OWN}"
    done = box.run(f"(setsid sh -c '{sleep} & {sleep}' > /dev/null 2>&1 &) ; echo started")
    assert done.output == "started\n"
    assert not _alive(f"600.{_OWN}")


def test_the_time_limit_kills_the_whole_tree(box: Box) -> None:
    """Two hundred processes, some in sessions of their own, are gone when the time is up."""
    sleep = f"sleep 601.{_OWN}"
    spawn = f"i=0; while [ $i -lt 100 ]; do (setsid {sleep} &); {sleep} & i=$((i+1)); done; wait"
    done = box.run(spawn, seconds=1.5)
    assert done.timed_out
    assert done.failed
    assert not _alive(f"601.{_OWN}")


def test_a_command_that_ignores_signals_ends_too(box: Box) -> None:
    """Trapping every signal buys no time."""
    loop = f"trap '' TERM INT HUP; while :; do sleep 602.{_OWN}; done"
    done = box.run(loop, seconds=0.5)
    assert done.timed_out
    assert not _alive(f"602.{_OWN}")


def test_cancelling_kills_the_whole_tree(box: Box) -> None:
    """When the user interrupts, nothing of the command is left running."""

    async def interrupted() -> None:
        command = f"(setsid sleep 603.{_OWN} &); touch started; sleep 603.{_OWN}"
        task = asyncio.create_task(sandbox.run_sandboxed(command, Bubblewrap(), box.rules(), 60))
        while not (box.project / "started").exists():
            await asyncio.sleep(0.02)
        assert _alive(f"603.{_OWN}")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert not _alive(f"603.{_OWN}")


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


def test_a_project_that_is_gone_is_named(box: Box) -> None:
    """Moved away while the chat is open: nothing runs elsewhere, and what is missing is said."""
    box.project.rename(box.home / "elsewhere")
    with pytest.raises(Refused, match=f"{box.project}: No such file"):
        box.run("touch made")
    assert not box.project.exists()


def test_a_command_cannot_put_itself_in_the_place_of_the_walls(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it writes into a folder of the project that is on the PATH is not taken for them."""
    monkeypatch.chdir(box.project)
    monkeypatch.setenv("PATH", f"{box.project}/.venv/bin:node_modules/.bin:{os.environ['PATH']}")
    walls = sandbox.find_sandbox()
    evil = "mkdir -p $d && printf '#!/bin/sh' > $d/bwrap && chmod +x $d/bwrap"
    done = box.run(f"for d in .venv/bin node_modules/.bin; do {evil}; done")
    assert done.exit_code == 0, done.output
    assert str(shutil.which("bwrap")).startswith(str(box.project))
    assert vars(sandbox.find_sandbox()) == vars(walls)
