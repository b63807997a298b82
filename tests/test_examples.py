"""The examples are programs that run."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, home: Path) -> None:
    """Each example runs in an empty home and prints something."""
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
