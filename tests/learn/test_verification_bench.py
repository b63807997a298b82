"""The bench: commands on a copy of a skill that can do nothing to the real one."""

import tempfile
from pathlib import Path

import pytest

from tacit.changes.change import File
from tacit.learn.improve.verification import Bench, find_sandbox, open_bench

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
        assert (tried.state, tried.output) == ("fixed", "fine"), command
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


def test_nobody_s_files_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the home only the project and programs can be read, at every level of the way to it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        home = Path(top).resolve()
        monkeypatch.setenv("HOME", str(home))
        project = home / "code" / "mine"
        (home / ".pyenv" / "bin").mkdir(parents=True)
        (home / "letters").mkdir()
        project.mkdir(parents=True)
        for name in ("diary", "letters/love", "code/other", ".pyenv/bin/python", "code/mine/own"):
            (home / name).write_text("text")
        (home / "way").symlink_to("/usr")
        bench = open_bench(str(project), str(home / "x"), "demo")
        assert bench is not None
        names = "diary letters/love code/other .pyenv/bin/python code/mine/own"
        command = f"cd {home}; for f in {names}; do cat $f 2>/dev/null; echo .; done; ls /usr/bin"
        told = bench.run(command, GONE).output.split("\n")
    assert told[:5] == [".", ".", ".", "text.", "text."]
    assert len(told) > 10


def test_a_command_that_hangs_is_ended(bench: Bench) -> None:
    """Time is limited."""
    assert bench.run("sleep 60", GONE, 0.2).timed_out
