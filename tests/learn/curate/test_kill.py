"""A curation, or a consolidation, that is killed at any step is finished by the next, once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EVERY = int(os.environ.get("TACIT_TEST_KILL_EVERY", "19"))
"""Every so many steps; 1 tries them all."""


def test_killed_at_any_step(tmp_path: Path, home: Path) -> None:
    """Old or new at every step; the next run finishes it, and nothing is archived twice."""
    found = _drive("kill_driver.py", tmp_path, EVERY)
    assert found["points"] >= found["calls"] // EVERY - 2
    assert found["points"] >= 4


def test_a_consolidation_killed_at_any_step(tmp_path: Path, home: Path) -> None:
    """All that was agreed lands in the end, each change once, and one undo brings back all."""
    pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
    every = EVERY * 3
    found = _drive("kill_join_driver.py", tmp_path, every)
    assert found["points"] >= found["calls"] // every - 1
    assert found["points"] >= 3


def _drive(program: str, folder: Path, every: int) -> dict[str, int]:
    driver = Path(__file__).parent / program
    done = subprocess.run(
        [sys.executable, str(driver), str(folder), str(every)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found
