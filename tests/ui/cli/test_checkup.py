"""`tacit doctor`: what it finds, mends and prints."""

from pathlib import Path


class TestDoctor:
    def test_all_is_well(self, tacit, skills: Path) -> None:
        """Exit code 0 and the number of checks."""
        tacit.ok("search", "rebase")
        text = tacit.ok("doctor")
        assert "nothing wrong" in text
        found = tacit.json("doctor")
        assert set(found) == {"checks", "findings", "room"}
        assert found["findings"] == []
        by = found["room"]["landlock"]
        assert f"An agent in the background ({f'Landlock {by}' if by else 'no Landlock'}): " in text
        assert found["room"]["writes"] == (by > 0)
        assert found["room"]["network"] == (by >= 4)

    def test_finding_and_mending(self, tacit, skills: Path, home: Path) -> None:
        """Says first, does with --fix, exit code 6 until all is well."""
        tacit("search", "rebase")
        indexes = (home / ".cache" / "tacit" / "index").iterdir()
        (file,) = [path for path in indexes if b"git-rebase" in path.read_bytes()]
        file.write_bytes(b"rubbish")
        (row,) = tacit.json("doctor", code=6)["findings"]
        assert set(row) == {"code", "what", "fix", "can_mend", "mended"}
        assert (row["can_mend"], row["mended"]) == (True, False)
        done = tacit("doctor")
        assert done.returncode == 6
        assert "would be mended" in done.stdout
        assert "tacit doctor --fix" in done.stdout
        assert file.read_bytes() == b"rubbish"
        assert "mended" in tacit.ok("doctor", "--fix")
        assert "nothing wrong" in tacit.ok("doctor")

    def test_what_only_the_user_can_mend(self, tacit, skills: Path) -> None:
        """Exit code 6 also with --fix; the user's files are not touched."""
        (skills / "gone").symlink_to("nowhere")
        done = tacit("doctor", "--fix")
        assert done.returncode == 6
        assert "please remove it" in done.stdout
        assert (skills / "gone").is_symlink()
