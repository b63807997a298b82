"""What a project is made of."""

from pathlib import Path

import pytest

from tacit.skills.project_terms import project_terms


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "code"
    (folder / ".git").mkdir(parents=True)
    return folder


def test_languages_and_tools_by_the_names_of_files(project: Path) -> None:
    """At the top and one folder below; a single file makes no language."""
    (project / "src").mkdir()
    (project / "node_modules").mkdir()
    for n in range(3):
        (project / "src" / f"{n}.tsx").write_text("")
        (project / "node_modules" / f"{n}.php").write_text("")
    (project / "one.rb").write_text("")
    (project / "Dockerfile").write_text("")
    (project / ".github" / "workflows").mkdir(parents=True)
    assert project_terms(str(project / "src")) == (
        "docker", "typescript", "react", "github", "actions",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text", "needed"),
    [
        (
            "package.json",
            ('{"dependencies": {"@prisma/client": "1", "express": "2"},'
            ' "devDependencies": {"@types/node": "1", "vitest": "1"}}'),
            {"prisma", "express", "vitest"},
        ),
        ("requirements.txt", "Django>=4\n# a remark\n-r other.txt\npandas[all]==2\n",
         {"django", "pandas"}),
        (
            "pyproject.toml",
            ('[project]\nname = "x"\ndependencies = ["fastapi>=1"]\nclassifiers = ["Topic :: A"]\n'
            '[project.optional-dependencies]\ndev = ["pytest-xdist"]\n'
            '[tool.poetry.dependencies]\npython = "^3"\nrequests = "*"\n'),
            {"fastapi", "pytest-xdist", "requests"},
        ),
        ("Cargo.toml", '[dependencies]\nserde = "1"\n[dev-dependencies]\ninsta = "1"\n',
         {"serde", "insta"}),
        ("go.mod", "module example.com/x\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n)\n",
         {"cobra"}),
    ],
)  # fmt: skip
def test_what_it_says_it_needs(project: Path, file: str, text: str, needed: set[str]) -> None:
    """By the names of the libraries."""
    plain = {"npm", "node", "python", "pip", "rust", "cargo", "go", "golang"}
    (project / file).write_text(text)
    assert set(project_terms(str(project))) - plain == needed


@pytest.mark.parametrize("file", ["package.json", "pyproject.toml", "Cargo.toml", "go.mod"])
@pytest.mark.parametrize("text", ["[", "{}", "[1]", '{"dependencies": 1}', "a = 1", "project = 1"])
def test_any_file_is_read(project: Path, file: str, text: str) -> None:
    """What strangers wrote may say anything."""
    (project / file).write_text(text)
    assert "docker" not in project_terms(str(project))


def test_a_home_is_no_project(home: Path) -> None:
    """Whatever lies in it."""
    (home / "Dockerfile").write_text("")
    assert project_terms(str(home)) == ()
