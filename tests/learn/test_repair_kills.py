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


def _killed(folder: Path) -> dict[str, Any]:
    """What became of each kill; one process tries all of them."""
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


def test_killed_at_any_step_it_is_done_once(tmp_path: Path) -> None:
    """The skill is the old or the new one at the kill. Done again, a repair has landed once and is
    told once; a rollback is done once, never brought back by a second undo, and told once."""
    became = _killed(tmp_path)
    for point in _REPAIR:
        _check_repair(became.pop(point))
    for point in _BACK:
        _check_rollback(became.pop(point))
    assert became == {}


def _check_repair(found: dict[str, Any]) -> None:
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


def _check_rollback(found: dict[str, Any]) -> None:
    assert found["signal"] == 9
    assert found["whole"]
    assert found["outcome"] in ("rolled back", "nothing")
    assert "scripts/check.sh" in found["text"]
    assert not found["script"]
    assert found["versions"] == ["improver", "improver", "user"]
    assert found["attempts"] == ["rolled back"]
    assert sorted(found["notices"]) == ["repaired", "rolled-back"]


_REPAIR = (
    "begun", "staged", "before the gate", "after the gate", "told", "cleared", "remembered",
)  # fmt: skip
_BACK = ("before the undo", "after the undo", "noted", "back told")
