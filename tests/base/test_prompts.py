"""Prompts are Markdown files that values are put into."""

from pathlib import Path

import tacit
from tacit.base.prompts import prompt


def test_what_a_value_brings_is_left_alone() -> None:
    """Each place is filled once; braces in a value, and those nobody fills, stay."""
    text = prompt("learn", "reviewer", parts="a {turns} {x}", turns="7")
    assert "a {turns} {x}" in text
    assert "You have 7 requests" in text
    assert "{turns}" in prompt("learn", "reviewer", parts="p")


def test_every_prompt_can_be_read() -> None:
    """A folder `prompts` needs no code of its own."""
    for path in Path(tacit.__file__).parent.glob("*/prompts/*.md"):
        assert prompt(path.parts[-3], path.stem) == path.read_text(encoding="utf-8")
