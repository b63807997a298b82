"""Which folders hold skills here."""

from pathlib import Path

import pytest

from tacit.base import trust
from tacit.skills.scopes import BUNDLED_SKILLS, skill_roots


def make(base: Path, *folders: str) -> list[str]:
    for folder in folders:
        (base / folder).mkdir(parents=True, exist_ok=True)
    return [str(base / folder) for folder in folders]


def found(cwd: Path, **options: object) -> list[tuple[str, str]]:
    return [(root.scope, root.path) for root in skill_roots(str(cwd), **options)]  # type: ignore[arg-type]


def test_only_the_bundled_ones_at_first(home: Path) -> None:
    """Folders that do not exist are not named."""
    assert found(home / "work") == [("bundled", BUNDLED_SKILLS)]


def test_project_over_user_over_extra_over_bundled(home: Path, project: Path) -> None:
    """The order of the scopes is the order of precedence."""
    (one,) = make(project, ".agents/skills")
    (two,) = make(home, ".agents/skills")
    (three,) = make(home, "more")
    assert found(project, extra=("~/more",)) == [
        ("project", one), ("user", two), ("extra", three), ("bundled", BUNDLED_SKILLS),
    ]  # fmt: skip


def test_walking_up_to_the_project_and_no_further(home: Path, project: Path) -> None:
    """Nearest first; what lies above the project's root does not count."""
    make(home, "above/.agents/skills")
    inner = project / "packages" / "one"
    near, middle, far = make(
        project, "packages/one/.agents/skills", "packages/.agents/skills", ".agents/skills"
    )
    (inner / "src").mkdir()
    assert found(inner / "src")[:-1] == [("project", near), ("project", middle), ("project", far)]
    assert found(project)[:-1] == [("project", far)]


def test_without_a_repository_only_the_working_directory(home: Path) -> None:
    """Folders above could be anybody's."""
    make(home, "a/.agents/skills", "a/b/c")
    (own,) = make(home, "a/b/.agents/skills")
    assert found(home / "a" / "b")[:-1] == [("project", own)]
    assert found(home / "a" / "b" / "c")[:-1] == []


def test_every_hosts_folders(home: Path, project: Path) -> None:
    """Those of the other agents come after the shared one, in a fixed order."""
    below_project = make(
        project, ".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills",
        ".qwen/skills", ".github/skills", ".opencode/skills", ".opencode/skill", ".pi/skills",
    )  # fmt: skip
    below_home = make(
        home, ".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills",
        ".qwen/skills", ".copilot/skills", ".config/opencode/skills", ".config/opencode/skill",
        ".pi/agent/skills", ".hermes/skills",
    )  # fmt: skip
    make(project, ".hermes/skills", ".copilot/skills")
    assert found(project) == [
        *(("project", path) for path in below_project),
        *(("user", path) for path in below_home),
        ("bundled", BUNDLED_SKILLS),
    ]
    assert found(project, hosts=False) == [
        ("project", below_project[0]), ("user", below_home[0]), ("bundled", BUNDLED_SKILLS),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "below"),
    [("CODEX_HOME", "skills"), ("HERMES_HOME", "skills"), ("CLAUDE_CONFIG_DIR", "skills"),
     ("COPILOT_HOME", "skills"), ("PI_CODING_AGENT_DIR", "skills"),
     ("XDG_CONFIG_HOME", "opencode/skills")],
)  # fmt: skip
def test_a_hosts_variable_moves_its_folder(
    home: Path, variable: str, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the agent itself would look."""
    make(home, ".codex/skills", ".hermes/skills", ".claude/skills", ".copilot/skills",
         ".pi/agent/skills", ".config/opencode/skills")  # fmt: skip
    (moved,) = make(home, f"moved/{below}")
    before = found(home / "work")
    monkeypatch.setenv(variable, "~/moved")
    after = found(home / "work")
    assert ("user", moved) in after
    assert len(after) == len(before)


class TestHome:
    def test_home_is_no_project(self, home: Path) -> None:
        """In the home folder, its skills are the user's, also with a repository there."""
        (own,) = make(home, ".agents/skills")
        (home / ".git").mkdir()
        assert found(home) == [("user", own), ("bundled", BUNDLED_SKILLS)]
        assert found(home / "work") == [("user", own), ("bundled", BUNDLED_SKILLS)]

    def test_home_through_a_link(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A HOME that is a link does not make the user's skills a project's."""
        make(home, ".agents/skills")
        (home / ".git").mkdir()
        (tmp_path / "link").symlink_to(home)
        monkeypatch.setenv("HOME", str(tmp_path / "link"))
        assert {root.scope for root in skill_roots(str(home))} == {"user", "bundled"}
        assert {root.scope for root in skill_roots(str(home / "work"))} == {"user", "bundled"}


def test_trust_is_the_projects(project: Path) -> None:
    """One answer for all folders of a project, by its root; others are always trusted."""
    make(project, ".agents/skills", "sub/.agents/skills")
    assert [root.trusted for root in skill_roots(str(project / "sub"))] == [False, False, True]
    trust.add(str(project / "sub"))
    assert [root.trusted for root in skill_roots(str(project / "sub"))] == [False, False, True]
    trust.add(str(project))
    assert [root.trusted for root in skill_roots(str(project / "sub"))] == [True, True, True]
