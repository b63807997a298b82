"""A curation that is killed at any step is finished by the next one, once."""

import json
import os
import subprocess
import sys
from pathlib import Path

EVERY = int(os.environ.get("TACIT_TEST_KILL_EVERY", "19"))
"""Every so many steps; 1 tries them all."""


def test_killed_at_any_step(tmp_path: Path, home: Path) -> None:
    """Old or new at every step; the next run finishes it, and nothing is archived twice."""
    driver = Path(__file__).parent / "kill_driver.py"
    done = subprocess.run(
        [sys.executable, str(driver), str(tmp_path), str(EVERY)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["points"] >= found["calls"] // EVERY - 2
    assert found["points"] >= 4
