"""What the tests of curation share; the library that can be aged is in `aging.py`."""

import sys
from pathlib import Path

import pytest

from tacit.base import paths
from tacit.changes.place import user_place

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from aging import Library


@pytest.fixture
def library(home: Path) -> Library:
    Path(paths.folders().data).mkdir(parents=True)
    Path(user_place().root).mkdir(parents=True)
    return Library()
