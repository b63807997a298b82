"""Homes with real sessions in them."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import trace_samples


@pytest.fixture
def agents(home: Path) -> Path:
    """The user's home with what all tested agents left there."""
    for sample in trace_samples.REAL.values():
        shutil.copytree(trace_samples.FOLDER / sample.folder / "home", home, dirs_exist_ok=True)
    return home
