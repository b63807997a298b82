"""Everything that is wrong with a skill folder."""

import os
import re
import string
import time
from pathlib import Path

import pytest

from tacit.base.errors import NotFound
from tacit.skills.lint import lint, lint_text
from tacit.skills.problems import RULES, problem


def found(folder: Path, **options: bool) -> list[tuple[str, int]]:
    return [(p.code, p.line) for p in lint(folder, **options)]


@pytest.fixture
def folder(home: Path, put) -> Path:
    return put(home / "demo")


def test_a_good_skill_is_clean(folder: Path) -> None:
    """Nothing to say, strictly or not."""
    assert lint(folder) == lint(folder, strict=True) == []


def test_by_folder_by_file_and_by_link(folder: Path, home: Path) -> None:
    """All ways lead to the same verdict; the name is that of the folder as it was given."""
    assert lint(folder / "SKILL.md") == []
    (home / "other").symlink_to(folder)
    assert found(home / "other") == [("name-differs", 2)]


class TestLinks:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("[a](references/x.md)", "missing-file"),
            ("![a](pic.png)", "missing-file"),
            ('[a](x.md "title")', "missing-file"),
            ("[a](<x.md>)", "missing-file"),
            ("[a](x.md#part)", "missing-file"),
            ("[a](x%20y.md)", "missing-file"),
            ("[a](../other/x.md)", "link-outside"),
            ("[a](a/../../x.md)", "link-outside"),
            ("[![a](have.md)](gone.md)", "missing-file"),
        ],
    )
    def test_a_file_that_is_not_there(self, folder: Path, put, text: str, code: str) -> None:
        """Said on the line of the link."""
        (folder / "have.md").write_text("")
        put(folder, body=f"# T\n\n{text}\n")
        assert found(folder) == [(code, 8)]

    @pytest.mark.parametrize(
        "text",
        ["[a](have.md)", "[a](have.md#x)", "[a](./have.md)", "[a](https://x.org/y.md)", "[a](#x)",
         "[a](mailto:x@y.z)", "[a](/abs/x.md)", "[a](~/x.md)", "`[a](gone.md)`", "[a](url)",
         "[a]({file}.md)", "[a]($X.md)", "```\n[a](gone.md)\n```", "~~~\n[a](gone.md)", "[a]()",
         "x[i](a b.md)", "[a](x%00.md)"],
    )  # fmt: skip
    def test_what_is_no_missing_file(self, folder: Path, put, text: str) -> None:
        """Addresses, anchors, templates, code and words in brackets."""
        (folder / "have.md").write_text("")
        put(folder, body=f"# T\n\n{text}\n")
        assert found(folder) == []

    @pytest.mark.parametrize(
        "text", ["[" * 200_000, "](" * 100_000, "[a](" * 60_000, "[a](" + " " * 200_000,
                 "`" * 200_001, "```\n" * 60_000, "![](x " + '"' * 200_000, "<" * 200_000]
    )  # fmt: skip
    def test_hostile_bodies_take_no_time(self, folder: Path, put, text: str) -> None:
        """No pattern of ours goes over a body again and again."""
        put(folder, body=f"{text}\n")
        start = time.monotonic()
        lint(folder, strict=True)
        assert time.monotonic() - start < 10


class TestFiles:
    def test_a_skill_inside_a_skill(self, folder: Path, put) -> None:
        """It is not read as one, and that is said with its path."""
        put(folder / "references" / "inner")
        (hit,) = lint(folder)
        assert (hit.code, hit.file) == ("nested-skill", "references/inner/SKILL.md")

    def test_a_link_to_nothing(self, folder: Path) -> None:
        """Among the support files too."""
        (folder / "assets").mkdir()
        (folder / "assets" / "x").symlink_to("gone")
        assert found(folder) == [("broken-link", 1)]

    def test_hidden_folders_are_not_looked_at(self, folder: Path, put) -> None:
        """A clone's .git is nobody's support file."""
        put(folder / ".git" / "x")
        assert found(folder) == []

    def test_a_loop_of_links_ends(self, folder: Path) -> None:
        """Folders behind links are not entered."""
        (folder / "loop").symlink_to(".")
        assert found(folder) == []


class TestUnreadable:
    def test_what_cannot_be_read_is_a_problem_not_an_end(self, home: Path) -> None:
        """A pipe, a folder and a link to nothing called SKILL.md; others go on being checked."""
        for kind in ("pipe", "folder", "link"):
            (home / kind).mkdir()
        os.mkfifo(home / "pipe" / "SKILL.md")
        (home / "folder" / "SKILL.md").mkdir()
        (home / "link" / "SKILL.md").symlink_to("gone")
        for kind in ("pipe", "folder", "link"):
            for strict in (False, True):
                (hit,) = lint(home / kind, strict=strict)
                assert (hit.code, hit.severity) == ("unreadable", "error")

    def test_no_skill_at_all(self, home: Path) -> None:
        """An empty folder is not a skill with a problem."""
        with pytest.raises(NotFound):
            lint(home)

    def test_bytes_that_are_no_text_stay_an_error(self, home: Path, put) -> None:
        """Also strictly: the standard's validator could not read it at all."""
        put(home / "demo", text=b"---\nname: demo\ndescription: x\n---\n\xff\n")
        assert [p.severity for p in lint(home / "demo", strict=True)] == ["error"]


class TestProblems:
    @pytest.mark.parametrize("code", RULES)
    def test_every_rule_can_be_filled_in(self, code: str) -> None:
        """No message or mend is left with a hole, and braces in values do no harm."""
        rule = RULES[code]
        fields = {
            name.split(":")[0]
            for text in (rule.message, rule.fix)
            for _, name, _, _ in string.Formatter().parse(text)
            if name
        }
        fill = {name: 3 if name in ("n", "most", "byte") else "{x}" for name in fields - {"file"}}
        made = problem(code, 1, **fill)
        assert made.severity in ("error", "warning", "note")
        assert not re.search(r"\{[a-z_]+:?", made.message.replace("{x}", ""))

    def test_text_and_folder_agree(self, folder: Path, put) -> None:
        """A SKILL.md that is not on the disk yet has the same problems."""
        put(folder, text="---\nname: x\ndescription: [a\nb: c\n---\n")
        text = (folder / "SKILL.md").read_bytes()
        for strict in (True, False):
            assert lint_text(text, "demo", strict=strict) == lint(folder, strict=strict)

    def test_sorted_and_said_once(self, folder: Path, put) -> None:
        """By line, and nothing twice although two readings look at the file."""
        put(folder, text="---\nname: Other_Name\ndescription: a: b\nname: c\nx: y\n---\n")
        hits = lint(folder, strict=True)
        assert hits == sorted(set(hits))
        assert [p.code for p in hits].count("bad-yaml") == 1
