"""The checks of the roads of scripts/test-hosts say yes to what is right, and no to each wrong."""

from typing import Any

import msgspec
import pytest

import host_roads

GOOD = host_roads.Road(
    counted=True,
    counted_commands=3,
    learned=True,
    learned_commands=4,
    told=True,
    fact=True,
    own=True,
    worktree=True,
    planted=False,
    reads_clones=False,
    left=[],
    grown=[1, 2],
    killed=9,
    helper="",
    log="",
)


def failing(road: Any) -> list[str]:
    return [name for name, check in host_roads.ROADS if check(road).good is False]


def test_what_is_right_passes() -> None:
    """Also of an agent that reads a clone's skills by itself, and one without helpers."""
    assert failing(GOOD) == []
    own = msgspec.structs.replace(GOOD, planted=True, reads_clones=True, helper=None)
    assert failing(own) == []


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        ("without a model", {"counted": False}),
        ("without a model", {"counted_commands": 5}),
        ("with a model", {"learned": False}),
        ("with a model", {"learned_commands": 5}),
        ("told inside", {"told": False}),
        ("fact", {"fact": False}),
        ("project skill", {"own": False}),
        ("other checkout", {"worktree": False}),
        ("stranger's skill", {"planted": True}),
        ("nothing left", {"left": [".claude/skills/pen-gate"]}),
        ("went on", {"grown": [1, 1]}),
        ("killed", {"killed": None}),
        ("killed", {"killed": host_roads.CALLS}),
        ("helpers", {"helper": "the agent's words count as the user's"}),
    ],
)
def test_each_wrong_is_found(check: str, wrong: dict[str, Any]) -> None:
    """One thing wrong fails one check."""
    assert failing(msgspec.structs.replace(GOOD, **wrong)) == [check]
