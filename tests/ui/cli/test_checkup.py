"""`tacit doctor`: what it finds, mends and prints."""

import os
from pathlib import Path

import pytest


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

    def test_where_holdback_does_not_reach(self, tacit, skills: Path, home: Path) -> None:
        """The agents that are connected are named; without the setting, or without one, nothing."""
        assert "holdback" not in tacit.ok("doctor")
        tacit.ok("config", "set", "learn.holdback", "0.1")
        assert "holdback" not in tacit.ok("doctor")
        (home / ".codex").mkdir()
        tacit.ok("connect", "codex", "--yes")
        (home / ".pi").mkdir()
        tacit.ok("connect", "pi", "--yes")
        said = " ".join(tacit.ok("doctor").split())
        assert "left out of sessions of tacit chat, tacit run, pi; sessions of Codex have" in said

    def test_finding_and_mending(self, tacit, skills: Path, home: Path) -> None:
        """Says first, does with --fix, exit code 6 until all is well."""
        tacit("search", "rebase")
        indexes = (home / ".cache" / "tacit" / "index").iterdir()
        (file,) = [path for path in indexes if b"git-rebase" in path.read_bytes()]
        file.write_bytes(b"rubbish")
        (row,) = tacit.json("doctor", code=6)["findings"]
        assert set(row) == {"code", "what", "fix", "can_mend", "mended", "said"}
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

    def test_a_check_that_fails_keeps_no_other_from_looking(self, tacit, skills: Path) -> None:
        """What cannot be looked at is named, and what can be is looked at; no exit with 70."""
        tacit.ok("new", "notes", "-d", "Notes of the day. Use at noon.", "--body", "1. Write.")
        (skills / "gone").symlink_to("nowhere")
        file = skills.parent.parent / ".config" / "tacit" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = [")
        found = tacit.json("doctor", code=6)["findings"]
        assert {"config"} <= {row["code"] for row in found}
        file.unlink()
        found = tacit.json("doctor", code=6)["findings"]
        assert {row["code"] for row in found} == {"link"}

    def test_damage_is_mended_in_one_go(self, tacit, skills: Path, home: Path) -> None:
        """Of the database, the history and a skill at once; it is said what became of each, and
        doctor never advises to run itself."""
        tacit.ok("new", "notes", "-d", "Notes of the day. Use at noon.", "--body", "1. Write.")
        tacit.ok("inbox")
        data = home / ".local" / "share" / "tacit"
        (data / "tacit.db").write_bytes(os.urandom(5000))
        for path in data.glob("history/*.git/HEAD"):
            path.unlink()
        for path in data.glob("history/*.git/refs/skills/*"):
            path.write_bytes(b"")
        (skills / "notes" / "SKILL.md").write_bytes(b"")
        for command in ("log", "sessions", "inbox", "show notes", "diff notes", "list"):
            assert tacit(*command.split()).returncode in (0, 3, 6), command
        done = tacit("doctor", "--fix")
        assert done.returncode == 0, done.stdout
        assert "0 sessions there now" in done.stdout
        assert "1 version kept" in done.stdout
        assert "'notes' is again what it was" in done.stdout
        assert "tacit doctor" not in done.stdout
        assert "1. Write." in (skills / "notes" / "SKILL.md").read_text()
        assert "nothing wrong" in tacit.ok("doctor")

    def test_an_empty_skill_without_a_history(self, tacit, skills: Path) -> None:
        """It is named; there is nothing to bring back."""
        (skills / "empty").mkdir()
        (skills / "empty" / "SKILL.md").write_bytes(b"")
        done = tacit("doctor", "--fix")
        assert done.returncode == 6
        assert "SKILL.md of 'empty'" in done.stdout
        assert "no version of it is known" in done.stdout

    def test_without_git(self, tacit, skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It looks and mends where there is no git."""
        tacit.ok("new", "notes", "-d", "Notes of the day. Use at noon.", "--body", "1. Write.")
        (skills / "notes" / "SKILL.md").write_bytes(b"")
        monkeypatch.setenv("PATH", "/nonexistent")
        assert tacit("doctor", "--fix").returncode == 0
        assert "nothing wrong" in tacit.ok("doctor")

    def test_a_schedule_that_cannot_be_read(self, tacit, home: Path) -> None:
        """Its last version that can be read comes back."""
        tacit.ok("schedule", "add", "every day at 9:00", "Say hello", "--name", "hello")
        data = home / ".local" / "share" / "tacit"
        (file,) = data.glob("scheduled/hello-*/schedule.json")
        good = file.read_bytes()
        for damage in (b"", b"{", b"\xff" * 50):
            file.write_bytes(damage)
            assert "schedule" in {row["code"] for row in tacit.json("doctor", code=6)["findings"]}
            assert "is again what it was" in tacit("doctor", "--fix").stdout
            assert file.read_bytes() == good


class TestBackup:
    def test_saved_and_put_back(self, tacit, skills: Path, tmp_path: Path) -> None:
        """In one file, asked before it is put back, and what stood there is named."""
        tacit.ok("new", "notes", "-d", "Notes of the day. Use at noon.", "--body", "1. Write.")
        file = str(tmp_path / "saved.tar.gz")
        assert "Saved" in tacit.ok("backup", file)
        (skills / "notes" / "SKILL.md").unlink()
        refused = tacit("restore-backup", file)
        assert refused.returncode == 2
        assert "--yes" in refused.stderr
        assert ".before-" in tacit.ok("restore-backup", file, "--yes")
        assert "1. Write." in (skills / "notes" / "SKILL.md").read_text()
        assert "nothing wrong" in tacit.ok("doctor")

    def test_no_folder_or_no_backup(self, tacit, tmp_path: Path) -> None:
        """The thing is named."""
        assert tacit("backup", str(tmp_path / "no" / "x.tar.gz")).returncode == 3
        (tmp_path / "x").write_text("no backup")
        assert tacit("restore-backup", str(tmp_path / "x"), "--yes").returncode == 6
