"""A stranger with many skills: lists them, finds the right one, reads it, mends a broken one."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = str(Path(sys.executable).with_name("tacit"))
NOUNS = ["invoice", "tensor", "cluster", "recipe", "glacier", "violin", "parser", "harbour"]
VERBS = ["migrate", "sketch", "audit", "translate", "compress", "schedule"]
TOOLS = ["psql", "ffmpeg", "terraform", "pandoc", "ripgrep", "openssl", "rsync"]


def run(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def asked(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code))


@pytest.fixture
def skills(home: Path) -> Path:
    """Several hundred skills in the folders of several agents, nested and with faults."""
    chance = random.Random(7)
    places = [".agents/skills", ".claude/skills", ".codex/skills/team/tools"]
    number = 0
    for verb in VERBS:
        for noun in NOUNS:
            for tool in TOOLS:
                folder = home / chance.choice(places) / f"{verb}-{noun}-{tool}"
                folder.mkdir(parents=True)
                faults = chance.random() < 0.1
                head = f"name: {folder.name}\ndescription: {verb.title()} each {noun} with {tool}."
                head += " Use when: asked.\n" if faults else "\n"
                body = f"# {verb.title()} a {noun}\n\nRun `{tool} --{noun}` and look.\n"
                (folder / "SKILL.md").write_text(f"---\n{head}---\n\n{body}")
                number += 1
    assert number == 336
    broken = home / ".agents" / "skills" / "release-notes"
    broken.mkdir()
    (broken / "SKILL.md").write_text(
        "---\nname: release_notes\ndescription: Write release notes: from the log\n---\n\n"
        "Read [the style](references/style.md).\n"
    )
    return home / ".agents" / "skills"


def test_from_the_first_list_to_a_mended_library(skills: Path, home: Path) -> None:
    """Every step that a newcomer takes works, and each step's hint leads to the next."""
    # All of them are there.
    listed = run("list").splitlines()
    assert len(listed) == 336 + 4
    assert len(asked("list")["skills"]) == 336 + 4
    assert len(run("catalogue")) <= 8000

    # The right one is first, by what it is for and by a line of its body.
    first = asked("search", "compress the violin recordings using ffmpeg")["results"][0]
    assert first["skill"]["name"] == "compress-violin-ffmpeg"
    assert first["text"] == "Run `ffmpeg --violin` and look."

    # It can be read, by its name and by its folder.
    shown = run("show", "compress-violin-ffmpeg")
    assert "# Compress a violin" in shown
    assert asked("show", first["skill"]["folder"])["skill"]["body_line"] == first["line"] - 3

    # What is wrong with a broken one is said with its line and its mend.
    report = asked("lint", "release-notes", code=1)
    problems = {p["code"]: p for p in report["skills"][0]["problems"]}
    assert set(problems) == {"bad-yaml", "name-form", "name-differs", "missing-file"}
    assert problems["bad-yaml"]["line"] == 3
    assert problems["name-form"]["fix"] == "write 'name: release-notes'"
    assert "quotes" in problems["bad-yaml"]["fix"]

    # Done as it says, nothing is wrong any more, not even to the letter.
    file = skills / "release-notes" / "SKILL.md"
    text = file.read_text().replace("name: release_notes", "name: release-notes")
    text = text.replace(
        "description: Write release notes: from the log",
        'description: "Write release notes: from the log"',
    )
    file.write_text(text)
    (file.parent / "references").mkdir()
    (file.parent / "references" / "style.md").write_text("Short.\n")
    assert asked("lint", "release-notes", "--strict")["errors"] == 0
    assert "no problems" in run("lint", "release-notes", "--strict")
    assert asked("search", "notes for a release")["results"][0]["skill"]["name"] == "release-notes"

    # Damage to both indexes is found, mended, and nothing is lost by it.
    assert "nothing wrong" in run("doctor")
    cache = home / ".cache" / "tacit"
    indexes = list((cache / "index").glob("*.idx"))
    assert len(indexes) == 4
    for path in (*indexes, *(cache / "search").glob("*.store")):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    codes = [row["code"] for row in asked("doctor", code=6)["findings"]]
    assert codes == ["index"] * 4 + ["search"]
    run("doctor", "--fix")
    assert asked("doctor")["findings"] == []
    again = asked("search", "compress the violin recordings using ffmpeg")["results"][0]
    assert again["skill"] == first["skill"]
    assert len(run("list").splitlines()) == len(listed)


def test_damage_that_nobody_mends(skills: Path, home: Path) -> None:
    """Without the doctor, each command mends what it needs by itself."""
    before = run("list")
    found = asked("search", "audit the glacier with rsync")
    cache = home / ".cache" / "tacit"
    for path in (*(cache / "index").iterdir(), *(cache / "search").iterdir()):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run("list") == before
    assert asked("search", "audit the glacier with rsync") == found
