"""Names of learned skills: for a class of work, not for a ticket, an error, a deed or a day."""

from datetime import date
from pathlib import Path

import pytest
from skills_ref.validator import validate

from tacit.changes.change import File
from tacit.learn.review.learned_skill import SkillOrigin, unfit_name, with_origin
from tacit.skills.skill_file import parse_skill

BAD = [
    "pr-1234", "issue-77-build", "ops-4711", "jira-12", "cve-2026-1234", "fix-the-build",
    "debug-login", "keyerror-version", "e0554-stable", "build-2026-11-15",
    "todays-task-monday", "a1b2c3d-revert", "Package-Builds", "two--hyphens", "-x", "", "x" * 65,
    "work_of_mine", "session-3", "release-20261115",
]  # fmt: skip
GOOD = [
    "package-builds", "database-migrations", "release-notes", "error-handling", "python3-venvs",
    "k8s-rollouts", "debugging-restarting-pods", "oauth2-login", "s3-uploads", "code-review",
    "http2-tuning", "fixtures-for-tests", "e2e-tests", "utf-8-files", "i18n",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_names_of_today(name: str) -> None:
    """Each of these is refused, with a reason."""
    assert unfit_name(name)


@pytest.mark.parametrize("name", GOOD)
def test_names_of_classes(name: str) -> None:
    """Each of these may be."""
    assert unfit_name(name) == ""


NOW = SkillOrigin("codex:b", "openai:x", date(2026, 11, 15))
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
    made = with_origin(files(HEADS[which]), {}, NOW)["SKILL.md"].data
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
    first = with_origin(files(HEADS["plain"]), {}, SkillOrigin("codex:a", "m1", date(2026, 1, 2)))
    second = with_origin(first, first, NOW)
    again = with_origin(second, second, NOW)
    found = parse_skill(again["SKILL.md"].data, "a-skill").metadata
    assert found["learned"] == "2026-01-02"
    assert found["revised"] == "2026-11-15"
    assert found["sessions"] == "codex:a, codex:b"
    assert (found["learned-by"], found["revised-by"]) == ("m1", "openai:x")


@pytest.mark.parametrize("head", ["source: auto-skill", "metadata:\n  source: auto-skill"])
def test_a_users_skill_is_revised_and_not_learned(head: str) -> None:
    """One that the user wrote and opted in says who revised it and when; their line stays."""
    mine = files(f"{HEADS['plain']}\n{head}")
    made = with_origin(with_origin(mine, mine, NOW), mine, NOW)["SKILL.md"].data
    assert made.decode().count("source: auto-skill") == 1
    assert ("\nsource: auto-skill\n" in made.decode()) == head.startswith("source")
    skill = parse_skill(made, "a-skill")
    assert skill.learned
    found = skill.metadata
    assert (found["revised"], found["revised-by"]) == ("2026-11-15", "openai:x")
    assert "learned" not in found
    assert "learned-by" not in found


@pytest.mark.parametrize("text", ["no head", "---\nname: x\n", "---\n: [\n---\nBody.\n", ""])
def test_what_has_no_head_is_left_to_the_gate(text: str) -> None:
    """A text without a head that can be read comes out as it went in."""
    given = {"SKILL.md": File(text.encode())}
    assert with_origin(given, {}, NOW) == given
    assert with_origin({}, {}, NOW) == {}
