"""`tacit search`: what it prints, for people and for scripts."""

import subprocess
from pathlib import Path

import pytest

ENTRY = {
    "name", "description", "folder", "scope", "origin", "host", "state", "version", "aliases",
    "also", "root", "file", "real", "model_invocable", "user_invocable", "paths", "worst", "digest",
}  # fmt: skip


class TestSearch:
    def test_json(self, tacit, skills: Path) -> None:
        """The keys that scripts rely on."""
        found = tacit.json("search", "rebase", "a", "branch")
        assert set(found) == {"query", "results"}
        assert found["query"] == "rebase a branch"
        first = found["results"][0]
        assert set(first) == {"skill", "score", "line", "text"}
        assert set(first["skill"]) == ENTRY | {"standing", "used"}
        assert first["skill"]["name"] == "git-rebase"

    def test_nothing_fits(self, tacit, skills: Path) -> None:
        """Exit code 1, in both forms."""
        done = tacit("search", "xylophone")
        assert (done.returncode, done.stdout) == (1, "")
        assert "No skill fits" in done.stderr
        assert tacit.json("search", "xylophone", code=1)["results"] == []

    def test_for_people(self, tacit, skills: Path) -> None:
        """Number, name, scope, description and the line that fits."""
        text = tacit.ok("search", "pypdf")
        assert text.startswith(
            " 1  pdf-forms (user)\n    Fill in PDF forms.\n    line 6: Use pypdf."
        )

    def test_from_standard_input(self, tacit, skills: Path, home: Path) -> None:
        """A whole description."""
        (home / "task").write_text("Please rebase my branch.\n" * 100)
        with (home / "task").open() as task:
            assert "git-rebase" in tacit.ok("search", "-", stdin=task)

    def test_the_limit(self, tacit, skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The option over the setting over the default."""
        monkeypatch.setenv("TACIT_SEARCH_LIMIT", "2")
        assert len(tacit.json("search", "a title to do it")["results"]) <= 2
        assert len(tacit.json("search", "-n", "1", "title")["results"]) == 1

    def test_bytes_that_are_no_text(self, tacit, skills: Path) -> None:
        """An argument that is not UTF-8 is refused by name."""
        done = subprocess.run([tacit.program, "search", b"\xff rebase"], capture_output=True)
        assert (done.returncode, b"is not UTF-8" in done.stderr) == (2, True)
