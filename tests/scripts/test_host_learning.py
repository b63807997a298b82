"""The checks of what scripts/test-hosts learned say yes to what is right, and no to each wrong."""

from typing import Any

import msgspec
import pytest

import host_learning


@pytest.fixture
def learning() -> Any:
    return host_learning


def good(learning: Any) -> Any:
    return learning.Learned(
        calls=20,
        reviewed=3.0,
        told=f"learned the skill {learning.NAME} · undo: tacit undo c37d218d",
        seen=True,
        early=False,
        undone=True,
        draft="metadata:\n  draft: 'true'\n",
        log="",
    )


def failing(learning: Any, learned: Any) -> list[str]:
    return [name for name, check in learning.LEARNING if check(learned).good is False]


def test_what_is_right_passes(learning: Any) -> None:
    """Also where no session without a model was tried."""
    assert failing(learning, good(learning)) == []
    assert failing(learning, msgspec.structs.replace(good(learning), draft=None)) == []


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        ("calls", {"calls": 19}),
        ("learned after", {"reviewed": None}),
        ("announced", {"told": ""}),
        ("announced", {"told": "learned the skill herd-moving"}),
        ("seen next", {"seen": False}),
        ("seen next", {"early": True}),
        ("undone", {"undone": False}),
        ("draft without a model", {"draft": ""}),
        ("draft without a model", {"draft": "name: run-tally-sh"}),
    ],
)
def test_each_wrong_is_found(learning: Any, check: str, wrong: dict[str, Any]) -> None:
    """One thing wrong fails one check."""
    assert failing(learning, msgspec.structs.replace(good(learning), **wrong)) == [check]
