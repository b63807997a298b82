"""Learned skills of a project stay out of `git status`, and nothing else of git is touched."""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.base import git_program
from tacit.changes import change_checks, git_exclude
from tacit.changes.change import Archive, Create, Delete, Rename, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def open_gate(tmp_path: Path, kit: Any) -> Callable[[Path], Gate]:
    def make(folder: Path) -> Gate:
        place = Place(str(folder / ".agents" / "skills"), "project", str(folder))
        scanner = kit.options["scanner"]
        return Gate(
            [place], neighbours=NoNeighbours(), scanner=scanner, data=str(tmp_path / "data")
        )

    return make


def learn(gate: Gate, kit: Any, name: str, actor: Any = "reviewer") -> None:
    create = Create({"SKILL.md": kit.md(name, f"About {name}.\n", learned=actor == "reviewer")})
    assert gate.propose(make_change(name, create, actor=actor)).applied


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of .git but the exclude file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / ".git").rglob("*"))
        if path.is_file() and path.name != "exclude"
    }


def test_learned_skill_is_not_in_git_status(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any
) -> None:
    """Git's status stays empty after a learned skill; index, settings and commits are untouched."""
    before = fingerprint(project)
    exclude = (project / ".git" / "info" / "exclude").read_text()
    gate = open_gate(project)
    learn(gate, kit, "one")
    learn(gate, kit, "two")
    assert fingerprint(project) == before
    assert git(project, "status", "--porcelain", "--untracked-files=all") == ""
    place = gate.open_place().place
    assert sorted(git_exclude.hidden(place)) == ["one", "two"]
    assert git_exclude.show(place, "one", gate.data)
    status = git(project, "status", "--porcelain", "--untracked-files=all")
    assert status == "?? .agents/skills/one/SKILL.md\n"
    assert git_exclude.show(place, "two", gate.data)
    assert (project / ".git" / "info" / "exclude").read_text() == exclude


def test_users_own_skill_is_visible(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any
) -> None:
    """What the user makes, or asks an agent for, is theirs to commit."""
    gate = open_gate(project)
    learn(gate, kit, "mine", "user")
    learn(gate, kit, "asked", "agent")
    status = git(project, "status", "--porcelain", "--untracked-files=all")
    assert ".agents/skills/mine/SKILL.md" in status
    assert ".agents/skills/asked/SKILL.md" in status


def test_worktrees_and_submodules(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any, tmp_path: Path
) -> None:
    """The right exclude file is found where .git is a file."""
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    learn(open_gate(tmp_path / "tree"), kit, "one")
    assert git(tmp_path / "tree", "status", "--porcelain", "--untracked-files=all") == ""
    allow = ["-c", "protocol.file.allow=always"]
    git(project, *allow, "submodule", "--quiet", "add", str(project), "sub")
    git(project, "commit", "-qm", "sub")
    learn(open_gate(project / "sub"), kit, "two")
    assert git(project / "sub", "status", "--porcelain", "--untracked-files=all") == ""
    assert git(project, "status", "--porcelain", "--untracked-files=all") == ""


def test_hiding_follows_rename_archive_and_delete(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any
) -> None:
    """A renamed or archived skill stays hidden; of a deleted one no line remains."""
    gate = open_gate(project)
    place = gate.open_place().place
    learn(gate, kit, "one")
    assert gate.propose(make_change("one", Rename("uno"), actor="user")).applied
    assert git_exclude.hidden(place) == ["uno"]
    assert git(project, "status", "--porcelain", "--untracked-files=all") == ""
    assert gate.propose(make_change("uno", Archive(), actor="curator")).applied
    assert git(project, "status", "--porcelain", "--untracked-files=all") == ""
    assert change_checks.check_changes(gate) == []
    assert gate.propose(make_change("uno", Delete(), actor="user")).applied
    assert git_exclude.hidden(place) == []


def test_users_lines_in_the_exclude_file_stay(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any
) -> None:
    """Lines of the user's, also below ours and without an end, are kept as they are."""
    exclude = project / ".git" / "info" / "exclude"
    exclude.write_text("# mine\n*.log\n/build/")
    gate = open_gate(project)
    learn(gate, kit, "one")
    exclude.write_text(exclude.read_text() + "*.tmp\n")
    learn(gate, kit, "two")
    for skill in ("one", "two"):
        assert git_exclude.show(gate.open_place().place, skill, gate.data)
    assert exclude.read_text() == "# mine\n*.log\n/build/\n*.tmp\n"


def test_outside_a_repository(tmp_path: Path, open_gate: Callable[[Path], Gate], kit: Any) -> None:
    """Without a repository there is nothing to hide from, and learning works."""
    plain = tmp_path / "plain"
    plain.mkdir()
    gate = open_gate(plain)
    learn(gate, kit, "one")
    assert git_exclude.hidden(gate.open_place().place) == []


def test_line_for_nothing_is_found_and_mended(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any
) -> None:
    """A hidden skill that somebody removed by hand is a finding, so no later one is hidden."""
    gate = open_gate(project)
    learn(gate, kit, "one")
    (project / ".agents" / "skills" / "one" / "SKILL.md").unlink()
    (project / ".agents" / "skills" / "one").rmdir()
    (found,) = change_checks.check_changes(gate)
    assert found.code == "hidden-nothing"
    assert found.repair is not None
    found.repair()
    assert change_checks.check_changes(gate) == []
    assert git_exclude.hidden(gate.open_place().place) == []


@pytest.mark.parametrize("part", ["HEAD", "config", "info/exclude"])
def test_a_repository_that_makes_git_wait_keeps_nobody(
    project: Path, open_gate: Callable[[Path], Gate], kit: Any, part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A pipe in the place of one of its files is not waited for; the skill lands."""
    monkeypatch.setattr(git_program, "_PATIENCE", 0.2)
    (project / ".git" / part).unlink()
    os.mkfifo(project / ".git" / part)
    learn(open_gate(project), kit, "made-here")
    assert (project / ".agents/skills/made-here/SKILL.md").is_file()
