"""What the tests of schedules share."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("cronsim", reason="the extra 'work' is not installed")
sys.path.insert(0, str(Path(__file__).parent))
