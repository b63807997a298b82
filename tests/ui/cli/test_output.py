"""What all commands print alike: colour, and JSON."""

import json
from pathlib import Path

import pytest


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
