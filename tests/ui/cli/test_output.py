"""What all commands print alike: colour, and JSON."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tacit.base.errors import near_names
from tacit.ui.cli.output import write_diff


class TestColour:
    @pytest.mark.parametrize(
        "command", [["list"], ["lint"], ["show", "broken"], ["search", "rebase"], ["config"],
                    ["doctor"], ["show", "nothing"]]
    )  # fmt: skip
    def test_no_color(self, tacit, skills: Path, command: list[str]) -> None:
        """NO_COLOR and TERM=dumb take every colour away, also from errors."""
        import re

        for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            _, text = tacit.on_terminal(*command, **more)
            assert not re.findall(r"\x1b\[[0-9;]*3[0-7][0-9;]*m", text)
        _, text = tacit.on_terminal(*command)
        assert "\x1b[" in text or command == ["doctor"]

    def test_json_is_never_coloured(self, tacit, skills: Path) -> None:
        """On a terminal it is indented, and still JSON."""
        code, text = tacit.on_terminal("list", "--json")
        assert code == 0
        assert json.loads(text)["skills"]
        assert "\n  " in text


class TestReaders:
    def test_a_pager_gets_what_does_not_fit(self, tacit, skills: Path, home: Path) -> None:
        """Long output goes to the user's pager, in colour; short output does not."""
        paged = home / "paged"
        pager = home / "pager"
        pager.write_text(f"#!/bin/sh\ncat > {paged}\n")
        pager.chmod(0o755)
        code, text = tacit.on_terminal("config", TACIT_PAGER=str(pager))
        assert (code, "search.limit" in text) == (0, False)
        assert "search.limit" in paged.read_text()
        assert "\x1b[" in paged.read_text()
        paged.unlink()
        assert "git-rebase" in tacit.on_terminal("list", TACIT_PAGER=str(pager))[1]
        assert not paged.exists()

    def test_a_list_in_a_pipe_is_whole_and_tab_separated(self, tacit, skills: Path) -> None:
        """A line a row, with nothing cut, and no head to skip."""
        for line in tacit.ok("config").splitlines():
            assert len(line.split("\t")) == 4
        assert "…" not in tacit.ok("config")

    def test_a_reader_that_goes_loses_no_change(self, tacit, skills: Path, home: Path) -> None:
        """Whatever is being done is done to its end, as if somebody were still reading."""
        tacit.ok("new", "water", "--description", "Waters plants when dry.", "--body", "1. Do it.")
        reading, writing = os.pipe()
        os.close(reading)
        for call in (["show", "water"], ["archive", "water"]):
            done = subprocess.run(
                [tacit.program, *call], stdout=writing, stderr=subprocess.PIPE, check=False
            )
            assert (done.returncode, done.stderr) == (0, b"")
        os.close(writing)
        assert "water" not in tacit.ok("list")


class TestSuggestions:
    @pytest.mark.parametrize(
        ("typed", "found"), [("cod", "code-reviewer"), ("review", "code-reviewer"),
                             ("code-reviwer", "code-reviewer")]
    )  # fmt: skip
    def test_a_beginning_or_a_word_of_a_name_is_enough(self, typed: str, found: str) -> None:
        known = ["db-migration", "code-reviewer", "release-notes"]
        assert near_names(typed, known)[0] == found
        assert near_names("zzz", known) == []


def test_a_line_of_a_diff_ends_at_a_newline_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Else what was added would stand below as if it had been there."""
    write_diff("@@ -0,0 +1 @@\n+one\x0c two\u2028three\n")
    assert capsys.readouterr().out == "@@ -0,0 +1 @@\n+one� two�three\n"
