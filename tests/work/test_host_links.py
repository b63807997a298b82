"""Links for Claude Code follow the library: through real commands and a real repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base import trust
from tacit.changes.change import Create, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.work import host_links

BIN = Path(sys.executable).parent
SKILL = """\
---
name: {name}
description: Counts {name} in the yard. Use when {name} are to be counted.
metadata:
  source: auto-skill
---

1. Stand at the gate and count {name}.
"""


def tacit(*arguments: str, given: str = "") -> str:
    done = subprocess.run([BIN / "tacit", *arguments], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def git_status(folder: Path) -> str:
    done = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=folder, capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted repository, and the working directory in it."""
    folder = home / "work" / "yard"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    trust.add(str(folder))
    monkeypatch.chdir(folder)
    return folder


def learn(name: str) -> None:
    """As the worker does it: a reviewer's change through the gate, in the project."""
    place = project_place()
    with acting_as("reviewer"):
        create = Create({"SKILL.md": SKILL.format(name=name).encode()})
        verdict = Gate([place]).propose(make_change(name, create, root=place.root))
    assert verdict.applied, verdict.explain()


def test_a_skill_made_after_connecting_gets_its_link(home: Path) -> None:
    """Made, archived, restored: the link is where the skill is, with no further command."""
    tacit("connect", "claude-code", "--yes")
    links = home / ".claude" / "skills"
    tacit("new", "geese", "--from", "-", given=SKILL.format(name="geese"))
    assert (links / "geese" / "SKILL.md").is_file()
    tacit("archive", "geese")
    assert not os.path.lexists(links / "geese")
    tacit("restore", "geese")
    assert (links / "geese" / "SKILL.md").is_file()
    tacit("disconnect", "--yes")
    assert not links.exists()


def test_without_claude_code_there_are_no_links(home: Path) -> None:
    """What is not connected is not touched."""
    tacit("new", "geese", "--from", "-", given=SKILL.format(name="geese"))
    assert not (home / ".claude").exists()


def test_links_in_a_project_stay_out_of_git_status(project: Path) -> None:
    """A skill learned in a repository and its link are both hidden; disconnecting shows again."""
    tacit("connect", "claude-code", "--yes")
    host_links.listen()
    learn("geese")
    link = project / ".claude" / "skills" / "geese"
    assert os.readlink(link) == "../../.agents/skills/geese"
    assert git_status(project) == ""
    exclude = project / ".git" / "info" / "exclude"
    assert "/.claude/skills/geese\n" in exclude.read_text()
    tacit("disconnect", "--yes")
    assert not os.path.lexists(link)
    assert ".claude" not in exclude.read_text()


def test_connecting_hides_links_that_it_makes(project: Path) -> None:
    """Skills that were learned before count too, and what the user has there stays visible."""
    learn("geese")
    own = project / ".claude" / "skills" / "own" / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    tacit("connect", "claude-code", "--yes")
    assert (project / ".claude/skills/geese/SKILL.md").is_file()
    assert git_status(project) == "?? .claude/skills/own/SKILL.md\n"


def test_listening_twice_is_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that opens the gate again and again has one listener."""
    tacit("connect", "claude-code", "--yes")
    seen: list[str] = []
    real = host_links.link
    monkeypatch.setattr(host_links, "link", lambda host, cwd: seen.append(host) or real(host, cwd))
    host_links.listen()
    host_links.listen()
    learn("geese")
    assert seen == ["claude-code"]
