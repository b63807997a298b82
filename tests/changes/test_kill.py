"""A kill at any step leaves the old version or the new one, whole, with its history."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Every n-th call. TACIT_TEST_KILLS=1 tries them all (about 1,300 points, some minutes).
EVERY = os.environ.get("TACIT_TEST_KILLS", "6")
SCENARIOS = (
    "create-first", "edit", "edit-turns", "rename", "archive", "restore", "merge", "delete", "pin",
    "undo", "fact-create", "fact-replace", "fact-forget",
)  # fmt: skip


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: hundreds of kills force thousands of writes."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        folder = Path(tempfile.mkdtemp(prefix="tacit-kill-", dir=memory))
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
    else:
        yield tmp_path


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kill_at_every_step(scenario: str, fast_folder: Path) -> None:
    """Killed before any call that touches the disk, a change is there whole or not at all,
    its history agrees, doctor finds nothing, and making it again makes it once."""
    done = subprocess.run(
        [sys.executable, str(HERE / "kill_driver.py"), scenario, str(fast_folder / "run"), EVERY],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counted = json.loads(done.stdout)
    assert counted["points"] >= counted["calls"] // int(EVERY) - 3
    assert counted["points"] >= 8
    assert counted["old"] > 0
    assert counted["new"] > 0
