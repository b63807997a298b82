"""Where a skill is from, as its own head says: by code, valid, and kept over edits."""

from datetime import date
from pathlib import Path

import pytest
from skills_ref.validator import validate

from tacit.changes.files import File
from tacit.learn.review.marks import Origin, marked
from tacit.skills.reading import parse_skill

NOW = Origin("codex:b", "openai:x", date(2026, 11, 15))
HEADS = {
    "plain": "name: a-skill\ndescription: Does it.",
    "own marks": "name: a-skill\ndescription: Does it.\n"
    "metadata:\n  source: user\n  learned: never\n  topic: x",
    "top-level mark": "source: auto-skill\nname: a-skill\ndescription: Does it.",
    "odd metadata": "name: a-skill\ndescription: Does it.\nmetadata: [a, b]",
    "metadata first": "metadata:\n  topic: x\n\n  more: y\nname: a-skill\n"
    "description: |\n  Does it.\n  metadata: no",
    "quotes": "name: 'a-skill'\ndescription: \"Does: it\"\nmetadata: {topic: x}",
}  # fmt: skip


def files(head: str) -> dict[str, File]:
    return {"SKILL.md": File(f"---\n{head}\n---\n\nBody.\n".encode())}


@pytest.mark.parametrize("which", HEADS)
def test_marks_of_a_new_skill(which: str, tmp_path: Path) -> None:
    """However the head is written, the skill is learned, valid, and says when, whence, by whom."""
    made = marked(files(HEADS[which]), {}, NOW)["SKILL.md"].data
    folder = tmp_path / "a-skill"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(made)
    assert validate(folder) == []
    skill = parse_skill(made, "a-skill")
    assert skill.learned
    assert skill.metadata["learned"] == "2026-11-15"
    assert skill.metadata["sessions"] == "codex:b"
    assert skill.metadata["learned-by"] == "openai:x"
    assert skill.body.strip() == "Body."
    if "topic" in HEADS[which]:
        assert skill.metadata["topic"] == "x"


def test_marks_of_an_edit() -> None:
    """An edit keeps the first day, adds its session once, and says when it was revised."""
    first = marked(files(HEADS["plain"]), {}, Origin("codex:a", "m1", date(2026, 1, 2)))
    second = marked(first, first, NOW)
    again = marked(second, second, NOW)
    found = parse_skill(again["SKILL.md"].data, "a-skill").metadata
    assert found["learned"] == "2026-01-02"
    assert found["revised"] == "2026-11-15"
    assert found["sessions"] == "codex:a, codex:b"
    assert found["learned-by"] == "openai:x"


@pytest.mark.parametrize("text", ["no head", "---\nname: x\n", "---\n: [\n---\nBody.\n", ""])
def test_what_has_no_head_is_left_to_the_gate(text: str) -> None:
    """A text without a head that can be read comes out as it went in."""
    given = {"SKILL.md": File(text.encode())}
    assert marked(given, {}, NOW) == given
    assert marked({}, {}, NOW) == {}
