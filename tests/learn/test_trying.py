"""The bench: commands on a copy of a skill that can do nothing to the real one."""

from pathlib import Path

import pytest

from tacit.changes.files import File
from tacit.learn.improve.trying import Bench, find_sandbox

BOX = find_sandbox()
pytestmark = pytest.mark.skipif(BOX is None, reason="there is no sandbox here")

GONE = {"SKILL.md": File(b"x")}
THERE = GONE | {"scripts/go.sh": File(b"test -e input && echo fine\n")}
WORSE = GONE | {"scripts/go.sh": File(b"exit 4\n")}


@pytest.fixture
def bench(home: Path) -> Bench:
    assert BOX is not None
    (home / "work" / "input").write_text("x")
    return Bench(BOX, str(home / "work"), str(home / "skills" / "demo"), "demo")


def test_before_and_after(bench: Bench, home: Path) -> None:
    """The command that failed is run on the old files and the new, however it named the folder."""
    for command in (
        f"sh {home}/skills/demo/scripts/go.sh",
        "sh ~/skills/demo/scripts/go.sh",
        "sh scripts/go.sh",
    ):
        (tried,) = bench.compare([command], GONE, THERE)
        assert (tried.state, tried.said) == ("fixed", "fine"), command
    (worse,) = bench.compare(["sh scripts/go.sh"], THERE, WORSE)
    (still,) = bench.compare(["sh scripts/go.sh"], WORSE, GONE)
    assert (worse.state, still.state) == ("fails now", "still fails")


def test_nothing_is_done(bench: Bench, home: Path) -> None:
    """Neither the project nor the copy of the next command shows what a command wrote, and there is
    no network."""
    files = {"SKILL.md": File(b"x")}
    command = (
        "echo y > $SKILL_DIR/SKILL.md; ln -s / /tmp/way; rm -rf $SKILL_DIR; ln -s /var $SKILL_DIR;"
        "touch made 2>/dev/null || echo no; cat /proc/net/dev | grep -c eth; ls ~ >/dev/null"
    )
    first = bench.run(command, files)
    assert first.output.split()[:2] == ["no", "0"]
    second = bench.run("cat $SKILL_DIR/SKILL.md; ls -d /tmp/way", files)
    assert second.output.startswith("xls: ")
    assert not (home / "work" / "made").exists()


def test_a_command_that_hangs_is_ended(bench: Bench) -> None:
    """Time is limited."""
    assert bench.run("sleep 60", GONE, 0.2).timed_out
