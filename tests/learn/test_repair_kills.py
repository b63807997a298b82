"""Killed at any step, a repair and a rollback are done once, when they are done again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

_HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def became(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each kill; one process tries all of them."""
    folder = tmp_path_factory.mktemp("kills")
    variables = {"PATH": os.environ["PATH"], "TACIT_LEARN_APPROVAL": "auto", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, str(_HERE / "kills.py"), str(folder)],
        capture_output=True,
        text=True,
        env=variables | {"HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_REPAIR = (
    "begun", "staged", "made", "before the gate", "after the gate", "told", "cleared", "remembered",
)  # fmt: skip
_BACK = ("before the undo", "after the undo", "noted", "back told")


@pytest.mark.parametrize("point", _REPAIR)
def test_a_killed_repair_lands_once(became: dict[str, Any], point: str) -> None:
    """The skill is the old or the new one at the kill, and afterwards repaired once, told once."""
    found = became[point]
    assert found["signal"] == 9
    assert found["whole"]
    assert found["outcome"] == "repaired"
    assert "scripts/count.sh" in found["text"]
    assert found["script"]
    assert found["versions"] == ["improver", "user"]
    assert found["hand"] == 0
    assert found["attempts"] == ["repaired"]
    assert found["notices"] == ["repaired"]
    assert found["staging"] == []


@pytest.mark.parametrize("point", _BACK)
def test_a_killed_rollback_is_done_once(became: dict[str, Any], point: str) -> None:
    """The repair is taken back once, never brought back by a second undo, and told once."""
    found = became[point]
    assert found["signal"] == 9
    assert found["whole"]
    assert found["outcome"] in ("rolled back", "nothing")
    assert "scripts/check.sh" in found["text"]
    assert not found["script"]
    assert found["versions"] == ["improver", "improver", "user"]
    assert found["attempts"] == ["rolled back"]
    assert sorted(found["notices"]) == ["repaired", "rolled-back"]
