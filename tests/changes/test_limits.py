"""Limits: how large a skill may be, measured to the line."""

from tacit.changes import limits
from tacit.changes.files import File
from tacit.skills.skill import Skill


def rules(body: str = "x", description: str = "d", **files: bytes) -> list[str]:
    skill = Skill(name="a", description=description, body=body)
    contents = {path: File(data) for path, data in files.items()}
    return [found.rule for found in limits.check(contents, skill)]


def test_limits_are_exact() -> None:
    """At the limit is allowed, one over is not."""
    assert rules("x\n" * 499) == []
    assert rules("x\n" * 500) == ["long-body"]
    assert rules("x" * 20_000) == []
    assert rules("x" * 20_004) == ["heavy-body"]
    assert rules(description="d" * 1024) == []
    assert rules(description="d" * 1025) == ["long-description"]
    assert rules(a=b"x" * 1024 * 1024) == []
    assert rules(a=b"x" * (1024 * 1024 + 1)) == ["heavy-skill"]
    assert rules(**{f"f{n}": b"" for n in range(50)}) == []
    assert rules(**{f"f{n}": b"" for n in range(51)}) == ["many-files"]


def test_estimate_says_that_it_is_one() -> None:
    """Scripts without spaces count more tokens a character, and the message says 'estimate'."""
    assert limits.estimate_tokens("語" * 300) > limits.estimate_tokens("a" * 300)
    skill = Skill(name="a", description="d", body="x" * 30_000)
    (found,) = limits.check({}, skill)
    assert "estimate" in found.reason
    assert limits.sizes({}, skill)["heavy-body"] == limits.estimate_tokens(skill.body)
