"""Finding skill folders below a root."""

import os
from pathlib import Path

import pytest

from tacit.skills.index_builder import walk


@pytest.fixture
def root(home: Path) -> Path:
    folder = home / "skills"
    folder.mkdir()
    return folder


def test_skills_and_categories(root: Path, put) -> None:
    """A folder with a SKILL.md is a skill; one without is a category."""
    put(root / "one")
    put(root / "cat" / "two")
    (root / "empty").mkdir()
    (root / "file.txt").write_text("")
    found = walk(str(root))
    assert found.skills == {"one": "SKILL.md", "cat/two": "SKILL.md"}
    assert sorted(found.categories) == ["", "cat", "empty"]
    assert found.links == found.repeated == {}


def test_nested_categories_to_a_depth_of_four(root: Path, put) -> None:
    """Four categories deep is read, five is not."""
    for depth in range(7):
        put(root.joinpath(*"abcdef"[:depth], f"skill-{depth}"))
    found = walk(str(root)).skills
    assert sorted(found) == [
        "a/b/c/d/skill-4", "a/b/c/skill-3", "a/b/skill-2", "a/skill-1", "skill-0",
    ]  # fmt: skip


def test_nothing_below_a_skill_is_a_skill(root: Path, put) -> None:
    """A SKILL.md inside a skill is a support file."""
    put(root / "one")
    put(root / "one" / "references" / "inner")
    assert list(walk(str(root)).skills) == ["one"]


def test_dot_folders_and_packages_are_passed_over(root: Path, put) -> None:
    """Version control, environments and hidden folders hold no skills."""
    for name in (".git", ".hidden", "node_modules", "__pycache__", "venv", ".x/y"):
        put(root / name / "skill")
    assert walk(str(root)).skills == {}


def test_the_case_of_the_file(root: Path, put) -> None:
    """`skill.md` counts, `SKILL.md` wins, other spellings do not count."""
    put(root / "small", file="skill.md")
    put(root / "both", file="skill.md")
    put(root / "both")
    put(root / "odd", file="Skill.md")
    assert walk(str(root)).skills == {"small": "skill.md", "both": "SKILL.md"}


def test_what_is_called_skill_md(root: Path, put) -> None:
    """A folder of that name makes no skill; a pipe or a broken link makes one with a problem."""
    (root / "folder" / "SKILL.md").mkdir(parents=True)
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").symlink_to("nowhere")
    found = walk(str(root))
    assert sorted(found.skills) == ["broken", "pipe"]
    assert sorted(found.categories) == ["", "folder", "folder/SKILL.md"]


class TestLinks:
    def test_links_are_followed(self, root: Path, home: Path, put) -> None:
        """To a skill, and to a category; the real path is known."""
        put(home / "outside" / "one")
        put(home / "outside" / "cat" / "two")
        (root / "one").symlink_to(home / "outside" / "one")
        (root / "cat").symlink_to("../outside/cat")
        found = walk(str(root))
        assert sorted(found.skills) == ["cat/two", "one"]
        assert found.links == {
            "cat/two": str(home / "outside" / "cat" / "two"),
            "one": str(home / "outside" / "one"),
        }

    def test_two_links_to_one_folder(self, root: Path, home: Path, put) -> None:
        """The first by name is taken, the second noticed."""
        put(home / "outside")
        (root / "b").symlink_to(home / "outside")
        (root / "a").symlink_to(home / "outside")
        found = walk(str(root))
        assert list(found.skills) == ["a"]
        assert found.repeated == {"b": str(home / "outside")}

    def test_a_link_never_takes_the_place_of_the_real_folder(self, root: Path, put) -> None:
        """Even when it comes first by name."""
        put(root / "real")
        (root / "a-link").symlink_to("real")
        found = walk(str(root))
        assert list(found.skills) == ["real"]
        assert found.repeated == {"a-link": str(root / "real")}

    def test_loops_end(self, root: Path, put) -> None:
        """A link to the root, to itself, to a folder above, and two that lead to each other."""
        put(root / "cat" / "one")
        (root / "cat" / "up").symlink_to("..")
        (root / "self").symlink_to("self")
        (root / "root").symlink_to(root)
        (root / "x").symlink_to("y")
        (root / "y").symlink_to("x")
        found = walk(str(root))
        assert list(found.skills) == ["cat/one"]
        assert sorted(found.repeated) == ["cat/up", "root"]
        assert sorted(found.broken) == ["self", "x", "y"]

    def test_a_broken_link_is_noticed(self, root: Path) -> None:
        """It is no skill; it is named for the doctor."""
        (root / "gone").symlink_to("nowhere")
        found = walk(str(root))
        assert found.broken == ["gone"]
        assert found.skills == {}

    def test_a_link_to_a_file_is_nothing(self, root: Path, home: Path) -> None:
        """Neither a skill nor broken."""
        (home / "file").write_text("")
        (root / "x").symlink_to(home / "file")
        found = walk(str(root))
        assert found.skills == {}
        assert found.broken == []

    def test_a_linked_root(self, root: Path, home: Path, put) -> None:
        """A root that is a link is walked as if it were not."""
        put(root / "one")
        (root / "again").symlink_to("one")
        (home / "link").symlink_to(root)
        found = walk(str(home / "link"))
        assert list(found.skills) == ["one"]
        assert list(found.repeated) == ["again"]


def test_no_folder_is_an_empty_walk(home: Path) -> None:
    """A root that is gone, or is a file, has no skills."""
    (home / "file").write_text("")
    assert walk(str(home / "nothing")).skills == {}
    assert walk(str(home / "file")).skills == {}


def test_odd_names(root: Path, put) -> None:
    """Blanks, line ends, other scripts and bytes that are no UTF-8."""
    names = ["a b", "字", "a\nb", os.fsdecode(b"\xff")]
    for name in names:
        put(root / name, name="x")
    assert sorted(walk(str(root)).skills) == sorted(names)


def test_a_link_to_a_folder_above_is_not_followed(tmp_path: Path) -> None:
    """A link to `/`, or to any folder that holds the root, ends at once and is noticed."""
    root = tmp_path / "project" / "skills"
    root.mkdir(parents=True)
    (root / "everything").symlink_to("/")
    (root / "up").symlink_to(tmp_path)
    found = walk(str(root))
    assert found.skills == {}
    assert set(found.repeated) == {"everything", "up"}
    assert found.categories == [""]


def test_a_link_to_a_large_tree_has_an_end(tmp_path: Path) -> None:
    """Behind links at most so many categories are listed; the root's own skills are found."""
    root = tmp_path / "skills"
    (root / "own").mkdir(parents=True)
    (root / "own" / "SKILL.md").write_text("---\nname: own\ndescription: d\n---\n")
    for number in range(2100):
        (tmp_path / "large" / f"f{number}").mkdir(parents=True)
    (root / "large").symlink_to(tmp_path / "large")
    found = walk(str(root))
    assert list(found.skills) == ["own"]
    assert len(found.categories) < 2110
