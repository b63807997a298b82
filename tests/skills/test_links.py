"""Links to learned skills: made where nothing is, and taken back as they were made."""

import os
import shutil
from pathlib import Path

import pytest

from tacit.base import trust
from tacit.skills.library import Library
from tacit.skills.links import link_into, unlink_from


def skill(root: Path, name: str, learned: bool = True) -> Path:
    folder = root / ".agents" / "skills" / name
    folder.mkdir(parents=True)
    mark = "metadata:\n  source: auto-skill\n" if learned else ""
    title = Path(name).name
    (folder / "SKILL.md").write_text(
        f"---\nname: {title}\ndescription: Does {title}. Use when needed.\n{mark}---\n\nDo it.\n"
    )
    return folder


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted project, and the working directory in it."""
    folder = home / "work" / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    trust.add(str(folder))
    monkeypatch.chdir(folder / "src")
    return folder


def test_learned_skills_are_linked_for_claude_code(home: Path, project: Path) -> None:
    """The user's and the project's, by relative links; skills of the user's own are not."""
    skill(home, "release")
    skill(home, "group/nested")
    skill(home, "mine", learned=False)
    skill(project, "deploy")
    done = link_into("claude-code")
    assert [Path(path).name for path in done.made] == ["nested", "release", "deploy"]
    link = home / ".claude" / "skills" / "release"
    assert os.readlink(link) == "../../.agents/skills/release"
    assert os.readlink(project / ".claude/skills/deploy") == "../../.agents/skills/deploy"
    assert (home / ".claude/skills/nested/SKILL.md").exists()
    assert link_into("claude-code").made == ()


def test_a_linked_skill_is_listed_once(home: Path) -> None:
    """The library sees the link as a second way to the same skill."""
    skill(home, "release")
    link_into("claude-code")
    names = [entry.name for entry in Library().entries if entry.scope == "user"]
    assert names == ["release"]


def test_what_the_user_has_is_left(home: Path) -> None:
    """A folder, a file or a dead link of the same name is in the way, and stays."""
    for name in ("folder", "file", "dead"):
        skill(home, name)
    own = home / ".claude" / "skills"
    (own / "folder").mkdir(parents=True)
    (own / "file").write_text("mine")
    (own / "dead").symlink_to("nowhere")
    done = link_into("claude-code")
    assert done.made == ()
    assert [Path(path).name for path in done.in_the_way] == ["dead", "file", "folder"]
    assert unlink_from("claude-code") == ()
    assert (own / "file").read_text() == "mine"
    assert os.readlink(own / "dead") == "nowhere"


def test_dead_links_of_ours_are_removed(home: Path) -> None:
    """A skill that is gone takes its link with it; one that the user made is not ours."""
    folder = skill(home, "release")
    link_into("claude-code")
    (home / ".claude/skills/theirs").symlink_to("../../.agents/skills/gone")
    shutil.rmtree(folder)
    done = link_into("claude-code")
    assert [Path(path).name for path in done.removed] == ["release"]
    assert not os.path.lexists(home / ".claude/skills/release")
    assert os.path.lexists(home / ".claude/skills/theirs")


def test_unlinking_leaves_nothing(home: Path, project: Path) -> None:
    """Every link of ours goes, with the folders that were made for them."""
    skill(home, "release")
    skill(project, "deploy")
    assert len(link_into("claude-code").made) == 2
    assert len(unlink_from("claude-code")) == 2
    assert not (home / ".claude").exists()
    assert not (project / ".claude").exists()
    assert unlink_from("claude-code") == ()


def test_folders_go_with_the_last_link(home: Path) -> None:
    """Also when the link for which they were made went first, as with an archived skill."""
    first = skill(home, "first")
    link_into("claude-code")
    skill(home, "second")
    link_into("claude-code")
    shutil.rmtree(first)
    assert len(link_into("claude-code").removed) == 1
    assert (home / ".claude/skills/second").is_symlink()
    unlink_from("claude-code")
    assert not (home / ".claude").exists()


def test_a_link_that_the_user_replaced_is_theirs(home: Path) -> None:
    """After the user put a folder in its place, nothing of it is removed."""
    skill(home, "release")
    link_into("claude-code")
    place = home / ".claude/skills/release"
    place.unlink()
    place.mkdir()
    assert unlink_from("claude-code") == ()
    assert place.is_dir()


def test_a_folder_that_is_linked_as_a_whole_needs_nothing(home: Path) -> None:
    """Where .claude/skills is itself a link to .agents/skills, no link is put into it."""
    skill(home, "release")
    (home / ".claude").mkdir()
    (home / ".claude/skills").symlink_to("../.agents/skills")
    assert link_into("claude-code").made == ()
    assert sorted(os.listdir(home / ".agents/skills")) == ["release"]


def test_a_home_behind_a_link_gets_links_that_lead_somewhere(home: Path) -> None:
    """Where .claude lies elsewhere, relative links are made from where it really is."""
    skill(home, "release")
    elsewhere = home / "dotfiles" / "deep" / "claude"
    elsewhere.mkdir(parents=True)
    (home / ".claude").symlink_to(elsewhere)
    link_into("claude-code")
    assert (home / ".claude/skills/release/SKILL.md").is_file()


def test_untrusted_projects_are_not_linked(home: Path, project: Path) -> None:
    """Skills of a clone that nobody trusts do not reach an agent through us."""
    skill(project, "deploy")
    trust.remove(str(project))
    assert link_into("claude-code").made == ()


@pytest.mark.parametrize("host", ["codex", "gemini", "hermes", "unknown"])
def test_agents_that_read_the_shared_folder_get_no_links(home: Path, host: str) -> None:
    """Nothing is made for them."""
    skill(home, "release")
    assert link_into(host).made == ()
    assert not (home / ".local/share/tacit/links.json").exists()
